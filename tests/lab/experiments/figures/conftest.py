"""What every figure must keep: letters inside the picture, none of them too small, none over another."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ongebd.lab.evaluation.figure_style import print_style

SMALLEST = 6.0  # points


@pytest.fixture(scope="session")
def check_letters() -> Callable[[Figure], None]:
    return _check_letters


@pytest.fixture(scope="session")
def texts_of() -> Callable[[Figure], list[str]]:
    """All lines of text in a figure."""
    return lambda figure: [text.get_text() for text in _written(figure)]


def _written(figure: Figure) -> list[Text]:
    """All texts that are to be seen."""
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def _check_letters(figure: Figure) -> None:
    """Refuse letters that are cut off, too small, or written over others."""
    with print_style():
        FigureCanvasAgg(figure).draw()
        renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        boxes = {text: text.get_window_extent(renderer) for text in _written(figure)}
        axes_of_ticks = [
            _shown_ticks(axis, boxes) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)
        ]
    every_tick = {
        text
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.majorTicks, *axis.minorTicks)
        for text in (tick.label1, tick.label2)
    }
    free = [text for text in boxes if text not in every_tick]
    shown = [*free, *itertools.chain(*axes_of_ticks)]
    assert free
    for text in shown:
        words, box = text.get_text(), boxes[text]
        assert float(text.get_fontsize()) >= SMALLEST, words
        inside = (
            box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1
        )
        assert inside, f"{words!r} is cut off: {box}"
    for group in (free, *axes_of_ticks):
        for one, other in itertools.combinations(group, 2):
            first, second = boxes[one], boxes[other]
            across = min(first.x1, second.x1) - max(first.x0, second.x0)
            up = min(first.y1, second.y1) - max(first.y0, second.y0)
            assert across <= 0.5 or up <= 0.5, f"{one.get_text()!r} is over {other.get_text()!r}"


def _shown_ticks(axis: Axis, boxes: dict[Text, Bbox]) -> list[Text]:
    """The numbers of an axis that are drawn: matplotlib also keeps some that were beyond its ends once."""
    along = 0 if axis.axis_name == "x" else 1
    first, last = axis.axes.bbox.min[along] - 1, axis.axes.bbox.max[along] + 1
    labels = [tick.label1 for tick in axis.get_major_ticks()]
    return [
        label
        for label in labels
        if label in boxes and first <= (boxes[label].min[along] + boxes[label].max[along]) / 2 <= last
    ]
