"""What all writers share: a run's header and end, the `Writer` class, and files that a kill leaves whole."""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from ongebd.common.text import printable, spoken_name
from ongebd.errors import ConfigError, OngebdError
from ongebd.types import Boundary, Decision, Epoch, Frame

_CLOCK = 0.001  # seconds: clocks of containers tick no more finely

Setting = float | int | str | bool | None
Target = str | Path | TextIO
"""Where a writer writes: a path, or an open text stream that its owner closes."""


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What is known of a run before its first frame.

    Attributes:
        source: File, URL or camera as the user named it. Writers hide the credentials in it.
        model: Name of the model.
        settings: The detector's settings: `fps` (per second), `tau` (standard deviations) and so on.
        width: Width of an upright frame, pixels.
        height: Height of an upright frame, pixels; both are 0 for stored features.
        version: Version of ongebd.
        runtime: The runtime of the networks if the user chose one, else None.
        precision: The number format of the networks if the user chose one, else None.
        id: The video's, where it has another one than its source's name.
        rate: Frames a second that the source declares, as a fraction (`30000/1001`); None if unknown.
    """

    source: str = field(repr=False)
    model: str
    settings: Mapping[str, Setting]
    width: int
    height: int
    version: str
    runtime: str | None = None
    precision: str | None = None
    id: str | None = None
    rate: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended.

    Attributes:
        complete: False if the run stopped before the end of the source.
        duration: Seconds from the first frame to the end of the last decoded frame.
        frames: Frames that the detector saw.
        boundaries: Boundaries found; of a selection, those that are wanted.
        warnings: Warnings for the user, one line each.
        found: Boundaries of which a selection was made; None if none was.
    """

    complete: bool
    duration: float
    frames: int
    boundaries: int
    warnings: list[str] = field(default_factory=list)
    found: int | None = None


def mark(source: str) -> str:
    """What a result file says of its source, in letters that mean nothing in any format."""
    name = quote(spoken_name(source), "/ ", errors="surrogateescape").replace("--", "-%2D")
    return f"ongebd: Events of {name}"


class Frames:
    """Frame numbers at a steady `rate`, in frames a second. It counts the times between two frames.

    >>> frames = Frames(RunHeader("a", "m", {}, 0, 0, "0", rate="25"))
    >>> frames(1.04), frames(1.05), frames.note()
    (26, 26, ['1 of 2 times moved to the nearest frame at 25 frames/s, by at most 10 ms'])
    """

    def __init__(self, header: RunHeader) -> None:
        if not re.fullmatch(r"[1-9]\d{0,8}(/[1-9]\d{0,8})?", str(header.rate)):
            name = spoken_name(header.source)
            raise ConfigError(f"{name}: its frame rate isn't known; use `ongebd convert` with --fps")
        self.rate = Fraction(str(header.rate))
        self._seen: dict[float, float] = {}  # how far each time was moved

    def __call__(self, seconds: float) -> int:
        number = max(0, round(Fraction(seconds) * self.rate))
        self._seen[seconds] = abs(seconds - float(number / self.rate))
        return number

    def note(self) -> list[str]:
        """A line that says how many times were moved, and how far, if any was."""
        moved = [by for by in self._seen.values() if by > _CLOCK]
        if not moved:
            return []
        times = f"{len(moved)} of {len(self._seen)} times moved to the nearest frame"
        return [f"{times} at {float(self.rate):.6g} frames/s, by at most {1000 * max(moved):.0f} ms"]


class Writer:
    """Takes what a stream finds, as it finds it. Ignores everything; formats override what they need.

    Attributes:
        slow: Whether closing takes long.
    """

    slow = False

    def decision(self, frame: Frame, decision: Decision) -> None:
        """Take the decision on one frame. Called for every frame that the detector saw."""

    def found(self, boundary: Boundary) -> None:
        """Take a decided boundary of which it isn't known yet whether it is wanted; before `boundary`."""

    def boundary(self, boundary: Boundary) -> None:
        """Take a decided boundary; called after `decision` of the frame that decided it.

        Where a selection of a file was asked for, they come at the end, by time.
        """

    def closed(self, boundary: Boundary) -> None:
        """Take a boundary again, with its peak and kind, once they are known."""

    def epoch(self, epoch: Epoch) -> None:
        """Take a break in the source; called before `decision` of the first frame after it."""

    def close(self, end: RunEnd) -> None:
        """Finish. Called once, also if the run stopped early."""


class TextFile:
    """A file or stream whose text reaches the operating system before `write` returns: a kill loses nothing.

    If a write to a file fails half-way (full disk), it is undone: the file ends with a whole record.

    Args:
        target: Where to write.
        option: The command-line option that error messages point to.
    """

    def __init__(self, target: Target, option: str = "--out") -> None:
        self._option = option
        self._out: TextIO | io.FileIO
        if isinstance(target, str | Path):
            self._name, self.encoding = str(target), "utf-8"
            with writing(self._name, option):
                self._out = io.FileIO(target, "w")
        else:
            name = str(getattr(target, "name", "the output"))
            self._name = "standard output" if name == "<stdout>" else name
            self._out, self.encoding = target, getattr(target, "encoding", None) or "utf-8"

    def write(self, text: str) -> None:
        """Write whole records. Characters that the encoding lacks become escapes."""
        data = text.encode(self.encoding, "backslashreplace")
        with writing(self._name, self._option):
            if isinstance(self._out, io.FileIO):
                _write_all(self._out, data)
            else:
                self._out.write(data.decode(self.encoding))
                self._out.flush()

    def close(self) -> None:
        """Close the file; leave a stream open."""
        if isinstance(self._out, io.FileIO):
            with writing(self._name, self._option):
                self._out.close()


def _write_all(file: io.FileIO, data: bytes) -> None:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) or 0 :]
    except OSError:
        with contextlib.suppress(OSError):  # impossible for a pipe
            file.truncate(file.seek(-(len(data) - len(rest)), io.SEEK_CUR))
        raise


@contextlib.contextmanager
def writing(name: str | Path, option: str = "--out") -> Iterator[None]:
    """Turn an error while writing `name` into one line for the user that points to a command-line option.

    A broken pipe passes unchanged: the reader went away, which is not the user's mistake.
    """
    try:
        yield
    except (BrokenPipeError, OngebdError):
        raise
    except (OSError, ValueError) as problem:
        cause = getattr(problem, "strerror", None) or str(problem)
        advice = "free some space or " if cause == "No space left on device" else ""
        raise OngebdError(
            f"can't write {printable(str(name))}: {cause} ({advice}write elsewhere, see {option})"
        ) from problem


def rounded(value: float) -> float | None:
    """Round to the microsecond; None for infinities and NaN, which JSON lacks."""
    return round(float(value), 6) if math.isfinite(value) else None
