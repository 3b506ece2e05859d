"""The processor's name, the same for all measurements."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from ongebd.lab.benchmark import machine as room
from ongebd.lab.benchmark.machine import machine, processor, short_machine


@pytest.fixture
def info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(room, "_INFO", path)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    return path


def test_the_first_models_name_is_taken(info: Path) -> None:
    info.write_bytes(b"vendor_id\t: \xff\nmodel name\t: Fast: 9000 @ 3 GHz \nmodel name\t: Slow\n")
    assert processor() == "Fast: 9000 @ 3 GHz"


@pytest.mark.parametrize("text", [None, "", "processor\t: 0\nhart\t: 1\n"])
def test_without_a_model_name_it_is_the_kind_of_machine(text: str | None, info: Path) -> None:
    if text is not None:
        info.write_text(text)
    assert processor() == "riscv64"


def test_benchmarks_and_experiments_name_the_same(info: Path) -> None:
    info.write_text("model name\t: Fast 9000\n")
    assert machine()["processor"] == short_machine("cpu")["processor"] == "Fast 9000"
