"""The cues of `ongebd.estimator.cues`, of many streams together, as tensors. Needs torch.

They are the same numbers, in the same order, with the same rule for a stream's start. What is kept of the
last frames has the newest first. Each stream chooses from it by `seen`, (B,), int64: its frames before this
one since the epoch began. So all streams do the same work.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ongebd.backbones import pipeline as pl
from ongebd.estimator import appearance as ap
from ongebd.estimator import cues as cu
from ongebd.estimator import motion as mo

Stepped = tuple[Tensor, Tensor, Tensor]
"""Cues, and the two parts of the new state."""

_NOVELTIES = len(ap.NOVELTY)
# Plain numbers, which a compiler takes for constants.
_FLOOR, _STIFF, _FASTEST = float(mo.FLOOR), float(mo.STIFF), float(mo.FASTEST)
_MIDDLE = slice(mo.CELLS // 2 - 1, mo.CELLS // 2 + 1)


class BatchedAppearance:
    """`AppearanceCues` of B streams, without the memory.

    Of each stream it keeps the features of the frames before, in bfloat16, (59, D), and their Gram matrix,
    (59, 59), float32; zeros where a frame is missing. The weights of features depend on how many there are:
    each stream picks its plan from a stack of all 60. Products of features are summed in float32, the rest is
    computed in float64, as on the CPU. `empty` is the state of one new stream.
    """

    def __init__(self, dim: int, device: torch.device) -> None:
        plans = [ap.window_plan(count) for count in range(1, ap.LENGTH + 1)]

        def stacked(name: str) -> Tensor:
            return torch.from_numpy(np.stack([getattr(plan, name) for plan in plans])).to(device)

        self._windows, self._halves, self._enough = stacked("windows"), stacked("halves"), stacked("enough")
        self._first = torch.from_numpy(ap.FIRST).to(device)
        self._second = torch.from_numpy(ap.SECOND).to(device)
        past = ap.LENGTH - 1
        self.empty = (
            torch.zeros(1, past, dim, dtype=torch.bfloat16, device=device),
            torch.zeros(1, past, past, device=device),
        )

    def step(self, features: Tensor, past: Tensor, past_gram: Tensor, seen: Tensor) -> Stepped:
        """The cues of the next frames, (B, 66), float32; and the new features and products to keep."""
        recent = _with_newest(features, past)
        dots = (recent.float() * recent[:, :1].float()).sum(-1)  # (B, 60)
        below = torch.cat([dots[:, 1:, None], past_gram], dim=2)
        gram = torch.cat([dots[:, None], below], dim=1)  # (B, 60, 60)
        cues = self._cues(gram.double(), seen.clamp_max(ap.LENGTH - 1))
        return cues, recent[:, :-1], gram[:, :-1, :-1]

    def _cues(self, gram: Tensor, plan: Tensor) -> Tensor:
        windows = self._windows[plan]  # (B, windows, 60)
        weighed = torch.bmm(windows, gram)
        squares = (weighed * windows).sum(-1)
        products = (weighed[:, self._first] * windows[:, self._second]).sum(-1)  # (B, pairs)
        lengths = (squares[:, self._first] * squares[:, self._second]).sqrt()
        error = ((1.0 - products / lengths.clamp_min(ap.TINY)) / 2.0).clamp_min(0.0)
        log_error = (error + ap.FLOOR).log()

        norms = gram.diagonal(dim1=1, dim2=2).sqrt().clamp_min(ap.TINY)
        halves = self._halves[plan] / norms[:, None]  # (B, 2 K, 60): the newer halves, then the older
        weighed = torch.bmm(halves, gram)
        alike = (weighed * halves).sum(-1)
        between = (weighed[:, :_NOVELTIES] * halves[:, _NOVELTIES:]).sum(-1)
        novelty = (alike[:, :_NOVELTIES] + alike[:, _NOVELTIES:]) / 2.0 - between
        novelty = novelty.clamp_min(0.0) * self._enough[plan]
        parts = [
            error[:, : ap.SPLIT],
            log_error[:, : ap.SPLIT],
            error[:, ap.SPLIT :],
            log_error[:, ap.SPLIT :],
            (novelty + ap.FLOOR).log(),
        ]
        return torch.cat(parts, dim=1).float()


class BatchedLooks:
    """`LookMemory` of B streams.

    Of each stream it keeps the features of the last looks, the newest first, (65, D), bfloat16, and how many
    there are, int64. `empty` is the state of one new stream.
    """

    def __init__(self, dim: int, device: torch.device) -> None:
        self._ages = torch.arange(ap.MEMORY[-1] + 1, device=device)
        self._spans = torch.tensor(ap.MEMORY, device=device)[:, None]
        self.empty = (
            torch.zeros(1, len(self._ages), dim, dtype=torch.bfloat16, device=device),
            torch.zeros(1, dtype=torch.int64, device=device),
        )

    def step(self, features: Tensor, looks: Tensor, count: Tensor) -> Stepped:
        """The cues of the next frames, (B, 4), float32; and the new looks and their number."""
        recent = _with_newest(features, looks)
        another = (count == 0) | (recent[:, 0] != recent[:, 1]).any(1)
        looks = torch.where(another[:, None, None], recent[:, :-1], looks)
        count = (count + another).clamp_max(len(self._ages))
        exact = looks.float()
        norms = exact.square().sum(-1).sqrt()
        errors = (1.0 - (exact * exact[:, :1]).sum(-1) / (norms * norms[:, :1]).clamp_min(ap.TINY)) / 2.0
        first, ages = (count - 1).clamp_max(ap.RECENT), self._ages
        known = (ages >= first[:, None]) & (ages < count[:, None])
        inside = known[:, None] & (ages <= self._spans)  # (B, 4, 65)
        nearest = torch.where(inside, errors.clamp_min(ap.FLOOR)[:, None], torch.inf).amin(-1)
        return nearest.log(), looks, count


class BatchedMotion:
    """`MotionCues` of B streams, in float32 throughout.

    Of each stream it keeps the blurred pictures of the last 4 frames, (4, 56, 56), and the smoothed flow and
    speeds of the last 12, (12, 3 lags, 3, 196), all float32. `empty` is the state of one new stream.
    """

    def __init__(self, device: torch.device) -> None:
        self._lags = torch.tensor(mo.LAGS, device=device)
        self._back = torch.tensor(mo.BACK, device=device)
        self._box = torch.from_numpy(mo.BOX).to(device)
        self.empty = (
            torch.zeros(1, max(mo.LAGS), mo.SIDE, mo.SIDE, device=device),
            torch.zeros(1, max(mo.BACK), len(mo.LAGS), 3, mo.CELLS, device=device),
        )

    def step(self, luma: Tensor, pictures: Tensor, smooth: Tensor, seen: Tensor) -> Stepped:
        """The cues of the next frames, (B, 45), float32; and the new pictures, flow and speeds to keep.

        The luma is (B, 3136), float32, 0 to 255, row by row.
        """
        picture = _blurred((luma - luma.mean(1, keepdim=True)).view(-1, mo.SIDE, mo.SIDE))
        recent = _with_newest(picture, pictures)
        flow, change = self._flow(picture[:, None], _frames_ago(recent, self._lags, seen))
        camera = flow.sort(-1).values[..., _MIDDLE].mean(-1, keepdim=True)  # (B, lags, 2, 1)
        speed = torch.hypot(flow[:, :, 0], flow[:, :, 1])  # (B, lags, 196)
        apart = flow - camera
        own = torch.hypot(apart[:, :, 0], apart[:, :, 1])
        speeds = torch.stack(
            [
                torch.hypot(camera[:, :, 0, 0], camera[:, :, 1, 0]),
                speed.mean(-1),
                own.sort(-1).values[..., -mo.FEW :].mean(-1),
                own.mean(-1),
            ],
            dim=-1,
        )
        levels = (speeds + _FLOOR).log()  # (B, lags, 4)
        changes = (change.mean(-1, keepdim=True) + mo.LEAST_CHANGE).log()  # (B, lags, 1)

        newest = torch.cat([flow, (own + _FLOOR).log()[:, :, None]], dim=2)  # (B, lags, 3, 196)
        weight = _weight_of_newest(mo.LEAST_WEIGHT, seen, 1).view(-1, 1, 1, 1)
        before = torch.where((seen > 0).view(-1, 1, 1, 1), smooth[:, 0], newest)
        now = before + weight * (newest - before)
        history = _with_newest(now, smooth)
        earlier = _frames_ago(history, self._back, seen)  # (B, back, lags, 3, 196)
        cues = torch.cat([levels, changes, *_compared(now[:, None], earlier)], dim=-1)
        return cues.flatten(1), recent[:, :-1], history[:, :-1]

    def _flow(self, picture: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """See `block_flow`: (B, 1, 56, 56) and (B, lags, 56, 56) → (B, lags, 2, 196) and (B, lags, 196)."""
        change = picture - before
        between = (picture + before) * 0.5
        (right,), (down,) = torch.gradient(between, dim=-1), torch.gradient(between, dim=-2)
        factors = (right * right, right * down, down * down, right * change, down * change, change * change)
        products = torch.stack(factors)  # (6, B, lags, 56, 56)
        means = self._box @ (products @ self._box.T)  # (6, B, lags, 14, 14)
        a, b, c, d, e, squares = means.flatten(3).unbind(0)
        a, c = a + _STIFF, c + _STIFF
        flow = torch.stack([b * e - c * d, b * d - a * e], dim=2) / (a * c - b * b)[:, :, None]
        return flow.clamp(-_FASTEST, _FASTEST), squares.clamp_min(0).sqrt()


class BatchedMemory:
    """`MotionMemory` of B streams.

    Of each stream it keeps the motion cues of the last 384 frames, (384, 45), float32. `empty` is the state
    of one new stream.
    """

    def __init__(self, device: torch.device) -> None:
        self._ages = torch.arange(mo.MEMORY[-1] + 1, device=device)  # the newest first
        self._spans = torch.tensor(mo.MEMORY, device=device)[:, None]
        self.empty = (torch.zeros(1, mo.MEMORY[-1], len(mo.MotionCues.names), device=device),)

    def step(self, motion: Tensor, past: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """The distances of the next frames, (B, 6), float32; and the new past."""
        recent = _with_newest(motion, past)
        distance = (recent - motion[:, None]).square().sum(-1).sqrt()[:, None]  # (B, 1, 385)
        known = (self._ages >= seen[:, None].clamp_max(mo.RECENT)) & (self._ages <= seen[:, None])
        inside = known[:, None] & (self._ages <= self._spans)  # (B, 4, 385)
        nearest = torch.where(inside, distance, torch.inf).amin(-1)
        usual = torch.stack([inside[:, place] for place in mo.USUAL], dim=1)  # a list can't be captured
        means = (distance * usual).sum(-1) / usual.sum(-1)
        return (torch.cat([nearest, means], dim=1) + float(mo.NEAR_FLOOR)).log(), recent[:, :-1]


class BatchedGlance:
    """`Glance` of B streams: the network has looked at every picture, but most of what it saw is not used.

    Of each stream it keeps the feature of the last picture that counts, (D,), and its time; the last luma,
    (3136,), and its mean change; and how many frames a flash has lasted, int64. `empty` is the state of one
    new stream.

    Args:
        dim: D, luma included.
        device: Where.
    """

    def __init__(self, dim: int, device: torch.device) -> None:
        self.empty = (
            torch.zeros(1, dim, device=device),
            torch.zeros(1, dtype=torch.float64, device=device),
            torch.zeros(1, pl.LUMA_DIM, device=device),
            torch.zeros(1, device=device),
            torch.zeros(1, dtype=torch.int64, device=device),
        )

    def step(
        self, features: Tensor, state: tuple[Tensor, ...], seen: Tensor, time: Tensor
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """The features that count, (B, D), float32; where the luma is `sudden`, (B,); and the new state."""
        newest, since, last, last_step, flash = state
        luma = features[:, -pl.LUMA_DIM :]
        step = (luma - last).abs().mean(1)
        before = last_step.clamp_min(pl.LEAST_MOVED)
        another = (step > pl.ANOTHER) & (step > pl.SUDDEN * before)
        light = (seen > 0) & another & _light_changed(luma, last)
        brighter = (luma.mean(1) > last.mean(1)) & (last.std(1, correction=0) > pl.FLAT)
        held = light & brighter & (flash < pl.FLASH_FRAMES)
        moved = (luma - newest[:, -pl.LUMA_DIM :]).abs()
        at_once = (step > pl.AS_A_CUT * before) & (step > pl.AT_ONCE * moved.mean(1))
        sudden = (seen > 0) & another & at_once & ~light
        looks = (seen == 0) | ((moved.amax(1) > pl.MOVES) & (another | (time - since > pl.AGAIN))) & ~held
        looked = torch.where(looks[:, None], features, newest)
        luma = torch.where(held[:, None], last, luma)
        counts = torch.cat([looked[:, : -pl.LUMA_DIM], luma], dim=1)
        since, step = torch.where(looks, time, since), torch.where(held, last_step, step)
        return counts, sudden, (looked, since, luma, step, (flash + 1) * held)


def _light_changed(luma: Tensor, before: Tensor) -> Tensor:
    """See `light_changed`: (B, N) twice → (B,)."""
    change = luma - before
    up, down = change.clamp_min(0).sum(1), (-change).clamp_min(0).sum(1)
    new, old = luma - luma.mean(1, keepdim=True), before - before.mean(1, keepdim=True)
    contrast, other = new.square().mean(1).sqrt(), old.square().mean(1).sqrt()
    alike = (new * old).mean(1) > pl.SAME_SHAPES * contrast * other
    no_shapes = torch.maximum(contrast, other) < pl.NO_SHAPES
    other_way = torch.minimum(up, down) / (up + down).clamp_min(ap.TINY)
    return ((other_way <= pl.NEARLY_ONE_WAY) & no_shapes) | ((other_way <= pl.ALL_ONE_WAY) & alike)


class BatchedCuts:
    """`CutDetector` of B streams.

    Of each stream it keeps the errors between neighbours in the last second, (24,), float32, and how many of
    them there are, int64. `empty` is the state of one new stream.
    """

    def __init__(self, device: torch.device) -> None:
        self._ages = torch.arange(cu.CUT_MEMORY, device=device)  # the newest first
        self.empty = (
            torch.zeros(1, cu.CUT_MEMORY, device=device),
            torch.zeros(1, dtype=torch.int64, device=device),
        )

    def step(
        self, gram: Tensor, sudden: Tensor, state: tuple[Tensor, ...], seen: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Whether a cut lies before each frame, (B,).

        `gram` is that of its feature and earlier ones.
        """
        errors, count = state
        gram = gram[:, : cu.CUT_FRAMES + 1, : cu.CUT_FRAMES + 1]
        lengths = (gram[:, 0, :1] * gram.diagonal(dim1=1, dim2=2)[:, 1:]).sqrt().clamp_min(ap.TINY)
        apart = (1.0 - gram[:, 0, 1:] / lengths) / 2.0  # (B, 4)
        least = torch.where(self._ages[: cu.CUT_FRAMES] < seen[:, None], apart, 1.0).amin(1)
        usual = torch.where(self._ages < count[:, None], errors, 0.0).amax(1).clamp_min(cu.CUT_FLOOR)
        far = least * (least / usual).clamp(1.0, cu.CUT_MOST) ** 0.25 > cu.CUT_ERROR
        cut = (count >= cu.CUT_WARMUP) & far & sudden
        usual_too = (seen > 0) & ~cut
        errors = torch.where(usual_too[:, None], _with_newest(apart[:, 0], errors)[:, :-1], errors)
        return cut, (errors, torch.where(usual_too, (count + 1).clamp_max(cu.CUT_MEMORY), count))


