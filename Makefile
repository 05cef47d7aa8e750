# careen. `make` lists what there is; `make demo` and `make test` are all a newcomer needs.
# Each target does its own set-up in .venv: nothing but Python 3.11 (or newer) and make is needed beforehand.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
# Only to make .venv: `make PYTHON3=python3.12 install` for another one.
PYTHON3 ?= python3
# Set-up is done again when the dependencies change, and only then.
INSTALLED := $(VENV)/.installed
IMAGE ?= careen:dev

# Demo and tests start hundreds of interpreters: without bytecode each of them compiles careen anew.
unexport PYTHONDONTWRITEBYTECODE

# The demo's size; `make demo NODES=30 SEED=4 DEMO_FLAGS=--faults` for another one.
NODES ?= 12
SEED ?= 1
DEMO_FLAGS ?=
# One more than the cores of a small machine: a third of the tests' time is waiting for processes and their pauses.
TEST_WORKERS ?= 3
TEST_FLAGS ?=

.PHONY: help
help: ## this list
	@echo "make TARGET, where TARGET is one of"
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 20

.PHONY: install
install: $(INSTALLED) ## a virtual environment in .venv with everything the other targets need

# pip learnt dependency groups in 25.1; the one that comes with Python 3.11 is older.
# What the image has too comes in the versions of the lock.
$(INSTALLED): pyproject.toml scheduler_core/pyproject.toml requirements.lock
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "careen needs Python 3.11 or newer; '$(PYTHON3)' is $$($(PYTHON3) --version 2>&1). Try: make PYTHON3=python3.11" >&2; exit 1; }
	@test -x $(PYTHON) || $(PYTHON3) -m venv $(VENV) \
		|| { echo "cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "installing what pyproject.toml names into $(VENV)"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@sed -nE 's/^([A-Za-z0-9._-]+==[^ ]+) .*/\1/p' requirements.lock > $(VENV)/locked.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --constraint $(VENV)/locked.txt --editable ./scheduler_core --editable . --group test --group check
	@touch $@

.PHONY: demo
demo: $(INSTALLED) ## a whole fleet on this computer reboots, node by node, and a checker judges it
	$(BIN)/careen demo --nodes $(NODES) --seed $(SEED) $(DEMO_FLAGS)

.PHONY: test
test: $(INSTALLED) ## everything that needs nothing but Python
	$(PYTHON) -m pytest -q -n $(TEST_WORKERS) --dist worksteal -m "not browser and not cluster and not image" $(TEST_FLAGS)

.PHONY: check
check: $(INSTALLED) ## style, types and import contracts
	@test ! -e operator/__init__.py || { echo "operator/__init__.py shadows Python's own operator module: remove it" >&2; exit 1; }
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config tests/architecture/contracts.toml

.PHONY: pictures
pictures: $(INSTALLED) ## draws the README's pictures again, from a demo and a plan
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PYTHON) docs/pictures.py

.PHONY: docs
docs: $(INSTALLED) ## writes the generated pages of docs/ again
	$(PYTHON) docs/generate.py
	$(PYTHON) -m tests.scheduler_core.peer_tables
	$(PYTHON) -m tests.scheduler_peers.page

.PHONY: image
image: ## the container image
	docker build $(BUILD_LABELS) --tag $(IMAGE) .

.PHONY: clean
clean: ## removes everything that the other targets made, except .venv
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find operator scheduler_core drydock bench docs tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Targets that need more than Python, or more than minutes: the real control plane, the image, benches, long forms of the tests.
include $(wildcard mk/*.mk)
