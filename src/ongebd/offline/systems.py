"""The offline systems by name, without importing torch until a network is made.

What all of them share: features are the frozen ones of a store, where the authors train their backbones
too. docs/offline.md lists what else differs, and the systems that are left out with their reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ongebd.baselines.methods import METHODS, shape_of
from ongebd.errors import ConfigError, import_extra, shown

if TYPE_CHECKING:
    from ongebd.offline.network import OfflineNetwork


class System(NamedTuple):
    """A published system.

    Attributes:
        title: Its row in the paper's tables.
        summary: One line for people.
        source: Where it was published.
        supervised: Whether it learns from labels.
        parameters: Of the published shape on 2048 numbers a frame, without the backbone's; 0: none.
        network: MODULE:CLASS of a trained one.
        recipe: How its authors train it, as settings of `TrainConfig`; a batch is counted in frames.
    """

    title: str
    summary: str
    source: str
    supervised: bool
    parameters: int = 0
    network: str | None = None
    recipe: Mapping[str, Any] = {}


SHOU = "Shou et al., ICCV 2021 (github.com/StanLei52/GEBD)"

_SGD = {"optimizer": "sgd", "lr": 0.01, "weight_decay": 1e-4}
_BMN = {
    "label_rule": "near",
    "optimizer": "adam",
    "lr": 1e-3,
    "weight_decay": 5e-5,
    "batch": 1600,
    "epochs": 15,
}

SYSTEMS = {
    "pa": System("PA", "peaks of the distance between the features before and after", SHOU, False),
    "pa-random": System("PA-Random", "the boundaries that PA finds in another video", SHOU, False),
    "pc": System(
        "PC",
        "a classifier of pairs of features before and after",
        SHOU,
        True,
        1_574_401,
        "pc:Pc",
        {"label_rule": "near", "optimizer": "sgd", "lr": 0.01, "batch": 100, "epochs": 30},
    ),
    "tcn": System(
        "TCN",
        "an encoder and decoder of temporal convolutions",
        "Lea et al., CVPR 2017; on boundaries: Shou et al., ICCV 2021",
        True,
        7_987_873,
        "tcn:Tcn",
        {"label_rule": "near", "optimizer": "adam", "lr": 1e-3},
    ),
}
"""The systems, in the order of the docs."""

TRAINED = tuple(name for name, system in SYSTEMS.items() if system.network is not None)
"""Those that `ongebd train` trains."""


def recipe_of(name: str) -> Mapping[str, Any]:
    """How the authors of a baseline or a system train it."""
    if name in METHODS:
        return METHODS[name].recipe
    if name in TRAINED:
        return SYSTEMS[name].recipe
    raise ConfigError(f"unknown method {shown(name)}; known are estimator, {', '.join((*METHODS, *TRAINED))}")


def network_kind(name: str) -> Any:
    """The class of a trained system's network. Needs torch."""
    if name not in TRAINED:
        raise ConfigError(f"no offline system {shown(name)} to train; known are {', '.join(TRAINED)}")
    module, _, kind = str(SYSTEMS[name].network).partition(":")
    return getattr(import_extra(f"ongebd.offline.{module}", "train"), kind)


def make_system(name: str, values: dict[str, Any] | None = None, *, dim: int | None = None) -> OfflineNetwork:
    """A system's network with new weights.

    Args:
        name: Of the system.
        values: Settings that differ from the published ones.
        dim: D; None takes that of `values`, or the published 2048.
    """
    kind = network_kind(name)
    network: OfflineNetwork = kind(shape_of(kind.Shape, name, values, dim))
    return network
