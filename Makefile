# `make demo` needs the light core only; `make test` installs everything. Both work twice in a row, in any order.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
VIDEO ?=
CLIP := .cache/demo/bikes.mp4
TEST_ARGS ?=

.PHONY: help demo test test-slow lint format bench clean

help:
	@echo "make demo [VIDEO=path]  find the event boundaries of a real video (installs the light core, no torch)"
	@echo "make test               install everything; lint, types, floor plan and tests"
	@echo "make test-slow          the slow tests too"
	@echo "make bench              speed beside PySceneDetect, in one run"
	@echo "make format             let ruff lay out the code"
	@echo "make clean              remove what the others made"

demo: $(VENV)/core.stamp $(if $(VIDEO),,$(CLIP))
	$(BIN)/ongebd detect "$(if $(VIDEO),$(VIDEO),$(CLIP))" --out demo-out --stem boundaries --format jsonl,csv,vtt --plot
	@cat demo-out/boundaries.csv
	@echo "The picture: demo-out/boundaries.png"

test: $(VENV)/all.stamp
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -m "not slow" $(TEST_ARGS)

test-slow: $(VENV)/all.stamp
	$(BIN)/python -m pytest $(TEST_ARGS)

lint: $(VENV)/all.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

format: $(VENV)/all.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/all.stamp
	$(BIN)/python benchmarks/detect_speed.py

# A virtual environment that stands there already is used if it works, and made anew if it does not.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "ongebd needs Python 3.11 or newer: install one, or say make PYTHON=path" >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)

$(VENV)/usable: $(BIN)/python
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' && $(BIN)/python -m pip --version >/dev/null 2>&1 \
		|| $(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/core.stamp: pyproject.toml | $(VENV)/usable
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# The exact torch is named, for an open range can bring a build for GPUs of several gigabytes.
$(VENV)/all.stamp: pyproject.toml requirements-test.txt | $(VENV)/usable
	$(BIN)/python -m pip install --quiet --requirement requirements-test.txt --editable ".[all]"
	@touch $@ $(VENV)/core.stamp

$(CLIP): scripts/fetch_demo_clip.py | $(VENV)/usable
	$(BIN)/python scripts/fetch_demo_clip.py $@

clean:
	rm -rf $(VENV) .cache demo-out .mypy_cache .pytest_cache .ruff_cache .hypothesis
