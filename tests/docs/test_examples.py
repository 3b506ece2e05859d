"""Each example runs on the demo's clip."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

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
