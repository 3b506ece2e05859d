"""Tables as Markdown and LaTeX."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from ongebd.common.tables import Cell, Table, latex, markdown, markdown_section

TABLE = Table(
    "a_b & c",
    ("", "F1"),
    [
        ("ours", Cell("0.7", bold=True, small="0.6–0.8")),
        ("printed", Cell("0.6", italic=True)),
        ("missing", Cell("–", italic=True)),
    ],
    ["n = 3*2"],
    rules=[2],
)


def test_markdown_has_header_rows_and_emphasis():
    assert markdown(TABLE).splitlines() == [
        "|  | F1 |",
        "| --- | --- |",
        "| ours | **0.7** <small>(0.6–0.8)</small> |",
        "| printed | *0.6* |",
        "| missing | – |",
    ]


def test_a_section_has_heading_and_notes():
    assert markdown_section(TABLE).startswith("## a_b \\& c\n\n| ")
    assert markdown_section(TABLE).endswith("|\n\nn = 3\\*2")


@pytest.mark.parametrize("text", ["a|b", "*x* _y_ `z`", "<b>&amp;", "[a](b) ~c~ $d$", "back\\slash"])
def test_markdown_shows_exactly_the_text(text):
    page = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown(Table("", (text,), [])))
    shown = next(token for token in page if token.type == "inline")
    assert all(child.type in ("text", "text_special") for child in shown.children)
    assert "".join(child.content for child in shown.children) == text


def test_latex_draws_lines_and_escapes():
    lines = latex(TABLE).splitlines()
    assert lines[:4] == ["% a_b & c", r"\begin{tabular}{lc}", r"\toprule", r" & F1 \\"]
    assert lines[4:6] == [r"\midrule", r"ours & \textbf{0.7} {\scriptsize(0.6--0.8)} \\"]
    assert lines[7:] == [r"\midrule", r"missing & \textit{--} \\", r"\bottomrule", r"\end{tabular}"]
    assert r"5 \% \_ $\pm$" in latex(Table("", ("5 % _ ±",), []))


def test_unprintable_characters_are_escaped():
    assert Table("a\nb", ("\x1b",), [("\udcff", Cell("\n"))]).texts == [["\\udcff", "\\n"]]
