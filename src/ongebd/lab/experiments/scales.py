"""How large everything is: from seconds, for a test, to the paper's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ongebd.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A size.

    Attributes:
        name: On the command line.
        says: What it is for, one line.
        videos: Composites, training and test together.
        share: The share of them that train.
        seconds: Shortest and longest.
        long_videos: Composites for the zero-shot table.
        long_seconds: Shortest and longest of those.
        size: The shorter side, pixels.
        seeds: Of every training.
        guess: Seconds of a training, before a similar one ran here.
        training: Settings of `TrainConfig` for all methods.
        networks: Sizes of the baselines' networks. Without one, a baseline is the published network, trained
            by its authors' recipe, which is made for weeks of video.
        special: Settings of single methods that differ from `training`.
    """

    name: str
    says: str
    videos: int
    share: float = 0.6
    seconds: tuple[float, float] = (8.0, 14.0)
    long_videos: int = 4
    long_seconds: tuple[float, float] = (30.0, 45.0)
    size: int = 128
    seeds: int
    guess: float
    training: Mapping[str, Any]
    networks: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_SMALL_NETWORKS = {
    "miniroad": "embedding=64,hidden=64,window=24",
    "testra": "width=64,heads=4,ffn=64,first_queries=4,second_queries=8,long=64,work=16",
    "simon": "width=64,heads=4,ffn=64,layers=2,run=8",
    "oadtr": "width=64,ffn=64,encoder_heads=4,encoder_layers=2,decoder_layers=2,window=16",
}
_TINY = {"width": 32, "ffn": 32, "heads": 4, "layers": 1, "epochs": 1, "batch": 64, "run": 32, "lr": 1e-3}

_ALL = (
    Scale(
        name="tiny",
        says="seconds: that it runs at all",
        videos=8,
        seconds=(4.0, 5.0),
        long_videos=2,
        long_seconds=(6.0, 7.0),
        size=64,
        seeds=1,
        guess=1.0,
        training=_TINY,
        networks=_SMALL_NETWORKS,
    ),
    Scale(
        name="small",
        says="all of it within a quarter of an hour on two CPU cores",
        videos=48,
        seeds=2,
        guess=5.0,
        training={"width": 128, "ffn": 128, "epochs": 3, "batch": 256, "run": 64, "lr": 1e-3},
        networks=_SMALL_NETWORKS,
        # Sim-On goes frame by frame; the others compute a whole window for each target.
        special={"simon": {"batch": 512}, "miniroad": {"epochs": 2}, "oadtr": {"epochs": 2}},
    ),
    Scale(
        name="medium",
        says="the ablations within ten minutes on one GPU",
        videos=160,
        seconds=(8.0, 20.0),
        long_videos=12,
        long_seconds=(60.0, 90.0),
        size=256,
        seeds=3,
        guess=10.0,
        training={"epochs": 10, "batch": 512, "run": 64, "lr": 3e-4, "compile": "off"},
        networks={"miniroad": "embedding=512,hidden=512"},
    ),
    Scale(
        name="full",
        says="the paper's settings",
        videos=4000,
        seconds=(8.0, 12.0),
        long_videos=40,
        long_seconds=(120.0, 300.0),
        size=256,
        seeds=3,
        guess=3600.0,
        training={},
    ),
)
SCALES = {scale.name: scale for scale in _ALL}
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
