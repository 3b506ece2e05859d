"""The settings of a stream, and which of them each head uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import inf, log2
from typing import Annotated, Any, Literal, Self

from ongebd.common.settings import Range, changed, check_fields
from ongebd.detector.judge import HYSTERESIS, OBD, THRESHOLD, BoundaryRuns, Head, ThresholdHead
from ongebd.errors import ConfigError
from ongebd.estimator.discriminator import BoundaryDiscriminator
from ongebd.video.timing import exact_rate

HEAD_SETTINGS = {
    OBD: ("tau", "delta", "warmup", "min_std", "min_error", "inliers_only"),
    THRESHOLD: ("threshold",),
    HYSTERESIS: ("threshold", "rearm"),
}
"""The settings of each head. It needs them all; no other head uses them."""
KNOBS = ("sensitivity", "tau", "threshold")
"""The settings that may change while a stream runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamConfig:
    """How a stream is sampled and judged. None means the model's own, calibrated value.

    The values in brackets are those of the models named there. A model uses only some of the settings
    (`Model.settings`) and refuses the others.

    Raises:
        ConfigError: A value is of the wrong type or out of range.
    """

    fps: Annotated[float | None, Range(above=0)] = None
    """Frames a second that the detector uses. From a slower source it uses all frames. [24]"""

    sensitivity: Annotated[float | None, Range(above=0, below=1)] = None
    """A number between 0 and 1; higher finds more boundaries. Replaces tau or threshold. [0.5]"""

    tau: Annotated[float | None, Range(above=0)] = None
    """τ: standard deviations above the mean error that make a boundary; higher: fewer. [window-mean: 2.5]"""

    delta: Annotated[int | None, Range(least=2, most=100_000)] = None
    """Δ: how many recent errors a new one is compared with (frames, 2 to 100000). [window-mean: 21]"""

    window: Annotated[int | None, Range(least=1, most=4096)] = None
    """L: how many past frames the anticipator looks at (1 to 4096). [window-mean: 8]"""

    warmup: Annotated[int | None, Range(least=2, most=100_000)] = None
    """Errors that must be known before the first test (frames, 2 to delta). [window-mean: 8]"""

    min_std: Annotated[float | None, Range(least=0)] = None
    """Floor on the standard deviation of the errors, for still pictures. [window-mean: 0.004]"""

    min_error: Annotated[float | None, Range(least=0, most=1)] = None
    """Errors up to this (at most 1) never make a boundary. [window-mean: 0.02]"""

    min_gap: Annotated[float | None, Range(least=0)] = None
    """Seconds after a boundary in which weaker ones are ignored. [immediate: 0.6; window-mean: 0.5]"""

    max_run: Annotated[float | None, Range(least=0)] = None
    """Seconds after which a boundary ends; 0 means at its onset. [immediate: 0; window-mean: 1]"""

    head: Literal["hysteresis", "obd", "threshold"] | None = None
    """How scores become boundaries: hysteresis, obd or threshold. [immediate: hysteresis]"""

    threshold: float | None = None
    """Score above which a frame is positive, for the heads hysteresis and threshold."""

    rearm: Annotated[float | None, Range(above=0, most=1)] = None
    """Between two boundaries, the score must fall below this share of the threshold. [immediate: 0.75]"""

    inliers_only: bool = False
    """Compare with unremarkable errors only (the paper's ablation, worse in its tables)."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.warmup is not None and self.delta is not None and self.warmup > self.delta:
            raise ConfigError(f"warmup must be at most delta ({self.delta}), not {self.warmup}")
        if self.head == HYSTERESIS and self.threshold is not None and self.threshold <= 0:
            raise ConfigError(f"threshold must be above 0 for the head hysteresis, not {self.threshold:g}")

    @property
    def head_name(self) -> str:
        """The head; the paper's discriminator where none is named."""
        return self.head or OBD

    def filled(self, defaults: Self) -> Self:
        """This configuration, with the values of `defaults` where it has None.

        A sensitivity set here replaces tau and threshold of `defaults`, and the other way round.
        """
        missing = {f.name: getattr(defaults, f.name) for f in fields(self) if getattr(self, f.name) is None}
        if self.sensitivity is not None:
            missing |= {"tau": self.tau, "threshold": self.threshold}
        elif self.tau is not None or self.threshold is not None:
            missing.pop("sensitivity")
        return replace(self, **missing)

    def check_complete(self) -> None:
        """Raise ConfigError where a setting that every stream or its head needs has no value."""
        names = ("fps", "min_gap", "max_run", *HEAD_SETTINGS[self.head_name])
        if lacking := [name for name in names if getattr(self, name) is None]:
            raise ConfigError(f"head {self.head_name} needs {', '.join(lacking)}")

    def check_retuning(self, wanted: Self) -> None:
        """Raise ConfigError where a running stream with these settings can't change to `wanted`."""
        wanted.check_complete()
        if replace(wanted, **{knob: getattr(self, knob) for knob in KNOBS}) != self:
            raise ConfigError(f"only {', '.join(KNOBS)} can change while a stream runs")

    def rate(self) -> Fraction:
        """The rate to sample to, in frames a second, exact."""
        return exact_rate(self._value("fps"))

    def discriminator(self) -> BoundaryDiscriminator:
        """A new discriminator with these settings, also where another head is named."""
        return BoundaryDiscriminator(**{name: self._value(name) for name in HEAD_SETTINGS[OBD]})

    def new_head(self) -> Head:
        """A new head with these settings."""
        if self.head_name == OBD:
            return self.discriminator()
        rearm = self._value("rearm") if self.head == HYSTERESIS else None
        return ThresholdHead(self._value("threshold"), rearm)

    @property
    def knob(self) -> float:
        """τ or the threshold, whichever the head uses."""
        return float(self._value("tau" if self.head_name == OBD else "threshold"))

    def runs(self, levels: Sequence[float] = ()) -> BoundaryRuns:
        """A new joiner of positive frames with these settings; its one level is `knob` if none is given."""
        levels = levels or [self.knob]
        runs = BoundaryRuns(
            levels,
            self._value("min_gap"),
            self._value("max_run"),
            self._value("rearm") if self.head == HYSTERESIS else None,
            self._value("min_error") if self.head_name == OBD else -inf,
        )
        runs.use(self.knob, levels)
        return runs

    def _value(self, name: str) -> Any:
        value = getattr(self, name)
        if value is None:
            raise ConfigError(f"{name} has no value: use ongebd.load(…).stream(…), or set it")
        return value


