"""`--list FILE`: more sources than a command line takes, named in a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ongebd.cli import main
from ongebd.cli.options import checked_sources
from ongebd.features import FeatureStore


def test_listed_sources_stand_behind_those_that_are_named(tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_bytes(b"b.mp4\r\n\nwith blank.mp4\n\xff.mp4\nlast.mp4")
    assert checked_sources("detect", ["a.mp4"], listed) == [
        "a.mp4",
        "b.mp4",
        "with blank.mp4",
        os.fsdecode(b"\xff.mp4"),
        "last.mp4",
    ]
    assert checked_sources("detect", None, listed)[0] == "b.mp4"


def test_a_list_is_worked_on_like_names(
    tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., list[np.ndarray]]
) -> None:
    clips = [make_video(tmp_path / f"{name}.mp4", make_numbered(5), rate=24) for name in "ab"]
    (tmp_path / "list.txt").write_text("".join(f"{clip}\n" for clip in clips))
    store = tmp_path / "store"
    assert main(["extract", "--list", str(tmp_path / "list.txt"), "--out", str(store), "--quiet"]) == 0
    assert FeatureStore.open(store).ids() == ["a", "b"]


@pytest.mark.parametrize("command", ["extract", "detect"])
def test_a_list_that_cannot_be_read_or_names_nothing_is_refused_in_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert main([command, "--list", str(tmp_path / "none.txt"), *out]) == 2
    assert capsys.readouterr().err.endswith("none.txt: can't read: No such file or directory\n")
    (tmp_path / "empty.txt").write_text("\n")
    assert main([command, "--list", str(tmp_path / "empty.txt"), *out]) == 2
    assert capsys.readouterr().err.startswith("ongebd: no source:")
    assert not (tmp_path / "out").exists()
