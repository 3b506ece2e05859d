"""The methods that need no training of ours, each with its settings and how it is put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.baselines import pyscenedetect, transnet
from ongebd.baselines.clock import PERIOD, Clock
from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.baselines.pictures import Pictures
from ongebd.baselines.predictability import Predictability
from ongebd.detector.config import StreamConfig
from ongebd.detector.heads import HYSTERESIS
from ongebd.detector.scorers import Scorer
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator
from ongebd.estimator.learned import LearnedScorer, learned_facts, learned_model

# Chosen on 66 real clips rated by a model: see docs/methods.md. Δ and L are the paper's; its τ of 1.5
# belongs to a trained anticipator. The floor on the error keeps sensor noise and compression silent.
UNTRAINED = StreamConfig(
    fps=24.0, tau=2.5, delta=21, window=8, warmup=8, min_std=0.004, min_error=0.02, min_gap=0.5, max_run=1.0
)
# A method that decides by itself says 1 or 0, and nothing is joined or passed over.
_DECIDED = replace(UNTRAINED, head="threshold", threshold=0.5, min_gap=0.0)

OWN = "Apache-2.0"
USUAL = 0.5
"""The sensitivity of every method that has one, unless another is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a named method is put together, and what is to be known of it.

    Attributes:
        summary: One line for people.
        defaults: Its settings, every one that it needs filled in.
        method: Makes what runs in one stream, from its settings, from what stands behind the colon of
            `name:argument` (None where nothing does), and the device.
        pictures: What it looks at, where that is not the features of a backbone.
        backbone_name: The backbone otherwise.
        threshold: From a sensitivity to the threshold of its head, where it has such a table.
        latency: Frames of future that it waits for.
        argument: What may stand behind the colon; None where nothing may.
        device: Whether it can compute elsewhere than on the CPU.
        parameters: Numbers that are learned, the backbone's not among them.
        extra: The extra that brings it; None for those of the light core.
        licence: Of its code and weights.
        trained_on: Where its weights come from.
    """

    summary: str
    defaults: StreamConfig
    method: Callable[[StreamConfig, str | None, str | None], Anticipator | Scorer]
    pictures: Pictures | None = None
    backbone_name: str = backbones.DEFAULT
    threshold: Callable[[float], float] | None = None
    latency: int = 0
    argument: str | None = None
    device: bool = False
    parameters: int = 0
    extra: str | None = None
    licence: str = OWN
    trained_on: str | None = None

    @property
    def takes_any_backbone(self) -> bool:
        """Whether it works on the features of any backbone."""
        return self.pictures is None and self.backbone_name == backbones.DEFAULT

    def backbone(self, threads: int) -> Backbone:
        """What it sees pictures through."""
        return self.pictures or backbones.get(self.backbone_name, threads=threads)


def _window(config: StreamConfig) -> int:
    return 1 if config.window is None else config.window


def _clock(_config: StreamConfig, argument: str | None, _device: str | None) -> Scorer:
    try:
        period = PERIOD if argument is None else float(argument)
    except ValueError:
        raise ConfigError(f"clock:{argument}: seconds are wanted behind the colon") from None
    return Clock(period)


def _scenedetect(kind: str) -> Recipe:
    def method(config: StreamConfig, _argument: str | None, _device: str | None) -> Scorer:
        return pyscenedetect.PySceneDetect(kind, float(config.rate()))

    return Recipe(
        summary=f"PySceneDetect's {pyscenedetect.DETECTORS[kind]}, with its own settings",
        defaults=_DECIDED,
        method=method,
        pictures=pyscenedetect.PICTURES,
        latency=pyscenedetect.LATENCY[kind],
        extra="peers",
        licence="BSD-3-Clause",
    )


def _learned(name: str, summary: str) -> Recipe:
    """One of our own learned methods, whose weights are in the package."""
    facts = learned_facts(name)
    defaults = StreamConfig(
        fps=facts.fps,
        sensitivity=USUAL,
        head=HYSTERESIS,
        threshold=facts.threshold(USUAL),
        min_gap=facts.min_gap,
        max_run=facts.max_run,
        rearm=facts.rearm,
    )

    def method(_config: StreamConfig, _argument: str | None, _device: str | None) -> Scorer:
        return LearnedScorer(learned_model(name), backbones.get(facts.backbone).dim)

    return Recipe(
        summary=summary,
        defaults=defaults,
        method=method,
        backbone_name=facts.backbone,
        threshold=facts.threshold,
        latency=facts.latency,
        parameters=facts.parameters,
        licence=facts.licence,
        trained_on=facts.trained_on,
    )


RECIPES = {
    "immediate": _learned("immediate", "learned, on errors of many horizons and motion; looks nothing ahead"),
    "half-second": _learned("half-second", "the same with half a second looked ahead"),
    "window-mean": Recipe(
        summary="untrained: the next feature is the mean of the last L",
        defaults=UNTRAINED,
        method=lambda config, _argument, _device: WindowMean(_window(config)),
    ),
    "persistence": Recipe(
        summary="untrained: the next feature is the last one",
        defaults=UNTRAINED,
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
        method=lambda _config, _argument, device: transnet.TransNetV2(device or "cpu"),
        pictures=transnet.PICTURES,
        latency=transnet.TransNetV2.latency,
        device=True,
        parameters=transnet.PARAMETERS,
        extra="peers",
        licence="MIT",
        trained_on="ClipShots and synthetic transitions, by its authors",
    ),
}
"""By name."""
