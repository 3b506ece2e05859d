"""The offline systems by name, without importing torch until a network is made.

What all of them share: features are the frozen ones of a store, where the authors train their backbones
too. Each file says what else differs; `NOT_BUILT` has the systems that are left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ongebd.baselines.methods import METHODS, shape_of
from ongebd.errors import ConfigError, import_extra, meant, shown

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
        compiles: Whether torch.compile takes it; torch 2.11 fails on two of them on a GPU.
    """

    title: str
    summary: str
    source: str
    supervised: bool
    parameters: int = 0
    network: str | None = None
    recipe: Mapping[str, Any] = {}
    compiles: bool = True


LIN = "Lin et al., ICCV 2019; on boundaries: Shou et al., ICCV 2021"
ZHENG = "Zheng et al., ACM MM 2024 (github.com/Ziwei-Zheng/EfficientGEBD)"
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
    "flowgebd": System(
        "FlowGEBD", "peaks in the number of pixels that optical flow loses", "Gothe et al., WACV 2024", False
    ),
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
    "uboco": System(
        "UBoCo-Res50",
        "a self-similarity matrix, parsed recursively, that learns from its own boundaries",
        "Kang et al., CVPR 2022",
        False,
        6_828_544,
        "uboco:Uboco",
    ),
    "sboco": System(
        "SBoCo-Res50",
        "a self-similarity matrix that learns from labels, read along its diagonal",
        "Kang et al., CVPR 2022",
        True,
        11_574_113,
        "uboco:Sboco",
    ),
    "basicgebd": System(
        "BasicGEBD",
        "a map of how alike neighbours are, read by a small ResNet",
        ZHENG,
        True,
        7_522_499,
        "efficientgebd:BasicGebd",
        _SGD | {"batch": 3200, "epochs": 30},
    ),
    "efficientgebd": System(
        "EfficientGEBD",
        "BasicGEBD with differences of frames, and gates",
        ZHENG,
        True,
        9_635_587,
        "efficientgebd:EfficientGebd",
        _SGD | {"batch": 3200, "epochs": 30},
    ),
    "ddm-net": System(
        "DDM-Net",
        "maps of differences at several scales, with attention to frames",
        "Tang et al., CVPR 2022 (github.com/MCG-NJU/DDM)",
        True,
        114_463_561,
        "ddm_net:DdmNet",
        {"label_rule": "near", "lr": 1e-5, "batch": 100, "epochs": 5},
        compiles=False,
    ),
    "sc-transformer": System(
        "SC-Transformer",
        "a transformer over neighbours, and how alike they are",
        "Li et al., 2022 (github.com/lufficc/SC-Transformer)",
        True,
        44_405_767,
        "sc_transformer:ScTransformer",
        _SGD | {"batch": 400, "epochs": 20},
    ),
    "lcvsl": System(
        "LCVSL",
        "an LSTM over neighbours, and how alike they are",
        "Zhang et al., IJCV 2024 (github.com/GX77/LCVSL)",
        True,
        29_693_959,
        "sc_transformer:Lcvsl",
        _SGD | {"batch": 400, "epochs": 20},
    ),
    "bmn": System(
        "BMN", "the ends of segments that look like one event", LIN, True, 4_278_660, "bmn:Bmn", _BMN
    ),
    "bmn-startend": System(
        "BMN-StartEnd", "BMN's start and end scores", LIN, True, 4_278_660, "bmn:BmnStartEnd", _BMN
    ),
    "coseg": System(
        "CoSeg",
        "a transformer that rebuilds hidden frames",
        "Wang et al., TNNLS 2023 (github.com/wang3702/CoSeg)",
        False,
        29_401_088,
        "coseg:Coseg",
        {"optimizer": "sgd", "lr": 0.002, "weight_decay": 5e-4, "batch": 100, "epochs": 30},
        compiles=False,
    ),
}
"""The systems, in the order of the docs."""

_CLASSES = "it learns from ordered lists of action classes, but boundaries have no class"
NOT_BUILT = {
    "TCN-TAPOS": "it is TCN trained on TAPOS; run that model on the other set's store, and add it with --row",
    "Temporal Perceiver": "our version of its set prediction didn't learn a small synthetic set in 60 epochs",
    "DyBDet": "it exits early from its backbone, but a store has only the last layer",
    "ISBA": _CLASSES,
    "CTM": _CLASSES,
    "TransParser": "it has no public code, and needs action classes, which GEBD's labels lack",
    "U-Net": "it sorts the frames of many videos of one activity into steps, and marks no boundaries",
}
"""The systems of the paper's tables that aren't here, by their row, with the reason."""

TRAINED = tuple(name for name, system in SYSTEMS.items() if system.network is not None)
"""Those that `ongebd train` trains."""


def recipe_of(name: str) -> Mapping[str, Any]:
    """How the authors of a baseline or a system train it."""
    if name in METHODS:
        return METHODS[name].recipe
    if name in TRAINED:
        return SYSTEMS[name].recipe
    raise ConfigError(f"unknown method {shown(name)}; {meant(name, ['estimator', *METHODS, *TRAINED])}")


def network_kind(name: str) -> Any:
    """The class of a trained system's network. Needs torch."""
    if name not in TRAINED:
        raise ConfigError(f"no offline system {shown(name)} to train; {meant(name, TRAINED)}")
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
