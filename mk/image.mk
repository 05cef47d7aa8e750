# What the image is made of: Python packages pinned with hashes and audited, and a base image that `make pin-base` pins.
IMAGE_PYTHON := $(shell sed -nE 's/^ARG BASE=.*python:([0-9]+\.[0-9]+).*/\1/p' Dockerfile)
# Tools for this page only, in environments of their own: nothing else of the project needs them.
LOCK_TOOL := .cache/lock-tool
AUDIT_TOOL := .cache/audit-tool
SPDX_TOOL := .cache/spdx-tool
# What the index says of a file is compared with the lock; local wheel folders are left out.
COMPILE := env -u PIP_FIND_LINKS $(LOCK_TOOL)/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
	--no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

# `debian` is a stand-in for the base, made of Debian's packages, where no container registry is reached.
BASE ?=
IMAGE_LAYOUTS := .cache/image/layouts
IMAGE_BASE = $(if $(filter debian,$(BASE)),localhost/careen-base:debian,$(or $(BASE),$(shell sed -n 's/^ARG BASE=//p' Dockerfile)))
# A name of its own in the store of mk/image/buildah.
MEASURED := localhost/careen:measured
# Where a release goes: the registry and the name that you own.
RELEASE_IMAGE ?=
PLATFORMS ?= linux/amd64,linux/arm64
VERSION := $(shell sed -nE 's/^version = "(.*)"/\1/p' pyproject.toml)
REVISION = $(shell git rev-parse HEAD 2>/dev/null)
# What the Dockerfile cannot know.
BUILD_LABELS = $(if $(REVISION),--label org.opencontainers.image.revision=$(REVISION)) --label org.opencontainers.image.created=$(shell date -u +%Y-%m-%dT%H:%M:%SZ)

.PHONY: image-size
image-size: ## builds with buildah (root; BASE=debian without a registry) and prints base, our own layers, compressed, and what weighs most
	mk/image/build $(MEASURED) $(BASE) > /dev/null
	@rm -rf $(IMAGE_LAYOUTS) && mkdir -p $(IMAGE_LAYOUTS)
	@mk/image/buildah push --quiet --compression-format gzip $(MEASURED) oci:$(IMAGE_LAYOUTS)/image
	@mk/image/buildah push --quiet --compression-format gzip $(IMAGE_BASE) oci:$(IMAGE_LAYOUTS)/base
	@$(PYTHON3) mk/image/size.py $(IMAGE_LAYOUTS)/image $(IMAGE_LAYOUTS)/base

.PHONY: image-gains
image-gains: $(INSTALLED) ## what each removal of the Dockerfile saves, as the table of docs/image.md
	$(PYTHON) mk/image/gains.py

.PHONY: test-image
test-image: $(INSTALLED) $(SPDX_TOOL)/bin/pyspdxtools ## builds the image with buildah on Debian's Python and runs it: commands, rights, forecast, size, bill of materials
	@tests/cluster/install-programs $(VENV) buildah mmdebstrap
	$(PYTHON) -m pytest -q -p no:cacheprovider -m image -ra tests/image $(TEST_FLAGS)

# The validator of the SPDX project.
$(SPDX_TOOL)/bin/pyspdxtools:
	$(PYTHON3) -m venv $(SPDX_TOOL) && $(SPDX_TOOL)/bin/python -m pip install --quiet 'spdx-tools>=0.8.3,<0.9'

.PHONY: sbom
sbom: ## the bill of materials of IMAGE, SPDX 2.3, into dist/careen.spdx.json; needs docker
	@mkdir -p dist
	docker run --rm --interactive --entrypoint python $(IMAGE) - < mk/image/sbom.py > dist/careen.spdx.json

.PHONY: image-release
image-release: ## builds RELEASE_IMAGE=registry/name for all PLATFORMS by docker buildx, and pushes it; see docs/release.md
	@test -n '$(RELEASE_IMAGE)' || { echo "say where to: make image-release RELEASE_IMAGE=registry.example/careen" >&2; exit 2; }
	docker buildx build --platform $(PLATFORMS) $(BUILD_LABELS) --tag $(RELEASE_IMAGE):$(VERSION) --push .

.PHONY: dist
dist: $(INSTALLED) ## wheels and sdists of careen and scheduler_core into dist, looked over by twine; asks no index
	rm -f dist/*.whl dist/*.tar.gz
	for each in . scheduler_core; do (cd $$each && $(CURDIR)/$(PYTHON) -m hatchling build --directory $(CURDIR)/dist); done
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz

.PHONY: lock
lock: ## requirements.lock and requirements-build.lock: what goes into the image, with hashes; needs the package index
	@$(PYTHON3) -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(IMAGE_PYTHON)")' || { \
		echo "the image has Python $(IMAGE_PYTHON), and '$(PYTHON3)' is another one. Try: make PYTHON3=python$(IMAGE_PYTHON) lock" >&2; exit 1; }
	@test -x $(LOCK_TOOL)/bin/pip-compile || { $(PYTHON3) -m venv $(LOCK_TOOL) && $(LOCK_TOOL)/bin/python -m pip install --quiet pip-tools; }
	@for each in requirements:run requirements-build:build; do \
		echo "locking $${each%%:*}.lock"; \
		$(PYTHON3) mk/lock_input.py $${each#*:} > $(LOCK_TOOL)/$${each#*:}.in; \
		$(COMPILE) --output-file $(LOCK_TOOL)/out.lock $(LOCK_TOOL)/$${each#*:}.in > /dev/null; \
		{ echo "# Written by \`make lock\` from pyproject.toml; edit that file, not this one."; grep -v '^ *#' $(LOCK_TOOL)/out.lock; } > $${each%%:*}.lock; \
		rm $(LOCK_TOOL)/out.lock; \
	done

.PHONY: pin-base
pin-base: ## writes the digest of the base image into the Dockerfile; needs the image's registry
	@$(PYTHON3) mk/pin_base.py Dockerfile

.PHONY: audit
audit: ## known vulnerabilities of what goes into the image; fails where one cannot be looked up
	@test -x $(AUDIT_TOOL)/bin/pip-audit || { $(PYTHON3) -m venv $(AUDIT_TOOL) && $(AUDIT_TOOL)/bin/python -m pip install --quiet pip-audit; }
	@$(PYTHON3) -c 'import json, urllib.request as r; json.load(r.urlopen("https://pypi.org/pypi/idna/3.6/json", timeout=20))["vulnerabilities"][0]' 2> /dev/null \
		|| { echo "audit: pypi.org does not give advisories here (none for idna 3.6, which has one): nothing was looked up. Run it where it does." >&2; exit 1; }
	$(AUDIT_TOOL)/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock --requirement requirements-build.lock
