"""Several processes that work side by side, each on whole tasks.

Not `concurrent.futures`: its pool can't be stopped immediately, and may wait forever when it is interrupted.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from ongebd.errors import OngebdError

Task = TypeVar("Task")
Result = TypeVar("Result")


def side_by_side(
    job: Callable[..., Result], tasks: Sequence[Task], workers: int, given: Sequence[Any] = ()
) -> Generator[Result, None, None]:
    """The results of a job for each task, in the order of the tasks. Closed early, it stops the processes.

    Args:
        job: Picklable, as are the tasks and results.
        tasks: What the job is called with.
        workers: Processes; with 1, or for a single task, the job runs in this one.
        given: What each process has for itself, small: the job's second argument.

    Raises:
        OngebdError: The job raised it, or a process died. (A BrokenPipeError of the job comes here, too.)
    """
    if min(workers, len(tasks)) < 2:
        yield from (job(task, *given) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    upcoming = context.Value("q", 0)  # the next task's number; a free process takes it
    pipes: list[Connection] = []
    processes = []
    done: dict[int, Result] = {}
    try:
        with _interrupts_held():
            for number in range(min(workers, len(tasks))):
                ours, theirs = context.Pipe()
                given_it = given[number : number + 1]
                process = context.Process(target=_work, args=(theirs, upcoming, *given_it), daemon=True)
                process.start()
                theirs.close()
                pipes.append(ours)
                processes.append(process)
        # Not as arguments: `start` waits forever for a process that dies before it has read large ones.
        for pipe in pipes:
            with suppress(OSError):  # it died: what is received next says so
                pipe.send((job, tasks))
        for number in range(len(tasks)):
            while number not in done:
                for ready in wait(pipes):
                    place, result = _received(ready)
                    done[place] = result
            yield done.pop(number)
    finally:
        for process, pipe in zip(processes, pipes, strict=True):
            process.terminate()
            pipe.close()
        for process in processes:
            process.join()


def _received(pipe: Any) -> tuple[int, Any]:
    try:
        place, result = pipe.recv()
    except (EOFError, OSError):
        raise OngebdError("a worker died, perhaps out of memory; use fewer with --workers") from None
    if isinstance(result, (OngebdError, BrokenPipeError)):
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


def _work(pipe: Connection, upcoming: Any, *given: Any) -> None:
    """A process: takes tasks and sends results or refusals, then waits to be stopped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it isn't held back already
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):  # the parent is gone, or stops this process
        job, tasks = pipe.recv()
        while True:
            with upcoming.get_lock():
                number = upcoming.value
                upcoming.value += 1
            if number >= len(tasks):
                pipe.recv()
            try:
                result = job(tasks[number], *given)
            except (OngebdError, BrokenPipeError) as problem:
                result = problem
            pipe.send((number, result))
