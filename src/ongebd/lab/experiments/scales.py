"""How large everything is (`scales.toml`): from seconds, for a test, to the paper's settings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from ongebd.errors import ConfigError

TRAINING_SHARE = 0.6
"""Of the composites."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A size.

    Attributes:
        says: What it is for, one line.
        videos: Composites, training and test together.
        seconds: Shortest and longest.
        long_videos: Composites for the zero-shot table.
        long_seconds: Shortest and longest of those.
        size: The shorter side, pixels.
        training: Settings of `TrainConfig` for all methods.
        networks: Sizes of the baselines' networks, by method.
        special: Settings of single methods that differ from `training`.
    """

    name: str
    says: str
    videos: int
    seconds: tuple[float, float]
    long_videos: int
    long_seconds: tuple[float, float]
    size: int
    seeds: int
    training: Mapping[str, Any] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _read() -> dict[str, Scale]:
    text = (files("ongebd.lab.experiments") / "scales.toml").read_text(encoding="utf-8")
    scales = {}
    for name, values in tomllib.loads(text).items():
        pairs: dict[str, Any] = {key: tuple(values.pop(key)) for key in ("seconds", "long_seconds")}
        scales[name] = Scale(name=name, **pairs, **values)
    return scales


SCALES = _read()
"""By name, smallest first."""


def scale_of(name: str, seeds: int | None = None) -> Scale:
    """A scale by its name, perhaps with another number of seeds.

    Raises:
        ConfigError: Unknown name, or less than one seed.
    """
    if name not in SCALES:
        raise ConfigError(f"scale must be one of {', '.join(SCALES)}, not {name!r}")
    if seeds is not None and seeds < 1:
        raise ConfigError(f"seeds must be 1 or more, not {seeds}")
    return replace(SCALES[name], seeds=SCALES[name].seeds if seeds is None else seeds)
