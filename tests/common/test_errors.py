"""Errors have public names; what is missing is named with the command that brings it."""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import ongebd
from ongebd.cli import main
from ongebd.errors import MissingExtraError, OngebdError

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {name: needs for name, needs in PROJECT["optional-dependencies"].items() if name != "all"}


def listed() -> list[str]:
    """What the metadata of an installed package say of its extras."""
    return [f'{one}; extra == "{name}"' for name, needs in EXTRAS.items() for one in needs]


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_command_names_every_package_of_the_extra(extra, monkeypatch):
    monkeypatch.setattr(metadata, "requires", lambda _: [*PROJECT["dependencies"], *listed()])
    words = shlex.split(str(MissingExtraError.of("this", extra)))
    assert words[words.index("install") + 1 :] == EXTRAS[extra]


def test_without_metadata_the_command_names_the_checkout(monkeypatch):
    def none(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", none)
    assert shlex.split(str(MissingExtraError.of("httpx", "live")))[-1] == f"{ROOT}[live]"


@pytest.mark.parametrize(
    ("pip", "module", "command"),
    [
        ("bin/pip", True, "httpx is not installed: pip install "),
        ("/elsewhere/pip", True, 'httpx is not installed: "{python}" -m pip install '),
        (None, True, 'httpx is not installed: "{python}" -m pip install '),
        ("/elsewhere/pip", False, 'httpx is not installed: uv pip install --python "{python}" '),
    ],
)
def test_the_command_installs_where_this_python_looks(pip, module, command, monkeypatch, tmp_path):
    python = tmp_path / "my bin" / "python"
    found = str(python.with_name("pip")) if pip == "bin/pip" else pip
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr("ongebd.errors.which", lambda _: found)
    monkeypatch.setattr("ongebd.errors.find_spec", lambda _: module or None)
    assert str(MissingExtraError.of("httpx", "live")).startswith(command.format(python=python))


def test_no_page_or_message_installs_from_an_index_that_does_not_have_us():
    pages = [one for glob in ("*.md", "docs/*.md", "examples/*.*", "src/**/*.py") for one in ROOT.glob(glob)]
    told = [one.name for one in pages if re.search(r"install .?ongebd\b", one.read_text(encoding="utf-8"))]
    assert told == []


def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("ongebd.output.figure", "ongebd.lab.evaluation.pictures", "matplotlib.")
    for name in [one for one in sys.modules if one.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_a_picture_without_matplotlib_is_refused_before_any_work(monkeypatch, tmp_path, capsys):
    without_matplotlib(monkeypatch)
    assert main(["detect", "no.mp4", "--out", str(tmp_path / "out"), "--plot"]) == 2
    trouble = capsys.readouterr().err
    assert re.match(r"ongebd: matplotlib\S* is not installed: ", trouble)
    assert trouble.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_report_without_matplotlib_has_its_tables_and_says_how_to_get_the_picture(monkeypatch, tmp_path):
    without_matplotlib(monkeypatch)
    (tmp_path / "labels.csv").write_text("id,duration,annotator,boundaries\na,10,1,2 5\n")
    (tmp_path / "found.csv").write_text("id,time\na,2.1\n")
    out = tmp_path / "report"
    files = ["--labels", str(tmp_path / "labels.csv"), "--predictions", str(tmp_path / "found.csv")]
    assert main(["evaluate", *files, "--out", str(out), "--resamples", "0"]) == 0
    assert {path.name for path in out.iterdir()} == {"report.md", "report.json"}
    assert re.search(r"matplotlib\S* is not installed", (out / "report.md").read_text())


def test_every_error_has_a_public_name_and_is_one_of_ours():
    found = set()
    for path in Path(ongebd.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and node.name[0] != "_":
                found.add(node.name)
    assert {"FrameError", "MissingExtraError", "StoreError"} <= found <= set(ongebd.__all__)
    assert all(issubclass(getattr(ongebd, name), OngebdError) for name in found)


def test_every_public_name_is_there():
    assert all(hasattr(ongebd, name) for name in ongebd.__all__)
    assert set(ongebd.__all__) <= set(dir(ongebd))
