"""River's drift detectors as heads: they look for a change of the scores' distribution. Needs `river`.

Their defaults are made for streams of thousands of values, and never fire on the few dozen errors of an
event; those here are ours, and every one can be set: `page-hinkley:threshold=0.5`.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Self

from ongebd.errors import ConfigError, FeatureError, MissingExtraError

_SETTINGS: dict[str, dict[str, float | int]] = {
    "adwin": {"delta": 0.05, "clock": 1, "min_window_length": 4, "grace_period": 8},
    "page-hinkley": {"min_instances": 8, "delta": 0.005, "threshold": 0.2, "alpha": 1 - 1e-4},
    "kswin": {"alpha": 0.005, "window_size": 30, "stat_size": 8, "seed": 0},
}
# What each may be. River itself checks little of it, and fails at the first score or never fires.
_RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "adwin": {
        "delta": (1e-12, 1),
        "clock": (1, 100_000),
        "min_window_length": (1, 100_000),
        "grace_period": (0, 100_000),
    },
    "page-hinkley": {
        "min_instances": (1, 100_000),
        "delta": (-1e9, 1e9),
        "threshold": (0, 1e9),
        "alpha": (0, 1),
    },
    "kswin": {
        "alpha": (0, 1),
        "window_size": (2, 10_000),
        "stat_size": (1, 5_000),
        "seed": (0, 2**32 - 1),
    },
}
_CLASSES = {"adwin": "ADWIN", "page-hinkley": "PageHinkley", "kswin": "KSWIN"}


class DriftHead:
    """A head around one of river's drift detectors, which start anew by themselves after each drift.

    A drift makes one positive frame, and so a boundary. Drifts to *lower* scores are no boundaries.

    Args:
        name: "adwin", "page-hinkley" or "kswin".
        settings: Of that detector, all of them; see this module.

    Raises:
        ConfigError: A setting is outside its range.
        MissingExtraError: River is not installed.
    """

    def __init__(self, name: str, settings: dict[str, float | int]) -> None:
        try:
            from river import drift
        except ModuleNotFoundError as problem:
            raise MissingExtraError.of(problem.name, "peers") from None
        self._class: Any = getattr(drift, _CLASSES[name])
        self._settings: dict[str, Any] = {**_checked(name, settings)}
        if name == "page-hinkley":
            self._settings["mode"] = "up"
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._detector = self._class(**self._settings)
        self.is_boundary = self.ready = False
        self.z = self.mean = self.std = self.threshold = 0.0
        self._count = 0
        self._average = self._spread = 0.0

    def update(self, score: float, /) -> Self:
        """Take the next score; `z` is the score in standard deviations from those since the last drift."""
        score = float(score)
        if not abs(score) <= 1e150:
            raise FeatureError(f"a score must be a number of at most 1e150, not {score}")
        self.mean = self._average
        self.std = sqrt(self._spread / self._count) if self._count else 0.0
        self.z = max(-1e9, min((score - self.mean) / self.std, 1e9)) if self.std > 0 else 0.0
        self.threshold = max(score, self.mean)
        self._detector.update(score)
        drifted = bool(self._detector.drift_detected)
        self.is_boundary = drifted and score > self.mean
        self.ready = True
        if drifted:
            self._count, self._average, self._spread = 0, 0.0, 0.0
        self._count += 1  # Welford's running mean and sum of squared distances from it
        above = score - self._average
        self._average += above / self._count
        self._spread += above * (score - self._average)
        return self


def make_drift_head(name: str, settings: str) -> DriftHead:
    """A drift detector as a head.

    Args:
        name: One of `ongebd.detector.heads.DRIFT_HEADS`.
        settings: `name=value` pairs with commas between; the rest is as in this module.

    Raises:
        ConfigError: A setting is unknown, no number or outside its range.
        MissingExtraError: River is not installed.
    """
    values = dict(_SETTINGS[name])
    for pair in filter(None, settings.split(",")):
        key, _, text = pair.partition("=")
        if key not in values:
            raise ConfigError(f"head {name}: unknown setting {key!r}; there are {', '.join(values)}")
        try:
            values[key] = int(text) if isinstance(values[key], int) else float(text)
        except ValueError:
            raise ConfigError(f"head {name}: {key} must be a number, not {text!r}") from None
    return DriftHead(name, values)


def _checked(name: str, settings: dict[str, float | int]) -> dict[str, float | int]:
    """The settings, once it is known that the detector works with them."""
    for key, (least, most) in _RANGES[name].items():
        value = settings[key]
        if not least <= value <= most:
            raise ConfigError(f"head {name}: {key} must lie between {least:g} and {most:g}, not at {value}")
    if name == "kswin" and settings["window_size"] < 2 * settings["stat_size"]:
        raise ConfigError(
            f"head {name}: window_size ({settings['window_size']}) must be at least twice stat_size"
            f" ({settings['stat_size']}): the newest scores are held against as many of the others"
        )
    return settings
