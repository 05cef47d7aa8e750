# Every state that a small fleet can come to within written bounds: production's decisions and lock against each other.

# More in one course than the rows of tests/careen/explored/rows.py say. MODEL_FAULTS=1 stops at rules that are stricter than the promise (docs/safety.md).
MODEL_FAULTS ?= 0
MODEL_DELAYS ?= 0

.PHONY: explore
explore: $(INSTALLED) ## decisions and lock, explored to the end of the state space within bounds; prints how many states
	MODEL_FAULTS=$(MODEL_FAULTS) MODEL_DELAYS=$(MODEL_DELAYS) $(PYTHON) -m tests.careen.explored
