"""The pages and the examples."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import av
import pytest
import yaml

from ongebd.cli import app
from ongebd.cli.options import _THEIRS, with_help

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

OTHERS = {"cat", "cd", "export", "ffmpeg", "find", "git", "ray", "sort", "source", "ssh"}
"""Programs of others in the pages."""


def blocks(page: Path, *languages: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [text for language, text in found if language in languages]


def having(*languages: str) -> list[object]:
    return [pytest.param(page, id=page.name) for page in PAGES if blocks(page, *languages)]


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a shell script."""
    text = re.sub(r"\$\([^)]*\)", "VALUE", text.replace("\\\n", " "))
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("|;&"):
                if words:
                    yield words
                words = []
            else:
                words.append(word)


def check(words: list[str]) -> None:
    """Hold a command against the program that it names."""
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    if ">" in words:
        words = words[: words.index(">")]
    match words:
        case [] | [_] if not words or words[0] in OTHERS:
            pass
        case ["uvx", "--from", _, *rest] | ["torchrun", _, _, "-m", *rest] | ["python", "-m", *rest]:
            check(rest)
        case ["ongebd", *rest]:
            app.parse_args(with_help(rest), exit_on_error=False, print_error=False)
        case ["pip" | "pipx", "install", *rest]:
            for extras in re.findall(r"\[(.*)\]", " ".join(rest)):
                assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
        case ["make", *rest]:
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
            assert {word for word in rest if "=" not in word} <= set(targets)
        case ["python", file, *_]:
            assert (ROOT / file).is_file()
        case [program, *_]:
            assert program in OTHERS, words


@pytest.mark.parametrize("page", having("bash", "sh", "console", ""))
def test_every_shell_command_of_a_page_is_one_that_its_program_takes(page: Path):
    for block in blocks(page, "bash", "sh", "console", ""):
        for words in commands(block):
            check(words)


@cache
def options() -> dict[str, set[str]]:
    """The options of each command of ours."""
    found: dict[str, set[str]] = {}
    pending = [(name, app[name]) for name in app if not name.startswith("-")]
    for name, command in pending:
        if command.default_command is None:
            pending += [(one, command[one]) for one in command if not one.startswith("-")]
        else:
            found[name] = {option for one in command.assemble_argument_collection() for option in one.names}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_that_a_page_names_exists(page: Path):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    every = set.union({"--help", "--help-all", "--version", *_THEIRS}, *options().values())
    for span in re.findall(r"`((?:ongebd|--)[^`\n]+)`", prose):
        named = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", span))
        assert named <= every, span
        if span.startswith("ongebd ") and (command := span.split()[1]) in options():
            assert named <= options()[command] | {"--help", "--help-all"}, span


@pytest.mark.parametrize("page", having("json", "yaml"))
def test_data_in_a_page_parses(page: Path):
    for block in blocks(page, "json"):
        json.loads(block)
    for block in blocks(page, "yaml"):
        yaml.safe_load(block)


STAND_INS = {
    "README.md": """
def my_camera():
    from ongebd.video import VideoReader
    with VideoReader("talk.mp4") as reader:
        for frame in reader:
            yield frame.rgb, frame.time
""",
    "live-page.md": """
from ongebd.watch import Watcher
watcher = Watcher(["talk.mp4"])
""",
}
"""What a page leaves to its reader."""


@pytest.fixture(scope="session")
def talk(demo_clip: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the pages speak of."""
    folder = tmp_path_factory.mktemp("pages")
    with av.open(str(demo_clip)) as whole, av.open(str(folder / "talk.mp4"), "w") as talk:  # six seconds
        stream = talk.add_stream_from_template(whole.streams.video[0])
        for packet in whole.demux(video=0):
            if packet.dts is not None and packet.dts * packet.time_base < 6:
                packet.stream = stream
                talk.mux(packet)
    subprocess.run(
        [sys.executable, "-m", "ongebd", "detect", "talk.mp4", "-m", "window-mean", "--out", "found", "-q"],
        cwd=folder,
        check=True,
    )
    (folder / "labels.csv").write_text("id,duration,annotator,boundaries\ntalk,6,1,2 5.5\n")
    return folder


@pytest.mark.parametrize("page", having("python"))
def test_the_python_of_a_page_runs(page: Path, talk: Path):
    script = "\n".join([STAND_INS.get(page.name, ""), *blocks(page, "python")])
    script = re.sub(r"\b(rtsp|udp|https)://[^\"]*", "talk.mp4", script)
    if page.name == "runtime.md":  # its cameras and processes never end
        compile(script, page.name, "exec")
        return
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=talk, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_every_message_of_the_page_on_trouble_is_one_of_ours():
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    code = re.sub(r"\"\s*f?\"", "", code)  # texts over several lines
    rows = re.findall(r"^\| (`.*?`) \|", (ROOT / "docs/trouble.md").read_text(encoding="utf-8"), re.MULTILINE)
    parts = [part.strip("` ") for row in rows for part in re.split("…|: |; ", row)]
    assert [part for part in parts if part and part not in code] == []


def test_the_site_builds_with_every_link_and_anchor_right(tmp_path: Path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_every_link_outside_the_site_leads_to_a_file(page: Path):
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()]
    assert missing == []


EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def test_scenes_come_as_a_list_pictures_and_an_edl(demo_clip: Path, tmp_path: Path):
    done = run("scenes.py", str(demo_clip), "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"scenes.csv", "scenes.edl", "bikes-Scene-001-01.jpg"} <= names
    assert f"{len(names) - 2} scenes" in done.stdout


def test_any_callable_is_asked_about_each_segment(demo_clip: Path, tmp_path: Path):
    done = run("describe.py", str(demo_clip), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    times = [line.split()[:2] for line in done.stdout.splitlines()]
    assert 2 < len(times) <= 8
    assert [end for _, end in times[:-1]] == [start for start, _ in times[1:]]


def test_the_service_answers_with_a_line_for_each_boundary(demo_clip: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    service = importlib.import_module("service")
    client = pytest.importorskip("starlette.testclient").TestClient(service.app)
    lines = client.post("/boundaries", content=demo_clip.read_bytes()).text.splitlines()
    assert len(lines) > 2
    assert set(json.loads(lines[0])) == {"time", "onset", "score"}
    (line,) = client.post("/boundaries", content=b"no video").text.splitlines()
    assert "can't read it as a video" in json.loads(line)["error"]
    monkeypatch.setattr(service, "MOST", 1000)
    assert client.post("/boundaries", content=demo_clip.read_bytes()).status_code == 413


def test_fiftyone_gets_the_segments_or_one_line_says_what_is_missing(demo_clip: Path, tmp_path: Path):
    if find_spec("fiftyone") is not None:
        pytest.skip("FiftyOne is installed, and would start its database")
    done = run("fiftyone_import.py", "events", str(demo_clip), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "FiftyOne is not installed: pip install fiftyone\n")


def test_the_notebook_shows_what_it_prints_today(demo_clip: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(demo_clip.parent)
    notebook = json.loads((EXAMPLES / "first_hour.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(tree, "cell", "exec"), names)
        stored = [one for one in cell["outputs"] if one["output_type"] == "stream"]
        assert shown.getvalue() == "".join(text for one in stored for text in one["text"])
    assert any(
        "text/html" in one.get("data", {}) for cell in notebook["cells"] for one in cell.get("outputs", ())
    )
