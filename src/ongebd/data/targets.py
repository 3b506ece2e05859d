"""Which frames are boundaries: from an annotator's times to a target for each frame."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from ongebd.data.label_set import VideoLabels
from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError

LabelRule = Literal["exact", "near"]
LABEL_RULES: tuple[LabelRule, ...] = get_args(LabelRule)

NEAR = 0.15
"""Seconds: the rule of the original GEBD baseline, and the "near" rule's default."""

BoolArray = npt.NDArray[np.bool_]


def chosen_annotator(video: VideoLabels) -> FloatArray:
    """The boundaries to train on: those of the annotator who agrees best with the others, else the first's.

    Returns:
        Seconds, shape (number of boundaries,), sorted.
    """
    return np.sort(video.boundaries[video.most_consistent or 0])


def frame_targets(
    times: FloatArray, boundaries: FloatArray, rule: LabelRule = "exact", tolerance: float = NEAR
) -> BoolArray:
    """y_t for each frame. The paper does not say which of the two rules it used.

    Args:
        times: Seconds of each frame, rising, shape (T,).
        boundaries: Seconds; those before the first or after the last frame have none, and are passed over.
        rule: "exact": the frame nearest to a boundary, the earlier of two as near. "near": all frames within
            `tolerance` of one.
        tolerance: Seconds, for "near".

    Returns:
        Shape (T,).

    Raises:
        ConfigError: No such rule, or a negative tolerance.

    >>> times = np.arange(6) / 10
    >>> np.flatnonzero(frame_targets(times, np.array([0.26]))).tolist()
    [3]
    >>> np.flatnonzero(frame_targets(times, np.array([0.26]), "near")).tolist()
    [2, 3, 4]
    """
    if rule not in LABEL_RULES:
        raise ConfigError(f"label_rule must be one of {', '.join(LABEL_RULES)}, not {rule!r}")
    if not tolerance >= 0:
        raise ConfigError(f"near must be at least 0 seconds, not {tolerance}")
    targets = np.zeros(len(times), np.bool_)
    if not len(times):
        return targets
    inside = boundaries[(boundaries >= times[0]) & (boundaries <= times[-1])]
    if rule == "exact":
        after = np.searchsorted(times, inside)  # the first frame at or after each boundary
        before = np.maximum(after - 1, 0)
        earlier = np.abs(times[before] - inside) <= np.abs(times[after] - inside)
        targets[np.where(earlier, before, after)] = True
        return targets
    for boundary in inside:
        targets |= np.abs(times - boundary) <= tolerance
    return targets
