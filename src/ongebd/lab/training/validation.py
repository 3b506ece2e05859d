"""How good an anticipator is: its errors through the discriminator, and the threshold that suits it best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ongebd.data.label_set import LabelSet
from ongebd.data.labelled import BoolArray, LabelledVideo
from ongebd.data.labels import min_consistency_of
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet
from ongebd.detector.config import StreamConfig
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.comparison import compare
from ongebd.lab.evaluation.figures import FIGURES, count_all, figure_values
from ongebd.lab.training.decisions import judge, predictions_at

TAUS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 20.0)
"""Values of τ that are tried."""

PAPER_TAU = 1.5

_QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995)
_BINS = np.linspace(0, 1, 101)


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """How errors are distributed, on boundary frames and elsewhere.

    Attributes:
        edges: Of the bins, (B + 1,).
        boundary: Counts of frames that are boundaries, (B,).
        elsewhere: Counts of the others, (B,).
        mean_boundary: Their mean error; NaN where there is none. Likewise `mean_elsewhere`.
        mean_elsewhere: The others'.
    """

    edges: FloatArray
    boundary: FloatArray
    elsewhere: FloatArray
    mean_boundary: float
    mean_elsewhere: float


@dataclass(frozen=True, slots=True, eq=False)
class Validated:
    """One anticipator on the validation videos.

    Attributes:
        name: "cea", "window-mean", "persistence" or "classifier".
        threshold: The best threshold: τ, or with a fixed one the error. It was chosen on these very videos,
            so the figures at it flatter, all anticipators alike.
        figures: F1 by each of `FIGURES` at that threshold.
        at_paper_tau: The same at τ = 1.5; None without the discriminator.
        by_threshold: The figure that chooses, at each threshold tried.
        histograms: Of its errors.
        predictions: At the best threshold.
    """

    name: str
    threshold: float
    figures: dict[str, float]
    at_paper_tau: dict[str, float] | None
    by_threshold: dict[float, float]
    histograms: Histograms
    predictions: PredictionSet


def validate(
    name: str,
    videos: Sequence[LabelledVideo],
    errors: Sequence[FloatArray],
    labels: LabelSet,
    config: StreamConfig,
    *,
    select_by: str,
    obd: bool = True,
) -> Validated:
    """Find an anticipator's best threshold, and its figures there.

    Args:
        name: What to call it.
        videos: The validation videos.
        errors: ε of their frames.
        labels: Of these videos at least.
        config: Settings of the stream; τ is what is sought.
        select_by: One of `FIGURES`.
        obd: Through the discriminator; otherwise a fixed threshold on the error is sought.

    Raises:
        ConfigError: No such figure.
    """
    if select_by not in FIGURES:
        raise ConfigError(f"select_by must be one of {', '.join(FIGURES)}, not {select_by!r}")
    own = labels.restrict([video.id for video in videos], "the validation videos")
    judged = judge(videos, errors, config, obd=obd)
    everything = np.concatenate(list(errors))
    thresholds = TAUS if obd else _error_thresholds(everything)
    scored = {}
    for threshold in thresholds:
        predictions = predictions_at(judged, threshold, config)
        scored[threshold] = predictions, figures(own, predictions)
    highest = max(values[select_by] for _, values in scored.values())
    equal = [threshold for threshold, (_, values) in scored.items() if values[select_by] == highest]
    best = equal[len(equal) // 2]  # the middle of those that are as good: the farthest from where it falls
    return Validated(
        name=name,
        threshold=best,
        figures=scored[best][1],
        at_paper_tau=scored[PAPER_TAU][1] if obd else None,
        by_threshold={threshold: scored[threshold][1][select_by] for threshold in scored},
        histograms=histograms(everything, np.concatenate([video.targets for video in videos])),
        predictions=scored[best][0],
    )


def figures(labels: LabelSet, predictions: PredictionSet) -> dict[str, float]:
    """F1 by each of `FIGURES`, by the data set's own rule."""
    comparison = compare(labels, predictions, min_consistency=min_consistency_of(labels.dataset))
    values = figure_values(count_all(comparison).totals().f1)
    return {name: float(values[name]) for name in FIGURES}


def histograms(errors: FloatArray, targets: BoolArray) -> Histograms:
    """Errors on boundary frames and elsewhere; an error above 1 (of l1, l2, kl) stretches the bins.

    Args:
        errors: (N,), NaN where there is none.
        targets: y, (N,).
    """
    known = ~np.isnan(errors)
    yes, no = errors[known & targets], errors[known & ~targets]
    edges = _BINS * max(1.0, float(errors[known].max(initial=0.0)))
    return Histograms(
        edges,
        np.histogram(yes, edges)[0].astype(np.float64),
        np.histogram(no, edges)[0].astype(np.float64),
        float(yes.mean()) if len(yes) else float("nan"),
        float(no.mean()) if len(no) else float("nan"),
    )


def _error_thresholds(errors: FloatArray) -> list[float]:
    """0.5, where the loss turns, and quantiles of the errors."""
    known = errors[~np.isnan(errors)]
    return sorted({0.5, *np.quantile(known, _QUANTILES).tolist()})
