"""The paper's printed values: whole, and honest about what cannot be right."""

from __future__ import annotations

import itertools

import pytest

from ongebd.lab.paper import PRINTED

THRESHOLDS = tuple(f"{step / 20:g}" for step in range(1, 11))
SHAPES = {
    "online-kinetics": (5, 11),
    "online-tapos": (5, 11),
    "offline-kinetics": (19, 11),
    "offline-tapos": (16, 11),
    "components": (7, 2),
    "distance": (4, 1),
    "features": (5, 2),
    "outliers": (2, 2),
    "tau-delta": (5, 5),
    "region": (9, 1),
    "length": (4, 2),
    "weighting": (2, 1),
    "zero-shot": (7, 3),
    "fps": (5, 4),
    "cost": (5, 5),
}
COMPARISONS = {key: table for key, table in PRINTED.items() if key.startswith(("online", "offline"))}
AVERAGED = [
    (key, row, ten, average)
    for key, table in COMPARISONS.items()
    for row, (*ten, average) in table.rows.items()
    if None not in (*ten, average)
]
"""The rows that print all ten thresholds and their average."""


def test_every_table_is_there_in_its_shape() -> None:
    assert {key: (len(table.rows), len(table.columns)) for key, table in PRINTED.items()} == SHAPES
    for table in PRINTED.values():
        assert {len(values) for values in table.rows.values()} == {len(table.columns)}
        for doubt in table.doubts:
            assert doubt.row in table.rows
            assert set(doubt.columns) <= set(table.columns)
    assert {table.columns for table in COMPARISONS.values()} == {(*THRESHOLDS, "avg")}
    assert len(AVERAGED) == 5 + 5 + 16 + 15


def test_a_score_lies_between_0_and_1() -> None:
    scores = {*THRESHOLDS, "avg", "precision", "recall", "f1", "tsn-ssv2", "tsn-kinetics", "12", "24"}
    for table in PRINTED.values():
        for row, column in itertools.product(table.rows, scores.intersection(table.columns)):
            value = table.value(row, column)
            assert value is None or 0 < value < 1


def test_an_average_is_the_mean_of_its_ten_values_except_where_a_doubt_says_otherwise() -> None:
    wrong = {
        (key, row, round(sum(ten) / 10, 3))
        for key, row, ten, average in AVERAGED
        if abs(sum(ten) / 10 - average) > 0.0005 + 1e-9
    }
    told = {
        (key, doubt.row, doubt.computed)
        for key, table in COMPARISONS.items()
        for doubt in table.doubts
        if doubt.computed is not None
    }
    assert wrong == told
    assert ("offline-tapos", "ISBA", 0.278) in wrong


def test_f1_never_falls_as_the_tolerance_grows() -> None:
    for _, row, ten, _ in AVERAGED:
        assert ten == sorted(ten), row


def test_equal_rows_and_columns_are_told() -> None:
    for key, table in COMPARISONS.items():
        for first, second in itertools.combinations(table.rows, 2):
            if table.rows[first] == table.rows[second]:
                assert (key, first, second) == ("offline-tapos", "SC-Transformer", "LCVSL")
                assert [doubt for doubt in table.doubts if doubt.row == second and first in doubt.why]
    grid = PRINTED["tau-delta"]
    equal = {row for row in grid.rows if grid.value(row, "12") == grid.value(row, "15")}
    assert equal == {doubt.row for doubt in grid.doubts if "12" in doubt.columns} == {"1.0", "1.5", "2.0"}


def test_frames_per_second_over_all_are_less_than_those_of_both_parts_in_turn() -> None:
    table = PRINTED["fps"]
    computed = {doubt.row: doubt.computed for doubt in table.doubts}
    for name, (features, model, overall, _) in table.rows.items():
        assert computed[name] == round(1 / (1 / features + 1 / model), 1) > overall  # type: ignore[operator]


def test_the_same_value_is_the_same_in_every_table() -> None:
    averages = {name: PRINTED["online-kinetics"].value(name, "avg") for name in PRINTED["fps"].rows}
    for key in ("fps", "cost"):
        assert {name: PRINTED[key].value(name, "avg") for name in averages} == averages
    assert PRINTED["cost"].value("ESTimator", "fps") == PRINTED["fps"].value("ESTimator", "overall")
    ours = {
        PRINTED["components"].value("EST+REST+OBD", "avg"),
        PRINTED["distance"].value("cosine", "avg"),
        PRINTED["outliers"].value("all errors", "avg"),
        PRINTED["tau-delta"].value("1.5", "21"),
        PRINTED["region"].value("9", "avg"),
        PRINTED["length"].value("8", "avg"),
        PRINTED["weighting"].value("with", "avg"),
        PRINTED["offline-kinetics"].value("ESTimator", "avg"),
    }
    assert ours == {averages["ESTimator"]}
    for dataset in ("kinetics", "tapos"):
        online, offline = PRINTED[f"online-{dataset}"], PRINTED[f"offline-{dataset}"]
        assert online.rows["ESTimator"] == offline.rows["ESTimator"]


def test_the_zero_shot_f1_is_that_of_its_precision_and_recall() -> None:
    for precision, recall, f1 in PRINTED["zero-shot"].rows.values():
        if None not in (precision, recall, f1):
            expected = 2 * precision * recall / (precision + recall)  # type: ignore[operator]
            assert f1 == pytest.approx(expected, abs=0.001)


def test_the_settings_of_rows() -> None:
    offline = {
        row
        for key in ("offline-kinetics", "offline-tapos")
        for row, setting in PRINTED[key].settings.items()
        if setting.get("online") is False
    }
    assert len(offline) == 21
    assert PRINTED["offline-kinetics"].settings["PA"]["supervised"] is False
    assert PRINTED["zero-shot"].settings["CoSeg"]["trained_on"] == "INRIA"
    assert PRINTED["distance"].settings["l1"] == {}


def test_a_doubt_is_a_sentence_and_a_missing_column_has_no_value() -> None:
    doubts = PRINTED["offline-tapos"].doubts
    assert str(doubts[1]).startswith("ISBA, 0.4, 0.45, 0.5: .348")
    assert str(doubts[2]) == "LCVSL, 0.05 to avg: every figure is SC-Transformer's."
    assert PRINTED["distance"].value("l1", "absolute 0.5") is None
