"""The list of failed videos keeps every line that was written whole, whatever was cut off behind it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from ongebd.features.records import Failure, Failures

FIRST, LOST, NEXT, LAST = (Failure(name, f"{name}.mp4", "broken") for name in ("a", "lost", "b", "c"))


def line(failure: Failure) -> bytes:
    return json.dumps(asdict(failure)).encode() + b"\n"


@pytest.mark.parametrize("kept", range(len(line(LOST))))
def test_a_line_cut_off_anywhere_swallows_no_other(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "failures.jsonl"
    path.write_bytes(line(FIRST) + line(LOST)[:kept])
    failures = Failures(tmp_path)
    assert failures.read() == [FIRST]
    failures.add(NEXT)
    failures.add(LAST)
    assert failures.read() == [FIRST, NEXT, LAST]
    assert path.read_bytes() == line(FIRST) + line(NEXT) + line(LAST)


def test_lines_that_are_no_failure_are_passed_over(tmp_path: Path) -> None:
    odd = (b"[" * 200_000, b"7", b"{}", b'{"id": "a"}', b"\xff", b"")
    (tmp_path / "failures.jsonl").write_bytes(b"\n".join((*odd, line(FIRST))))
    assert Failures(tmp_path).read() == [FIRST]
