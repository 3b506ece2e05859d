"""The backbones by name."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ongebd.backbones.base import Backbone
from ongebd.backbones.onnx_backbone import OnnxBackbone, WholePicture
from ongebd.errors import ConfigError, import_extra

if TYPE_CHECKING:
    from ongebd.backbones.torch_backbone import Precision

DEFAULT = "efficientnet_lite0"
"""EfficientNet-Lite0: 1280 numbers a frame, 0.4 G multiply-adds, weights in our wheel.

Google trained it on ImageNet-1k, ML Illustrated brought it to PyTorch (Apache-2.0, see NOTICE), and
`scripts/export_efficientnet_lite0.py` made the ONNX file. It wants (x − 127) / 128, which its graph computes,
bicubic resizing and a centre crop of 0.875. ImageNet's usual mean and deviation cost 11 points of top-1.
"""
_WHOLE = "efficientnet_lite0_whole"
_TORCH = ("resnet50", "tsn-kinetics", "tsn-sthv2")
_made: dict[object, Backbone] = {}
_making = threading.RLock()


def names() -> list[str]:
    """All names that `get` knows, sorted."""
    return [DEFAULT, _WHOLE, *_TORCH]


def takes_device(name: str) -> bool:
    """Whether a backbone runs in PyTorch, and so on a GPU too; those in our wheel run on the CPU only.

    >>> [name for name in names() if not takes_device(name)]
    ['efficientnet_lite0', 'efficientnet_lite0_whole']
    """
    return name in _TORCH


def get(
    name: str = DEFAULT,
    threads: int = 1,
    *,
    weights: Path | str | None = None,
    device: str = "cpu",
    precision: Precision = "float32",
) -> Backbone:
    """The backbone of that name; always the same object, since it holds no state.

    Args:
        name: One of `names()`.
        threads: Threads in which one call of `embed` computes on the CPU, at least 1.
        weights: A checkpoint, for PyTorch's backbones.
        device: `cpu`; for PyTorch's, `cuda` or `cuda:N` too.
        precision: What those compute in; their features are always float32.

    Raises:
        ConfigError: No such backbone, device, precision or number of threads, or weights that don't fit.
        MissingExtraError: PyTorch isn't installed.

    >>> get("efficientnet_lite0").dim
    1280
    """
    if name not in names():
        raise ConfigError(f"unknown backbone {name!r}; choose from {', '.join(names())}")
    if threads < 1:
        raise ConfigError(f"a backbone needs at least 1 thread, not {threads}")
    path = None if weights is None else Path(weights).absolute()
    changed = None
    if path is not None and path.exists():  # a file that was written again is loaded again
        changed = (path.stat().st_mtime_ns, path.stat().st_size)
    key = (name, threads, path, changed, device, precision)
    with _making:
        if key not in _made:
            _made[key] = _make(name, threads, path, device, precision)
        return _made[key]


def _make(name: str, threads: int, weights: Path | None, device: str, precision: Precision) -> Backbone:
    if name in _TORCH:
        import_extra("torch", "train")
        from ongebd.backbones.resnet50 import resnet50

        return resnet50(name, weights, device, precision, threads)
    if weights is not None:
        raise ConfigError(f"{name}: its weights are in the package; leave out --weights")
    if device != "cpu" or precision != "float32":
        raise ConfigError(f"{name}: runs on the CPU only; leave out --device and --precision")
    if name == _WHOLE:
        return WholePicture(OnnxBackbone(DEFAULT, threads, int8=True))
    return OnnxBackbone(name, threads)
