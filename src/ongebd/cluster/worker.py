"""One job: videos go out to a pool of workers, and answers come back in the order of the videos."""

from __future__ import annotations

import os
import pickle
import socket
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ongebd import __version__
from ongebd.cluster.connection import Cluster, first_line
from ongebd.errors import ClusterError, OngebdError, os_errors
from ongebd.features import Failure

MOST = 3
"""Attempts at a video whose worker dies."""

_LARGEST = 2**31 - 1  # bytes in one cell of Ray's tables


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
    source: str


Work = Callable[[Video], Any]


class Task(Protocol):
    """The work on each video. It is pickled and sent to the workers."""

    def ready(self) -> Work:
        """Load the model, once per worker; raise an OngebdError if this machine can't."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A worker's answer for a video.

    Attributes:
        number: Of the video.
        result: From the task; a `Failure` if the worker or the program failed.
        attempts: Above 1 if a worker died while working on it.
        trace: Traceback of a bug in the program.
    """

    number: int
    result: Any
    attempts: int = 1
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Unfit:
    """The worker's machine can't do the work at all, for this reason: the job ends."""

    reason: str


class Attempts:
    """Counts how often work on each video began since it last ended. Outlives the workers.

    >>> attempts = Attempts()
    >>> attempts.begin(7), attempts.begin(7), attempts.unfinished(7), attempts.end(7), attempts.unfinished(7)
    (1, 2, 2, 0, 0)
    """

    def __init__(self) -> None:
        self._begun: Counter[int] = Counter()

    def begin(self, number: int) -> int:
        self._begun[number] += 1
        return self._begun[number]

    def end(self, number: int) -> int:
        return self._begun.pop(number, 0) * 0

    def unfinished(self, number: int) -> int:
        return self._begun[number]


class Turns:
    """Lets up to `most` threads work together, or one of them alone.

    A video during which a worker died gets the worker for itself: if the worker dies again, that video is to
    blame, not its neighbours.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._places = threading.Semaphore(most)
        self._entering = threading.Lock()

    @contextmanager
    def turn(self, *, alone: bool) -> Iterator[None]:
        wanted = self._most if alone else 1
        with self._entering:
            for _ in range(wanted):
                self._places.acquire()
        try:
            yield
        finally:
            self._places.release(wanted)


class Worker:
    """Takes rows {"video": pickled `Video`}, returns rows {"answer": pickled `Answer` or `Unfit`}.

    Args:
        task: The work on each video.
        version: The driver's version of ongebd.
        folder: The driver's working folder; None if no source is named relative to it.
        jobs: Videos in parallel.
        attempts: Calls a method of the job's `Attempts`.
    """

    def __init__(
        self, task: Task, version: str, folder: str | None, jobs: int, attempts: Callable[[str, int], int]
    ) -> None:
        self._attempts = attempts
        self._turns = Turns(jobs)
        self._work: Work | None = None
        self._unfit = Unfit("")
        try:
            if version != __version__:
                raise ClusterError(f"it has ongebd {__version__}, not {version}; install the same version")
            if folder is not None:
                advice = "name the videos by full paths that exist on all machines"
                with os_errors(folder, advice, ClusterError):
                    os.chdir(folder)
            self._work = task.ready()
        except OngebdError as problem:  # as a result: Ray would bury an exception
            self._unfit = Unfit(f"{socket.gethostname()} can't do the work: {problem}")

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        if self._work is None:
            return {"answer": pickle.dumps(self._unfit)}
        video: Video = pickle.loads(row["video"])
        with self._turns.turn(alone=self._attempts("unfinished", video.number) > 0):
            attempt = self._attempts("begin", video.number)
            sent = pickle.dumps(self._answer(self._work, video, attempt))
            if len(sent) > _LARGEST:
                size = f"{len(sent) / 1e9:.1f} GB"
                sent = pickle.dumps(
                    _failed(video, f"its result has {size}, too much to send; drop --cluster")
                )
            self._attempts("end", video.number)
        return {"answer": sent}

    def _answer(self, work: Work, video: Video, attempt: int) -> Answer:
        if attempt > MOST:
            reason = (
                f"its worker died {MOST} times: out of memory, or a crash in the decoder; try it alone with"
                " ongebd detect"
            )
            return _failed(video, reason, attempt - 1)
        try:
            return Answer(video.number, work(video), attempt)
        except Exception as bug:  # noqa: BLE001 - the manifest records it, and the other videos go on
            reason = f"unexpected {type(bug).__name__}: {bug} (a bug in ongebd; details in the manifest)"
            return _failed(video, reason, attempt, traceback.format_exc())


def _failed(video: Video, reason: str, attempts: int = 1, trace: str | None = None) -> Answer:
    return Answer(video.number, Failure.of(video.id, video.source, reason), attempts, trace)


def answers(
    cluster: Cluster | None, task: Task, videos: Sequence[Video], jobs: int, *, gpu: bool
) -> Generator[tuple[Video, Answer], None, None]:
    """Work on all videos, each in its own Ray task, and yield the answers in the order of the videos.

    Ray restarts a worker that dies, and its video. After `MOST` attempts a video is answered with a
    `Failure`. Close the generator, or read it to the end.

    Args:
        cluster: None is enough if there are no videos.
        task: The work on each video.
        videos: Numbered from 0 in this order.
        jobs: Videos in parallel in one worker.
        gpu: Whether each worker has its own GPU.

    Raises:
        ClusterError: A machine can't do the work, or the cluster was lost.
    """
    if not videos:
        return
    if cluster is None:
        raise ClusterError(f"no cluster for {len(videos)} videos")
    import ray.data
    from ray.exceptions import RayError

    workers = min(cluster.places(gpu=gpu), len(videos))
    counter = ray.remote(num_cpus=0)(Attempts).options(scheduling_strategy=cluster.here()).remote()
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = cluster.verbose
    # All workers are requested, and one is enough to go on: if a machine is lost, the others do its part.
    pool = ray.data.ActorPoolStrategy(
        min_size=1,
        max_size=workers,
        initial_size=workers,
        max_concurrent_calls_per_actor=jobs,
        enable_true_multi_threading=jobs > 1,
    )
    rows = [{"video": pickle.dumps(video)} for video in videos]
    relative = any("://" not in video.source and not Path(video.source).is_absolute() for video in videos)
    folder = str(Path.cwd()) if relative else None
    # One block, and so one task, per video: what is lost with a worker is that video alone.
    results = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
        Worker,
        compute=pool,
        fn_constructor_args=(task, __version__, folder, jobs, partial(_call, counter)),
        **({"num_gpus": 1} if gpu else {"num_cpus": 1}),
    )
    expected = iter(videos)
    try:
        for batch in results.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow"):
            for cell in batch.column("answer"):
                answer: Answer | Unfit = pickle.loads(cell.as_py())
                if isinstance(answer, Unfit):
                    raise ClusterError(answer.reason)
                video = next(expected, None)
                if video is None or video.number != answer.number:
                    raise ClusterError(f"answer {answer.number} came twice or out of order")
                yield video, answer
        if (video := next(expected, None)) is not None:
            raise ClusterError(f"no answer for {video.id}; run the command again")
    except RayError as problem:
        raise ClusterError(
            f"Ray stopped: {first_line(problem)}; check that every machine has ongebd {__version__},"
            " and run the command again"
        ) from problem
    finally:
        ray.kill(counter)


def _call(actor: Any, method: str, number: int) -> int:
    import ray

    return int(ray.get(getattr(actor, method).remote(number)))
