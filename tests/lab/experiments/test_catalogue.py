"""The definitions: every table of the paper is there, and each cell that it prints has its place."""

from __future__ import annotations

import pytest

from ongebd.errors import ConfigError
from ongebd.lab.experiments.catalogue import EXPERIMENTS
from ongebd.lab.experiments.columns import SCORES
from ongebd.lab.experiments.printed import PRINTED
from ongebd.lab.experiments.scales import SCALES
from ongebd.lab.experiments.session import chosen
from ongebd.lab.experiments.table import Experiment

SPEED = {"features", "model", "overall", "overall, eager", "parameters-millions", "gflops"}
MEMORY = {"vram-gb", "vram-mb"}


def test_every_printed_table_is_an_experiment() -> None:
    assert {e.printed for e in EXPERIMENTS.values()} - {None} == set(PRINTED)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS.keys())
def test_rows_have_names_of_their_own_and_columns_that_exist(experiment: Experiment) -> None:
    names = [row.name for row in experiment.rows]
    assert len(set(names)) == len(names)
    assert set(experiment.columns) <= {*SCORES, *SPEED, *MEMORY}


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS.keys())
def test_every_row_that_the_paper_prints_stands_beside_ours(experiment: Experiment) -> None:
    if experiment.printed is None:
        return
    assert {row.printed for row in experiment.rows} - {None} == set(PRINTED[experiment.printed].rows)
    printed = [
        experiment.printed_value(row, column) for row in experiment.rows for column in experiment.columns
    ]
    assert any(value is not None for value in printed)


def test_a_printed_value_is_the_cell_of_that_row_and_column() -> None:
    online = EXPERIMENTS["online-kinetics"]
    ours = next(row for row in online.rows if row.name == "ESTimator")
    assert online.printed_value(ours, "average") == 0.748
    assert online.printed_value(ours, "relative 0.05") == 0.620
    assert online.printed_value(ours, "absolute 0.25") is None
    grid = EXPERIMENTS["tau-delta"]
    cell = next(row for row in grid.rows if row.at == ("1.5", "21"))
    assert (cell.tau, cell.deciding) == (1.5, {"delta": 21})
    assert grid.printed_value(cell, "average") == 0.748
    assert grid.printed_value(cell, "absolute 0.5") is None


@pytest.mark.parametrize(
    ("name", "backbone", "printed"),
    [("features-sthv2", "tsn-sthv2", 0.653), ("features-kinetics", "tsn-kinetics", 0.654)],
)
def test_each_half_of_the_table_of_features_has_its_backbones_values(
    name: str, backbone: str, printed: float
) -> None:
    half = EXPERIMENTS[name]
    assert (half.data, half.trained_on) == (backbone, backbone)
    testra = next(row for row in half.rows if row.name == "TeSTra-BC")
    assert half.printed_value(testra, "average") == printed
    assert half.printed_value(testra, "absolute 0.5") is None


def test_the_grid_is_twenty_five_decisions_of_one_training() -> None:
    rows = EXPERIMENTS["tau-delta"].rows
    assert len(rows) == 25
    assert all(row.training == {} and row.method == "estimator" for row in rows)


def test_scales_rise() -> None:
    assert [scale.videos for scale in SCALES.values()] == sorted(scale.videos for scale in SCALES.values())


def test_a_wrong_name_is_told_with_a_near_one() -> None:
    with pytest.raises(ConfigError, match="did you mean components"):
        chosen(["component"])
    assert [e.name for e in chosen(["region", "components", "region"])] == ["region", "components"]
