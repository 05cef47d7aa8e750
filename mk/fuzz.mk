# Every text that comes from outside, read by the function that reads it first; part of `make test` with few examples.

EXAMPLES ?= 5000

.PHONY: fuzz
fuzz: $(INSTALLED) ## EXAMPLES=5000 of each kind of text from outside: a value or a refusal, nothing else; counts them
	FUZZ_EXAMPLES=$(EXAMPLES) $(PYTHON) -m pytest -q -n $(TEST_WORKERS) --dist worksteal -m fuzz tests/fuzz $(TEST_FLAGS)
