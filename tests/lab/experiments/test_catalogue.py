"""The catalogue of experiments, and the command that lists and refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ongebd.cli import main
from ongebd.errors import ConfigError
from ongebd.lab.experiments.catalogue import EXPERIMENTS
from ongebd.lab.experiments.definition import Experiment
from ongebd.lab.experiments.scales import SCALES
from ongebd.lab.experiments.scores import SCORES
from ongebd.lab.paper import PRINTED

SPEED = {"features", "model", "overall", "overall, eager", "parameters-millions", "gflops", "vram-mb"}


def test_every_printed_table_is_an_experiment() -> None:
    tables = [experiment.paper for experiment in EXPERIMENTS.values()]
    assert all(table in tables for table in PRINTED.values())


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS.keys())
def test_rows_have_different_names_and_columns_exist(experiment: Experiment) -> None:
    names = [row.name for row in experiment.rows]
    assert len(set(names)) == len(names)
    assert set(experiment.columns) <= {*SCORES, *SPEED, "vram-gb"}


@pytest.mark.parametrize(
    "experiment",
    [each for each in EXPERIMENTS.values() if each.paper],
    ids=lambda experiment: experiment.name,
)
def test_every_row_that_the_paper_prints_stands_beside_ours(experiment: Experiment) -> None:
    assert experiment.paper is not None
    named = {row.printed or row.name for row in experiment.rows}
    assert set(experiment.paper.rows) <= named
    assert all(row.printed in (None, *experiment.paper.rows) for row in experiment.rows)
    assert any(experiment.printed_values(row) for row in experiment.rows)


@pytest.mark.parametrize(
    ("name", "row", "column", "value"),
    [
        ("online-kinetics", "ESTimator", "average", 0.748),
        ("online-kinetics", "ESTimator", "relative 0.05", 0.620),
        ("online-kinetics", "ESTimator", "absolute 0.25", None),
        ("online-kinetics", "ESTimator, τ chosen", "average", None),
        ("tau-delta", "τ = 1.5, Δ = 21", "average", 0.748),
        ("tau-delta", "τ = 1.5, Δ = 21", "absolute 0.5", None),
        ("features-sthv2", "TeSTra-BC", "average", 0.653),
        ("features-kinetics", "TeSTra-BC", "average", 0.654),
        ("features-kinetics", "TeSTra-BC", "absolute 0.5", None),
        ("region", "K = 9", "average", 0.748),
        ("zero-shot", "U-Net", "f1 0.05", 0.299),
        ("delay", "ESTimator", "absolute 0.5", None),
    ],
)
def test_a_printed_value_is_the_cell_of_that_row_and_column(
    name: str, row: str, column: str, value: float | None
) -> None:
    experiment = EXPERIMENTS[name]
    (found,) = [each for each in experiment.rows if each.name == row]
    assert experiment.printed_values(found).get(column) == value


def test_the_grid_is_twenty_five_decisions_of_one_training() -> None:
    rows = EXPERIMENTS["tau-delta"].rows
    assert len(rows) == 25
    assert all(row.training == {} and row.method == "estimator" for row in rows)
    assert [(row.tau, row.deciding) for row in rows if row.at == ("1.5", "21")] == [(1.5, {"delta": 21})]


def test_scales_rise() -> None:
    assert [scale.videos for scale in SCALES.values()] == sorted(scale.videos for scale in SCALES.values())


def test_names_are_chosen_once_each_and_a_wrong_one_is_refused_with_a_near_one() -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    from ongebd.lab.experiments.session import chosen

    with pytest.raises(ConfigError, match="did you mean components"):
        chosen(["component"])
    assert [e.name for e in chosen(["region", "components", "region"])] == ["region", "components"]


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
        (["all", "--clips", ".", "--row", "A=clip.mp4"], "clip.mp4: predictions are a folder or end in"),
        (["all", "--clips", ".", "--row", "DyBDet=gone.pkl"], "no such file or folder; name predictions"),
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
