"""Every printed value against the paper's LaTeX, where that is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ongebd.lab.paper import PRINTED

Row = list[str]

# Of each table: its label, how many rows of headers it has, and in which cells of a row the values stand.
PLACES: dict[str, tuple[str, int, slice]] = {
    "online-kinetics": ("tab:online_only", 1, slice(-11, None)),
    "online-tapos": ("tab:online_only", 1, slice(-11, None)),
    "offline-kinetics": ("tab:supp_offline_online_comp", 1, slice(-11, None)),
    "offline-tapos": ("tab:supp_offline_online_comp", 1, slice(-11, None)),
    "components": ("tab:ablation", 1, slice(4, None)),
    "distance": ("tab:loss_ablation", 1, slice(1, None)),
    "features": ("tab:vidfeat", 1, slice(2, None, 2)),
    "tau-delta": ("tab:obd_ablation", 2, slice(1, None)),
    "length": ("tab:length_comparison", 1, slice(1, None)),
    "weighting": ("tab:batchloss", 1, slice(1, None)),
    "zero-shot": ("tab:inria_dataset", 1, slice(3, None)),
    "cost": ("tab:comp_cost", 1, slice(1, None)),
}


@pytest.fixture(scope="module")
def paper(shared: Path) -> str:
    file = shared / "paper/online-gebd.tex"
    if not file.is_file():
        pytest.skip(f"the paper is not at {file}")
    return file.read_text(encoding="utf-8")


def test_tables_have_the_papers_numbers(paper: str) -> None:
    labels = re.findall(r"\\label\{(tab:[^}]*)\}", paper)
    for table in PRINTED.values():
        assert str(labels.index(table.source) + 1) in table.named.split()


def latex_rows(paper: str, label: str) -> list[Row]:
    """The cells of a table's rows, the headers among them, as LaTeX."""
    tables = re.findall(r"\\begin\{table(?:\*?)\}(.*?)\\end\{table", paper, re.DOTALL)
    (table,) = (table for table in tables if f"\\label{{{label}}}" in table)
    body = re.search(r"\\begin\{tabularx?\}(.*)\\end\{tabularx?\}", table, re.DOTALL)
    assert body is not None
    text = re.sub(r"\\shortstack\{.*?\}\}", "}", body[1], flags=re.DOTALL)  # its line break ends no row
    text = re.sub(r"\\(?:cmidrule(?:\(lr\))?\{[\d-]+\}|(?:top|mid|bottom)rule|hline|hdashline)", "", text)
    rows = [re.split(r"(?<!\\)&", line) for line in text.split(r"\\")]
    return [row for row in rows if len(row) > 1]


def number(cell: str) -> float | None:
    """The value in a cell; None for a dash. The dagger of a third place is none."""
    plain = re.sub(r"\\(?:textsuperscript|textcolor\{\w+\})\{.*?\}|\\multirow\{[\d.]+\}", "", cell)
    found = re.findall(r"\d+(?:\.\d+)?", plain)
    assert len(found) == 1 or plain.strip() == "-", cell
    return float(found[0]) if found else None


def of_dataset(rows: list[Row], key: str) -> list[Row]:
    """Where two data sets share a table, the rows of the one that a key names."""
    start = next((place for place, row in enumerate(rows) if "TAPOS}" in row[0]), len(rows))
    return rows[start:] if key.endswith("tapos") else rows[:start]


def in_words(cell: str) -> str:
    """A method's name in a cell of LaTeX as our tables spell it."""
    plain = re.sub(r"~?\\cite\{.*?\}|\\footnotemark\[\d\]| \[\d+\]", "", cell).strip()
    plain = re.sub(r"\s*[-–]\s*BC$", "-BC", plain.replace("Oad-TR", "OadTR"))
    return "ESTimator" if "Ours" in plain else plain


@pytest.mark.parametrize("key", PLACES)
def test_a_table_holds_what_the_paper_prints(key: str, paper: str) -> None:
    label, headers, places = PLACES[key]
    table = PRINTED[key]
    rows = of_dataset(latex_rows(paper, label)[headers:], key)
    assert table.source == label
    assert [tuple(number(cell) for cell in row[places]) for row in rows] == list(table.rows.values())
    if key.startswith(("online", "offline")):
        assert [in_words(row[-12]) for row in rows] == list(table.rows)
    elif key in {"features", "cost", "zero-shot"}:
        assert [in_words(row[1 if key == "zero-shot" else 0]) for row in rows] == list(table.rows)
    elif key in {"tau-delta", "length"}:
        assert [row[0].split()[-1] for row in rows] == list(table.rows)


def test_the_components_of_a_row_are_those_that_are_ticked(paper: str) -> None:
    for row, name in zip(latex_rows(paper, "tab:ablation")[1:], PRINTED["components"].rows, strict=True):
        ticked = [
            part for part, cell in zip(("EST", "REST", "OBD"), row[1:4], strict=True) if "cmark" in cell
        ]
        assert "+".join(ticked) == (name if name != "baseline" else "")


def test_the_tables_of_another_layout_hold_what_the_paper_prints(paper: str) -> None:
    header, values = latex_rows(paper, "tab:windowsize_ablation")
    region = PRINTED["region"].rows
    assert [cell.split()[-1] for cell in header[1:]] == list(region)
    assert [(number(cell),) for cell in values[1:]] == list(region.values())

    inliers, full = (row[1] for row in latex_rows(paper, "tab:obd_outlier_ablation")[1:])
    change = re.search(r"-[\d.]+", inliers)
    assert change is not None
    assert list(PRINTED["outliers"].rows.values()) == [
        (number(inliers), float(change[0])),
        (number(full), None),
    ]

    rows = latex_rows(paper, "tab:fps")[1:]
    features = number(rows[0][1].removeprefix(" \\multirow{4}{*}"))
    printed = [(features, *(number(cell) for cell in row[2:])) for row in rows]
    assert printed == list(PRINTED["fps"].rows.values())


@pytest.mark.parametrize("key", ["offline-kinetics", "offline-tapos"])
def test_the_main_texts_rows_are_the_supplements(key: str, paper: str) -> None:
    table = PRINTED[key]
    rows = of_dataset(latex_rows(paper, "tab:offline_online_comp")[1:], key)
    assert len(rows) == {"offline-kinetics": 10, "offline-tapos": 9}[key]
    for row in rows:
        assert tuple(number(cell) for cell in row[-11:]) == table.rows[in_words(row[-12])]


@pytest.mark.parametrize("key", ["offline-kinetics", "offline-tapos"])
def test_bold_type_that_does_not_mark_the_best_is_told(key: str, paper: str) -> None:
    table = PRINTED[key]
    bold = {
        (in_words(row[-12]), table.columns[place])
        for row in of_dataset(latex_rows(paper, table.source)[1:], key)
        for place, cell in enumerate(row[-11:])
        if r"\bf" in cell
    }
    assert len(bold) == 11
    for row, column in bold:
        value = table.value(row, column)
        others = [table.value(other, column) for other in table.rows if other != row]
        beaten = any(other is not None and value is not None and other >= value for other in others)
        told = [doubt for doubt in table.doubts if doubt.row == row and column in doubt.columns]
        assert beaten == any("bold" in doubt.why for doubt in told), (row, column)
