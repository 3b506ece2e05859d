"""Every table of the paper, and some that it has not, as definitions."""

from __future__ import annotations

from dataclasses import replace

from ongebd.lab.evaluation.delay import ALLOWED_DELAYS
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.experiments.printed import PRINTED
from ongebd.lab.experiments.table import TSN, Experiment, Row, Which

OURS = Row(name="ESTimator", tau=None, printed="ESTimator")
BASELINES = tuple(
    Row(name=name, method=method, obd=False, printed=name)
    for name, method in (
        ("TeSTra-BC", "testra"),
        ("Sim-On-BC", "simon"),
        ("OadTR-BC", "oadtr"),
        ("MiniROAD-BC", "miniroad"),
    )
)
UNTRAINED = tuple(
    Row(name=f"{name}, untrained", kind="untrained", method=name) for name in ("window-mean", "persistence")
)
AT_PAPER_TAU = replace(OURS, name="ESTimator, τ = 1.5", tau=1.5)
EVERY_DISTANCE = (
    *("average", "absolute 0.25", "absolute 0.5"),
    *(f"relative {share:g}" for share in THRESHOLDS),
)


def _online(name: str, which: Which, label: str) -> Experiment:
    return Experiment(
        name=name,
        title=f"Online methods, {label}",
        asks="How does ESTimator compare with classifiers on top of online video models?",
        rows=(*BASELINES, OURS, replace(AT_PAPER_TAU, printed=None), *UNTRAINED),
        columns=EVERY_DISTANCE,
        data=which,
        trained_on=which,
        printed=name,
    )


def _offline(name: str, which: Which, label: str) -> Experiment:
    ran = {"SceneDetect": "scenedetect-content", "PA": "predictability"}
    rows = []
    for printed in PRINTED[name].rows:
        if printed == "ESTimator":
            continue
        if printed in ran:
            rows.append(
                Row(name=f"{printed} ({ran[printed]})", kind="watched", method=ran[printed], printed=printed)
            )
        else:
            rows.append(Row(name=printed, kind="printed", printed=printed))
    return Experiment(
        name=name,
        title=f"Offline methods, {label}",
        asks="How far is an online method from those that see the whole video? Most rows are printed ones.",
        rows=(*rows, OURS),
        columns=EVERY_DISTANCE,
        data=which,
        trained_on=which,
        printed=name,
    )


def _components() -> Experiment:
    def row(name: str, **flags: bool) -> Row:
        obd = flags.pop("obd", False)
        return Row(name=name, training=flags, obd=obd, printed=name)

    return Experiment(
        name="components",
        title="The proposed components",
        asks="What is each loss worth, and what the discriminator?",
        rows=(
            row("baseline", est=False, rest=False),
            row("EST", est=True, rest=False),
            row("REST", est=False, rest=True),
            row("EST+REST", est=True, rest=True),
            row("EST+OBD", est=True, rest=False, obd=True),
            row("REST+OBD", est=False, rest=True, obd=True),
            row("EST+REST+OBD", est=True, rest=True, obd=True),
            *UNTRAINED,
        ),
        printed="components",
    )


def _features(name: str, which: Which, printed_column: str) -> Experiment:
    """Half of a printed table. Each has a store of its own, and so videos, floors and draws of its own."""
    return Experiment(
        name=name,
        title=f"Features of TSN, trained on {TSN[which]}",
        asks="Do the baselines gain from the features they were made for?",
        rows=(*BASELINES, OURS),
        columns=("average", "absolute 0.25", "absolute 0.5"),
        data=which,
        trained_on=which,
        printed="features",
        printed_columns={"average": printed_column},
    )


def _grid() -> Experiment:
    table = PRINTED["tau-delta"]
    return Experiment(
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
            for tau in table.rows
            for delta in table.columns
        ),
        columns=("average", "absolute 0.25", "absolute 0.5"),
        printed="tau-delta",
        grid=("τ", "Δ"),
    )


def _one_setting(name: str, title: str, asks: str, rows: tuple[Row, ...], **more: object) -> Experiment:
    return Experiment(name=name, title=title, asks=asks, rows=rows, **more)  # type: ignore[arg-type]


_CHANGED_RULES: tuple[tuple[str, dict[str, float]], ...] = (
    ("as the paper states it", {}),
    ("floors on the error and its deviation", {"min_error": 0.02, "min_std": 0.004}),
    ("a gap of half a second", {"min_gap": 0.5}),
    (
        "floors and gap (this project's)",
        {"min_error": 0.02, "min_std": 0.004, "min_gap": 0.5, "max_run": 1.0},
    ),
)

