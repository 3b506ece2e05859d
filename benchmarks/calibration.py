"""How the untrained models' settings were chosen: each setting varied alone, scored on real clips.

Features of each clip are computed once; the detector then runs over them again and again. Scores are F1 at
absolute tolerances by the official annotator rule, beside a clock, with a cross-validated row in which τ is
chosen on the other clips.

Usage: python benchmarks/calibration.py --clips DIR [DIR …] --labels model_rated_clips.json [--out FILE.md]

The labels are ratings of a vision-language model, not of people; a clip is scored over its rated part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ongebd import Model, OnlineDetector, StreamConfig, load
from ongebd.data import LabelSet, VideoLabels, as_prediction_set, read_labels
from ongebd.lab.evaluation.comparison import Comparison, compare
from ongebd.lab.evaluation.floors import clock_times
from ongebd.video import VideoReader, prefetch

TOLERANCES = (0.1, 0.25, 0.5, 1.0)
GRID: dict[str, list[Any]] = {
    "tau": [1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0],
    "delta": [12, 16, 21, 32, 48],
    "window": [4, 8, 12, 16],
    "warmup": [4, 8, 12, 21],
    "min_std": [0.0, 0.002, 0.004, 0.008],
    "min_error": [0.0, 0.01, 0.02, 0.03],
    "min_gap": [0.0, 0.25, 0.5, 0.75, 1.0],
}
FOLDS = 6


@dataclass(frozen=True)
class Clip:
    """A clip's features (T, D), their times (T,) in seconds."""

    features: npt.NDArray[np.float32]
    times: list[float]


def main() -> int:
    """Compute, vary, print."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--clips", type=Path, nargs="+", required=True)
    asker.add_argument("--labels", type=Path, required=True)
    asker.add_argument("--out", type=Path)
    asked = asker.parse_args()

    labels = read_labels(asked.labels)
    clips = embed_clips(labels, asked.clips, load("window-mean"))
    lines = [f"{len(clips)} clips, {sum(v.duration for v in labels.videos.values()) / 60:.1f} min rated"]
    lines += table("floor", clock_rows(labels))
    for name in ("window-mean", "persistence"):
        lines += model_tables(load(name), labels, clips)
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.out:
        asked.out.write_text(text)
    return 0


def embed_clips(labels: LabelSet, folders: Iterable[Path], model: Model) -> dict[str, Clip]:
    """The features of every labelled clip, up to the end of its rated part."""
    files = {path.stem: path for folder in folders for path in folder.iterdir()}
    return {video.id: embed_clip(files[video.id], video, model) for video in labels.videos.values()}


def embed_clip(path: Path, video: VideoLabels, model: Model) -> Clip:
    """One clip's features at 24 frames/s."""
    backbone = model.backbone
    frames, times = [], []
    with VideoReader(path, 24, view=backbone.view) as reader:
        for frame in prefetch(reader):
            if frame.time > video.duration:
                break
            frames.append(backbone.crop(frame.rgb))
            times.append(float(frame.time))
    with ThreadPoolExecutor(2) as pool:
        features = list(pool.map(lambda frame: backbone.embed(frame[np.newaxis])[0], frames))
    return Clip(np.stack(features), times)


def boundaries(detector: OnlineDetector, clip: Clip) -> list[float]:
    """The centres that a detector finds in a clip."""
    found = []
    for feature, time in zip(clip.features, clip.times, strict=True):
        decision = detector.update_feature(feature, time)
        if decision.boundary is not None:
            found.append(decision.boundary.time)
    last = detector.flush()
    return [*found, last.time] if last is not None else found


def detect_all(model: Model, clips: Mapping[str, Clip], **settings: Any) -> dict[str, list[float]]:
    """The centres in every clip."""
    config = StreamConfig(**settings)
    return {name: boundaries(model.stream(config), clip) for name, clip in clips.items()}


def model_tables(model: Model, labels: LabelSet, clips: Mapping[str, Clip]) -> list[str]:
    """One table a setting, and the cross-validated τ."""
    lines = []
    for setting, values in GRID.items():
        if setting == "window" and model.name == "persistence":
            continue
        chosen = getattr(model.defaults, setting)
        found = {value: detect_all(model, clips, **{setting: value}) for value in values}
        rows = [
            (f"{setting} {value}{' (chosen)' if value == chosen else ''}", score(labels, detections))
            for value, detections in found.items()
        ]
        if setting == "tau":
            rows.append((f"τ chosen on the other clips, {FOLDS} folds", cross_validated(labels, found)))
        lines += table(f"{model.name}, {setting}", rows)
    return lines


def score(labels: LabelSet, detections: Mapping[str, list[float]]) -> list[float]:
    """F1 at the tolerances, then precision and recall at 0.5 s."""
    return figures(compare(labels, as_prediction_set(detections), min_consistency=None))


def figures(comparison: Comparison) -> list[float]:
    """F1 at the tolerances, then precision and recall at 0.5 s."""
    totals = comparison.count(comparison.absolute_tolerances(TOLERANCES)).totals()
    half = TOLERANCES.index(0.5)
    return [*totals.f1.tolist(), float(totals.precision[half]), float(totals.recall[half])]


def cross_validated(labels: LabelSet, found: Mapping[Any, Mapping[str, list[float]]]) -> list[float]:
    """Scores where each clip is judged with the τ that does best at 0.5 s on the clips of the other folds."""
    names = sorted(labels.videos)
    fold_of = {name: place % FOLDS for place, name in enumerate(np.random.default_rng(0).permutation(names))}
    taken: dict[str, list[float]] = {}
    for fold in range(FOLDS):
        others = LabelSet(
            {n: v for n, v in labels.videos.items() if fold_of[n] != fold}, dataset=labels.dataset
        )
        part = {
            value: {n: d for n, d in every.items() if fold_of[n] != fold} for value, every in found.items()
        }
        best = max(part, key=lambda value: score(others, part[value])[TOLERANCES.index(0.5)])
        taken |= {n: d for n, d in found[best].items() if fold_of[n] == fold}
    return score(labels, taken)


def clock_rows(labels: LabelSet) -> list[tuple[str, list[float]]]:
    """The clock at several periods, as hopeful as it gets: no period was held out."""
    rows = []
    for period in (1.0, 1.5, 2.0, 2.5, 3.0):
        blind = {v.id: clock_times(v.duration, period).tolist() for v in labels.videos.values()}
        rows.append((f"a boundary every {period} s", score(labels, blind)))
    return rows


def table(title: str, rows: list[tuple[str, list[float]]]) -> list[str]:
    """A Markdown table."""
    head = " | ".join(f"F1 {t} s" for t in TOLERANCES)
    lines = [
        "",
        f"| {title} | {head} | precision 0.5 s | recall 0.5 s |",
        "|---|" + "---|" * (len(TOLERANCES) + 2),
    ]
    return lines + [f"| {name} | {' | '.join(f'{v:.3f}' for v in values)} |" for name, values in rows]


if __name__ == "__main__":
    sys.exit(main())
