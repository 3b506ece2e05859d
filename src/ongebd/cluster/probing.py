"""Whether a Ray cluster answers, and whether its machines have the same ongebd."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Self

from ongebd import __version__
from ongebd.errors import ClusterError

_ANSWER_S = 45.0  # until a cluster has taken a driver; some seconds, where it is well
_NODE_S = 30.0  # until each machine has told its version

_MODE = "RAY_AUTH_MODE"
_SAYS = "ongebd-probe: "
# `ray.init` has no deadline of its own, and ends the process where it gives up: it is tried in another one.
_PROBE = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
except BaseException as problem:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    print("ongebd-probe:", " ".join(lines[:3])[:300] or type(problem).__name__, flush=True)
else:
    ray.shutdown()
    print("ongebd-probe: ok", flush=True)
"""


def probe(address: str) -> None:
    """Connect to a cluster once, in a process that can be ended.

    Args:
        address: `auto` or `HOST:PORT`.

    Raises:
        ClusterError: There is none, or it does not take us.
    """
    with ExitStack() as undo:
        found = undo.enter_context(_Probe(address))
        # Where we are to show a token: would the cluster take us without one? It takes us with one all the
        # same, but then cancels every actor, since this process hears nobody who has no token.
        bare = undo.enter_context(_Probe(address, {_MODE: "disabled"})) if _shows_token() else None
        found.wait()
        if bare is not None and not found.late:
            bare.wait()
    if bare is not None and bare.told == "ok":
        raise ClusterError(
            f"--cluster {address}: asks for no token, and {_MODE}=token is set here, with which its workers"
            f" could not answer; unset {_MODE}, or start the cluster with tokens"
        )
    if found.unwelcome or (found.told != "ok" and bare is not None and bare.unwelcome):
        raise ClusterError(
            f"--cluster {address}: wants a token: set {_MODE}=token here, and have the cluster's own in"
            " ~/.ray/auth_token or RAY_AUTH_TOKEN"
        )
    if found.told is None and found.late:
        raise ClusterError(
            f"--cluster {address}: something is there, but no Ray cluster answered within {_ANSWER_S:.0f} s;"
            " is it the address that `ray start --head` printed?"
        )
    if found.told != "ok":
        what = found.told or "its client ended without a word"
        raise ClusterError(f"--cluster {address}: Ray does not connect: {what}")


def _shows_token() -> bool:
    """Whether Ray is to show a token, and to want one of whoever speaks to this process."""
    return os.environ.get(_MODE, "").lower() == "token"


class _Probe:
    """The other process, and what it said. A context manager.

    Args:
        address: To which it connects.
        changed: What differs in its environment.
    """

    def __init__(self, address: str, changed: Mapping[str, str] | None = None) -> None:
        self.told: str | None = None
        self.unwelcome = False
        self.late = False
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROBE, address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **(changed or {})},
        )
        self._reader = threading.Thread(target=self._read, name="ongebd-probe", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_SAYS):
                self.told = line.removeprefix(_SAYS).strip()
                return
            if "InvalidAuthToken" in line:  # it would go on trying
                self.unwelcome = True
                return

    def wait(self) -> None:
        """Until it has said something, or ended, or the time is over."""
        self._reader.join(timeout=_ANSWER_S)
        self.late = self._reader.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and clear up."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()


def check_versions() -> None:
    """Make sure that every machine of the cluster that can work has this very ongebd.

    Raises:
        ClusterError: It names one that has not. (One that does not answer is left out: workers check it too.)
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, max_retries=0)(_asking())
    asked = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU", 0) > 0:
            where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[ask.options(scheduling_strategy=where).remote()] = node["NodeManagerHostname"]
    answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_NODE_S) if asked else ([], [])
    for reference in answered:
        version: Any = ray.get(reference)
        if version != __version__:
            has = "no ongebd" if version is None else f"ongebd {version}"
            raise ClusterError(
                f"the machine {asked[reference]} has {has}, and here it is {__version__}; install the same on"
                ' all: pip install "ongebd[cluster]==' + __version__ + '"'
            )


def _asking() -> Callable[[], str | None]:
    """The question. A function within a function is sent whole: where there is no ongebd, it runs too."""

    def version() -> str | None:
        try:
            import ongebd
        except ImportError:
            return None
        return ongebd.__version__

    return version


def first_line(problem: BaseException) -> str:
    """What Ray says, without the pages that follow."""
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
