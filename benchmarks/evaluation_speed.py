"""How long the official score takes: ours beside the plain triple loop, on the same labels, in one run.

    OMP_NUM_THREADS=1 python benchmarks/evaluation_speed.py [--videos 20000]

Prints one table and says whether all agree in every count. "From dicts" reads and checks plain dicts in the
official schema first; "scoring alone" starts from labels already read. The loop over lists is Python at its
leanest; the loop over matrices fills and shrinks a numpy matrix of distances, as the official script does,
and runs on a tenth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

from ongebd.data import as_label_set, as_prediction_set
from ongebd.lab.evaluation import THRESHOLDS, relative_distance

Labels = dict[str, dict[str, object]]
Predictions = dict[str, list[float]]
ANNOTATORS = 5


def make_labels(videos: int, seed: int) -> tuple[Labels, Predictions]:
    """Labels and predictions shaped like Kinetics-GEBD: 10 s, five annotators, about five boundaries each."""
    rng = np.random.default_rng(seed)
    labels: Labels = {}
    predictions: Predictions = {}
    for index in range(videos):
        duration = float(rng.uniform(8.0, 10.1))
        rows = [sorted(rng.uniform(0.3, duration - 0.3, rng.poisson(5)).tolist()) for _ in range(ANNOTATORS)]
        labels[str(index)] = {"video_duration": duration, "f1_consis_avg": 0.7, "substages_timestamps": rows}
        predictions[str(index)] = sorted(rng.uniform(0, duration, rng.poisson(6)).tolist())
    return labels, predictions


def hits_in_lists(boundaries: Sequence[float], found: Sequence[float], tolerance: float) -> int:
    """True positives of one annotator, over plain lists."""
    free = list(found)
    hits = 0
    for boundary in boundaries:
        if not free:
            break
        distances = [abs(boundary - detection) for detection in free]
        nearest = distances.index(min(distances))
        if distances[nearest] <= tolerance:
            hits += 1
            del free[nearest]
    return hits


def hits_in_a_matrix(boundaries: Sequence[float], found: Sequence[float], tolerance: float) -> int:
    """The same over a numpy matrix of distances."""
    distances = np.zeros((len(boundaries), len(found)))
    for row, boundary in enumerate(boundaries):
        for column, detection in enumerate(found):
            distances[row, column] = abs(boundary - detection)
    hits = 0
    for row in range(len(boundaries)):
        if distances.shape[1] == 0:
            break
        nearest = np.argmin(distances[row])
        if distances[row, nearest] <= tolerance:
            hits += 1
            distances = np.delete(distances, nearest, 1)
    return hits


def triple_loop(
    labels: Labels, predictions: Predictions, threshold: float, count: Callable[..., int]
) -> tuple[int, int, int]:
    """The official rule as it reads: videos, annotators, boundaries."""
    hits = positives = detections = 0
    for name, video in labels.items():
        rows, duration = video["substages_timestamps"], video["video_duration"]
        assert isinstance(rows, list)
        assert isinstance(duration, float)
        found = [moment for moment in predictions.get(name, []) if 0 <= moment <= duration]
        if not found:
            positives += len(rows[0])
            continue
        detections += len(found)
        best = (-1.0, 0, 0)
        for boundaries in rows:
            hit = count(boundaries, found, threshold * duration)
            recall = hit / len(boundaries) if boundaries else 1
            precision = hit / len(found)
            f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0
            if f1 > best[0]:
                best = (f1, hit, len(boundaries))
        hits += best[1]
        positives += best[2]
    return hits, positives, detections


def ours(labels: object, predictions: object) -> list[tuple[int, int, int]]:
    """The counts at each threshold."""
    score = relative_distance(labels, predictions)  # type: ignore[arg-type]
    table = zip(score.tp.tolist(), score.positives.tolist(), score.detections.tolist(), strict=True)
    return [(int(tp), int(positives), int(detections)) for tp, positives, detections in table]


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, default=20_000, help="default 20000")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    labels, predictions = make_labels(options.videos, options.seed)
    few = {name: labels[name] for name in list(labels)[: max(1, options.videos // 10)]}
    read, given = as_label_set(labels), as_prediction_set(predictions)

    def loop(part: Labels, count: Callable[..., int]) -> list[tuple[int, int, int]]:
        return [triple_loop(part, predictions, threshold, count) for threshold in THRESHOLDS]

    runs: list[tuple[str, int, Callable[[], list[tuple[int, int, int]]]]] = [
        ("ours, from dicts", len(labels), lambda: ours(labels, predictions)),
        ("ours, scoring alone", len(labels), lambda: ours(read, given)),
        ("triple loop, lists", len(labels), lambda: loop(labels, hits_in_lists)),
        ("triple loop, matrices", len(few), lambda: loop(few, hits_in_a_matrix)),
    ]
    print(
        f"{ANNOTATORS} annotators, {len(THRESHOLDS)} thresholds, seed {options.seed}, numpy {np.__version__}"
    )
    print(f"{'':22}{'videos':>8}{'CPU s':>9}{'videos/s':>11}{'20,000 in':>12}")
    outcomes = []
    for name, videos, run in runs:
        start = time.process_time()
        outcomes.append(run())
        seconds = time.process_time() - start
        rate = videos / seconds
        print(f"{name:22}{videos:>8}{seconds:>9.2f}{rate:>11.0f}{20_000 / rate:>10.1f} s")
    same = outcomes[0] == outcomes[1] == outcomes[2] and outcomes[3] == loop(few, hits_in_lists)
    print(f"counts {'equal' if same else 'DIFFER'}")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
