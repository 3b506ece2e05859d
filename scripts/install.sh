#!/usr/bin/env bash
# Prepares .venv: scripts/install.sh core|all
#
# A working environment is reused. A broken one, one of another folder, or one with too old a Python is replaced.
set -euo pipefail
what=${1:?core or all}
cd "$(dirname "$0")/.."
new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

python=${PYTHON:-}
if [ -z "$python" ]; then
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null && "$candidate" -c "$new_enough" 2>/dev/null; then
            python=$candidate
            break
        fi
    done
fi
if [ -z "$python" ] || ! "$python" -c "$new_enough" 2>/dev/null; then
    echo "ongebd needs Python 3.11 or newer; install one, or set make PYTHON=path" >&2
    exit 2
fi

usable() {
    .venv/bin/python -c "$new_enough" && .venv/bin/python -m pip --version &&
        { [ ! -e .venv/place ] || [ "$(cat .venv/place)" = "$PWD" ]; }
} >/dev/null 2>&1

usable || { rm -rf .venv && "$python" -m venv .venv; }
printf '%s' "$PWD" >.venv/place

# What was installed, from which files, and whether it still works.
wanted="$what $(cat pyproject.toml requirements-test.txt | cksum)"
probe='import ongebd, av, onnxruntime, cyclopts, matplotlib'
[ "$what" = all ] && probe="$probe, torch, onnx, scenedetect, pytest, hypothesis, mypy, importlinter"
done_already() {
    { [ "$(cat .venv/installed)" = "$wanted" ] || [ "$(cat .venv/installed)" = "all ${wanted#* }" ]; } &&
        .venv/bin/python -c "$probe"
} >/dev/null 2>&1

if ! done_already; then
    if [ "$what" = all ]; then
        .venv/bin/python -m pip install --quiet --requirement requirements-test.txt --editable ".[all]"
    else
        .venv/bin/python -m pip install --quiet --editable ".[plot]"
    fi
    printf '%s' "$wanted" >.venv/installed
fi
