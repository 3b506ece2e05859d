"""Online generic event boundary detection: when one event ends and the next begins, as the video streams."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ongebd.detector import Model, OnlineDetector, StreamConfig, detect, load
    from ongebd.detector.async_stream import stream_async
    from ongebd.detector.detection import Detection
    from ongebd.detector.segments import Segment
    from ongebd.errors import (
        ClusterError,
        ConfigError,
        FeatureError,
        FrameError,
        LabelError,
        MissingDataError,
        MissingExtraError,
        OngebdError,
        SourceError,
        StoreError,
    )
    from ongebd.estimator.discriminator import BoundaryDiscriminator
    from ongebd.pool import StreamPool
    from ongebd.types import Boundary, Decision, Epoch, Frame

# Where each public name lives. They are imported when first used, so that `import ongebd` costs nothing.
_HOMES = {
    "ongebd.detector": "load detect Model OnlineDetector StreamConfig",
    "ongebd.detector.async_stream": "stream_async",
    "ongebd.pool": "StreamPool",
    "ongebd.estimator.discriminator": "BoundaryDiscriminator",
    "ongebd.types": "Boundary Decision Epoch Frame",
    "ongebd.detector.detection": "Detection",
    "ongebd.detector.segments": "Segment",
    "ongebd.errors": "OngebdError SourceError FeatureError FrameError ConfigError LabelError"
    " StoreError MissingDataError MissingExtraError ClusterError",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Boundary",
    "BoundaryDiscriminator",
    "ClusterError",
    "ConfigError",
    "Decision",
    "Detection",
    "Epoch",
    "FeatureError",
    "Frame",
    "FrameError",
    "LabelError",
    "MissingDataError",
    "MissingExtraError",
    "Model",
    "OngebdError",
    "OnlineDetector",
    "Segment",
    "SourceError",
    "StoreError",
    "StreamConfig",
    "StreamPool",
    "detect",
    "load",
    "stream_async",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ongebd' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
