# Everything here works on a machine that has Python (3.10 to 3.13), pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint unit check-all mutants fuzz results graph docs install clean

TABLES := table1 table2 table3 table4
FIGURES := figure1 figure3 figure4 figure5 figure6 figure7

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/leader demo --out out

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks experiments tools
	$(BIN)/ruff format --check src tests benchmarks experiments tools
	$(BIN)/mypy
	$(BIN)/python tools/check_docs.py
	$(BIN)/python tools/import_graph.py --check

# Breaks long lines of the documentation anew; draws the import graph of docs/design.md.
docs: $(STAMP)
	$(BIN)/python tools/check_docs.py --wrap

graph: $(STAMP)
	$(BIN)/python tools/import_graph.py --write

unit: $(STAMP)
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow"

test: lint unit

check-all: $(STAMP)
	$(BIN)/python -m pytest -m slow -v -rP --show-capture=stdout

# One-line bugs put in on trial: at least 95 % of them must be noticed. Outcomes are kept in out/mutants.jsonl.
mutants: $(STAMP)
	$(BIN)/python -m tools.mutants

# 5,000 seeded files and command lines of every kind a user can hand in: no traceback, hang or memory error.
fuzz: $(STAMP)
	$(BIN)/python -m tools.fuzz

# Tables and figures of docs/results.md, from the committed records; `leader bench run NAME` makes the records.
results: $(STAMP)
	for name in $(TABLES); do $(BIN)/leader bench table $$name --out docs/results/$$name.md || exit 1; done
	for name in $(FIGURES); do $(BIN)/leader bench figure $$name --out docs/results/$$name.png || exit 1; done

clean:
	rm -rf $(VENV) out
