"""From many videos to a store: the frames, the sampling and the features of the stream."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice

import av.error
import numpy as np

from ongebd.backbones import Backbone
from ongebd.backbones.pipeline import frame_features
from ongebd.common.geometry import Fit, Squash
from ongebd.common.text import public_name
from ongebd.errors import ConfigError, FeatureError, SourceError
from ongebd.features.failures import Failure, Failures
from ongebd.features.store import Features16, FeatureStore
from ongebd.types import Feature, Frame
from ongebd.video import Source, VideoReader, source_name
from ongebd.video.source import advice

ONE_VIDEOS_FAULT = (SourceError, FeatureError, av.error.FFmpegError, OSError)
"""Told of a video, not of the run: the others go on."""

_LOOK_EVERY = 0.25  # seconds between two reports of progress
_LARGEST = 65504.0  # of float16
_ROWS = 256  # features that are put together at once


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractConfig:
    """How videos are read and worked on. None of it but `fps`, which the store holds, changes a feature."""

    jobs: int = 1
    """Videos worked on at once, each decoded in a thread of its own."""

    workers: int = 1
    """Calls of the backbone under way at once, for each video."""

    batch: int = 1
    """Frames in one call of the backbone: 1 for a CPU, some tens for a GPU."""

    stream: int | None = None
    """Which video stream of a source, from 0, cover art not counted."""

    source_fps: float | Fraction | None = None
    """Frames a second of sources without timestamps; None takes the store's rate, as `ongebd detect` does."""

    def __post_init__(self) -> None:
        for name in ("jobs", "workers", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be 1 or more, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """The features of one video, in memory.

    Attributes:
        features: float16, shape (T, D).
        times: Seconds since the first frame of the source, T of them.
        epochs: How often its clock or format had broken before each frame.
        duration: Seconds from the first frame to the end of the last one decoded.
        warnings: What a user ought to know of the source, one line each.
    """

    features: Features16
    times: list[float]
    epochs: list[int]
    duration: float
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Extracted:
    """A video is in the store.

    Attributes:
        id: The video's.
        source: Its source, without credentials.
        frames: T, the frames that were sampled.
        duration: Seconds.
        warnings: What a user ought to know of the source, one line each.
    """

    id: str
    source: str
    frames: int
    duration: float
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Working:
    """Nothing new, but work goes on.

    Attributes:
        frames: Frames done so far in this run.
        videos: Videos done so far in this run, those under way counted as far as they are.
    """

    frames: int
    videos: float


def sampling_identity(backbone: Backbone) -> str:
    """How frames are chosen and brought to the backbone's size, in words: a part of the store's header."""
    slots = "the first frame in each slot of 1/fps s, slots beginning a quarter early"
    match backbone.view:
        case Fit(short_side):
            return f"{slots}; bicubic to a shorter side of {short_side}, centre {backbone.input_size}"
        case Squash(width, height):
            return f"{slots}; the whole picture, bicubic to {width} × {height}"


def video_features(
    source: Source,
    backbone: Backbone,
    fps: float,
    config: ExtractConfig | None = None,
    under_way: UnderWay | None = None,
) -> VideoFeatures:
    """The features of one video, as the stream sees them, rounded to float16.

    Args:
        source: What `VideoReader` takes.
        backbone: From pictures to features.
        fps: Frames a second to sample to.
        config: Everything else.
        under_way: Told of each frame, and asked whether to stop.

    Raises:
        SourceError: The source cannot be opened, or nothing of it decoded.
        FeatureError: A feature is NaN, infinite, zero, or too large for float16; it names the frame.
        Stopped: `under_way` asked for it.
    """
    config, under_way = config or ExtractConfig(), under_way or UnderWay(threading.Event())
    times: list[float] = []
    epochs: list[int] = []
    rows: list[Feature] = []
    blocks: list[Features16] = []
    source_fps = fps if config.source_fps is None else config.source_fps
    with VideoReader(source, fps, view=backbone.view, stream=config.stream, source_fps=source_fps) as video:
        under_way.expected = video.expected_duration
        with closing(frame_features(video, backbone, config.workers, config.batch)) as features:
            for frame, feature in features:
                _check(feature, frame, public_name(source_name(source)))
                times.append(float(frame.time))
                epochs.append(frame.epoch)
                rows.append(feature)
                if len(rows) == _ROWS:
                    blocks.append(_rounded(rows))
                    rows.clear()
                under_way.saw(frame)
        if video.broken is not None:  # a part would pass for the whole; the next run tries again
            raise SourceError(f"{source_name(source)}: {video.broken}; {advice(source)}")
        blocks.append(_rounded(rows) if rows else np.empty((0, backbone.dim), np.float16))
        return VideoFeatures(np.concatenate(blocks), times, epochs, float(video.duration), video.warnings)


def extract(
    videos: Iterable[tuple[str, Source]],
    store: FeatureStore,
    backbone: Backbone,
    config: ExtractConfig | None = None,
) -> Generator[Extracted | Failure | Working, None, None]:
    """Bring the features of videos into a store, in the order of the videos.

    A video whose id is in the store is passed over, so that a run that was cut off goes on where it was. One
    that cannot be read is recorded in the store's `failures.jsonl`, and the others go on; the next run tries
    it again. Whoever stops the iteration keeps all that was yielded.

    Args:
        videos: Ids, no two the same, and sources.
        store: Of this backbone's features; see `FeatureStore.open_or_create`.
        backbone: From pictures to features.
        config: How much at once, and how sources are read.

    Yields:
        `Extracted` for each video that is now in the store, `Failure` for each that is not, and `Working` a
        few times a second.

    Raises:
        StoreError: The store is of another backbone, is written to by another process, or the disk is full.
    """
    config = config or ExtractConfig()
    if (store.backbone, store.dim) != (backbone.identity, backbone.dim):
        raise ConfigError(f"{store.path}: holds features of {store.backbone}, not of {backbone.identity}")
    store.lock()
    todo = [(video_id, source) for video_id, source in videos if video_id not in store]
    failures = Failures(store.path)
    again = {video_id for video_id, _ in todo}
    failures.keep(lambda failure: failure.id not in again and failure.id not in store)

    stop = threading.Event()
    pool = ThreadPoolExecutor(config.jobs, thread_name_prefix="ongebd-extract")
    try:
        done = frames = 0
        for job in _started(todo, pool, stop, store.fps, backbone, config):
            if isinstance(job, list):
                yield Working(
                    frames + sum(other.state.frames for other in job),
                    done + sum(other.state.fraction for other in job),
                )
                continue
            outcome = _finished(job, store, failures)
            done, frames = done + 1, frames + job.state.frames
            yield outcome
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class Stopped(Exception):  # noqa: N818 - not an error, and told to nobody
    """The run was stopped while this video was worked on."""


class UnderWay:
    """How far a video is. Written by the thread that works on it, read by the one that reports.

    Args:
        stop: Set when the work is to be given up.

    Attributes:
        frames: Frames done.
        seconds: Time of the last one.
        expected: What the container claims to last, in seconds, if it does.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self.frames = 0
        self.seconds = 0.0
        self.expected: float | None = None

    def saw(self, frame: Frame) -> None:
        """One more frame is done.

        Raises:
            Stopped: The work is to be given up.
        """
        if self._stop.is_set():
            raise Stopped
        self.frames += 1
        self.seconds = float(frame.time)

    @property
    def fraction(self) -> float:
        """How much of the video is done, from 0 to 1; 0 where its length is unknown."""
        return min(1.0, self.seconds / self.expected) if self.expected else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    id: str
    source: Source
    state: UnderWay
    result: Future[VideoFeatures] = field(repr=False)


def _started(
    todo: list[tuple[str, Source]],
    pool: ThreadPoolExecutor,
    stop: threading.Event,
    fps: float,
    backbone: Backbone,
    config: ExtractConfig,
) -> Iterator[_Job | list[_Job]]:
    """Each job when it is finished, in order; and those under way, while the first of them is waited for."""

    def begin(video_id: str, source: Source) -> _Job:
        state = UnderWay(stop)
        return _Job(
            video_id, source, state, pool.submit(video_features, source, backbone, fps, config, state)
        )

    waiting = iter(todo)
    # One more than are worked on: no thread idles while a result is stored. More would only fill the memory.
    jobs = deque(begin(*video) for video in islice(waiting, config.jobs + 1))
    while jobs:
        while not wait([jobs[0].result], timeout=_LOOK_EVERY).done:
            yield list(jobs)
        jobs.extend(begin(*video) for video in islice(waiting, 1))
        yield jobs.popleft()


def _finished(job: _Job, store: FeatureStore, failures: Failures) -> Extracted | Failure:
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


def _rounded(rows: list[Feature]) -> Features16:
    return np.stack(rows).astype(np.float16)


def _check(feature: Feature, frame: Frame, name: str) -> None:
    """Refuse what no model can learn from, in the stream's own words, and what float16 cannot hold."""
    largest = float(np.abs(feature).max())
    if 0.0 < largest < _LARGEST:
        return
    where = f"{name}: frame {frame.index} at {float(frame.time):.3f} s"
    if largest == 0.0:
        raise FeatureError(f"{where}: the feature has norm zero; check the backbone's weights")
    if not np.isfinite(largest):
        raise FeatureError(f"{where}: the feature has NaN or infinity in it; check the backbone's weights")
    raise FeatureError(f"{where}: the feature reaches {largest:.3g}, more than float16 holds")
