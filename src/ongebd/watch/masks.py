"""Masks: parts of a camera's picture on which no decision may depend."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Polygons = tuple[tuple[tuple[float, float], ...], ...]
"""Each a tuple of at least three corners (x, y), from 0 (left, top) to 1."""
Bools = npt.NDArray[np.bool_]


class Masks:
    """Tells which pixels of a picture are hidden.

    Attributes:
        polygons: What is hidden; may be replaced at any time.
    """

    def __init__(self, polygons: Polygons = ()) -> None:
        self.polygons = polygons
        self._made: tuple[object, Bools] | None = None

    def __call__(self, width: int, height: int, edge: float) -> Bools | None:
        """Which pixels, (height, width), are at most `edge` pixels from a polygon; None if there is none."""
        polygons = self.polygons
        if not polygons:
            return None
        asked = polygons, width, height, edge
        if self._made is None or self._made[0] != asked:
            self._made = asked, _inside(polygons, width, height, edge)
        return self._made[1]


def _inside(polygons: Polygons, width: int, height: int, edge: float) -> Bools:
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    inside = np.zeros((height, width), bool)
    for polygon in polygons:
        corners = [(x * width, y * height) for x, y in polygon]
        winding = np.zeros((height, width), int)
        for (ax, ay), (bx, by) in zip(corners, (*corners[1:], corners[0]), strict=True):
            right, down = bx - ax, by - ay
            side = right * (y - ay) - down * (x - ax)
            winding += (ay <= y) & (y < by) & (side > 0)
            winding -= (by <= y) & (y < ay) & (side < 0)
            along = ((x - ax) * right + (y - ay) * down) / max(right**2 + down**2, 1e-9)
            along = np.clip(along, 0, 1)
            inside |= np.hypot(x - ax - along * right, y - ay - along * down) <= edge
        inside |= winding != 0
    return inside
