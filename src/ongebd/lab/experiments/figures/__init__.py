"""Figures for a paper: vector files at their printed size, readable in grey and by the colour-blind.

from ongebd.lab.experiments.figures import draw_video
draw_video("talk.mp4", "labels.json", "window-mean", "clock", ["talk.pdf"])
"""

from ongebd.lab.experiments.figures.video import draw_video

__all__ = ["draw_video"]