class BatchedContext:
    """`Context` of B streams: the cues now, 3, 6 and 12 frames ago, and now less their running mean.

    Of each stream it keeps the cues of the last 12 frames, (12, C), and their mean, (C,), both float32.
    `empty` is the state of one new stream.
    """

    def __init__(self, cues: int, device: torch.device) -> None:
        self._lags = torch.tensor(cu.CONTEXT, device=device)
        past = torch.zeros(1, max(cu.CONTEXT), cues, device=device)
        self.empty = past, past[:, 0]

    def step(self, cues: Tensor, past: Tensor, mean: Tensor, seen: Tensor) -> Stepped:
        """What the trees see, (B, 5 C), float32, as in `Context`; and the new past and mean."""
        recent = _with_newest(cues, past)
        lagged = _frames_ago(recent, self._lags, seen).flatten(1)
        before = torch.where(seen[:, None] > 0, mean, cues)
        above = cues - before
        weight = _weight_of_newest(cu.LEAST_WEIGHT, seen, 2)
        return torch.cat([lagged, above], dim=1), recent[:, :-1], before + weight[:, None] * above


def _compared(now: Tensor, earlier: Tensor) -> tuple[Tensor, Tensor]:
    """(B, 1, lags, 3, 196) against (B, back, lags, 3, 196): (B, lags, 4) and (B, lags, 6)."""
    flow, old = now[..., :2, :].flatten(3), earlier[..., :2, :].flatten(3)  # (B, 1 or back, lags, 392)
    shifted = flow + 1e-3
    dots = (shifted * old).sum(-1)  # (B, back, lags)
    norms = (shifted.square().sum(-1) * old.square().sum(-1)).sqrt()
    turn = (1 - dots / norms.clamp_min(1e-6)) / 2
    distance = (flow - old).square().sum(-1).sqrt() / mo.BLOCKS
    gain = (now[..., 2, :] - earlier[..., 2, :]).sort(-1).values  # (B, back, lags, 196)
    turns = torch.stack([turn, (distance + _FLOOR).log()], dim=-1)
    starts = [gain[..., -mo.MOST :].mean(-1), gain[..., : mo.MOST].mean(-1), gain.abs().mean(-1)]
    return _by_lag(turns), _by_lag(torch.stack(starts, dim=-1))


