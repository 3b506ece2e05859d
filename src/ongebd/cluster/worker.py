"""One job: videos go out as Ray tasks, and answers come back in the order of the videos."""

from __future__ import annotations

import os
import socket
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

from ongebd import __version__
from ongebd.cluster.connection import Cluster, first_line
from ongebd.common.text import public_name
from ongebd.errors import ClusterError, OngebdError, os_errors
from ongebd.features.records import Failure

MOST = 3
"""Attempts at a video whose worker dies."""

_DIED = f"its worker died {MOST} times: out of memory, or a decoder crash; try it without --cluster"
_AHEAD = 16  # videos per worker that may be finished before it is their turn


@dataclass(frozen=True, slots=True)
class Video:
    """One video of a job.

    Attributes:
        number: Its place in the job, from 0.
        id: Its unique name in the results.
        source: As the user named it.
    """

    number: int
    id: str
    source: str = field(repr=False)


Work = Callable[[Video], Any]


class Task(Protocol):
    """The work on each video; hashable, and pickled for the workers."""

    def ready(self) -> Work:
        """Load the model, once per worker; raise an OngebdError if this machine can't."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A worker's answer for a video.

    Attributes:
        result: From the task; a `Failure` if the worker or the program failed.
        attempts: Above 1 if a worker died while working on it.
        trace: Traceback of a bug in the program.
    """

    result: Any
    attempts: int = 1
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """What every worker needs.

    Attributes:
        task: The work on each video.
        version: The driver's version of ongebd.
        folder: The driver's working folder; None if no source is named relative to it.
        threads: Videos in parallel in one worker.
    """

    task: Task
    version: str
    folder: str | None
    threads: int = 1


def work_on(setup: Setup, videos: Sequence[Video]) -> list[Answer] | str:
    """Work on some videos, in a worker; a text says why this machine can't do the work at all."""
    try:
        work = _ready(setup)
    except OngebdError as problem:
        return f"{socket.gethostname()} can't do the work: {problem}"
    with ThreadPoolExecutor(setup.threads) as threads:
        return list(threads.map(partial(_answer, work), videos))


@lru_cache(maxsize=1)
def _ready(setup: Setup) -> Work:
    if setup.version != __version__:
        raise ClusterError(f"it has ongebd {__version__}, not {setup.version}; install the same version")
    if setup.folder is not None:
        with os_errors(
            setup.folder, "name the videos by full paths that exist on all machines", ClusterError
        ):
            os.chdir(setup.folder)
    return setup.task.ready()


def _answer(work: Work, video: Video) -> Answer:
    try:
        return Answer(work(video))
    except Exception as bug:  # noqa: BLE001 - the manifest records it, and the other videos go on
        reason = f"unexpected {type(bug).__name__}: {bug} (a bug in ongebd; details in the manifest)"
        trace = "\n".join(map(public_name, traceback.format_exc().splitlines()))
        return Answer(Failure.of(video.id, video.source, reason), trace=trace)


def answers(
    cluster: Cluster | None, task: Task, videos: Sequence[Video], threads: int, *, gpu: bool
) -> Generator[tuple[Video, Answer], None, None]:
    """Work on all videos, and yield the answers in the order of the videos.

    If a worker dies, each of its videos is tried again alone, so that the one to blame is found. After `MOST`
    attempts a video is answered with a `Failure`.

    Args:
        cluster: None is enough without videos.
        task: The work on each video.
        videos: Numbered from 0 in this order.
        threads: Videos in parallel in one worker.
        gpu: Whether each worker has its own GPU.

    Raises:
        ClusterError: A machine can't do the work, or the cluster was lost.
    """
    if not videos:
        return
    if cluster is None:
        raise ClusterError(f"no cluster for {len(videos)} videos")
    import ray
    from ray.exceptions import NodeDiedError, OutOfMemoryError, RayError, WorkerCrashedError

    relative = any("://" not in video.source and not Path(video.source).is_absolute() for video in videos)
    setup = ray.put(Setup(task, __version__, str(Path.cwd()) if relative else None, threads))
    resources = {"num_gpus": 1, "num_cpus": 0} if gpu else {"num_cpus": 1}
    remote = ray.remote(max_retries=0, max_calls=0, **resources)(work_on)
    workers = cluster.places(gpu=gpu)
    size = 1 if threads == 1 else 4 * threads
    todo = deque(videos[start : start + size] for start in range(0, len(videos), size))
    running: dict[Any, Sequence[Video]] = {}
    attempts: Counter[int] = Counter()
    finished: dict[int, Answer] = {}
    due = 0  # number of the next video to yield
    try:
        while due < len(videos):
            while todo and len(running) < workers and todo[0][0].number < due + _AHEAD * workers * size:
                some = todo.popleft()
                attempts.update(video.number for video in some)
                running[remote.remote(setup, some)] = some
            (reference,), _ = ray.wait(list(running), num_returns=1)
            some = running.pop(reference)
            try:
                result: list[Answer] | str = ray.get(reference)
            except (WorkerCrashedError, NodeDiedError, OutOfMemoryError):
                todo.extendleft([video] for video in reversed(some) if attempts[video.number] < MOST)
                some = [video for video in some if attempts[video.number] >= MOST]
                result = [Answer(Failure.of(video.id, video.source, _DIED)) for video in some]
            if isinstance(result, str):
                raise ClusterError(result)
            for video, answer in zip(some, result, strict=True):
                finished[video.number] = replace(answer, attempts=attempts[video.number])
            while due in finished:
                yield videos[due], finished.pop(due)
                due += 1
    except RayError as problem:
        raise ClusterError(
            f"Ray stopped: {first_line(problem)}; check that every machine has ongebd {__version__}, and run"
            " the command again"
        ) from problem
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
