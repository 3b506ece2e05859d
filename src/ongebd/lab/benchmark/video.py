"""A file read from beginning to end: decoding, features, method. Start-up is not counted."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path

from ongebd.backbones.pipeline import prefetch
from ongebd.detector import Model, SourceRun
from ongebd.errors import ConfigError
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.timing import Run, Sample
from ongebd.video import VideoReader

PYSCENEDETECT = "PySceneDetect AdaptiveDetector, its own program"


def count_frames(path: Path) -> int:
    """The frames of a file that can be decoded; reading it once also brings it into the system's memory.

    Raises:
        ConfigError: There is no such file, or it is broken.
        SourceError: It can't be read.
    """
    if not path.exists():
        raise ConfigError(f"--video {path}: there is no such file")
    with VideoReader(str(path), 1.0, short_side=64) as video:
        for _frame in video:
            pass
        if video.broken is not None:
            raise ConfigError(f"--video {path}: {video.broken}")
        return video.decoded


def read_by_model(model: Model, plan: BenchPlan, path: Path, held: ExitStack) -> Run:
    """A model on a file, on the plan's device. A turn is the whole file."""
    if plan.on_gpu:
        return _read_on_gpu(model, plan, path, held)

    def read(_seconds: float) -> Sample:
        began = time.perf_counter()
        with SourceRun(str(path), model) as run:
            for _event in run:
                pass
        return Sample(run.video.decoded, time.perf_counter() - began)

    return read


def _read_on_gpu(model: Model, plan: BenchPlan, path: Path, held: ExitStack) -> Run:
    """One stream on a GPU; a thread decodes."""
    from ongebd.pool.gpu import DeviceStream

    stream = DeviceStream(model, device=plan.device, precision=plan.computes_in)
    held.callback(stream.close)

    def read(_seconds: float) -> Sample:
        stream.reset()
        began = time.perf_counter()
        with VideoReader(str(path), stream.config.fps, view=model.backbone.view) as video:
            epoch = 0
            with closing(prefetch(video, ahead=8)) as frames:
                for frame in frames:
                    if frame.epoch != epoch:
                        stream.new_epoch()
                        epoch = frame.epoch
                    stream.update(frame.rgb, frame.time)
            stream.flush()
        return Sample(video.decoded, time.perf_counter() - began)

    return read


def read_by_pyscenedetect(path: Path, frames: int) -> Run:
    """PySceneDetect's own program on a file, with its own decoder."""

    def read(_seconds: float) -> Sample:
        package = import_module("scenedetect")
        began = time.perf_counter()
        package.detect(str(path), package.AdaptiveDetector())
        return Sample(frames, time.perf_counter() - began)

    return read
