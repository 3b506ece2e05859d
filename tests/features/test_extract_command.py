"""`ongebd extract`: ids, refusals, exit statuses, and what is left when it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ongebd.cli import main
from ongebd.features.store import FeatureStore
from waiting import until

Clips = Callable[..., list[tuple[str, Path]]]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "store"


def paths(clips: list[tuple[str, Path]]) -> list[str]:
    return [str(path) for _, path in clips]


def test_the_id_is_the_file_name_without_ending(
    out: Path, make_clips: Clips, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["extract", *paths(make_clips(2)), "--out", str(out)]) == 0
    store = FeatureStore.open(out)
    assert store.ids() == ["v000", "v001"]
    assert store["v000"].features.shape == (5, 1280)
    assert store.backbone.startswith("efficientnet_lite0@")
    assert store.header.sampling.endswith("bicubic to a shorter side of 256, centre 224")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"2 videos, 10 frames, into {out} in" in shown.err


def test_the_same_command_again_does_nothing(
    out: Path, make_clips: Clips, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["extract", *paths(make_clips(2)), "--out", str(out)]
    main(command)
    before = (out / "shard-00000.bin").stat().st_mtime_ns
    assert main(command) == 0
    assert (out / "shard-00000.bin").stat().st_mtime_ns == before
    assert "2 were already done" in capsys.readouterr().err


def test_a_pattern_takes_the_id_out_of_a_name(out: Path, tmp_path: Path, make_clips: Clips) -> None:
    (_, clip) = make_clips(1)[0]
    name = tmp_path / "kinetics400_tutorial__arm_wrestling__C4lCVBZ3ux0_000028_000038.mp4"
    clip.rename(name)
    pattern = r"__([\w-]{11})_\d{6}_\d{6}$"
    assert main(["extract", str(name), "--out", str(out), "--id-pattern", pattern]) == 0
    assert FeatureStore.open(out).ids() == ["C4lCVBZ3ux0"]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("(x+)", "finds no id in 'v000'"), ("v", "has no group"), ("(", "not a regular expression")],
)
def test_a_pattern_that_finds_no_id_is_refused_before_any_work(
    out: Path, make_clips: Clips, pattern: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["extract", *paths(make_clips(1)), "--out", str(out), "--id-pattern", pattern]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_two_videos_of_one_id_are_refused_by_name(
    out: Path, tmp_path: Path, make_clips: Clips, capsys: pytest.CaptureFixture[str]
) -> None:
    (_, clip) = make_clips(1)[0]
    other = tmp_path / "v000.avi"
    other.write_bytes(clip.read_bytes())
    assert main(["extract", str(clip), str(other), "--out", str(out)]) == 2
    assert f"{clip} and {other} have the same id 'v000'" in capsys.readouterr().err
    assert not out.exists()


def test_a_list_of_ids_chooses_among_the_videos(
    out: Path, tmp_path: Path, make_clips: Clips, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = tmp_path / "ids.csv"
    ids.write_text("id\nv002\nv000\nv9\n")
    assert main(["extract", *paths(make_clips(3)), "--out", str(out), "--ids", str(ids)]) == 0
    assert FeatureStore.open(out).ids() == ["v002", "v000"]
    assert "1 of the wanted ids have no video: v9" in capsys.readouterr().err


def test_another_rate_is_refused_for_the_same_store(
    out: Path, make_clips: Clips, capsys: pytest.CaptureFixture[str]
) -> None:
    clips = paths(make_clips(2))
    main(["extract", clips[0], "--out", str(out), "--fps", "24"])
    assert main(["extract", clips[1], "--out", str(out), "--fps", "6"]) == 2
    assert "holds other features (fps 24.0, not 6.0)" in capsys.readouterr().err
    assert FeatureStore.open(out).ids() == ["v000"]


def test_a_bad_video_makes_the_status_2_and_stands_in_failures(
    out: Path, tmp_path: Path, make_clips: Clips, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_text("no video")
    first, second = paths(make_clips(2))
    assert main(["extract", first, str(bad), second, "--out", str(out)]) == 2
    assert FeatureStore.open(out).ids() == ["v000", "v001"]
    (line,) = (out / "failures.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == "bad"
    shown = capsys.readouterr().err
    assert "ongebd: bad: " in shown
    assert f"1 failed: see {out / 'failures.jsonl'}" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fps", "0"], "fps"),
        (["--backbone", "vgg"], "unknown backbone 'vgg'"),
        (["--backbone", "tsn-kinetics"], "needs --weights FILE"),
        (["--weights", "x.pth"], "leave out --weights"),
        (["--device", "cuda"], "leave out --device"),
        (["--jobs", "0"], "jobs must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_line(
    out: Path, make_clips: Clips, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "tsn-kinetics" in options:
        pytest.importorskip("torch")
    assert main(["extract", *paths(make_clips(1)), "--out", str(out), *options]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
    assert not out.exists()


def test_quiet_says_nothing(out: Path, make_clips: Clips, capsys: pytest.CaptureFixture[str]) -> None:
    main(["extract", *paths(make_clips(1)), "--out", str(out), "--quiet"])
    assert capsys.readouterr() == ("", "")


def started(clips: list[tuple[str, Path]], out: Path) -> subprocess.Popen[str]:
    """The command in a process of its own, when it has put three videos into the store."""
    command = [sys.executable, "-m", "ongebd", "extract", *paths(clips), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    index = out / "index.jsonl"
    until(lambda: index.exists() and index.read_bytes().count(b"\n") >= 3)
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_in_the_middle_it_goes_on_to_the_same_store(
    out: Path, tmp_path: Path, make_clips: Clips
) -> None:
    clips = make_clips(25, 6)
    process = started(clips, out)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    done = FeatureStore.open(out).ids()
    assert 3 <= len(done) < 25
    assert main(["extract", *paths(clips), "--out", str(out), "--quiet"]) == 0
    unbroken = tmp_path / "unbroken"
    assert main(["extract", *paths(clips), "--out", str(unbroken), "--quiet"]) == 0
    for name in ("store.json", "index.jsonl", "shard-00000.bin"):
        assert (out / name).read_bytes() == (unbroken / name).read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_hand_it_keeps_what_was_done(out: Path, make_clips: Clips, stop: signal.Signals) -> None:
    process = started(make_clips(40, 8), out)
    process.send_signal(stop)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped early: run the same command again to continue" in shown
    assert "Traceback" not in shown
    store = FeatureStore.open(out)
    assert 3 <= len(store) < 40
    assert all(np.isfinite(store[name].features).all() for name in store)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of POSIX")
def test_on_a_terminal_there_is_a_bar_with_the_time_left(out: Path, make_clips: Clips) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ongebd", "extract", *paths(make_clips(6, 10)), "--out", str(out)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    assert process.wait() == 0
    assert b"/6 videos" in shown
    assert b" left" in shown
    assert b"6 videos, 60 frames" in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # how Linux says that the other end of a pseudo-terminal is closed
        return b""
