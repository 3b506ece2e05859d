"""What batch-wise weighting does to the errors, on made features with known changes.

    OMP_NUM_THREADS=1 python benchmarks/balanced_weighting.py [--epochs 12] [--likeness 0.6,0.2,0.4,0.8]
    OMP_NUM_THREADS=1 python benchmarks/balanced_weighting.py --store FEATURES

Trains the anticipator with and without weighting, plain and residual, on abrupt changes and on foreshadowed
ones, and prints the mean error on boundaries and elsewhere, and F1 at two frames with the best τ (chosen on
the same validation videos, for each alike). With a store that `ongebd extract` made of some clips, videos are
put together of stretches of those clips instead, cut hard: validation is on other composites of the same
clips. docs/training.md explains the outcome.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.synthetic import MemoryStore, MemoryVideo, SyntheticConfig, make_synthetic
from ongebd.features.store import FeatureStore
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import make_dataset
from ongebd.lab.training.loop import train
from ongebd.lab.training.validation import Validated

TWO_FRAMES = "absolute 0.1"  # 2.4 frames at 24 a second

RECIPES: dict[str, dict[str, Any]] = {
    "balanced (the paper)": {},
    "balanced, residual": {"residual": True},
    "unweighted": {"balanced": False},
    "unweighted, residual": {"balanced": False, "residual": True},
}


Made = tuple[MemoryStore, LabelSet]


def composites(store: FeatureStore, videos: int, frames: int = 240) -> Made:
    """Videos of stretches of 24 to 60 frames of the store's clips, no two neighbours of one clip."""
    made, labels = MemoryStore(store.dim, store.fps, store.backbone), {}
    clips = [clip for clip in (store[name] for name in store.ids()) if len(clip) >= 60]
    for number in range(videos):
        rng = np.random.default_rng((1, number))
        parts: list[np.ndarray[Any, Any]] = []
        last = -1
        while sum(map(len, parts)) < frames:
            last = int(rng.choice([i for i in range(len(clips)) if i != last]))
            length = int(rng.integers(24, 61))
            first = int(rng.integers(len(clips[last]) - length + 1))
            parts.append(clips[last].features[first : first + length])
        cuts = np.cumsum([len(part) for part in parts])[:-1] / store.fps
        times, epochs = np.arange(frames) / store.fps, np.zeros(frames, np.int32)
        name, duration = f"composite-{number}", frames / store.fps
        made.videos[name] = MemoryVideo(np.concatenate(parts)[:frames], times, epochs, duration)
        labels[name] = VideoLabels(name, duration, (cuts,), fps=store.fps)
    return made, LabelSet(labels, "custom", "composites")


def mean_cosine(made: Made) -> float:
    """The mean cosine between the features right before and right after a change."""
    store, labels = made
    cosines = []
    for name, video in labels.videos.items():
        features = store[name].features.astype(np.float64)
        for frame in np.round(video.boundaries[0] * store.fps).astype(int):
            before, after = features[frame - 1], features[frame]
            cosines.append(before @ after / np.linalg.norm(before) / np.linalg.norm(after))
    return float(np.mean(cosines))


def run(made: Made, recipe: dict[str, Any], epochs: int, width: int = 64) -> tuple[Validated, ...]:
    """Train once; the trained anticipator, then the untrained ones."""
    with tempfile.TemporaryDirectory() as out:
        config = TrainConfig(
            store="made",
            labels="made",
            out=f"{out}/run",
            width=width,
            ffn=width,
            heads=4,
            layers=2,
            epochs=epochs,
            batch=256,
            lr=2e-3,
            label_rule="exact",
            validate_every=epochs,  # the last epoch is kept, not the luckiest
            select_by=TWO_FRAMES,
            device="cpu",
            tensorboard=False,
        )
        config = replace(config, **recipe)
        report = train(config, dataset=make_dataset(*made, config)).report
        assert report is not None
        return report.results


def show(changes: str, likeness: float, name: str, result: Validated, seconds: float | None) -> None:
    """One line of the table."""
    errors = result.histograms
    took = "" if seconds is None else f"{seconds:.0f} s"
    print(
        f"| {changes} | {likeness:.2g} | {name} | {errors.mean_boundary:.3f} | {errors.mean_elsewhere:.3f} |"
        f" {result.threshold:g} | {result.figures[TWO_FRAMES]:.3f} | {took} |",
        flush=True,
    )


def main() -> None:
    """Train all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--videos", type=int, default=40)
    parser.add_argument("--likeness", default="0.6", help="cosines between events, for balanced ones a sweep")
    parser.add_argument(
        "--store", help="features of clips, from `ongebd extract`: composites of them instead"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| changes | cosine of events | trained | ε, boundary | ε, elsewhere | best τ | F1, 2 frames | took |"
    )
    print("|---|---|---|---|---|---|---|---|")
    if arguments.store:
        made = composites(FeatureStore.open(arguments.store), arguments.videos)
        table("composites, abrupt", mean_cosine(made), made, arguments.epochs, width=128)
        return
    first, *others = [float(value) for value in arguments.likeness.split(",")]
    for changes, share in (("abrupt", 0.0), ("foreshadowed", 1.0)):
        made = make_synthetic(SyntheticConfig(videos=arguments.videos, gradual=share, likeness=first))
        table(changes, first, made, arguments.epochs)
    for likeness in others:
        for name in ("balanced (the paper)", "unweighted"):
            began = time.perf_counter()
            made = make_synthetic(SyntheticConfig(videos=arguments.videos, gradual=0.0, likeness=likeness))
            own = run(made, RECIPES[name], arguments.epochs)[0]
            show("abrupt", likeness, name, own, time.perf_counter() - began)


def table(changes: str, likeness: float, made: Made, epochs: int, width: int = 64) -> None:
    """All recipes on one set, and the untrained anticipators."""
    untrained: list[Validated] = []
    for name, recipe in RECIPES.items():
        began = time.perf_counter()
        own, *untrained = run(made, recipe, epochs, width)
        show(changes, likeness, name, own, time.perf_counter() - began)
    for each in untrained:
        show(changes, likeness, f"{each.name}, untrained", each, None)


if __name__ == "__main__":
    main()
