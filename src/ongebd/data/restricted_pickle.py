"""Pickles from strangers, read without running anything that they ask for.

A pickle is a small program: it can name any function and have it called. Label and prediction files need six
names, all of them numpy's or the codec that carries its bytes. Those names are answered here by stand-ins of
our own, which only know how to turn bytes into plain numbers and text; every other name is refused before
anything is called. numpy's own functions are not called on the file's say-so either: they trust the state
that a pickle hands them.

The result holds plain dicts, lists, tuples, text, numbers, booleans and None: numpy scalars become Python
numbers, numpy arrays become lists.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.errors import LabelError

_SIMPLE = re.compile(r"[|<>=]?(b1|[biu][1248]|f[248]|[SU][0-9]{1,5}|O8?)")
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")
_ORDERS = ("<", ">", "=", "|")


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
        _check_memo(data)
        return _PlainUnpickler(io.BytesIO(data), encoding="latin1").load()
    except _RefusedNameError as refused:
        raise LabelError(
            f"{path}: refused, the pickle asks for {refused}, which labels and predictions do not need and "
            "which may run code; get the file from its official source, or save it as JSON"
        ) from None
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
        reason = " ".join(str(problem).split())[:120] or type(problem).__name__
        raise LabelError(
            f"{path}: not a whole pickle of labels or predictions ({reason}); the file may be cut off, "
            "download it again"
        ) from None


def _check_memo(data: bytes) -> None:
    """Refuse a pickle that numbers a value higher than it has bytes: all lower ones would get room."""
    for _, argument, _ in (op for op in pickletools.genops(data) if op[0].name in _PUTS):
        if not isinstance(argument, int) or argument > len(data):
            raise pickle.UnpicklingError("it asks for far more memory than it could fill")


class _RefusedNameError(Exception):
    """A name that is not on the list."""


class _PlainUnpickler(pickle.Unpickler):
    """Resolves the names in `_STAND_INS` to instances with no attributes to set; refuses all others."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        stand_in = _STAND_INS.get((module_name, global_name))
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
            raise pickle.UnpicklingError("a structured numpy dtype")
        if state[1] not in _ORDERS:
            raise pickle.UnpicklingError("an unknown byte order")
        self.order = state[1]

    def resolve(self) -> np.dtype[Any]:
        dtype = np.dtype(self.spec)
        return dtype if self.order in ("|", "=") else dtype.newbyteorder("<" if self.order == "<" else ">")


class _MakeDtype:
    """Stands for `numpy.dtype`."""

    __slots__ = ()

    def __call__(self, spec: object, *_: object) -> _Dtype:
        if not isinstance(spec, str) or not _SIMPLE.fullmatch(spec):
            raise pickle.UnpicklingError("a numpy dtype that is no number and no text")
        return _Dtype(spec)


class _MakeScalar:
    """Stands for `numpy.core.multiarray.scalar`: one number or text from its bytes."""

    __slots__ = ()

    def __call__(self, dtype: object, raw: object = b"") -> object:
        return _values(dtype, raw, (1,), "C")[0]


class _Array(list[object]):
    """A numpy array on its way to a plain list: empty until its state comes."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError("an unknown numpy array state")
        _, shape, dtype, fortran, raw = state
        self[:] = _values(dtype, raw, shape, "F" if fortran else "C")


class _Reconstruct:
    """Stands for `numpy.core.multiarray._reconstruct`."""

    __slots__ = ()

    def __call__(self, *_: object) -> _Array:
        return _Array()


class _FromBuffer:
    """Stands for `numpy.core.numeric._frombuffer`, which protocol 5 uses."""

    __slots__ = ()

    def __call__(self, raw: object, dtype: object, shape: object, order: object) -> list[object]:
        return _values(dtype, raw, shape, "F" if order == "F" else "C")


class _ArrayKind:
    """Stands for `numpy.ndarray`, which is only ever named as the kind of array to make."""

    __slots__ = ()


class _Encode:
    """Stands for `_codecs.encode`, by which protocols 0 to 2 carry bytes."""

    __slots__ = ()

    def __call__(self, text: object, encoding: object = "latin1") -> bytes:
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise pickle.UnpicklingError("an encoding other than latin1")
        return text.encode("latin1")


def _values(dtype: object, raw: object, shape: object, order: str) -> list[object]:
    """Plain values, nested as `shape` says, from the bytes of a numpy scalar or array."""
    if not isinstance(dtype, _Dtype):
        raise pickle.UnpicklingError("numpy data without a dtype")
    if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
        raise pickle.UnpicklingError("a numpy array without a shape")
    if isinstance(raw, list):  # an array of objects carries its items
        if shape != (len(raw),):
            raise pickle.UnpicklingError("an array of objects with more than one dimension")
        return raw
    if isinstance(raw, str):  # Python 2's bytes
        raw = raw.encode("latin1")
    kind = dtype.resolve()
    if kind.kind == "O" or not isinstance(raw, bytes | bytearray) or kind.itemsize == 0:
        raise pickle.UnpicklingError("numpy data without bytes")
    array = np.frombuffer(bytes(raw), dtype=kind).reshape(shape, order="F" if order == "F" else "C")
    if kind.kind == "S":
        array = np.char.decode(array, "latin1")
    values = array.tolist()
    return values if isinstance(values, list) else [values]


_STAND_INS: dict[tuple[str, str], object] = {
    ("numpy", "dtype"): _MakeDtype(),
    ("numpy", "ndarray"): _ArrayKind(),
    ("_codecs", "encode"): _Encode(),
}
for _core in ("numpy.core", "numpy._core"):
    _STAND_INS[f"{_core}.multiarray", "scalar"] = _MakeScalar()
    _STAND_INS[f"{_core}.multiarray", "_reconstruct"] = _Reconstruct()
    _STAND_INS[f"{_core}.numeric", "_frombuffer"] = _FromBuffer()
