"""A worker: keeps the model, takes one video at a time, and answers with a result whatever happens to it."""

from __future__ import annotations

import os
import pickle
import socket
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ongebd import __version__
from ongebd.cluster.attempts import MOST, Counting, Turns
from ongebd.cluster.tasks import Result, Task, Video, Work
from ongebd.errors import ClusterError, OngebdError
from ongebd.features import Failure

_LARGEST = 2**31 - 1  # bytes in one cell of the table that Ray sends


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker sends back for a video.

    Attributes:
        number: Of the video.
        result: What came of it.
        attempts: The how manieth attempt it was; above 1 where a worker died over it.
        trace: The traceback of a fault that is nobody's video's, but a program's.
    """

    number: int
    result: Result
    attempts: int = 1
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Unfit:
    """This worker's machine cannot do the work at all; the job is to end, for no video is to blame.

    Attributes:
        reason: One line, the machine's name in it.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Site:
    """What a worker must have in common with the driver.

    Attributes:
        version: Of ongebd.
        folder: In which relative names of sources begin.
        relative: Whether there are such names.
    """

    version: str
    folder: str
    relative: bool

    @classmethod
    def here(cls, sources: Sequence[str]) -> Site:
        """That of this process, for these sources."""
        relative = any("://" not in source and not os.path.isabs(source) for source in sources)  # noqa: PTH117
        return cls(__version__, os.getcwd(), relative)  # noqa: PTH109

    def enter(self) -> None:
        """Make this process like it.

        Raises:
            ClusterError: It cannot be.
        """
        if self.version != __version__:
            raise ClusterError(f"has ongebd {__version__}, and here it is {self.version}; install the same")
        try:
            os.chdir(self.folder)
        except OSError:
            if self.relative:
                raise ClusterError(
                    f"has no folder {self.folder}, in which this command was given; name the videos by"
                    " their full paths, which must be the same on every machine"
                ) from None


class Worker:
    """Takes rows {"video": pickled `Video`}, gives rows {"answer": pickled `Answer` or `Unfit`}.

    Args:
        task: What to do with each video.
        site: What must be as with the driver.
        attempts: Counts for all workers.
    """

    def __init__(self, task: Task, site: Site, attempts: Counting) -> None:
        self._attempts = attempts
        self._turns = Turns()
        self._work: Work | None = None
        self._unfit = Unfit("")
        try:
            site.enter()
            self._work = task.ready()
        except OngebdError as problem:  # told as a result: Ray would bury it under its own words
            self._unfit = Unfit(f"the machine {socket.gethostname()} {_verb(problem)}")

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """One video's row in, its answer out."""
        if self._work is None:
            return {"answer": pickle.dumps(self._unfit)}
        video: Video = pickle.loads(row["video"])
        with self._turns.turn(alone=self._attempts.unfinished(video.number) > 0):
            attempt = self._attempts.begin(video.number)
            answer = self._answer(self._work, video, attempt)
            sent = pickle.dumps(answer)
            if len(sent) > _LARGEST:
                reason = f"its result is {len(sent) / 1e9:.1f} GB, too large to be sent; leave out --cluster"
                sent = pickle.dumps(Answer(video.number, Failure.of(video.id, video.source, reason)))
            self._attempts.end(video.number)
        return {"answer": sent}

    def _answer(self, work: Work, video: Video, attempt: int) -> Answer:
        if attempt > MOST:
            reason = (
                f"its worker died {MOST} times over it: out of memory, or a crash in its decoder;"
                " see it alone with: ongebd detect"
            )
            return Answer(video.number, Failure.of(video.id, video.source, reason), attempt - 1)
        try:
            return Answer(video.number, work(video), attempt)
        except Exception as fault:  # noqa: BLE001 - the manifest gets it whole, and the other videos go on
            reason = f"unexpected {type(fault).__name__}: {fault} (a fault of ongebd; the manifest has more)"
            failure = Failure.of(video.id, video.source, reason)
            return Answer(video.number, failure, attempt, traceback.format_exc())


def _verb(problem: OngebdError) -> str:
    """A `ClusterError` of ours goes on in the sentence; others are whole sentences."""
    return str(problem) if isinstance(problem, ClusterError) else f"cannot do the work: {problem}"
