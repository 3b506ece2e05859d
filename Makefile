# `make demo` needs the light core only; `make test` installs everything. Both work twice in a row, in any order.
PY := .venv/bin/python
CLIP := .cache/demo/bikes.mp4
TEST_ARGS ?=
VIDEO ?=
# As it was given, whatever characters are in it.
override VIDEO := $(value VIDEO)
export VIDEO PYTHON
# One thread a process: on a few busy cores, threads that wait for each other cost more than they give.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-slow lint format bench clean

help:
	@echo "make demo [VIDEO=path]  find the event boundaries of a real video (installs the light core, no torch)"
	@echo "make test               install everything; lint, types, floor plan and tests"
	@echo "make test-slow          the slow tests too"
	@echo "make bench              speed beside PySceneDetect, in one run"
	@echo "make format             let ruff lay out the code"
	@echo "make clean              remove what the others made"

demo:
	@scripts/install.sh core
	@test -n "$$VIDEO" -o -e $(CLIP) || $(PY) scripts/fetch_demo_clip.py $(CLIP)
	@$(PY) -m ongebd detect --out demo-out --stem boundaries --format jsonl,csv,vtt --plot -- "$${VIDEO:-$(CLIP)}"
	@cat demo-out/boundaries.csv
	@echo "The picture: demo-out/boundaries.png"

test: lint
	$(PY) -m pytest -m "not slow" $(TEST_ARGS)

test-slow: lint
	$(PY) -m pytest $(TEST_ARGS)

lint:
	@scripts/install.sh all
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -c "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())" --no-cache

format:
	@scripts/install.sh all
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench:
	@scripts/install.sh all
	$(PY) benchmarks/detect_speed.py

clean:
	rm -rf .venv .cache demo-out .mypy_cache .pytest_cache .ruff_cache .hypothesis
