"""PySceneDetect's shot detectors (scenedetect.com), with their own settings. Needs `scenedetect`."""

from __future__ import annotations

from collections import deque
from typing import Any

from ongebd.baselines.pictures import Pictures
from ongebd.errors import import_extra
from ongebd.types import Feature

LATENCY = {"adaptive": 2, "content": 15, "hash": 0, "histogram": 0, "threshold": 0}
"""Frames that each looks ahead, as it declares itself (a test checks this)."""

PICTURES = Pictures(256, 144)
"""What they look at: `scenedetect` itself scales pictures down to a width of 256 pixels."""


def class_name(kind: str) -> str:
    """Of a detector in `scenedetect`."""
    return f"{kind.capitalize()}Detector"


class PySceneDetect:
    """A scorer (`ongebd.detector.detector.Scorer`): 1 for the first frame of a new shot, else 0.

    It sees the frames that the stream samples, numbered at the stream's rate; its minimum length of a shot is
    its own 15 frames. The latency is what the detector declares as its buffer: two frames for the adaptive
    one, fifteen for the one by content, which merges cuts that are close together.

    Args:
        kind: One of `LATENCY`.
        fps: Frames a second of the stream.
    """

    def __init__(self, kind: str, fps: float) -> None:
        scenedetect = import_extra("scenedetect", "peers")
        self.name = f"scenedetect-{kind}"
        self._fps = fps
        self._class: Any = getattr(scenedetect, class_name(kind))
        self._timecode: Any = scenedetect.FrameTimecode
        self._held: deque[float] = deque()
        self.reset()
        self.latency = int(self._detector.event_buffer_length)
        self.state_bytes = PICTURES.dim + 8 * self.latency  # of the last picture, of which some keep less

    def reset(self) -> None:
        """Begin with a new detector."""
        self._detector: Any = self._class()
        self._held.clear()
        self._count = 0

    def update(self, feature: Feature, time: float) -> float | None:
        """Whether a shot begins `latency` frames before this one, given as one of `PICTURES`."""
        del time
        picture = PICTURES.picture_of(feature)[..., ::-1].copy()  # BGR
        self._held.append(0.0)
        self._count += 1
        self._mark(self._detector.process_frame(self._newest(), picture))
        return self._held.popleft() if len(self._held) > self.latency else None

    def flush(self) -> list[float | None]:
        """Whether one begins at each of the last frames."""
        if self._count:
            self._mark(self._detector.post_process(self._newest()))
        left: list[float | None] = list(self._held)
        self._held.clear()
        return left

    def _newest(self) -> Any:
        return self._timecode(self._count - 1, self._fps)

    def _mark(self, cuts: list[Any]) -> None:
        """Note the cuts that the detector found."""
        for cut in cuts:
            back = self._count - 1 - int(cut.frame_num)
            if 0 <= back < len(self._held):
                self._held[-1 - back] = 1.0
