# How long the plan of a roll-out takes; part of `make bench`.

.PHONY: bench-plan
bench-plan: $(INSTALLED) ## the plan of a roll-out over 200 nodes and 6,000 pods, in every order
	$(PYTHON) -m bench.plan
