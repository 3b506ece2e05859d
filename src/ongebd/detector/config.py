"""Every setting of a stream, in one place: for the API, the command line and the output's header."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Self

from ongebd.detector.heads import OBD, BoundaryRuns, Head, make_head
from ongebd.errors import ConfigError, a_number, a_whole_number
from ongebd.estimator import BoundaryDiscriminator
from ongebd.video.timing import exact_rate

_NUMBERS = ("fps", "sensitivity", "tau", "min_std", "min_error", "min_gap", "max_run", "threshold", "rearm")
# Whole numbers, and the most that each may be: beyond, a frame would cost seconds or gigabytes.
_WHOLE = {"delta": 100_000, "window": 4096, "warmup": 100_000}


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamConfig:
    """How a stream is sampled and judged. None means the model's own, calibrated value.

    The values in brackets are those of the models named there; others have their own. A head takes the
    settings that it has a use for; the learned models have none for those of window-mean.

    Raises:
        ConfigError: A value is of the wrong type, or far outside what is sensible. (What a model or a head
            cannot work with, it refuses itself, when a stream begins.)
    """

    fps: float | None = None
    """Frames a second that the detector looks at; a slower source gives what it has. [24]"""

    sensitivity: float | None = None
    """Above 0, below 1: the higher, the more boundaries; in place of tau or threshold. [0.5]"""

    tau: float | None = None
    """τ: standard deviations above the mean error that make a boundary; higher: fewer. [window-mean: 2.5]"""

    delta: int | None = None
    """Δ: how many recent errors a new one is compared with (frames, 2 to 100000). [window-mean: 21]"""

    window: int | None = None
    """L: how many past frames the anticipator looks at (1 to 4096). [window-mean: 8]"""

    warmup: int | None = None
    """Errors that must be known before the first test (frames, 2 to delta). [window-mean: 8]"""

    min_std: float | None = None
    """Floor on the standard deviation of the errors, for still pictures. [window-mean: 0.004]"""

    min_error: float | None = None
    """No error at or under this, of at most 1, makes a boundary. [window-mean: 0.02]"""

    min_gap: float | None = None
    """Seconds after a boundary in which weaker ones do not count. [immediate: 0.6; window-mean: 0.5]"""

    max_run: float | None = None
    """Seconds after which a boundary is closed; 0: at its onset. [immediate: 0; window-mean: 1]"""

    head: str | None = None
    """Decides on the scores: hysteresis, obd or threshold. [immediate: hysteresis]"""

    threshold: float | None = None
    """Score above which a frame is positive, for the heads hysteresis and threshold."""

    rearm: float | None = None
    """Share of the threshold below which the score falls between two boundaries. [immediate: 0.75]"""

    inliers_only: bool = False
    """Compare with unremarkable errors only (the paper's ablation, worse in its tables)."""

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            self._take(name, a_number)
        for name, most in _WHOLE.items():
            self._take(name, a_whole_number)
            if (value := getattr(self, name)) is not None and value > most:
                raise ConfigError(f"{name} must be at most {most} frames, not {value}")
        if self.min_error is not None and self.min_error > 1:
            raise ConfigError(f"min_error must be at most 1, the largest error, not {self.min_error}")
        if self.sensitivity is not None and not 0 < self.sensitivity < 1:
            raise ConfigError(f"sensitivity must lie between 0 and 1, not at {self.sensitivity}")
        if self.head is not None and not isinstance(self.head, str):
            raise ConfigError(f"head must be the name of one, not {self.head!r}")
        if not isinstance(self.inliers_only, bool):
            raise ConfigError(f"inliers_only must be True or False, not {self.inliers_only!r}")

    def _take(self, name: str, check: Callable[[str, Any], float]) -> None:
        """Check a setting, and keep it as the plain int or float that it stands for."""
        if (value := getattr(self, name)) is not None:
            object.__setattr__(self, name, check(name, value))

    def filled(self, defaults: Self) -> Self:
        """This configuration, with `defaults` where it has None.

        Of sensitivity on one side, tau and threshold on the other, what is set here holds, and what it stands
        in for is left open.
        """
        missing = {f.name: getattr(defaults, f.name) for f in fields(self) if getattr(self, f.name) is None}
        if self.sensitivity is not None:
            missing = {name: value for name, value in missing.items() if name not in ("tau", "threshold")}
        elif self.tau is not None or self.threshold is not None:
            missing.pop("sensitivity", None)
        return replace(self, **missing)

    def missing(self) -> list[str]:
        """The settings without a value that a stream cannot do without."""
        free = {"head", "threshold", "rearm", "sensitivity"}  # of which the discriminator has no need
        return [f.name for f in fields(self) if f.name not in free and getattr(self, f.name) is None]

    def changed(self, changes: dict[str, Any]) -> Self:
        """A copy with some settings changed.

        Raises:
            ConfigError: A name is unknown.
        """
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
                raise ConfigError(f"unknown setting {name!r}: {hint}")
        return replace(self, **changes)

    def rate(self) -> Fraction:
        """The rate to sample to, in frames a second, exact."""
        return exact_rate(self._value("fps"))

    def discriminator(self) -> BoundaryDiscriminator:
        """A new discriminator with these settings.

        Raises:
            ConfigError: One that it needs has no value, or is out of its range.
        """
        needs = ("tau", "delta", "warmup", "min_std", "min_error")
        if lacking := [name for name in needs if getattr(self, name) is None]:
            raise ConfigError(f"head {OBD} needs a value: set {', '.join(lacking)}")
        return BoundaryDiscriminator(
            self._value("tau"),
            self._value("delta"),
            warmup=self._value("warmup"),
            min_std=self._value("min_std"),
            min_error=self._value("min_error"),
            inliers_only=self.inliers_only,
        )

    def new_head(self) -> Head:
        """A new head with these settings; the discriminator where none is named."""
        return make_head(self.head or OBD, self.discriminator, self.threshold, self.rearm)

    def runs(self) -> BoundaryRuns:
        """A new joiner of positive frames with these settings."""
        return BoundaryRuns(self._value("min_gap"), self._value("max_run"))

    def _value(self, name: str) -> Any:
        value = getattr(self, name)
        if value is None:
            raise ConfigError(f"{name} has no value: use ongebd.load(…).stream(…), or set it")
        return value


def asked_for(config: StreamConfig | None, changes: dict[str, Any]) -> StreamConfig:
    """What a caller asks for: a configuration, if any, with single settings changed.

    Raises:
        ConfigError: It is no configuration, or a setting is unknown or wrong.
    """
    if not isinstance(config, StreamConfig | None):
        raise ConfigError(f"config must be a StreamConfig, not {type(config).__name__}")
    return (config or StreamConfig()).changed(changes)
