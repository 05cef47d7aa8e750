# helm, from its Go module: the stories of `make test-cluster` install the chart with it. A Helm 3: HELM_VERSION=v3.21.4.

HELM_VERSION ?= v4.3.1
# Names the version that is there, as KWOK in cluster.mk.
HELM := .cache/bin/.helm-$(HELM_VERSION)

test-cluster: $(HELM)

.PHONY: test-chart
test-chart: $(INSTALLED) $(HELM) ## the Helm chart: lint, golden files, refusals (needs Go the first time)
	$(PYTHON) -m pytest -q -p no:cacheprovider -n $(TEST_WORKERS) --dist worksteal tests/chart tests/architecture/test_chart.py $(TEST_FLAGS)

.PHONY: chart-goldens
chart-goldens: $(INSTALLED) $(HELM) ## writes tests/chart/goldens again, for a look at the difference
	$(PYTHON) -m tests.chart.goldens

$(HELM): | $(INSTALLED)
	@tests/cluster/install-programs $(VENV) go
	@mkdir -p $(@D)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" GOBIN="$(CURDIR)/$(@D)" nice go install -p 2 -trimpath -ldflags '-s -w' \
		helm.sh/helm/$(firstword $(subst ., ,$(HELM_VERSION)))/cmd/helm@$(HELM_VERSION)
	@rm -f $(@D)/.helm-* && touch $@