def _by_lag(values: Tensor) -> Tensor:
    """(B, back, lags, n) → (B, lags, back n)."""
    return values.transpose(1, 2).flatten(2)


def _blurred(picture: Tensor) -> Tensor:
    """The pictures (B, H, W) under [1 2 1] / 4 in both directions, their borders repeated outwards."""
    rows = torch.cat([picture[:, :1], picture, picture[:, -1:]], dim=1)
    rows = rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]
    both = torch.cat([rows[:, :, :1], rows, rows[:, :, -1:]], dim=2)
    return (both[:, :, :-2] + 2 * both[:, :, 1:-1] + both[:, :, 2:]) / 16


def _with_newest(newest: Tensor, past: Tensor) -> Tensor:
    """The newest (B, …) before the past (B, L, …): (B, L + 1, …)."""
    return torch.cat([newest[:, None].to(past.dtype), past], dim=1)


def _frames_ago(history: Tensor, lags: Tensor, seen: Tensor) -> Tensor:
    """What was so many frames ago, or at the epoch's first frame if that is later: (B, L, …) → (B, n, …)."""
    places = lags.minimum(seen[:, None])  # (B, n)
    places = places.view(*places.shape, *[1] * (history.dim() - 2))
    return history.gather(1, places.expand(-1, -1, *history.shape[2:]))


def _weight_of_newest(least: float, seen: Tensor, offset: int) -> Tensor:
    """The newest frame's weight in a running mean, (B,), float32: 1 / (seen + offset), later `least`."""
    return (1.0 / (seen.double() + offset)).clamp_min(least).float()
