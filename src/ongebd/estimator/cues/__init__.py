"""Cues: a few numbers a frame that tell how much, and in what way, a stream has just changed.

They are errors of many horizons and motion. None tells what is seen, so what is learned on them learns
nothing of appearance.

**The start of a stream.** One rule holds for all: the frames before the first do not exist. A mean is over
those of its frames that exist; a frame, or a mean of frames, that lies wholly before the first one is the
first frame.

All of it is arithmetic on arrays of fixed shape with a fixed history, without a branch on a value: a batch of
streams is the same with one more axis in front.
"""

from ongebd.estimator.cues.appearance import AppearanceCues
from ongebd.estimator.cues.motion import MotionCues
from ongebd.estimator.cues.stream import (
    CONTEXT,
    GROUPS,
    Context,
    CueStream,
    context_names,
    cue_matrix,
    cue_names,
)

__all__ = [
    "CONTEXT",
    "GROUPS",
    "AppearanceCues",
    "Context",
    "CueStream",
    "MotionCues",
    "context_names",
    "cue_matrix",
    "cue_names",
]
