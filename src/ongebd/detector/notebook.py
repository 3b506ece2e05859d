"""A detection as HTML for notebooks: its curve, pictures of its strongest boundaries, and a table of them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from ongebd.common.text import printable
from ongebd.detector.segments import strength
from ongebd.detector.trace import Points, Snapshot, Trace, jpeg, pooled
from ongebd.types import Boundary, Decision, ImageU8

_STRONGEST, _MANY, _LETTERS = 10, 60, 500
_WIDTH, _HEIGHT, _FOOT = 900, 150, 20  # of the curve, and of the times below it; units of the SVG
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)
# In the middle of the scale of brightness, so that they stand out from white and from black.
_SCORE, _THRESHOLD, _BOUNDARY = "#2a86d1", "#d9701a", "#1d9a74"
_NAMES = (("score", _SCORE), ("- - threshold", _THRESHOLD), ("boundary", _BOUNDARY))
LEGEND = "<p>" + "".join(f'<b style="color:{colour}">{name}</b> &nbsp; ' for name, colour in _NAMES) + "</p>"
_CELL = 'style="text-align:right;padding:2px 10px"'


def html_of(
    summary: str,
    warnings: Sequence[str],
    decisions: Sequence[Decision],
    boundaries: Sequence[Boundary],
    shots: Sequence[Snapshot],
) -> str:
    """One element, of less than 200 kB, that suits light and dark pages. All text from outside is escaped."""
    trace = Trace()
    for decision in decisions:
        trace.add(decision)
    points = finite(trace.points())
    parts = [f"<p>{escaped(summary)}</p>", *(f"<p>⚠ {escaped(warning)}</p>" for warning in warnings[:3])]
    if len(points):
        begin, end = float(points["time"].min()), float(points["time"].max())
        parts += [*curve(points, boundaries, begin, end, highest(points)), LEGEND]
    parts += [*_pictures(shots), *_table(boundaries)]
    return f'<div style="max-width:{_WIDTH}px;font:13px/1.4 sans-serif">{"".join(parts)}</div>'


def escaped(text: str) -> str:
    """Text from outside."""
    return escape(printable(text[:_LETTERS]))


def spoken_time(seconds: float) -> str:
    """`12.34 s`; from two minutes on `0:02:00.00`."""
    seconds = round(seconds, 2)
    if seconds < 120:
        return f"{seconds:.2f} s"
    return f"{seconds // 3600:.0f}:{seconds // 60 % 60:02.0f}:{seconds % 60:05.2f}"


def finite(points: Points) -> Points:
    """The points that can be drawn."""
    numbers = np.stack([points[name] for name in ("time", "error", "threshold")])
    kept: Points = points[np.isfinite(numbers).all(axis=0)]
    return kept


def highest(points: Points) -> float:
    """The top of the curves of these points."""
    usual = float(np.percentile(points["threshold"], 98)) if len(points) else 0.0
    return 1.05 * max(float(points["error"].max(initial=0.0)), usual, 0.01)


def curve(
    points: Points, boundaries: Sequence[Boundary], begin: float, end: float, top: float
) -> Iterator[str]:
    """Score, threshold and boundaries from `begin` to `end` seconds, as an SVG picture."""
    points = pooled(points, -(-len(points) // _WIDTH))
    across = _WIDTH / ((end - begin) or 1.0)
    x = (points["time"] - begin) * across
    yield (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}" style="width:100%" fill="none" stroke-width="1.2"'
        ' role="img" aria-label="score, threshold and boundaries over time">'
    )
    step = next((step for step in _STEPS if (end - begin) / step <= 8), (end - begin) / 8)
    later = (np.floor(begin / step) + 1 + np.arange(9)) * step
    marks = [begin, *later[(later > begin) & (later < end)]]
    for mark in marks:
        at = (mark - begin) * across
        yield f'<path d="M{at:.1f} 0v{_HEIGHT}" stroke="currentColor" opacity=".15"/>'
        if at == 0 or 80 < at < 0.93 * _WIDTH:
            label = spoken_time(float(mark)).replace(".00", "")
            yield f'<text x="{at:.1f}" y="{_HEIGHT + 15}" font-size="12" fill="currentColor">{label}</text>'
    places = ((one.time - begin) * across for one in boundaries)
    lines = sorted({round(at) for at in places if 0 <= at <= _WIDTH})
    foot = _HEIGHT if len(lines) <= _MANY else _HEIGHT // 15  # short, so that they don't hide the curve
    yield f'<path d="{"".join(f"M{at} 0v{foot}" for at in lines)}" stroke="{_BOUNDARY}"/>'
    for name, style in (("threshold", f'{_THRESHOLD}" stroke-dasharray="4 3'), ("error", _SCORE)):
        y = _HEIGHT * (1 - np.clip(points[name], 0, top) / top)
        yield f'<path d="{_line(x, y)}" stroke="{style}"/>'
    yield "</svg>"


def _line(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> str:
    """An SVG path, broken where time goes back."""
    back = np.diff(x, prepend=np.inf) < 0
    return "".join(f"{'M' if new else 'L'}{at:.1f} {up:.1f}" for new, at, up in zip(back, x, y, strict=True))


def image(picture: ImageU8, alt: str) -> str:
    """A picture with its bytes in it."""
    data = b64encode(jpeg(picture)).decode()
    return f'<img src="data:image/jpeg;base64,{data}" alt="{alt}" style="display:block;margin:0">'


def _pictures(shots: Sequence[Snapshot]) -> Iterator[str]:
    yield '<div style="display:flex;flex-wrap:wrap;gap:8px">'
    for shot in shots:
        time = spoken_time(shot.boundary.time)
        picture = image(shot.picture, f"at {time}")
        yield f'<figure style="margin:0">{picture}<figcaption>{time}</figcaption></figure>'
    yield "</div>"


def _table(boundaries: Sequence[Boundary]) -> Iterator[str]:
    """The strongest boundaries, in order of strength, without columns that say nothing new."""
    strongest = sorted(boundaries, key=lambda one: -strength(one))[:_STRONGEST]
    columns = {"strongest": [str(place) for place in range(1, len(strongest) + 1)]}
    for title, cells in (
        ("time", [spoken_time(one.time) for one in strongest]),
        ("onset", [spoken_time(one.onset) for one in strongest]),
        ("known at", [spoken_time(one.decided) for one in strongest]),
        ("score", [f"{one.score:.3g}" for one in strongest]),
        ("peak", ["" if one.peak is None else f"{one.peak:.3g}" for one in strongest]),
        ("kind", [str(one.kind or "") for one in strongest]),
    ):
        if any(cells) and cells not in columns.values():
            columns[title] = cells
    if strongest:
        yield "<table><tr>" + "".join(f"<th {_CELL}>{title}</th>" for title in columns) + "</tr>"
        for row in zip(*columns.values(), strict=True):
            yield "<tr>" + "".join(f"<td {_CELL}>{escaped(cell)}</td>" for cell in row) + "</tr>"
        yield "</table>"
