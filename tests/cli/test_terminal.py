"""What is printed acts on no terminal, whoever chose the names in it; and secrets stay where they are."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ongebd.cli import main
from ongebd.cli.options import TOKEN
from ongebd.cli.terminal import Progress

Maker = Callable[..., Any]
EVIL = "a\x1b]0;t\x07\x9b2J\n\u202egpj\u2066\x7f"
RAW = {*EVIL} - {*"a]0;t2Jgpj\n"}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory, make_video: Maker, make_scene: Maker) -> Path:
    path = tmp_path_factory.mktemp("clips") / f"{EVIL}.mp4"
    return make_video(path, [make_scene(1)] * 24 + [make_scene(2)] * 24, rate=24)


@pytest.mark.skipif(os.name == "nt", reason="no such file names")
@pytest.mark.parametrize(
    "arguments",
    [
        ["detect", "CLIP"],
        ["detect", "CLIP", "CLIP"],
        ["detect", "CLIP", f"gone {EVIL}"],
        ["detect", f"http://127.0.0.1:9/{EVIL}", f"--{EVIL}"],
        ["detect", "CLIP", "-f", "jsonl"],
        ["detect", "CLIP", "-f", "vtt"],
        ["detect", "CLIP", "--out", f"out {EVIL}"],
        ["detect", "CLIP", "-f", EVIL],
        ["detect", "CLIP", "-m", EVIL],
        ["watch", "CLIP", "-m", "window-mean", "--jsonl", f"j {EVIL}"],
        ["watch", f"gone {EVIL}", "-m", "window-mean"],
        ["watch", f"cam=http://127.0.0.1:9/{EVIL}", "-m", "window-mean", "--retries", "0"],
        ["watch", "CLIP", "--exec", EVIL],
        ["watch", "CLIP", "--serve", EVIL],
        ["evaluate", "--labels", EVIL, "--predictions", EVIL],
        ["extract", EVIL, "--out", EVIL],
        ["compose", EVIL, "--out", EVIL],
        ["train", EVIL],
        [EVIL],
    ],
)
def test_no_name_acts_on_the_terminal(
    arguments: list[str], clip: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    main([one.replace("CLIP", str(clip)) for one in arguments])
    said = "".join(capfd.readouterr())
    assert said
    assert not RAW.intersection(said)
    if "jsonl" in arguments:
        assert json.loads(said.splitlines()[0])["source"] == str(clip)


def test_no_name_acts_on_a_terminal_with_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Progress() as progress:
        progress.show(EVIL, 1.0, 2.0, EVIL)
        progress.say(f"{EVIL} http://u:hunter2@host/")
    assert "]0;t" in terminal.getvalue()
    assert "\x1b]" not in terminal.getvalue()
    assert not (RAW - {"\x1b"}).intersection(terminal.getvalue())
    assert "hunter2" not in terminal.getvalue()


@pytest.mark.skipif(os.name == "nt", reason="file names")
def test_programs_that_a_watch_starts_do_not_get_the_pages_token(clip: Path, tmp_path: Path) -> None:
    told, script = tmp_path / "told", tmp_path / "tell.py"
    script.write_text(f"import os\nopen({str(told)!r}, 'w').write(repr(dict(os.environ)))")
    command = [sys.executable, "-m", "ongebd", "watch", str(clip), "-m", "window-mean", "-q"]
    environment = {**os.environ, TOKEN: "a-token-of-mine"}
    subprocess.run(
        [*command, "--exec", f"{sys.executable} {script}"], env=environment, check=True, timeout=60
    )
    assert "PATH" in told.read_text()
    assert "a-token-of-mine" not in told.read_text()


def test_no_command_hands_the_pages_token_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (["models"], ["watch"], ["watch", "x", "--serve", "y"], ["detect"]):
        monkeypatch.setenv(TOKEN, "a-token-of-mine")
        main(command)
        assert TOKEN not in os.environ
