# The long forms of the tests, which look for what nobody thought of; `make test` runs a little of each.

# A fleet on virtual time, one real shell per agent.

# How many storms, and each so many-th pair of request and fault: all of them, every night. 2,000 storms take about a
# quarter of an hour of two cores, 100,000 a night and a day; a failure is shrunk and told at the end, also after Ctrl-C.
SEEDS ?= 500
EVERY ?= 1
# A storm takes a second of one core and 150 MB.
STORM_WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: storms
storms: $(INSTALLED) ## SEEDS=500 storms of faults, deaths and people over five to eight nodes; STORM=… for one with its story
	$(PYTHON) -m tests.careen.chaos.storm --jobs $(STORM_WORKERS) $(if $(STORM),--seed $(STORM),--seeds $(SEEDS))

# Each so many-th pair of a request and of what can become of it; `make soak` tries all.
.PHONY: crash-points
crash-points: $(INSTALLED) ## a twentieth of the pairs of a request and of what can become of it, and how many there are
	CHAOS_EVERY=$${CHAOS_EVERY:-20} $(PYTHON) -m pytest -q -rP --show-capture=stdout -n $(TEST_WORKERS) --dist worksteal \
		tests/careen/chaos/test_every_call.py \
		| grep -vE '^(_+ |-+ |=+ PASSES|\[gw)'

.PHONY: machine-crash-points
machine-crash-points: $(INSTALLED) ## every command of 22 stories of the scheduling machine, with each thing that can become of it (11,820 points)
	MACHINE_STORIES=22 MACHINE_CRASH_STEP=1 $(PYTHON) -m pytest -q -n $(TEST_WORKERS) --dist worksteal \
		tests/scheduler_core/running/test_crash_points.py

.PHONY: soak
soak: storms ## SEEDS=500 storms, and what else looks for what nobody thought of: every request lost, late or refused
	CHAOS_SEEDS=20 CHAOS_EVERY=$(EVERY) \
		$(PYTHON) -m pytest -q -n $(TEST_WORKERS) --dist worksteal tests/careen/chaos $(TEST_FLAGS)

# On the real control plane: agents are killed and the API server is restarted for so many seconds.
SOAK_SECONDS ?= 900
SOAK_SEED ?= 1

.PHONY: soak-cluster
soak-cluster: export SOAK_SECONDS = $(SOAK_SECONDS)
soak-cluster: export SOAK_SEED = $(SOAK_SEED)
soak-cluster: ## the same on a real control plane, for SOAK_SECONDS=900
	$(MAKE) test-cluster STORIES=tests/cluster/test_soak.py CLUSTER_WORKERS=1

# Every state that a small fleet can come to within written bounds: production's decisions and lock against each other.

# More in one course than the rows of tests/careen/explored/rows.py say. MODEL_FAULTS=1 stops at rules that are stricter than the promise (docs/safety.md).
MODEL_FAULTS ?= 0
MODEL_DELAYS ?= 0

.PHONY: explore
explore: $(INSTALLED) ## decisions and lock, explored to the end of the state space within bounds; prints how many states
	MODEL_FAULTS=$(MODEL_FAULTS) MODEL_DELAYS=$(MODEL_DELAYS) $(PYTHON) -m tests.careen.explored

# Every text that comes from outside, read by the function that reads it first; part of `make test` with few examples.

EXAMPLES ?= 5000

.PHONY: fuzz
fuzz: $(INSTALLED) ## EXAMPLES=5000 of each kind of text from outside: a value or a refusal, nothing else; counts them
	FUZZ_EXAMPLES=$(EXAMPLES) $(PYTHON) -m pytest -q -n $(TEST_WORKERS) --dist worksteal -m fuzz tests/fuzz $(TEST_FLAGS)

ROUNDS ?= 10

.PHONY: hunt
hunt: $(INSTALLED) ## the laws of `make test` with other examples in each of ROUNDS=10 rounds
	@for round in $$(seq $(ROUNDS)); do \
	  $(PYTHON) -m pytest -q -n $(TEST_WORKERS) --dist worksteal -m "hypothesis and not cluster and not image" \
	    --hypothesis-profile hunt --hypothesis-seed $$(( $$(date +%s) + round )) $(TEST_FLAGS) || exit 1; \
	done

# Mistakes that a person could make, made one after another: does some test fail for each? Half an hour on two cores at
# most, and no part of CI. MUTANTS='--only lock/content' for some of them, MUTANTS=--list for their names.

MUTANTS ?=

.PHONY: mutants
mutants: $(INSTALLED) ## makes each mistake of tests/mutants/catalogue and runs the tests that reach it
	$(PYTHON) -m tests.mutants $(MUTANTS)

# A story for each operator of docs/operators.md; ZOO=longhorn for one of them.
.PHONY: zoo
zoo: $(INSTALLED) ## what a roll-out costs beside Longhorn, Rook, CloudNativePG, KubeVirt and others: drains, reboots, evictions, verdict
	$(PYTHON) -m tests.careen.chaos.citizens $(ZOO)
