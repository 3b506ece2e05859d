"""Numbers from files: finite ones, or one line that says where they aren't."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from ongebd.errors import LabelError

FloatArray = npt.NDArray[np.float64]
"""Times or scores, in seconds unless stated otherwise."""


def number(value: object, where: str) -> float:
    """A finite number.

    >>> number(2, "clip, duration")
    2.0
    >>> number(float("nan"), "clip, duration")
    Traceback (most recent call last):
    ongebd.errors.LabelError: clip, duration: nan is not a finite number; correct or remove it
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise LabelError(f"{where}: must be a number, not {kind(value)}")
    try:
        result = float(value)
    except OverflowError:
        raise LabelError(f"{where}: the number is too large; correct or remove it") from None
    if not math.isfinite(result):
        cause = " (1e999 reads as inf too)" if math.isinf(result) else ""
        raise LabelError(f"{where}: {result} is not a finite number{cause}; correct or remove it")
    return result


def parse_number(text: str, where: str) -> float:
    """A finite number written as text."""
    try:
        value = float(text)
    except ValueError:
        raise LabelError(f"{where}: {text[:40]!r} is not a number; correct or remove it") from None
    return number(value, where)


def number_list(values: object, where: str) -> FloatArray:
    """Finite numbers, shape (n,), in the given order."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not is_list(values):
        raise LabelError(f"{where}: must be a list of numbers, not {kind(values)}")
    if all(type(value) is float for value in values):  # most lists: quick
        result = np.array(values, dtype=np.float64)
        if np.isfinite(result).all():
            return result
    checked = [number(value, f"{where}, position {place}") for place, value in enumerate(values, start=1)]
    return np.array(checked, dtype=np.float64)


def videos(count: int) -> str:
    """A count of videos, for a note: `1 video`, `3 videos`."""
    return f"{count} video{'' if count == 1 else 's'}"


def kind(value: object) -> str:
    """What a value is, for a message: its type or, where it is text, the start of it."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether it is a list or tuple, not text, bytes or a dict."""
    return isinstance(value, list | tuple)
