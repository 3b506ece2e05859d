"""A training's settings and their types: text and YAML become them, and values are held against them."""

from __future__ import annotations

import types
from math import isfinite
from typing import Any, Literal, Union, get_args, get_origin

from ongebd.errors import ConfigError, a_number, a_whole_number


def as_type(value: Any, wanted: Any, where: str) -> Any:
    """A value from YAML or from the command line as a setting's type.

    Args:
        value: As it was read.
        wanted: bool, int, float, str or Literal, or one of them or None.
        where: The setting, for the message.

    Raises:
        ConfigError: It cannot be read so.

    >>> as_type("1e-4", float, "lr"), as_type(False, Literal["auto", "off"], "compile")
    (0.0001, 'off')
    """
    kind, may_miss = _split(wanted)
    if may_miss and (value is None or value == "none"):
        return None
    if get_origin(kind) is Literal:
        if isinstance(value, bool):  # YAML 1.1 takes off and on for truth values
            value = next((word for word in _WORDS[value] if word in get_args(kind)), value)
        return checked(where, value, kind)
    if kind is bool:
        word = str(value).lower()
        answer = (
            value if isinstance(value, bool) else {w: b for b, ws in _WORDS.items() for w in ws}.get(word)
        )
        return checked(where, answer if answer is not None else value, kind)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _of_type(where, kind, value)
    try:
        return kind(value) if kind is not int or not isinstance(value, float) else _whole(value)
    except (ValueError, OverflowError):
        raise _of_type(where, kind, value) from None


def checked(name: str, value: Any, wanted: Any) -> Any:
    """A setting's value, once it is known to be of its type; numbers as plain ints and floats.

    Args:
        name: The setting.
        value: Its value.
        wanted: As in `as_type`.

    Raises:
        ConfigError: It is of another type, infinite or no number.
    """
    kind, may_miss = _split(wanted)
    if may_miss and value is None:
        return None
    if get_origin(kind) is Literal:
        if not (isinstance(value, str) and value in get_args(kind)):
            raise ConfigError(f"{name} must be one of {', '.join(get_args(kind))}, not {value!r}")
        return value
    if kind is int:
        return a_whole_number(name, value)
    if kind is float:
        number = a_number(name, value)
        if not isfinite(number):
            raise ConfigError(f"{name} must be a finite number, not {number}")
        return number
    if not isinstance(value, kind):
        what = "true or false" if kind is bool else "a text"
        raise ConfigError(f"{name} must be {what}, not {value!r}")
    return value


_WORDS = {True: ("true", "yes", "on"), False: ("false", "no", "off")}


def _split(wanted: Any) -> tuple[Any, bool]:
    """The type without None, and whether None was among its options."""
    options = get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)
    kind = next(option for option in options if option is not type(None))
    return kind, type(None) in options


def _of_type(where: str, kind: Any, value: Any) -> ConfigError:
    return ConfigError(f"{where} must be of type {kind.__name__}, not {value!r}")


def _whole(value: float) -> int:
    if value != int(value):
        raise ValueError
    return int(value)
