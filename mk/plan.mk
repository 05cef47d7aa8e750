# How long the plan of a roll-out takes; part of `make bench`.

.PHONY: bench-plan
bench-plan: $(INSTALLED) ## the plan of a roll-out over 200 nodes in every order and over 5,000, and a forecast from a dump; writes results.md
	$(PYTHON) -m bench.plan
