#!/usr/bin/env bash
# Builds the wheel and the sdist, and installs each in a clean environment as a stranger would.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python clip=$PWD/.cache/demo/bikes.mp4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m build --quiet --outdir "$work/dist" .

try() { # NAME WHAT: install it, and run it away from the checkout
    "$python" -m venv "$work/$1"
    "$work/$1/bin/pip" install --quiet "$2"
    (cd "$work" && "$work/$1/bin/ongebd" detect "$clip" --quiet | grep -c score)
    echo "$1: $(du -sm "$work/$1" | cut -f1) MB with pip, $("$work/$1/bin/pip" list 2>/dev/null | tail -n +3 | wc -l) packages"
}

try wheel "$(echo "$work"/dist/*.whl)"
try sdist "$(echo "$work"/dist/*.tar.gz)[live]"
if said=$(cd "$work" && wheel/bin/ongebd detect "$clip" --out found --plot 2>&1); then exit 1; fi
case $said in *"matplotlib is not installed: "*"matplotlib>="*) ;; *) echo "$said" >&2; exit 1 ;; esac
size=$(du -sm "$work/wheel" | cut -f1)
[ "$size" -le 340 ] || { echo "the light core grew to $size MB; 340 are allowed" >&2; exit 1; }
