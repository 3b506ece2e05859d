"""The backbones by name."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ongebd.backbones.base import Backbone
from ongebd.backbones.efficientnet_lite0 import efficientnet_lite0
from ongebd.errors import ConfigError

if TYPE_CHECKING:
    from ongebd.backbones.torch_backbone import Precision

DEFAULT = "efficientnet_lite0"
"""The backbone whose weights are in our wheel."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Everything that makes two backbones differ."""

    name: str
    threads: int
    weights: Path | None
    device: str
    precision: Precision


def _efficientnet_lite0(asked: _Asked) -> Backbone:
    if asked.weights is not None:
        raise ConfigError(f"{asked.name}: its weights are in the package; leave out --weights")
    if asked.device != "cpu" or asked.precision != "float32":
        raise ConfigError(f"{asked.name}: runs on the CPU, in float32; leave out --device and --precision")
    return efficientnet_lite0(asked.threads)


def _resnet50(asked: _Asked) -> Backbone:
    _need_torch(asked.name)
    from ongebd.backbones.resnet50 import resnet50

    return resnet50(asked.weights, asked.device, asked.precision, asked.threads)


def _tsn(asked: _Asked) -> Backbone:
    _need_torch(asked.name)
    from ongebd.backbones.tsn import tsn

    return tsn(asked.name, asked.weights, asked.device, asked.precision, asked.threads)


_MAKERS: dict[str, Callable[[_Asked], Backbone]] = {
    "efficientnet_lite0": _efficientnet_lite0,
    "resnet50": _resnet50,
    "tsn-kinetics": _tsn,
    "tsn-sthv2": _tsn,
}
_made: dict[tuple[_Asked, tuple[int, int] | None], Backbone] = {}
_making = threading.Lock()


def names() -> list[str]:
    """All names that `get` knows, sorted."""
    return sorted(_MAKERS)


def get(
    name: str = DEFAULT,
    threads: int = 1,
    *,
    weights: Path | str | None = None,
    device: str = "cpu",
    precision: Precision = "float32",
) -> Backbone:
    """The backbone of that name; the same object each time, for it holds no state.

    Args:
        name: One of `names()`.
        threads: Threads in which one call of `embed` computes on the CPU, at least 1.
        weights: A checkpoint, for the backbones that are PyTorch's.
        device: `cpu`; for those, `cuda` or `cuda:N` too.
        precision: In what they compute; their features are float32 always.

    Raises:
        ConfigError: No such backbone, device or number of threads, weights that do not fit, or no PyTorch.

    >>> get("efficientnet_lite0").dim
    1280
    """
    if name not in _MAKERS:
        raise ConfigError(f"no backbone is called {name!r}; there is {', '.join(names())}")
    if threads < 1:
        raise ConfigError(f"a backbone needs at least 1 thread, not {threads}")
    path = None if weights is None else Path(weights).absolute()
    asked = _Asked(name, threads, path, device, precision)
    with _making:
        key = (asked, _stamp(path))
        if key not in _made:
            _made[key] = _MAKERS[name](asked)
        return _made[key]


def _stamp(path: Path | None) -> tuple[int, int] | None:
    """What changes when a file is written anew."""
    if path is None or not path.exists():
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _need_torch(name: str) -> None:
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(f'{name}: needs PyTorch; install it with: pip install "ongebd[train]"')
