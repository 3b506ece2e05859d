"""Our detectors inside PySceneDetect: `scenedetect.detect(path, EventDetector())`. Needs `scenedetect`.

    from scenedetect import detect, split_video_ffmpeg
    from ongebd.detector.scene_detector import EventDetector

    events = detect("talk.mp4", EventDetector())
    split_video_ffmpeg("talk.mp4", events)

So PySceneDetect's outputs (lists, EDL, OTIO, HTML, split files) come with events instead of shots.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from importlib import import_module
from math import ceil
from typing import Any

from ongebd.detector.model import Model
from ongebd.detector.models import DEFAULT_MODEL, load
from ongebd.errors import MissingExtraError
from ongebd.types import Decision, ImageU8

try:
    _Base: Any = import_module("scenedetect").SceneDetector
except ModuleNotFoundError as problem:
    raise MissingExtraError.of(problem.name, "peers") from None

Timecode = Any  # scenedetect.FrameTimecode


class EventDetector(_Base):  # type: ignore[misc]  # scenedetect has no types
    """A `scenedetect.SceneDetector` that cuts at the onset of each event.

    Args:
        model: The name of a model, or a loaded one.
        **settings: Settings of the stream by name, as in `StreamConfig`.
    """

    def __init__(self, model: str | Model = DEFAULT_MODEL, **settings: Any) -> None:
        super().__init__()
        loaded = load(model) if isinstance(model, str) else model
        self._name = loaded.name
        self._detector = loaded.stream(**settings)
        behind = ceil(self._detector.latency * float(self._detector.config.rate())) + 4
        self._recent: deque[tuple[float, Timecode]] = deque(maxlen=behind)

    @property
    def event_buffer_length(self) -> int:
        """How many frames a cut may lie back, at up to four times the sampled rate."""
        return 4 * (self._recent.maxlen or 0) if self._detector.latency else 0

    def get_metrics(self) -> list[str]:
        """The names of the values that it gives to a `StatsManager`."""
        return [f"{self._name}_error", f"{self._name}_threshold"]

    def process_frame(self, timecode: Timecode, frame_img: ImageU8) -> list[Timecode]:
        """Take the next frame, BGR, uint8, (height, width, 3); the time codes of cuts that are now known."""
        time = Fraction(timecode.seconds)
        if not self._detector.due(time):
            return []
        self._recent.append((float(time), timecode))
        return self._cuts([self._detector.update(frame_img[..., ::-1], time)])

    def post_process(self, timecode: Timecode) -> list[Timecode]:
        """The cuts that are left at the end."""
        del timecode
        cuts = self._cuts(self._detector.drain())
        self._detector.reset()
        return cuts

    def _cuts(self, decisions: list[Decision]) -> list[Timecode]:
        cuts = []
        for decision in decisions:
            nearest = self._nearest(decision.time)
            if self.stats_manager is not None and not decision.pending:
                values = dict(zip(self.get_metrics(), (decision.error, decision.threshold), strict=True))
                self.stats_manager.set_metrics(nearest, values)
            if decision.onset:
                cuts.append(nearest)
        return cuts

    def _nearest(self, time: float) -> Timecode:
        """The time code of the recent frame nearest to a time in seconds."""
        return min(self._recent, key=lambda known: abs(known[0] - time))[1]
