"""Plans videos from clips, on small pictures alone: quick, and decided by the clips and the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from ongebd.errors import ConfigError
from ongebd.lab.composites.clips import Clip, ClipLibrary
from ongebd.lab.composites.config import SMOOTH, ComposeConfig, Part, parts
from ongebd.lab.composites.distractors import margin_of, placed
from ongebd.lab.composites.grouping import parted
from ongebd.lab.composites.plan import STILL, Join, Piece, Segment, VideoPlan
from ongebd.lab.composites.proposals import SHORTEST, Proposer, can

_LONGEST_PIECE = 6.0
_TRANSITION = (0.3, 2.0)
_TRIES = 12
_ATTEMPTS = 40
_WIDEST = 16 / 9


def plan_videos(library: ClipLibrary, config: ComposeConfig) -> list[VideoPlan]:
    """The plans of all videos. Within a part, the first n don't depend on how many follow.

    Raises:
        ConfigError: The clips are too few or too short; the message says what to change.
    """
    if "natural" not in config.boundary_kinds and any(len(clip.natural) for clip in library.clips.values()):
        raise ConfigError(
            "labelled boundaries were kept, but natural is not among the kinds: read the clips again"
        )
    shares, wanted = parts(config.split)
    clips_of = parted(library, shares, config.split_seed)
    total = sum(shares[part] for part in wanted)
    plans: list[VideoPlan] = []
    ahead, done = 0.0, 0
    for part in wanted:
        ahead += shares[part] / total
        count = round(config.videos * ahead) - done
        done += count
        seconds = None if config.minutes is None else 60 * config.minutes * shares[part] / total
        counts: Counter[str] = Counter()
        number, length = 0, 0.0
        while number < count if seconds is None else length < seconds:
            plans.append(_planned(clips_of[part], config, part, number, counts))
            number, length = number + 1, length + plans[-1].duration
    return plans


def _planned(
    clips: Sequence[Clip], config: ComposeConfig, part: Part, number: int, counts: Counter[str]
) -> VideoPlan:
    which = ("all", "train", "val", "test").index(part)
    for attempt in range(_ATTEMPTS):
        draft = _Draft(clips, config, np.random.default_rng((config.seed, which, number, attempt)), counts)
        if draft.compose():
            return draft.finished(part, number)
    what = "" if part == "all" else f" of part {part!r}"
    of = f"boundaries of {', '.join(draft.kinds)}" if draft.kinds else f"--motion {config.shown}"
    raise ConfigError(
        f"the {len(clips)} clips{what} give no video of {config.length[0]:g} s with {of}: add clips or kinds,"
        " or use --seconds 4,20 for shorter videos"
    )


class _Draft:
    """A video being planned."""

    def __init__(
        self, clips: Sequence[Clip], config: ComposeConfig, rng: np.random.Generator, counts: Counter[str]
    ) -> None:
        self.kinds = [kind for kind in config.boundary_kinds if kind != "natural"]
        self._clips = clips
        self._config = config
        self._rng = rng
        self._counts = counts
        self._fps = config.rate
        self._proposer = Proposer(clips, rng, self._wanted_clip)
        self._segments: list[Segment] = []
        self._joins: list[Join] = []
        shortest, longest = config.length
        self._shortest = self._frames(shortest)
        self._target = max(self._shortest, round(float(rng.uniform(shortest, longest)) * float(self._fps)))

    def compose(self) -> bool:
        """Fill the video; False if nothing fits or it becomes too short."""
        piece = self._opening() if self.kinds else self._single()
        if piece is None:
            return False
        first = overlap = 0
        while (step := self._next(piece, first, overlap)) is not None:
            kind, frames, mixed, fresh = step
            self._segments.append(Segment(piece, first, frames))
            first += frames - mixed
            white = kind == "fade" and bool(self._rng.random() < 0.2)
            self._joins.append(Join(kind, first, mixed, white))
            piece, overlap = fresh, mixed
        most = self._frames(_LONGEST_PIECE) if piece.rate == 0 and self.kinds else self._room(piece)
        frames = min(most, self._target - first)
        if frames < self._frames(SHORTEST) + overlap:
            return False
        self._segments.append(Segment(piece, first, frames))
        return first + frames >= self._shortest and (not self.kinds or bool(self._joins))

    def finished(self, part: Part, number: int) -> VideoPlan:
        """The plan, with its distractors."""
        naturals = self._naturals()
        marks = [(join.first, join.first + join.frames) for join in self._joins]
        marks += [(frame, frame) for frame in naturals]
        distractors = placed(self._segments, marks, self._config, self._rng, self._counts)
        self._counts.update([join.kind for join in self._joins] + [each.kind for each in distractors])
        width, height = _size(self._segments[0].piece.clip, self._config.size)
        return VideoPlan(
            id=f"{part}-{number:04d}" if part != "all" else f"composite-{number:04d}",
            part=part,
            width=width,
            height=height,
            fps=self._fps,
            frames=self._segments[-1].stop,
            segments=tuple(self._segments),
            joins=tuple(self._joins),
            naturals=tuple(naturals),
            distractors=tuple(distractors),
            margin=margin_of(distractors),
        )

    def _opening(self) -> Piece | None:
        for _ in range(_TRIES):
            clip = self._wanted_clip(None)
            piece = None if clip is None else self._proposer.opened(clip)
            if piece is not None:
                only = "stop" not in self.kinds
                still = "start" in self.kinds and (only or self._rng.random() < 0.1)
                return replace(piece, rate=0.0) if still else piece
        return None

    def _single(self) -> Piece | None:
        """The one piece of a video without boundaries."""
        shown, least = self._config.shown, self._shortest / float(self._fps) + 0.05
        fitting = []
        for clip in self._clips:
            usable = clip.calm if shown == "calm" else clip.shots
            shots = [shot for shot in usable if shown == "still" or shot.seconds >= least]
            if shots:
                fitting.append((clip, shots))
        if not fitting:
            return None
        clip, shots = fitting[int(self._rng.integers(len(fitting)))]
        shot = shots[int(self._rng.integers(len(shots)))]
        if shown == "still":
            return Piece(clip, shot, float(self._rng.uniform(shot.start, shot.end - 0.02)), 0.0)
        wanted = min(shot.seconds, self._target / float(self._fps) + 0.05)
        return Piece(clip, shot, shot.start + float(self._rng.random()) * (shot.seconds - wanted))

    def _next(self, piece: Piece, first: int, overlap: int) -> tuple[str, int, int, Piece] | None:
        """A kind, the frames of the piece before it, those that show both, and what follows."""
        shortest = self._frames(SHORTEST)
        for kind in self._rare_first():
            for _ in range(_TRIES):
                mixed = self._mixed() if kind in SMOOTH else 0
                least = overlap + (self._frames(STILL[0]) if piece.rate == 0 else shortest) + mixed
                longest = overlap + self._frames(_LONGEST_PIECE) + mixed
                most = min(self._room(piece), longest, self._target - first - shortest)
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

    def _rare_first(self) -> list[str]:
        """The kinds in random order, rare ones more likely first."""
        often = [
            1 + self._counts[kind] + sum(join.kind == kind for join in self._joins) for kind in self.kinds
        ]
        # Drawn without replacement, in proportion to 1 / often² (Efraimidis and Spirakis' keys).
        keys = [float(self._rng.random()) ** ((each / min(often)) ** 2) for each in often]
        return [kind for _, kind in sorted(zip(keys, self.kinds, strict=True), reverse=True)]

    def _wanted_clip(self, but: Clip | None) -> Clip | None:
        """A clip of another setting in which a rare kind is likely; sometimes any clip."""
        others = [clip for clip in self._clips if but is None or clip.group != but.group]
        if not others:
            return None
        if self.kinds and self._rng.random() < 0.7:
            kind = self._rare_first()[0]
            others = [clip for clip in others if can(kind, clip, self._clips)] or others
        return others[int(self._rng.integers(len(others)))]

    def _mixed(self) -> int:
        """Frames of a transition, an odd number."""
        least = self._frames(_TRANSITION[0])
        frames = max(round(float(self._rng.uniform(*_TRANSITION)) * float(self._fps)), least)
        return frames if frames % 2 else frames - 1 if frames > least else frames + 1

    def _frames(self, seconds: float) -> int:
        return ceil(seconds * self._fps)

    def _room(self, piece: Piece) -> int:
        """Frames for which a piece can be shown."""
        if piece.rate == 0 and not self.kinds:
            return self._target
        return int(piece.room * float(self._fps))

    def _naturals(self) -> list[int]:
        """Frames at which labelled boundaries of the sources are seen, clear of the made ones."""
        taken = [frame for join in self._joins for frame in (join.first, join.first + join.frames)]
        clear = self._frames(SHORTEST / 2)
        found = set()
        for segment in self._segments:
            piece = segment.piece
            for time in piece.clip.natural if piece.rate else ():
                frame = segment.first + round((time - piece.start) / piece.rate * float(self._fps))
                if segment.first <= frame < segment.stop and all(abs(frame - at) >= clear for at in taken):
                    found.add(frame)
        return sorted(found)


def _labelled_near(piece: Piece, seconds: float, half: float) -> bool:
    """Whether a labelled boundary of the source would be seen near a made one, whose half length is given."""
    reach = (SHORTEST / 2 + half) * max(1.0, abs(piece.rate))
    return bool(np.any(np.abs(piece.clip.natural - piece.after(seconds)) < reach))


def _size(clip: Clip, short_side: int) -> tuple[int, int]:
    """(width, height), even, in the shape of the clip but not wider or taller than 16:9."""
    ratio = min(max(clip.width / clip.height, 1 / _WIDEST), _WIDEST)
    long = 2 * int(max(ratio, 1 / ratio) * short_side / 2)
    return (long, short_side) if ratio >= 1 else (short_side, long)
