"""Mistakes on the command line: one line in plain words, status 2, no secret shown, nothing written."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ongebd.cli import main
from ongebd.detector import load

Maker = Callable[..., Any]
SECRETS = ("hunter2", "tok3n")
URL = "http://me:hunter2@127.0.0.1:1/clip.mp4?token=tok3n"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory, make_video: Maker, make_scene: Maker) -> Path:
    path = tmp_path_factory.mktemp("clips") / "clip.mp4"
    return make_video(path, [make_scene(1)] * 12, rate=24)


def refused(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What is said on stderr."""
    assert main([*map(str, arguments)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    "arguments",
    [
        ["detect", URL],
        ["detect", URL, URL.replace("clip", "other")],
        ["detect", URL, "gone.mp4", "--out", "out"],
        ["detect", "x.mp4", "--model", URL],
        ["detect", "x.mp4", "--tau", URL],
        ["detect", "x.mp4", "--format", URL],
        ["detect", f"--{URL}"],
        ["extract", URL, "--out", "store"],
        ["extract", URL, URL, "--out", "store"],
        ["evaluate", "--labels", URL, "--predictions", URL],
        ["train", URL],
        ["export", URL],
    ],
)
def test_no_message_of_any_command_shows_a_secret(
    arguments: list[str], capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(capfd, *arguments)
    assert said
    assert not any(secret in said for secret in SECRETS)
    for file in tmp_path.rglob("*.json*"):
        assert not any(secret in file.read_text() for secret in SECRETS)


@pytest.mark.parametrize("formats", ["png", "jsonl", "csv,vtt", "jsonl,csv,vtt,png"])
@pytest.mark.parametrize("link", ["copy", "symlink", "hard link"])
def test_no_output_is_any_source_of_the_call(
    clip: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], formats: str, link: str
) -> None:
    folder = tmp_path / "ow"
    folder.mkdir()
    shutil.copy(clip, folder / "a.mp4")
    later = folder / f"a.{formats.split(',')[-1]}"
    if link == "copy":
        shutil.copy(clip, later)
    elif link == "symlink":
        later.symlink_to(clip)
    else:
        later.hardlink_to(clip)
    named = later if link == "copy" else clip  # the source itself may be called otherwise
    before = {path: path.read_bytes() for path in folder.iterdir()}
    said = refused(capfd, "detect", folder / "a.mp4", named, "--out", folder, "-f", formats)
    assert "would be overwritten" in said
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_standard_input_is_not_written_over_either(clip: Path, tmp_path: Path) -> None:
    source = tmp_path / "stdin.csv"
    shutil.copy(clip, source)
    command = [sys.executable, "-m", "ongebd", "detect", "-", "--out", str(tmp_path), "-f", "csv"]
    with source.open("rb") as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is the source itself" in done.stderr
    assert source.read_bytes() == clip.read_bytes()


@pytest.mark.parametrize(
    ("stem", "says"),
    [
        ("../x", "must be a plain name"),
        ("/abs", "must be a plain name"),
        ("a\\b", "must be a plain name"),
        ("..", "must be a plain name"),
        ("", "--stem has an empty value"),
        ("  ", "--stem has an empty value"),
        ("a\nb", "must be a plain name"),
        ("x" * 300, "of at most 200 bytes"),
    ],
)
def test_a_stem_is_a_plain_name(
    clip: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], stem: str, says: str
) -> None:
    said = refused(capfd, "detect", clip, "--out", tmp_path / "out", "--stem", stem)
    assert says in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["detect"], "no source: name a video file, a URL, or - for standard input (see: ongebd detect"),
        (["detect", ""], "a source has no name"),
        (["detect", "-", "-"], "standard input (-) is given twice"),
        (["detect", "-", "x.mp4", "-"], "standard input (-) is given twice"),
        (["detect", "x.mp4", "--stem", "y"], "--stem needs --out DIR"),
        (["detect", "x.mp4", "--out", ""], "--out has an empty value"),
        (["detect", "x.mp4", "--model", ""], "--model has an empty value"),
        (["detect", "x.mp4", "--tau"], "--tau needs a value (see: ongebd detect --help)"),
        (["detect", "x.mp4", "--tau", "high"], "--tau high: must be a number (see: ongebd detect --help)"),
        (["detect", "x.mp4", "--tau", "1", "--tau", "2"], "--tau is given twice"),
        (["detect", "--tua", "2"], "unknown option, or no such file: --tua (see: ongebd detect"),
        (["detect", "x.mp4", "--chapter", "8"], "no such file: --chapter; did you mean --chapters? (see"),
        (["models", "x"], "unexpected argument x; drop it (see: ongebd models --help)"),
        (["extract"], "--out is missing (see: ongebd extract --help)"),
        (
            ["extract", "--out", "s"],
            "no source: name a video file, a URL, or - for standard input (see: ongebd extract",
        ),
        (["extract", "x.mp4"], "--out is missing (see: ongebd extract --help)"),
        (["evaluate"], "--labels is missing (see: ongebd evaluate --help)"),
        (["export"], "FOLDER is missing"),
        (["detect", "x.mp4", "--min-error", "2"], "min_error must be at least 0 and at most 1"),
        (["detect", "x.mp4", "--window", "1000000"], "and at most 4096"),
        *(
            (["detect", "x.mp4", name, value], f"{name} {value}: must be a whole number")
            for name in ("--window", "--delta", "--warmup", "--stream")
            for value in ("1.5", "0.9", "8.0", "x")
        ),
        (["extract", "x.mp4", "--out", "s", "--jobs", "1.5"], "--jobs 1.5: must be a whole number"),
        (["evaluate", "--labels", "a", "--predictions", "b", "--seed", "0.5"], "--seed 0.5: must be a whole"),
        (["train", "--epochs", "1.5"], "--epochs 1.5: must be a whole number"),
    ],
)
def test_a_mistake_is_one_line_in_plain_words(
    arguments: list[str],
    says: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(capfd, *arguments)
    assert says in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_help_states_the_models_own_values(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "--model", "no-such", "--help-all"]) == 0
    text = re.sub(r"[│\s]+", " ", capfd.readouterr().out)
    stated = {
        name.replace("-", "_"): dict(value.split(": ") for value in values.split("; "))
        for name, values in re.findall(r"--([a-z-]+) [A-Z]+ (?:(?! --)[^\[])*\[(\S+: [^\]]*)\]", text)
    }
    obd = ("tau", "delta", "window", "warmup", "min_std", "min_error", "min_gap", "max_run")
    for model, names in {"immediate": ("min_gap", "max_run", "rearm", "head"), "window-mean": obd}.items():
        defaults = load(model).defaults
        for name in names:
            value = getattr(defaults, name)
            said = stated[name][model]
            assert said == value if name == "head" else float(said) == value, name
    for name, value in {"fps": 24, "sensitivity": 0.5}.items():
        assert re.search(rf"--{name} [A-Z]+ [^\[]*\[{value}\]", text), name
