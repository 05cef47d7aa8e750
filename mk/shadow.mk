# What following a cluster beside its scheduler costs, by the size of the cluster; part of `make bench`.

SHADOW_FLAGS ?=

.PHONY: bench-shadow
bench-shadow: $(INSTALLED) ## memory, processor time and API load of `careen shadow` with 100, 1,000 and 5,000 nodes
	nice $(PYTHON) -m bench.shadow $(SHADOW_FLAGS) | tee bench/shadow/results.md
