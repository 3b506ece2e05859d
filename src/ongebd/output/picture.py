"""A picture of a whole run, for a slide: the error, its threshold, the boundaries and their first frames."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from ongebd.common.writing import write_whole
from ongebd.output.trace import Trace
from ongebd.output.writer import RunEnd, RunHeader, Writer, writing
from ongebd.types import Boundary, Decision, Epoch, Frame, ImageU8

THUMBNAIL = (160, 120)
"""The box that a thumbnail fits into: width and height, pixels."""


class PictureWriter(Writer):
    """Collects a run and, when closed, draws it into a PNG of 1600 × 900 pixels.

    Its memory is bounded, however long the video is. The picture of an earlier run is removed immediately;
    the new one appears whole or not at all.
    """

    def __init__(self, path: str | Path, header: RunHeader) -> None:
        self._path = Path(path)
        self._header = header
        self._trace = Trace()
        self._album = Album()
        self._boundaries: list[Boundary] = []
        self._epochs: list[Epoch] = []
        with writing(self._path):
            self._path.unlink(missing_ok=True)
            self._path.touch()  # refuses a folder that can't be written to before any work
            self._path.unlink()

    def decision(self, frame: Frame, decision: Decision) -> None:
        self._trace.add(decision)
        if decision.onset:
            self._album.onset(decision.time, thumbnail(frame.rgb, frame.size))

    def boundary(self, boundary: Boundary) -> None:
        self._boundaries.append(boundary)
        self._album.boundary(boundary)

    def epoch(self, epoch: Epoch) -> None:
        self._epochs.append(epoch)

    def close(self, end: RunEnd) -> None:
        """Draw the picture and put it in place. Imports matplotlib."""
        from ongebd.output.figure import Scene, render

        scene = Scene(
            header=self._header,
            end=end,
            curves=self._trace.curves(),
            boundaries=self._boundaries,
            epochs=self._epochs,
            snapshots=self._album.snapshots(),
        )
        png = render(scene)
        with writing(self._path), write_whole(self._path) as part:
            part.write_bytes(png)


def thumbnail(rgb: ImageU8, shape: tuple[int, int] | None = None) -> ImageU8:
    """Shrink a picture to fit into `THUMBNAIL`; a smaller one is copied.

    Args:
        rgb: uint8, (height, width, 3).
        shape: Original width and height, if the picture was squashed.
    """
    height, width = rgb.shape[:2]
    if shape is not None:  # the smallest size of that shape that holds the picture
        grow = max(width / shape[0], height / shape[1])
        width, height = (max(1, round(side * grow)) for side in shape)
    scale = min(1.0, THUMBNAIL[0] / width, THUMBNAIL[1] / height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    if size == (rgb.shape[1], rgb.shape[0]):
        return rgb.copy()
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
    small = frame.reformat(*size, format="rgb24", interpolation="AREA").to_ndarray()
    return small.astype(np.uint8, copy=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A boundary and a small picture of the frame at its onset."""

    boundary: Boundary
    picture: ImageU8


class Album:
    """Keeps the pictures of the `size` strongest boundaries."""

    def __init__(self, size: int = 9) -> None:
        self._size = size
        self._onsets: dict[float, ImageU8] = {}  # pictures whose boundary is not decided yet
        self._best: list[tuple[float, int, Snapshot]] = []  # a heap, the weakest first
        self._seen = 0

    def onset(self, time: float, picture: ImageU8) -> None:
        """Take the picture of an onset at `time` seconds."""
        self._onsets[time] = picture
        if len(self._onsets) > 3:  # runs that an epoch interrupted never become boundaries
            del self._onsets[next(iter(self._onsets))]

    def boundary(self, boundary: Boundary) -> None:
        """Match a boundary with the picture of its onset."""
        picture = self._onsets.pop(boundary.onset, None)
        if picture is None:
            return
        self._seen += 1
        heapq.heappush(self._best, (boundary.score, -self._seen, Snapshot(boundary, picture)))
        if len(self._best) > self._size:
            heapq.heappop(self._best)

    def snapshots(self) -> list[Snapshot]:
        """Return the kept pictures in the order of their boundaries' times."""
        return sorted((snapshot for _, _, snapshot in self._best), key=lambda s: s.boundary.time)
