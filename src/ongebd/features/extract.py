"""From many videos to a store, with the frames, the sampling and the features of the stream."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Annotated

import av.error
import numpy as np

from ongebd.backbones import Backbone
from ongebd.backbones.pipeline import frame_features
from ongebd.common import MAX_PIXELS
from ongebd.common.settings import Range, check_fields
from ongebd.common.text import public_name
from ongebd.errors import ConfigError, FeatureError, SourceError
from ongebd.features.records import Failure, Failures
from ongebd.features.store import Features16, FeatureStore
from ongebd.types import Feature, Frame
from ongebd.video import Source, VideoReader, source_name
from ongebd.video.connecting import Connecting
from ongebd.video.picture import Fit, Squash
from ongebd.video.source import advice

ONE_VIDEOS_FAULT = (SourceError, FeatureError, av.error.FFmpegError, OSError)
"""Errors that fail one video; the others continue."""

_LOOK_EVERY = 0.25  # seconds between two reports of progress
_LARGEST = 65504.0  # of float16

AtLeastOne = Annotated[int, Range(least=1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractConfig:
    """How videos are read and processed. None of it changes a feature."""

    jobs: AtLeastOne = 1
    """Videos in work at the same time, each decoded in its own thread."""

    workers: AtLeastOne = 1
    """Parallel calls of the backbone, for each video."""

    batch: AtLeastOne = 1
    """Frames in one call of the backbone: 1 for a CPU, some tens for a GPU."""

    stream: int | None = None
    """Which video stream of a source, from 0, not counting cover art."""

    source_fps: float | Fraction | None = None
    """Frames a second of sources without timestamps; None takes the store's rate, as `ongebd detect` does."""

    max_pixels: int = MAX_PIXELS
    """The largest picture that is decoded."""

    private_network: bool = False
    """Whether what a web source names may be on the private network."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """The features of one video, in memory.

    Attributes:
        features: float16, shape (T, D).
        times: Seconds since the first frame of the source, T of them.
        epochs: How often its clock or format had broken before each frame.
        duration: Seconds from the first frame to the end of the last one decoded.
        warnings: Warnings for the user, one line each.
    """

    features: Features16
    times: list[float]
    epochs: list[int]
    duration: float
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Extracted:
    """A video is in the store: its source without credentials, sampled frames, and warnings for the user."""

    id: str
    source: str
    frames: int
    duration: float
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Working:
    """Nothing new, but work continues: frames and videos done in this run, with fractions of videos."""

    frames: int
    videos: float


def sampling_identity(backbone: Backbone) -> str:
    """How frames are chosen and resized, in words: a part of the store's header."""
    slots = "the first frame in each slot of 1/fps s, slots beginning a quarter early"
    match backbone.view:
        case Fit(short_side):
            return f"{slots}; bicubic to a shorter side of {short_side}, centre {backbone.input_size}"
        case Squash(width, height):
            return f"{slots}; the whole picture, bicubic to {width} × {height}"


class Stopped(Exception):  # noqa: N818 - not an error
    """The run was stopped while this video was in work."""


