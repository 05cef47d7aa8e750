# The same agents on a real control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler built from
# their Go modules, nodes and pods played by kwok. Nothing is installed by hand: see tests/cluster/install-programs.

CONTROLPLANE := .cache/bin/controlplane
KWOK_VERSION := v0.8.0
# Names the version that is there, so that another version is built when it is wanted, and only then.
KWOK := .cache/bin/.kwok-$(KWOK_VERSION)
KUBERNETES_RELEASE := $(shell sed -n "s/^\tk8s.io.kubernetes \(v[0-9.]*\)$$/\1/p" tests/controlplane/go.mod)

# One file, one story or a few words of pytest: make test-cluster STORIES='tests/cluster/test_blocked.py -k alert'
# The alerts are here because this target installs Prometheus, which brings promtool.
STORIES ?= tests/cluster tests/chart tests/architecture/test_alerts.py
# Each worker has a control plane of its own (1 GB with its agents). Stories mostly wait, so three of them suit two cores.
CLUSTER_WORKERS ?= 3

.PHONY: test-cluster
test-cluster: $(INSTALLED) cluster-programs ## the agents on a real control plane, with a real scheduler and Prometheus
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PYTHON) -m pytest -m cluster -p no:cacheprovider -n $(CLUSTER_WORKERS) --dist worksteal -ra --durations=10 $(STORIES)

SCHEDULER_KILLS ?= 200

.PHONY: scheduler-kills
scheduler-kills: $(INSTALLED) cluster-programs ## careen scheduler killed at 200 random instants: no pod lost or bound twice, no node too full
	SCHEDULER_KILLS=$(SCHEDULER_KILLS) $(PYTHON) -m pytest -m cluster -p no:cacheprovider -s tests/cluster/test_scheduler_kills.py

.PHONY: cluster-programs
cluster-programs: $(INSTALLED) $(CONTROLPLANE) $(KWOK)
	@tests/cluster/install-programs $(VENV) prometheus prometheus-alertmanager

# The server answers with the version that the linker writes into it; a server that is v0.0.0 confuses its clients.
# $(call controlplane,v1.36.3,go.mod,.) is the command that builds it from the sources of the third word.
controlplane = cd tests/controlplane && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" nice go build -p 2 -trimpath -modfile $2 -o ../../$@ -ldflags "-s -w \
	-X k8s.io/component-base/version.gitVersion=$1 \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(1:v%=%))) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$1))" $3

$(CONTROLPLANE): $(wildcard tests/controlplane/*.go) tests/controlplane/go.mod tests/controlplane/go.sum | $(INSTALLED)
	@tests/cluster/install-programs $(VENV) go
	@echo "building the control plane $(KUBERNETES_RELEASE) (3 to 4 minutes the first time)"
	$(call controlplane,$(KUBERNETES_RELEASE),go.mod,.)

$(KWOK): | $(INSTALLED)
	@tests/cluster/install-programs $(VENV) go
	@mkdir -p $(@D)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" GOBIN="$(CURDIR)/$(@D)" nice go install -p 2 sigs.k8s.io/kwok/cmd/kwok@$(KWOK_VERSION)
	@touch $@
