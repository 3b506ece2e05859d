"""What to compose: the kinds of boundary and distractor, and all settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError
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
    """What is composed; also the options of `ongebd compose`."""

    videos: Annotated[int, Range(least=1)] = 20
    """Number of videos, over all parts of the split."""

    minutes: Annotated[float, Range(above=0, most=6000)] | None = None
    """Total length of the videos, instead of --videos."""

    seed: Annotated[int, Range(least=0)] = 0
    """Seed of everything except the split."""

    split: str = "0.7,0.15,0.15"
    """Three shares for training, validation and test; or one of train, val, test, all."""

    split_seed: Annotated[int, Range(least=0)] = 0
    """Seed of the split, so that --seed gives other videos of the same parts."""

    boundaries: str = "all"
    """Comma-separated kinds, all, or none."""

    distractors: str = "all"
    """Comma-separated kinds, all, or none."""

    seconds: str = "8,40"
    """The shortest and the longest video."""

    motion: Motion | None = None
    """What to show between boundaries. calm and still need --boundaries none; then calm is the default."""

    size: Annotated[int, Range(least=64, most=1080)] = 256
    """Shorter side, pixels, even."""

    fps: Annotated[float, Range(least=8, most=120)] = 24.0
    """Frames per second."""

    crf: Annotated[int, Range(least=0, most=51)] = 20
    """Quality of the H.264 files, 0 (best) to 51."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.size % 2:
            raise ConfigError(f"size must be an even number, not {self.size}")
        boundaries, distractors = self.boundary_kinds, self.distractor_kinds
        if boundaries and self.shown != "any":
            raise ConfigError(f"motion {self.shown} is for videos without boundaries; set boundaries to none")
        if self.shown == "still" and "freeze" in distractors:
            raise ConfigError("motion still hides a freeze; remove freeze from the distractors")
        parts(self.split)
        shortest, longest = self.length
        if not 3 <= shortest <= longest <= _LONGEST:
            raise ConfigError(
                f"seconds must be the shortest and the longest video, such as 8,40, between 3 and"
                f" {_LONGEST:g}, not {self.seconds}"
            )

    @property
    def boundary_kinds(self) -> tuple[str, ...]:
        """Some of `BOUNDARY_KINDS`, in their order."""
        return _kinds("boundaries", self.boundaries, BOUNDARY_KINDS)

    @property
    def distractor_kinds(self) -> tuple[str, ...]:
        """Some of `DISTRACTOR_KINDS`, in their order."""
        return _kinds("distractors", self.distractors, DISTRACTOR_KINDS)

    @property
    def length(self) -> tuple[float, ...]:
        """Seconds of the shortest and of the longest video."""
        return _numbers(self.seconds, 2)

    @property
    def rate(self) -> Fraction:
        """Frames a second, exactly."""
        return exact_rate(self.fps)

    @property
    def shown(self) -> Motion:
        """`motion`, or what None means."""
        return self.motion or ("any" if self.boundary_kinds else "calm")


def _kinds(what: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    if names == ["all"]:
        return tuple(known)
    if names == ["none"]:
        return ()
    for name in names:
        if name not in known:
            raise ConfigError(f"{what}: unknown kind {name!r}; choose from {', '.join(known)}, all or none")
    return tuple(name for name in known if name in names)


def _numbers(text: str, count: int) -> tuple[float, ...]:
    """So many numbers, separated by commas; zeros if the text is anything else."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    return numbers if len(numbers) == count else (0.0,) * count


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
    if name in PARTS:
        return dict(zip(PARTS, DEFAULT_SHARES, strict=True)), (name,)
    shares = _numbers(name, 3)
    if not all(0 <= share <= 1 for share in shares) or not math.isclose(sum(shares), 1):
        raise ConfigError(
            f"split must be train, val, test, all, or three shares that sum to 1 as in 0.7,0.15,0.15,"
            f" not {split!r}"
        )
    used: dict[Part, float] = {part: share for part, share in zip(PARTS, shares, strict=True) if share}
    return used, tuple(used)