def asked_for(config: StreamConfig | None, changes: dict[str, Any], also: Iterable[str] = ()) -> StreamConfig:
    """What a caller asks for: a configuration, if any, with single settings changed; see `changed`."""
    if not isinstance(config, StreamConfig | None):
        raise ConfigError(f"config must be a StreamConfig, not {type(config).__name__}")
    config = config or StreamConfig()
    try:
        return replace(config, **changes)
    except TypeError:  # a name is unknown: `changed` says which
        return changed(config, changes, also=also)


def scaled_tau(tau: float, sensitivity: float) -> float:
    """The τ at a sensitivity, from the one at 0.5: it doubles for each quarter less.

    >>> [round(scaled_tau(2.5, sensitivity), 2) for sensitivity in (0.25, 0.5, 0.75)]
    [5.0, 2.5, 1.25]
    """
    return float(tau * 2.0 ** (4.0 * (0.5 - sensitivity)))


def sensitivity_of(tau: float, usual: float) -> float:
    """The sensitivity at which `scaled_tau(usual, …)` is `tau`, kept within 0.01 and 0.99.

    >>> [sensitivity_of(tau, usual=2.5) for tau in (5.0, 2.5, 1.25)]
    [0.25, 0.5, 0.75]
    """
    return min(0.99, max(0.01, 0.5 - log2(tau / usual) / 4.0))
