"""What a worker does with one video. Nothing here knows of Ray."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Protocol

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.detector import Model, load
from ongebd.detector.openvino import as_asked
from ongebd.errors import ClusterError, OngebdError
from ongebd.features import ExtractConfig, Failure, VideoFeatures, video_features
from ongebd.features.extract import ONE_VIDEOS_FAULT
from ongebd.output import RunEnd, open_writers, output_paths
from ongebd.output.follow import Reading, detect_source

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
        device: Where a trained model computes; None: on the CPU.
        reading: How sources are read and judged.
    """

    model: str
    formats: tuple[str, ...]
    identity: str
    reading: Reading
    device: str | None = None

    def ready(self) -> Work:
        """Load the model.

        Raises:
            ClusterError: Its backbone is another one.
            OngebdError: It cannot be loaded here.
        """
        model = as_asked(load(self.model, device=self.device), self.reading.runtime, self.reading.precision)
        if model.backbone.identity != self.identity:
            raise ClusterError(f"has {model.backbone.identity}, not {self.identity}; install the same")
        return partial(self._found, model)

    def _found(self, model: Model, video: Video) -> Found:
        with TemporaryDirectory(prefix="ongebd-") as name:
            folder, failed = Path(name), None
            ends: list[RunEnd] = []
            try:
                failed = detect_source(
                    video.source,
                    model,
                    replace(self.reading, workers=1),
                    partial(open_writers, self.formats, folder, _STEM),
                    lambda *_: None,
                    ends.append,
                )
            except OngebdError as problem:
                failed = " ".join(str(problem).split())
            written = zip(self.formats, output_paths(self.formats, folder, _STEM), strict=True)
            files = {what: path.read_bytes() for what, path in written if path.exists()}
        return Found(files, ends[0] if ends else None, failed)
