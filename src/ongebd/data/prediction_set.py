"""What a system predicted: the boundaries of each video, and when it knew of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ongebd.data.files import FloatArray, number_list
from ongebd.data.id_matching import instances_in, match_ids
from ongebd.data.label_set import LabelSet
from ongebd.errors import LabelError

Unit = Literal["seconds", "frames"]
Moment = Literal["centre", "onset"]


@dataclass(frozen=True, slots=True, eq=False)
class VideoPrediction:
    """One video's predicted boundaries, in the given order; arrays of shape (n,).

    Attributes:
        times: The moments to be scored, seconds (or frame numbers).
        decided: When each was known, seconds; None where the file doesn't say.
        onsets: The first positive frame of each, seconds; None where the file doesn't say.
        complete: False where the file says that it was cut short.
        onsets_known: When each onset was known, seconds; None where the file doesn't say.
        duration: The video's, seconds; None where the file doesn't say.
    """

    times: FloatArray
    decided: FloatArray | None = None
    onsets: FloatArray | None = None
    complete: bool = True
    onsets_known: FloatArray | None = None
    duration: float | None = None

    def between(self, start: float, end: float) -> VideoPrediction:
        """The boundaries from `start` to `end`, seconds, with all times counted from `start`."""
        inside = (self.times >= start) & (self.times <= end)
        columns = (self.times, self.decided, self.onsets, self.onsets_known)
        times, *others = (None if each is None else each[inside] - start for each in columns)
        assert times is not None
        return VideoPrediction(times, others[0], others[1], self.complete, others[2], end - start)


@dataclass(frozen=True, slots=True, eq=False)
class PredictionSet:
    """Predictions, by id.

    Attributes:
        videos: In the file's order.
        source: The file or folder that they were read from; None where they were given as values.
        kind: How it is written: "ongebd-jsonl", "pickle", "json", "csv" or "values".
        sha256: The file's fingerprint; for a folder, that of its files' fingerprints in the order of their
            names.
        unit: "seconds", or "frames" where `times` are frame numbers.
        moment: Which moment of a boundary `times` is: "centre" or "onset".
        notes: What was counted while reading, one line each.
        made_by: Which methods found them, with τ and version, each with its number of videos, where the file
            says so.
    """

    videos: dict[str, VideoPrediction] = field(default_factory=dict, repr=False)
    source: str | None = None
    kind: str = "values"
    sha256: str | None = None
    unit: Unit = "seconds"
    moment: Moment = "centre"
    notes: tuple[str, ...] = ()
    made_by: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_decisions(self) -> bool:
        """Whether every boundary says when it was known, so that a delay can be measured."""
        return all(video.decided is not None for video in self.videos.values() if len(video.times))

    def renamed(self, label_of: Mapping[str, str]) -> PredictionSet:
        """The predictions that have a labelled video, under its id."""
        videos = {label_of[name]: video for name, video in self.videos.items() if name in label_of}
        return replace(self, videos=videos)

    def of_instances(self, labels: LabelSet, id_pattern: str | None = None) -> PredictionSet:
        """TAPOS: the labelled instances in place of shots, with times counted from an instance's start.

        An instance that has its own prediction keeps it. Frame numbers can't be cut, and stay.
        """
        if labels.dataset != "tapos" or self.unit == "frames":
            return self
        match = match_ids(self.videos, labels.videos, id_pattern)
        cut, _ = instances_in(match.unknown, labels, match.label_of.values(), id_pattern)
        if not cut:
            return self
        shots = {part.shot for part in cut.values()}
        videos = {name: video for name, video in self.videos.items() if name not in shots}
        for name, part in cut.items():
            videos[name] = self.videos[part.shot].between(part.start, part.end)
        note = f"{len(cut)} instances cut out of {len(shots)} shots by the times in their ids"
        return replace(self, videos=videos, notes=(*self.notes, note))

    def at(self, moment: Moment) -> PredictionSet:
        """The same boundaries, scored at their centre or at their onset.

        An onset is decided when it was known, which for a method that looks ahead is later than the onset.
        Where the file doesn't say when, no delay can be measured.

        Raises:
            LabelError: Onsets are wanted and a video has none.
        """
        if moment == self.moment:
            return self
        if self.moment == "onset":
            raise LabelError(f"{self.source}: holds onsets only, no centres; use --score onset")
        videos = {}
        for name, video in self.videos.items():
            if video.onsets is None and len(video.times):
                raise LabelError(
                    f"{self.source}: video {name!r} has no onsets; score centres (--score centre)"
                )
            onsets = video.times if video.onsets is None else video.onsets
            videos[name] = replace(video, times=onsets, decided=video.onsets_known)
        return replace(self, videos=videos, moment="onset")

    def in_seconds(self, labels: LabelSet) -> PredictionSet:
        """The same times in seconds: frame number / the label's fps. Ids must be the labels' ids.

        Raises:
            LabelError: A labelled video has no fps.
        """
        return self._in_unit("seconds", labels, lambda times, fps: times / fps)

    def in_frames(self, labels: LabelSet) -> PredictionSet:
        """The same times as frame numbers, not rounded: seconds · the label's fps. As `in_seconds`."""
        return self._in_unit("frames", labels, lambda times, fps: times * fps)

    def _in_unit(
        self, unit: Unit, labels: LabelSet, convert: Callable[[FloatArray, float], FloatArray]
    ) -> PredictionSet:
        if self.unit == unit:
            return self
        videos = {}
        for name, video in self.videos.items():
            fps = labels.videos[name].fps
            if fps is None:
                raise LabelError(
                    f"{labels.source or 'the labels'}: video {name!r} has no fps to convert frames; "
                    "add fps, or give predictions in seconds"
                )
            videos[name] = VideoPrediction(convert(video.times, fps), complete=video.complete)
        return replace(self, videos=videos, unit=unit)


def as_prediction_set(
    predictions: PredictionSet | Mapping[str, Sequence[float] | FloatArray], unit: Unit = "seconds"
) -> PredictionSet:
    """A prediction set from a prediction set, or from a plain dict `{id: [times]}` of finite numbers."""
    if isinstance(predictions, PredictionSet):
        return predictions
    videos = {
        str(name): VideoPrediction(number_list(times, f"prediction {str(name)!r}"))
        for name, times in predictions.items()
    }
    return PredictionSet(videos, unit=unit)
