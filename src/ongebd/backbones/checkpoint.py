"""Reads the tensors of a PyTorch checkpoint, and nothing else of it."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from ongebd.errors import ConfigError


class _Inert:
    """Replaces whatever else a checkpoint holds (logs, configurations), and ignores all that pickle does."""

    def __new__(cls, *_args: object, **_kwargs: object) -> _Inert:
        return super().__new__(cls)

    def _ignore(self, *_args: object, **_kwargs: object) -> _Inert:
        return self

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    __call__ = __setstate__ = __setitem__ = append = extend = _ignore


def read_state(path: Path) -> dict[str, Tensor]:
    """The named tensors of a checkpoint: those under `state_dict` or `model`, or the file's own.

    Nothing in the file runs. TorchScript, tar archives and pickled modules are refused.

    Args:
        path: A file from `torch.save`, in either of its formats, or a `.safetensors` file.

    Raises:
        ConfigError: The file can't be read, or holds no named tensors.
    """
    try:
        value = load_file(path) if path.suffix == ".safetensors" else _load(path)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; check --weights") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; give the checkpoint in it") from None
    except Exception as problem:
        raise ConfigError(
            f"{path}: damaged, or not a checkpoint of plain tensors; download it again, or give a state_dict"
            " saved by torch.save"
        ) from problem
    for key in ("state_dict", "model"):
        if isinstance(value, Mapping) and isinstance(value.get(key), Mapping):
            value = value[key]
    items = value.items() if isinstance(value, Mapping) else ()
    tensors = {str(name): tensor for name, tensor in items if isinstance(tensor, Tensor)}
    if not tensors:
        raise ConfigError(f"{path}: holds no named tensors; give a checkpoint with a state_dict")
    return {name.removeprefix("module."): tensor for name, tensor in tensors.items()}


def _load(path: Path) -> Any:
    """What torch's own safe loading reads.

    It refuses classes that it doesn't know, but training frameworks put their own into a checkpoint (mmengine
    its `HistoryBuffer`), so each of those becomes an `_Inert`.
    """
    file, unknown = io.BytesIO(path.read_bytes()), list[str]()
    if file.getvalue().startswith(b"PK\3\4"):  # then torch takes it for an archive
        # Torch may find another directory in it, so it gets a copy. Torch itself never compresses.
        with zipfile.ZipFile(file) as archive, zipfile.ZipFile(copy := io.BytesIO(), "w") as plain:
            entries = archive.infolist()
            unpacked = sum(one.file_size for one in entries)
            if any(one.compress_type for one in entries) or unpacked > len(file.getvalue()):
                raise ValueError("an archive that unpacks to more than its size")
            for name in dict.fromkeys(archive.namelist()):
                plain.writestr(name, archive.read(name))
        file = copy
        file.seek(0)
        unknown = get_unsafe_globals_in_checkpoint(file)
        file.seek(0)
    with safe_globals([(_Inert, name) for name in unknown]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, about a pickle's version
        return torch.load(file, map_location="cpu", weights_only=True)


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
            raise ConfigError(f"{source}: doesn't fit {name}: it {what} {shown}; give {instead}")
    return {key: state[key] for key in needed}
