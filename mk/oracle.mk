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

# The release of the oracle: `make conformance KUBE=1.34`, from 1.32 to 1.37. tests/oracle/releases.py writes what differs.
KUBE ?= 1.36

.PHONY: conformance
conformance: $(INSTALLED) $(ORACLE)-$(KUBE) ## CASES=2000 new cases of SEED=1, answered by both for KUBE=1.36, compared (needs Go)
	$(PYTHON) -m tests.oracle.conformance --oracle $(ORACLE)-$(KUBE) --kube $(KUBE) --seed $(SEED) --cases $(CASES)

$(ORACLE)-1.%: $(wildcard tests/oracle/*.go) tests/oracle/go.mod tests/oracle/releases.py $(INSTALLED)
	rm -rf .cache/oracle-source-1.$*
	$(PYTHON) -m tests.oracle.releases 1.$* .cache/oracle-source-1.$*
	cd .cache/oracle-source-1.$* && export GOWORK=off GOFLAGS=-mod=mod && nice go mod tidy && nice go build -p 2 -trimpath \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$$(sed -nE 's/.*k8s.io.kubernetes v([0-9.]+)$$/\1/p' go.mod)" -o ../oracle-1.$* .

.PHONY: release-goldens
release-goldens: $(INSTALLED) $(ORACLE)-$(KUBE) ## writes what the scheduler of KUBE=1.36 answers to the cases of tests/conformance (needs Go)
	$(PYTHON) -m tests.oracle.release_goldens $(KUBE) --oracle $(ORACLE)-$(KUBE)

.PHONY: peer-tables
peer-tables: $(INSTALLED) ## records what the unit tests of the scheduler of KUBE=1.36 ask, judges it, writes docs/peer-tables.md (needs Go)
	nice $(PYTHON) -m tests.scheduler_core.peer_tables.recorder.record $(KUBE) .cache/peer-tables-$(KUBE)
	$(PYTHON) -m tests.scheduler_core.peer_tables
