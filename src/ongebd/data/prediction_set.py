"""What a system predicted: the boundaries of each video, and when it knew of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ongebd.data.id_matching import match_ids
from ongebd.data.label_set import LabelSet
from ongebd.data.numbers import FloatArray, number_list
from ongebd.data.numbers import videos as count_of
from ongebd.errors import LabelError

Unit = Literal["seconds", "frames"]
Moment = Literal["centre", "onset"]


@dataclass(frozen=True, slots=True, eq=False)
class VideoPrediction:
    """One video's predicted boundaries, in the order in which they were given.

    Attributes:
        times: The moments to be scored, seconds (or frame numbers), shape (n,).
        decided: When each was known, seconds, shape (n,); None where the file does not say.
        onsets: The first positive frame of each, seconds, shape (n,); None where the file does not say.
        complete: False where the file says that it was cut short.
        onsets_known: When each onset was known, seconds, shape (n,); None where the file does not say.
    """

    times: FloatArray
    decided: FloatArray | None = None
    onsets: FloatArray | None = None
    complete: bool = True
    onsets_known: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class SharedName:
    """Results whose sources have one stem, as `test.mp4` and `test.avi` have.

    Attributes:
        stem: The stem.
        places: Where each stands, by its id, which is the whole name of its source.
    """

    stem: str
    places: Mapping[str, str]


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
        shared: Stems that several sources share; which video such a result is of, its stem cannot say.
        made_by: Which methods found them, with τ and version, each with its number of videos, where the file
            says so.
    """

    videos: dict[str, VideoPrediction] = field(default_factory=dict)
    source: str | None = None
    kind: str = "values"
    sha256: str | None = None
    unit: Unit = "seconds"
    moment: Moment = "centre"
    notes: tuple[str, ...] = ()
    shared: tuple[SharedName, ...] = ()
    made_by: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_decisions(self) -> bool:
        """Whether every boundary says when it was known, so that a delay can be measured."""
        return all(video.decided is not None for video in self.videos.values() if len(video.times))

    def renamed(self, label_of: Mapping[str, str]) -> PredictionSet:
        """The predictions that have a labelled video, under its id."""
        return replace(
            self,
            videos={label_of[name]: video for name, video in self.videos.items() if name in label_of},
            shared=(),
        )

    def check_shared(self, labels: Iterable[str], label_of: Mapping[str, str], pattern: str | None) -> None:
        """Refuse a stem that names a labelled video and belongs to several sources.

        Args:
            labels: Ids of labelled videos.
            label_of: The label id of each prediction that has one.
            pattern: See `ongebd.data.id_matching`.

        Raises:
            LabelError: There is one; the message names the files.
        """
        if not self.shared:
            return
        known = set(labels)
        for shared in self.shared:
            if all(name in label_of for name in shared.places):
                continue  # their whole names tell them apart
            label = match_ids([shared.stem], known, pattern).label_of.get(shared.stem)
            if label is not None:
                places = list(shared.places.values())
                rest = f" and {len(places) - 3} more" if len(places) > 3 else ""
                raise LabelError(
                    f"{self.source}: video {label!r} stands in {len(places)} places, {', '.join(places[:3])}"
                    f"{rest}; keep one of them, or tell the sources apart with --id-pattern"
                )

    def at(self, moment: Moment) -> PredictionSet:
        """The same boundaries, scored at their centre or at their onset.

        An onset is decided when it was known, which for a method that looks ahead is later than the onset;
        where the file does not say when, nothing is decided and no delay can be measured.

        Raises:
            LabelError: Where onsets are wanted and a video has none.
        """
        if moment == self.moment:
            return self
        if self.moment == "onset":
            raise LabelError(f"{self.source}: holds onsets only; it cannot be scored at the centre")
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
            LabelError: Where a labelled video has no fps.
        """
        if self.unit == "seconds":
            return self
        videos = {
            name: VideoPrediction(video.times / _fps(labels, name), complete=video.complete)
            for name, video in self.videos.items()
        }
        return replace(self, videos=videos, unit="seconds")

    def in_frames(self, labels: LabelSet) -> PredictionSet:
        """The same times as frame numbers, not rounded: seconds · the label's fps; ids as in the labels.

        Raises:
            LabelError: Where a labelled video has no fps.
        """
        if self.unit == "frames":
            return self
        videos = {
            name: VideoPrediction(video.times * _fps(labels, name), complete=video.complete)
            for name, video in self.videos.items()
        }
        return replace(self, videos=videos, unit="frames")


def as_prediction_set(
    predictions: PredictionSet | Mapping[str, Sequence[float] | FloatArray], unit: Unit = "seconds"
) -> PredictionSet:
    """A prediction set from a prediction set, or from a plain dict `{id: [times]}`.

    Raises:
        LabelError: Where a value is no list of finite numbers.
    """
    if isinstance(predictions, PredictionSet):
        return predictions
    videos = {
        str(name): VideoPrediction(number_list(times, f"prediction {str(name)!r}"))
        for name, times in predictions.items()
    }
    return PredictionSet(videos, unit=unit)


def _fps(labels: LabelSet, name: str) -> float:
    fps = labels.videos[name].fps
    if fps is None:
        raise LabelError(
            f"{labels.source or 'the labels'}: video {name!r} has no fps to tell frames from seconds; "
            "add fps, or give predictions in seconds"
        )
    return fps


def count_disorder(videos: Mapping[str, VideoPrediction]) -> tuple[str, ...]:
    """A line that counts videos whose times are not in order, where there are any."""
    unsorted = sum(bool((np.diff(video.times) < 0).any()) for video in videos.values())
    return (f"{count_of(unsorted)} with times out of order (kept so, as the official rule does)",) * bool(
        unsorted
    )
