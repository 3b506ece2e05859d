"""The sources of a command: anything that can be named, also with a dash in front."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ongebd.errors import ConfigError

Sources = Annotated[list[str], Parameter(allow_leading_hyphen=True, negative=())]
"""Files, URLs, cameras, and `-` for standard input; see `check_sources`."""


def check_sources(sources: Sequence[str]) -> None:
    """Refuse an empty list, and an option that was misspelt and so taken for a source.

    Raises:
        ConfigError: It says which.
    """
    if not sources:
        raise ConfigError("no source given: name a video file, a URL, or - for standard input")
    for source in sources:
        if source.startswith("-") and source != "-" and not Path(source).exists():
            raise ConfigError(f"unknown option {source}, and no file of that name either; see --help")
