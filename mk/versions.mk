# The same stories on other releases of Kubernetes. tests/controlplane/pin wrote their module files.

VERSIONS ?= 1.33 1.37
# What differs between releases: who may write what, policies in CEL, and a roll-out from the need to the hand-back.
VERSION_STORIES ?= $(addprefix tests/cluster/test_,rollout.py admission.py exploits.py exploit_stories.py rights.py own_rights.py people.py)

# The release that a module file names.
release = $(shell sed -nE 's/^\tk8s.io.kubernetes (v[0-9.]+)$$/\1/p' tests/controlplane/v$1.mod)

.PHONY: test-cluster-versions
test-cluster-versions: $(INSTALLED) $(KWOK) $(VERSIONS:%=.cache/bin/v%/controlplane) ## a roll-out and the admission policies on VERSIONS='1.33 1.37' of the control plane
	@failed=; for version in $(VERSIONS); do \
		echo "== $$(.cache/bin/v$$version/controlplane apiserver --version)"; \
		CLUSTER_KUBERNETES=$$version PATH="$(CURDIR)/$(VENV)/bin:$$PATH" \
			$(PYTHON) -m pytest -m cluster -p no:cacheprovider -n $(CLUSTER_WORKERS) --dist worksteal -ra --durations=3 $(VERSION_STORIES) \
			|| failed="$$failed $$version"; \
	done; \
	test -z "$$failed" || { echo "failed on Kubernetes$$failed" >&2; exit 1; }

.cache/bin/v%/controlplane: tests/controlplane/main.go tests/controlplane/v%.mod tests/controlplane/v%.sum | $(INSTALLED)
	@tests/cluster/install-programs $(VENV) go
	@mkdir -p $(@D)
	@echo "building the control plane $(call release,$*) (3 to 4 minutes the first time)"
	$(call controlplane,$(call release,$*),v$*.mod,main.go)

tests/controlplane/v%.mod tests/controlplane/v%.sum:
	@echo "no module files for Kubernetes $*: tests/controlplane/pin $*.0 writes them, or the newest patch release instead of 0" >&2; exit 2

# `make test-python PYTHON3=python3.13`: the tests on another Python than the image's, in an environment of its own.
.PHONY: test-python
test-python: ## `make test` on the Python of PYTHON3=python3.13, in .cache
	$(MAKE) test VENV=.cache/venv-$(shell $(PYTHON3) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
