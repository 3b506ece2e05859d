"""A file read from beginning to end: decoding, features, method. Start-up is not counted."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path

from ongebd.detector import Model, SourceRun
from ongebd.lab.benchmark.timing import Run, Sample
from ongebd.video import VideoReader

PYSCENEDETECT = "PySceneDetect AdaptiveDetector, its own program"


def count_frames(path: Path) -> int:
    """The frames of a file that can be decoded; reading it once also brings it into the system's memory.

    Raises:
        SourceError: It can't be read.
    """
    with VideoReader(str(path), 1.0, short_side=64) as video:
        for _frame in video:
            pass
        return video.decoded


def read_by_model(model: Model, path: Path) -> Run:
    """A model on a file. A turn is the whole file."""

    def read(_seconds: float) -> Sample:
        began = time.perf_counter()
        with SourceRun(str(path), model) as run:
            for _event in run:
                pass
        return Sample(run.video.decoded, time.perf_counter() - began)

    return read


def read_by_pyscenedetect(path: Path, frames: int) -> Run:
    """PySceneDetect's own program on a file, with its own decoder."""

    def read(_seconds: float) -> Sample:
        package = import_module("scenedetect")
        began = time.perf_counter()
        package.detect(str(path), package.AdaptiveDetector())
        return Sample(frames, time.perf_counter() - began)

    return read
