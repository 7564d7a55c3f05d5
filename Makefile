# `make train` trains an agent, `make test` runs the tests; both need only Python 3.11+ and PyPI.
# Variables: VENV, PYTHON, CONSTRAINTS, for `make train` STEPS, SEEDS, OUT, for `make bench` OUT,
# and for `make mutants` SAMPLE, SEED.

PYTHON ?= python3
VENV ?= .venv
STEPS ?= 1e6
SEEDS ?= 3
SAMPLE ?= 150
SEED ?= 0
OUT ?= runs/demo-$(shell date +%Y%m%d-%H%M%S)

BIN := $(VENV)/bin
WORKERS ?= 2

# Where the environment says that no bytecode be kept, every process of the tests would compile some
# two thousand modules: half of the time until its first test.
export PYTHONDONTWRITEBYTECODE =

# A file of versions for pip, such as .ci/oldest-constraints.txt.
CONSTRAINTS ?=

# One stamp per extra: pip runs again when pyproject.toml has changed. Several, as in test,docs, are
# installed at once. Most of their modules are never imported, so that compiling all of them would
# take longer than all else here.
comma := ,
STAMP := $(VENV)/.trace-zoo
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
    $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable

.PHONY: help train test test-slow test-all docs serve lint format bench bench-gpu mutants dist clean

help:
	@echo "make train     train an RTU with RTRL on RepeatPreviousEasy (STEPS, SEEDS, OUT)"
	@echo "make test      the quick tests (make test-slow: all others, make test-all: every test)"
	@echo "make lint      layout, style, direction of imports, dependencies and types"
	@echo "make format    format the source and sort the imports"
	@echo "make docs      build the documentation into site/ (make serve: watch it)"
	@echo "make bench     the benchmarks, tables into OUT (make bench-gpu: on an NVIDIA GPU)"
	@echo "make mutants   how many of SAMPLE small changes of the source the quick tests notice"
	@echo "make dist      wheel and source distribution into dist/, checked by twine"
	@echo "make clean     remove caches and build products; keeps runs/ and $(VENV)"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(INSTALL) .
	touch $@

$(STAMP)-%: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[$*]'
	touch $(sort $@ $(addprefix $(STAMP)-,$(subst $(comma), ,$*)))

# Types are checked with what the tests import; where several jobs run, pip runs once at a time.
$(STAMP)-lint: | $(STAMP)-test

train: $(STAMP)
	$(BIN)/python -m agents train --env RepeatPreviousEasy --memory rtu --hidden 96 \
	    --gradient rtrl --segment 8 --steps $(STEPS) --seeds $(SEEDS) --out $(OUT)

test: $(STAMP)-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

test-slow: $(STAMP)-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow

test-all: $(STAMP)-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

lint: $(STAMP)-lint
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m ruff check
	$(BIN)/lint-imports
	$(BIN)/deptry scan rtrl zoo agents
	$(BIN)/python -m pyright --pythonpath $(BIN)/python

format: $(STAMP)-lint
	$(BIN)/python -m ruff format
	$(BIN)/python -m ruff check --select I --fix

docs: $(STAMP)-docs
	$(BIN)/python -m mkdocs build --strict

serve: $(STAMP)-docs
	$(BIN)/python -m mkdocs serve

bench: $(STAMP)-bench
	$(BIN)/python -m benchmarks.all --out $(OUT)

# Under nine minutes, every part on its own.
bench-gpu: $(STAMP)-bench,cuda12
	JAX_PLATFORMS=cuda,cpu $(BIN)/python -m benchmarks.all --few --minutes 8.5 --out $(OUT)

mutants: $(STAMP)-test
	$(BIN)/python -m tests.mutants --sample $(SAMPLE) --seed $(SEED)

dist: $(STAMP)-release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf build dist site .cache .pytest_cache .ruff_cache .hypothesis
	find scan rtrl zoo agents tests benchmarks docs -name __pycache__ -type d -prune \
	    -exec rm -rf {} + 2>/dev/null || true
