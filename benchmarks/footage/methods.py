"""Methods as a command line names them, and what they find in videos.

`NAME` is what `ongebd.load` takes. `NAME@setting=value,…` gives a stream's settings:
`transnetv2@threshold=0.05`. `LABEL=NAME…` is its name in the tables: `MiniROAD-BC=miniroad:runs/mini/model`.
Features are kept in the work folder, decisions are made again each time.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ongebd import Model, OnlineDetector, StreamConfig, load
from ongebd.backbones.pipeline import frame_features
from ongebd.baselines.pictures import Pictures
from ongebd.common.writing import write_whole
from ongebd.data import LabelSet, VideoPrediction, match_ids, read_predictions
from ongebd.detector.stored import load_for
from ongebd.errors import ConfigError, LabelError
from ongebd.features.store import FeatureStore
from ongebd.types import Boundary, Feature
from ongebd.video import VideoReader

Found = Mapping[str, VideoPrediction]
"""What a method found, by video."""


@dataclass(frozen=True)
class Film:
    """A video, looked at until some time (None: all of it); `path` may be a store that has it."""

    id: str
    path: Path
    until: float | None = None


@dataclass(frozen=True)
class Method:
    """A method with the settings that differ from its own."""

    label: str
    model: Model
    settings: Mapping[str, float] = field(default_factory=dict)

    @property
    def config(self) -> StreamConfig:
        """Every setting filled in."""
        return self.model.configured(None, **self.settings)

    @property
    def view(self) -> str:
        """A key that methods share if they see the very same numbers."""
        backbone = self.model.backbone
        about = [backbone.identity, backbone.dim, str(backbone.view), float(self.config.rate())]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


def methods_of(texts: Iterable[str], store: Path | None = None) -> list[Method]:
    """The methods that texts name, perhaps on the features of a store; no two may have one label."""
    methods = [_method_of(text, store) for text in texts]
    labels = [method.label for method in methods]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"two methods are called {label!r}; write OTHER=… before one of them")
    return methods


def _method_of(text: str, store: Path | None) -> Method:
    head, _, tail = text.partition("@")
    label, equals, name = head.partition("=")
    if not equals:
        label, name = text, head
    settings: dict[str, float] = {}
    for pair in filter(None, tail.split(",")):
        key, given, value = pair.partition("=")
        if not given:
            raise ConfigError(f"{text}: {pair!r} is not setting=value")
        settings[key.strip()] = int(value) if value.strip().isdigit() else float(value)
    model = load(name, threads=1) if store is None else load_for(FeatureStore.open(store), name)
    method = Method(label.strip(), model, settings)
    method.model.configured(None, **settings)  # raises now what would fail later
    return method


def found_in(
    methods: Sequence[Method], films: Sequence[Film], work: Path
) -> dict[str, dict[str, VideoPrediction]]:
    """What each method finds in each video, by label and id. Methods with one view decode together."""
    result: dict[str, dict[str, VideoPrediction]] = {method.label: {} for method in methods}
    for number, film in enumerate(films, start=1):
        for _, together in groupby(sorted(methods, key=lambda each: each.view), key=lambda each: each.view):
            same = list(together)
            heads = {method.label: _Listener(method.model.begin(method.config)) for method in same}
            for feature, time, epoch in _features(same[0], film, work):
                for head in heads.values():
                    head.see(feature, time, epoch)
            for label, head in heads.items():
                result[label][film.id] = head.end()
        print(f"\r{number}/{len(films)} videos", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return result


def features_of(method: Method, film: Film, work: Path) -> dict[str, Any]:
    """The rows (T, D), times (T,) and epochs (T,) of a video, computed once."""
    if film.path.is_dir():
        stored = FeatureStore.open(film.path)[film.id]
        return {"rows": stored.features.astype(np.float32), "times": stored.times, "epochs": stored.epochs}
    with film.path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()[:20]
    path = work / "features" / method.view / f"{content}-{film.until}.npz"
    if not path.exists():
        rows, times, epochs = zip(*_frames(method, film), strict=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as part, part.open("wb") as file:
            np.savez(file, rows=np.stack(rows), times=np.array(times), epochs=np.array(epochs, np.int32))
    with np.load(path) as kept:
        return dict(kept)


def _features(method: Method, film: Film, work: Path) -> Iterator[tuple[Feature, float, int]]:
    if isinstance(method.model.backbone, Pictures):
        yield from _frames(method, film)
        return
    kept = features_of(method, film, work)
    for row, time, epoch in zip(kept["rows"], kept["times"], kept["epochs"], strict=True):
        yield row, float(time), int(epoch)


def _frames(method: Method, film: Film) -> Iterator[tuple[Feature, float, int]]:
    backbone = method.model.backbone
    with (
        VideoReader(film.path, float(method.config.rate()), view=backbone.view) as reader,
        closing(frame_features(reader, backbone, 1)) as features,
    ):
        for frame, feature in features:
            if film.until is not None and frame.time > film.until:
                return
            yield feature, float(frame.time), frame.epoch


class _Listener:
    """A stream on one video, fed like `ongebd.detector.source_run.SourceRun` feeds it."""

    def __init__(self, detector: OnlineDetector) -> None:
        self._detector = detector
        self._epoch = 0
        self._boundaries: list[Boundary] = []

    def see(self, feature: Feature, time: float, epoch: int) -> None:
        if epoch != self._epoch:
            self._rest()
            self._detector.new_epoch()
            self._epoch = epoch
        boundary = self._detector.update_feature(feature, time).boundary
        if boundary is not None:
            self._boundaries.append(boundary)

    def end(self) -> VideoPrediction:
        self._rest()
        rows = [(b.time, b.decided, b.onset, b.decided if b.onset_known is None else b.onset_known)
                for b in self._boundaries]  # fmt: skip
        times, decided, onsets, known = np.array(rows, dtype=np.float64).reshape(-1, 4).T.copy()
        return VideoPrediction(times, decided, onsets, onsets_known=known)

    def _rest(self) -> None:
        self._boundaries += [each.boundary for each in self._detector.drain() if each.boundary is not None]
        while (boundary := self._detector.flush()) is not None:
            self._boundaries.append(boundary)


def predicted(texts: Sequence[str], labels: LabelSet) -> dict[str, dict[str, VideoPrediction]]:
    """Predictions in files or folders, NAME=FOLDER, by name and by the labels' ids."""
    result = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals:
            raise LabelError(f"--predictions {text}: give NAME=FOLDER")
        read = read_predictions(folder)
        videos = read.renamed(match_ids(read.videos, labels.videos).label_of).videos
        missing = [video for video in labels.videos if video not in videos]
        if missing:
            raise LabelError(
                f"{name}: {len(missing)} labelled videos have no prediction, {missing[0]} for one"
            )
        result[name] = {each: _with_onsets(videos[each]) for each in labels.videos}
    return result


def _with_onsets(video: VideoPrediction) -> VideoPrediction:
    onsets = video.times if video.onsets is None else video.onsets
    # A boundary that is its onset was known when it was decided.
    known = video.decided if np.array_equal(onsets, video.times) else None
    return replace(video, onsets=onsets, onsets_known=known)


def command_line(script: str) -> str:
    """This command line, without the machine's folders."""
    words = [re.sub(r"(^|=)/.*/", r"\1", word) for word in sys.argv[1:]]
    return f"python benchmarks/{script}.py {shlex.join(words)}"
