"""What is to be composed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ongebd.errors import ConfigError, a_number, a_whole_number
from ongebd.lab.composites.kinds import BOUNDARY_KINDS, DISTRACTOR_KINDS, chosen_kinds
from ongebd.video.timing import exact_rate

Part = Literal["train", "val", "test", "all"]
"""A part of the clips, by which no clip is on two sides; "all" where they are not parted."""

Motion = Literal["any", "calm", "still"]

PARTS: tuple[Part, ...] = ("train", "val", "test")
DEFAULT_SHARES = (0.7, 0.15, 0.15)
_SIZES = (64, 1080)
_RATES = (8, 120)
_LONGEST = 600.0


@dataclass(frozen=True, kw_only=True)
class ComposeConfig:
    """What is composed. Every setting is checked; kinds may be given as one text with commas."""

    videos: int = 20
    """How many, over all parts."""
    minutes: float | None = None
    """Make as many videos as last so long together, instead of `videos`."""
    seed: int = 0
    """Of everything but the parting of the clips."""
    split: str = "0.7,0.15,0.15"
    """Three shares for training, validation and test; or one part alone, `train`, `val` or `test`; or `all`,
    which takes every clip for every video."""
    split_seed: int = 0
    """Of the parting. Apart from `seed`, so that other videos of the same parts can be made."""
    size: int = 256
    """Shorter side, pixels, even."""
    fps: float | Fraction = 24.0
    """Frames a second."""
    boundaries: str | Sequence[str] = "all"
    """Kinds; see `BOUNDARY_KINDS`. `natural` counts only where the clips have labels."""
    distractors: str | Sequence[str] = "all"
    """Kinds; see `DISTRACTOR_KINDS`."""
    seconds: tuple[float, float] = (8.0, 40.0)
    """Shortest and longest video."""
    motion: Motion | None = None
    """What is shown between boundaries: `any` stretch of a clip; only `calm` ones, in which the picture never
    changes much within a second; or `still` pictures. None: `calm` for videos without boundaries, `any` for
    the others."""
    crf: int = 20
    """Quality of the H.264 file, 0 (best) to 51."""

    def __post_init__(self) -> None:
        for name, least in (("videos", 1), ("seed", 0), ("split_seed", 0)):
            if a_whole_number(name, getattr(self, name)) < least:
                raise ConfigError(f"{name} must be {least} or more, not {getattr(self, name)}")
        if self.minutes is not None and not 0 < a_number("minutes", self.minutes) <= 6000:
            raise ConfigError(f"minutes must lie between 0 and 6000, not {self.minutes:g}")
        size = a_whole_number("size", self.size)
        if not _SIZES[0] <= size <= _SIZES[1] or size % 2:
            raise ConfigError(f"size must be an even number from {_SIZES[0]} to {_SIZES[1]}, not {size}")
        if not _RATES[0] <= self.rate <= _RATES[1]:
            raise ConfigError(f"fps must lie between {_RATES[0]} and {_RATES[1]}, not {float(self.fps):g}")
        if not 0 <= a_whole_number("crf", self.crf) <= 51:
            raise ConfigError(f"crf must lie between 0 and 51, not {self.crf}")
        shortest, longest = (a_number("seconds", value) for value in self.seconds)
        if not 3 <= shortest <= longest <= _LONGEST:
            raise ConfigError(
                f"seconds must be the shortest and the longest video, between 3 and {_LONGEST:g},"
                f" not {shortest:g} and {longest:g}"
            )
        if self.motion not in (None, "any", "calm", "still"):
            raise ConfigError(f"motion must be any, calm or still, not {self.motion!r}")
        object.__setattr__(self, "boundaries", chosen_kinds(self.boundaries, BOUNDARY_KINDS, "boundaries"))
        object.__setattr__(
            self, "distractors", chosen_kinds(self.distractors, DISTRACTOR_KINDS, "distractors")
        )
        if self.shown != "any" and self.boundary_kinds:
            raise ConfigError(f"motion {self.shown}: is for videos without boundaries; add boundaries none")
        if self.shown == "still" and "freeze" in self.distractor_kinds:
            raise ConfigError("motion still: a freeze cannot be seen in it; leave it out of the distractors")
        parts(self.split)

    @property
    def rate(self) -> Fraction:
        """Frames a second, exactly."""
        return exact_rate(self.fps)

    @property
    def boundary_kinds(self) -> tuple[str, ...]:
        """The kinds of boundary, checked."""
        return tuple(self.boundaries)

    @property
    def distractor_kinds(self) -> tuple[str, ...]:
        """The kinds of distractor, checked."""
        return tuple(self.distractors)

    @property
    def shown(self) -> Motion:
        """`motion`, decided."""
        return self.motion or ("any" if self.boundary_kinds else "calm")


def parts(split: str) -> tuple[dict[Part, float], tuple[Part, ...]]:
    """The shares of the parts, and the parts of which videos are made.

    >>> parts("val")
    ({'train': 0.7, 'val': 0.15, 'test': 0.15}, ('val',))
    >>> parts("0.8, 0, 0.2")
    ({'train': 0.8, 'test': 0.2}, ('train', 'test'))

    Raises:
        ConfigError: It is neither a part nor three shares that sum to 1.
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
    there: dict[Part, float] = {part: share for part, share in zip(PARTS, shares, strict=True) if share}
    return there, tuple(there)
