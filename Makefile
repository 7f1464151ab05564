# Everything here works on a machine that has Python (3.10 or newer), pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint unit check-all install clean

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
	$(BIN)/mypy

unit: $(STAMP)
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow"

test: lint unit

check-all: $(STAMP)
	$(BIN)/python -m pytest -m slow -v

clean:
	rm -rf $(VENV) out
