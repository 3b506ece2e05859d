"""The trained online baselines by name, without importing torch until a network is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ongebd.common.settings import changed
from ongebd.errors import ConfigError, import_extra, shown

if TYPE_CHECKING:
    from ongebd.baselines.network import OnlineNetwork


class Method(NamedTuple):
    """A published online method with a boundary head.

    Attributes:
        title: As in the paper's table.
        summary: One line for people.
        parameters: Of the published shape on 2048 numbers a frame; a test holds the network to it.
        network: Its class in the module of its name; the class of its shape is NETWORKConfig.
    """

    title: str
    summary: str
    parameters: int
    network: str


METHODS = {
    "miniroad": Method("MiniROAD - BC", "a GRU over all frames so far", 13_644_801, "MiniRoad"),
    "testra": Method("TeSTra - BC", "attention to an endless, fading memory", 56_763_393, "TeSTra"),
    "simon": Method("Sim-On - BC", "attention to 6 frames and its own past", 3_295_489, "SimOn"),
    "oadtr": Method("OadTR - BC", "a transformer over the last 64 frames", 73_595_906, "OadTr"),
}
"""The baselines of the paper's table of online methods."""


def find_method(name: str) -> Method:
    """A baseline by its name."""
    if name not in METHODS:
        raise ConfigError(f"unknown baseline {shown(name)}; known are {', '.join(METHODS)}")
    return METHODS[name]


def network_shape(name: str, values: dict[str, Any] | None = None, *, dim: int | None = None) -> Any:
    """The shape of a baseline's network.

    Args:
        name: The baseline.
        values: Settings that differ from the published ones.
        dim: D; None takes that of `values`, or the published 2048.
    """
    kind = getattr(_module(name), f"{METHODS[name].network}Config")
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
