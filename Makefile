# Everything here works on a machine that has Python (3.10 to 3.13), pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo web test-web test-cluster test-company test lint unit check-all mutants fuzz audit release results graph docs site \
	install clean

TABLES := table1 related table2 table3 table4 fid trust
FIGURES := figure1.jpg figure3.jpg figure4.jpg figure5.png figure6.png figure7.png

install: $(STAMP)

# What a user needs, and nothing else.
$(BASE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $(BASE)

# What tests and checks need besides.
$(STAMP): $(BASE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: $(BASE)
	$(BIN)/leader demo --out out

# The page on this machine: drop a picture in and watch it come back.
web: $(BASE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[web]'
	$(BIN)/leader web

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks experiments tools
	$(BIN)/ruff format --check src tests benchmarks experiments tools
	$(BIN)/mypy
	$(BIN)/python tools/check_docs.py
	$(BIN)/python tools/check_numbers.py
	$(BIN)/python tools/import_graph.py --check

# Breaks long lines of the documentation anew; draws the import graph of docs/design.md.
docs: $(STAMP)
	$(BIN)/python tools/check_docs.py --wrap

graph: $(STAMP)
	$(BIN)/python tools/import_graph.py --write

# The documentation as a site, in out/site: spelling, links and references are checked, and the notebooks executed anew.
site: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/codespell
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.notebooks --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

unit: $(STAMP)
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not browser"

test: lint unit

# The page in a real browser. Chromium comes from Debian's packages, axe-core from npm; without them the tests say so and skip.
test-web: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[web]'
	sh tools/get_browser.sh $(VENV)/npm
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -m browser -rs tests/web

# A real Ray cluster on this machine, a node of which is killed while it works. With `pip install 'moto[server]' s3fs` also an
# S3 server; without them those tests are skipped.
test-cluster: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,cluster]'
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -rs tests/engines/test_ray.py tests/folders/test_s3.py

# deepinv both ways. It comes into a folder of its own and without what it asks for but the few packages that it imports, so that
# torch stays as it is.
COMPANY := $(VENV)/company
test-company: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --constraint constraints.txt --target $(COMPANY) \
		deepinv torchvision torchmetrics lightning-utilities einops h5py natsort
	OMP_NUM_THREADS=1 LEADER_COMPANY=1 PYTHONPATH=$(COMPANY) $(BIN)/python -m pytest tests/interop

check-all: $(STAMP)
	$(BIN)/python -m pytest -m slow -v -rP --show-capture=stdout

# Plants 300 random bugs in a copy of the tree and prints the share that the tests notice; a second call continues.
# What each test reaches is found out first (about as long as `make unit`) and kept in out/mutants. Other seeds, or one
# room: python -m tools.mutants --seed 2 --room folders
mutants: $(STAMP)
	$(BIN)/python -m tools.mutants --count 300 --seed 1

# 10,000 seeded files and command lines of every kind a user can hand in: no traceback, hang or memory error.
fuzz: $(STAMP)
	$(BIN)/python -m tools.fuzz

# Known weaknesses of the pinned packages (asks the advisory service of the Python Package Index: needs the network), and
# whether what is installed fits together. Fails where a package could not be looked up.
audit: $(STAMP)
	$(BIN)/python -m pip check
	$(PYTHON) -m venv out/audit
	out/audit/bin/python -m pip install --quiet pip-audit
	out/audit/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

# The release checklist: versions, wheel, notices, and a picture restored from the wheel on every Python that is found.
release: $(STAMP)
	$(BIN)/python tools/release.py

# Tables and figures of docs/results.md, from the committed records; `leader bench run NAME` makes the records.
results: $(STAMP)
	for name in $(TABLES); do $(BIN)/leader bench table $$name --out docs/results/$$name.md || exit 1; done
	for name in table2 table3; do $(BIN)/leader bench table $$name --form small-paper --out docs/results/$$name-paper.md || exit 1; done
	for name in $(FIGURES); do $(BIN)/leader bench figure $${name%.*} --out docs/results/$$name || exit 1; done
	$(BIN)/python experiments/figure2.py docs/results/figure2.png
	$(BIN)/python experiments/pruning_error.py > docs/results/pruning.md
	$(BIN)/python benchmarks/peers.py table > docs/results/peers.md
	$(BIN)/python benchmarks/self_check.py > docs/results/self-check.md

clean:
	rm -rf $(VENV) out
