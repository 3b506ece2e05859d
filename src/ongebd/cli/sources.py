"""The sources of a command: anything that can be named, also with a dash in front."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ongebd.cli.usage import NO_SOURCE
from ongebd.errors import ConfigError

Sources = Annotated[list[str], Parameter(allow_leading_hyphen=True, negative=())]
"""Files, URLs, cameras, and `-` for standard input; see `check_sources`."""


Listed = Annotated[Path | None, Parameter(name="--list")]
"""A file with one source a line: more than a command line takes; see `with_listed`."""


def with_listed(sources: Sequence[str] | None, listed: Path | None) -> list[str]:
    """The sources named, and those in a file behind them.

    Args:
        sources: As given.
        listed: A file with one source a line, as it would be named here; empty lines count for nothing.

    Raises:
        ConfigError: The file cannot be read.
    """
    named = list(sources or ())
    if listed is None:
        return named
    try:
        lines = listed.read_bytes().split(b"\n")
    except OSError as problem:
        raise ConfigError(f"--list {listed}: cannot be read: {problem.strerror}") from None
    # As bytes, for not every name on a disk is UTF-8.
    return named + [os.fsdecode(line.removesuffix(b"\r")) for line in lines if line.strip()]


def check_sources(sources: Sequence[str], command: str) -> None:
    """Refuse no source, an empty one, standard input twice, and a misspelt option taken for a source.

    Args:
        sources: As given.
        command: The name of the command whose help is to be read.

    Raises:
        ConfigError: It says which.
    """
    if not sources:
        raise ConfigError(f"{NO_SOURCE} (see: ongebd {command} --help)")
    if sources.count("-") > 1:
        raise ConfigError("standard input (-) is named twice, and can be read once; name it once")
    for source in sources:
        if not source:
            raise ConfigError("a source is empty; name a video file, a URL, or - for standard input")
        if source.startswith("-") and source != "-" and not Path(source).exists():
            raise ConfigError(
                f"unknown option {source}, and no file of that name either (see: ongebd {command} --help)"
            )
