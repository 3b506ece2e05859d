"""Short help: the options that most people need; `--help-all` shows the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from cyclopts.help.formatters import DefaultFormatter

from ongebd.errors import OngebdError

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

ALL = "--help-all"

SHORT = {
    "detect": "list out format plot stem model sensitivity fps device cluster quiet",
    "watch": "serve token jsonl exec webhook thumbnails clips model sensitivity retries device quiet",
    "evaluate": "labels predictions compare dataset score out missing ids id-pattern",
    "compose": "out videos minutes seed split boundaries distractors seconds labels groups workers quiet",
    "extract": "list out backbone fps weights device precision ids jobs cluster workers quiet",
    "figure": "labels out method baseline id dataset curve width tolerance start end title",
}
"""The options in a command's `--help`; all of them for other commands."""

_tokens: list[str] = []


def with_help(tokens: Sequence[str]) -> list[str]:
    """The command line as cyclopts takes it: `--help-all` becomes `--help`. Remembers it for `ShortHelp`."""
    end = tokens.index("--") if "--" in tokens else len(tokens)
    _tokens[:] = tokens[:end]
    return ["--help" if token == ALL else token for token in _tokens] + list(tokens[end:])


class ShortHelp(DefaultFormatter):
    """Leaves out options that are not in `SHORT`, and those that the command line's model does not use."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        command = next((token for token in _tokens if token in SHORT), None)
        if command is None or panel.format != "parameter":
            super().__call__(console, options, panel)
            return
        unused, short = _unused(), {f"--{name}" for name in SHORT[command].split()}
        used = [entry for entry in panel.entries if not unused.intersection(entry.names)]
        shown = [entry for entry in used if not entry.names or short.intersection(entry.names)]
        if ALL in _tokens:
            shown = used
        super().__call__(console, options, panel.copy(entries=shown))
        if len(shown) < len(used):
            console.print(f"{len(used) - len(shown)} more options: add {ALL}")


def _unused() -> set[str]:
    """The options of settings that the model of the command line does not use; none if it names no model."""
    from ongebd.detector import StreamConfig, load

    name = None
    for token, following in zip(_tokens, [*_tokens[1:], ""], strict=True):
        if token in ("--model", "-m"):
            name = following
        elif token.startswith("--model="):
            name = token.partition("=")[2]
    if not name:
        return set()
    try:
        used = load(name).settings()
    except OngebdError:  # the command itself reports it
        return set()
    return {f"--{field.name.replace('_', '-')}" for field in fields(StreamConfig) if field.name not in used}
