"""What a picture needs of a run, in memory that does not grow with the video: its curve, its best frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from av.video.reformatter import ColorRange

from ongebd.detector.segments import strength
from ongebd.types import Boundary, Decision, ImageU8

THUMBNAIL = (160, 120)
"""The box that a thumbnail fits into: width and height, pixels."""

Points = npt.NDArray[Any]
"""A record for each point of the curve: `time` in seconds, `error`, `threshold`, `ready`, `positive`."""

_POINT = np.dtype([("time", "f8"), ("error", "f8"), ("threshold", "f8"), ("ready", "?"), ("positive", "?")])


class Trace:
    """Collects decisions; beyond `limit` points, each point represents 2, 4, 8… frames.

    Args:
        limit: The largest number of points of finished blocks.
        block: Frames that are collected before they become points; a power of 2.
    """

    def __init__(self, limit: int = 1 << 18, block: int = 4096) -> None:
        self._limit, self._block = limit, block
        self._stride = 1  # frames per point
        self._points: Points = np.empty(0, _POINT)
        self._new: list[tuple[float, float, float, bool, bool]] = []

    def add(self, decision: Decision) -> None:
        """Add the next frame's decision."""
        point = (decision.time, decision.error, decision.threshold, decision.ready, decision.is_boundary)
        self._new.append(point)
        if len(self._new) == self._block:
            self._points, self._new = self.points(), []
            while len(self._points) > self._limit:
                self._points = pooled(self._points, 2)
                self._stride *= 2

    def points(self) -> Points:
        """What was collected, up to `limit` + `block` points."""
        return np.concatenate([self._points, pooled(np.array(self._new, _POINT), self._stride)])


def pooled(points: Points, size: int) -> Points:
    """Keep the point with the largest error of every `size` points, so that no peak is lost."""
    if size <= 1 or not len(points):
        return points
    starts = np.arange(0, len(points), size)
    errors = np.full(len(starts) * size, -np.inf)
    errors[: len(points)] = points["error"]
    strongest: Points = points[starts + errors.reshape(-1, size).argmax(axis=1)]
    strongest["positive"] = np.logical_or.reduceat(points["positive"], starts)
    return strongest


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A boundary and a small picture of the frame at its onset."""

    boundary: Boundary
    picture: ImageU8 = field(repr=False)


class Album:
    """Keeps the pictures of the `size` strongest boundaries."""

    def __init__(self, size: int = 72) -> None:
        self._size = size
        self._onsets: dict[float, ImageU8] = {}  # pictures whose boundary is not decided yet
        self._best: list[Snapshot] = []  # the strongest first

    def onset(self, time: float, picture: ImageU8) -> None:
        """Take the picture of an onset at `time` seconds."""
        self._onsets[time] = picture
        if len(self._onsets) > 3:  # runs that an epoch interrupted never become boundaries
            del self._onsets[next(iter(self._onsets))]

    def boundary(self, boundary: Boundary) -> None:
        """Match a boundary with the picture of its onset."""
        told = boundary.onset if boundary.onset in self._onsets else boundary.onset_known
        picture = None if told is None else self._onsets.pop(told, None)
        if picture is not None:
            self._best.append(Snapshot(boundary, picture))
            self._best.sort(key=lambda snapshot: -strength(snapshot.boundary))
            del self._best[self._size :]

    def snapshots(self, wanted: Sequence[Boundary], most: int | None = 9) -> list[Snapshot]:
        """The pictures of the strongest of the wanted boundaries, by time; None: of all."""
        among = set(wanted)
        best = [snapshot for snapshot in self._best if snapshot.boundary in among][:most]
        return sorted(best, key=lambda snapshot: snapshot.boundary.time)


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


def jpeg(rgb: ImageU8, quality: int = 4) -> bytes:
    """A picture as a JPEG file; `quality` on FFmpeg's scale from 2 (best) to 31."""
    height, width, _ = rgb.shape
    writer = av.CodecContext.create("mjpeg", "w")
    writer.width, writer.height, writer.pix_fmt = width, height, "yuvj420p"
    writer.time_base, writer.options = Fraction(1, 25), {"qmin": str(quality), "qmax": str(quality)}
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), "rgb24")
    frame = frame.reformat(format="yuvj420p", dst_color_range=ColorRange.JPEG)
    return b"".join(bytes(packet) for packet in (*writer.encode(frame), *writer.encode(None)))
