"""Our detectors inside of PySceneDetect: `scenedetect.detect(path, EventDetector())`. Needs `scenedetect`.

    from scenedetect import detect, split_video_ffmpeg
    from ongebd.detector.scene_detector import EventDetector

    events = detect("talk.mp4", EventDetector())
    split_video_ffmpeg("talk.mp4", events)

So its outputs (lists, EDL, OTIO, HTML, split files) come with events in place of shots.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from importlib import import_module
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from ongebd.detector.config import StreamConfig
from ongebd.detector.models import DEFAULT_MODEL, Model, load
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.types import Boundary, Decision, ImageU8
from ongebd.video.timing import Sampler

try:
    _Base: Any = import_module("scenedetect").SceneDetector
except ModuleNotFoundError as problem:
    raise MissingExtraError.of(problem.name, "peers") from None

if TYPE_CHECKING:
    Timecode = Any  # scenedetect.FrameTimecode

CUTS: tuple[str, ...] = ("onset", "centre")


class EventDetector(_Base):  # type: ignore[misc]  # scenedetect has no types
    """A `scenedetect.SceneDetector` that cuts where an event begins.

    It samples the frames that it is given to the model's rate, and keeps none but the times of the last few.

    Args:
        model: The name of a model, or a loaded one.
        config: Settings of the stream; what is None takes the model's own value.
        cut: At which frame: "onset", the first positive one, known at once; or "centre", the frame nearest to
            the middle of the positive ones, which the paper scores.
        **settings: Single settings by name, as in `StreamConfig`.

    Raises:
        ConfigError: A setting is unknown or outside its range.
    """

    def __init__(
        self,
        model: str | Model = DEFAULT_MODEL,
        config: StreamConfig | None = None,
        *,
        cut: Literal["onset", "centre"] = "onset",
        **settings: Any,
    ) -> None:
        super().__init__()
        if cut not in CUTS:
            raise ConfigError(f"cut must be one of {', '.join(CUTS)}, not {cut!r}")
        loaded = load(model) if isinstance(model, str) else model
        self._cut = cut
        self._detector = loaded.stream(config, **settings)
        self._name = loaded.name
        self._sampler = Sampler(self._detector.config.rate())
        seconds = self._detector.latency + (self._detector.config.max_run or 0.0)
        # Frames of which a cut may still be told: those of a whole run and of the look-ahead, and a few more.
        self._behind = ceil(float(self._sampler.fps) * seconds) + 4
        self._recent: deque[tuple[float, Timecode]] = deque(maxlen=self._behind)

    @property
    def event_buffer_length(self) -> int:
        """How many frames a cut may lie back, at twice the sampled rate and above it at most."""
        return 4 * self._behind if self._cut == "centre" or self._detector.latency else 0

    def get_metrics(self) -> list[str]:
        """The names of the values that it gives to a `StatsManager`."""
        return [f"{self._name}_error", f"{self._name}_threshold"]

    def process_frame(self, timecode: Timecode, frame_img: ImageU8) -> list[Timecode]:
        """Take the next frame; the time codes of cuts that are now known.

        Args:
            timecode: Of the frame.
            frame_img: BGR, uint8, (height, width, 3).
        """
        time = Fraction(timecode.seconds)
        if not self._sampler.take(time):
            return []
        self._recent.append((float(time), timecode))
        decision = self._detector.update(frame_img[..., ::-1], time)
        return self._cuts(decision)

    def post_process(self, timecode: Timecode) -> list[Timecode]:
        """The cuts that are left at the end."""
        del timecode
        cuts = [cut for decision in self._detector.drain() for cut in self._cuts(decision)]
        while (boundary := self._detector.flush()) is not None:
            cuts += self._centre(boundary)
        self._detector.reset()
        self._sampler.restart()
        return cuts

    def _cuts(self, decision: Decision) -> list[Timecode]:
        if self.stats_manager is not None and not decision.pending:
            values = dict(zip(self.get_metrics(), (decision.error, decision.threshold), strict=True))
            self.stats_manager.set_metrics(self._nearest(decision.time), values)
        if self._cut == "onset":
            return [self._nearest(decision.time)] if decision.onset else []
        return [] if decision.boundary is None else self._centre(decision.boundary)

    def _centre(self, boundary: Boundary) -> list[Timecode]:
        return [self._nearest(boundary.time)] if self._cut == "centre" else []

    def _nearest(self, time: float) -> Timecode:
        """The time code of the recent frame nearest to a time in seconds."""
        return min(self._recent, key=lambda known: abs(known[0] - time))[1]
