"""Pickles from strangers, read without running anything that they ask for.

A pickle is a small program: it can name any function and have it called. Label and prediction files need a
few names, all of them numpy's or what carries its bytes. Those names are answered here by stand-ins of our
own, which only know how to turn bytes into plain numbers and text; every other name is refused before
anything is called. numpy's own functions are not called on the file's say-so either: they trust the state
that a pickle hands them. What a file may fill is bounded by its size.

The result holds plain dicts, lists, tuples, text, numbers, booleans and None: numpy scalars become Python
numbers, numpy arrays become lists.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.errors import LabelError

_SIMPLE = re.compile(r"[|<>=]?(b1|[biu][1248]|f[248]|[SU][0-9]{1,5}|O8?)")
Container = dict[Any, Any] | list[Any] | tuple[Any, ...]

_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")
_ORDERS = ("<", ">", "=", "|")
_EXPANSION = 8  # values that may come from each byte of a file, shared ones counted as often as they stand
_MEND = "get the file from its official source, or save it as JSON"


def read_pickle(data: bytes, path: Path) -> object:
    """Plain values from the bytes of a pickle of any protocol, Python 2's (as latin1) included.

    Args:
        data: The bytes.
        path: The file's name, for messages.

    Returns:
        Nested dicts, lists and tuples of text, numbers, booleans and None.

    Raises:
        LabelError: Where the pickle names anything that labels do not need, is cut off, or is no pickle.
    """
    try:
        memo_is_sane = _memo_is_sane(data)
    except (ValueError, UnicodeError, OverflowError, MemoryError) as problem:
        raise LabelError(
            f"{path}: not a whole pickle of labels or predictions ({_reason(problem)}); the file may be cut "
            "off, download it again"
        ) from None
    try:
        if not memo_is_sane:
            raise _OddPickleError("it asks for far more memory than it could fill")
        value = _PlainUnpickler(data).load()
        _check_size(value, len(data))
        return value
    except _RefusedNameError as refused:
        raise LabelError(
            f"{path}: refused, the pickle asks for {refused}, which labels and predictions do not need and "
            f"which may run code; {_MEND}"
        ) from None
    except _OddPickleError as problem:
        raise LabelError(f"{path}: refused, {problem}; no file of labels needs that, {_MEND}") from None
    except (
        pickle.UnpicklingError,
        EOFError,
        AttributeError,
        IndexError,
        KeyError,
        MemoryError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as problem:
        raise LabelError(
            f"{path}: a whole pickle, but not one of labels or predictions ({_reason(problem)}); {_MEND}"
        ) from None


def _reason(problem: Exception) -> str:
    return " ".join(str(problem).split())[:120] or type(problem).__name__


def _memo_is_sane(data: bytes) -> bool:
    """Whether a pickle numbers no value higher than it has bytes: all lower ones would get room.

    Raises:
        ValueError: The pickle is cut off, or none.
    """
    return all(
        isinstance(argument, int) and argument <= len(data)
        for opcode, argument, _ in pickletools.genops(data)
        if opcode.name in _PUTS
    )


def _check_size(value: object, size: int) -> None:
    """Refuse a value that holds itself, or that is far larger than its file once shared parts are copied."""
    most = _EXPANSION * size
    sizes: dict[int, int] = {}  # of each container, its parts included
    stack = list(_parts([value]))
    while stack:
        top = stack[-1]
        if sizes.get(id(top), -1) >= 0:
            stack.pop()
            continue
        parts = list(_parts(top))
        if id(top) not in sizes:
            sizes[id(top)] = -1  # open: its parts come first
            stack += [part for part in parts if id(part) not in sizes]
            continue
        stack.pop()
        total = len(top) + sum(sizes[id(part)] for part in parts)
        if any(sizes[id(part)] < 0 for part in parts):
            raise _OddPickleError("it holds itself")
        if total > most:
            raise _OddPickleError("it unfolds to far more values than the file holds")
        sizes[id(top)] = total


def _parts(value: Container) -> Iterator[Container]:
    """The containers in a value."""
    if isinstance(value, dict):
        if not all(isinstance(key, str | bytes | int | float | None) for key in value):
            raise _OddPickleError("a key that is neither text nor a number")
        yield from (part for part in value.values() if isinstance(part, list | tuple | dict))
    else:
        yield from (part for part in value if isinstance(part, list | tuple | dict))


class _RefusedNameError(Exception):
    """A name that is not on the list."""


class _OddPickleError(Exception):
    """Something that only a hostile file, or one for another purpose, has."""


class _Budget:
    """How much numpy data may still be made: a few times as much as the file has bytes."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = _EXPANSION * size

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise _OddPickleError("it asks for far more memory than it could fill")


