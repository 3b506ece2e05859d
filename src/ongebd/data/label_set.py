"""A set of labelled videos: each annotator's boundaries, and where they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field, replace

import numpy as np

from ongebd.data.files import FloatArray
from ongebd.data.files import videos as count_of
from ongebd.errors import LabelError

_MOST = 1e6  # seconds, or frames a second: a clock's boundaries of a longer video fill the memory


@dataclass(frozen=True, slots=True, eq=False)
class VideoLabels:
    """One video's labels.

    Attributes:
        id: The name by which predictions find it.
        duration: Seconds, above 0.
        boundaries: One array per annotator, seconds, shape (number of boundaries,), in the file's order: the
            official rule reads them in that order.
        consistency: `f1_consis_avg`, how well the annotators agree, 0 to 1; None where the file doesn't say.
        annotator_consistency: `f1_consis`, the same for each annotator; empty where the file doesn't say.
        fps: Frames a second, above 0; None where the file doesn't say.
        last_frame: The last frame number of the video, from 0; the length in frames is one more.
        frame_boundaries: `boundaries` as frame numbers; empty where the file has none.
        kinds: What kind each of `boundaries` is, any word; empty where the file doesn't say.
        source: The file, for messages.
    """

    id: str
    duration: float
    boundaries: tuple[FloatArray, ...]
    consistency: float | None = None
    annotator_consistency: tuple[float, ...] = ()
    fps: float | None = None
    last_frame: int | None = None
    frame_boundaries: tuple[FloatArray, ...] = ()
    kinds: tuple[tuple[str, ...], ...] = ()
    source: InitVar[str | None] = None

    def __post_init__(self, source: str | None) -> None:
        where = f"{source}: video {self.id!r}" if source else f"video {self.id!r}"
        for name, value in (("duration", self.duration), ("fps", self.fps)):
            if value is not None and not 0 < value <= _MOST:
                raise LabelError(f"{where}: {name} is {value}; it must be above 0 and at most {_MOST:,.0f}")
        if not self.boundaries:
            raise LabelError(
                f"{where}: has no annotator; give at least one list of boundaries (it may be empty)"
            )
        scores = len(self.annotator_consistency)
        if scores and scores != len(self.boundaries):
            many = len(self.boundaries)
            raise LabelError(f"{where}: {scores} consistency scores for {many} annotators; give one for each")

        if self.kinds and [len(row) for row in self.kinds] != [len(times) for times in self.boundaries]:
            raise LabelError(f"{where}: give one kind for each boundary of each annotator")

    @property
    def most_consistent(self) -> int | None:
        """The annotator who agrees best with the others, the first on ties; None where unknown."""
        return int(np.argmax(self.annotator_consistency)) if self.annotator_consistency else None


@dataclass(frozen=True, slots=True, eq=False)
class LabelSet:
    """Labelled videos, by id.

    Attributes:
        videos: In the file's order.
        dataset: "kinetics-gebd", "tapos", "inria" or "custom": whose rules apply.
        source: The file that they were read from; None where they were given as values.
        sha256: That file's fingerprint.
        notes: What was counted while reading, one line each: nothing is dropped without a note.
    """

    videos: dict[str, VideoLabels] = field(repr=False)
    dataset: str = "custom"
    source: str | None = None
    sha256: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.videos:
            raise LabelError(f"{self.source or 'the labels'}: no labelled video in it; is it the right file?")

    def __len__(self) -> int:
        return len(self.videos)

    @property
    def boundary_count(self) -> int:
        """Boundaries of the first annotators, summed over the videos."""
        return sum(len(video.boundaries[0]) for video in self.videos.values())

    @property
    def annotator_counts(self) -> dict[int, int]:
        """The number of videos by their number of annotators."""
        return dict(sorted(Counter(len(video.boundaries) for video in self.videos.values()).items()))

    def restrict(self, ids: Iterable[str], source: str) -> LabelSet:
        """The videos that a list names, in this set's order. A note counts the names that aren't here.

        Args:
            ids: The list.
            source: What to call it in the note.

        Raises:
            LabelError: The list names none of the videos.
        """
        wanted = set(ids)
        kept = {name: video for name, video in self.videos.items() if name in wanted}
        if not kept:
            raise LabelError(
                f"{source}: none of its {len(wanted)} ids is in the labels; check that the ids match"
            )
        note = (
            f"restricted to {source}: {len(kept)} of its {len(wanted)} ids are in the labels, "
            f"{len(wanted) - len(kept)} not; {count_of(len(self.videos) - len(kept))} left out"
        )
        return replace(self, videos=kept, notes=(*self.notes, note))
