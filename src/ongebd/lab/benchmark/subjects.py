"""The methods to measure, loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ongebd.baselines.methods import METHODS
from ongebd.baselines.transnet import STEP
from ongebd.detector import Model, load
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.detector.openvino import on_cpu_runtime
from ongebd.detector.recipes import TRAINABLE
from ongebd.detector.trained import ESTIMATOR
from ongebd.errors import OngebdError
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.random_weights import NOTE, random_model

USUAL = (
    DEFAULT_MODEL,
    "window-mean",
    "persistence",
    ESTIMATOR,
    *METHODS,
    "scenedetect-adaptive",
    "transnetv2",
)
"""What is measured if nothing is named, as far as it is available."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A method to measure.

    Attributes:
        name: As it was asked for.
        plain: The model as loaded: float32, on the CPU.
        model: The same on the runtime that was asked for.
        note: What a reader must know; may be empty.
        chunk: How many frames it works on together.
    """

    name: str
    plain: Model
    model: Model
    note: str
    chunk: int


def subjects(
    plan: BenchPlan, folder: Path, tell: Callable[[str], object]
) -> tuple[list[Subject], dict[str, str]]:
    """Load the methods of a plan, or if it names none, the usual ones; also why others are not available.

    The folder takes the files of random networks, and must stay while these are in use.

    Raises:
        ConfigError: A named method is not available.
        MissingExtraError: A package for a named one is not installed.
    """
    found: list[Subject] = []
    missing: dict[str, str] = {}
    for name in USUAL if plan.methods is None else plan.methods:
        tell(f"loading {name}")
        try:
            found.append(subject(name, plan, folder))
        except OngebdError as problem:
            if plan.methods is not None:
                raise
            missing[name] = str(problem)
    return found, missing


def subject(name: str, plan: BenchPlan, folder: Path) -> Subject:
    """Load one method.

    Raises:
        ConfigError: It is not available.
        MissingExtraError: A package is not installed.
    """
    if name in TRAINABLE and not Path(name).is_dir():
        own = folder / name
        own.mkdir(parents=True, exist_ok=True)
        plain, note = random_model(name, own, plan.threads), NOTE
    else:
        plain, note = load(name, threads=plan.threads), ""
    if plan.on_gpu:
        return Subject(name, plain, plain, note, 1)
    model = on_cpu_runtime(plain, plan.runtime, plan.computes_in, plan.threads)
    return Subject(name, plain, model, note, STEP if name == "transnetv2" else 1)
