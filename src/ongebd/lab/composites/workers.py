"""Several processes that write videos side by side, each told what to do next over a pipe of its own.

Not `concurrent.futures`: its pool cannot be stopped at once, and may wait for ever when it is interrupted.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Generic, TypeVar, cast

from ongebd.errors import OngebdError

Task = TypeVar("Task")
Result = TypeVar("Result")


def side_by_side(
    job: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Generator[Result, None, None]:
    """What a job makes of each task, in the order of the tasks. Closed early, it stops the processes at once.

    Args:
        job: Picklable; sent to each process once.
        tasks: Picklable.
        workers: Processes.

    Raises:
        OngebdError: One that the job raised; or a process died.
    """
    crew = _Crew(job, min(workers, len(tasks)))
    try:
        yield from crew.work(tasks)
    finally:
        crew.dismiss()


class _Crew(Generic[Task, Result]):
    def __init__(self, job: Callable[[Task], Result], workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._free: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        with _interrupts_held():
            for _ in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,), daemon=True)
                self._free.append(ours)
                self._processes.append(process)
                process.start()
                theirs.close()
        # Not as an argument: `start` waits for ever for a process that dies before it has read a large one.
        for connection in self._free:
            self._send(connection, job)

    def work(self, tasks: Sequence[Task]) -> Generator[Result, None, None]:
        busy: dict[Connection, int] = {}
        done: dict[int, Result] = {}
        upcoming = 0
        for number in range(len(tasks)):
            while number not in done:
                while self._free and upcoming < len(tasks):
                    connection = self._free.pop()
                    busy[connection] = upcoming
                    self._send(connection, tasks[upcoming])
                    upcoming += 1
                for ready in cast("list[Connection]", wait(list(busy))):
                    done[busy.pop(ready)] = self._received(ready)
                    self._free.append(ready)
            yield done.pop(number)

    def dismiss(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    @staticmethod
    def _send(connection: Connection, value: object) -> None:
        with suppress(OSError):  # it died: what is received next says so
            connection.send(value)

    @staticmethod
    def _received(connection: Connection) -> Result:
        try:
            result = connection.recv()
        except (EOFError, OSError):
            raise OngebdError("a worker died, perhaps for want of memory; use fewer with --workers") from None
        if isinstance(result, OngebdError):
            raise result
        return cast("Result", result)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; processes started meanwhile never get it, for a terminal sends it to all of them.

    The one that started them stops them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection) -> None:
    """A process's work: the job, then tasks come in, results or refusals go out, until it is stopped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it is not held back already
    with suppress(EOFError, BrokenPipeError):  # the one that started us is gone
        job = connection.recv()
        while True:
            task = connection.recv()
            try:
                result = job(task)
            except OngebdError as problem:
                result = problem
            connection.send(result)
