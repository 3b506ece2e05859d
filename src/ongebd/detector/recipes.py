"""Every method that can be named, and what is known of it without loading it or torch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ongebd.baselines import pyscenedetect, transnet
from ongebd.baselines.clock import PERIOD, Clock
from ongebd.baselines.methods import METHODS
from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.baselines.pictures import Pictures
from ongebd.baselines.predictability import Predictability
from ongebd.detector.config import StreamConfig
from ongebd.detector.model import LEARNED, Recipe, learned_recipe
from ongebd.detector.scorers import Scorer
from ongebd.detector.trained import ESTIMATOR
from ongebd.errors import ConfigError

TRAINABLE = (ESTIMATOR, *METHODS)
"""Methods that need the folder of a training: `miniroad:FOLDER`, or the folder alone."""
RESNET50 = 23_508_032
"""Parameters of a ResNet-50 without its classifier, which gives the features of the paper."""
ESTIMATOR_PARAMETERS = 23_115_776
"""Of our anticipator's default shape on those features; a test holds the network to it."""

# Chosen on 66 real clips rated by a model: see docs/calibration.md. Δ and L are the paper's; its τ of 1.5
# belongs to a trained anticipator. The floor on the error keeps sensor noise and compression silent.
UNTRAINED = StreamConfig(
    fps=24.0, tau=2.5, delta=21, window=8, warmup=8, min_std=0.004, min_error=0.02, min_gap=0.5, max_run=1.0
)
# A method that decides by itself scores 1 or 0; no gap is needed between its boundaries.
_DECIDED = StreamConfig(fps=24.0, head="threshold", threshold=0.5, min_gap=0.0, max_run=1.0)


def _window(config: StreamConfig) -> int:
    return 1 if config.window is None else config.window


def _clock(_config: StreamConfig, argument: str | None, _device: str) -> Scorer:
    try:
        return Clock(PERIOD if argument is None else float(argument))
    except ValueError as problem:
        if isinstance(problem, ConfigError):
            raise
        raise ConfigError(f"clock:{argument}: give seconds behind the colon") from None


def _scenedetect(kind: str) -> Recipe:
    return Recipe(
        summary=f"PySceneDetect's {pyscenedetect.DETECTORS[kind]}, with its own settings",
        defaults=_DECIDED,
        method=lambda config, _argument, _device: pyscenedetect.PySceneDetect(kind, float(config.rate())),
        pictures=pyscenedetect.PICTURES,
        latency=pyscenedetect.LATENCY[kind],
        extra="peers",
        licence="BSD-3-Clause",
    )


RECIPES = {
    **{name: learned_recipe(name) for name in LEARNED},
    "window-mean": Recipe(
        summary="untrained: the next feature is the mean of the last L",
        defaults=UNTRAINED,
        method=lambda config, _argument, _device: WindowMean(_window(config)),
    ),
    "persistence": Recipe(
        summary="untrained: the next feature is the last one",
        defaults=replace(UNTRAINED, window=None),
        method=lambda _config, _argument, _device: Persistence(),
    ),
    "predictability": Recipe(
        summary="untrained: the last L features against the next 5, as in the original GEBD paper",
        defaults=replace(UNTRAINED, tau=3.0),
        method=lambda config, _argument, _device: Predictability(before=_window(config)),
        latency=Predictability().latency,
    ),
    "clock": Recipe(
        summary=f"blind: a boundary every {PERIOD:g} s, or as many as are given",
        defaults=_DECIDED,
        method=_clock,
        pictures=Pictures(16, 16),  # it must see something
        argument="SECONDS",
    ),
    **{f"scenedetect-{kind}": _scenedetect(kind) for kind in pyscenedetect.DETECTORS},
    "transnetv2": Recipe(
        summary="TransNetV2, a trained shot detector",
        defaults=replace(_DECIDED, fps=25.0),
        method=lambda _config, _argument, device: transnet.TransNetV2(device),
        pictures=transnet.PICTURES,
        latency=transnet.TransNetV2.latency,
        on_gpu=True,
        parameters=transnet.PARAMETERS,
        extra="peers",
        licence="MIT",
        trained_on="ClipShots and synthetic transitions, by its authors",
    ),
}
"""By name."""


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """One method.

    Attributes:
        name: What `ongebd.load` and `--model` take, with `:argument` behind it where there is one.
        argument: What stands behind the colon; in brackets where it may be left out.
        summary: One line for people.
        parameters: Numbers that are learned, of the published shape on ResNet-50 features (2048 numbers),
            without the backbone's.
        parameters_with_resnet50: With the backbone's; None for a method that looks at pixels, or at the
            features of one other backbone.
        latency: Seconds of future that a verdict waits for, at the default rate.
        latency_frames: The same in frames.
        fps: The default rate, frames a second.
        licence: Of code and weights.
        trained_on: Where its weights come from; None where nothing is learned.
        extra: What must be installed besides the light core; None for nothing.
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
    trained = {
        ESTIMATOR: (ESTIMATOR_PARAMETERS, "the paper's: how wrong an anticipation of the next feature was"),
        **{name: (method.parameters, method.summary) for name, method in METHODS.items()},
    }
    found = [
        _facts(name, recipe, recipe.argument and f"[{recipe.argument}]") for name, recipe in RECIPES.items()
    ]
    found += [_facts(name, _trained(*about), "FOLDER") for name, about in trained.items()]
    return sorted(found, key=lambda facts: (facts.extra or "", facts.name))


def _trained(parameters: int, summary: str) -> Recipe:
    return replace(
        RECIPES["window-mean"],  # for the backbone and the rate
        summary=summary,
        parameters=parameters,
        licence="Apache-2.0; the weights are yours",
        trained_on="what you train it on: ongebd train",
        extra="train",
    )


def _facts(name: str, recipe: Recipe, argument: str | None) -> MethodFacts:
    fps = float(recipe.defaults.rate())
    return MethodFacts(
        name=name,
        argument=argument,
        summary=recipe.summary,
        parameters=recipe.parameters,
        parameters_with_resnet50=recipe.parameters + RESNET50 if recipe.takes_any_backbone else None,
        latency=recipe.latency / fps,
        latency_frames=recipe.latency,
        fps=fps,
        licence=recipe.licence,
        trained_on=recipe.trained_on,
        extra=recipe.extra,
    )
