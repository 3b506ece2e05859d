"""All cues of one stream, and their context, which the trees look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError
from ongebd.estimator.cues.appearance import HORIZON_NAMES, WINDOW_NAMES, AppearanceCues
from ongebd.estimator.cues.motion import SIDE, MotionCues
from ongebd.types import Feature

Floats = npt.NDArray[np.float32]

GROUPS: dict[str, tuple[str, ...]] = {
    "horizons": HORIZON_NAMES,
    "windows": WINDOW_NAMES,
    "motion": MotionCues.names,
}
"""The names of the cues in each group, in the order in which groups stand."""

LUMA_DIM = SIDE * SIDE
"""Numbers of a feature that are luma: the last ones."""

CONTEXT = (0, 3, 6, 12)
"""Frames ago."""
LEAST_WEIGHT = 1 - 0.5 ** (1 / 24.0)  # of the newest frame in the running mean: a half-life of 24 frames


def cue_names(groups: Sequence[str] = tuple(GROUPS)) -> tuple[str, ...]:
    """The names of the cues of some groups, in their order.

    >>> len(cue_names()), cue_names(["motion"])[0]
    (111, 'motion 1: camera')
    """
    unknown = [group for group in groups if group not in GROUPS]
    if unknown or not groups:
        raise ConfigError(f"cues: unknown {', '.join(unknown) or 'nothing'}; there are {', '.join(GROUPS)}")
    return tuple(name for group, names in GROUPS.items() if group in groups for name in names)


class CueStream:
    """The cues of one stream, whose state it owns.

    Args:
        dim: D, numbers in a feature, luma included: those of the backbone `efficientnet_lite0_whole`.
        groups: Of `GROUPS`; what is not asked for is not computed, nor kept.

    Attributes:
        names: Of the cues, in their order.
    """

    def __init__(self, dim: int, groups: Sequence[str] = tuple(GROUPS)) -> None:
        if dim <= LUMA_DIM:
            raise ConfigError(f"cues: features of {dim} numbers have no luma of {SIDE} × {SIDE} behind them")
        self.names = cue_names(groups)
        self._network_dim = dim - LUMA_DIM
        kept = [place for place, name in enumerate(AppearanceCues.names) if name in self.names]
        self._kept: npt.NDArray[np.intp] = np.array(kept, np.intp)
        self._appearance = AppearanceCues(self._network_dim) if kept else None
        self._motion = MotionCues() if "motion" in groups else None

    @property
    def state_bytes(self) -> int:
        """Bytes kept of the stream; they do not grow with it."""
        return sum(part.state_bytes for part in (self._appearance, self._motion) if part is not None)

    def reset(self) -> None:
        """Forget everything."""
        for part in (self._appearance, self._motion):
            if part is not None:
                part.reset()

    def update(self, feature: Feature) -> npt.NDArray[np.float32]:
        """Take the next frame's feature, float32, (D,); the cues, float32, (C,)."""
        parts: list[npt.NDArray[np.float32]] = []
        if self._appearance is not None:
            parts.append(self._appearance.update(feature[: self._network_dim])[self._kept])
        if self._motion is not None:
            parts.append(self._motion.update(feature[self._network_dim :]))
        return np.concatenate(parts)


def context_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of a head's inputs, from those of the cues."""
    lagged = (f"{name}, {lag} ago" if lag else name for lag in CONTEXT for name in names)
    return (*lagged, *(f"{name}, above its mean" for name in names))


class Context:
    """The cues of one stream now, 3, 6 and 12 frames ago, and now less their mean before this frame.

    Before there are so many frames, the first one's are used. The mean is exponential, with a half-life of 24
    frames; it begins with the first cues, and weighs the early ones evenly.

    Args:
        cues: C, how many there are.
    """

    def __init__(self, cues: int) -> None:
        self._past: Floats = np.empty((max(CONTEXT) + 1, cues), np.float32)
        self._mean: Floats = np.empty(cues, np.float32)
        self._seen = 0

    @property
    def state_bytes(self) -> int:
        """Of past cues and their mean."""
        return self._past.nbytes + self._mean.nbytes

    def reset(self) -> None:
        """Forget everything."""
        self._seen = 0

    def update(self, cues: Floats) -> Floats:
        """Take the next frame's, float32, (C,); what the head sees, (5 C,), named by `context_names`."""
        now = self._seen
        self._seen += 1
        self._past[now % len(self._past)] = cues
        if not now:
            self._mean[:] = cues
        above = cues - self._mean
        weight = np.float32(max(LEAST_WEIGHT, 1 / (now + 2)))
        self._mean += weight * above
        lagged = self._past[[max(now - lag, 0) % len(self._past) for lag in CONTEXT]]
        return np.concatenate([lagged.reshape(-1), above])


def cue_matrix(features: Iterable[Feature], groups: Sequence[str] = tuple(GROUPS)) -> npt.NDArray[np.float32]:
    """The cues of a whole stream.

    Args:
        features: Of its frames, in order, float32 or float16, (D,) each; at least one.
        groups: Of `GROUPS`.

    Returns:
        float32, (T, C), the columns being `cue_names(groups)`.
    """
    cues: CueStream | None = None
    rows: list[npt.NDArray[np.float32]] = []
    for feature in features:
        cues = cues or CueStream(len(feature), groups)
        rows.append(cues.update(np.asarray(feature, np.float32)))
    if not rows:
        raise ConfigError("cues: there are no features")
    return np.stack(rows)
