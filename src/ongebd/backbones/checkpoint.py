"""Reads the tensors of a PyTorch checkpoint, and nothing else of it."""

from __future__ import annotations

import pickle
import types
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ongebd.errors import ConfigError

# All that a checkpoint's tensors are made of. Nothing else in a stranger's file ever runs.
_NEEDED = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
    ("torch._utils", "_rebuild_parameter"): torch._utils._rebuild_parameter,
    ("torch", "Size"): torch.Size,
}


class _Inert:
    """Replaces whatever else a checkpoint holds (logs, configurations), and ignores all that pickle does."""

    def __new__(cls, *_args: object, **_kwargs: object) -> _Inert:
        return super().__new__(cls)

    def _ignore(self, *_args: object, **_kwargs: object) -> _Inert:
        return self

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    __call__ = __setstate__ = __setitem__ = append = extend = _ignore


class _TensorUnpickler(pickle._Unpickler):
    """Makes tensors, and `_Inert` of everything else.

    `torch.load(weights_only=True)` refuses such files, but training frameworks do put their own classes into
    a checkpoint (mmengine its `HistoryBuffer`), and nobody has those installed here. This is the unpickler in
    Python because the one in C believes any table size: one damaged byte costs gigabytes and minutes.
    """

    def find_class(self, module: str, name: str) -> Any:
        return _NEEDED.get((module, name), _Inert)


_PICKLE = types.ModuleType("ongebd.backbones.tensor_pickle")
_PICKLE.__dict__.update(
    Unpickler=_TensorUnpickler,
    load=lambda file, **options: _TensorUnpickler(file, **options).load(),
    UnpicklingError=pickle.UnpicklingError,
)


def read_state(path: Path) -> dict[str, Tensor]:
    """The named tensors of a checkpoint: those under `state_dict` or `model`, or the file's own.

    Args:
        path: A file from `torch.save`, in either of its formats.

    Raises:
        ConfigError: The file can't be read, or holds no named tensors.
    """
    try:
        value = torch.load(path, map_location="cpu", pickle_module=_PICKLE, weights_only=False)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; check --weights") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; give the checkpoint in it") from None
    except Exception as problem:  # noqa: BLE001 - torch raises anything on a damaged file
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise ConfigError(f"{path}: not a readable PyTorch checkpoint ({reason}); fetch it again") from None
    for key in ("state_dict", "model"):
        if isinstance(value, Mapping) and isinstance(value.get(key), Mapping):
            value = value[key]
    items = value.items() if isinstance(value, Mapping) else ()
    tensors = {str(name): tensor for name, tensor in items if isinstance(tensor, Tensor)}
    if not tensors:
        raise ConfigError(f"{path}: holds no named tensors; give a checkpoint with a state_dict")
    return {name.removeprefix("module."): tensor for name, tensor in tensors.items()}


def fit_state(
    state: Mapping[str, Tensor], wanted: Mapping[str, Tensor], name: str, source: str, instead: str
) -> dict[str, Tensor]:
    """The tensors that a network wants, out of a checkpoint's, without batch counters (for training only).

    `name` is the backbone's, `source` the checkpoint's, and `instead` another checkpoint, for messages.

    Raises:
        ConfigError: Tensors are missing, unknown, or of another shape; it names them.
    """
    needed = {key: tensor for key, tensor in wanted.items() if not key.endswith("num_batches_tracked")}
    for what, keys in {
        "lacks": [key for key in needed if key not in state],
        "has more than the network:": [key for key in state if key not in wanted],
        "has other shapes for": [
            key for key in needed if key in state and state[key].shape != needed[key].shape
        ],
    }.items():
        if keys:
            shown = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
            raise ConfigError(f"{source}: does not fit {name}: it {what} {shown}; give {instead}")
    return {key: state[key] for key in needed}
