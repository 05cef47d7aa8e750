# A fleet of hundreds of agents in one simulation, and what thousands of waiting nodes cost.

WIDE_FLAGS ?=

.PHONY: wide
wide: $(INSTALLED) ## 500 agents through a wait and a roll-out on virtual time: memory, requests in each part
	$(PYTHON) -m bench.wide $(WIDE_FLAGS)
