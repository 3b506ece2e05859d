"""What `ongebd.detect` returns: the boundaries of a source, its segments and their key frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from ongebd.common.text import printable, shortened
from ongebd.detector.segments import Segment, Selection, segments_of, selected
from ongebd.errors import ConfigError, import_extra
from ongebd.types import Boundary, Decision, Epoch, ImageU8

if TYPE_CHECKING:
    from ongebd.detector.trace import Album
    from ongebd.video import VideoReader


class Decisions(list[Decision]):
    """Prints as one line: there is a decision on each frame."""

    def __repr__(self) -> str:
        return f"<{len(self)} decisions>"


@dataclass(frozen=True, slots=True, repr=False)
class Detection:
    """The result of `ongebd.detect`. A notebook shows its curve, pictures and strongest boundaries.

    Attributes:
        boundaries: In the order of the decisions, or of time if they were selected.
        decisions: One for each frame that the detector saw.
        duration: Seconds from the first frame of the source to the end of the last decoded one.
        epochs: Breaks in the source's clock or format, usually none.
        warnings: Warnings about the source, one line each, such as frames that didn't decode.
        complete: False if the source stopped before its end; `warnings` has the reason.
        start: Seconds from the first frame of the source to where detection began.
        found: All boundaries if `boundaries` is a selection of them; otherwise empty.
        source: Its name, without secrets.
        model: Its name.
    """

    boundaries: list[Boundary]
    decisions: list[Decision]
    duration: float
    epochs: list[Epoch] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    complete: bool = True
    start: float = 0.0
    found: list[Boundary] = field(default_factory=list)
    source: str = ""
    model: str = ""
    _reader: Callable[..., VideoReader] | None = field(default=None, compare=False)
    _album: Album | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        count = len(self.boundaries)
        found = f"{count} {'boundary' if count == 1 else 'boundaries'} in {self.duration - self.start:.1f} s"
        of = f" of {shortened(printable(self.source), 60)}" if self.source else ""
        by = f", model {shortened(printable(self.model), 40)}" if self.model else ""
        return f"<Detection: {found}{of}{by}{'' if self.complete else ', stopped early'}>"

    def _repr_html_(self) -> str:
        from ongebd.detector.notebook import html_of

        shots = [] if self._album is None else self._album.snapshots(self.boundaries)
        return html_of(repr(self)[1:-1], self.warnings, self.decisions, self.boundaries, shots)

    def to_dataframe(self) -> Any:
        """The boundaries as a pandas.DataFrame, a row each.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        rows = [astuple(boundary) for boundary in self.boundaries]
        return import_extra("pandas", None).DataFrame(rows, columns=[one.name for one in fields(Boundary)])

    @property
    def segments(self) -> list[Segment]:
        """What lies between the boundaries, by time; together they cover the video."""
        return segments_of(self.boundaries, self.decisions, self.start, self.duration)

    def selected(self, **wanted: Any) -> Detection:
        """The same with other boundaries of those that were found.

        Args:
            **wanted: As in `ongebd.detect`: min_length, max_per_minute, chapters; none takes all.

        Raises:
            ConfigError: One is unknown or out of range.
        """
        try:
            asked = Selection(**wanted)
        except TypeError as problem:
            known = "min_length, max_per_minute, chapters"
            name = str(problem).rpartition(" ")[2]
            raise ConfigError(f"unknown setting {name}; choose from {known}") from None
        found = self.found or self.boundaries
        chosen = selected(found, self.start, self.duration, asked)
        return replace(self, boundaries=chosen, found=found)

    def keyframes(self, max: int | None = None) -> Iterator[tuple[Segment, ImageU8]]:  # noqa: A002
        """Each segment with one sharp picture that stands for it, read from the source one at a time.

        Args:
            max: Segments at most: then the strongest boundaries divide the video. None takes `segments`.

        Yields:
            The segment, whose `keyframe` is the picture's time; the picture, upright, RGB, uint8,
            (height, width, 3). A segment that has no picture is left out.

        Raises:
            ConfigError: The source can't be read twice (a pipe, a camera), or `max` isn't a whole number.
            SourceError: The source can't be read any more.
        """
        from ongebd.detector.segments import keyframes

        if self._reader is None:
            raise ConfigError(
                "key frames need a file: a stream can't be read twice; save it, and name the file"
            )
        segments = self.segments
        if max is not None and Selection(chapters=max).chapters and len(segments) > max:
            segments = replace(self, found=self.boundaries).selected(chapters=max).segments
        return keyframes(self._reader, segments)
