"""Every table of the paper, and some of this project's own, as definitions."""

from __future__ import annotations

from typing import Literal

from ongebd.lab.evaluation.comparison import ALLOWED_DELAYS
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.experiments.definition import TSN, Experiment, Row, SetName
from ongebd.lab.paper import PRINTED
from ongebd.offline.systems import NOT_BUILT, SYSTEMS

OURS = Row(name="ESTimator")
BASELINES = (
    Row(name="TeSTra-BC", method="testra", obd=False),
    Row(name="Sim-On-BC", method="simon", obd=False),
    Row(name="OadTR-BC", method="oadtr", obd=False),
    Row(name="MiniROAD-BC", method="miniroad", obd=False),
)
CHOSEN = Row(name="ESTimator, τ chosen", tau=None)
UNTRAINED = tuple(
    Row(name=f"{name}, untrained", kind="untrained", method=name, tau=None)
    for name in ("window-mean", "persistence")
)
ALL_DISTANCES = ("average", "absolute 0.25", "absolute 0.5", *(f"relative {share:g}" for share in THRESHOLDS))
THREE_SCORES = ("average", "absolute 0.25", "absolute 0.5")


def _online(name: str, data: SetName, label: str) -> Experiment:
    return Experiment(
        name=name,
        title=f"Online methods, {label}",
        asks="How does ESTimator compare with classifiers on top of online video models?",
        rows=(*BASELINES, OURS, CHOSEN, *UNTRAINED),
        columns=ALL_DISTANCES,
        data=data,
    )


def _offline(name: str, data: SetName, label: str) -> Experiment:
    return Experiment(
        name=name,
        title=f"Offline methods, {label}",
        asks="How far is an online method from those that see the whole video?",
        rows=(
            *(_offline_row(row) for row in PRINTED[name].rows if row != OURS.name),
            *((_offline_row("BasicGEBD"),) if data == "kinetics" else ()),  # in no table of the paper
            OURS,
        ),
        columns=ALL_DISTANCES,
        data=data,
    )


def _offline_row(name: str) -> Row:
    """A row of the paper's: run here if the system is, else printed alone (`NOT_BUILT` says why)."""
    watched = {"SceneDetect": "scenedetect-content", "FlowGEBD": "flowgebd"}
    if name in watched:
        return Row(name=name, kind="watched", method=watched[name])
    for method, system in SYSTEMS.items():
        if system.title == name:
            kind: Literal["trained", "untrained"] = "trained" if system.network else "untrained"
            rule = {"label_rule": system.recipe["label_rule"]} if "label_rule" in system.recipe else {}
            return Row(name=name, kind=kind, method=method, training=rule, obd=False)
    return Row(name=name, kind="printed", why=NOT_BUILT[name])


def _features(name: str, data: SetName, average_column: str) -> Experiment:
    """Half of a printed table. Each half has its own store, and so its own videos, floors and draws."""
    return Experiment(
        name=name,
        title=f"Features of TSN, trained on {TSN[data]}",
        asks="Do the baselines gain from the features they were made for?",
        rows=(*BASELINES, OURS, CHOSEN),
        columns=THREE_SCORES,
        data=data,
        printed="features",
        average_column=average_column,
    )


_LOSSES = {
    "baseline": {"est": False, "rest": False},
    "EST": {"est": True, "rest": False},
    "REST": {"est": False, "rest": True},
    "EST+REST": {"est": True, "rest": True},
}
_FLOORS = {"min_error": 0.02, "min_std": 0.004}