class Progress:
    """How far a video is; its own thread writes it, another reads it. Once `stop` is set, the work ends."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._seconds = 0.0
        self.frames = 0
        self.expected: float | None = None

    def count(self, frame: Frame) -> None:
        """One more frame is done."""
        if self._stop.is_set():
            raise Stopped
        self.frames += 1
        self._seconds = float(frame.time)

    @property
    def fraction(self) -> float:
        """From 0 to 1; 0 if the length is unknown."""
        return min(1.0, self._seconds / self.expected) if self.expected else 0.0


def video_features(
    source: Source,
    backbone: Backbone,
    fps: float,
    config: ExtractConfig | None = None,
    progress: Progress | None = None,
) -> VideoFeatures:
    """The features of one video, as the stream sees them, rounded to float16.

    Args:
        source: As for `VideoReader`.
        backbone: Turns pictures into features.
        fps: Frames a second to sample to.
        config: Everything else.
        progress: Counts the frames, and may stop the work.

    Raises:
        SourceError: The source can't be opened, or none of it decodes.
        FeatureError: A feature is NaN, infinite, zero, or too large for float16; it names the frame.
        Stopped: By `progress`.
    """
    config, progress = config or ExtractConfig(), progress or Progress(threading.Event())
    times: list[float] = []
    epochs: list[int] = []
    rows: list[Features16] = []
    source_fps = fps if config.source_fps is None else config.source_fps
    access = Connecting(max_pixels=config.max_pixels, private_network=config.private_network)
    with VideoReader(
        source, fps, view=backbone.view, stream=config.stream, source_fps=source_fps, connecting=access
    ) as video:
        progress.expected = video.expected_duration
        with closing(frame_features(video, backbone, config.workers, config.batch)) as features:
            for frame, feature in features:
                _check(feature, frame, public_name(source_name(source)))
                times.append(float(frame.time))
                epochs.append(frame.epoch)
                rows.append(feature.astype(np.float16))
                progress.count(frame)
        if video.broken is not None:  # a part must not pass for the whole; the next run tries again
            raise SourceError(f"{source_name(source)}: {video.broken}; {advice(source)}")
        half = np.array(rows, np.float16).reshape(len(rows), backbone.dim)
        return VideoFeatures(half, times, epochs, float(video.duration), video.warnings)


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    id: str
    source: Source
    progress: Progress
    result: Future[VideoFeatures]


def extract(
    videos: Iterable[tuple[str, Source]],
    store: FeatureStore,
    backbone: Backbone,
    config: ExtractConfig | None = None,
) -> Generator[Extracted | Failure | Working, None, None]:
    """Bring the features of videos into a store, in the order of the videos.

    Videos in the store are skipped, so an interrupted run continues where it stopped. A video that can't be
    read goes into the store's `failures.jsonl`, the others continue, and the next run tries it again. If the
    iteration stops early, all that was yielded is kept.

    Args:
        videos: Different ids, and sources.
        store: Of this backbone's features.
        backbone: Turns pictures into features.
        config: How much runs in parallel, and how sources are read.

    Yields:
        `Extracted` for each video that is now in the store, `Failure` for each that isn't, and `Working` a
        few times a second.

    Raises:
        ConfigError: The store is of another backbone.
        StoreError: Another process writes to the store, or the disk is full.
    """
    config = config or ExtractConfig()
    if (store.backbone, store.dim) != (backbone.identity, backbone.dim):
        raise ConfigError(f"{store.path}: has features of {store.backbone}, not of {backbone.identity}")
    store.lock()
    todo = {video_id: source for video_id, source in videos if video_id not in store}
    failures = Failures(store.path)
    failures.keep(lambda failure: failure.id not in todo and failure.id not in store)

    stop = threading.Event()
    pool = ThreadPoolExecutor(config.jobs, thread_name_prefix="ongebd-extract")

    def begin(video_id: str, source: Source) -> _Job:
        progress = Progress(stop)
        result = pool.submit(video_features, source, backbone, store.fps, config, progress)
        return _Job(video_id, source, progress, result)

    waiting = iter(todo.items())
    done = frames = 0
    try:
        # One more than `jobs`: no thread is idle while a result is stored. More would only fill the memory.
        jobs = deque(begin(*video) for video in islice(waiting, config.jobs + 1))
        while jobs:
            while not wait([jobs[0].result], timeout=_LOOK_EVERY).done:
                yield Working(
                    frames + sum(job.progress.frames for job in jobs),
                    done + sum(job.progress.fraction for job in jobs),
                )
            jobs.extend(begin(*video) for video in islice(waiting, 1))
            job = jobs.popleft()
            outcome = _finish(job, store, failures)
            done, frames = done + 1, frames + job.progress.frames
            yield outcome
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _finish(job: _Job, store: FeatureStore, failures: Failures) -> Extracted | Failure:
    """Store a job's result, or record why there is none."""
    name = public_name(source_name(job.source))
    try:
        video = job.result.result()
    except ONE_VIDEOS_FAULT as problem:
        failure = Failure.of(job.id, name, problem)
        failures.add(failure)
        return failure
    store.add(job.id, video.features, video.times, video.epochs, video.duration, name)
    return Extracted(job.id, name, len(video.times), video.duration, video.warnings)


def _check(feature: Feature, frame: Frame, name: str) -> None:
    """Refuse what no model can learn from, in the stream's own words, and what float16 can't hold."""
    largest = float(np.abs(feature).max())
    if 0.0 < largest < _LARGEST:
        return
    where = f"{name}: frame {frame.index} at {float(frame.time):.3f} s"
    if np.isfinite(largest) and largest > 0:
        raise FeatureError(f"{where}: the feature reaches {largest:.3g}, more than float16 holds")
    what = "norm zero" if largest == 0.0 else "NaN or infinity in it"
    raise FeatureError(f"{where}: the feature has {what}; check the backbone's weights")
