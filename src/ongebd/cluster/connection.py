"""Getting hold of a Ray cluster, or beginning one on this machine, without Ray's own words for the user."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ongebd.cluster.probing import check_versions, first_line, probe
from ongebd.errors import ClusterError, ConfigError, MissingExtraError

LOCAL = "local"
_CONNECT_S = 5.0  # for a plain connection to the head; a machine that is up answers at once


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster that this process is connected to; see `connected`.

    Attributes:
        address: As the user gave it.
        cpus: Its processors.
        gpus: Its GPUs.
        workers: How many workers were asked for; None: as many as fit.
        verbose: Whether Ray may print.
    """

    address: str
    cpus: int
    gpus: int
    workers: int | None = None
    verbose: bool = False

    @property
    def cpus_per_gpu(self) -> int:
        """Processors that decode for each GPU, at least 1."""
        return max(1, self.cpus // max(1, self.gpus))

    def places(self, *, gpu: bool) -> int:
        """How many workers there are to be.

        Args:
            gpu: Whether each worker takes a GPU; otherwise a processor.

        Raises:
            ClusterError: So many do not fit, or none does.
        """
        room, what = (self.gpus, "GPUs") if gpu else (self.cpus, "processors")
        if room < 1:
            mend = "leave out --device" if gpu else "is --num-cpus 0 on all its machines?"
            raise ClusterError(f"{self.address}: the cluster has no {what}; {mend}")
        if self.workers is not None and self.workers > room:
            raise ClusterError(
                f"{self.address}: --workers {self.workers} is more than the {room} that its {what} allow"
            )
        return self.workers or room

    def here(self) -> Any:
        """Ray's name for a place on the machine of this process."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


@contextmanager
def connected(address: str, workers: int | None = None, *, verbose: bool = False) -> Iterator[Cluster]:
    """Connect to a cluster, or begin one on this machine, for as long as the context lasts.

    A Ray that this process has begun already is used as it is, and left running.

    Args:
        address: `local`, `auto` (the cluster that this machine is part of), or `HOST:PORT` of its head.
        workers: How many workers are wanted; None: with `local` one for each processor here, elsewhere as
            many as fit.
        verbose: Let Ray print what it has to say.

    Raises:
        MissingExtraError: Ray Data is not installed.
        ConfigError: The address is none.
        ClusterError: Nothing answers there, it is no Ray cluster, or its machines have another ongebd.
    """
    check_address(address, workers)
    if address not in (LOCAL, "auto"):
        _reach(address)
    _set_environment(verbose, local=address == LOCAL)
    with contextlib.nullcontext() if verbose else _silence():
        import ray

        if ray.is_initialized():
            yield _as_it_is(address, workers, verbose)
            return
        with _local(workers, verbose) if address == LOCAL else _remote(address, verbose):
            yield _as_it_is(address, workers, verbose)


def check_address(address: str, workers: int | None = None) -> None:
    """Refuse what `connected` cannot take, without a look at the network.

    Raises:
        MissingExtraError: Ray Data is not installed.
        ConfigError: The address is none, or the number of workers.
    """
    for module in ("ray", "pyarrow"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError.of(module, "cluster")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers must be 1 or more, not {workers}")
    host, colon, port = address.rpartition(":")
    if address in (LOCAL, "auto") or ("://" not in address and host and colon and port.isdecimal()):
        return
    more = "; give the command on a machine of the cluster" if address.startswith("ray:") else ""
    raise ConfigError(f"--cluster {address}: is no address; give local, auto, or HOST:PORT of the head{more}")


def _reach(address: str) -> None:
    """Make sure that somebody answers, before Ray tries for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as problem:
        reason = "no answer" if isinstance(problem, TimeoutError) else str(problem)
        raise ClusterError(
            f"--cluster {address}: cannot be reached ({reason}); is it what `ray start --head` printed, and"
            " is the port open?"
        ) from None


def _set_environment(verbose: bool, *, local: bool) -> None:
    """What Ray reads when it is imported or begun; what the user has set stays."""
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",  # it would report to its makers
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # its coming default, and no advice about it
    }
    if not verbose:
        settings["RAY_DATA_LOG_LEVEL"] = "CRITICAL"
    if local and "RAY_AUTH_MODE" not in os.environ and "ray" not in sys.modules:
        # Ray listens to the whole network, and runs what it is sent: here only what has our word. (The word
        # holds for as long as the process does; Ray takes it when it is imported, and never again.)
        settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in settings.items():
        os.environ.setdefault(name, value)


@contextmanager
def _silence() -> Iterator[None]:
    """Ray prints to both outputs whatever it is told, also from beneath Python; here it prints to nowhere.

    What is written to `sys.stderr` goes where it went. (To standard output nothing of ours goes meanwhile.)
    """
    with contextlib.ExitStack() as undo:
        undo.enter_context(contextlib.redirect_stdout(io.StringIO()))
        if _descriptor(sys.stderr) == 2:
            ours = undo.enter_context(os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, buffering=1))
            undo.enter_context(contextlib.redirect_stderr(ours))
        before = os.dup(2)
        undo.callback(os.close, before)
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device
            os.dup2(nowhere.fileno(), 2)
        undo.callback(os.dup2, before, 2)
        yield


def _descriptor(stream: object) -> int | None:
    try:
        return stream.fileno()  # type: ignore[attr-defined, no-any-return]
    except (AttributeError, OSError, ValueError):
        return None


def _as_it_is(address: str, workers: int | None, verbose: bool) -> Cluster:
    import ray

    resources = ray.cluster_resources()
    cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
    return Cluster(address, cpus, gpus, workers, verbose)


@contextmanager
def _local(workers: int | None, verbose: bool) -> Iterator[None]:
    import ray

    with tempfile.TemporaryDirectory(prefix="ongebd-ray-", ignore_cleanup_errors=True) as folder:
        try:
            with _own_signals():
                ray.init(
                    address=LOCAL,
                    num_cpus=workers,
                    include_dashboard=False,
                    log_to_driver=verbose,
                    logging_level="INFO" if verbose else "CRITICAL",
                    _temp_dir=folder,
                )
        except (OSError, RuntimeError, ValueError) as problem:
            raise ClusterError(f"Ray does not start on this machine: {first_line(problem)}") from problem
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _remote(address: str, verbose: bool) -> Iterator[None]:
    import ray

    probe(address)
    try:
        with _own_signals():
            ray.init(address=address, log_to_driver=verbose, logging_level="INFO" if verbose else "CRITICAL")
    except (OSError, RuntimeError, ValueError) as problem:
        raise ClusterError(f"--cluster {address}: Ray does not connect: {first_line(problem)}") from problem
    try:
        check_versions()
        yield
    finally:
        ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; afterwards it is ours again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
