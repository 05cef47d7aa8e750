# The oracle: the packages of the real kube-scheduler, against which scheduler_core is measured.
# Building it needs Go and the module proxy; `make test` needs neither, it reads tests/goldens.

ORACLE := .cache/oracle
CASES ?= 2000

# NodeDeclaredFeatures asks the binary for its version; go.mod alone does not tell it.
KUBERNETES := $(shell sed -nE 's/^\tk8s.io.kubernetes (v[0-9.]+)$$/\1/p' tests/oracle/go.mod)
LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES)

.PHONY: oracle
oracle: $(ORACLE) ## the real scheduler's packages as a judge, in .cache (needs Go)

$(ORACLE): $(wildcard tests/oracle/*.go) tests/oracle/go.mod tests/oracle/go.sum
	cd tests/oracle && nice go build -p 2 -trimpath -ldflags "$(LDFLAGS)" -o ../../$(ORACLE) .

# The answers come from the oracle alone.
.PHONY: goldens
goldens: $(INSTALLED) $(ORACLE) ## writes tests/goldens again: cases and the real scheduler's answers (needs Go)
	$(PYTHON) -m tests.oracle.goldens --oracle $(ORACLE) --out tests/goldens

.PHONY: conformance
conformance: $(INSTALLED) $(ORACLE) ## CASES=2000 new cases of SEED=1, answered by both, compared (needs Go)
	$(PYTHON) -m tests.oracle.conformance --oracle $(ORACLE) --seed $(SEED) --cases $(CASES)
