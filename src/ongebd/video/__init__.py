"""Everything that touches PyAV: sources, clocks, sampling, upright frames.

>>> from ongebd.video import VideoReader
>>> with VideoReader("talk.mp4", fps=24, short_side=256) as video:  # doctest: +SKIP
...     for frame in video:
...         print(float(frame.time), frame.rgb.shape)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ongebd.video.prefetch import prefetch
    from ongebd.video.reader import VideoReader
    from ongebd.video.source import Source, source_name

# Where each name lives. Imported when first used: who reads stored features needs no PyAV.
_HOMES = {
    "Source": "ongebd.video.source",
    "VideoReader": "ongebd.video.reader",
    "prefetch": "ongebd.video.prefetch",
    "source_name": "ongebd.video.source",
}

__all__ = ["Source", "VideoReader", "prefetch", "source_name"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ongebd.video' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
