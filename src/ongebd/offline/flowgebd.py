"""FlowGEBD: boundaries from optical flow alone, with nothing learned. Needs OpenCV.

Gothe et al.: What's in the Flow? Exploiting Temporal Motion Cues for Unsupervised Generic Event Boundary
Detection. WACV 2024. Two algorithms, whose boundaries are joined. *Pixel tracking* follows pixels from
frame to frame; where too many are lost, one event ended, and new pixels are taken. *Flow normalisation*
measures the dense flow of each frame in relation to the video's largest; where it peaks is a boundary.
Those close together are one.

Differs: we know of no public code and had the paper's abstract and a review of it, so rate, sizes and
thresholds are ours, as is the dense flow, Farnebäck's. Pixels are corners, tracked by Lucas and Kanade. By
the review a pixel stays while it moves, and patches are tracked too; here one stays while it is found there
and back, in whole frames.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ongebd.errors import import_extra
from ongebd.offline.whole_video import Scores, stride_of

WIDTH, HEIGHT = 112, 84
"""Of the pictures that it looks at."""
FPS = 8.0
"""Frames a second that it looks at."""
KEPT = 0.5
"""Share of the pixels that must be left."""
PEAK = 0.5
"""Of the largest flow."""
APART = 0.5
"""Seconds between two boundaries."""
_STILL = 0.1  # pixels a frame: a video that never moves further has no peaks
_FEW = 8  # pixels; with fewer there is nothing to follow


def score_video(features: npt.NDArray[np.float32], fps: float) -> Scores:
    """1 for the boundaries, 0 for the other frames, from pictures as `Pictures` gives them, (T, D)."""
    cv2 = import_extra("cv2", "peers")
    stride, out = stride_of(fps, FPS), np.zeros(len(features))
    shape = HEIGHT, WIDTH, 3
    grey = [
        cv2.cvtColor((each - 1.0).astype(np.uint8).reshape(shape), cv2.COLOR_RGB2GRAY)
        for each in features[::stride]
    ]
    near = max(1, round(APART * fps / stride))
    last = -near
    for frame in sorted({*lost(cv2, grey), *peaks(flows(cv2, grey), near)}):
        if frame - last >= near:
            out[stride * frame] = 1.0
            last = frame
    return out


def lost(cv2: Any, grey: list[npt.NDArray[np.uint8]]) -> list[int]:
    """The frames in which too many of the pixels that were followed are gone."""
    found, points, begun = [], None, 0
    for number, (before, now) in enumerate(pairwise(grey), 1):
        if points is None:
            points = cv2.goodFeaturesToTrack(before, 200, 0.01, 4)
            begun = 0 if points is None else len(points)
        if points is None or begun < _FEW:
            points = None
            continue
        new, there, _ = cv2.calcOpticalFlowPyrLK(before, now, points, None, winSize=(11, 11), maxLevel=2)
        again, back, _ = cv2.calcOpticalFlowPyrLK(now, before, new, None, winSize=(11, 11), maxLevel=2)
        kept = (there & back)[:, 0].astype(bool) & (np.abs(again - points).max(axis=(1, 2)) < 1.0)
        points = new[kept]
        if len(points) < KEPT * begun:
            found.append(number)
            points = None
    return found


def flows(cv2: Any, grey: list[npt.NDArray[np.uint8]]) -> Scores:
    """The mean length of each frame's dense flow, in pixels, (T,)."""
    lengths = [0.0]
    for before, now in pairwise(grey):
        flow = cv2.calcOpticalFlowFarneback(before, now, None, 0.5, 3, 15, 3, 5, 1.2, 0)
        lengths.append(float(np.linalg.norm(flow, axis=-1).mean()))
    return np.array(lengths)


def peaks(lengths: Scores, near: int) -> list[int]:
    """The frames whose flow is highest among `near` on either side, and more than half of the largest."""
    if lengths.max(initial=0.0) < _STILL:
        return []
    share = lengths / lengths.max()
    around = [share[max(0, place - near) : place + near + 1].max() for place in range(len(share))]
    return np.flatnonzero((share > PEAK) & (share == around)).tolist()
