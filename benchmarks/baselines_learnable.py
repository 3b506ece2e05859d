"""ESTimator and every online baseline, trained by one loop on one small learnable set: a table with floors.

    python benchmarks/baselines_learnable.py [--out FOLDER] [--methods estimator,miniroad,…]

The set is made (`ongebd.data.synthetic`): features that wander within an event and change at known moments,
three in ten fading in over six frames. Thresholds are chosen on the validation videos of a training;
the table is of twenty videos that neither weights nor thresholds have seen. The networks are small ones of
the published architectures, for some minutes on one CPU core: what is compared is whether each can learn, and
at what threshold it decides, not what it would reach on real video.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ongebd.baselines.methods import METHODS
from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.data.label_set import LabelSet
from ongebd.data.labelled import LabelledVideo, label_videos
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet
from ongebd.data.synthetic import MemoryStore, SyntheticConfig, make_synthetic
from ongebd.detector.config import StreamConfig
from ongebd.detector.heads import OBD
from ongebd.detector.scorers import AnticipationScorer
from ongebd.detector.trained import read_about
from ongebd.estimator import Anticipator, cosine_error
from ongebd.lab.evaluation import relative_distance
from ongebd.lab.evaluation.evaluation import evaluate
from ongebd.lab.evaluation.system import EvaluationConfig
from ongebd.lab.training.batches import DeviceFeatures
from ongebd.lab.training.config import ESTIMATOR, TrainConfig, read_config
from ongebd.lab.training.dataset import make_dataset
from ongebd.lab.training.decisions import judge, predictions_at
from ongebd.lab.training.loop import train
from ongebd.lab.training.task import task_of
from ongebd.lab.training.validation import Validated, figures

ANTICIPATORS: dict[str, Callable[[], Anticipator]] = {"window-mean": WindowMean, "persistence": Persistence}
CPU = torch.device("cpu")
LEARNABLE = Path(__file__).resolve().parents[1] / "configs" / "learnable.yaml"
_MADE = SyntheticConfig(dim=16, likeness=0.2, event=(12, 36), gradual=0.3)
TRAINING, UNSEEN = replace(_MADE, videos=160), replace(_MADE, videos=20, seed=99)
TWO_FRAMES = 2.01 / UNSEEN.frames  # of a video's length

# What all share beside configs/learnable.yaml: frames next to a boundary count as one.
SHARED: dict[str, Any] = {"label_rule": "near", "near": 0.05, "validate_every": 2}
BASELINE: dict[str, Any] = {"own_recipe": False, "lr": 0.001}
# Small ones of the published architectures.
SETTINGS: dict[str, dict[str, Any]] = {
    ESTIMATOR: {},
    "miniroad": {"network": "embedding=64,hidden=64,window=12,dropout=0", "epochs": 8, "lr": 0.005},
    "testra": {
        "network": "width=64,heads=4,ffn=64,first_queries=4,second_queries=4,second_layers=1,"
        "decoder_layers=1,work=8,long=16,dropout=0",
        "epochs": 10,
        "batch": 128,
    },
    "simon": {"network": "width=64,heads=4,ffn=64,layers=2,run=16,dropout=0", "epochs": 6},
    "oadtr": {
        "network": "width=64,ffn=64,encoder_heads=4,encoder_layers=2,decoder_layers=1,"
        "window=8,run=16,dropout=0",
        "epochs": 6,
    },
}


def configured(method: str, out: Path) -> TrainConfig:
    """The settings of one training: those of configs/learnable.yaml, with the method's own."""
    shared = read_config(LEARNABLE).changed({"store": "made", "labels": "made", "out": str(out)})
    own = {} if method == ESTIMATOR else {"method": method, **BASELINE}
    return shared.changed({**SHARED, **own, **SETTINGS[method]})


def made(config: SyntheticConfig) -> tuple[MemoryStore, LabelSet]:
    """The set, its features scaled to numbers of about one, as linear layers are made for."""
    store, labels = make_synthetic(config)
    for name, video in store.videos.items():
        scaled = video.features.astype(np.float32) * np.sqrt(config.dim)
        store.videos[name] = replace(video, features=scaled.astype(np.float16))
    return store, labels


