"""Settings as dataclasses: each field's type and range is checked, and text becomes the field's type.

Pydantic and msgspec do this too. Ours is small, adds nothing to the light core's start-up, keeps plain frozen
dataclasses, and says what is wrong in one line.
"""

from __future__ import annotations

import types
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ongebd.errors import ConfigError, a_number, a_whole_number, meant, shown

Settings = TypeVar("Settings", bound=Any)


@dataclass(frozen=True, kw_only=True)
class Range:
    """What a number may be: `Annotated[float, Range(above=0, most=600)]`."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        words = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{word} {limit:g}" for word, limit in words.items() if limit is not None)


def check_fields(settings: Any, where: str = "") -> None:
    """Check every field of a dataclass against its type and `Range`; for `__post_init__`.

    Known types are bool, int, float, str and Literal, each with or without None; other fields are left alone.
    Numbers are kept as plain int and float, also in a frozen dataclass.

    Args:
        settings: The dataclass instance.
        where: What to put before a field's name in messages, such as "--" or "x.yaml: ".

    Raises:
        ConfigError: A value has another type or is out of range, infinite or NaN.
    """
    for name, hint in _hints(settings.__class__).items():
        object.__setattr__(settings, name, _checked(f"{where}{name}", getattr(settings, name), hint))


def changed(
    settings: Settings, changes: Mapping[str, Any], where: str = "", also: Iterable[str] = ()
) -> Settings:
    """A copy of a dataclass with some fields changed. Text is read as the field's type.

    Args:
        settings: The dataclass instance.
        changes: Values by field name, from Python, YAML or a command line.
        where: What to put before a name in messages.
        also: Other names that may have been meant.

    Raises:
        ConfigError: A name is unknown, or a value doesn't fit.
    """
    hints = _hints(settings.__class__)
    read = {}
    for name, value in changes.items():
        if name not in hints:
            hint = meant(name, [*hints, *also], f"known are {', '.join(hints)}")
            raise ConfigError(f"{where}unknown setting {name!r}: {hint}")
        read[name] = read_as(value, hints[name], f"{where}{name}")
    return replace(settings, **read)


def differences(old: Any, new: Any, ignored: Container[str] = ()) -> str:
    """How the fields of two dataclasses of one type differ, in words; empty if they agree."""
    pairs = [(field.name, getattr(old, field.name), getattr(new, field.name)) for field in fields(old)]
    return "; ".join(f"{name} {a!r}, not {b!r}" for name, a, b in pairs if name not in ignored and a != b)


def read_as(value: Any, wanted: Any, where: str) -> Any:
    """A value from YAML or a command line, as a setting's type.

    Raises:
        ConfigError: It can't be read as that type.

    >>> read_as("1e-4", float, "lr"), read_as(False, Literal["auto", "off"], "compile")
    (0.0001, 'off')
    """
    kind, optional, _ = _split(wanted)
    if optional and (value is None or (isinstance(value, str) and value == "none")):
        return None
    if get_origin(kind) is Literal and isinstance(value, bool):  # YAML 1.1 reads `off` and `on` as booleans
        value = next((word for word in _WORDS[value] if word in get_args(kind)), value)
    elif kind is bool and isinstance(value, str):
        value = next((truth for truth, words in _WORDS.items() if value.lower() in words), value)
    elif kind in (int, float) and isinstance(value, str):
        try:
            value = kind(value)
        except ValueError:
            raise ConfigError(f"{where} must be {_NAMES[kind]}, not {shown(value)}") from None
    elif kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    elif kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value if isinstance(value, float) else a_whole_number(where, value))
    return _checked(where, value, wanted)


_WORDS = {True: ("true", "yes", "on"), False: ("false", "no", "off")}
_NAMES = {bool: "true or false", str: "text", int: "a whole number", float: "a number"}


def _checked(name: str, value: Any, wanted: Any) -> Any:
    kind, optional, within = _split(wanted)
    if optional and value is None:
        return None
    if get_origin(kind) is Literal:
        if not isinstance(value, str) or value not in get_args(kind):
            raise ConfigError(f"{name} must be one of {', '.join(get_args(kind))}, not {shown(value)}")
    elif kind in (int, float):
        value = a_whole_number(name, value) if kind is int else a_number(name, value)
        if not isfinite(value):
            raise ConfigError(f"{name} must be a finite number, not {value}")
        if within is not None and value not in within:
            raise ConfigError(f"{name} must be {within}, not {value}")
    elif kind in (bool, str) and not isinstance(value, kind):
        raise ConfigError(f"{name} must be {_NAMES[kind]}, not {shown(value)}")
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def _split(wanted: Any) -> tuple[Any, bool, Range | None]:
    """The plain type, whether None is allowed, and the range."""
    within = None
    if get_origin(wanted) is Annotated:
        wanted, *extras = get_args(wanted)
        within = next((extra for extra in extras if isinstance(extra, Range)), None)
    options = get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)
    kinds = [option for option in options if option is not type(None)]
    if len(kinds) > 1:
        return object, False, None
    kind, _, inner = _split(kinds[0]) if get_origin(kinds[0]) is Annotated else (kinds[0], False, None)
    return kind, type(None) in options, within or inner
