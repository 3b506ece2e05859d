"""A file from its beginning to its end: decoding, features, method. Start-up is not counted."""

from __future__ import annotations

import time
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ongebd.common.prefetch import prefetch
from ongebd.detector import Model, SourceRun
from ongebd.errors import ConfigError
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.subjects import Subject
from ongebd.lab.benchmark.timing import Sample
from ongebd.video import VideoReader

PYSCENEDETECT = "PySceneDetect AdaptiveDetector, its own program"


def check_video(path: Path) -> int:
    """Frames that can be decoded of a file; it is read once, and so is in the system's memory then.

    Raises:
        ConfigError: There is no such file.
        SourceError: It cannot be read.
    """
    if not path.exists():
        raise ConfigError(f"--video {path}: there is no such file")
    with VideoReader(str(path), 1.0, short_side=64) as video:
        for _frame in video:
            pass
        if video.broken is not None:
            raise ConfigError(f"--video {path}: {video.broken}")
        return video.decoded


class ThroughCpu:
    """A model on a file as `ongebd detect` runs it. A turn is the whole file, however long that takes."""

    def __init__(self, model: Model, path: Path, workers: int | None = None) -> None:
        self._model = model
        self._path = path
        self._workers = workers

    def __call__(self, _seconds: float) -> Sample:
        """Read it."""
        began = time.perf_counter()
        with SourceRun(str(self._path), self._model, workers=self._workers) as run:
            for _event in run:
                pass
        return Sample(run.video.decoded, time.perf_counter() - began)


class ThroughDevice:
    """A model on a file, decoded by a thread and run as one stream on a GPU."""

    def __init__(self, model: Model, path: Path, device: str, precision: str) -> None:
        from ongebd.pool.gpu import DeviceStream

        self._model = model
        self._path = path
        self._stream = DeviceStream(model, device=device, precision=precision)

    def __call__(self, _seconds: float) -> Sample:
        """Read it."""
        config, view = self._stream.config, self._model.backbone.view
        self._stream.reset()
        began = time.perf_counter()
        with VideoReader(str(self._path), config.fps, view=view) as video:
            epoch = 0
            with closing(prefetch(video, ahead=8)) as frames:
                for frame in frames:
                    if frame.epoch != epoch:
                        self._stream.new_epoch()
                        epoch = frame.epoch
                    self._stream.update(frame.rgb, frame.time)
            self._stream.flush()
        return Sample(video.decoded, time.perf_counter() - began)

    def close(self) -> None:
        """Give the stream's runtime back."""
        self._stream.close()


class ThroughPySceneDetect:
    """PySceneDetect's own program on a file, with its own decoder."""

    def __init__(self, path: Path, frames: int) -> None:
        self._path = path
        self._frames = frames

    def __call__(self, _seconds: float) -> Sample:
        """Read it."""
        package = import_module("scenedetect")
        began = time.perf_counter()
        package.detect(str(self._path), package.AdaptiveDetector())
        return Sample(self._frames, time.perf_counter() - began)


def pyscenedetect_is_here() -> bool:
    """Whether it is installed."""
    return find_spec("scenedetect") is not None


def through(subject: Subject, plan: BenchPlan, path: Path) -> ThroughCpu | ThroughDevice:
    """How a method reads a file on the plan's device."""
    if plan.on_gpu:
        return ThroughDevice(subject.model, path, plan.device, plan.computes_in)
    return ThroughCpu(subject.model, path)