def row(
    name: str, parameters: int, labels: LabelSet, predictions: PredictionSet, threshold: float, seconds: float
) -> list[str]:
    """One line of the table."""
    values = figures(labels, predictions)
    close = relative_distance(labels, predictions, [TWO_FRAMES], min_consistency=None).f1[0]
    count = f"{parameters:,}" if parameters else "–"
    shown = ("absolute 0.1", "absolute 0.25", "average")
    f1 = [f"{close:.3f}", *(f"{values[figure]:.3f}" for figure in shown)]
    return [name, count, *f1, f"{threshold:.3g}", f"{seconds:.0f} s" if seconds else ""]


def decided(
    chosen: Validated, scores: list[FloatArray], videos: list[LabelledVideo], settings: StreamConfig
) -> PredictionSet:
    """The predictions on unseen videos, at the threshold that the validation videos chose."""
    judged = judge(videos, scores, settings, obd=chosen.at_paper_tau is not None)
    return predictions_at(judged, chosen.threshold, settings)


def main() -> None:
    """Train all, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder for models and reports; a temporary one by default")
    parser.add_argument("--methods", default=",".join((ESTIMATOR, *METHODS)))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    store, labels = made(UNSEEN)
    videos = label_videos(store, labels).videos
    rows: list[list[str]] = []
    best: PredictionSet | None = None
    with tempfile.TemporaryDirectory() as scratch:
        for method in asked.methods.split(","):
            out = (asked.out or Path(scratch)) / method
            config = configured(method, out)
            dataset = make_dataset(*made(TRAINING), config)
            began = time.perf_counter()
            trained = train(config, dataset=dataset)
            seconds = time.perf_counter() - began
            if trained.report is None:
                raise SystemExit("run it without torchrun")
            scores = task_of(config).scores(trained.model, videos, DeviceFeatures(videos, CPU), CPU)
            settings = read_about(out / "model").settings
            parameters = int(trained.report.model["parameters"])
            for chosen in trained.report.results:
                if chosen.name.split(",")[0] != task_of(config).name:
                    continue
                head = "OBD" if chosen.at_paper_tau is not None else "threshold"
                found = decided(chosen, scores, videos, settings)
                title = "ESTimator" if method == ESTIMATOR else METHODS[method].title
                took = seconds if chosen is trained.report.results[0] else 0.0
                rows.append(row(f"{title}, {head}", parameters, labels, found, chosen.threshold, took))
                best = best or found
            print(f"{method}: {seconds:.0f} s", flush=True)
            if method == ESTIMATOR:
                rows += naive(trained.report.results, videos, labels, settings)
    if best is None:
        raise SystemExit("name a method")
    for floor in evaluate(labels, best, config=EvaluationConfig(resamples=0)).systems[0].floors:
        shown = [f"{floor.figures[f].f1:.3f}" for f in ("absolute 0.1", "absolute 0.25", "average")]
        rows.append([f"floor: {floor.name}", "–", "", *shown, "", ""])
    show(rows)


def naive(
    results: tuple[Validated, ...], videos: list[LabelledVideo], labels: LabelSet, settings: StreamConfig
) -> list[list[str]]:
    """The lines of the anticipators that need no training, by the parts that run in a stream."""
    lines = []
    for chosen in results[1:]:
        scores = []
        for video in videos:
            scorer = AnticipationScorer(ANTICIPATORS[chosen.name](), cosine_error, video.features.shape[1])
            said = [scorer.update(feature, 0.0) for feature in video.features.astype(np.float32)]
            scores.append(np.array([np.nan if score is None else score for score in said]))
        found = decided(chosen, scores, videos, replace(settings, head=OBD))
        lines.append(row(f"{chosen.name}, OBD", 0, labels, found, chosen.threshold, 0.0))
    return lines


def show(rows: list[list[str]]) -> None:
    """The table, as Markdown."""
    header = [
        "method, head",
        "parameters",
        "F1 at 2 frames",
        "F1 at 0.1 s",
        "F1 at 0.25 s",
        "Avg F1 (Rel.Dis)",
    ]
    header += ["threshold", "training"]
    widths = [max(len(line[place]) for line in [header, *rows]) for place in range(len(header))]
    for line in (header, ["-" * width for width in widths], *rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")


if __name__ == "__main__":
    main()
