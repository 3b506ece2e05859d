"""The trained online baselines by name, as far as that is known without torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ongebd.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from ongebd.baselines.network import OnlineNetwork


@dataclass(frozen=True, slots=True)
class Method:
    """A published online method with a boundary head.

    Attributes:
        name: Under which it is loaded and trained.
        title: As in the paper's table.
        summary: One line for people.
        parameters: Of the published shape on 2048 numbers a frame; a test holds the network to it.
        network: Its class, in the module of its name.
        config: The class of its shape.
    """

    name: str
    title: str
    summary: str
    parameters: int
    network: str
    config: str


METHODS = {
    method.name: method
    for method in (
        Method(
            "miniroad",
            "MiniROAD - BC",
            "a GRU over all frames so far",
            13_644_801,
            "MiniRoad",
            "MiniRoadConfig",
        ),
        Method(
            "testra",
            "TeSTra - BC",
            "attention to an endless, fading memory",
            56_763_393,
            "TeSTra",
            "TeSTraConfig",
        ),
        Method(
            "simon",
            "Sim-On - BC",
            "attention to 6 frames and its own past",
            3_295_489,
            "SimOn",
            "SimOnConfig",
        ),
        Method(
            "oadtr", "OadTR - BC", "a transformer over the last 64 frames", 73_595_906, "OadTr", "OadTrConfig"
        ),
    )
}
"""The baselines of the paper's table of online methods."""


def find_method(name: str) -> Method:
    """A baseline by its name.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in METHODS:
        raise ConfigError(f"unknown baseline {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]


def network_shape(name: str, values: dict[str, Any] | None = None, *, dim: int | None = None) -> Any:
    """A configuration of a baseline's network.

    Args:
        name: The baseline.
        values: Settings that differ from the published ones.
        dim: D; None takes that of `values`, or the published 2048.

    Raises:
        ConfigError: A setting is unknown or outside its range.
        MissingExtraError: Torch is not installed.
    """
    kind = getattr(_module(name), METHODS[name].config)
    given = dict(values or {}) | ({} if dim is None else {"dim": dim})
    try:
        return kind(**given)
    except TypeError:
        known = ", ".join(kind.__dataclass_fields__)
        raise ConfigError(f"{name}: unknown settings among {', '.join(given)}; there are {known}") from None


def make_network(name: str, shape: Any = None) -> OnlineNetwork[Any]:
    """A baseline's network with new weights.

    Args:
        name: The baseline.
        shape: Of `network_shape`; None takes the published one.

    Raises:
        ConfigError: There is no such baseline.
        MissingExtraError: Torch is not installed.
    """
    network: OnlineNetwork[Any] = getattr(_module(name), find_method(name).network)(
        network_shape(name) if shape is None else shape
    )
    return network


def _module(name: str) -> Any:
    find_method(name)
    try:
        return import_module(f"ongebd.baselines.{name}")
    except ModuleNotFoundError as problem:
        if problem.name is not None and problem.name.startswith("ongebd"):
            raise
        raise MissingExtraError.of(problem.name, "train") from None
