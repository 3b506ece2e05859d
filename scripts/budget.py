"""Measures the size of the project and compares it with scripts/budget.json.

Prints each figure with its limit; exit status 1 if one is above it. A feature that needs more room raises the
limit in its own commit, with the reason. Circles of imports are never allowed.

Usage: python scripts/budget.py
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMITS = Path(__file__).with_name("budget.json")
STILTED = ("anew", "likewise", "is no")
COMMANDS = (
    *("bench", "compose", "detect", "evaluate", "experiment run", "experiment all", "experiment figure"),
    *("experiment list", "export", "extract", "models", "train", "watch"),
)
# What `ongebd detect` imports, then, in a process that has imported it, the files whose functions run.
DETECT = """
import sys, threading
from pathlib import Path
modules, clip, out = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
for module in filter(None, modules):
    __import__(module)
ran = set()
def seen(frame, event, _):
    if event == "call":
        ran.add(frame.f_code.co_filename)
if modules != [""]:
    threading.setprofile(seen)
    sys.setprofile(seen)
from ongebd.cli import main
try:
    main(["detect", clip, "--quiet", "--out", out])
except SystemExit as end:
    assert not end.code, end.code
sys.setprofile(None)
print(*sorted(m for m in sys.modules if m.split(".")[0] == "ongebd"), sep=",")
print(*sorted(f for f in ran if "ongebd" in Path(f).parts), sep=",")
"""


def main() -> int:
    """Print the figures; 1 if a limit is exceeded."""
    limits = json.loads(LIMITS.read_text(encoding="utf-8"))
    figures = dict(measured())
    missing = set(figures) ^ set(limits)
    assert not missing, f"scripts/budget.json and the figures differ in {missing}"
    over = [name for name, value in figures.items() if value > limits[name]]
    for name, value in figures.items():
        print(f"{value:>7,} of {limits[name]:>6,}  {name}{'  TOO MUCH' if name in over else ''}")
    return 1 if over else 0


def measured() -> Iterator[tuple[str, int]]:
    """Every figure by its name."""
    source = texts("src", "*.py")
    yield "lines of src", sum(text.count("\n") for text in source.values())
    yield "lines of code in src", sum(code_lines(text) for text in source.values())
    for folder in ("benchmarks", "scripts", "tests"):
        yield f"lines of {folder}", sum(text.count("\n") for text in texts(folder, "*.py").values())
    pages = texts("docs", "*.md")
    yield "words of docs", sum(len(text.split()) for text in pages.values())
    prose = source | pages | texts("benchmarks", "*.py") | texts("scripts", "*.sh") | texts("tests", "*.py")
    prose |= {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")}
    for words in STILTED:
        found = re.compile(rf"\b{words}\b", re.IGNORECASE)
        yield f'lines with "{words}"', sum(len(lines(found, text)) for text in prose.values())
    files = texts("benchmarks", "*.py") | texts("scripts", "*.py")
    yield "circles of imports", len(circles(source)) + len(circles(files))
    modules, ran = detect()
    yield "modules imported by detect", len(modules)
    yield "files run by detect", len(ran)
    yield "visible options of a command", max(map(visible_options, COMMANDS))


def texts(folder: str, pattern: str) -> dict[str, str]:
    """The contents of files by their path under the root."""
    paths = sorted((ROOT / folder).rglob(pattern))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def lines(pattern: re.Pattern[str], text: str) -> list[str]:
    """The lines in which a pattern occurs."""
    return [line for line in text.splitlines() if pattern.search(line)]


def code_lines(text: str) -> int:
    """Lines that are not blank, comment, docstring or import."""
    left = {number for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
                left.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.strip().startswith("#"):
            left.discard(token.start[0])
    return len(left)


def circles(files: dict[str, str]) -> list[set[str]]:
    """Groups of files that import each other, directly or through others; type-only imports count too."""
    names = {module_name(path): path for path in files}
    reach = {name: set(imports(name, files[path], names)) for name, path in names.items()}
    for via in names:  # Warshall's transitive closure
        for targets in reach.values():
            if via in targets:
                targets |= reach[via]
    groups = {frozenset(b for b in reach[a] if a in reach[b]) for a in names if a in reach[a]}
    for group in sorted(map(sorted, groups)):
        print("circle:", ", ".join(group))
    return [set(group) for group in groups]


def module_name(path: str) -> str:
    """`src/ongebd/video/clock.py` → `ongebd.video.clock`."""
    return ".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__")


def imports(name: str, text: str, known: Iterable[str]) -> Iterator[str]:
    """The known modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [one if one in known else node.module for one in inner]
        else:
            continue
        yield from (one for one in found if one in known and one != name)


def detect() -> tuple[list[str], list[str]]:
    """The modules that `ongebd detect` imports, and the files whose functions it runs."""
    with tempfile.TemporaryDirectory() as folder:
        clip = Path(folder) / "clip.mp4"
        make_clip(clip)

        def run(modules: str) -> list[str]:
            command = [sys.executable, "-c", DETECT, modules, str(clip), folder]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

        modules = run("")[-2]
        return modules.split(","), run(modules)[-1].split(",")


def make_clip(path: Path) -> None:
    """Two seconds of video with a cut in the middle."""
    import av
    import numpy as np

    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=24)
        stream.width = stream.height = 64
        random = np.random.default_rng(0)
        scenes = [random.integers(0, 255, (64, 64, 3), np.uint8) for _ in range(2)]
        for number in range(48):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(scenes[number // 24])))
        file.mux(stream.encode(None))


def visible_options(command: str) -> int:
    """How many options `--help` of a command shows, apart from itself."""
    shown = subprocess.run(
        [sys.executable, "-m", "ongebd", *command.split(), "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    return len(lines(re.compile(r"^│ \*? *(-\w |--[a-z]+(?!-?help)[a-z-]* )"), shown.stdout))


if __name__ == "__main__":
    sys.exit(main())
