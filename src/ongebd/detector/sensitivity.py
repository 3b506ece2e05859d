"""One knob for all methods: a sensitivity, which stands for the τ or the threshold of each."""

from __future__ import annotations

from collections.abc import Callable

from ongebd.detector.config import StreamConfig
from ongebd.detector.heads import HYSTERESIS, OBD, THRESHOLD
from ongebd.errors import ConfigError

_USED_BY: dict[str, tuple[str, ...]] = {
    OBD: ("tau", "delta", "inliers_only", "min_error", "min_std", "warmup"),
    THRESHOLD: ("threshold",),
    HYSTERESIS: ("threshold", "rearm"),
}
"""Which settings each head has a use for; the rest, but for `window`, concern all of them."""
_OCTAVES = 4.0


def with_sensitivity(
    asked: StreamConfig,
    filled: StreamConfig,
    defaults: StreamConfig,
    threshold: Callable[[float], float] | None,
    name: str,
) -> StreamConfig:
    """The settings of a stream with the τ or the threshold that a sensitivity stands for.

    A method with a table of its own (`threshold`) takes the threshold from it. For the discriminator, τ is
    the model's own one at 0.5 and doubles for each quarter less: τ · 2^(4 · (0.5 − sensitivity)).

    Args:
        asked: What the user set.
        filled: The same with the model's defaults.
        defaults: The model's.
        threshold: Its table, from a sensitivity to a threshold; None where it has none.
        name: The model's, for messages.

    Raises:
        ConfigError: The method has no sensitivity, or what it stands for was set as well, and otherwise.
    """
    sensitivity = asked.sensitivity
    if sensitivity is None:
        return filled
    head = filled.head or OBD
    if head == OBD and defaults.tau is not None:
        knob, value = "tau", scaled_tau(defaults.tau, sensitivity)
    elif head in (HYSTERESIS, THRESHOLD) and threshold is not None:
        knob, value = "threshold", threshold(sensitivity)
    else:
        which = f"{name} has" if filled.head == defaults.head else f"{name} with the head {head} has"
        raise ConfigError(f"{which} no sensitivity: leave it out, or name another model")
    for setting in ("tau", "threshold"):
        given = getattr(asked, setting)
        filled_before = setting == knob and given == value
        if given is not None and not filled_before:
            raise ConfigError(f"sensitivity stands for {setting}: give the one or the other, not both")
    return filled.changed({knob: value})


def scaled_tau(tau: float, sensitivity: float) -> float:
    """The τ at a sensitivity, from the one at 0.5.

    >>> [round(scaled_tau(2.5, sensitivity), 2) for sensitivity in (0.25, 0.5, 0.75)]
    [5.0, 2.5, 1.25]
    """
    return float(tau * 2.0 ** (_OCTAVES * (0.5 - sensitivity)))


def check_uses(asked: StreamConfig, filled: StreamConfig, defaults: StreamConfig, name: str) -> None:
    """Refuse what is set and would change nothing: a τ, say, for a head with a threshold.

    A value that is the model's own is let pass, so that a stream's configuration can be given to another.

    Args:
        asked: What the user set.
        filled: The same with the model's defaults.
        defaults: The model's.
        name: The model's, for messages.

    Raises:
        ConfigError: A setting has no meaning for this model and its head.
    """
    head = filled.head or OBD
    if head not in _USED_BY:  # which is told when it is made
        return
    has = _USED_BY[head] if defaults.window is None else (*_USED_BY[head], "window")
    for setting in sorted({"window"}.union(*_USED_BY.values())):
        if setting not in has and getattr(asked, setting) not in (None, getattr(defaults, setting)):
            by = ", ".join(_USED_BY[head])
            raise ConfigError(f"{name} has no {setting}: its head, {head}, is set by {by}")
