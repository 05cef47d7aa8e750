# What a cluster kept in memory costs, and how fast it follows a watch; part of `make bench`.

CACHE_FLAGS ?=

.PHONY: bench-cache
bench-cache: $(INSTALLED) ## 5,000 nodes and 150,000 pods in memory: events per second, MiB, over 1,000,000 events
	nice $(PYTHON) -m bench.cache $(CACHE_FLAGS) | tee bench/cache/results.md
