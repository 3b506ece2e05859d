"""`ongebd detect --device cuda`: several processes read and write, and this one decides with the GPU."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial

from ongebd.baselines.pictures import Pictures
from ongebd.cli import interrupt
from ongebd.cli.terminal import Progress, fill_closed_streams
from ongebd.common.processes import side_by_side
from ongebd.detector import Model, StreamConfig, load
from ongebd.errors import ConfigError, OngebdError
from ongebd.pool.remote import Remote, RemoteModel, deciding
from ongebd.video.picture import View

Task = Callable[[Model, Progress], bool]
"""Finds the boundaries of one source; whether it was read to its end."""


def load_for_gpu(name: str, device: str) -> tuple[Model, bool]:
    """A model, and whether a pool runs it. One on pixels, or on whole videos, computes on the GPU itself."""
    model = load(name)
    alone = model.offline or isinstance(model.backbone, Pictures)
    return (load(name, device=device), False) if alone else (model, True)


def detect_on_gpu(
    tasks: Sequence[Task], model: Model, config: StreamConfig, device: str, workers: int | None, quiet: bool
) -> list[bool]:
    """Do the tasks side by side. Each process says and prints what it does; a single one, this, has a bar."""
    count = (os.cpu_count() or 1) if workers is None else workers
    if count < 1:
        raise ConfigError(f"--workers must be at least 1, not {count}")
    count = min(count, len(tasks))
    try:
        with deciding(model, config, device, count) as streams:
            job = partial(_detect, model.name, model.backbone.view, quiet)
            return list(side_by_side(job, tasks, count, streams))
    except RuntimeError as problem:  # of CUDA
        raise OngebdError(f"--device {device}: {problem}") from problem


def _detect(name: str, view: View, quiet: bool, task: Task, stream: Remote) -> bool:
    """A task. A process of its own finishes its results when it is stopped."""
    handle, results = stream
    if child := multiprocessing.parent_process() is not None:
        fill_closed_streams()
        signal.signal(signal.SIGTERM, interrupt)
    with handle.open() as producer, Progress(quiet=quiet or child) as progress:
        progress.quiet = quiet
        return task(RemoteModel(name, view, producer, results), progress)
