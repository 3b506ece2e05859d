"""A picture of a whole run, for a slide: the error, its threshold, the boundaries and what was seen there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import av
import numpy as np

from ongebd.output.base import QuietSink, RunEnd, RunHeader, writing
from ongebd.output.trace import Album, Trace
from ongebd.types import Boundary, Decision, Epoch, Frame, ImageU8

THUMBNAIL = (160, 120)
"""The box in pixels, width and height, that a thumbnail fits into."""


class PlotSink(QuietSink):
    """Collects a run and, when it is closed, draws it into a PNG of 1600 × 900 pixels.

    Its memory is bounded, however long the video is. Matplotlib is imported when the picture is drawn.
    A picture of an earlier run is removed at once; the new one appears whole or not at all.
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
            self._part.touch()
            self._part.unlink()

    @property
    def _part(self) -> Path:
        return self._path.with_name(f".ongebd-{os.getpid()}-{id(self)}.part")

    def decision(self, frame: Frame, decision: Decision) -> None:
        """Note the frame's error and threshold; at an onset also what it shows."""
        self._trace.add(decision)
        if decision.onset:
            self._album.onset(decision.time, thumbnail(frame.rgb, frame.size))

    def boundary(self, boundary: Boundary) -> None:
        """Note the boundary."""
        self._boundaries.append(boundary)
        self._album.boundary(boundary)

    def epoch(self, epoch: Epoch) -> None:
        """Note the break."""
        self._epochs.append(epoch)

    def close(self, end: RunEnd) -> None:
        """Draw the picture and put it in place."""
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
        with writing(self._path):
            try:
                self._part.write_bytes(png)
                self._part.replace(self._path)
            except BaseException:  # Ctrl-C too
                with contextlib.suppress(OSError):
                    self._part.unlink(missing_ok=True)
                raise


def thumbnail(rgb: ImageU8, shape: tuple[int, int] | None = None) -> ImageU8:
    """Shrink a picture to fit into `THUMBNAIL`; a smaller one stays as it is.

    Args:
        rgb: uint8, (height, width, 3).
        shape: The width and height that it had before it was squashed, if it was.
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
    return (
        frame.reformat(*size, format="rgb24", interpolation="AREA").to_ndarray().astype(np.uint8, copy=False)
    )
