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
from math import ceil
from typing import Any

from ongebd.detector.model import Model
from ongebd.detector.models import DEFAULT_MODEL, load
from ongebd.errors import import_extra
from ongebd.types import Decision, ImageU8

_Base: Any = import_extra("scenedetect", "peers").SceneDetector

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
        self._detector = loaded.stream(**settings)
        behind = ceil(self._detector.latency * float(self._detector.config.rate())) + 4
        self._recent: deque[tuple[float, Timecode]] = deque(maxlen=behind)

    @property
    def event_buffer_length(self) -> int:
        """How many frames a cut may lie back, at up to four times the sampled rate."""
        return 4 * (self._recent.maxlen or 0) if self._detector.latency else 0

    def process_frame(self, timecode: Timecode, frame_img: ImageU8) -> list[Timecode]:
        """Take the next frame, BGR, uint8, (height, width, 3); the time codes of cuts that are now known."""
        time = Fraction(timecode.seconds)
        if not self._detector.due(time):
            return []
        self._recent.append((float(time), timecode))
        return self._cuts([self._detector.update(frame_img[..., ::-1], time)])

    def post_process(self, _timecode: Timecode) -> list[Timecode]:
        """The cuts that are left at the end."""
        cuts = self._cuts(self._detector.drain())
        self._detector.reset()
        return cuts

    def _cuts(self, decisions: list[Decision]) -> list[Timecode]:
        """The time codes of the recent frames nearest to the onsets."""
        onsets = [decision.time for decision in decisions if decision.onset]
        return [min(self._recent, key=lambda known: abs(known[0] - onset))[1] for onset in onsets]
