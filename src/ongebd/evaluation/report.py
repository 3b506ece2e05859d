"""Writing a report: `report.md`, `report.json` and the pictures, all of them or none."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from ongebd.errors import ConfigError
from ongebd.evaluation.evaluation import Evaluation
from ongebd.evaluation.pictures import draw_pictures
from ongebd.evaluation.report_json import to_json
from ongebd.evaluation.report_tables import Table, headline, report_tables


def write_report(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Write the report's files into a folder, which is made where it is not there.

    The files are made whole beside it first, so that an error leaves no half-written report.

    Args:
        evaluation: What to report.
        folder: Where to. Files of an older report there are overwritten.

    Returns:
        The files, `report.md` first.

    Raises:
        ConfigError: Where the folder cannot be made or written to.
    """
    pictures = draw_pictures(evaluation)
    contents = {
        "report.md": to_markdown(evaluation, list(pictures)).encode(),
        "report.json": (
            json.dumps(to_json(evaluation), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        ).encode(),
        **pictures,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".report-", dir=folder))
        try:
            for name, content in contents.items():
                (staging / name).write_bytes(content)
            for name in contents:
                (staging / name).replace(folder / name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as problem:
        raise ConfigError(
            f"{folder}: the report cannot be written there ({problem.strerror}); name another --out"
        ) from None
    return [folder / name for name in contents]


def to_markdown(evaluation: Evaluation, pictures: list[str]) -> str:
    """The report as Markdown, with links to its pictures."""
    parts = ["# Evaluation of event boundaries", "", headline(evaluation) + ".", ""]
    for table in report_tables(evaluation):
        parts += _table(table)
    for name in pictures:
        parts += [f"![{Path(name).stem.replace('_', ' ')}]({name})", ""]
    return "\n".join(parts)


def _table(table: Table) -> list[str]:
    lines = [f"## {table.title}", "", _row(table.header), _row(["---"] * len(table.header))]
    lines += [_row(row) for row in table.rows]
    lines.append("")
    for note in table.notes:
        lines += [note, ""]
    return lines


def _row(cells: object) -> str:
    assert isinstance(cells, list | tuple)
    return "| " + " | ".join(str(cell).strip().replace("|", "\\|") for cell in cells) + " |"
