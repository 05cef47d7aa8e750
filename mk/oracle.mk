# The oracle: the packages of the real kube-scheduler, against which scheduler_core is measured.
# Building it needs Go and the module proxy; `make test` needs neither, it reads tests/goldens.

PYTHON ?= .venv/bin/python
ORACLE := .cache/oracle
SEED   ?= 1
CASES  ?= 2000

.PHONY: oracle goldens conformance bench-scheduler

oracle: $(ORACLE)

$(ORACLE): $(wildcard tests/oracle/*.go) tests/oracle/go.mod tests/oracle/go.sum
	cd tests/oracle && nice go build -p 2 -trimpath -o ../../$(ORACLE) .

# New golden cases and their answers; the answers come from the oracle alone.
goldens: $(ORACLE)
	$(PYTHON) tests/oracle/goldens.py --oracle $(ORACLE) --out tests/goldens

# Further cases of any seed, answered by both; fails on the first difference and prints it.
conformance: $(ORACLE)
	$(PYTHON) tests/oracle/conformance.py --oracle $(ORACLE) --seed $(SEED) --cases $(CASES)

# The figures of the documentation about the scheduler's speed; nothing else may state them.
bench-scheduler: $(ORACLE)
	$(PYTHON) bench/scheduler/run.py --oracle $(ORACLE)
