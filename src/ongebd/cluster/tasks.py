"""What a worker does with one video. Nothing here knows of Ray."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Protocol

from ongebd import __version__, backbones
from ongebd.backbones import Backbone
from ongebd.detector import Model, SourceRun, StreamConfig, load
from ongebd.detector.openvino import as_asked, asked_runtime
from ongebd.errors import ClusterError, OngebdError
from ongebd.features import ExtractConfig, Failure, VideoFeatures, video_features
from ongebd.features.extract import ONE_VIDEOS_FAULT
from ongebd.output import RunEnd, RunHeader, open_sinks, output_paths
from ongebd.output.follow import Results, follow

_STEM = "result"


@dataclass(frozen=True, slots=True)
class Video:
    """One video of a job.

    Attributes:
        number: Its place in the job, from 0.
        id: Its name in the results, which no other video of the job has.
        source: As the user named it.
    """

    number: int
    id: str
    source: str


@dataclass(frozen=True, slots=True)
class Found:
    """The boundaries of one video, as files.

    Attributes:
        files: What the writers wrote, by format; none if the source was refused before its first frame.
        end: How the run ended; None if there are no files.
        failed: Why it did not come to the end of its source, in one line; None if it did.
    """

    files: dict[str, bytes]
    end: RunEnd | None
    failed: str | None


Result = VideoFeatures | Found | Failure
Work = Callable[[Video], Result]


class Task(Protocol):
    """What is done with each video. It is pickled and sent to the workers."""

    def ready(self) -> Work:
        """Load the model, once in a worker.

        Raises:
            OngebdError: It cannot be loaded here, or is another one.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class FeatureTask:
    """The features of each video; see `ongebd extract`.

    Attributes:
        backbone: Name of the backbone.
        identity: What the backbone must be, weights included: that of the store.
        fps: Frames a second to sample to.
        weights: Checkpoint of the backbone, where it needs one; a path that every worker can read.
        device: Where it computes: `cpu` or `cuda`.
        precision: In what.
        config: How sources are read and how much at once.
    """

    backbone: str
    identity: str
    fps: float
    weights: Path | None = None
    device: str = "cpu"
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    config: ExtractConfig = field(default_factory=ExtractConfig)

    def ready(self) -> Work:
        """Load the backbone.

        Raises:
            ClusterError: Its weights are not those of the store.
            OngebdError: It cannot be loaded here.
        """
        net = backbones.get(self.backbone, weights=self.weights, device=self.device, precision=self.precision)
        if net.identity != self.identity:
            raise ClusterError(f"has {net.identity}, and the store is of {self.identity}; install the same")
        return partial(self._features, net)

    def _features(self, net: Backbone, video: Video) -> VideoFeatures | Failure:
        try:
            return video_features(video.source, net, self.fps, self.config)
        except ONE_VIDEOS_FAULT as problem:
            return Failure.of(video.id, video.source, problem)


@dataclass(frozen=True, kw_only=True, slots=True)
class DetectTask:
    """The boundaries of each video, written in some formats; see `ongebd detect`.

    Attributes:
        model: Name of a model, or the folder of a trained one; a path that every worker can read.
        formats: As in `ongebd.output.FORMATS`.
        identity: What the model's backbone must be, weights included.
        config: Settings; None takes the model's own.
        device: Where a trained model computes; None: on the CPU.
        stream: Which video stream of a source.
        source_fps: Frames a second of sources without timestamps.
        runtime: What runs the networks; None is the model's own way.
        precision: In what they compute.
        workers: Frames that the backbone works on at once.
    """

    model: str
    formats: tuple[str, ...]
    identity: str
    config: StreamConfig | None = None
    device: str | None = None
    stream: int | None = None
    source_fps: float | None = None
    runtime: str | None = None
    precision: str | None = None
    workers: int = 1

    def ready(self) -> Work:
        """Load the model.

        Raises:
            ClusterError: Its backbone is another one.
            OngebdError: It cannot be loaded here.
        """
        model = as_asked(load(self.model, device=self.device), self.runtime, self.precision)
        if model.backbone.identity != self.identity:
            raise ClusterError(f"has {model.backbone.identity}, not {self.identity}; install the same")
        return partial(self._found, model)

    def _found(self, model: Model, video: Video) -> Found:
        with TemporaryDirectory(prefix="ongebd-") as name:
            folder, watcher, failed = Path(name), _Unwatched(), None
            try:
                run = SourceRun(
                    video.source,
                    model,
                    self.config,
                    stream=self.stream,
                    source_fps=self.source_fps,
                    workers=self.workers,
                )
                header = self._header(video.source, model, run)
                results = Results(partial(open_sinks, self.formats, folder, _STEM, header))
                with run:
                    follow(run, results, watcher, video.source)
                failed = run.video.broken
            except OngebdError as problem:
                failed = " ".join(str(problem).split())
            written = zip(self.formats, output_paths(self.formats, folder, _STEM), strict=True)
            files = {what: path.read_bytes() for what, path in written if path.exists()}
        return Found(files, watcher.ended, failed)

    def _header(self, source: str, model: Model, run: SourceRun) -> RunHeader:
        return RunHeader(
            source,
            model.name,
            asdict(model.configured(self.config)),
            run.video.width,
            run.video.height,
            __version__,
            *asked_runtime(self.runtime, self.precision),
        )


class _Unwatched:
    """Nobody looks at a worker; how a run ended is kept."""

    def __init__(self) -> None:
        self.ended: RunEnd | None = None

    def begin(self, source: str, expected_duration: float | None) -> None: ...

    def advance(self, seconds: float) -> None: ...

    def found(self, boundaries: int) -> None: ...

    def drop(self) -> None: ...

    def say(self, line: str) -> None: ...

    def end(self, source: str, end: RunEnd) -> None:
        self.ended = end
