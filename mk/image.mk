# What the image is made of: Python packages pinned with hashes and audited, and a base image that `make pin-base` pins.
IMAGE_PYTHON := $(shell sed -nE 's/^ARG BASE=.*python:([0-9]+\.[0-9]+).*/\1/p' Dockerfile)
# Tools for this page only, in environments of their own: nothing else of the project needs them.
LOCK_TOOL := .cache/lock-tool
AUDIT_TOOL := .cache/audit-tool
# What the index says of a file is compared with the lock; local wheel folders are left out.
COMPILE := env -u PIP_FIND_LINKS $(LOCK_TOOL)/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
	--no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

.PHONY: lock
lock: ## requirements.lock and requirements-build.lock: what goes into the image, with hashes; needs the package index
	@$(PYTHON3) -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(IMAGE_PYTHON)")' || { \
		echo "the image has Python $(IMAGE_PYTHON), and '$(PYTHON3)' is another one. Try: make PYTHON3=python$(IMAGE_PYTHON) lock" >&2; exit 1; }
	@test -x $(LOCK_TOOL)/bin/pip-compile || { $(PYTHON3) -m venv $(LOCK_TOOL) && $(LOCK_TOOL)/bin/python -m pip install --quiet pip-tools; }
	@$(PYTHON3) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(LOCK_TOOL)/build.in
	@for each in requirements:pyproject.toml requirements-build:$(LOCK_TOOL)/build.in; do \
		echo "locking $${each%%:*}.lock"; \
		$(COMPILE) --output-file $(LOCK_TOOL)/out.lock $${each#*:} > /dev/null; \
		{ echo "# Written by \`make lock\` from pyproject.toml; edit that file, not this one."; grep -v '^ *#' $(LOCK_TOOL)/out.lock; } > $${each%%:*}.lock; \
		rm $(LOCK_TOOL)/out.lock; \
	done

.PHONY: pin-base
pin-base: ## writes the digest of the base image into the Dockerfile; needs the image's registry
	@$(PYTHON3) mk/pin_base.py Dockerfile

.PHONY: audit
audit: ## known vulnerabilities of what goes into the image; fails where one cannot be looked up
	@test -x $(AUDIT_TOOL)/bin/pip-audit || { $(PYTHON3) -m venv $(AUDIT_TOOL) && $(AUDIT_TOOL)/bin/python -m pip install --quiet pip-audit; }
	$(AUDIT_TOOL)/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock --requirement requirements-build.lock
