# Every target does its own set-up. Needs Python 3.11 or newer with pip and venv; uses uv when it is there.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
UV ?= $(shell command -v uv)
JOBS ?= auto

VENV := .venv
BENCH := .venv-bench
DIST := .venv-dist
BIN := $(VENV)/bin
LAB := packages/holdfast-lab
PROJECTS := pyproject.toml $(LAB)/pyproject.toml
export MPLBACKEND := Agg

# $(call venv,DIRECTORY) makes a virtual environment; $(call install,DIRECTORY) is the command that installs into it.
venv = $(if $(UV),$(UV) venv --quiet --allow-existing --python $(PYTHON) $(1),$(PYTHON) -m venv $(1))
install = $(if $(UV),$(UV) pip install --quiet --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet --disable-pip-version-check)
# The lock pins everything, the build backend too: no second resolution, no isolated build.
editable = $(call install,$(1)) --no-deps --no-build-isolation --editable . --editable $(LAB)

.DEFAULT_GOAL := help
.PHONY: help setup browser postgres demo test test-cluster lint format docs bench lab lab-full crash crash-server fuzz neighbours seeds soak screenshots campaign-cluster support dist lock clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

setup: $(VENV)/.installed  ## Build .venv and install the pinned dependencies, Holdfast and its lab

$(VENV)/.installed: requirements.lock $(PROJECTS)
	$(call venv,$(VENV))
	$(call install,$(VENV)) --require-hashes --requirement requirements.lock
	$(call editable,$(VENV))
	@touch $(VENV)/.demo $@

# A part of the above: what was installed for all is there for the demo.
$(VENV)/.demo: requirements-demo.lock $(PROJECTS)
	$(call venv,$(VENV))
	$(call install,$(VENV)) --require-hashes --requirement requirements-demo.lock
	$(call editable,$(VENV))
	@touch $@

$(BENCH)/.installed: requirements-bench.lock $(PROJECTS)
	$(call venv,$(BENCH))
	$(call install,$(BENCH)) --require-hashes --requirement requirements-bench.lock
	$(call editable,$(BENCH))
	@touch $@

# The tests of the page drive the system's own browser: nothing is downloaded past its packages.
CHROMIUM := /usr/bin/chromium

browser: $(CHROMIUM)  ## Install Debian's chromium, for the tests of the page; needs root
	@:

$(CHROMIUM):
	@command -v apt-get >/dev/null || { echo "The tests of the page need $@: install chromium." >&2; exit 1; }
	@[ "$$(id -u)" = 0 ] || { echo "The tests of the page need $@, and only root can install it: sudo make browser" >&2; exit 1; }
	apt-get update --quiet --quiet
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends chromium fonts-liberation

demo: $(VENV)/.demo  ## Tune models of real flights on one test set, naively and on a holdout
	$(BIN)/holdfast demo

# Ledgers that several servers share are tested in a server of Debian's, which each test starts.
POSTGRES := /usr/lib/postgresql

postgres: | $(POSTGRES)  ## Install Debian's Postgres, for the tests of ledgers in it; needs root
	@:

$(POSTGRES):
	@command -v apt-get >/dev/null || { echo "The tests of ledgers in Postgres need $@: install postgresql." >&2; exit 1; }
	@[ "$$(id -u)" = 0 ] || { echo "The tests of ledgers in Postgres need $@, and only root can install it: sudo make postgres" >&2; exit 1; }
	apt-get update --quiet --quiet
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends postgresql

test: setup  ## Run every test: tests/, those of the lab, the doctests, the examples of the docs
	@$(MAKE) --no-print-directory browser || echo "Without it the tests of the page are left out." >&2
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

test-cluster: setup postgres  ## Run the tests that start a Dask cluster or Postgres
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m cluster tests $(PYTEST_ARGS)

lint: setup  ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## Rewrite the code in the project's format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

docs: setup  ## Build the documentation into site/; a warning or a broken link fails
	$(BIN)/python -m tools.api_pages
	$(BIN)/zensical build --clean --strict
	$(BIN)/python -m tools.check_site site

bench: $(BENCH)/.installed  ## Measure beside other libraries, bare DuckDB and bare SQLite; 15 minutes on a quiet machine
	$(BENCH)/bin/python -m benchmarks.run

