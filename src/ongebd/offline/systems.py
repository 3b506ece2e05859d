"""The offline systems by name, without importing torch until a network is made.

What all of them share: features are the frozen ones of a store, where the authors train their backbones
too. docs/offline.md lists what else differs, and the systems that are left out with their reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ongebd.baselines.methods import shape_of
from ongebd.errors import ConfigError, import_extra, shown

if TYPE_CHECKING:
    from ongebd.offline.network import OfflineNetwork

SETTINGS: dict[str, Any] = {"head": "threshold", "min_gap": 0.0, "max_run": 10.0}
"""How scores become boundaries: neighbours above a threshold are joined, and the middle of them is one."""


class System(NamedTuple):
    """A published system.

    Attributes:
        title: Its row in the paper's tables.
        summary: One line for people.
        source: Where it was published.
        supervised: Whether it learns from labels.
        parameters: Of the published shape on 2048 numbers a frame, without the backbone's; 0: none.
        network: MODULE:CLASS of a trained one.
        looks_at: What it takes of a frame.
    """

    title: str
    summary: str
    source: str
    supervised: bool
    parameters: int = 0
    network: str | None = None
    looks_at: str = "features"


LIN = "Lin et al., ICCV 2019; on boundaries: Shou et al., ICCV 2021"
ZHENG = "Zheng et al., ACM MM 2024 (github.com/Ziwei-Zheng/EfficientGEBD)"
SHOU = "Shou et al., ICCV 2021 (github.com/StanLei52/GEBD)"

SYSTEMS = {
    "pa": System("PA", "peaks of the distance between the features before and after", SHOU, False),
    "pa-random": System("PA-Random", "the boundaries that PA finds in another video", SHOU, False),
    "pc": System("PC", "a classifier of pairs of features before and after", SHOU, True, 1_574_401, "pc:Pc"),
    "tcn": System(
        "TCN",
        "an encoder and decoder of temporal convolutions",
        "Lea et al., CVPR 2017; on boundaries: Shou et al., ICCV 2021",
        True,
        7_987_873,
        "tcn:Tcn",
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
    ),
    "efficientgebd": System(
        "EfficientGEBD",
        "the same with differences of frames, and gates",
        ZHENG,
        True,
        9_635_587,
        "efficientgebd:EfficientGebd",
    ),
    "ddm-net": System(
        "DDM-Net",
        "maps of differences at several scales, with attention to frames",
        "Tang et al., CVPR 2022 (github.com/MCG-NJU/DDM)",
        True,
        114_463_561,
        "ddm_net:DdmNet",
    ),
    "sc-transformer": System(
        "SC-Transformer",
        "a transformer over neighbours, and how alike they are",
        "Li et al., 2022 (github.com/lufficc/SC-Transformer)",
        True,
        44_405_767,
        "sc_transformer:ScTransformer",
    ),
    "lcvsl": System(
        "LCVSL",
        "an LSTM over neighbours, and how alike they are",
        "Zhang et al., IJCV 2024 (github.com/GX77/LCVSL)",
        True,
        29_693_959,
        "sc_transformer:Lcvsl",
    ),
    "bmn": System("BMN", "the ends of segments that look like one event", LIN, True, 4_278_660, "bmn:Bmn"),
    "bmn-startend": System(
        "BMN-StartEnd", "BMN's start and end scores", LIN, True, 4_278_660, "bmn:BmnStartEnd"
    ),
    "coseg": System(
        "CoSeg",
        "a transformer that rebuilds hidden frames",
        "Wang et al., TNNLS 2023 (github.com/wang3702/CoSeg)",
        False,
        29_401_088,
        "coseg:Coseg",
    ),
}
"""The systems, in the order of the docs."""

TRAINED = tuple(name for name, system in SYSTEMS.items() if system.network is not None)
"""Those that `ongebd train` trains."""


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
