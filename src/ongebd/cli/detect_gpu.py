"""`ongebd detect --device cuda`: several processes read and write, and this one decides with the GPU."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any

from ongebd.baselines.pictures import Pictures
from ongebd.cli import interrupt
from ongebd.cli.terminal import Progress
from ongebd.common.processes import children, numbers
from ongebd.detector import Model, StreamConfig, load
from ongebd.errors import ConfigError, OngebdError, uninterrupted
from ongebd.pool.remote import Told, deciding, remote_model

Task = Callable[[Model, Progress], bool]
"""Finds the boundaries of one source; whether it was read to its end."""
Message = tuple[str, tuple[Any, ...]]

_OFTEN = 0.2  # seconds between two reports of progress
_DIED = "ongebd: a process that decodes died, perhaps out of memory; use fewer with --workers"


def load_for_gpu(name: str, device: str) -> tuple[Model, bool]:
    """A model, and whether a pool runs it. One on pixels, or on whole videos, computes on the GPU itself."""
    model = load(name)
    alone = model.offline or isinstance(model.backbone, Pictures)
    return (load(name, device=device), False) if alone else (model, True)


def detect_on_gpu(
    tasks: Sequence[Task],
    model: Model,
    settings: StreamConfig,
    device: str,
    workers: int | None,
    progress: Progress,
) -> list[bool]:
    """Do the tasks side by side. What each says and prints comes in the order of the tasks."""
    count = (os.cpu_count() or 1) if workers is None else workers
    if count < 1:
        raise ConfigError(f"--workers must be at least 1, not {count}")
    shown = _Shown(progress)
    try:
        with (
            children(_work, min(count, len(tasks))) as (processes, pipes),  # they start beside the GPU
            deciding(model, settings, device, pipes) as (pool, handles),
        ):
            about = progress.quiet, sys.stdout.encoding, model.name, model.backbone.view
            for pipe, handle in zip(pipes, handles, strict=True):
                with suppress(OSError):  # it died: what is received next says so
                    pipe.send((tasks, handle, *about))
            try:
                shown.follow(pipes, lambda: pool.wait(0))
            except KeyboardInterrupt:
                for process in processes:
                    process.terminate()  # each finishes its results
                shown.follow(pipes, lambda: pool.wait(0))
                raise
    except RuntimeError as problem:  # of CUDA
        raise OngebdError(f"--device {device}: {problem}") from problem
    if len(shown.done) < len(tasks):
        raise OngebdError(_DIED.removeprefix("ongebd: "))
    return shown.done


class _Shown:
    """Shows what the processes tell, task by task."""

    def __init__(self, progress: Progress) -> None:
        self.done: list[bool] = []
        self._progress = progress
        self._told: defaultdict[int, deque[Message]] = defaultdict(deque)
        self._at: dict[Connection, int] = {}  # the task of each process

    def follow(self, pipes: Sequence[Connection], check: Callable[[], object]) -> None:
        """Until all processes have ended. `check` raises what broke here."""
        left = [pipe for pipe in pipes if not pipe.closed]
        while left:
            ready = wait(left, 1.0)
            if not ready:
                check()
            for pipe in [one for one in left if one in ready]:
                with uninterrupted():
                    if not self._received(pipe):
                        left.remove(pipe)
                self._show()

    def _received(self, pipe: Connection) -> bool:
        """Take a message; false if the process has ended."""
        try:
            number, what, given = pipe.recv()
        except (EOFError, OSError):
            pipe.close()
            if (number := self._at.pop(pipe, None)) is not None:
                self._told[number] += [("say", (_DIED,)), ("done", (False,))]
            return False
        self._at[pipe] = number
        if what == "done":
            del self._at[pipe]
        self._told[number].append((what, given))
        return True

    def _show(self) -> None:
        while messages := self._told[len(self.done)]:
            what, given = messages.popleft()
            if what == "done":
                self.done += given
            elif what == "print":
                sys.stdout.write(*given)
                sys.stdout.flush()
            else:
                getattr(self._progress, what)(*given)


Tell = Callable[..., None]


class _Told(Progress):
    """Tells another process what to show."""

    def __init__(self, tell: Tell, *, quiet: bool) -> None:
        super().__init__(quiet=True)  # without a bar
        self.quiet, self._tell = quiet, tell

    def restart(self) -> None:
        super().restart()
        self._tell("restart")

    def show(self, *what: Any) -> None:
        if monotonic() - self._last_line > _OFTEN:
            self._last_line = monotonic()
            self._tell("show", *what)

    def say(self, line: str) -> None:
        self._tell("say", line)


class _Printed(io.TextIOBase):
    """A standard output that another process prints."""

    name, encoding = "<stdout>", ""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def write(self, text: str) -> int:
        self._tell("print", text)
        return len(text)


def _work(pipe: Connection, upcoming: Any) -> None:
    """A process: reads sources and writes their results."""
    signal.signal(signal.SIGTERM, interrupt)
    with suppress(KeyboardInterrupt, EOFError, BrokenPipeError, OngebdError):  # the other process tells
        tasks, handle, quiet, _Printed.encoding, name, view = pipe.recv()
        told: SimpleQueue[Told] = SimpleQueue()
        Thread(target=_receive, args=(pipe, told), daemon=True).start()
        with handle.open() as producer:
            model = remote_model(name, view, producer, told)
            for number in numbers(upcoming, len(tasks)):
                tell, whole = partial(_tell, pipe, number), False
                sys.stdout = _Printed(tell)
                try:
                    whole = tasks[number](model, _Told(tell, quiet=quiet))
                finally:
                    tell("done", whole)


def _tell(pipe: Connection, number: int, what: str, *given: Any) -> None:
    with uninterrupted():  # half a message would spoil those that follow
        pipe.send((number, what, given))


def _receive(pipe: Connection, told: SimpleQueue[Told]) -> None:
    try:
        while True:
            told.put(pipe.recv())
    except (EOFError, OSError):  # the other process is gone
        os._exit(1)
