# What a cluster kept in memory costs, how fast it follows a watch, and what a pod costs to read; parts of `make bench`.

CACHE_FLAGS ?=

.PHONY: bench-cache
bench-cache: $(INSTALLED) ## 5,000 nodes and 150,000 pods in memory: events per second, MiB, over 1,000,000 events
	nice $(PYTHON) -m bench.cache $(CACHE_FLAGS) | tee bench/cache/results.md

.PHONY: bench-formats
bench-formats: $(INSTALLED) ## a pod read as JSON and as protobuf: bytes, microseconds
	$(PYTHON) -m pip install --quiet --upgrade --target .cache/protobuf protobuf
	PYTHONPATH=.cache/protobuf nice $(PYTHON) -m bench.cache.formats | tee bench/cache/formats.md
