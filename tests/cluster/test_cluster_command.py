"""`--cluster local` as a process: what it prints, what is left of it, and what a killed worker costs."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ongebd.cli import main
from ongebd.features.store import FeatureStore
from waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"),
]

MARK = "ONGEBD_TEST_MARK"


class Run:
    """The command in a session of its own, and all processes that come of it."""

    def __init__(self, *arguments: str) -> None:
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ongebd", *arguments, "--cluster", "local", "--workers", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, MARK: self.mark},
            start_new_session=True,
        )

    def alive(self) -> dict[int, str]:
        """Process ids and command lines of what is running; one that is dead and not yet buried is not."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    if self.mark.encode() in (folder / "environ").read_bytes():
                        found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
                except OSError:
                    continue
        return found

    def workers(self) -> list[int]:
        return [pid for pid, line in self.alive().items() if line.startswith("ray::work_on")]

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=180)
        return self.process.returncode, out, err


@pytest.fixture
def run() -> Iterator[Callable[..., Run]]:
    begun = []

    def begin(*arguments: str) -> Run:
        begun.append(Run(*arguments))
        return begun[-1]

    yield begin
    for one in begun:
        for pid in one.alive():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def many(
    tmp_path_factory: pytest.TempPathFactory,
    make_video: Callable[..., Path],
    make_scene: Callable[..., np.ndarray],
) -> list[str]:
    """Twelve videos that take a second or so each."""
    folder = tmp_path_factory.mktemp("many")
    scenes = [make_scene(number, 160, 120) for number in range(13)]
    return [
        str(make_video(folder / f"m{n:02d}.mp4", [scenes[n]] * 36 + [scenes[n + 1]] * (24 + n), rate=24))
        for n in range(12)
    ]


def stored(out: Path) -> int:
    index = out / "index.jsonl"
    return index.read_bytes().count(b"\n") if index.exists() else 0


def same_store(out: Path, plain: Path) -> bool:
    names = ("store.json", "index.jsonl", "shard-00000.bin")
    return all((out / name).read_bytes() == (plain / name).read_bytes() for name in names)


def test_it_prints_its_own_lines_only_and_leaves_nothing_running(
    run: Callable[..., Run], clips: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "store"
    command = run("extract", *clips, "--out", str(out))
    status, printed, shown = command.ended()
    until(lambda: not command.alive())
    assert (status, printed) == (2, "")
    said = [line for line in shown.splitlines() if "videos  " not in line]  # a line every ten seconds
    assert said[0] == "ongebd: starting Ray on this machine …"
    assert said[1].startswith("ongebd: clip2: ")
    assert said[2].startswith("5 videos, ")
    assert said[2].endswith(f"1 failed: see {out / 'failures.jsonl'}")
    assert len(said) == 3


def test_a_killed_worker_costs_nothing_but_time(
    run: Callable[..., Run], many: list[str], tmp_path: Path
) -> None:
    out, plain = tmp_path / "store", tmp_path / "plain"
    command = run("extract", *many, "--out", str(out), "--quiet")
    until(lambda: stored(out) >= 3)
    os.kill(command.workers()[0], signal.SIGKILL)
    assert command.ended() == (0, "", "")
    assert main(["extract", *many, "--out", str(plain), "--quiet"]) == 0
    assert same_store(out, plain)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_hand_it_keeps_what_was_done_and_goes_on_later(
    stop: signal.Signals, run: Callable[..., Run], many: list[str], tmp_path: Path
) -> None:
    out, plain = tmp_path / "store", tmp_path / "plain"
    command = run("extract", *many, "--out", str(out))
    until(lambda: stored(out) >= 2)
    if stop is signal.SIGINT:
        os.killpg(command.process.pid, stop)  # as a terminal does
    else:
        command.process.send_signal(stop)
    status, _, shown = command.ended()
    until(lambda: not command.alive())
    assert status == 130
    assert "stopped early: run the same command again to continue" in shown
    assert "Traceback" not in shown
    done = FeatureStore.open(out).ids()
    assert 2 <= len(done) < 12
    assert main(["extract", *many, "--out", str(out), "--quiet"]) == 0
    assert main(["extract", *many, "--out", str(plain), "--quiet"]) == 0
    assert same_store(out, plain)


def test_killed_outright_it_takes_its_ray_with_it(
    run: Callable[..., Run], many: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "found"
    command = run("detect", *many, "--out", str(out))
    until(lambda: any(out.glob("m[0-9]*.jsonl")))
    command.process.kill()
    command.ended()
    # One of Ray's helpers first tries for a while to tell the others, who are gone.
    until(lambda: not command.alive(), 240)
    for path in out.glob("m[0-9]*.jsonl"):
        assert path.read_text().splitlines()[-1].startswith('{"type": "end"')
