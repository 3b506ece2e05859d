"""Options that several commands share: the sources, `--list` and `--cluster`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ongebd.cli.standard_streams import say
from ongebd.cli.usage import NO_SOURCE
from ongebd.errors import ConfigError, os_errors

if TYPE_CHECKING:
    from ongebd.cluster import Cluster

LOCAL = "local"

Sources = Annotated[list[str], Parameter(allow_leading_hyphen=True, negative=())]
"""Files, URLs, cameras, and `-` for standard input; see `check_sources`."""

Listed = Annotated[Path | None, Parameter(name="--list")]
"""A file with one source per line; see `with_listed`."""


def with_listed(sources: Sequence[str] | None, listed: Path | None) -> list[str]:
    """The sources of the command line, then those of a file; empty lines are skipped."""
    if listed is None:
        return list(sources or ())
    with os_errors(f"--list {listed}: can't read"):
        lines = listed.read_bytes().split(b"\n")
    # As bytes: not every file name is UTF-8.
    return [*(sources or ()), *(os.fsdecode(line.removesuffix(b"\r")) for line in lines if line.strip())]


def check_sources(sources: Sequence[str], command: str) -> None:
    """Refuse no source, an empty one, standard input twice, and a misspelt option taken for a source.

    Args:
        sources: From the user.
        command: The name of the command, whose help the message points to.
    """
    if not sources:
        raise ConfigError(f"{NO_SOURCE} (see: ongebd {command} --help)")
    if sources.count("-") > 1:
        raise ConfigError("standard input (-) is named twice; name it once")
    for source in sources:
        if not source:
            raise ConfigError("a source is empty; name a video file, a URL, or - for standard input")
        if source.startswith("-") and source != "-" and not Path(source).exists():
            raise ConfigError(f"unknown option, or no such file: {source} (see: ongebd {command} --help)")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterOption:
    """Where a command does its work."""

    cluster: str | None = None
    """Run on a Ray cluster: local (this machine), auto (the cluster it belongs to), or HOST:PORT."""

    workers: int | None = None
    """Cluster workers, each with its own model. [one per processor, or per GPU]"""

    verbose: Annotated[bool, Parameter(negative=())] = False
    """Show Ray's own messages."""

    def check(self, sources: Sequence[str], device: str) -> None:
        """Refuse what a cluster can't do, and cluster options without a cluster."""
        if self.cluster is None:
            for name, value in (("--workers", self.workers is not None), ("--verbose", self.verbose)):
                if value:
                    raise ConfigError(f"{name} needs a cluster; add --cluster local, or drop {name}")
            return
        for source in sources:
            if source == "-" or source.startswith("camera:"):
                raise ConfigError(f"{source} is only on this machine; drop --cluster")
        if device.startswith("cuda:"):
            raise ConfigError(f"--device {device}: each cluster worker has its own GPU; use --device cuda")

    @contextmanager
    def connected(self, *, needed: bool, quiet: bool) -> Iterator[Cluster | None]:
        """The cluster, for as long as the context lasts; None (and a line that says so) if not needed."""
        from ongebd.cluster.connection import check_address, connected

        address = self.cluster or LOCAL
        where = "Ray on this machine" if address == LOCAL else f"the cluster at {address}"
        if not needed:
            check_address(address, self.workers)
            if not quiet:
                say(f"ongebd: everything is done already; not using {where}")
            yield None
            return
        if not quiet:
            say(f"ongebd: {'starting' if address == LOCAL else 'connecting to'} {where} …")
        with connected(address, self.workers, verbose=self.verbose) as cluster:
            yield cluster
