"""The backbones by name."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ongebd.backbones.base import Backbone
from ongebd.backbones.efficientnet_lite0 import efficientnet_lite0
from ongebd.backbones.graph_backbone import on_cpu_runtime
from ongebd.backbones.whole_picture import WholePicture
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
    runtime: str | None


def _efficientnet_lite0(asked: _Asked) -> Backbone:
    if asked.weights is not None:
        raise ConfigError(f"{asked.name}: its weights are in the package; leave out --weights")
    if asked.device != "cpu" or asked.precision != "float32":
        raise ConfigError(f"{asked.name}: runs on the CPU, in float32; leave out --device and --precision")
    return efficientnet_lite0(asked.threads)


def _efficientnet_lite0_whole(asked: _Asked) -> Backbone:
    _efficientnet_lite0(asked)  # which refuses what it cannot do
    return WholePicture(efficientnet_lite0(asked.threads))


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
    "efficientnet_lite0_whole": _efficientnet_lite0_whole,
    "resnet50": _resnet50,
    "tsn-kinetics": _tsn,
    "tsn-sthv2": _tsn,
}
_IN_THE_WHEEL = frozenset({"efficientnet_lite0", "efficientnet_lite0_whole"})
_made: dict[tuple[_Asked, tuple[int, int] | None], Backbone] = {}
_making = threading.Lock()


def names() -> list[str]:
    """All names that `get` knows, sorted."""
    return sorted(_MAKERS)


def takes_device(name: str) -> bool:
    """Whether a backbone is PyTorch's, and so runs on a GPU too; those in our wheel run on the CPU alone.

    >>> [name for name in names() if not takes_device(name)]
    ['efficientnet_lite0', 'efficientnet_lite0_whole']
    """
    return name in _MAKERS and name not in _IN_THE_WHEEL


def get(
    name: str = DEFAULT,
    threads: int = 1,
    *,
    weights: Path | str | None = None,
    device: str = "cpu",
    precision: Precision = "float32",
    runtime: str | None = None,
) -> Backbone:
    """The backbone of that name; the same object each time, for it holds no state.

    Args:
        name: One of `names()`.
        threads: Threads in which one call of `embed` computes on the CPU, at least 1.
        weights: A checkpoint, for the backbones that are PyTorch's.
        device: `cpu`; for those, `cuda` or `cuda:N` too.
        precision: In what they compute; their features are float32 always.
        runtime: `onnxruntime` or `openvino`, on the CPU; None takes the backbone's own. With OpenVINO any
            backbone computes in float32 or bfloat16.

    Raises:
        ConfigError: No such backbone, device, runtime, precision or number of threads, weights that do not
            fit, or no PyTorch.
        MissingExtraError: The runtime is not installed.

    >>> get("efficientnet_lite0").dim
    1280
    """
    if name not in _MAKERS:
        raise ConfigError(f"no backbone is called {name!r}; there is {', '.join(names())}")
    if threads < 1:
        raise ConfigError(f"a backbone needs at least 1 thread, not {threads}")
    path = None if weights is None else Path(weights).absolute()
    asked = _Asked(name, threads, path, device, precision, runtime)
    with _making:
        key = (asked, _stamp(path))
        if key not in _made:
            _made[key] = _make(asked)
        return _made[key]


def _make(asked: _Asked) -> Backbone:
    if asked.runtime is None:
        return _MAKERS[asked.name](asked)
    if asked.device != "cpu":
        raise ConfigError(f"{asked.name}: {asked.runtime} runs it on the CPU; leave out --device")
    plain = _MAKERS[asked.name](replace(asked, runtime=None, precision="float32"))
    return on_cpu_runtime(plain, asked.runtime, asked.precision, asked.threads)


def _stamp(path: Path | None) -> tuple[int, int] | None:
    """What changes when a file is written anew."""
    if path is None or not path.exists():
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _need_torch(name: str) -> None:
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(f'{name}: needs PyTorch; install it with: pip install "ongebd[train]"')
