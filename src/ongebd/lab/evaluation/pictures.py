"""The pictures of a report: F1 against threshold, F1 against allowed delay, a histogram of delays."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ongebd.common.lettering import lettering
from ongebd.common.text import shortened
from ongebd.data.numbers import FloatArray, videos
from ongebd.lab.evaluation.delay import ALLOWED_DELAYS, DELAY_TOLERANCE
from ongebd.lab.evaluation.evaluation import Evaluation
from ongebd.lab.evaluation.figures import RELATIVE_PART
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.evaluation.report_tables import ceiling_name, system_names

# Okabe and Ito's colours, which colour-blind readers can tell apart; each line has its own style or mark too.
_SYSTEMS = ("#0072B2", "#D55E00")
_MARKS = ("o", "s")
_FLOORS = {"clock": ("#E69F00", "--"), "uniform": ("#999999", "-."), "random": ("#999999", ":")}
_CEILING = "#009E73"

PICTURES = ("f1_against_threshold.png", "f1_against_allowed_delay.png", "delays.png")
"""All that a report may have."""


def draw_pictures(evaluation: Evaluation) -> dict[str, bytes]:
    """PNG files by name; those of the delay only where a system says when it decided."""
    figures = dict(zip(PICTURES, (_threshold_figure, _allowed_delay_figure, _delay_histogram), strict=True))
    if all(system.delays is None for system in evaluation.systems):
        figures = {PICTURES[0]: _threshold_figure}
    with lettering(10):
        return {name: _png(draw(evaluation)) for name, draw in figures.items()}


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def _axes(title: str, x: str, y: str, subtitle: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    axes.set_title(subtitle, fontsize=8.5, loc="left", color="#444444")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E5E5E5", linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def _scope(evaluation: Evaluation) -> str:
    system = evaluation.systems[0]
    moment = system.predictions.moment
    return f"n = {videos(len(system.comparison))} ({evaluation.labels.dataset}); {moment} scored"


def _short(name: str) -> str:
    short = shortened(name, 34)
    return f" {short}" if short.startswith("_") else short  # matplotlib hides labels that begin so


def _threshold_figure(evaluation: Evaluation) -> Figure:
    figure, axes = _axes(
        "F1 against threshold", "threshold (fraction of the video's length)", "F1", _scope(evaluation)
    )
    first = evaluation.systems[0]
    for human, style in zip(first.humans, ("-", "--"), strict=False):
        axes.plot(
            THRESHOLDS, human.f1[RELATIVE_PART], color=_CEILING, linestyle=style, label=ceiling_name(human)
        )
    for name, system, colour, mark in zip(
        system_names(evaluation), evaluation.systems, _SYSTEMS, _MARKS, strict=False
    ):
        f1, drawn = system.scores.f1[RELATIVE_PART], system.samples.f1[:, RELATIVE_PART]
        axes.plot(THRESHOLDS, f1, color=colour, marker=mark, linewidth=2, label=_short(name))
        if len(drawn):
            low, high = _percentiles(drawn)
            axes.fill_between(THRESHOLDS, low, high, color=colour, alpha=0.18, linewidth=0)
    for floor in first.floors:
        colour, style = _FLOORS[floor.name]
        detail = f" ({floor.figures['average'].detail})" if floor.name == "clock" else ""
        axes.plot(
            THRESHOLDS,
            floor.curve[RELATIVE_PART],
            color=colour,
            linestyle=style,
            label=f"floor: {floor.name}{detail}",
        )
    axes.set_ylim(0, 1.02)
    axes.set_xticks(THRESHOLDS)
    axes.legend(fontsize=8, loc="lower right", frameon=True, framealpha=0.9, edgecolor="none")
    return figure


def _percentiles(drawn: FloatArray) -> tuple[Sequence[float], Sequence[float]]:
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return low.tolist(), high.tolist()


def _allowed_delay_figure(evaluation: Evaluation) -> Figure:
    figure, axes = _axes(
        "F1 against the allowed delay",
        "allowed delay after the annotated boundary (seconds)",
        f"F1 at ± {DELAY_TOLERANCE:g} s",
        f"{_scope(evaluation)}; only boundaries decided in time count",
    )
    places = range(len(ALLOWED_DELAYS) + 1)
    for name, system, colour, mark in zip(
        system_names(evaluation), evaluation.systems, _SYSTEMS, _MARKS, strict=False
    ):
        if system.within_delay is None or system.within_delay_samples is None:
            continue
        axes.plot(places, system.within_delay.f1, color=colour, marker=mark, linewidth=2, label=_short(name))
        if len(system.within_delay_samples.f1):
            low, high = _percentiles(system.within_delay_samples.f1)
            axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
    colour, style = _FLOORS["clock"]
    first = evaluation.systems[0]
    detail = first.floors[0].figures["absolute 0.5"].detail
    axes.plot(
        places, first.clock_within_delay, color=colour, linestyle=style, label=f"floor: clock ({detail})"
    )
    axes.set_xticks(list(places), [*(f"{seconds:g}" for seconds in ALLOWED_DELAYS), "no limit"])
    axes.set_ylim(0, 1.02)
    axes.legend(fontsize=8, loc="upper left", frameon=True, framealpha=0.9, edgecolor="none")
    return figure


def _delay_histogram(evaluation: Evaluation) -> Figure:
    figure, axes = _axes(
        "When the boundaries were decided",
        "decided − annotated boundary (seconds; below 0: before the annotated moment)",
        "matched detections",
        f"{_scope(evaluation)}; matched at ± {DELAY_TOLERANCE:g} s",
    )
    shown = [
        (name, system.delays, colour)
        for name, system, colour in zip(system_names(evaluation), evaluation.systems, _SYSTEMS, strict=False)
        if system.delays is not None
    ]
    all_delays = np.concatenate(
        [[-DELAY_TOLERANCE, DELAY_TOLERANCE], *(delays.seconds for _, delays, _ in shown)]
    )
    first, last = int(np.floor(all_delays.min() * 10)), int(np.floor(all_delays.max() * 10)) + 1
    bins = [step / 10 for step in range(first, last + 1)]
    for place, (name, delays, colour) in enumerate(shown):
        median = delays.percentile(50)
        label = f"{_short(name)} (n = {len(delays.seconds)})"
        axes.hist(
            delays.seconds, bins=bins, color=colour, alpha=0.55, edgecolor="white", linewidth=0.5, label=label
        )
        if median is not None:
            axes.axvline(median, color=colour, linestyle=("-", "--")[place], label=f"median {median:+.2f} s")
    axes.axvline(0, color="black", linewidth=1)
    axes.margins(y=0.3)  # room for the legend
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=8, loc="upper right", frameon=True, framealpha=0.9, edgecolor="none")
    return figure
