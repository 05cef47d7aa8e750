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
