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

# All that the tensors of a checkpoint are made of. The rest of a file from a stranger is never run.
_NEEDED = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
    ("torch._utils", "_rebuild_parameter"): torch._utils._rebuild_parameter,
    ("torch", "Size"): torch.Size,
}


class _Inert:
    """Stands for whatever else a checkpoint holds: logs, configurations, an optimiser's state."""

    def __new__(cls, *_args: object, **_kwargs: object) -> _Inert:
        return super().__new__(cls)

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    def __call__(self, *_args: object, **_kwargs: object) -> _Inert:
        return self

    def __setstate__(self, state: object) -> None:
        pass

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def append(self, value: object) -> None:
        """Take it as a list does, and forget it."""

    def extend(self, values: object) -> None:
        """Take them as a list does, and forget them."""


class _TensorUnpickler(pickle._Unpickler):
    """Makes tensors, and something inert of everything else.

    It is the unpickler in Python: that in C makes a table as long as the largest number in a file says, and
    one damaged byte is gigabytes and minutes.

    `torch.load(weights_only=True)` refuses such files outright, and training frameworks do put their own
    classes into a checkpoint (mmengine its `HistoryBuffer`), which nobody has installed here.
    """

    def find_class(self, module: str, name: str) -> Any:
        return _NEEDED.get((module, name), _Inert)


def _load(file: Any, **options: Any) -> Any:
    return _TensorUnpickler(file, **options).load()


_PICKLE = types.ModuleType("ongebd.backbones.tensor_pickle")
_PICKLE.__dict__.update(Unpickler=_TensorUnpickler, load=_load, UnpicklingError=pickle.UnpicklingError)


def read_state(path: Path) -> dict[str, Tensor]:
    """The named tensors of a checkpoint: those under `state_dict` or `model`, or the file's own.

    Args:
        path: What `torch.save` wrote, in either of its formats.

    Raises:
        ConfigError: It cannot be read, or holds no named tensors.
    """
    try:
        value = torch.load(path, map_location="cpu", pickle_module=_PICKLE, weights_only=False)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; check --weights") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; give the checkpoint in it") from None
    except Exception as problem:  # noqa: BLE001 - torch raises whatever a damaged file makes it trip over
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise ConfigError(
            f"{path}: is no PyTorch checkpoint that can be read ({reason}); fetch it again"
        ) from None
    for key in ("state_dict", "model"):
        if isinstance(value, Mapping) and isinstance(value.get(key), Mapping):
            value = value[key]
    items = value.items() if isinstance(value, Mapping) else ()
    tensors = {str(name): tensor for name, tensor in items if isinstance(tensor, Tensor)}
    if not tensors:
        raise ConfigError(f"{path}: holds no named tensors; give a checkpoint with a state_dict")
    return {name.removeprefix("module."): tensor for name, tensor in tensors.items()}


def fit_state(
    state: Mapping[str, Tensor], wanted: Mapping[str, Tensor], name: str, source: str, mend: str
) -> dict[str, Tensor]:
    """The tensors that a network wants, out of those that a checkpoint has.

    Counters of batches are left alone: only training uses them.

    Args:
        state: The checkpoint's, named as the network names its own.
        wanted: The network's own.
        name: The backbone's, for the message.
        source: The checkpoint's, for the message.
        mend: What to give instead, for the message.

    Raises:
        ConfigError: Some are missing, too many, or of another shape; it names them.
    """
    needed = {key: tensor for key, tensor in wanted.items() if not key.endswith("num_batches_tracked")}
    missing = [key for key in needed if key not in state]
    surplus = [key for key in state if key not in wanted]
    misshapen = [key for key in needed if key in state and state[key].shape != needed[key].shape]
    for keys, what in (
        (missing, "lacks"),
        (surplus, "has more than the network's:"),
        (misshapen, "has of other shape:"),
    ):
        if keys:
            shown = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
            raise ConfigError(f"{source}: does not fit {name}: it {what} {shown}; give {mend}")
    return {key: state[key] for key in needed}
