"""Tables of a report on the terminal, whatever its width."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ongebd.common.tables import Table

UNBOUNDED = 160
"""Width if the output is not a terminal, columns."""

_FRAME = 3  # columns around a cell


def print_tables(tables: Sequence[Table], last: str) -> None:
    """Print tables with their notes, then a last line; nothing in them is read as markup.

    A table that is too wide for the terminal is split between its columns.
    """
    console = Console(width=None if sys.stdout.isatty() else UNBOUNDED)
    with console.capture() as captured:
        for table in tables:
            if len(table.header) == 2 and not any(table.header):
                _print_facts(table, console)
            else:
                for part in _fitting(table, console.width):
                    console.print(part)
            for note in table.notes:
                console.print(Text(note, "dim"))
            console.print()
        console.print(Text(last, "bold"))
    # Not by rich, which ends the program if the reader has gone away.
    text = captured.get()
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _print_facts(table: Table, console: Console) -> None:
    """Pairs of a name and a text: as a table, or as lines if a word is too long for a table."""
    names = max(cell_len(row[0]) for row in table.texts)
    word = max((cell_len(word) for row in table.texts for word in row[1].split()), default=0)
    if names + word + 2 * _FRAME + 1 <= console.width:
        console.print(_rich(table, range(2)))
        return
    console.print(Text(table.title, "italic"))
    for name, text in table.texts:
        console.print(Text.assemble((f"{name}: ", "bold"), text), soft_wrap=True)


def _fitting(table: Table, width: int) -> Iterator[RichTable]:
    """The table, or parts of it that each have the first column and some of the others."""
    cells = list(zip(table.header, *table.texts, strict=True))
    widths = [max(map(cell_len, column)) for column in cells]
    words = max(cell_len(word) for cell in cells[0] for word in [*cell.split(), ""])
    least = min(widths[0], max(words, min(16, width // 3)), max(8, width // 2))
    part: list[int] = []
    for place in range(1, len(cells)):
        needed = least + sum(widths[each] for each in [*part, place]) + _FRAME * (len(part) + 2) + 1
        if part and needed > width:
            yield _rich(table, [0, *part])
            part = []
        part.append(place)
    yield _rich(table, [0, *part])


def _rich(table: Table, columns: Sequence[int]) -> RichTable:
    result = RichTable(
        title=Text(table.title) if columns[1] == 1 else None,
        title_justify="left",
        show_header=any(table.header),
    )
    facts = len(table.header) == 2
    for place in columns:
        first = place == 0
        result.add_column(
            Text(table.header[place]),
            justify="left" if first or facts else "right",
            overflow="fold",
            no_wrap=not first and not facts,
        )
    for row in table.texts:
        result.add_row(*(Text(row[place]) for place in columns))
    return result
