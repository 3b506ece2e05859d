"""Every method that can be named, and what is known of it without loading it or torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ongebd import backbones
from ongebd.baselines import pyscenedetect, transnet
from ongebd.baselines.methods import METHODS
from ongebd.baselines.naive import PERIOD, Clock, Persistence, WindowMean
from ongebd.baselines.pictures import Pictures
from ongebd.baselines.predictability import Predictability
from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import Scorer
from ongebd.detector.model import LEARNED, Recipe, learned_recipe
from ongebd.detector.trained import ESTIMATOR
from ongebd.errors import ConfigError
from ongebd.offline import flowgebd, predictability, systems
from ongebd.offline.whole_video import ScoreVideo, WholeVideo

TRAINABLE = (ESTIMATOR, *METHODS, *systems.TRAINED)
"""Methods that need the folder of a training: `miniroad:FOLDER`, or the folder alone."""
RESNET50 = 23_508_032
"""Parameters of a ResNet-50 without its classifier, which gives the features of the paper."""
ESTIMATOR_PARAMETERS = 23_115_776
"""Of our anticipator's default shape on those features; a test holds the network to it."""

# Chosen on 66 real clips rated by a model: see docs/methods.md. Δ and L are the paper's; its τ of 1.5
# belongs to a trained anticipator. The floor on the error keeps sensor noise and compression silent.
UNTRAINED = StreamConfig(
    fps=24.0, tau=2.5, delta=21, window=8, warmup=8, min_std=0.004, min_error=0.02, min_gap=0.5, max_run=1.0
)
# A method that decides by itself scores 1 or 0; no gap is needed between its boundaries.
_DECIDED = StreamConfig(fps=24.0, head="threshold", threshold=0.5, min_gap=0.0, max_run=1.0)


def _clock(_config: StreamConfig, argument: str | None, _device: str) -> Scorer:
    try:
        period = PERIOD if argument is None else float(argument)
    except ValueError:
        raise ConfigError(f"clock:{argument}: give seconds after the colon") from None
    return Clock(period)


def _untrained_system(name: str, score: ScoreVideo) -> Recipe:
    return Recipe(
        summary=systems.SYSTEMS[name].summary,
        defaults=replace(_DECIDED, max_run=10.0),
        method=lambda _config, _argument, _device: WholeVideo(name, score),
        offline=True,
    )


def _scenedetect(kind: str) -> Recipe:
    return Recipe(
        summary=f"PySceneDetect's {pyscenedetect.class_name(kind)}, with its own settings",
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
        method=lambda config, _argument, _device: WindowMean(config.window or 1),
    ),
    "persistence": Recipe(
        summary="untrained: the next feature is the last one",
        defaults=replace(UNTRAINED, window=None),
        method=lambda _config, _argument, _device: Persistence(),
    ),
    "predictability": Recipe(
        summary="untrained: the last L features against the next 5, as in the original GEBD paper",
        defaults=replace(UNTRAINED, tau=3.0),
        method=lambda config, _argument, _device: Predictability(before=config.window or 1),
        latency=Predictability().latency,
    ),
    "pa": _untrained_system("pa", predictability.score_video),
    "flowgebd": replace(
        _untrained_system("flowgebd", flowgebd.score_video),
        defaults=replace(_DECIDED, fps=flowgebd.FPS),
        pictures=Pictures(flowgebd.WIDTH, flowgebd.HEIGHT),
        extra="peers",
    ),
    "clock": Recipe(
        summary=f"blind: a boundary every {PERIOD:g} s, or every SECONDS",
        defaults=_DECIDED,
        method=_clock,
        pictures=Pictures(16, 16),  # it must see something
        argument="[SECONDS]",
    ),
    **{f"scenedetect-{kind}": _scenedetect(kind) for kind in pyscenedetect.LATENCY},
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


def catalogue() -> list[dict[str, Any]]:
    """The facts on all methods: those that need nothing, those that are trained, and the peers.

    Keys: `name`, what `ongebd.load` takes; `argument`, what follows it after a colon, in brackets if it may
    be left out; `summary`; `parameters`, learned numbers of the published shape on ResNet-50 features (2048
    numbers), without the backbone's; `parameters_with_resnet50`, None for a method that looks at pixels or
    at the features of one other backbone; `latency`, seconds of future that a verdict waits for at the
    default rate `fps`, None where it is offline and waits for the whole video; `latency_frames`; `offline`;
    `licence` of code and weights; `trained_on`, None if nothing is
    learned; `extra` to install, None for the light core.
    """
    trained = {
        ESTIMATOR: (ESTIMATOR_PARAMETERS, "the paper's: how wrong an anticipation of the next feature was"),
        **{name: (method.parameters, method.summary) for name, method in METHODS.items()},
    }
    recipes = RECIPES | {name: _trained(*about) for name, about in trained.items()}
    for name in systems.TRAINED:
        system = systems.SYSTEMS[name]
        made = replace(_trained(system.parameters, system.summary), offline=True)
        labels = "" if system.supervised else "; the labels only choose its threshold"
        recipes[name] = replace(made, trained_on=f"{made.trained_on}{labels}")
    found = [_facts(name, recipe) for name, recipe in recipes.items()]
    return sorted(found, key=lambda facts: (facts["extra"] or "", facts["name"]))


def _trained(parameters: int, summary: str) -> Recipe:
    return replace(
        RECIPES["window-mean"],  # for the backbone and the rate
        summary=summary,
        argument="FOLDER",
        parameters=parameters,
        licence="Apache-2.0; the weights are yours",
        trained_on="what you train it on: ongebd train",
        extra="train",
    )


def _facts(name: str, recipe: Recipe) -> dict[str, Any]:
    fps = float(recipe.defaults.rate())
    any_backbone = recipe.pictures is None and recipe.backbone_name == backbones.DEFAULT
    return {
        "name": name,
        "argument": recipe.argument,
        "summary": recipe.summary,
        "parameters": recipe.parameters,
        "parameters_with_resnet50": recipe.parameters + RESNET50 if any_backbone else None,
        "latency": None if recipe.offline else recipe.latency / fps,
        "latency_frames": None if recipe.offline else recipe.latency,
        "offline": recipe.offline,
        "fps": fps,
        "licence": recipe.licence,
        "trained_on": recipe.trained_on,
        "extra": recipe.extra,
    }
