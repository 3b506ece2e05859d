# `make demo` needs the light core only; `make test` installs everything. Run them in any order, any number of times.
PY := .venv/bin/python
CLIP := .cache/demo/bikes.mp4
TEST_ARGS ?=
FUZZ_ARGS ?=
VIDEO ?=
# Taken literally, whatever characters it contains.
override VIDEO := $(value VIDEO)
export VIDEO PYTHON
# One thread for each process: on a few busy cores, more threads only wait for each other.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-slow clip lint docs package format fuzz bench clean

help:
	@echo "make demo [VIDEO=path]  find the event boundaries of a real video (installs the light core, no torch)"
	@echo "make test               install everything; run lint, types, floor plan, size budget and tests"
	@echo "make test-slow          run the slow tests too"
	@echo "make docs               build the site of the documents into site/"
	@echo "make package            build the wheel and the sdist, and install both in clean environments"
	@echo "make fuzz               run 25,000 damaged files and texts in ten minutes (FUZZ_ARGS='--seed 2': others)"
	@echo "make bench              compare the speed with PySceneDetect"
	@echo "make format             format the code with ruff"
	@echo "make clean              remove everything that the others made"

demo:
	@scripts/install.sh core
	@test -n "$$VIDEO" -o -e $(CLIP) || $(PY) scripts/fetch_demo_clip.py $(CLIP)
	@$(PY) -m ongebd detect --out demo-out --stem boundaries --format jsonl,csv,vtt --plot --force -- "$${VIDEO:-$(CLIP)}"
	@cat demo-out/boundaries.csv
	@echo "The picture: demo-out/boundaries.png"

# On two busy cores a browser, broker or server can be late: what failed runs once more, alone, and fails if it fails again.
# After ten minutes, a test that hangs loses its process and starts again. If it passes, the second run has nothing to do (status 5).
pytest = $(PY) -m pytest --timeout 600 --timeout-method thread --max-worker-restart 2 -n 2 --dist loadfile $(1) || \
	{ [ $$? = 1 ] && echo "These needed a second run, alone:" && \
	{ $(PY) -m pytest -v $(1) -n 0 --last-failed --last-failed-no-failures none || [ $$? = 5 ]; }; }

test: lint clip
	$(call pytest,-m "not slow" $(TEST_ARGS))

test-slow: lint clip
	$(call pytest,$(TEST_ARGS))

clip:  # without it, the tests of pages and examples are skipped
	@test -x $(PY) || scripts/install.sh all
	@test -e $(CLIP) || $(PY) scripts/fetch_demo_clip.py $(CLIP) || true

lint:
	@scripts/install.sh all
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -c "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())" --no-cache
	$(PY) scripts/budget.py

docs:
	@scripts/install.sh all
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo "The site: site/index.html"

package: clip
	@scripts/install.sh all
	scripts/package.sh

format:
	@scripts/install.sh all
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

fuzz:
	@scripts/install.sh all
	$(PY) tests/fuzz.py $(FUZZ_ARGS)

bench:
	@scripts/install.sh all
	$(PY) benchmarks/detect_speed.py

clean:
	rm -rf .venv .cache demo-out site .mypy_cache .pytest_cache .ruff_cache .hypothesis