_ALL = (
    _online("online-kinetics", "main", "first set"),
    _online("online-tapos", "second", "second set"),
    _offline("offline-kinetics", "main", "first set"),
    _offline("offline-tapos", "second", "second set"),
    _components(),
    _one_setting(
        "distance",
        "The error's distance",
        "Is the cosine the best of the distances between anticipated and seen feature?",
        tuple(Row(name=name, training={"metric": name}, printed=name) for name in PRINTED["distance"].rows),
        printed="distance",
    ),
    _features("features-sthv2", "tsn-sthv2", "tsn-ssv2"),
    _features("features-kinetics", "tsn-kinetics", "tsn-kinetics"),
    _one_setting(
        "outliers",
        "Boundary errors in the queue",
        "Does the discriminator need the errors that it called boundaries?",
        (
            Row(name="only inliers", tau=1.5, deciding={"inliers_only": True}, printed="only inliers"),
            Row(name="all errors", tau=1.5, printed="all errors"),
            Row(name="only inliers, τ chosen", deciding={"inliers_only": True}),
            Row(name="all errors, τ chosen"),
        ),
        printed="outliers",
    ),
    _grid(),
    _one_setting(
        "region",
        "K, the region of REST",
        "How far should the region of the REST loss reach?",
        tuple(Row(name=f"K = {k}", training={"region": int(k)}, printed=k) for k in PRINTED["region"].rows),
        printed="region",
    ),
    _one_setting(
        "length",
        "L, the length of the window",
        "How many past frames should the anticipator see, and what does training with them take?",
        tuple(
            Row(name=f"L = {length}", training={"window": int(length)}, printed=length)
            for length in PRINTED["length"].rows
        ),
        columns=("average", "absolute 0.25", "absolute 0.5", "vram-gb"),
        printed="length",
    ),
    _one_setting(
        "weighting",
        "Batch-wise weighting",
        "Is it worth while to weigh boundaries by the balance of the batch?",
        (
            Row(name="without", training={"balanced": False}, printed="without"),
            Row(name="with", training={"balanced": True}, printed="with"),
        ),
        printed="weighting",
    ),
    Experiment(
        name="zero-shot",
        title="Another data set, without training on it",
        asks="What is left of it on long videos of another kind?",
        rows=(
            *(Row(name=name, kind="printed", printed=name) for name in ("U-Net", "CoSeg")),
            *BASELINES,
            OURS,
            *UNTRAINED,
        ),
        columns=("precision 0.05", "recall 0.05", "f1 0.05", "absolute 0.5"),
        data="zero-shot",
        printed="zero-shot",
    ),
    Experiment(
        name="fps",
        title="Frames a second",
        asks="How fast is each method here, features included?",
        rows=(*BASELINES, OURS),
        columns=("features", "model", "overall", "overall, eager"),
        printed="fps",
        speed=True,
    ),
    Experiment(
        name="cost",
        title="Cost",
        asks="What does each method take?",
        rows=(*BASELINES, OURS),
        columns=("parameters-millions", "gflops", "vram-mb"),
        printed="cost",
        speed=True,
    ),
    Experiment(
        name="delay",
        title="F1 at ±0.5 s against the allowed delay",
        asks="How much of it is known in time? A boundary that is told later than allowed does not count.",
        rows=(*BASELINES, OURS, *UNTRAINED),
        columns=(*(f"within {delay:g} s" for delay in ALLOWED_DELAYS), "absolute 0.5"),
    ),
    _one_setting(
        "cold-start",
        "The start of a stream",
        "How many errors should be known before the first test? The paper does not say.",
        tuple(Row(name=f"from {count} errors on", deciding={"warmup": count}) for count in (2, 4, 8, 14, 21)),
    ),
    _one_setting(
        "label-rules",
        "Which frames are boundaries",
        "Frames within 0.15 s or the nearest alone, weighted or not? The paper does not say.",
        tuple(
            Row(
                name=f"{said}, {'' if balanced else 'un'}weighted",
                training={"label_rule": rule, "balanced": balanced},
            )
            for rule, said in (("near", "within 0.15 s"), ("exact", "nearest frame"))
            for balanced in (True, False)
        ),
    ),
    _one_setting(
        "decision-rules",
        "What keeps the discriminator quiet",
        "What are floors and a gap after each boundary worth, τ chosen for each?",
        tuple(Row(name=name, deciding=changes) for name, changes in _CHANGED_RULES),
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""By name, in the order of the report: the paper's, then ours."""
