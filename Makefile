# Needs Python 3.10 or later and make, nothing else. PYTHON=python3.12 make ... chooses another one.
PYTHON ?= python3

# Tests leave no core idle and measure no time.
PYTEST_ARGS ?= -q -n auto
PLAN ?= cluster_specs/mixed-a100-v100.yaml model_specs/llama-3-70b.json

# Checks the version before an environment is made, so that the message is ours and short.
MAKE_ENVIRONMENT = $(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "planner needs Python 3.10 or later")' && $(PYTHON) -m venv
PIP_INSTALL = bin/python -m pip install --quiet --disable-pip-version-check

RUNTIME = .venv/.runtime-installed
DEVELOPMENT = .venv-dev/.installed
LOWEST = .venv-lowest/.installed

.PHONY: help plan test check lint format lowest frameworks bench accuracy golden requirements clean

help: ## list what can be made
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/:.*## /|/' | awk -F'|' '{printf "make %-14s%s\n", $$1, $$2}'

plan: $(RUNTIME) ## make .venv with the planner in it and plan the example
	.venv/bin/planner plan $(PLAN)

test: $(DEVELOPMENT) ## run every test, with the blocks of the README and the documentation
	.venv-dev/bin/python -m pytest $(PYTEST_ARGS)

check: lint test ## format, lint, types, import contracts, then the tests

lint: $(DEVELOPMENT) ## format, lint, types and import contracts
	.venv-dev/bin/ruff format --check .
	.venv-dev/bin/ruff check .
	.venv-dev/bin/mypy
	.venv-dev/bin/lint-imports

format: $(DEVELOPMENT) ## rewrite the files as the linter wants them
	.venv-dev/bin/ruff check --fix .
	.venv-dev/bin/ruff format .

lowest: $(LOWEST) ## run the tests with the lowest versions that are allowed
	.venv-lowest/bin/python -m pytest $(PYTEST_ARGS) -m "not frameworks and not browser" $(addprefix --ignore tests/,$(ANY_VERSION))

frameworks: $(DEVELOPMENT) ## ask the frameworks themselves: makes their environments (7 GB, outside this folder) and tests with them
	PYTHON=$(PYTHON) tests/frameworks/environments.sh
	.venv-dev/bin/python -m pytest -q -m frameworks tests/frameworks

bench: $(DEVELOPMENT) ## run the cheapest benchmarks once, so that they cannot rot
	.venv-dev/bin/python benchmarks/speed.py --smoke
	.venv-dev/bin/python benchmarks/predictions.py --smoke
	.venv-dev/bin/python benchmarks/replay.py --smoke
	.venv-dev/bin/python benchmarks/mixed.py --smoke
	.venv-dev/bin/python benchmarks/scale.py --smoke

accuracy: $(DEVELOPMENT) ## write what predictions err by: docs/accuracy.md and planner/catalog/errors.yaml
	.venv-dev/bin/python benchmarks/accuracy.py

golden: $(DEVELOPMENT) ## rewrite the expected outputs of the transcripts, the README and the documentation
	.venv-dev/bin/python -m pytest -q -n auto --update-golden

requirements: ## rewrite the pinned versions (needs uv)
	uv pip compile $(COMPILE) --extra dev pyproject.toml -o requirements/locked-dev.txt
	uv pip compile $(COMPILE) --constraint requirements/locked-dev.txt pyproject.toml -o requirements/locked.txt
	uv pip compile $(COMPILE) --extra dev --resolution lowest-direct pyproject.toml -o requirements/lowest.txt

# What is tested the same whatever the versions of libraries are: the house rules, and text in, text out.
ANY_VERSION = test_readme.py test_architecture.py accuracy calibration configurations export frameworks machines

COMPILE = --quiet --upgrade --universal --python-version 3.10 --no-header --no-annotate --no-emit-index-url --no-emit-find-links

clean: ## remove the environments and what the tools left
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(RUNTIME): requirements/locked.txt pyproject.toml
	test -x .venv/bin/python || ($(MAKE_ENVIRONMENT) .venv)
	.venv/$(PIP_INSTALL) --requirement requirements/locked.txt
	.venv/$(PIP_INSTALL) --no-deps --editable .
	touch $@

$(DEVELOPMENT): requirements/locked-dev.txt pyproject.toml
	test -x .venv-dev/bin/python || ($(MAKE_ENVIRONMENT) .venv-dev)
	.venv-dev/$(PIP_INSTALL) --requirement requirements/locked-dev.txt
	.venv-dev/$(PIP_INSTALL) --no-deps --editable .
	touch $@

$(LOWEST): requirements/lowest.txt pyproject.toml
	test -x .venv-lowest/bin/python || ($(MAKE_ENVIRONMENT) .venv-lowest)
	.venv-lowest/$(PIP_INSTALL) --requirement requirements/lowest.txt
	.venv-lowest/$(PIP_INSTALL) --no-deps --editable .
	touch $@
