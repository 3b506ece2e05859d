"""A model: a backbone, a method and settings. And the recipes of models that can be named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.detector.config import HEAD_SETTINGS, KNOBS, StreamConfig, asked_for, scaled_tau
from ongebd.detector.detector import OnlineDetector, Scorer
from ongebd.detector.judge import OBD
from ongebd.errors import ConfigError
from ongebd.estimator.anticipation import Anticipator, ErrorFunction, cosine_error
from ongebd.estimator.learned import LearnedScorer, learned_facts, learned_model

Method = Callable[[StreamConfig], Anticipator | Scorer]
"""Makes what runs in one stream, from the stream's settings."""
LEVELS = (0.5, 0.9)
"""Sensitivities at whose thresholds runs begin."""


@dataclass(frozen=True, slots=True, repr=False)
class Model:
    """A named model: a frozen backbone, a method, and settings. It keeps no state; share it freely.

    Pickling keeps how it was loaded, not the weights.

    Attributes:
        name: Of the model.
        summary: One line for people.
        backbone: Turns pictures into features.
        defaults: The settings; None stands for those that the model doesn't use.
        method: Makes a stream's anticipator or scorer.
        error: The error of an anticipator.
        threshold_at: From a sensitivity to the threshold of the head, if there is such a table.
        one_rate: Whether it works only at the fps of its defaults, that of its training.
        offline: Whether it needs the whole video before it decides, so that it can't work on streams.
    """

    name: str
    summary: str
    backbone: Backbone
    defaults: StreamConfig
    method: Method
    error: ErrorFunction = cosine_error
    threshold_at: Callable[[float], float] | None = None
    one_rate: bool = False
    offline: bool = False
    _loading: Callable[[], Model] | None = field(default=None, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<model {self.name}: {self.summary}>"

    def loaded_by(self, loading: Callable[[], Model]) -> Self:
        """The model itself, which can now be pickled, as a call of `loading`."""
        object.__setattr__(self, "_loading", loading)
        return self

    def __reduce__(self) -> tuple[Callable[[], Model], tuple[()]]:
        if self._loading is None:
            raise ConfigError(f"{self.name}: only a model from ongebd.load(…) can be pickled")
        return self._loading, ()

    def settings(self, head: str | None = None) -> list[str]:
        """The names of the settings that a stream uses, with a head or with the model's own."""
        used = {"fps", "min_gap", "max_run", "head", *HEAD_SETTINGS[head or self.defaults.head_name]}
        if self.defaults.window is not None:
            used.add("window")
        if ("tau" in used and self.defaults.tau is not None) or ("threshold" in used and self.threshold_at):
            used.add("sensitivity")
        return [f.name for f in fields(StreamConfig) if f.name in used]

    def configured(self, config: StreamConfig | None = None, **settings: Any) -> StreamConfig:
        """The settings of a stream: `config` changed by `settings`, the model's own where it has None.

        A sensitivity becomes the τ or the threshold that it stands for.

        Raises:
            ConfigError: A setting is unknown, out of range or not used by this model.
        """
        asked = asked_for(config, settings)
        filled = asked.filled(self.defaults)
        if asked.sensitivity is not None:
            filled = self._at_sensitivity(filled, asked.sensitivity)
        used = self.settings(filled.head_name)
        for setting in fields(StreamConfig):
            value = getattr(asked, setting.name)
            if setting.name in used or value is None or value == getattr(self.defaults, setting.name):
                continue
            others = ", ".join(HEAD_SETTINGS[filled.head_name])
            raise ConfigError(
                f"{self.name} doesn't use {setting.name}; its head, {filled.head_name}, uses {others}"
            )
        filled.check_complete()
        if self.one_rate and filled.rate() != self.defaults.rate():
            raise ConfigError(
                f"{self.name} was trained at {self.defaults.fps:g} frames a second, not {filled.fps:g}:"
                f" leave fps out, or train another model on features at {filled.fps:g}"
            )
        return filled

    def _at_sensitivity(self, filled: StreamConfig, sensitivity: float) -> StreamConfig:
        """The settings with the τ or the threshold that a sensitivity stands for."""
        if filled.head_name == OBD and self.defaults.tau is not None:
            knob, value = "tau", scaled_tau(self.defaults.tau, sensitivity)
        elif filled.head_name != OBD and self.threshold_at is not None:
            knob, value = "threshold", self.threshold_at(sensitivity)
        else:
            own = filled.head == self.defaults.head
            which = self.name if own else f"{self.name} with the head {filled.head_name}"
            raise ConfigError(f"{which} has no sensitivity; leave it out or choose another model")
        for setting in ("tau", "threshold"):
            if getattr(filled, setting) not in (None, value if setting == knob else None):
                raise ConfigError(f"sensitivity replaces {setting}: set only one of them")
        return asked_for(filled, {knob: value})

    def stream(self, config: StreamConfig | None = None, **settings: Any) -> OnlineDetector:
        """Begin a stream.

        Args:
            config: Settings; what is None takes the model's own value.
            **settings: Single settings by name, as in `StreamConfig` (fps, sensitivity, tau, …).

        Raises:
            ConfigError: A setting is unknown, out of range or not used by this model.

        >>> import numpy as np, ongebd
        >>> detector = ongebd.load("immediate").stream(sensitivity=0.7)
        >>> picture = np.zeros((120, 160, 3), np.uint8)
        >>> detector.update(picture, time=0.0).is_boundary
        False
        """
        self.check_online()
        return self.begin(self.configured(config, **settings))

    def check_online(self) -> None:
        """Raise ConfigError if it takes no stream."""
        if self.offline:
            raise ConfigError(
                f"{self.name} is offline: it needs the whole video, so it can't work on a stream; run `ongebd"
                " detect` on a file, or choose an online method (ongebd models)"
            )

    def retuned(self, config: StreamConfig, knobs: dict[str, Any]) -> StreamConfig:
        """The settings of a running stream with another sensitivity, τ or threshold.

        Raises:
            ConfigError: Other settings are to be changed, or nothing is.
        """
        if all(value is None for value in knobs.values()):
            raise ConfigError(f"give at least one of {', '.join(KNOBS)}")
        changed = self.configured(asked_for(config, dict.fromkeys(KNOBS) | knobs))
        config.check_retuning(changed)
        return changed

    def begin(self, filled: StreamConfig) -> OnlineDetector:
        """Begin a stream with settings that `configured` gave."""
        rate = self.defaults.rate()
        return OnlineDetector(
            self.backbone, self.method(filled), filled, self.error, rate, levels=self.levels
        )

    def levels(self, filled: StreamConfig) -> Sequence[float]:
        """The thresholds at which a stream's runs begin: see `BoundaryRuns`.

        They are the same at every sensitivity, so that a higher one tells what a lower one tells. A τ or
        threshold that was set by hand is the only level.
        """
        tau, of = self.defaults.tau, self.threshold_at
        if filled.head_name == OBD:
            known = [] if tau is None else [scaled_tau(tau, sensitivity) for sensitivity in LEVELS]
        else:
            known = [] if of is None else [of(sensitivity) for sensitivity in LEVELS]
        by_hand = filled.sensitivity is None and filled.knob not in known[:1]
        return [filled.knob] if by_hand else known


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a named model is made, and what is known of it without loading anything.

    Attributes:
        summary: One line for people.
        defaults: Its settings.
        method: Makes what runs in one stream, from its settings, what stands behind the colon of
            `name:argument` (None where nothing does), and a torch device.
        pictures: What it looks at, where that is not the features of a backbone.
        backbone_name: The backbone otherwise.
        threshold_at: See `Model`.
        latency: Frames of future that it waits for.
        offline: See `Model`.
        argument: What may stand behind the colon; None where nothing may.
        on_gpu: Whether it can compute on a GPU.
        parameters: Numbers that are learned, without the backbone's.
        extra: The extra that brings it; None for those of the light core.
        licence: Of its code and weights.
        trained_on: Where its weights come from.
    """

    summary: str
    defaults: StreamConfig
    method: Callable[[StreamConfig, str | None, str], Anticipator | Scorer]
    pictures: Backbone | None = None
    backbone_name: str = backbones.DEFAULT
    threshold_at: Callable[[float], float] | None = None
    latency: int = 0
    offline: bool = False
    argument: str | None = None
    on_gpu: bool = False
    parameters: int = 0
    extra: str | None = None
    licence: str = "Apache-2.0"
    trained_on: str | None = None


LEARNED = {"immediate": "learned, on errors of many horizons and motion; no look-ahead"}
"""The learned models by name, with their summaries. Their weights are in the package."""


def learned_recipe(name: str) -> Recipe:
    """The recipe of one of `LEARNED`."""
    facts = learned_facts(name)
    sensitivity = 0.5
    return Recipe(
        summary=LEARNED[name],
        defaults=StreamConfig(
            fps=facts.fps,
            sensitivity=sensitivity,
            head="hysteresis",
            threshold=facts.threshold(sensitivity),
            **facts.settings,
        ),
        method=lambda _config, _argument, _device: LearnedScorer(
            learned_model(name), backbones.get(facts.backbone).dim
        ),
        backbone_name=facts.backbone,
        threshold_at=facts.threshold,
        parameters=facts.parameters,
        licence=facts.licence,
        trained_on=facts.trained_on,
    )