class _PlainUnpickler(pickle.Unpickler):
    """Resolves the names that it knows to instances with no attributes to set; refuses all others."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="latin1")
        self._stand_ins = _stand_ins(_Budget(len(data)))

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        stand_in = self._stand_ins.get((module_name, global_name))
        if stand_in is None:
            raise _RefusedNameError(f"{module_name}.{global_name}"[:80])
        return stand_in


class _Dtype:
    """What a pickled numpy dtype says: one simple kind and its byte order."""

    __slots__ = ("order", "spec")

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.order = "="

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise _OddPickleError("a structured numpy dtype")
        if state[1] not in _ORDERS:
            raise _OddPickleError("an unknown byte order")
        self.order = state[1]

    def resolve(self) -> np.dtype[Any]:
        dtype = np.dtype(self.spec)
        return dtype if self.order in ("|", "=") else dtype.newbyteorder("<" if self.order == "<" else ">")


class _MakeDtype:
    """Stands for `numpy.dtype`."""

    __slots__ = ()

    def __call__(self, spec: object, *_: object) -> _Dtype:
        if not isinstance(spec, str) or not _SIMPLE.fullmatch(spec):
            raise _OddPickleError("a numpy dtype that is no number and no text")
        return _Dtype(spec)


class _MakeScalar:
    """Stands for `numpy.core.multiarray.scalar`: one number or text from its bytes."""

    __slots__ = ("_budget",)

    def __init__(self, budget: _Budget) -> None:
        self._budget = budget

    def __call__(self, dtype: object, raw: object = b"") -> object:
        return _values(dtype, raw, (1,), "C", self._budget)[0]


class _Array(list[object]):
    """A numpy array on its way to a plain list: empty until its state comes."""

    __slots__ = ("_budget",)

    def __init__(self, budget: _Budget) -> None:
        super().__init__()
        self._budget = budget

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise _OddPickleError("an unknown numpy array state")
        _, shape, dtype, fortran, raw = state
        self[:] = _values(dtype, raw, shape, "F" if fortran else "C", self._budget)


class _Reconstruct:
    """Stands for `numpy.core.multiarray._reconstruct`."""

    __slots__ = ("_budget",)

    def __init__(self, budget: _Budget) -> None:
        self._budget = budget

    def __call__(self, *_: object) -> _Array:
        return _Array(self._budget)


class _FromBuffer:
    """Stands for `numpy.core.numeric._frombuffer`, which protocol 5 uses."""

    __slots__ = ("_budget",)

    def __init__(self, budget: _Budget) -> None:
        self._budget = budget

    def __call__(self, raw: object, dtype: object, shape: object, order: object) -> list[object]:
        return _values(dtype, raw, shape, "F" if order == "F" else "C", self._budget)


class _ArrayKind:
    """Stands for `numpy.ndarray`, which is only ever named as the kind of array to make."""

    __slots__ = ()


class _Encode:
    """Stands for `_codecs.encode`, by which protocols 0 to 2 carry bytes."""

    __slots__ = ("_budget",)

    def __init__(self, budget: _Budget) -> None:
        self._budget = budget

    def __call__(self, text: object, encoding: object = "latin1") -> bytes:
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise _OddPickleError("an encoding other than latin1")
        self._budget.spend(len(text))
        return text.encode("latin1")


class _NoBytes:
    """Stands for `bytes`, by which protocols 0 to 2 carry none."""

    __slots__ = ()

    def __call__(self, *arguments: object) -> bytes:
        if arguments:
            raise _OddPickleError("bytes made of something else")
        return b""


def _values(dtype: object, raw: object, shape: object, order: str, budget: _Budget) -> list[object]:
    """Plain values, nested as `shape` says, from the bytes of a numpy scalar or array.

    A shape with a 0 in it has no bytes but may ask for any number of empty lists, and one run of bytes may be
    named by any number of arrays; so what is made is taken off a budget before it is made.
    """
    if not isinstance(dtype, _Dtype):
        raise _OddPickleError("numpy data without a dtype")
    if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
        raise _OddPickleError("a numpy array without a shape")
    if isinstance(raw, list):  # an array of objects carries its items
        if shape != (len(raw),):
            raise _OddPickleError("an array of objects with more than one dimension")
        budget.spend(len(raw))
        return raw
    if isinstance(raw, str):  # Python 2's bytes
        raw = raw.encode("latin1")
    kind = dtype.resolve()
    if kind.kind == "O" or not isinstance(raw, bytes | bytearray) or kind.itemsize == 0:
        raise _OddPickleError("numpy data without bytes")
    if math.prod(shape) * kind.itemsize != len(raw):
        raise _OddPickleError(f"a numpy array of shape {shape!s:.60} has {len(raw)} bytes")
    lists = 1
    for length in shape[:-1]:
        lists *= length
        budget.spend(lists)
    budget.spend(len(raw))
    array = np.frombuffer(bytes(raw), dtype=kind).reshape(shape, order="F" if order == "F" else "C")
    if kind.kind == "S":
        array = np.char.decode(array, "latin1")
    values = array.tolist()
    return values if isinstance(values, list) else [values]


def _stand_ins(budget: _Budget) -> dict[tuple[str, str], object]:
    """What each allowed name stands for, made anew for each file."""
    names: dict[tuple[str, str], object] = {
        ("numpy", "dtype"): _MakeDtype(),
        ("numpy", "ndarray"): _ArrayKind(),
        ("_codecs", "encode"): _Encode(budget),
        ("__builtin__", "bytes"): _NoBytes(),
        ("builtins", "bytes"): _NoBytes(),
    }
    for core in ("numpy.core", "numpy._core"):
        names[f"{core}.multiarray", "scalar"] = _MakeScalar(budget)
        names[f"{core}.multiarray", "_reconstruct"] = _Reconstruct(budget)
        names[f"{core}.numeric", "_frombuffer"] = _FromBuffer(budget)
    return names
