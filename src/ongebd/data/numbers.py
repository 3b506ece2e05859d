"""Numbers from files that strangers wrote: finite ones, or one line that says where they are not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ongebd.errors import LabelError

FloatArray = npt.NDArray[np.float64]
"""Times or scores, in seconds unless said otherwise; shape stated where used."""


def number(value: object, where: str) -> float:
    """A finite number.

    Examples:
        >>> number(2, "clip, duration")
        2.0
        >>> number(float("nan"), "clip, duration")
        Traceback (most recent call last):
        ongebd.errors.LabelError: clip, duration: nan is not a finite number; correct or remove it
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise LabelError(f"{where}: a number is wanted, not {kind(value)}")
    try:
        result = float(value)
    except OverflowError:
        raise LabelError(f"{where}: the number is too large; correct or remove it") from None
    if not math.isfinite(result):
        cause = " (1e999 is read as inf too)" if math.isinf(result) else ""
        raise LabelError(f"{where}: {result} is not a finite number{cause}; correct or remove it")
    return result


def parse_number(text: str, where: str) -> float:
    """A finite number written as text."""
    try:
        value = float(text)
    except ValueError:
        raise LabelError(f"{where}: {text[:40]!r} is not a number; correct or remove it") from None
    if math.isinf(value) and "inf" not in text.casefold():
        raise LabelError(f"{where}: {text[:40]!r} is too large a number; correct or remove it")
    return number(value, where)


def number_list(values: object, where: str) -> FloatArray:
    """Finite numbers, shape (n,), in the order given.

    Raises:
        LabelError: Where `values` is no list of numbers, or one of them is NaN or infinite; it names the
            position.
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Sequence):
        raise LabelError(f"{where}: a list of numbers is wanted, not {kind(values)}")
    plain = all(type(value) is float or type(value) is int for value in values)
    if plain:
        try:
            result = np.array(values, dtype=np.float64)
        except OverflowError:
            plain = False
        else:
            if np.isfinite(result).all():
                return result
    return np.array(
        [number(value, f"{where}, position {position}") for position, value in enumerate(values, start=1)],
        dtype=np.float64,
    )


def videos(count: int) -> str:
    """A count of videos, for a note.

    Examples:
        >>> videos(1), videos(3)
        ('1 video', '3 videos')
    """
    return f"{count} video{'' if count == 1 else 's'}"


def kind(value: object) -> str:
    """What a value is, for a message: its type and, where it is short text, the text."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
