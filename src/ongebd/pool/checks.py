"""Checks of a pool's settings."""

from __future__ import annotations

from ongebd.errors import ConfigError, a_number, a_whole_number


def at_least_one(name: str, value: int) -> int:
    """A whole number of at least 1.

    Raises:
        ConfigError: It is none.
    """
    number = a_whole_number(name, value)
    if number < 1:
        raise ConfigError(f"{name} must be at least 1, not {number}")
    return number


def a_delay(value: float) -> float:
    """Seconds to wait, below an hour.

    Raises:
        ConfigError: It is no such number.
    """
    number = a_number("max_delay", value)
    if not 0 <= number < 3600:
        raise ConfigError(f"max_delay must be a number of seconds from 0 on, not {number}")
    return number
