"""What is to be known of each method that can be named, without torch and without loading anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ongebd.baselines.methods import METHODS
from ongebd.detector.recipes import OWN, RECIPES, Recipe
from ongebd.detector.trained import ESTIMATOR

RESNET50 = 23_508_032
"""Parameters of a ResNet-50 without its classifier, which gives the features of the paper."""
ESTIMATOR_PARAMETERS = 23_115_776
"""Of our anticipator's default shape on those features; a test holds the network to it."""


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """One method.

    Attributes:
        name: What `ongebd.load` and `--model` take, with `:argument` behind it where there is one.
        argument: FOLDER, that of a training; in brackets where it may be left out.
        summary: One line for people.
        parameters: Numbers that are learned, of the published shape on ResNet-50 features (2048 numbers); the
            backbone's not among them.
        parameters_with_resnet50: The backbone's included; None for a method that looks at
            pixels, or at the features of one other backbone.
        latency: Seconds of future that a verdict waits for, at the default rate.
        latency_frames: The same in frames.
        fps: The default rate, frames a second.
        licence: Of code and weights.
        trained_on: Where its weights come from; None where nothing is learned.
        extra: What must be installed beside the light core; None for nothing.
    """

    name: str
    argument: str | None
    summary: str
    parameters: int
    parameters_with_resnet50: int | None
    latency: float
    latency_frames: int
    fps: float
    licence: str
    trained_on: str | None
    extra: str | None


def catalogue() -> list[MethodFacts]:
    """All methods: those that need nothing, those that are trained, and the peers."""
    return sorted((*_named(), *_trainable()), key=lambda facts: (facts.extra or "", facts.name))


def _named() -> Iterator[MethodFacts]:
    for name, recipe in RECIPES.items():
        fps = _fps(recipe)
        yield MethodFacts(
            name,
            None if recipe.argument is None else f"[{recipe.argument}]",
            recipe.summary,
            recipe.parameters,
            recipe.parameters + RESNET50 if recipe.takes_any_backbone else None,
            recipe.latency / fps,
            recipe.latency,
            fps,
            recipe.licence,
            recipe.trained_on,
            recipe.extra,
        )


def _trainable() -> Iterator[MethodFacts]:
    counts = {name: (method.parameters, method.summary) for name, method in METHODS.items()}
    own = (
        ESTIMATOR_PARAMETERS,
        "the paper's: how wrong an anticipation of the next feature was",
    )
    for name, (parameters, summary) in {ESTIMATOR: own, **counts}.items():
        yield MethodFacts(
            name,
            "FOLDER",
            summary,
            parameters,
            parameters + RESNET50,
            0.0,
            0,
            24.0,
            f"{OWN}; the weights are yours",
            "what you train it on: ongebd train",
            "train",
        )


def _fps(recipe: Recipe) -> float:
    return float(recipe.defaults.rate())
