"""The strip of thumbnails above the curve, each tied to its place on the time axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch

from ongebd.output.naming import clock
from ongebd.output.trace import Snapshot

TOP = 0.835  # of the pictures, as a part of the figure's height; their times stand above
TALLEST, WIDEST = 0.15, 0.125  # picture, as parts of the figure's height and width
GAP, TIES = 0.008, 0.06  # between two pictures; between pictures and axes
BARE = 0.86  # top of the axes where there are no pictures


class Strip:
    """Pictures in a row, as near above their boundaries' centres as they go without overlap.

    Attributes:
        foot: Where the axes below may end, as a part of the figure's height.
    """

    def __init__(self, figure: Figure, snapshots: Sequence[Snapshot], left: float, right: float) -> None:
        self._figure = figure
        self._snapshots = snapshots
        self._left, self._right = left, right
        self._room = figure.get_figwidth() / figure.get_figheight()
        self._width = self._height = 0.0
        self.foot = BARE
        if snapshots:
            aspects = [shot.picture.shape[0] / shot.picture.shape[1] for shot in snapshots]  # height / width
            share = (right - left + GAP) / len(snapshots) - GAP
            self._width = min(TALLEST / min(aspects) / self._room, WIDEST, share)
            self._height = min(self._width * self._room * max(aspects), TALLEST)
            self.foot = TOP - self._height - TIES

    def draw(self, axes: Axes, colour: str) -> None:
        """Draw the pictures and tie them to the time axis of `axes`."""
        if not self._snapshots:
            return
        start, last = axes.get_xlim()
        across = self._right - self._left
        wanted = [
            self._left + across * (shot.boundary.time - start) / (last - start) for shot in self._snapshots
        ]
        low, high = self._left + self._width / 2, self._right - self._width / 2
        middles = spread(wanted, self._width + GAP, low, high)
        for shot, middle in zip(self._snapshots, middles, strict=True):
            self._draw_one(axes, shot, float(middle), colour)

    def _draw_one(self, axes: Axes, shot: Snapshot, middle: float, colour: str) -> None:
        aspect = shot.picture.shape[0] / shot.picture.shape[1]
        height = min(self._width * self._room * aspect, self._height)
        width = height / aspect / self._room
        foot = TOP - self._height
        picture = self._figure.add_axes((middle - width / 2, foot, width, height))
        picture.imshow(shot.picture, interpolation="antialiased", aspect="auto")
        picture.set(xticks=[], yticks=[])
        picture.spines[:].set(color=colour, linewidth=1.2)
        time = shot.boundary.time
        caption = _caption(time, axes.get_xlim()[1])
        self._figure.text(middle, foot + height + 0.008, caption, ha="center", va="bottom", fontsize=12)
        tie = ConnectionPatch(
            xyA=(middle, foot),
            coordsA=self._figure.transFigure,
            xyB=(time, 1.0),
            coordsB=axes.get_xaxis_transform(),
            color=colour,
            linewidth=1.2,
        )
        self._figure.add_artist(tie)


def _caption(time: float, last: float) -> str:
    if last < 120:
        return f"{time:.2f} s"
    text = clock(time, digits=1 if last < 3600 else 0)
    return text if last >= 3600 else text.removeprefix("0:").removeprefix("0")


def spread(wanted: Sequence[float], distance: float, low: float, high: float) -> npt.NDArray[np.float64]:
    """Move sorted places apart to at least `distance`, within [low, high], each as little as can be.

    The least sum of squared moves is an isotonic regression of `wanted[i] − i·distance`: neighbours that
    collide share the mean of what they want.

    Example:
        >>> spread([1.0, 5.0, 5.0, 5.2], 1.0, 0.0, 6.0).round(2).tolist()
        [1.0, 4.0, 5.0, 6.0]
    """
    steps = np.arange(len(wanted)) * distance
    blocks: list[tuple[float, int]] = []  # mean and size
    for want in np.asarray(wanted, dtype=np.float64) - steps:
        mean, size = float(want), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (mean * size + before * count) / (size + count), size + count
        blocks.append((mean, size))
    fitted = np.concatenate([np.full(size, mean) for mean, size in blocks])
    placed: npt.NDArray[np.float64] = np.clip(fitted, low, max(low, high - steps[-1])) + steps
    return placed
