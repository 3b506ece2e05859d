"""Figures for a paper: vectors, at the size at which they are printed, readable in grey and for all eyes.

    from ongebd.lab.experiments.figures import draw_video
    draw_video("talk.mp4", "labels.json", "window-mean", "clock", "talk.pdf")

`qualitative`, `error_histograms` and `f1_curves` take values and give a `Picture`, which is saved as PDF, SVG
or PNG.
"""

from ongebd.lab.experiments.figures.command import draw_video
from ongebd.lab.experiments.figures.error_histograms import ErrorHistogram, error_histograms, errors_of
from ongebd.lab.experiments.figures.f1_curves import (
    Band,
    F1Lines,
    f1_curves,
    limits_of_result,
    lines_of_result,
    printed_lines,
)
from ongebd.lab.experiments.figures.qualitative import Curve, Scene, qualitative
from ongebd.lab.experiments.figures.style import Picture, Width
from ongebd.lab.experiments.figures.watching import Watched, pictures_at, watch

__all__ = [
    "Band",
    "Curve",
    "ErrorHistogram",
    "F1Lines",
    "Picture",
    "Scene",
    "Watched",
    "Width",
    "draw_video",
    "error_histograms",
    "errors_of",
    "f1_curves",
    "limits_of_result",
    "lines_of_result",
    "pictures_at",
    "printed_lines",
    "qualitative",
    "watch",
]
