"""`--cluster`: the same work on a Ray cluster, for the commands that can have it done there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ongebd.cli.standard_streams import say
from ongebd.errors import ConfigError

if TYPE_CHECKING:
    from ongebd.cluster import Cluster

LOCAL = "local"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterOption:
    """Where a command has its work done."""

    cluster: str | None = None
    """Have it done on a Ray cluster: local (this machine), auto (the one it is part of), or HOST:PORT."""

    workers: int | None = None
    """Workers, each with a model of its own. By default one for each processor, or for each GPU."""

    verbose: Annotated[bool, Parameter(negative=())] = False
    """With --cluster: let Ray print, too."""

    def check(self, sources: Sequence[str], device: str | None) -> None:
        """Refuse what no cluster can do, and what is said of a cluster where there is none.

        Raises:
            ConfigError: It says which.
        """
        if self.cluster is None:
            for name, given in (("--workers", self.workers is not None), ("--verbose", self.verbose)):
                if given:
                    raise ConfigError(f"{name} is for a cluster: give --cluster local, or leave it out")
            return
        for source in sources:
            if source == "-" or source.startswith("camera:"):
                raise ConfigError(f"{source} is on this machine alone; leave out --cluster")
        if device not in (None, "cpu", "cuda"):
            raise ConfigError(
                f"--device {device}: on a cluster each worker gets a GPU of its own; give --device cuda"
            )

    @contextmanager
    def connected(self, *, needed: bool, quiet: bool) -> Iterator[Cluster | None]:
        """The cluster, for as long as the context lasts; None where it is not needed, which is told.

        Raises:
            MissingExtraError: Ray is not installed.
            ConfigError: The address is none.
            ClusterError: It cannot be reached.
        """
        from ongebd.cluster.connection import check_address, connected

        if not needed:
            check_address(self.cluster or LOCAL, self.workers)
            if not quiet:
                say(f"ongebd: nothing is left to do: {_not_doing(self.cluster)}")
            yield None
            return
        if not quiet:
            say(f"ongebd: {_doing(self.cluster)} …")
        with connected(self.cluster or LOCAL, self.workers, verbose=self.verbose) as cluster:
            yield cluster


def _doing(address: str | None) -> str:
    return "starting Ray on this machine" if address == LOCAL else f"connecting to the cluster at {address}"


def _not_doing(address: str | None) -> str:
    return "Ray is not started" if address == LOCAL else f"the cluster at {address} is not asked"
