# Each target works in a fresh clone: it makes $(VENV), installs what it needs through constraints.txt, and runs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# One thread a process: tests fork, and two cores are all that CI has.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-slow check format bench docs clean

help:
	@echo "make demo       three device bugs on simulated CUDA, explained, and the mended scripts running clean"
	@echo "make test       the tests (make test-slow: also the ones that take minutes)"
	@echo "make check      ruff, mypy, import-linter"
	@echo "make bench      the benchmarks of benchmarks/, as tables"
	@echo "make docs       the documentation, built into site/"

# Dependency groups need pip 25.1; the one that venv brings may be older.
$(VENV)/made:
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=25.1'
	@touch $@

$(VENV)/demo: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) -e '.[torch]' numpy
	@touch $@

$(VENV)/%: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) -e . --group $*
	@touch $@

demo: $(VENV)/demo
	@$(BIN)/python examples/demo.py

test: $(VENV)/test
	$(BIN)/python -m pytest -q

test-slow: $(VENV)/test $(VENV)/programs
	$(BIN)/python -m pytest -q -m slow

check: $(VENV)/check $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/test $(VENV)/bench
	@for benchmark in moving simulation lint; do $(BIN)/python benchmarks/$$benchmark.py || exit 1; done

docs: $(VENV)/docs
	$(BIN)/python scripts/make_docs.py
	$(BIN)/zensical build --strict

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
