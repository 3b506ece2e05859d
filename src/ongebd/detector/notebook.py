"""A detection as HTML for notebooks: its curve, pictures of its strongest boundaries, and a table of them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from ongebd.common.text import printable
from ongebd.detector.segments import strength
from ongebd.detector.trace import Snapshot, Trace, jpeg, pooled
from ongebd.types import Boundary, Decision

_STRONGEST, _MANY, _LETTERS = 10, 60, 500
_WIDTH, _HEIGHT, _FOOT = 900, 150, 20  # of the curve, and of the times below it; units of the SVG
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)
# In the middle of the scale of brightness, so that they stand out from white and from black.
_SCORE, _THRESHOLD, _BOUNDARY = "#2a86d1", "#d9701a", "#1d9a74"
_CELL = 'style="text-align:right;padding:2px 10px"'


def html_of(
    summary: str,
    warnings: Sequence[str],
    decisions: Sequence[Decision],
    boundaries: Sequence[Boundary],
    shots: Sequence[Snapshot],
) -> str:
    """One element, of less than 200 kB, that suits light and dark pages. All text from outside is escaped."""
    parts = [f"<p>{_text(summary)}</p>", *(f"<p>⚠ {_text(warning)}</p>" for warning in warnings[:3])]
    parts += [*_curve(decisions, boundaries), *_pictures(shots), *_table(boundaries)]
    return f'<div style="max-width:{_WIDTH}px;font:13px/1.4 sans-serif">{"".join(parts)}</div>'


def _text(text: str) -> str:
    return escape(printable(text[:_LETTERS]))


def _clock(seconds: float) -> str:
    """`12.34 s`; from two minutes on `0:02:00.00`."""
    seconds = round(seconds, 2)
    if seconds < 120:
        return f"{seconds:.2f} s"
    return f"{seconds // 3600:.0f}:{seconds // 60 % 60:02.0f}:{seconds % 60:05.2f}"


def _curve(decisions: Sequence[Decision], boundaries: Sequence[Boundary]) -> Iterator[str]:
    """Score, threshold and boundaries over time."""
    trace = Trace()
    for decision in decisions:
        trace.add(decision)
    points = trace.points()
    numbers = np.stack([points[name] for name in ("time", "error", "threshold")])
    points = points[np.isfinite(numbers).all(axis=0)]
    if not len(points):
        return
    begin, end = float(points["time"].min()), float(points["time"].max())
    points = pooled(points, -(-len(points) // _WIDTH))
    across = _WIDTH / ((end - begin) or 1.0)
    top = 1.05 * max(float(points["error"].max()), float(np.percentile(points["threshold"], 98)), 0.01)
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
            label = _clock(float(mark)).replace(".00", "")
            yield f'<text x="{at:.1f}" y="{_HEIGHT + 15}" font-size="12" fill="currentColor">{label}</text>'
    places = ((one.time - begin) * across for one in boundaries)
    lines = sorted({round(at) for at in places if 0 <= at <= _WIDTH})
    foot = _HEIGHT if len(boundaries) <= _MANY else _HEIGHT // 15  # short, so that they don't hide the curve
    yield f'<path d="{"".join(f"M{at} 0v{foot}" for at in lines)}" stroke="{_BOUNDARY}"/>'
    for name, style in (("threshold", f'{_THRESHOLD}" stroke-dasharray="4 3'), ("error", _SCORE)):
        y = _HEIGHT * (1 - np.clip(points[name], 0, top) / top)
        yield f'<path d="{_line(x, y)}" stroke="{style}"/>'
    yield "</svg>"
    names = (("score", _SCORE), ("- - threshold", _THRESHOLD), ("boundary", _BOUNDARY))
    yield "<p>" + "".join(f'<b style="color:{colour}">{name}</b> &nbsp; ' for name, colour in names) + "</p>"


def _line(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> str:
    """An SVG path, broken where time goes back."""
    back = np.diff(x, prepend=np.inf) < 0
    return "".join(f"{'M' if new else 'L'}{at:.1f} {up:.1f}" for new, at, up in zip(back, x, y, strict=True))


def _pictures(shots: Sequence[Snapshot]) -> Iterator[str]:
    yield '<div style="display:flex;flex-wrap:wrap;gap:8px">'
    for shot in shots:
        data, time = b64encode(jpeg(shot.picture)).decode(), _clock(shot.boundary.time)
        yield (
            f'<figure style="margin:0"><img src="data:image/jpeg;base64,{data}" alt="at {time}"'
            f' style="display:block;margin:0"><figcaption>{time}</figcaption></figure>'
        )
    yield "</div>"


def _table(boundaries: Sequence[Boundary]) -> Iterator[str]:
    """The strongest boundaries, in order of strength, without columns that say nothing new."""
    strongest = sorted(boundaries, key=lambda one: -strength(one))[:_STRONGEST]
    columns = {"strongest": [str(place) for place in range(1, len(strongest) + 1)]}
    for title, cells in (
        ("time", [_clock(one.time) for one in strongest]),
        ("onset", [_clock(one.onset) for one in strongest]),
        ("known at", [_clock(one.decided) for one in strongest]),
        ("score", [f"{one.score:.3g}" for one in strongest]),
        ("peak", ["" if one.peak is None else f"{one.peak:.3g}" for one in strongest]),
        ("kind", [str(one.kind or "") for one in strongest]),
    ):
        if any(cells) and cells not in columns.values():
            columns[title] = cells
    if strongest:
        yield "<table><tr>" + "".join(f"<th {_CELL}>{title}</th>" for title in columns) + "</tr>"
        for row in zip(*columns.values(), strict=True):
            yield "<tr>" + "".join(f"<td {_CELL}>{_text(cell)}</td>" for cell in row) + "</tr>"
        yield "</table>"