lab: setup  ## Run every experiment of the lab, quickly, and write one page: lab.html
	$(BIN)/holdfast lab run --all --quick
	$(BIN)/holdfast lab report

lab-full: setup  ## The same at full size: takes a night, and continues where it was stopped
	$(BIN)/holdfast lab run --all
	$(BIN)/holdfast lab report

crash: setup  ## Kill writers 2,000 times, cut the power 2,000 times, and look for what was lost
	$(BIN)/python -m tools.crash --kills 2000 --cuts 2000 --output docs/explanation/crash-results.md
	$(BIN)/python -m tools.crash --subject tools.crash.holdout_writer:HoldoutWriter --budget 499 --kills 2000 --cuts 100 --output docs/explanation/crash-results-holdout.md
	$(BIN)/python -m tools.crash --subject tools.crash.holdout_writer:ToldWriter --budget 3200 --kills 2000 --cuts 100 --output docs/explanation/crash-results-told.md

crash-server: setup  ## Kill a server 200 times under load, and look for answers that were lost, unpaid or changed
	$(BIN)/python -m tools.crash.server --kills 200 --output docs/explanation/crash-results-server.md

fuzz: setup  ## Send a server 20,000 cases that nobody would send, three times each
	$(BIN)/python -m tools.fuzz --cases 20000 --jobs 2 --output docs/explanation/fuzz-results.md

neighbours: setup  ## Ask two servers whose tables differ in one unit the same 1,000 questions
	$(BIN)/python -m tools.neighbours --questions 1000 --timed 400 --slot 0.4 0.05 --output docs/explanation/neighbours-results.md

seeds: setup  ## Run every property test with 100 fresh seeds and no example database; an hour and a half, continues where it was stopped
	$(BIN)/python -m tools.seeds --seeds 100 --output docs/explanation/seeds-results.md

soak: setup  ## Half an hour of load: answers a second, waiting times, memory
	$(BIN)/python -m tools.soak --output docs/explanation/soak-results.md

screenshots: setup browser  ## Take the pictures of the page anew
	$(BIN)/python -m tools.screenshots

campaign-cluster: setup postgres  ## Kill servers and Postgres 100 times, create and ask up to 10⁸ rows; an hour, 20 GB of disk
	$(BIN)/python -m tools.crash.cluster --kills 100 --requests 20000 --output docs/explanation/crash-results-postgres.md
	mkdir -p .scratch
	$(BIN)/python -m tools.growth --sizes 1e6 1e7 1e8 --folder .scratch --output docs/explanation/growth-results.md

support: setup postgres  ## Write the table of what each engine and ledger does, from the tests they pass
	$(BIN)/python -m tools.support_table

dist: setup  ## Build wheel and sdist, and try the wheel in an empty environment
	rm -rf dist $(DIST)
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m build --no-isolation --wheel --outdir dist $(LAB)
	$(call venv,$(DIST))
	$(call install,$(DIST)) --require-hashes --requirement requirements-runtime.lock
	$(call install,$(DIST)) --no-deps dist/holdfast-*.whl
	$(BIN)/python -m tools.readme_example README.md > dist/readme_example.py
	cd dist && ../$(DIST)/bin/python readme_example.py
	cd dist && ../$(DIST)/bin/holdfast plan --queries 100 --json
	$(call install,$(DIST)) --require-hashes --requirement requirements-server.lock
	cd dist && ../$(DIST)/bin/python -c "import holdfast.client, holdfast.ledger.postgres, holdfast.server.run"
	! $(DIST)/bin/holdfast lab list 2> /dev/null
	$(call install,$(DIST)) --require-hashes --requirement requirements-demo.lock
	$(call install,$(DIST)) --no-deps dist/holdfast_lab-*.whl
	cd dist && ../$(DIST)/bin/holdfast lab list

lock:  ## Pin the dependencies again (needs uv)
	tools/lock.sh

clean:  ## Remove everything that can be made again
	rm -rf $(VENV) $(BENCH) $(DIST) dist docs/reference/api site .cache .scratch .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find src tests tools packages -name __pycache__ -type d -prune -exec rm -rf {} +
