"""Formats that are written when a run is over: what they are made of, and the writer that collects it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ongebd.common.writing import write_whole
from ongebd.detector.trace import Album, Points, Snapshot, Trace, thumbnail
from ongebd.output.jsonl import Recording
from ongebd.output.writer import RunEnd, RunHeader, Target, TextFile, Writer, writing
from ongebd.types import Boundary, Decision, Epoch, Frame, ImageU8

Content = str | bytes
_PICTURES = 600
"""The most pictures of a run; each fills 40 kB of memory."""


class Scene(NamedTuple):
    """A finished run with its curve, its first picture, and those of its strongest boundaries, by time."""

    run: Recording
    points: Points
    snapshots: Sequence[Snapshot] = ()
    first: ImageU8 | None = None


class WholeWriter(Writer):
    """Collects a run and writes it when closed. The file appears whole or not at all.

    That of an earlier run is removed at once. Memory is bounded, however long the video is. `make` gives the
    content, of the run in a list or, with `pictures`, of a `Scene`.
    """

    def __init__(
        self, make: Callable[..., Content], target: Target, header: RunHeader, *, pictures: bool = False
    ) -> None:
        self._make, self._target = make, target
        self._run, self._trace, self._album = Recording(header), Trace(), Album(_PICTURES)
        self._first: ImageU8 | None = None
        self.slow = self._pictures = pictures
        if isinstance(target, str | Path):
            with writing(target):
                Path(target).unlink(missing_ok=True)

    def decision(self, frame: Frame, decision: Decision) -> None:
        if self._pictures:
            self._trace.add(decision)
            if self._first is None:
                self._first = thumbnail(frame.rgb, frame.size)
            if decision.onset:
                self._album.onset(decision.time, thumbnail(frame.rgb, frame.size))

    def found(self, boundary: Boundary) -> None:
        self._album.boundary(boundary)

    def boundary(self, boundary: Boundary) -> None:
        self._run.boundaries.append(boundary)
        self._album.boundary(boundary)

    def epoch(self, epoch: Epoch) -> None:
        self._run.epochs.append(epoch)

    def close(self, end: RunEnd) -> None:
        """Make the content and put it in place."""
        self._run.end = end
        if self._pictures:
            shots = self._album.snapshots(self._run.boundaries, None)
            content = self._make(Scene(self._run, self._trace.points(), shots, self._first))
        else:
            content = self._make([self._run])
        write_content(content, self._target)


def write_content(content: Content, target: Target) -> None:
    """Write a file whole, or text to a stream."""
    if isinstance(target, str | Path):
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
        with writing(target), write_whole(Path(target)) as part:
            part.write_bytes(data)
    else:
        TextFile(target).write(str(content))
