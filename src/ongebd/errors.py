"""Errors, each with a one-line message; interruptions; and checks that every room needs."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from numbers import Integral, Real
from pathlib import Path
from reprlib import Repr
from shutil import which
from typing import Any, Self

from ongebd.common.text import printable, public_name


class OngebdError(Exception):
    """A mistake that the user can fix. The message is one line: what, where, and how to fix it.

    The command line prints the message alone and exits with status 2. Secrets of URLs in it are hidden, and
    characters that a terminal might obey are escaped, whatever file they came from.
    """

    def __init__(self, message: object = "", *more: Any, **named: Any) -> None:
        super().__init__(printable(public_name(str(message))), *more, **named)


class SourceError(OngebdError):
    """A source that can't be opened or has no video to decode."""


class FeatureError(OngebdError):
    """A feature that is NaN, infinite, or of norm zero."""


class FrameError(FeatureError, ValueError):
    """A picture of the wrong type or shape."""


class ConfigError(OngebdError, ValueError):
    """A setting outside its range, or an unknown name."""


class LabelError(OngebdError, ValueError):
    """A label or prediction file that can't be trusted or read."""


class StoreError(OngebdError):
    """A feature store that can't be read or written, or would mix different features."""


class MissingDataError(OngebdError):
    """Data that isn't there. Tables and rows that need it are left out with this reason."""


class ClusterError(OngebdError):
    """A cluster that can't be reached, or whose machines can't do the work."""


class MissingExtraError(OngebdError, ImportError):
    """An optional extra is needed and not installed."""

    @classmethod
    def of(cls, module: str | None, extra: str | None) -> Self:
        """The error for a missing module, with the command that brings it into this environment."""
        from importlib.metadata import PackageNotFoundError, requires  # here, because it is slow to import

        needed = [module or ""]
        if extra is not None:  # its packages by name: that works wherever ongebd itself came from
            try:
                listed = [one.partition(";") for one in requires("ongebd") or ()]
            except PackageNotFoundError:
                listed = []
            needed = [name for name, _, when in listed if f"'{extra}'" in when.replace('"', "'")]
            needed = needed or [f"{Path(__file__).parents[2]}[{extra}]"]
        python = Path(sys.executable)
        if Path(which("pip") or "").parent == python.parent:
            command = "pip install"
        else:
            here = f'"{python}"'
            command = f"{here} -m pip install" if find_spec("pip") else f"uv pip install --python {here}"
        packages = " ".join(f'"{one}"' for one in needed)
        return cls(f"{module} is not installed: {command} {packages}", name=module)


def import_extra(module: str, extra: str | None) -> Any:
    """A module that needs an optional extra; None: no extra of ours brings it.

    Raises:
        MissingExtraError: It, or a module that it imports, is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of(problem.name, extra) from None


@contextmanager
def uninterrupted() -> Iterator[list[int]]:
    """Hold SIGINT and SIGTERM back until the end of the block, which must be short or look at the list.

    Yields:
        The numbers of the signals that came so far; for ever none in another thread than the main one, which
        gets no signals.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in held:
            signal.signal(number, lambda number, _frame: heard.append(number))
        yield heard
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        if heard:
            held[signal.Signals(heard[0])](heard[0], None)


@contextmanager
def os_errors(where: object, advice: str = "", error: type[OngebdError] = ConfigError) -> Iterator[None]:
    """Turn an OSError of the block, or a name that no file can have, into one line.

    The line is `{where}: {what happened}; {advice}`. A broken pipe passes through: the reader went away,
    which is not the user's mistake.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        reason = f"{where}: {problem.strerror or problem}"
        raise error(f"{reason}; {advice}" if advice else reason) from problem
    except ValueError as problem:  # all that Python says of such a name
        if not (isinstance(problem, UnicodeEncodeError) or "embedded null" in str(problem)):
            raise
        raise error(f"{where}: no file can have this name; correct it") from None


def a_number(name: str, value: Any) -> float:
    """A setting that must be a number, as a float.

    Raises:
        ConfigError: It is none; a truth value and a text are none.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ConfigError(f"{name} must be a number, not {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ConfigError(f"{name} must have fewer digits: this number has hundreds") from None


def a_whole_number(name: str, value: Any) -> int:
    """A setting that must be a whole number, as an int.

    Raises:
        ConfigError: It is none; 8.0, a truth value and a text are none.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ConfigError(f"{name} must be a whole number, not {shown(value)}")
    number = int(value)
    if abs(number) >= 10**300:
        raise ConfigError(f"{name} must have fewer digits: this number has hundreds")
    return number


_short = Repr()
_short.maxlevel = 3
_short.maxstring = _short.maxother = 1000


def meant(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The name that a user may have meant; if none is near, all of them, or something else to say.

    >>> meant("imediate", ["clock", "immediate"]), meant("x", ["clock", "immediate"])
    ('did you mean immediate?', 'known are clock, immediate')
    """
    from difflib import get_close_matches  # here, because it is only for mistakes

    near = get_close_matches(name, known := list(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise or f"known are {', '.join(known)}"


def shown(value: object) -> str:
    """A value for a message: one short line, whatever its size or depth.

    >>> shown([[[[[]]]]])
    '[[[[...]]]]'
    """
    try:
        text = " ".join(_short.repr(value).split())
    except ValueError:  # Python writes no number of more than 4300 digits
        return f"a huge {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:59]}…"
