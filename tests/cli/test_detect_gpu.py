"""`ongebd detect --device cuda`, with the pool's CPU runtime in place of a GPU's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ongebd.cli import main
from ongebd.output import read_jsonl
from ongebd.pool.runtime import CpuRuntime

Maker = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_gpu_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ongebd.pool.pool.open_runtime", lambda model, _device, _precision, **_options: CpuRuntime(model)
    )


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory, make_video: Maker, make_scene: Maker) -> list[Path]:
    """Four films of other sizes, rates and lengths, the last with a change of size in its middle."""
    folder = tmp_path_factory.mktemp("films")
    paths = []
    for number, (width, rate, count) in enumerate([(320, 24, 40), (240, 30, 25), (432, 12, 15)]):
        shots = [make_scene(10 * number + n, width, 240) for n in range(3)]
        panned = [shot[:, n : n + width - 64] for shot in shots for n in range(count)]
        paths.append(make_video(folder / f"film {number}.mp4", panned, rate=rate))
    parts = [
        make_video(folder / f"part{n}.ts", [make_scene(40 + n, *size)] * 30, rate=24)
        for n, size in enumerate([(320, 240), (240, 320)])
    ]
    paths.append(folder / "two sizes.ts")
    paths[-1].write_bytes(b"".join(part.read_bytes() for part in parts))
    return paths


@pytest.mark.parametrize("model", ["immediate", "window-mean", "predictability"])
def test_files_side_by_side_are_written_as_one_after_the_other(
    films: list[Path], tmp_path: Path, model: str, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_text("no video\n" * 100)
    written, said = [], []
    for name, more in (("plain", []), ("gpu", ["--device", "cuda", "--workers", "2"])):
        out = tmp_path / name
        sources = [str(films[0]), str(bad), *map(str, films[1:])]
        arguments = ["--out", str(out), "--model", model, "--format", "jsonl,html"]
        assert main(["detect", *sources, *arguments, *more]) == 2
        written.append({path.name: path.read_bytes() for path in out.iterdir()})
        said.append([line.partition(" (")[0] for line in capfd.readouterr().err.splitlines()])
    assert written[1] == written[0]
    assert len(written[0]) == 8
    assert said[1] == said[0]
    assert "1 of 5 sources failed: " in said[0][-1]
    if model != "immediate":  # which may be sure of a pan
        assert sum(b'"boundary"' in data for data in written[0].values()) >= 3


def test_lines_come_in_the_order_of_the_files(
    films: list[Path], capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = [*map(str, films), "--model", "window-mean", "-q"]
    assert main(["detect", *arguments]) == 0
    plain = capfd.readouterr()
    assert main(["detect", *arguments, "--device", "cuda"]) == 0
    assert capfd.readouterr() == plain
    assert plain.out.count("\n") >= 6
