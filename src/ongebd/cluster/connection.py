"""Connects to a Ray cluster, or starts one on this machine, without Ray's own messages."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ongebd.errors import ClusterError, ConfigError, MissingExtraError

LOCAL = "local"
_CONNECT_S = 5.0  # for a plain connection to the head; a running machine answers immediately
_ANSWER_S = 45.0  # until a cluster accepts a driver; usually some seconds


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster that this process is connected to; see `connected`.

    Attributes:
        address: As the user wrote it.
        cpus: Its processors.
        gpus: Its GPUs.
        workers: How many workers the user wants; None for as many as fit.
    """

    address: str
    cpus: int
    gpus: int
    workers: int | None = None

    def places(self, *, gpu: bool) -> int:
        """The number of workers, each with a GPU or else a processor; a ClusterError if they do not fit."""
        room, what = (self.gpus, "GPUs") if gpu else (self.cpus, "processors")
        if room < 1:
            advice = "drop --device" if gpu else "do all its machines have --num-cpus 0?"
            raise ClusterError(f"{self.address}: the cluster has no {what}; {advice}")
        if self.workers is not None and self.workers > room:
            raise ClusterError(f"{self.address}: --workers {self.workers} is too many for {room} {what}")
        return self.workers or room


def check_address(address: str, workers: int | None = None) -> None:
    """Refuse what `connected` can't use, without using the network.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigError: The address or the number of workers is wrong.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError.of("ray", "cluster")
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers must be at least 1, not {workers}")
    host, colon, port = address.rpartition(":")
    if address in (LOCAL, "auto") or ("://" not in address and host and colon and port.isdecimal()):
        return
    more = "; run the command on a machine of the cluster" if address.startswith("ray:") else ""
    raise ConfigError(f"--cluster {address}: not an address; use local, auto, or HOST:PORT of the head{more}")


@contextmanager
def connected(address: str, workers: int | None = None, *, verbose: bool = False) -> Iterator[Cluster]:
    """Connect to a cluster, or start one on this machine, for as long as the context lasts.

    If this process has started Ray already, that Ray is used and left running.

    Args:
        address: `local`, `auto` (the cluster that this machine belongs to), or `HOST:PORT` of its head.
        workers: How many workers; None: with `local` one per processor, elsewhere as many as fit.
        verbose: Let Ray print.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigError: The address is wrong.
        ClusterError: Nothing answers there, it is not a Ray cluster, or its machines have another ongebd.
    """
    check_address(address, workers)
    if address not in (LOCAL, "auto"):
        _reach(address)
    _set_environment(local=address == LOCAL)
    with contextlib.nullcontext() if verbose else _silence():
        import ray

        with contextlib.ExitStack() as ending:
            if not ray.is_initialized():
                _start(address, workers, verbose, ending)
            resources = ray.cluster_resources()
            cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
            yield Cluster(address, cpus, gpus, workers)


def _start(address: str, workers: int | None, verbose: bool, ending: contextlib.ExitStack) -> None:
    """Start Ray here, or connect to it; `ending` shuts it down."""
    import ray

    options: dict[str, Any] = {
        "address": address,
        "log_to_driver": verbose,
        "logging_level": "INFO" if verbose else "CRITICAL",
    }
    if address == LOCAL:
        temporary = tempfile.TemporaryDirectory(prefix="ongebd-ray-", ignore_cleanup_errors=True)
        options |= {
            "num_cpus": workers,
            "include_dashboard": False,
            "_temp_dir": ending.enter_context(temporary),
        }
    else:
        probe(address)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options)
    except (OSError, RuntimeError, ValueError) as problem:
        raise ClusterError(f"--cluster {address}: Ray doesn't start: {first_line(problem)}") from problem
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray takes it
    ending.callback(ray.shutdown)


def _reach(address: str) -> None:
    """Check that something answers, before Ray tries for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as problem:
        reason = "no answer" if isinstance(problem, TimeoutError) else str(problem)
        raise ClusterError(
            f"--cluster {address}: can't connect ({reason}); is it the address that `ray start --head`"
            " printed, and is the port open?"
        ) from None


def _set_environment(*, local: bool) -> None:
    """Set what Ray reads at import or start; the user's own settings stay."""
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # its future default; stops a warning
    }
    if local and "RAY_AUTH_MODE" not in os.environ and "ray" not in sys.modules:
        # Ray listens to the whole network and runs what it receives: a token restricts that to this process.
        # (Ray reads it at import only, so it holds for the life of the process.)
        settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in settings.items():
        os.environ.setdefault(name, value)


@contextmanager
def _silence() -> Iterator[None]:
    """Discard what Ray prints to both outputs, also from C++. Our own lines to `sys.stderr` still appear."""
    with contextlib.ExitStack() as undo:
        undo.enter_context(contextlib.redirect_stdout(io.StringIO()))
        with contextlib.suppress(AttributeError, OSError, ValueError):
            if sys.stderr.fileno() == 2:
                copy = os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, buffering=1)
                undo.enter_context(contextlib.redirect_stderr(undo.enter_context(copy)))
        before = os.dup(2)
        undo.callback(os.close, before)
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device
            os.dup2(nowhere.fileno(), 2)
        undo.callback(os.dup2, before, 2)
        yield


# `ray.init` has no deadline and ends the process when it gives up, so another process tries it first.
_PROBE = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
except BaseException as problem:
    sys.exit("ongebd-probe: " + (" ".join(str(problem).split())[:300] or type(problem).__name__))
ray.shutdown()
"""


def probe(address: str) -> None:
    """Connect to a cluster (`auto` or `HOST:PORT`) in another process; a ClusterError if that fails."""
    where = f"--cluster {address}: Ray doesn't connect"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"{where} within {_ANSWER_S:.0f} s; is it the address that `ray start --head` printed? If the"
            " cluster needs a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        ) from None
    if done.returncode:
        _, _, message = done.stderr.rpartition("ongebd-probe: ")
        raise ClusterError(f"{where}: {' '.join(message.split())[-300:] or 'its client crashed'}")


def first_line(problem: BaseException) -> str:
    """Ray's message without the pages that follow."""
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
