# How often forecasts are right: nodes of varied clusters drained for real on the real control plane.

# For example ACCURACY_FLAGS='--engine careen --seeds 1 2 3 --drains 8'; see `python -m bench.accuracy --help`.
ACCURACY_FLAGS ?=

.PHONY: bench-accuracy
bench-accuracy: $(INSTALLED) cluster-programs ## 30 drains forecast and then done, on a real control plane, landing by landing
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PYTHON) -m bench.accuracy $(ACCURACY_FLAGS) | tee bench/accuracy/results.md

# The same where the scheduler looks at a part of the nodes; see `python -m bench.accuracy.sampled --help`.
SAMPLED_FLAGS ?=

.PHONY: bench-accuracy-sampled
bench-accuracy-sampled: $(INSTALLED) cluster-programs ## 60 drains in clusters of 200 and 300 nodes with the default scheduler, forecast and then done
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PYTHON) -m bench.accuracy.sampled $(SAMPLED_FLAGS) | tee bench/accuracy/sampled.md

# With what was learned from bindings and without; see `python -m bench.accuracy.learned --help`.
LEARNED_FLAGS ?=

.PHONY: bench-accuracy-learned
bench-accuracy-learned: $(INSTALLED) cluster-programs ## 80 drains in clusters of 200 and 300 nodes, forecast with and without what their bindings taught
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PYTHON) -m bench.accuracy.learned $(LEARNED_FLAGS) | tee bench/accuracy/learned.md

.PHONY: bench-accuracy-searches
bench-accuracy-searches: $(INSTALLED) ## what a forecast loses by following fewer searches, in clusters of 1,000 nodes and more
	$(PYTHON) -m bench.accuracy.few_searches

.PHONY: bench-accuracy-any-start
bench-accuracy-any-start: $(INSTALLED) ## the processor time by which counting every start makes a forecast longer
	$(PYTHON) -m bench.accuracy.any_start

# How real cycles deviate from computed ones; needs folders of records, for example CYCLES_FLAGS='FOLDER FOLDER'.
CYCLES_FLAGS ?=

.PHONY: bench-accuracy-cycles
bench-accuracy-cycles: $(INSTALLED) ## how recorded cycles deviate from computed ones, fitted to every second cluster and judged by the others
	$(PYTHON) -m bench.accuracy.cycles $(CYCLES_FLAGS) | tee bench/accuracy/cycles.md
