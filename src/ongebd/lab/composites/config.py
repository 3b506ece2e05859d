"""What to compose: the kinds of boundary and distractor, and all settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError, a_number
from ongebd.video.timing import exact_rate

BOUNDARY_KINDS = (
    *("cut", "jump", "action", "dissolve", "fade", "speed", "reverse", "framing", "stop", "start"),
    "natural",
)
"""See docs/composites.md. `natural` occurs only if labels of the sources are given."""

DISTRACTOR_KINDS = ("shake", "pan", "exposure", "flash", "noise", "compression", "freeze", "overlay", "zoom")
"""What may happen without being an event; it gets no label."""

SMOOTH = frozenset({"dissolve", "fade"})
"""Boundaries that take time: the label is the centre."""

MOTIONS = frozenset({"speed", "reverse", "stop", "start"})
"""Boundaries at which the picture stays and its motion changes."""

CAMERA = frozenset({"shake", "pan", "zoom"})
"""Distractors that move the camera."""

Part = Literal["train", "val", "test", "all"]
"""A part of the clips, so that no clip is in two parts; "all" where they aren't split."""

Motion = Literal["any", "calm", "still"]

PARTS: tuple[Part, ...] = ("train", "val", "test")
DEFAULT_SHARES = (0.7, 0.15, 0.15)
_LONGEST = 600.0


@dataclass(frozen=True, kw_only=True)
class ComposeConfig:
    """What is composed. Kinds may be one text with commas; afterwards they are a tuple."""

    videos: Annotated[int, Range(least=1)] = 20
    """How many, over all parts."""
    minutes: Annotated[float, Range(above=0, most=6000)] | None = None
    """Make videos until their total length is this, instead of `videos`."""
    seed: Annotated[int, Range(least=0)] = 0
    """Random seed of everything but the split of the clips."""
    split: str = "0.7,0.15,0.15"
    """Three shares for training, validation and test; or one part, `train`, `val` or `test`; or `all`, which
    uses every clip for every video."""
    split_seed: Annotated[int, Range(least=0)] = 0
    """Random seed of the split, so that `seed` gives other videos of the same parts."""
    size: Annotated[int, Range(least=64, most=1080)] = 256
    """Shorter side, pixels, even."""
    fps: float | Fraction = 24.0
    """Frames a second."""
    boundaries: str | Sequence[str] = "all"
    """Some of `BOUNDARY_KINDS`, `all` or `none`."""
    distractors: str | Sequence[str] = "all"
    """Some of `DISTRACTOR_KINDS`, `all` or `none`."""
    seconds: tuple[float, float] = (8.0, 40.0)
    """Shortest and longest video."""
    motion: Motion | None = None
    """What is shown between boundaries: `any` stretch of a clip; only `calm` ones, in which the picture never
    changes much within a second; or `still` pictures. None: `calm` for videos without boundaries, otherwise
    `any`."""
    crf: Annotated[int, Range(least=0, most=51)] = 20
    """Quality of the H.264 file, 0 (best) to 51."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.size % 2:
            raise ConfigError(f"size must be an even number, not {self.size}")
        if not 8 <= self.rate <= 120:
            raise ConfigError(f"fps must be at least 8 and at most 120, not {float(self.fps):g}")
        shortest, longest = (a_number("seconds", value) for value in self.seconds)
        if not 3 <= shortest <= longest <= _LONGEST:
            raise ConfigError(
                f"seconds must be the shortest and the longest video, between 3 and {_LONGEST:g},"
                f" not {shortest:g} and {longest:g}"
            )
        object.__setattr__(self, "boundaries", _kinds("boundaries", self.boundaries, BOUNDARY_KINDS))
        object.__setattr__(self, "distractors", _kinds("distractors", self.distractors, DISTRACTOR_KINDS))
        if self.shown != "any" and self.boundaries:
            raise ConfigError(f"motion {self.shown} is for videos without boundaries; set boundaries to none")
        if self.shown == "still" and "freeze" in self.distractors:
            raise ConfigError("motion still hides a freeze; remove freeze from the distractors")
        parts(self.split)

    @property
    def rate(self) -> Fraction:
        """Frames a second, exactly."""
        return exact_rate(self.fps)

    @property
    def shown(self) -> Motion:
        """`motion`, or what None means."""
        return self.motion or ("any" if self.boundaries else "calm")


def _kinds(what: str, given: str | Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The kinds that a text or a sequence names, in the order in which they are known."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if names == ["all"]:
        return tuple(known)
    if names == ["none"]:
        return ()
    for name in names:
        if name not in known:
            raise ConfigError(f"{what}: unknown kind {name!r}; choose from {', '.join(known)}, all or none")
    return tuple(name for name in known if name in names)


def parts(split: str) -> tuple[dict[Part, float], tuple[Part, ...]]:
    """The shares of the parts, and the parts of which videos are made.

    >>> parts("val")
    ({'train': 0.7, 'val': 0.15, 'test': 0.15}, ('val',))
    >>> parts("0.8, 0, 0.2")
    ({'train': 0.8, 'test': 0.2}, ('train', 'test'))
    """
    name = split.strip()
    if name == "all":
        return {"all": 1.0}, ("all",)
    for part in PARTS:
        if name == part:
            return dict(zip(PARTS, DEFAULT_SHARES, strict=True)), (part,)
    try:
        shares = [float(text) for text in name.split(",")]
    except ValueError:
        shares = []
    if len(shares) != 3 or not all(0 <= share <= 1 for share in shares) or not math.isclose(sum(shares), 1):
        raise ConfigError(
            f"split must be train, val, test, all, or three shares that sum to 1 as in 0.7,0.15,0.15,"
            f" not {split!r}"
        )
    used: dict[Part, float] = {part: share for part, share in zip(PARTS, shares, strict=True) if share}
    return used, tuple(used)
