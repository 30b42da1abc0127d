# make setup | run | demo | test | test-full | faults | docs | bench | lock
# Everything is installed into .venv. (pip and matplotlib keep their own caches where they always do.)
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help setup spark browser fuzzer run demo test test-full faults check docs tables bench lock clean

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## create .venv with everything needed (quick when done)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "surefoot needs Python 3.11 or newer; found $$($(PYTHON) --version). Try: make setup PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(STAMP)

spark: setup  ## pyspark into .venv, for the warehouse's tests on Spark, which need Java 17, too (500 MB)
	$(BIN)/python -c 'import pyspark' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check "pyspark>=3.5"

browser: setup  ## playwright into .venv, for the test that looks at the report in Chromium (170 MB)
	$(BIN)/python -c 'import playwright' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check "playwright>=1.49"

run: setup  ## the main job: every figure of the paper in its quick size, and the report (minutes)
	$(BIN)/surefoot run paper --quick --resume --out out/paper

demo: setup  ## a first look at three agents, with sharp certificates and with the paper's bounds (seconds)
	$(BIN)/surefoot demo --out out/demo.png

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: check  ## ruff, mypy --strict, import-linter, pytest (minutes)
	$(BIN)/pytest -n auto --dist worksteal -m "not full"

fuzzer: setup  ## atheris into .venv, for the coverage-guided tests of every file reader in test-full
	$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check "atheris>=2.3" \
		|| echo "atheris cannot be installed here: the guided fuzz tests will be skipped."

test-full: check fuzzer  ## as test, with the long runs, the slow statistics and guided fuzzing (hours)
	$(BIN)/pytest -n auto

faults: setup  ## plant every fault of faults/planted.toml in a scratch copy: is it caught, and by which test? (minutes)
	$(BIN)/python faults/run.py

docs: setup  ## write the pages that are made from the code (seconds)
	$(BIN)/python tools/worlds_page.py
	$(BIN)/python tools/study_fields.py

tables: setup  ## write the pages of measured tables again (half an hour); OUT=folder of full results adds docs/reproduction
	$(BIN)/python tools/choosing_tables.py
	$(BIN)/python tools/guard_tables.py
	$(if $(OUT),$(BIN)/python tools/reproduction.py $(OUT))

bench: setup  ## speed and memory, as ratios in one run; PEERS=1 adds rlberry in its own venv
	$(BIN)/python benchmarks/run.py $(if $(PEERS),--peers) $(if $(KEEP),--keep)

lock: setup  ## resolve the newest versions again and write requirements.lock
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade --extra dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .venv-peers out
