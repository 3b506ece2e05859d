"""`ongebd experiment`: its list, its refusals, and one table from clips to the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ongebd.cli import main


def test_the_list_names_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "list"]) == 0
    said = capsys.readouterr().out
    assert "tau-delta" in said
    assert "(not in the paper)" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--clips", "."], "no experiment: name some"),
        (["run", "component", "--clips", "."], "did you mean components?"),
        (["all"], "use either --data with the paper's data sets or --clips"),
        (["all", "--data", ".", "--clips", "."], "use either --data with the paper's data sets or --clips"),
        (["all", "--clips", ".", "--scale", "huge"], "scale must be one of tiny, small, medium, full"),
        (["all", "--clips", ".", "--row", "DyBDet"], "--row DyBDet: use NAME=FILE"),
        (["all", "--clips", ".", "--row", "DyBDet=gone.pkl"], "no such file; name a file of predictions"),
        (["all", "--clips", ".", "--seeds", "0"], "seeds must be 1 or more"),
        (["all", "--clips", ".", "--ids", "ids.csv"], "--ids lists videos of the paper's data sets"),
        (["all", "--data", "."], "none of kinetics-gebd, tapos, inria is in it"),
        (["all", "--clips", "nowhere"], "nowhere: no such file or folder"),
        (["all", "--clips", ".", "--device", "cuda:99"], "device cuda:99: "),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clip.mp4").write_bytes(b"")
    assert main(["experiment", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "experiments").exists()


@pytest.mark.slow
def test_from_clips_to_a_report_and_the_second_time_from_what_is_kept(
    tmp_path: Path, make_video: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    clips = tmp_path / "clips"
    clips.mkdir()
    for number in range(8):
        rng = np.random.default_rng(number)
        scene = rng.integers(0, 256, (72, 128, 3), dtype=np.uint8)
        frames = [np.roll(scene, 2 * step, axis=1) for step in range(60)]
        make_video(clips / f"scene{number}.mp4", frames, rate=24)
    command = ["experiment", "run", "online-kinetics", "components", "--scale", "tiny", "--device", "cpu"]
    command += ["--clips", str(clips), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(command) == 0
    first = (tmp_path / "out" / "report.md").read_text()
    assert (tmp_path / "out" / "figures" / "online-kinetics-f1.svg").exists()
    assert "data:image/svg+xml" in (tmp_path / "out" / "report.html").read_text()
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("facts.json")}
    assert main(command) == 0
    assert (tmp_path / "out" / "report.md").read_text() == first
    assert made == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("facts.json")} != {}
