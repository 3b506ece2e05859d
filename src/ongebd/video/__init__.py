"""Everything that touches PyAV: sources, clocks, sampling, upright frames.

>>> from ongebd.video import VideoReader
>>> with VideoReader("talk.mp4", fps=24, short_side=256) as video:  # doctest: +SKIP
...     for frame in video:
...         print(float(frame.time), frame.rgb.shape)
"""

from ongebd.video.reader import VideoReader
from ongebd.video.source import Source, source_name

__all__ = ["Source", "VideoReader", "source_name"]
