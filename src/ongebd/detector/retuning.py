"""Gives a running stream another τ or threshold, and leaves all that it remembers as it is."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ongebd.detector.config import StreamConfig
from ongebd.detector.heads import OBD, Head, HysteresisHead, ThresholdHead
from ongebd.errors import ConfigError
from ongebd.estimator import BoundaryDiscriminator

KNOBS = ("sensitivity", "tau", "threshold")
"""The settings that may change while a stream runs."""


def with_knobs(config: StreamConfig, knobs: dict[str, Any]) -> StreamConfig:
    """A stream's settings with other knobs, to be filled by `Model.configured`.

    Raises:
        ConfigError: Something else is to be changed, or nothing is.
    """
    if others := sorted(set(knobs) - set(KNOBS)):
        raise ConfigError(
            f"{', '.join(others)} cannot change while a stream runs, only {', '.join(KNOBS)}; begin another"
        )
    if all(value is None for value in knobs.values()):
        raise ConfigError(f"nothing to change: give one of {', '.join(KNOBS)}")
    return config.changed(dict.fromkeys(KNOBS) | knobs)


def check_retuning(now: StreamConfig, wanted: StreamConfig) -> None:
    """Refuse settings that differ from a stream's in more than its knobs, or that it has no use for.

    Raises:
        ConfigError: It says in which.
    """
    others = [f.name for f in fields(now) if getattr(now, f.name) != getattr(wanted, f.name)]
    if others := [name for name in others if name not in KNOBS]:
        raise ConfigError(f"{', '.join(others)} cannot change while a stream runs; begin another")
    retune_head(now.new_head(), wanted)


def retune_head(head: Head, config: StreamConfig) -> None:
    """Set a head's τ or threshold to that of the settings.

    Raises:
        ConfigError: The value is out of its range, or the head has neither.
    """
    config.new_head()  # raises where a value is out of its range
    if isinstance(head, BoundaryDiscriminator) and config.tau is not None:
        head.tau = config.tau
    elif isinstance(head, ThresholdHead | HysteresisHead) and config.threshold is not None:
        head.threshold = config.threshold
    else:
        raise ConfigError(f"head {config.head or OBD} has no threshold that could be changed")
