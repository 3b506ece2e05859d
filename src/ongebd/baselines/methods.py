"""The trained online baselines by name, without importing torch until a network is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import cos, pi
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ongebd.common.settings import changed
from ongebd.errors import ConfigError, import_extra, meant, shown

if TYPE_CHECKING:
    from ongebd.baselines.network import OnlineNetwork


Optimizer = Literal["adamw", "adam", "sgd"]
Schedule = Literal["constant", "testra", "simon", "oadtr"]

SCHEDULES: Mapping[Schedule, Callable[[float, int], float]] = {
    "constant": lambda _done, _epochs: 1.0,
    # A cosine down to 0, times a rise from 0.3 to 1 over the first 10 of 25 epochs.
    "testra": lambda done, epochs: min(1, 0.3 + 1.75 * done / epochs) * (1 + cos(pi * done / epochs)) / 2,
    "simon": lambda done, _epochs: 0.5 ** (done // 3),
    "oadtr": lambda done, _epochs: 0.1 ** (done // 1),
}
"""What the learning rate is multiplied by when so many of all epochs are done, a step being a part of one."""


class Method(NamedTuple):
    """A published online method with a boundary head.

    Attributes:
        title: As in the paper's table.
        summary: One line for people.
        parameters: Of the published shape on 2048 numbers a frame; a test holds the network to it.
        network: Its class in the module of its name; the class of its shape is NETWORKConfig.
        recipe: How its authors train it, as settings of `TrainConfig`; a batch is counted in targets.
    """

    title: str
    summary: str
    parameters: int
    network: str
    recipe: Mapping[str, Any]


# The recipes are those for THUMOS in the authors' repositories: jbistanbul/MiniROAD, zhaoyue-zephyrus/TeSTra,
# TuanTNG/SimOn and wangxiang1230/OadTR. What differs from them is in docs/training.md, "Baselines".
METHODS = {
    "miniroad": Method(
        "MiniROAD - BC",
        "a GRU over all frames so far",
        13_644_801,
        "MiniRoad",
        {"weight_decay": 0.05, "batch": 16, "epochs": 10},
    ),
    "testra": Method(
        "TeSTra - BC",
        "attention to an endless, fading memory",
        56_763_393,
        "TeSTra",
        {
            "optimizer": "adam",
            "lr": 7e-5,
            "weight_decay": 5e-5,
            "schedule": "testra",
            "batch": 16 * 32,
            "epochs": 25,
        },
    ),
    "simon": Method(
        "Sim-On - BC",
        "attention to 6 frames and its own past",
        3_295_489,
        "SimOn",
        {
            "optimizer": "adam",
            "weight_decay": 1e-4,
            "schedule": "simon",
            "clip": 1.0,
            "batch": 256 * 128,
            "epochs": 16,
        },
    ),
    "oadtr": Method(
        "OadTR - BC",
        "a transformer over the last 64 frames",
        73_595_906,
        "OadTr",
        {
            "optimizer": "adam",
            "weight_decay": 1e-4,
            "schedule": "oadtr",
            "clip": 1.0,
            "batch": 128,
            "epochs": 4,
        },
    ),
}
"""The baselines of the paper's table of online methods."""


def find_method(name: str) -> Method:
    """A baseline by its name."""
    if name not in METHODS:
        raise ConfigError(f"unknown baseline {shown(name)}; {meant(name, METHODS)}")
    return METHODS[name]


def network_shape(name: str, values: dict[str, Any] | None = None, *, dim: int | None = None) -> Any:
    """The shape of a baseline's network.

    Args:
        name: The baseline.
        values: Settings that differ from the published ones.
        dim: D; None takes that of `values`, or the published 2048.
    """
    return shape_of(getattr(_module(name), f"{METHODS[name].network}Config"), name, values, dim)


def shape_of(kind: Any, name: str, values: dict[str, Any] | None, dim: int | None) -> Any:
    """A shape of the class `kind`; the rest as in `network_shape`."""
    given = dict(values or {}) | ({} if dim is None else {"dim": dim})
    try:
        return kind(**given)
    except TypeError:  # a name is unknown: `changed` says which
        return changed(kind(), given, f"{name}: ")


def make_network(name: str, shape: Any = None) -> OnlineNetwork[Any]:
    """A baseline's network with new weights, of the published shape where none is given."""
    kind = getattr(_module(name), find_method(name).network)
    network: OnlineNetwork[Any] = kind(network_shape(name) if shape is None else shape)
    return network


def _module(name: str) -> Any:
    find_method(name)
    return import_extra(f"ongebd.baselines.{name}", "train")