_ALL = (
    _online("online-kinetics", "kinetics", "first set"),
    _online("online-tapos", "tapos", "second set"),
    _offline("offline-kinetics", "kinetics", "first set"),
    _offline("offline-tapos", "tapos", "second set"),
    Experiment(
        name="components",
        title="The proposed components",
        asks="What does each loss add, and what the discriminator?",
        rows=(
            *(Row(name=name, training=losses, obd=False) for name, losses in _LOSSES.items()),
            *(Row(name=f"{name}+OBD", training=_LOSSES[name]) for name in ("EST", "REST", "EST+REST")),
            *UNTRAINED,
        ),
    ),
    Experiment(
        name="distance",
        title="The error's distance",
        asks="Is the cosine the best distance between anticipated and seen feature?",
        rows=tuple(Row(name=name, training={"metric": name}) for name in PRINTED["distance"].rows),
    ),
    Experiment(
        name="fps",
        title="Frames a second",
        asks="How fast is each method here, features included?",
        rows=(*BASELINES, OURS),
        columns=("average", "features", "model", "overall", "overall, eager"),
        speed=True,
    ),
    _features("features-sthv2", "tsn-sthv2", "tsn-ssv2"),
    _features("features-kinetics", "tsn-kinetics", "tsn-kinetics"),
    Experiment(
        name="outliers",
        title="Boundary errors in the queue",
        asks="Does the discriminator need the errors that it called boundaries?",
        rows=(
            Row(name="only inliers", deciding={"inliers_only": True}),
            Row(name="all errors"),
            Row(name="only inliers, τ chosen", tau=None, deciding={"inliers_only": True}),
            Row(name="all errors, τ chosen", tau=None),
        ),
    ),
    Experiment(
        name="tau-delta",
        title="Threshold τ and queue Δ",
        asks="How does F1 depend on the discriminator's two numbers? One pass of the model serves all 25.",
        rows=tuple(
            Row(
                name=f"τ = {tau}, Δ = {delta}",
                tau=float(tau),
                deciding={"delta": int(delta)},
                printed=tau,
                at=(tau, delta),
            )
            for tau in PRINTED["tau-delta"].rows
            for delta in PRINTED["tau-delta"].columns
        ),
        columns=THREE_SCORES,
        grid=("τ", "Δ"),
    ),
    Experiment(
        name="region",
        title="K, the region of REST",
        asks="How far should the region of the REST loss reach?",
        rows=tuple(
            Row(name=f"K = {k}", training={"region": int(k)}, printed=k) for k in PRINTED["region"].rows
        ),
    ),
    Experiment(
        name="length",
        title="L, the length of the window",
        asks="How many past frames should the anticipator see, and what does training with them take?",
        rows=tuple(
            Row(name=f"L = {length}", training={"window": int(length)}, printed=length)
            for length in PRINTED["length"].rows
        ),
        columns=(*THREE_SCORES, "vram-gb"),
    ),
    Experiment(
        name="weighting",
        title="Batch-wise weighting",
        asks="Does it help to weight boundaries by the balance of the batch?",
        rows=(
            Row(name="without", training={"balanced": False}),
            Row(name="with", training={"balanced": True}),
        ),
    ),
    Experiment(
        name="zero-shot",
        title="Another data set, without training on it",
        asks="How well does it work on long videos of another kind?",
        rows=(
            Row(name="U-Net", kind="printed", why=NOT_BUILT["U-Net"]),
            Row(name="CoSeg", kind="printed", why="it learned from INRIA, of which we use test videos only"),
            *BASELINES,
            OURS,
            CHOSEN,
            *UNTRAINED,
        ),
        columns=("precision 0.05", "recall 0.05", "f1 0.05", "absolute 0.5"),
        data="inria",
    ),
    Experiment(
        name="cost",
        title="Cost",
        asks="What does each method take?",
        rows=(*BASELINES, OURS),
        columns=("average", "parameters-millions", "gflops", "vram-mb", "overall"),
        speed=True,
    ),
    Experiment(
        name="delay",
        title="F1 at ±0.5 s against the allowed delay",
        asks="How many boundaries are known in time? One that is reported later than allowed doesn't count.",
        rows=(*BASELINES, OURS, CHOSEN, *UNTRAINED),
        columns=(*(f"within {delay:g} s" for delay in ALLOWED_DELAYS), "absolute 0.5"),
    ),
    Experiment(
        name="cold-start",
        title="The start of a stream",
        asks="How many errors should be known before the first test? The paper doesn't say.",
        rows=tuple(
            Row(name=f"from {count} errors on", deciding={"warmup": count}) for count in (2, 4, 8, 14, 21)
        ),
    ),
    Experiment(
        name="label-rules",
        title="Which frames are boundaries",
        asks="Frames within 0.15 s or only the nearest one, weighted or not? The paper doesn't say.",
        rows=tuple(
            Row(
                name=f"{frames}, {'' if balanced else 'un'}weighted",
                training={"label_rule": rule, "balanced": balanced},
            )
            for rule, frames in (("near", "within 0.15 s"), ("exact", "nearest frame"))
            for balanced in (True, False)
        ),
    ),
    Experiment(
        name="decision-rules",
        title="What keeps the discriminator quiet",
        asks="What do floors and a gap after each boundary add, with τ chosen for each?",
        rows=(
            Row(name="as the paper states it"),
            Row(name="as the paper states it, τ chosen", tau=None),
            *(
                Row(name=name, tau=None, deciding=deciding)
                for name, deciding in (
                    ("floors on the error and its deviation", _FLOORS),
                    ("a gap of half a second", {"min_gap": 0.5}),
                    ("floors and gap (this project's)", {**_FLOORS, "min_gap": 0.5, "max_run": 1.0}),
                )
            ),
        ),
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""By name, in the order of the report: the paper's tables, then ours."""

COMPARISONS = ("online-kinetics", "online-tapos", "offline-kinetics", "offline-tapos", "zero-shot", "delay")
"""Tables that compare methods; the others compare settings of one."""
