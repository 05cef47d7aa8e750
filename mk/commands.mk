# What the commands for people cost; part of `make bench`.

.PHONY: bench-commands
bench-commands: $(INSTALLED) ## processor time of status, why, lock and hold
	$(PYTHON) -m bench.commands
