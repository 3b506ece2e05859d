"""The picture of a report: F1 against threshold."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

from ongebd.common.lettering import lettering
from ongebd.common.text import shortened
from ongebd.data.files import videos
from ongebd.lab.evaluation.floors import ceiling_name
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.evaluation.report_tables import system_names
from ongebd.lab.evaluation.report_values import Values, systems_in

# Okabe and Ito's colours, which colour-blind readers can tell apart; each line has its own style or mark too.
_STYLES = (("#0072B2", "o"), ("#D55E00", "s"))
_FLOORS = {"clock": ("#E69F00", "--"), "uniform": ("#999999", "-."), "random": ("#999999", ":")}
_CEILING = "#009E73"


def draw_threshold_picture(report: Values) -> bytes:
    """F1 of systems, floors and annotators at the official thresholds, as PNG."""
    with lettering(10):
        figure = Figure(figsize=(7.5, 4.8), layout="constrained")
        axes = figure.add_subplot()
        figure.suptitle("F1 against threshold", fontsize=12, x=0.02, ha="left")
        scope = f"n = {videos(report['n'])} ({report['labels']['dataset']}); {report['scored']} scored"
        axes.set_title(scope, fontsize=8.5, loc="left", color="#444444")
        axes.set_xlabel("threshold (fraction of the video's length)")
        axes.set_ylabel("F1")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#E5E5E5", linewidth=0.7)
        axes.set_axisbelow(True)
        for (human, each), line in zip(report["human"].items(), ("-", "--"), strict=False):
            f1 = list(each["curve"]["relative"].values())
            axes.plot(THRESHOLDS, f1, color=_CEILING, linestyle=line, label=ceiling_name(human))
        named = zip(system_names(report), systems_in(report), _STYLES, strict=False)
        for name, system, (colour, mark) in named:
            rows = [system["relative"][str(threshold)] for threshold in THRESHOLDS]
            # A space keeps matplotlib from hiding names that begin with "_".
            label = f" {shortened(name, 34)}" if name.startswith("_") else shortened(name, 34)
            f1 = [row["f1"] for row in rows]
            axes.plot(THRESHOLDS, f1, color=colour, marker=mark, linewidth=2, label=label)
            intervals = [row["f1_interval"] for row in rows]
            if None not in intervals:
                low, high = zip(*intervals, strict=True)
                axes.fill_between(THRESHOLDS, low, high, color=colour, alpha=0.18, linewidth=0)
        for floor, each in report["floors"].items():
            colour, line = _FLOORS[floor]
            detail = f" ({each['figures']['average']['detail']})" if floor == "clock" else ""
            f1 = list(each["curve"]["relative"].values())
            axes.plot(THRESHOLDS, f1, color=colour, linestyle=line, label=f"floor: {floor}{detail}")
        axes.set_ylim(0, 1.02)
        axes.set_xticks(THRESHOLDS)
        axes.legend(fontsize=8, loc="lower right", frameon=True, framealpha=0.9, edgecolor="none")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
        return buffer.getvalue()
