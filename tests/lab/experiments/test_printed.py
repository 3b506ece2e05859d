"""The paper's printed values: whole, readable, and honest about what cannot be right."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from ongebd.errors import ConfigError
from ongebd.lab.experiments.printed import PRINTED, PrintedTable
from ongebd.lab.experiments.printed.tables import KEYS

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
COMPARISONS = ("online-kinetics", "online-tapos", "offline-kinetics", "offline-tapos")


def averaged() -> Iterator[tuple[PrintedTable, str, list[float], float]]:
    """The rows that print all ten thresholds and their average."""
    for table in map(PRINTED.__getitem__, COMPARISONS):
        for name, values in table.rows.items():
            *ten, average = [value for value in values if value is not None]
            if len(ten) == 10:
                yield table, name, ten, average


def test_every_table_of_the_paper_is_there_in_its_shape() -> None:
    assert tuple(PRINTED) == KEYS == tuple(SHAPES)
    assert {key: (len(table.rows), len(table.columns)) for key, table in PRINTED.items()} == SHAPES


@pytest.mark.parametrize("key", COMPARISONS)
def test_the_comparisons_have_the_ten_thresholds_and_their_average(key: str) -> None:
    assert PRINTED[key].columns == (*THRESHOLDS, "avg")


def test_a_score_lies_between_0_and_1() -> None:
    scores = {*THRESHOLDS, "avg", "precision", "recall", "f1", "tsn-ssv2", "tsn-kinetics", "12", "24"}
    for table in PRINTED.values():
        for row, column in itertools.product(table.rows, scores.intersection(table.columns)):
            value = table.value(row, column)
            assert value is None or 0 < value < 1


def test_an_average_is_the_mean_of_its_ten_figures_but_where_a_doubt_says_otherwise() -> None:
    wrong = {
        (table.key, name, round(sum(ten) / 10, 3))
        for table, name, ten, average in averaged()
        if abs(sum(ten) / 10 - average) > 0.0005 + 1e-9
    }
    told = {
        (table.key, doubt.row, doubt.computed)
        for table in map(PRINTED.__getitem__, COMPARISONS)
        for doubt in table.doubts
        if doubt.computed is not None
    }
    assert wrong == told
    assert ("offline-tapos", "ISBA", 0.278) in wrong
    assert len(list(averaged())) == 5 + 5 + 16 + 15


def test_f1_never_falls_as_the_tolerance_grows() -> None:
    for _, name, ten, _ in averaged():
        assert ten == sorted(ten), name


def test_rows_that_are_equal_are_told() -> None:
    for table in map(PRINTED.__getitem__, COMPARISONS):
        for first, second in itertools.combinations(table.rows, 2):
            if table.rows[first] == table.rows[second]:
                assert (table.key, first, second) == ("offline-tapos", "SC-Transformer", "LCVSL")
                doubt = table.doubt("LCVSL", "avg")
                assert doubt is not None
                assert "SC-Transformer" in doubt.why


def test_the_queues_of_12_and_15_are_equal_where_a_doubt_says_so() -> None:
    table = PRINTED["tau-delta"]
    equal = {row for row in table.rows if table.value(row, "12") == table.value(row, "15")}
    assert equal == {row for row in table.rows if table.doubt(row, "12")} == {"1.0", "1.5", "2.0"}


def test_the_frames_a_second_over_all_are_less_than_those_of_both_parts_in_turn() -> None:
    table = PRINTED["fps"]
    for name, (features, model, overall, _) in table.rows.items():
        assert features is not None
        assert model is not None
        assert overall is not None
        in_turn = 1 / (1 / features + 1 / model)
        doubt = table.doubt(name, "overall")
        assert doubt is not None
        assert doubt.computed == round(in_turn, 1) > overall


def test_the_same_figure_is_the_same_in_every_table() -> None:
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
        if precision is not None and recall is not None and f1 is not None:
            assert f1 == pytest.approx(2 * precision * recall / (precision + recall), abs=0.001)


def test_there_are_21_names_of_offline_methods() -> None:
    names = {
        name
        for key in ("offline-kinetics", "offline-tapos")
        for name in PRINTED[key].rows
        if PRINTED[key].setting(name).online is False
    }
    assert len(names) == 21
    assert not PRINTED["offline-kinetics"].setting("PA").supervised
    assert PRINTED["zero-shot"].setting("CoSeg").trained_on == "INRIA"
    assert PRINTED["distance"].setting("l1").online is None


def test_each_doubt_is_a_note_too() -> None:
    for table in PRINTED.values():
        assert [str(doubt) for doubt in table.doubts] == list(table.notes[: len(table.doubts)])


def test_an_unknown_row_or_column_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"distance has no row 'l3'; it has l1, l2, kl, cosine"):
        PRINTED["distance"].value("l3", "avg")
    with pytest.raises(ConfigError, match=r"fps has no column 'speed'; it has features, model"):
        PRINTED["fps"].doubt("ESTimator", "speed")
    with pytest.raises(KeyError):
        PRINTED["table-1"]


@pytest.mark.parametrize(
    ("rows", "doubts"),
    [
        ([{"name": "a", "values": [0.1]}], []),
        ([{"name": "a", "values": [0.1, 0.2]}, {"name": "a", "values": [0.1, 0.2]}], []),
        (
            [{"name": "a", "values": [0.1, 0.2]}],
            [{"row": "a", "columns": ["z"], "why": "", "computed": None}],
        ),
    ],
    ids=["short row", "name twice", "doubt of no cell"],
)
def test_a_broken_file_is_noticed(rows: list[object], doubts: list[object]) -> None:
    content = {"caption": "", "source": "", "columns": ["x", "y"], "notes": []}
    with pytest.raises(ValueError, match="broken"):
        PrintedTable.of("broken", content | {"rows": rows, "doubts": doubts})
