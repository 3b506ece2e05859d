"""What may follow a piece at some moment, for each kind of boundary: only what can be seen is proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ongebd.lab.composites.clips import Clip
from ongebd.lab.composites.config import MOTIONS
from ongebd.lab.composites.pictures import Change, change, likeness
from ongebd.lab.composites.plan import MOVING, Framing, Piece

SHORTEST = 1.25
"""Seconds between two boundaries, at least."""

_AROUND = 0.7  # seconds of a clip before and after a moment, in which motion is measured
_AWAY = 1.0  # seconds of a clip that a jump skips, at least
_RATES = (0.33, 0.4, 2.5, 3.0)  # slow and fast


def can(kind: str, clip: Clip, clips: Sequence[Clip]) -> bool:
    """Whether a clip is a likely place for a kind of boundary."""
    usable = sum(shot.seconds for shot in clip.shots)
    if kind == "action":
        return any(other.group == clip.group and other is not clip for other in clips)
    if kind == "jump":
        return usable >= 2 * SHORTEST + _AWAY
    if kind in MOTIONS:
        return float(np.mean(clip.motion >= MOVING)) >= 0.4 and usable >= 2 * SHORTEST
    return True


class Proposer:
    """Proposes the next piece for a kind of boundary.

    Args:
        clips: All clips of the part.
        rng: Of every choice.
        opening: Chooses a clip that is wanted, of another setting than the given one.
    """

    def __init__(
        self, clips: Sequence[Clip], rng: np.random.Generator, opening: Callable[[Clip], Clip | None]
    ) -> None:
        self._clips = clips
        self._rng = rng
        self._opening = opening

    def propose(self, kind: str, piece: Piece, seconds: float) -> Piece | None:
        """What follows the piece after so many seconds, if a boundary of this kind can be seen there."""
        if piece.rate == 0 and kind not in ("start", "cut", "dissolve", "fade"):
            return None
        following: Callable[[Piece, float], Piece | None] = getattr(self, f"_{kind}")
        return following(piece, piece.after(seconds))

    def opened(self, clip: Clip) -> Piece | None:
        """A piece of a clip, somewhere in one of its shots; long shots are chosen more often."""
        shots = [shot for shot in clip.shots if shot.seconds >= SHORTEST]
        if not shots:
            return None
        lengths = np.array([shot.seconds for shot in shots])
        shot = shots[int(np.searchsorted(np.cumsum(lengths) / lengths.sum(), self._rng.random()))]
        wanted = float(self._rng.uniform(SHORTEST, 5.0))
        spare = max(0.0, shot.seconds - wanted)
        return Piece(clip, shot, shot.start + spare * float(self._rng.random()))

    def _cut(self, piece: Piece, time: float) -> Piece | None:
        other = self._opening(piece.clip)
        fresh = None if other is None else self.opened(other)
        if fresh is None:
            return None
        apart = _change(piece, time, fresh)
        return fresh if apart.mean >= 12 and apart.strongest >= 50 else None

    def _jump(self, piece: Piece, time: float) -> Piece | None:
        fresh = self.opened(piece.clip)
        if fresh is None or abs(fresh.start - time) < _AWAY:
            return None
        fresh = replace(fresh, framing=piece.framing, rate=piece.rate)
        return fresh if _stands_out(piece, time, fresh) else None

    def _action(self, piece: Piece, time: float) -> Piece | None:
        others = [clip for clip in self._clips if clip.group == piece.clip.group and clip is not piece.clip]
        fresh = self.opened(others[int(self._rng.integers(len(others)))]) if others else None
        if fresh is None:
            return None
        fresh = replace(fresh, framing=piece.framing)
        before, after = piece.seen(time).astype(np.float64), fresh.seen(fresh.start).astype(np.float64)
        return fresh if likeness(before, after) > 0.3 and _stands_out(piece, time, fresh) else None

    def _dissolve(self, piece: Piece, time: float) -> Piece | None:
        if piece.rate and self._rng.random() < 0.25 and (within := self._jump(piece, time)) is not None:
            return within if _change(piece, time, within).mean >= 8 else None
        return self._cut(piece, time)

    def _fade(self, piece: Piece, time: float) -> Piece | None:
        if piece.rate and self._rng.random() < 0.25:
            return self.opened(piece.clip)
        return self._cut(piece, time)

    def _speed(self, piece: Piece, time: float) -> Piece | None:
        sign = 1.0 if piece.rate > 0 else -1.0
        choices = _RATES if abs(piece.rate) == 1 else (1.0,)
        rate = sign * choices[int(self._rng.integers(len(choices)))]
        before = time - sign * _AROUND * max(1.0, abs(piece.rate))
        after = time + sign * _AROUND * max(1.0, abs(rate))
        if not (piece.moves(before, time, 20) and piece.moves(time, after, 20)):
            return None
        return replace(piece, start=time, rate=rate)

    def _reverse(self, piece: Piece, time: float) -> Piece | None:
        moves = piece.moves(time - _AROUND * piece.rate, time, 25)
        return replace(piece, start=time, rate=-piece.rate) if moves else None

    def _framing(self, piece: Piece, time: float) -> Piece | None:
        now = piece.framing
        if now.zoom > 1 and self._rng.random() < 0.6:
            framing = Framing(mirror=now.mirror)
        else:
            zoom = 1.0 if self._rng.random() < 0.25 else float(self._rng.uniform(1.4, 2.2))
            x, y = (float(at) for at in self._rng.random(2))
            framing = Framing(zoom, x, y, now.mirror if zoom > 1 else not now.mirror)
        fresh = replace(piece, start=time, framing=framing)
        apart = _change(piece, time, fresh)
        return fresh if apart.mean >= 12 and apart.strongest >= 60 else None

    def _stop(self, piece: Piece, time: float) -> Piece | None:
        if abs(piece.rate) < 1 or not piece.moves(time - _AROUND * piece.rate, time, 20):
            return None
        stopped = replace(piece, start=time, rate=0.0, resume=1.0 if piece.rate > 0 else -1.0)
        again = self._start(stopped, time)  # only where motion can go on
        return stopped if again is not None and again.room > 2 * SHORTEST else None

    def _start(self, piece: Piece, time: float) -> Piece | None:
        if piece.rate != 0 or not piece.moves(time, time + _AROUND * piece.resume, 20):
            return None
        return replace(piece, start=time, rate=piece.resume)


def _change(piece: Piece, time: float, fresh: Piece) -> Change:
    """How the picture changes from a piece to the next."""
    return change(piece.seen(time), fresh.seen(fresh.start))


def _stands_out(piece: Piece, time: float, fresh: Piece) -> bool:
    """Whether a change is larger than the usual one from frame to frame."""
    apart = _change(piece, time, fresh)
    usual = max(piece.clip.step_at(time) * max(1.0, abs(piece.rate)), fresh.clip.step_at(fresh.start))
    return apart.mean >= max(4.0, 3 * usual) and apart.strongest >= 45
