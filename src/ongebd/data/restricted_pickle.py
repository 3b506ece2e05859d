"""Reads pickles from strangers without running anything that they ask for.

A pickle is a small program that can name any function and have it called. Label and prediction files need a
few names, all of them numpy's or a way to carry bytes. Here such a call is only noted while the pickle loads,
and every other name is refused. Afterwards the whole value is copied into plain dicts, lists, tuples, text,
numbers, booleans and None: numpy scalars become numbers and numpy arrays become lists. A budget that depends
on the file's size limits that copy.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.errors import LabelError

_CORES = ("numpy.core", "numpy._core")
_NAMES = {
    ("numpy", "dtype"): "dtype",
    ("numpy", "ndarray"): "ndarray",  # only named as the kind of array to make
    ("_codecs", "encode"): "encode",  # how protocols 0 to 2 carry bytes
    ("__builtin__", "bytes"): "bytes",  # how they carry no bytes
    ("builtins", "bytes"): "bytes",
    ("collections", "OrderedDict"): "dict",
    ("collections", "defaultdict"): "dict",
    **{(module, name): "default" for module in ("builtins", "__builtin__") for name in ("list", "dict")},
    **{(f"{core}.multiarray", "scalar"): "scalar" for core in _CORES},
    **{(f"{core}.multiarray", "_reconstruct"): "array" for core in _CORES},
    **{(f"{core}.numeric", "_frombuffer"): "buffer" for core in _CORES},  # protocol 5
}
_SIMPLE = re.compile(r"[|<>=]?(b1|[biu][1248]|f[248]|[SU][0-9]{1,5}|O8?)")
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")
_EXPANSION = 8  # values, or bytes of numpy data, that each byte of a file may unfold into
_DEPTH = 40
_ADVICE = "get the file from its official source, or save it as JSON"
_TOO_MUCH = "it asks for far more memory than it could fill"


def read_pickle(data: bytes, path: Path) -> object:
    """Plain values from the bytes of a pickle of any protocol, including Python 2's (as latin1).

    Args:
        data: The bytes.
        path: The file's name, for messages.

    Raises:
        LabelError: The pickle names something that labels don't need, is too large, cut off, or no pickle.
    """
    try:
        # The loader makes room for all memo numbers up to the highest.
        highest = max(
            (int(number or 0) for code, number, _ in pickletools.genops(data) if code.name in _PUTS),
            default=0,
        )
    except (ValueError, UnicodeError, OverflowError, MemoryError) as problem:
        raise LabelError(
            f"{path}: not a whole pickle of labels or predictions ({_reason(problem)}); the file may be cut "
            "off, download it again"
        ) from None
    try:
        if highest > len(data):
            raise _RefusedError(_TOO_MUCH)
        loaded = _NotingUnpickler(io.BytesIO(data), encoding="latin1").load()
        return _Plain(_EXPANSION * len(data)).value(loaded)
    except _RefusedError as refused:
        raise LabelError(f"{path}: refused, {refused}; {_ADVICE}") from None
    except (
        *(pickle.UnpicklingError, EOFError, LookupError, MemoryError, RecursionError),
        *(AttributeError, ArithmeticError, TypeError, ValueError),
    ) as problem:
        raise LabelError(
            f"{path}: holds neither labels nor predictions ({_reason(problem)}); {_ADVICE}"
        ) from None


def _reason(problem: Exception) -> str:
    return " ".join(str(problem).split())[:120] or type(problem).__name__


class _RefusedError(Exception):
    """Only a hostile file has this, or a file for another purpose."""


class _Call:
    """A known name, or a call of it that the pickle asks for: noted, not made."""

    __slots__ = ("arguments", "items", "name", "state")

    def __init__(self, name: str, arguments: tuple[Any, ...] | None = None) -> None:
        self.name = name
        self.arguments = arguments
        self.state: Any = None
        self.items: dict[Any, Any] = {}

    def __call__(self, *arguments: Any) -> _Call:
        return _Call(self.name, arguments)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value

    def __setstate__(self, state: object) -> None:
        self.state = state


class _NotingUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        name = _NAMES.get((module_name, global_name))
        if name is None:
            asked = f"{module_name}.{global_name}"[:80]
            raise _RefusedError(
                f"the pickle asks for {asked}, which labels and predictions don't need and which may run code"
            )
        return _Call(name)


class _Plain:
    """Copies a loaded value. Shared parts are copied as often as they occur, at the budget's expense."""

    def __init__(self, budget: int) -> None:
        self._left = budget
        self._dtypes: dict[int, np.dtype[Any]] = {}

    def value(self, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, str | int | float | bytes):
            return value
        if depth > _DEPTH:
            raise _RefusedError("it is nested too deeply, or holds itself")
        if isinstance(value, _Call):
            return self._called(value, depth + 1)
        if not isinstance(value, dict | list | tuple):
            raise _RefusedError(f"it holds a value of type {type(value).__name__}")
        self._spend(len(value))
        if isinstance(value, dict):
            copy = {self.value(key, depth + 1): self.value(item, depth + 1) for key, item in value.items()}
            if not all(key is None or isinstance(key, str | bytes | int | float) for key in copy):
                raise _RefusedError("a key is neither text nor a number")
            return copy
        return type(value)(self.value(item, depth + 1) for item in value)

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise _RefusedError(_TOO_MUCH)

    def _called(self, call: _Call, depth: int) -> Any:
        arguments = call.arguments or ()
        if call.name == "scalar":
            dtype, raw = arguments
            return self._array(dtype, raw, (1,), "C", depth)[0]
        if call.name == "array":
            _, shape, dtype, fortran, raw = call.state
            return self._array(dtype, raw, shape, "F" if fortran else "C", depth)
        if call.name == "buffer":
            raw, dtype, shape, order = arguments
            return self._array(dtype, raw, shape, "F" if order == "F" else "C", depth)
        if call.name == "encode" and isinstance(arguments[0], str) and arguments[1] == "latin1":
            self._spend(len(arguments[0]))
            return arguments[0].encode("latin1")
        if call.name == "dict" and call.arguments is not None:
            pairs = next((each for each in arguments if isinstance(each, list)), [])  # Python 2's OrderedDict
            self._spend(len(pairs))
            return self.value({**dict(pairs), **call.items}, depth)
        if call.name == "bytes" and call.arguments == ():
            return b""
        raise _RefusedError(f"it uses {call.name} in an unusual way")

    def _array(self, dtype: object, raw: Any, shape: object, order: Any, depth: int) -> list[Any]:
        """The values of a numpy array, nested as `shape` says.

        A shape with a 0 in it needs no bytes but may ask for any number of empty lists, and many arrays may
        share the same bytes; so the budget is spent before anything is made.
        """
        kind = self._dtype(dtype)
        if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
            raise _RefusedError("a numpy array has no shape")
        raw = bytes(raw) if isinstance(raw, bytearray) else self.value(raw, depth)
        if isinstance(raw, list) and shape == (len(raw),):  # the items of an array of objects
            return raw
        if isinstance(raw, str):  # Python 2's bytes
            raw = raw.encode("latin1")
        if kind.kind == "O" or kind.itemsize == 0 or not isinstance(raw, bytes):
            raise _RefusedError("numpy data has no bytes")
        if math.prod(shape) * kind.itemsize != len(raw):
            raise _RefusedError(f"a numpy array of shape {shape!s:.60} has {len(raw)} bytes")
        lists = 1
        for length in shape[:-1]:
            lists *= length
            self._spend(lists)
        self._spend(len(raw))
        array = np.frombuffer(raw, dtype=kind).reshape(shape, order=order)
        values = (np.char.decode(array, "latin1") if kind.kind == "S" else array).tolist()
        return values if isinstance(values, list) else [values]

    def _dtype(self, call: object) -> np.dtype[Any]:
        if id(call) not in self._dtypes:
            if not isinstance(call, _Call) or call.name != "dtype" or not call.arguments:
                raise _RefusedError("numpy data has no dtype")
            spec = call.arguments[0]
            if not isinstance(spec, str) or not _SIMPLE.fullmatch(spec):
                raise _RefusedError("a numpy dtype is neither a number nor text")
            order: Any = "=" if call.state is None else call.state[1]
            self._dtypes[id(call)] = np.dtype(spec).newbyteorder(order)
        return self._dtypes[id(call)]
