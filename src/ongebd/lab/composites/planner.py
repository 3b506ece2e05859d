"""Plans videos from clips, on small pictures alone: quick, and decided by the clips and the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from ongebd.errors import ConfigError
from ongebd.lab.composites.clips import Clip, ClipLibrary, Shot
from ongebd.lab.composites.config import ComposeConfig, Part, parts
from ongebd.lab.composites.disturb import margin_of, placed
from ongebd.lab.composites.grouping import parted
from ongebd.lab.composites.kinds import SMOOTH
from ongebd.lab.composites.plan import Join, Segment, VideoPlan
from ongebd.lab.composites.proposals import SHORTEST, STILL, Piece, Proposer, can

_LONGEST_PIECE = 6.0
_TRANSITION = (0.3, 2.0)
_TRIES = 12
_ATTEMPTS = 40
_WIDEST = 16 / 9


@dataclass
class _Counts:
    """How often each kind was planned so far in a part: rare ones are wanted more."""

    boundaries: Counter[str] = field(default_factory=Counter)
    distractors: Counter[str] = field(default_factory=Counter)


def plan_videos(library: ClipLibrary, config: ComposeConfig) -> list[VideoPlan]:
    """The plans of all videos.

    The first n of them do not depend on how many follow, within a part.

    Raises:
        ConfigError: The clips are too few or too short for what is asked; the message says what to change.
    """
    if "natural" not in config.boundary_kinds and any(len(clip.natural) for clip in library.clips.values()):
        raise ConfigError(
            "labelled boundaries were kept, but natural is none of the kinds: read the clips anew"
        )
    shares, wanted = parts(config.split)
    clips_of = parted(library, shares, config.split_seed)
    plans: list[VideoPlan] = []
    total = sum(shares[part] for part in wanted)
    ahead, done = 0.0, 0
    for part in wanted:
        ahead += shares[part] / total
        count = round(config.videos * ahead) - done
        done += count
        seconds = None if config.minutes is None else 60 * config.minutes * shares[part] / total
        plans += _of_part(clips_of[part], config, part, count, seconds, labelled=library.labelled)
    return plans


def _of_part(
    clips: Sequence[Clip],
    config: ComposeConfig,
    part: Part,
    count: int,
    seconds: float | None,
    *,
    labelled: bool,
) -> list[VideoPlan]:
    """So many videos, or as many as last so long."""
    counts = _Counts()
    plans: list[VideoPlan] = []
    length = 0.0
    while len(plans) < count if seconds is None else length < seconds:
        plans.append(_planned(clips, config, part, len(plans), counts, labelled=labelled))
        length += plans[-1].duration
    return plans


def _planned(
    clips: Sequence[Clip],
    config: ComposeConfig,
    part: Part,
    number: int,
    counts: _Counts,
    *,
    labelled: bool,
) -> VideoPlan:
    kinds = [kind for kind in config.boundary_kinds if kind != "natural"]
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng(
            (config.seed, ("all", "train", "val", "test").index(part), number, attempt)
        )
        draft = _Draft(clips, config, rng, counts, kinds)
        if draft.compose() and draft.planned >= draft.shortest:
            return draft.finished(part, number, natural=labelled and "natural" in config.boundary_kinds)
    what = "" if part == "all" else f" of part {part!r}"
    if not kinds:
        calm = "calm " if config.shown == "calm" else ""
        raise ConfigError(
            f"no {calm}stretch of {config.seconds[0]:g} s without a cut in the {len(clips)} clips{what}:"
            " say --seconds 4,20 for shorter videos, --motion any or still, or add clips"
        )
    raise ConfigError(
        f"the {len(clips)} clips{what} give no video of {config.seconds[0]:g} s with boundaries of"
        f" {', '.join(kinds)}: add clips or kinds, or ask for shorter videos with --seconds"
    )


class _Draft:
    """A video being planned."""

    def __init__(
        self,
        clips: Sequence[Clip],
        config: ComposeConfig,
        rng: np.random.Generator,
        counts: _Counts,
        kinds: Sequence[str],
    ) -> None:
        self._clips = clips
        self._config = config
        self._rng = rng
        self._counts = counts
        self._kinds = kinds
        self._fps = config.rate
        self._proposer = Proposer(clips, rng, self._wanted_clip)
        self._segments: list[Segment] = []
        self._joins: list[Join] = []
        self.shortest = ceil(config.seconds[0] * self._fps)
        self._target = max(self.shortest, round(float(rng.uniform(*config.seconds)) * float(self._fps)))
        self.planned = 0

    def compose(self) -> bool:
        """Fill the video; False where nothing fits."""
        piece = self._opening()
        if piece is None:
            return False
        first = overlap = 0
        while True:
            step = self._next(piece, first, overlap)
            if step is None:
                break
            kind, frames, mixed, fresh = step
            self._segments.append(self._segment(piece, first, frames))
            first += frames - mixed
            white = kind == "fade" and bool(self._rng.random() < 0.2)
            self._joins.append(Join(kind, first, mixed, white))
            piece, overlap = fresh, mixed
        last = self._frames(_LONGEST_PIECE) if piece.rate == 0 and self._kinds else self._room(piece)
        frames = min(last, self._target - first)
        if frames < self._frames(SHORTEST) + overlap:
            return False
        self._segments.append(self._segment(piece, first, frames))
        self.planned = first + frames
        return not self._kinds or bool(self._joins)

    def finished(self, part: Part, number: int, *, natural: bool) -> VideoPlan:
        """The plan, with its distractors."""
        naturals = self._naturals() if natural else []
        marks = [(join.first, join.first + join.frames) for join in self._joins]
        marks += [(frame, frame) for frame in naturals]
        distractors = placed(
            self._segments,
            marks,
            self._config,
            self._rng,
            self._counts.distractors,
            alone=not self._kinds,
        )
        self._counts.boundaries.update(join.kind for join in self._joins)
        self._counts.distractors.update(each.kind for each in distractors)
        first = next(clip for clip in self._clips if clip.name == self._segments[0].clip)
        width, height = _size(first, self._config.size)
        return VideoPlan(
            id=f"{part}-{number:04d}" if part != "all" else f"composite-{number:04d}",
            part=part,
            width=width,
            height=height,
            fps=self._fps,
            frames=self.planned,
            segments=tuple(self._segments),
            joins=tuple(self._joins),
            naturals=tuple(naturals),
            distractors=tuple(distractors),
            margin=margin_of(distractors),
        )

    def _opening(self) -> Piece | None:
        config = self._config
        if not self._kinds:
            return self._single(config.shown)
        for _ in range(_TRIES):
            clip = self._wanted_clip(None)
            piece = None if clip is None else self._proposer.opened(clip)
            if piece is None:
                continue
            alone = "start" in self._kinds and "stop" not in self._kinds
            if "start" in self._kinds and (alone or self._rng.random() < 0.1):
                return Piece(piece.clip, piece.shot, piece.start, rate=0.0)
            return piece
        return None

    def _single(self, shown: str) -> Piece | None:
        """The one piece of a video without boundaries."""
        least = self.shortest / float(self._fps) + 0.05
        shots_of: dict[int, list[Shot]] = {}
        for place, clip in enumerate(self._clips):
            shots = clip.calm if shown == "calm" else clip.shots
            long = [shot for shot in shots if shown == "still" or shot.seconds >= least]
            if long:
                shots_of[place] = long
        if not shots_of:
            return None
        chosen = list(shots_of)[int(self._rng.integers(len(shots_of)))]
        fitting = shots_of[chosen]
        shot = fitting[int(self._rng.integers(len(fitting)))]
        if shown == "still":
            return Piece(
                self._clips[chosen], shot, float(self._rng.uniform(shot.start, shot.end - 0.02)), 0.0
            )
        wanted = min(shot.seconds, self._target / float(self._fps) + 0.05)
        start = shot.start + float(self._rng.random()) * (shot.seconds - wanted)
        return Piece(self._clips[chosen], shot, start)

    def _next(self, piece: Piece, first: int, overlap: int) -> tuple[str, int, int, Piece] | None:
        """A kind, the frames of the piece before it, those that show both, and what follows."""
        room = self._room(piece)
        shortest = self._frames(SHORTEST)
        for kind in self._by_want():
            for _ in range(_TRIES):
                mixed = self._mixed() if kind in SMOOTH else 0
                least = overlap + (self._frames(STILL[0]) if piece.rate == 0 else shortest) + mixed
                most = min(room, overlap + self._frames(_LONGEST_PIECE) + mixed)
                most = min(most, self._target - first - shortest)
                if most < least:
                    continue
                frames = int(self._rng.integers(least, most + 1))
                leaves = float((frames - mixed // 2) / self._fps)
                fresh = self._proposer.propose(kind, piece, leaves)
                if fresh is None or self._room(fresh) < shortest + mixed:
                    continue
                pause = STILL[0] if fresh.rate == 0 else SHORTEST
                half = float(mixed / 2 / self._fps)
                fits = first + frames + self._frames(pause) <= self._target
                if fits and not (_labelled_near(piece, leaves, half) or _labelled_near(fresh, half, half)):
                    return kind, frames, mixed, fresh
        return None

    def _by_want(self) -> list[str]:
        """The kinds, the rarer the sooner, by chance."""
        often = [1 + self._count(kind) for kind in self._kinds]
        # Drawn without replacement, in proportion to 1 / often² (Efraimidis and Spirakis' keys).
        keys = [float(self._rng.random()) ** ((each / min(often)) ** 2) for each in often]
        return [kind for _, kind in sorted(zip(keys, self._kinds, strict=True), reverse=True)]

    def _count(self, kind: str) -> int:
        return self._counts.boundaries[kind] + sum(join.kind == kind for join in self._joins)

    def _wanted_clip(self, but: Clip | None) -> Clip | None:
        """A clip in which a kind that is still rare is likely; any clip now and then."""
        others = [clip for clip in self._clips if but is None or clip.group != but.group]
        if not others:
            return None
        if self._kinds and self._rng.random() < 0.7:
            kind = self._by_want()[0]
            able = [clip for clip in others if can(kind, clip, self._clips)]
            others = able or others
        return others[int(self._rng.integers(len(others)))]

    def _mixed(self) -> int:
        """Frames of a transition, an odd number."""
        frames = round(float(self._rng.uniform(*_TRANSITION)) * float(self._fps))
        least = ceil(_TRANSITION[0] * self._fps)
        frames = max(frames, least)
        return frames if frames % 2 else frames - 1 if frames > least else frames + 1

    def _frames(self, seconds: float) -> int:
        return ceil(seconds * self._fps)

    def _room(self, piece: Piece) -> int:
        """Frames for which a piece can be shown."""
        if piece.rate == 0 and not self._kinds:
            return self._target
        return int(piece.room * float(self._fps))

    def _segment(self, piece: Piece, first: int, frames: int) -> Segment:
        return Segment(piece.clip.name, first, frames, piece.start, piece.rate, piece.framing)

    def _naturals(self) -> list[int]:
        """Frames at which labelled boundaries of the sources are seen, clear of the made ones."""
        by_name = {clip.name: clip for clip in self._clips}
        taken = [frame for join in self._joins for frame in (join.first, join.first + join.frames)]
        clear = self._frames(SHORTEST / 2)
        found = []
        for segment in self._segments:
            if segment.rate == 0:
                continue
            for time in by_name[segment.clip].natural:
                frame = segment.first + round((time - segment.start) / segment.rate * float(self._fps))
                if segment.first <= frame < segment.stop and all(abs(frame - at) >= clear for at in taken):
                    found.append(frame)
        return sorted(set(found))


def _labelled_near(piece: Piece, seconds: float, half: float) -> bool:
    """Whether a labelled boundary of the source would be seen near a made one, whose half length is given."""
    reach = (SHORTEST / 2 + half) * max(1.0, abs(piece.rate))
    return bool(np.any(np.abs(piece.clip.natural - piece.after(seconds)) < reach))


def _size(clip: Clip, short_side: int) -> tuple[int, int]:
    """(width, height), even, in the shape of the clip but none wider or taller than 16:9."""
    ratio = min(max(clip.width / clip.height, 1 / _WIDEST), _WIDEST)
    long = 2 * int(max(ratio, 1 / ratio) * short_side / 2)
    return (long, short_side) if ratio >= 1 else (short_side, long)
