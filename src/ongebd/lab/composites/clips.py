"""Source clips as the planner sees them: when their frames are shown, their small pictures, their shots."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ongebd.data.files import FloatArray
from ongebd.lab.composites.pictures import LumaU8


@dataclass(frozen=True, slots=True)
class Shot:
    """A stretch of a clip without a cut, seconds; it ends when its last frame is no longer shown."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """One source clip; n is the number of frames that were read.

    Attributes:
        name: Its path below the given folder, with slashes; the split goes by this name.
        path: The file.
        width: Pixels of an upright frame.
        height: Pixels of an upright frame.
        times: When each frame is shown, seconds from the first, (n,).
        pts: Timestamps that identify the frames, (n,); None where they don't.
        luma: Small pictures, (n, 32, 32).
        motion: See `motion_of`, (n,).
        steps: See `steps_of`, (n − 1,).
        shots: Where pieces may be taken from.
        calm: The same, only stretches in which the picture never changes much within a second.
        natural: Labelled boundaries within the shots, seconds.
        group: Clips of one group show the same setting, and stay in one part of a split.
        sha256: Fingerprint of the file.
    """

    name: str
    path: Path
    width: int
    height: int
    times: FloatArray
    pts: npt.NDArray[np.int64] | None
    luma: LumaU8
    motion: FloatArray
    steps: FloatArray
    shots: tuple[Shot, ...]
    calm: tuple[Shot, ...]
    natural: FloatArray
    group: str
    sha256: str

    def at(self, seconds: float) -> int:
        """The frame that is shown at a time; one that begins within a hundredth of a second counts."""
        return max(0, int(np.searchsorted(self.times, seconds + 0.01, side="right")) - 1)

    def picture(self, seconds: float) -> LumaU8:
        """The small picture that is shown at a time, (32, 32)."""
        picture: LumaU8 = self.luma[self.at(seconds)]
        return picture

    def motion_between(self, start: float, end: float) -> FloatArray:
        """Motion of the frames from one time to another, in either order; at least one."""
        low, high = sorted((start, end))
        return self.motion[self.at(low) : self.at(high) + 1]

    def step_at(self, seconds: float) -> float:
        """The usual change from a frame to the next around a time."""
        here = self.at(seconds)
        near = self.steps[max(0, here - 3) : here + 3]
        return float(np.median(near)) if len(near) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ClipLibrary:
    """All clips of a folder.

    Attributes:
        clips: By name, in the order of the names.
        warnings: What couldn't be used, and why, one line each.
        labelled: Whether labels of the sources were given.
    """

    clips: dict[str, Clip]
    warnings: tuple[str, ...] = ()
    labelled: bool = False

    def groups(self) -> dict[str, list[Clip]]:
        """The clips of each setting, by the name of the first."""
        by_group: dict[str, list[Clip]] = {}
        for clip in self.clips.values():
            by_group.setdefault(clip.group, []).append(clip)
        return by_group
