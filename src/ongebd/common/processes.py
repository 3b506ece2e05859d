"""Several processes that work side by side, each on whole tasks.

Not `concurrent.futures`: its pool can't be stopped immediately, and may wait forever when it is interrupted.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from ongebd.errors import OngebdError

Task = TypeVar("Task")
Result = TypeVar("Result")


def side_by_side(
    job: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Generator[Result, None, None]:
    """The results of a job for each task, in the order of the tasks. Closed early, it stops the processes.

    Args:
        job: Picklable, as are the tasks and results.
        tasks: What the job is called with.
        workers: Processes; with 1, or for a single task, the job runs in this one.

    Raises:
        OngebdError: The job raised it, or a process died.
    """
    if min(workers, len(tasks)) < 2:
        yield from map(job, tasks)
        return
    done: dict[int, Result] = {}
    with children(_work, min(workers, len(tasks))) as (_, pipes):
        for pipe in pipes:
            with suppress(OSError):  # it died: what is received next says so
                pipe.send((job, tasks))
        for number in range(len(tasks)):
            while number not in done:
                for ready in wait(pipes):
                    place, result = _received(ready)
                    done[place] = result
            yield done.pop(number)


@contextmanager
def children(
    work: Callable[[Connection, Any], object], count: int
) -> Iterator[tuple[list[BaseProcess], list[Connection]]]:
    """So many processes, and our ends of the pipes to them. Ctrl-C doesn't reach them; the end stops them.

    Args:
        work: What each does, with its end of the pipe and what `numbers` takes. Send large things by the
            pipe: `start` waits forever for a process that dies before it has read large arguments.
        count: How many.
    """
    context = multiprocessing.get_context("spawn")
    upcoming = context.Value("q", 0)  # the next task's number
    pipes: list[Connection] = []
    processes: list[BaseProcess] = []
    try:
        with _interrupts_held():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=work, args=(theirs, upcoming), daemon=True)
                process.start()
                theirs.close()
                pipes.append(ours)
                processes.append(process)
        yield processes, pipes
    finally:
        for child, pipe in zip(processes, pipes, strict=True):
            child.terminate()
            pipe.close()
        for child in processes:
            child.join()


def numbers(upcoming: Any, count: int) -> Iterator[int]:
    """Which of so many tasks a process does: a free one takes the next."""
    while True:
        with upcoming.get_lock():
            number = upcoming.value
            upcoming.value += 1
        if number >= count:
            return
        yield number


def _received(pipe: Any) -> tuple[int, Any]:
    try:
        place, result = pipe.recv()
    except (EOFError, OSError):
        raise OngebdError("a worker died, perhaps out of memory; use fewer with --workers") from None
    if isinstance(result, OngebdError):
        raise result
    return place, result


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; processes that start meanwhile never get it, although a terminal sends it to all.

    Their parent stops them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection, upcoming: Any) -> None:
    """A process: takes tasks and sends results or refusals, then waits to be stopped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it isn't held back already
    with suppress(EOFError, BrokenPipeError):  # the parent is gone
        job, tasks = pipe.recv()
        for number in numbers(upcoming, len(tasks)):
            try:
                result = job(tasks[number])
            except OngebdError as problem:
                result = problem
            pipe.send((number, result))
        pipe.recv()
