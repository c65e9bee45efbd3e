.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip takes a minute to resolve what constraints.txt already pins; a second call finds this file and installs nothing.
# --no-compile: Python compiles what is imported at its first import; pip would take two minutes for all files.
INSTALLED := $(VENV)/installed

.PHONY: help install run ui report test test-slow test-ui lint format graph constraints clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(INSTALLED) ## create .venv and install everything from the project's files

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: Python 3.11 or newer is needed, this is $$($(PYTHON) --version); set PYTHON=…"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	DS_BUILD_OPS=0 $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m flows.prepare || echo "$(BIN)/gristmill doctor says what is missing"
	@touch $@

run: install ## documents in, a released model and a report out
	@$(BIN)/gristmill run

ui: install ## Prefect and MLflow in the browser, with the deployments to trigger
	@$(BIN)/gristmill ui

report: install ## open the report of the last run, or print where it is
	@$(BIN)/gristmill report

# Files of tests side by side, one worker for each core, four at most (each has a Spark of its own): WORKERS=1 for one.
WORKERS ?= logical
test: install ## the test suite
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist loadfile

test-slow: install ## many kills and big graphs
	$(BIN)/python -m pytest -m slow

test-ui: install ## the Prefect UI in headless Chromium (Debian: chromium, chromium-driver)
	$(BIN)/python -m pytest -m ui

lint: install ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: install ## put the code in its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

graph: install ## write the code dependencies of every stage into dvc.yaml
	$(BIN)/python -m tasks.code dvc.yaml

constraints: install ## pin what is installed now (after changing pyproject.toml: make constraints)
	$(BIN)/python -m pip install --quiet --upgrade -e '.[dev]'
	{ sed -n '/^#/p' constraints.txt; $(BIN)/python -m pip freeze --exclude-editable | sed -E 's/\+cpu$$//'; } > constraints.new
	mv constraints.new constraints.txt

clean: ## remove what runs made (not the DVC cache)
	rm -rf data artifacts reports work
	-git worktree prune
