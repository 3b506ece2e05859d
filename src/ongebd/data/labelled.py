"""Brings stored features and labels together: the videos that a model is trained and tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ongebd.data.files import FloatArray
from ongebd.data.id_matching import hint, instances_in, match_ids
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.errors import LabelError

BoolArray = npt.NDArray[np.bool_]
LabelRule = Literal["exact", "near"]

NEAR = 0.15
"""Seconds: the rule of the original GEBD baseline, and the "near" rule's default."""


class FeatureSource(Protocol):
    """What a feature store offers (`ongebd.features.store.FeatureStore` is one)."""

    @property
    def dim(self) -> int:
        """D."""

    @property
    def fps(self) -> float:
        """Frames a second."""

    @property
    def backbone(self) -> str:
        """The backbone's identity."""

    def ids(self) -> list[str]:
        """The ids of all videos."""

    def __getitem__(self, video_id: str, /) -> Any:
        """One video: its features (T, D), times (T,) and epochs (T,), as in `LabelledVideo`."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVideo:
    """A video, or an instance cut out of one, with its features and targets.

    Attributes:
        id: Its id among the labels.
        features: float16, (T, D); a view into the store, read when it is used.
        times: Seconds of each frame, by the labels' clock, (T,).
        epochs: How often the clock had broken before each frame, (T,).
        targets: y_t, (T,).
    """

    id: str
    features: npt.NDArray[np.float16]
    times: FloatArray
    epochs: npt.NDArray[np.int32]
    targets: BoolArray

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVideos:
    """All videos with both features and labels, in the labels' order; and notes on what was left out."""

    videos: list[LabelledVideo]
    notes: tuple[str, ...]


def label_videos(
    store: FeatureSource,
    labels: LabelSet,
    *,
    rule: LabelRule = "exact",
    near: float = NEAR,
    id_pattern: str | None = None,
) -> LabelledVideos:
    """The videos of a store that are labelled, each with its targets.

    TAPOS labels *instances*, stretches of a shot. A store of instances is matched by their ids; instances are
    cut out of a store of shots by the times in their ids.

    Args:
        store: Features.
        labels: Labels.
        rule: See `frame_targets`.
        near: Its tolerance, seconds.
        id_pattern: See `ongebd.data.id_matching`.

    Raises:
        LabelError: No video of the store is labelled, or an id is ambiguous.
    """
    match = match_ids(store.ids(), labels.videos, id_pattern)
    stored = {label: name for name, label in match.label_of.items()}
    cut, unlabelled = instances_in(match.unknown, labels, stored, id_pattern)

    videos = []
    for label in labels.videos.values():
        if label.id in stored:
            videos.append(_labelled(store[stored[label.id]], label, rule, near))
        elif label.id in cut:
            part = cut[label.id]
            videos.append(_labelled(store[part.shot], label, rule, near, (part.start, part.end)))
    if not videos:
        raise LabelError(
            f"none of the {len(store.ids())} videos in the store is in {labels.source or 'the labels'};"
            f" check that the ids match{hint(labels)}"
        )
    notes = []
    if unlabelled:
        notes.append(f"{len(unlabelled)} videos of the store have no labels and are left out")
    if len(videos) < len(labels):
        notes.append(f"{len(labels) - len(videos)} labelled videos have no features and are left out")
    return LabelledVideos(videos, tuple(notes))


def random_split(
    videos: Sequence[LabelledVideo], share: float, seed: int
) -> tuple[list[LabelledVideo], list[LabelledVideo]]:
    """The paper's random split into training and validation videos; each keeps the given order.

    The draw depends on the ids and the seed, not on the order of the videos. `share` is that of the
    validation videos, 0 to below 1; the paper: 0.2.
    """
    names = sorted(video.id for video in videos)
    count = round(share * len(names))
    drawn = {names[place] for place in np.random.default_rng(seed).permutation(len(names))[:count]}
    return [v for v in videos if v.id not in drawn], [v for v in videos if v.id in drawn]


def chosen_annotator(video: VideoLabels) -> FloatArray:
    """The boundaries to train on, sorted: of the most consistent annotator, or else of the first."""
    return np.sort(video.boundaries[video.most_consistent or 0])


def frame_targets(
    times: FloatArray, boundaries: FloatArray, rule: LabelRule = "exact", tolerance: float = NEAR
) -> BoolArray:
    """y_t for each frame, shape (T,). The paper doesn't say which of the two rules it used.

    Args:
        times: Seconds of each frame, rising, shape (T,).
        boundaries: Seconds. Those before the first or after the last frame get no target.
        rule: "exact": the frame nearest to a boundary, the earlier of two equally near. "near": all frames
            within `tolerance` of a boundary.
        tolerance: Seconds, for "near".

    >>> times = np.arange(6) / 10
    >>> np.flatnonzero(frame_targets(times, np.array([0.26]))).tolist()
    [3]
    >>> np.flatnonzero(frame_targets(times, np.array([0.26]), "near")).tolist()
    [2, 3, 4]
    """
    targets = np.zeros(len(times), np.bool_)
    if not len(times):
        return targets
    inside = boundaries[(boundaries >= times[0]) & (boundaries <= times[-1])]
    if rule == "exact":
        after = np.searchsorted(times, inside)  # the first frame at or after each boundary
        before = np.maximum(after - 1, 0)
        earlier = np.abs(times[before] - inside) <= np.abs(times[after] - inside)
        targets[np.where(earlier, before, after)] = True
        return targets
    for boundary in inside:
        targets |= np.abs(times - boundary) <= tolerance
    return targets


def _labelled(
    stored: Any, label: VideoLabels, rule: LabelRule, near: float, span: tuple[float, float] | None = None
) -> LabelledVideo:
    times, part = stored.times, slice(None)
    if span is not None:
        part = slice(int(np.searchsorted(times, span[0])), int(np.searchsorted(times, span[1], side="right")))
        times = times[part] - span[0]
    targets = frame_targets(times, chosen_annotator(label), rule, near)
    return LabelledVideo(label.id, stored.features[part], times, stored.epochs[part], targets)
