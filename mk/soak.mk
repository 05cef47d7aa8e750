# The long form of the tests that look for what nobody thought of: a fleet on virtual time, one real shell per agent.

# How many seeds of each weather, and each so many-th pair of request and fault: all of them, every night.
SEEDS ?= 200
EVERY ?= 1

.PHONY: soak
soak: $(INSTALLED) ## faults, deaths and people at every moment, with SEEDS=200 storms of each kind
	CHAOS_SEEDS=$(SEEDS) CHAOS_EVERY=$(EVERY) MODEL_SEEDS=$$(($(SEEDS) / 10 + 1)) \
		$(PYTHON) -m pytest -q -n $(TEST_WORKERS) --dist worksteal tests/careen/chaos tests/careen/core/test_model.py $(TEST_FLAGS)

# On the real control plane: agents are killed and the API server is restarted for so many seconds.
SOAK_SECONDS ?= 900
SOAK_SEED ?= 1

.PHONY: soak-cluster
soak-cluster: export SOAK_SECONDS = $(SOAK_SECONDS)
soak-cluster: export SOAK_SEED = $(SOAK_SEED)
soak-cluster: ## the same on a real control plane, for SOAK_SECONDS=900
	$(MAKE) test-cluster STORIES=tests/cluster/test_soak.py CLUSTER_WORKERS=1
