"""What every writer shares: the run's header and end, the `Sink` protocol, text that is on disk at once."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO

from ongebd.errors import OngebdError
from ongebd.output.naming import printable
from ongebd.types import Boundary, Decision, Epoch, Frame

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
        width: Pixels of an upright frame.
        height: Pixels of an upright frame.
        version: Version of ongebd.
        runtime: What ran the networks, where that was asked for; None is the model's own way.
        precision: In what they computed, where that was asked for.
    """

    source: str
    model: str
    settings: Mapping[str, Setting]
    width: int
    height: int
    version: str
    runtime: str | None = None
    precision: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended.

    Attributes:
        complete: False if the run was stopped before the end of the source.
        duration: Seconds from the first frame to the end of the last one that was decoded.
        frames: Frames that the detector saw.
        boundaries: Boundaries found.
        warnings: What a user ought to know, one line each.
    """

    complete: bool
    duration: float
    frames: int
    boundaries: int
    warnings: list[str] = field(default_factory=list)


class Sink(Protocol):
    """Takes what a stream finds, as it finds it."""

    def decision(self, frame: Frame, decision: Decision) -> None:
        """Take the decision on one frame. Called for each frame that the detector saw."""

    def boundary(self, boundary: Boundary) -> None:
        """Take a boundary, once it is decided; after `decision` of the frame that decided it."""

    def epoch(self, epoch: Epoch) -> None:
        """Take a break in the source's clock or format; before `decision` of the first frame behind it."""

    def close(self, end: RunEnd) -> None:
        """Finish. Called once, also when the run was stopped early."""


class QuietSink:
    """A sink that ignores everything. Writers override what they care for."""

    def decision(self, frame: Frame, decision: Decision) -> None:
        """Ignore it."""

    def boundary(self, boundary: Boundary) -> None:
        """Ignore it."""

    def epoch(self, epoch: Epoch) -> None:
        """Ignore it."""

    def close(self, end: RunEnd) -> None:
        """Ignore it."""


class Tee:
    """Several sinks as one. If one fails at `close`, the others are closed all the same."""

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self.sinks = list(sinks)

    def decision(self, frame: Frame, decision: Decision) -> None:
        """Hand on to each."""
        for sink in self.sinks:
            sink.decision(frame, decision)

    def boundary(self, boundary: Boundary) -> None:
        """Hand on to each."""
        for sink in self.sinks:
            sink.boundary(boundary)

    def epoch(self, epoch: Epoch) -> None:
        """Hand on to each."""
        for sink in self.sinks:
            sink.epoch(epoch)

    def close(self, end: RunEnd) -> None:
        """Close each; then raise what went wrong, if anything did."""
        with contextlib.ExitStack() as closing:
            for sink in reversed(self.sinks):
                closing.callback(sink.close, end)


class TextOut:
    """Text that is with the operating system as soon as `write` returns, so that a killed process loses none.

    A write that fails half-way (full disk) is taken back from a file, which then ends with a whole record.
    """

    def __init__(self, target: Target, option: str = "--out") -> None:
        self._option = option  # of the command line, which names the target
        self._file: io.FileIO | None = None
        self._stream: TextIO | None = None
        if isinstance(target, str | Path):
            self.name = printable(str(target))
            with writing(self.name, self._option):
                self._file = io.FileIO(target, "w")
            self.encoding = "utf-8"
        else:
            name = printable(str(getattr(target, "name", "the output")))
            self.name = "standard output" if name == "<stdout>" else name
            self._stream = target
            self.encoding = getattr(target, "encoding", None) or "utf-8"

    def write(self, text: str) -> None:
        """Write one record or more, whole. Characters that the encoding lacks are written as escapes."""
        data = text.encode(self.encoding, "backslashreplace")
        with writing(self.name, self._option):
            if self._file is not None:
                self._write_whole(self._file, data)
            elif self._stream is not None:
                self._stream.write(data.decode(self.encoding))
                self._stream.flush()

    @staticmethod
    def _write_whole(file: io.FileIO, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[file.write(rest) or 0 :]
        except OSError:
            with contextlib.suppress(OSError):  # a pipe cannot be taken back
                file.truncate(file.seek(-(len(data) - len(rest)), io.SEEK_CUR))
            raise

    def close(self) -> None:
        """Close the file; a stream that was handed in stays open."""
        if self._file is not None:
            with writing(self.name, self._option):
                self._file.close()


@contextlib.contextmanager
def writing(name: str | Path, option: str = "--out") -> Iterator[None]:
    """Turn what goes wrong while `name` is written into one line for the user.

    A broken pipe passes as it is: the reader went away, which is no mistake.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as problem:
        cause = getattr(problem, "strerror", None) or str(problem)
        mend = (
            "free some space or write elsewhere" if cause == "No space left on device" else "write elsewhere"
        )
        raise OngebdError(f"cannot write {printable(str(name))}: {cause} ({mend}, see {option})") from problem


def rounded(value: float) -> float | None:
    """Round to the microsecond; None for what JSON has no number for."""
    return round(float(value), 6) if math.isfinite(value) else None
