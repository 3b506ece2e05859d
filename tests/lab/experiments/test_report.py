"""The report of hand-made results: what is printed stands apart, tables fit, and nothing old is left over."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `train` is not installed")

from ongebd.data.label_set import VideoLabels
from ongebd.features.store import FeatureStore
from ongebd.lab.experiments import pictures
from ongebd.lab.experiments.catalogue import EXPERIMENTS
from ongebd.lab.experiments.report import Report
from ongebd.lab.experiments.runner import RowResult, TableResult
from ongebd.lab.experiments.scales import scale_of
from ongebd.lab.experiments.scores import SCORES, Limit, Measured
from ongebd.lab.experiments.tables import tables_of


def made(name: str, unlike: tuple[str, ...] = ()) -> TableResult:
    """A table whose every score is .5, with all that the paper prints."""
    experiment = EXPERIMENTS[name]
    cells = {column: Measured(0.5) for column in (*SCORES, *experiment.columns)}
    rows = [
        RowResult(row, {} if row.kind == "printed" else cells, experiment.printed_values(row))
        for row in experiment.rows
    ]
    return TableResult(
        experiment, "data", tuple(rows), (Limit("a clock", dict.fromkeys(cells, 0.4), "says"),), unlike=unlike
    )


def write(out: Path, *tables: TableResult, figures: dict[str, str] | None = None) -> str:
    report = Report(tables, scale_of("tiny"), "Made.", "cpu", "ongebd experiment run", figures or {})
    report.write(out)
    return (out / "report.md").read_text()


def test_measured_rows_and_printed_rows_are_tables_of_their_own() -> None:
    measured, printed = tables_of(made("offline-kinetics"))
    names = [line[0] for line in measured.texts]
    order = [names.index(name) for name in ("offline", "BasicGEBD", "online", "ESTimator")]
    assert order == sorted(order)
    assert measured.rules == [names.index("online"), names.index("a clock")]
    only = next(row.name for row in EXPERIMENTS["offline-kinetics"].rows if row.kind == "printed")
    assert "PC" in names
    assert only not in names
    assert names[-1] == "a clock"
    assert printed.header[:3] == ("printed in the paper's Tables 2 and 11", "Avg F1", "difference")
    theirs = {line[0]: line[1:3] for line in printed.texts}
    assert theirs["PC"] == [".817", "−.317"]
    assert theirs[only][1] == "–"


def test_what_is_only_printed_or_empty_has_its_reason(tmp_path: Path) -> None:
    gone = replace(made("features-sthv2"), missing="no such weights", limits=())
    gone = replace(gone, rows=tuple(replace(row, cells={}) for row in gone.rows))
    length = made("length")
    rows = tuple(replace(row, cells={"average": Measured(0.5)}) for row in length.rows)
    text = write(tmp_path, made("offline-tapos"), gone, replace(length, rows=rows))
    assert "- ISBA is only printed: it learns from ordered lists of action classes" in text
    assert "*Not run: no such weights.*\n\n| printed in the paper's Table 6 |" in text
    assert "No memory of training, GB: it is measured on a GPU only." in text


def test_a_table_with_few_columns_has_the_difference_of_each() -> None:
    _, printed = tables_of(made("components"))
    assert printed.header[1:] == ("Avg F1", "difference", "Rel.Dis 0.05", "difference")
    assert printed.texts[0] == ["baseline", ".607", "−.107", ".483", "+.017"]
    grid = tables_of(made("tau-delta"))
    assert [table.title.rpartition(": ")[2] for table in grid[:3]] == [
        "Avg F1",
        "Avg F1, printed in the paper's Table 8",
        "Avg F1, difference",
    ]
    assert grid[2].texts[0][1] == "−.205"


def test_what_cannot_be_compared_has_no_difference(tmp_path: Path) -> None:
    tables = [made(name, ("composites",)) for name in ("components", "tau-delta", "online-tapos")]
    text = write(tmp_path, *tables)
    assert "difference" not in text
    values = json.loads((tmp_path / "results.json").read_text())["tables"]
    assert all(row["difference"] == {} for table in values for row in table["rows"])


def test_titles_have_the_papers_numbers_and_figures_stand_with_their_table(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    for ending in ("svg", "pdf"):
        (tmp_path / f"figures/online-tapos-f1.{ending}").write_text("<svg/>")
    figures = {"figures/online-tapos-f1.svg": "The figure."}
    text = write(tmp_path, made("online-kinetics"), made("online-tapos"), made("delay"), figures=figures)
    places = [
        text.index(part)
        for part in (
            "## Table 1 of the paper: Online methods, first set",
            "(The paper's table: Online methods on Kinetics-GEBD",
            "## Table 1 of the paper: Online methods, second set",
            "![The figure.](figures/online-tapos-f1.svg)",
            "(not in the paper)",
        )
    ]
    assert places == sorted(places)
    latex = (tmp_path / "tables/online-tapos.tex").read_text()
    assert latex.startswith("% Table 1 of the paper: Online methods, second set")
    assert latex.count(r"\resizebox{\linewidth}{!}{%") == 2
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2
    page = (tmp_path / "report.html").read_text()
    assert page.count('<div class="wide"><table>') == page.count("</table></div>") == 5


def test_tables_of_an_earlier_run_go_and_what_a_user_made_or_changed_stays(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    for ending in ("svg", "pdf"):
        (tmp_path / f"figures/online-tapos-f1.{ending}").write_text("<svg/>")
    first = [made(name) for name in ("online-tapos", "components", "delay")]
    write(tmp_path, *first, figures={"figures/online-tapos-f1.svg": "F"})
    (tmp_path / "tables/mine.tex").write_text("mine")
    changed = tmp_path / "tables/components.tex"
    changed.write_text(changed.read_text() + "% edited")
    write(tmp_path, made("weighting"), replace(made("delay"), missing="not there"))
    assert sorted(file.name for file in (tmp_path / "tables").iterdir()) == [
        "components.tex",
        "mine.tex",
        "weighting.tex",
    ]
    assert not list((tmp_path / "figures").iterdir())
    (tmp_path / "results.json").write_text('{"files": {"../../tables/mine.tex": 1, "tables/mine.tex": "x"}}')
    write(tmp_path, made("weighting"))
    assert (tmp_path / "tables/mine.tex").exists()


def test_the_four_test_videos_with_most_boundaries_are_drawn_by_both_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {f"v{n}": VideoLabels(f"v{n}", 9.0, (np.arange(n % 7, dtype=np.float64),)) for n in range(9)}
    files = {name: Path(name) for name in labels if name != "v6"}
    with FeatureStore.create(tmp_path / "store", backbone="made", dim=3, fps=24) as store:
        for name in labels:
            store.add(name, np.random.default_rng(0).random((5, 3)), np.arange(5), np.zeros(5), 9.0, name)
    part = SimpleNamespace(files=files, labels=SimpleNamespace(videos=labels), store=store.path)
    features = SimpleNamespace(test=([store[name] for name in labels if name != "v5"], []))
    models = {"estimator": "window-mean", "testra": "persistence"}
    runner: Any = SimpleNamespace(
        test_part=lambda _: part,
        model=lambda _, row: models[row.method],
        frame_scores=lambda *_: features,
    )
    monkeypatch.setattr(pictures, "qualitative", lambda scenes: scenes)
    scenes: Any = pictures.videos(runner, made("online-tapos"))
    assert [str(scene.video) for scene in scenes] == ["v4", "v3", "v2", "v1"]
    assert [trace.name for trace in scenes[0].traces] == ["ESTimator", "TeSTra-BC"]
    assert [len(trace.score) for trace in scenes[0].traces] == [5, 5]
    assert scenes[0].labels is labels["v4"]
