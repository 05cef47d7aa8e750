# Mistakes that a person could make, made one after another: does some test fail for each? Half an hour on two cores at
# most, and no part of CI. MUTANTS='--only lock/content' for some of them, MUTANTS=--list for their names.

MUTANTS ?=

.PHONY: mutants
mutants: $(INSTALLED) ## makes each mistake of tests/mutants/catalogue and runs the tests that reach it
	$(PYTHON) -m tests.mutants $(MUTANTS)
