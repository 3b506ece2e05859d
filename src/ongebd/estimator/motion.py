"""What moves, and how that changes: a coarse optical flow on a small luma picture.

The flow is Lucas' and Kanade's, solved in 14 × 14 blocks of 4 × 4 pixels, each with the blocks around it, for
the displacement since 1, 2 and 4 frames ago. Camera motion is its median; what differs from that is moved by
somebody.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

SIDE = 56
"""Height and width of the luma, in pixels."""
LAGS = (1, 2, 4)
"""Frames over which motion is measured."""
BACK = (6, 12)
"""Frames over which the change of motion is measured."""
BLOCKS, _BLOCK = 14, 4
CELLS = BLOCKS * BLOCKS
_PER_CELL = np.float32(1 / CELLS)
FEW, MOST = 20, 15  # blocks
FASTEST = np.float32(4.0)  # pixels
STIFF = np.float32(2.0)  # on the squared gradients: grey areas stand still
FLOOR = np.float32(0.05)  # pixels
LEAST_CHANGE = 0.3  # of 255
LEAST_WEIGHT = 1 - 0.5 ** (1 / 2.0)  # of the newest frame in the running mean: a half-life of two frames

_NAMES = (
    "camera",
    "all",
    "fastest of own",
    "own",
    "change of luma",
    *(name.format(j) for j in BACK for name in ("turn in {}", "change in {}")),
    *(name.format(j) for j in BACK for name in ("start in {}", "stop in {}", "start or stop in {}")),
)


class MotionCues:
    """Cues from the luma of one stream's pictures: 15 for each of three lags.

    *camera*, *all*, *fastest of own*, *own*: logarithms of speeds in pixels, of the median flow, of the mean
    flow, and of the flow less the median one, over its 20 fastest blocks and over all. *change of luma*: that
    of the mean change. The flow and the logarithms of the blocks' own speeds are smoothed (half-life two
    frames) and compared with themselves 6 and 12 frames ago: *turn* is the cosine error of the two flows,
    *change* the logarithm of their distance; *start*, *stop* and *start or stop* are the mean change of the
    logarithm in the 15 blocks that gained most, in those that lost most, and of all without sign.
    """

    names = tuple(f"motion {lag}: {name}" for lag in LAGS for name in _NAMES)

    def __init__(self) -> None:
        self._lumas: Floats = np.empty((max(LAGS) + 1, SIDE, SIDE), np.float32)
        # The smoothed flow (u, v) and logarithms of own speed, the last frames'.
        self._smooth: Floats = np.empty((max(BACK) + 1, len(LAGS), 3, CELLS), np.float32)
        self.state_bytes = self._lumas.nbytes + self._smooth.nbytes
        self._seen = 0

    def reset(self) -> None:
        """Forget everything."""
        self._seen = 0

    def update(self, luma: Floats) -> Floats:
        """Take the next picture.

        Args:
            luma: float32, (3136,), 0 to 255, row by row.

        Returns:
            The cues, float32, in the order of `names`.
        """
        now = self._seen
        self._seen += 1
        picture = blurred(luma.reshape(SIDE, SIDE) - luma.mean())
        self._lumas[now % len(self._lumas)] = picture
        before = self._lumas[[max(now - lag, 0) % len(self._lumas) for lag in LAGS]]  # (lags, 56, 56)
        flow, change = block_flow(picture, before)
        ordered = np.sort(flow, axis=-1)
        camera = (ordered[..., CELLS // 2 - 1] + ordered[..., CELLS // 2]) * np.float32(0.5)  # (2, lags)
        speed = np.hypot(flow[0], flow[1])
        own = np.hypot(flow[0] - camera[0, :, None], flow[1] - camera[1, :, None])  # (lags, cells)
        fastest = np.sort(own, axis=-1)[:, -FEW:]
        speeds = np.stack(
            [
                np.hypot(camera[0], camera[1]),
                speed.sum(-1) * _PER_CELL,
                fastest.sum(-1) * np.float32(1 / FEW),
                own.sum(-1) * _PER_CELL,
            ],
            axis=1,
        )
        levels = np.log(speeds + FLOOR)  # (lags, 4)
        changes = np.log(change.sum(-1) * _PER_CELL + np.float32(LEAST_CHANGE))
        newest = np.stack([flow[0], flow[1], np.log(own + FLOOR)], axis=1)
        last = self._smooth[(now - 1) % len(self._smooth)] if now else newest
        smooth = last + np.float32(max(LEAST_WEIGHT, 1 / (now + 1))) * (newest - last)  # (lags, 3, cells)
        self._smooth[now % len(self._smooth)] = smooth
        earlier = self._smooth[[max(now - j, 0) % len(self._smooth) for j in BACK]]  # (back, lags, 3, cells)
        turns, starts = _compared(smooth, earlier)
        return np.concatenate([levels, changes[:, None], turns, starts], axis=1).reshape(-1)


MEMORY = (48, 96, 192, 384)
"""Spans of the memory, in frames."""
RECENT = 10
"""The memory begins so many frames ago: motion that still goes on isn't a repetition."""
USUAL = (1, 3)
"""Places in `MEMORY` of the spans whose mean distance is known, too."""
NEAR_FLOOR = np.float32(0.1)
_SPANS, _USUAL = np.array(MEMORY) - RECENT, np.array(USUAL)


class MotionMemory:
    """Whether one stream moved like this before: six numbers.

    Each is the logarithm of a distance between the motion cues now and earlier ones: of the smallest in the
    last 2, 4, 8 and 16 s, without the last 0.4 s, and of the mean in the last 4 and 16 s.
    """

    size = len(MEMORY) + len(USUAL)

    def __init__(self) -> None:
        # Two copies of a ring, so that the last frames always stand in a row.
        self._ring: Floats = np.empty((2, MEMORY[-1] + 1, len(MotionCues.names)), np.float32)
        self.state_bytes = self._ring.nbytes
        self._seen = 0

    def reset(self) -> None:
        """Forget everything."""
        self._seen = 0

    def update(self, motion: Floats) -> Floats:
        """Take the next frame's motion cues, float32, (45,); the distances, float32, (6,)."""
        now, length = self._seen, MEMORY[-1] + 1
        self._seen += 1
        self._ring[:, now % length] = motion
        newest = now % length + length
        known = slice(newest - min(now, MEMORY[-1]), newest - min(now, RECENT) + 1)
        apart = self._ring.reshape(2 * length, -1)[known] - motion
        distance = np.sqrt(np.einsum("ij,ij->i", apart, apart))[::-1]  # the newest first
        last = np.minimum(_SPANS, len(distance) - 1)
        usual = last[_USUAL]
        means = np.add.accumulate(distance)[usual] / (usual + 1)
        nearest = np.minimum.accumulate(distance)[last]
        return np.log(np.concatenate([nearest, means]) + NEAR_FLOOR).astype(np.float32)


def _compared(smooth: Floats, earlier: Floats) -> tuple[Floats, Floats]:
    """The flow and the speeds against earlier ones: (lags, 4) and (lags, 6)."""
    lags = len(LAGS)
    flow = smooth[:, :2].reshape(lags, -1)
    old = earlier[:, :, :2].reshape(len(BACK), lags, -1)
    shifted = flow + np.float32(1e-3)  # a still picture points somewhere
    dots = np.einsum("lf,blf->bl", shifted, old)
    norms = np.sqrt(np.einsum("lf,lf->l", shifted, shifted) * np.einsum("blf,blf->bl", old, old))
    turn = (1 - dots / np.maximum(norms, np.float32(1e-6))) / 2
    moved = flow - old
    distance = np.sqrt(np.einsum("blf,blf->bl", moved, moved)) * np.float32(1 / BLOCKS)
    turns = np.stack([turn, np.log(distance + FLOOR)], axis=-1)  # (back, lags, 2)
    gain = np.sort(smooth[:, 2] - earlier[:, :, 2], axis=-1)  # (back, lags, cells)
    starts = np.stack(
        [
            gain[..., -MOST:].sum(-1) * np.float32(1 / MOST),
            gain[..., :MOST].sum(-1) * np.float32(1 / MOST),
            np.abs(gain).sum(-1) * _PER_CELL,
        ],
        axis=-1,
    )  # (back, lags, 3)
    return turns.transpose(1, 0, 2).reshape(lags, -1), starts.transpose(1, 0, 2).reshape(lags, -1)


def blurred(picture: Floats) -> Floats:
    """The picture (H, W) under [1 2 1] / 4 in both directions, its borders repeated outwards."""
    rows = picture + picture
    rows[1:] += picture[:-1]
    rows[:-1] += picture[1:]
    rows[[0, -1]] += picture[[0, -1]]
    both = rows + rows
    both[:, 1:] += rows[:, :-1]
    both[:, :-1] += rows[:, 1:]
    both[:, [0, -1]] += rows[:, [0, -1]]
    both *= np.float32(1 / 16)
    return both


def block_flow(picture: Floats, before: Floats) -> tuple[Floats, Floats]:
    """The flow from earlier pictures to this one, and the root of the mean squared change.

    Args:
        picture: (56, 56).
        before: Earlier ones, (n, 56, 56).

    Returns:
        (2, n, 196): to the right and down, in pixels, at most 4 each; and (n, 196).
    """
    change = picture - before
    between = (picture + before) * np.float32(0.5)  # of which the gradient is the mean of both gradients
    right, down = _gradient(between, 2), _gradient(between, 1)
    products: Floats = np.empty((6, *change.shape), np.float32)
    factors = ((right, right), (right, down), (down, down), (right, change), (down, change), (change, change))
    for out, (one, other) in zip(products, factors, strict=True):
        np.multiply(one, other, out=out)
    means = (BOX @ products) @ BOX.T  # (6, n, 14, 14); each a small product, which BLAS does in one thread
    a, b, c, d, e, squares = means.reshape(6, len(before), CELLS)
    a = a + STIFF
    c = c + STIFF
    flow = np.stack([b * e - c * d, b * d - a * e])
    flow /= a * c - b * b
    return np.minimum(np.maximum(flow, -FASTEST), FASTEST), np.sqrt(np.maximum(squares, 0))


def _gradient(z: Floats, axis: int) -> Floats:
    """Central differences along an axis, one-sided at the borders; faster than `np.gradient`."""
    gradient = np.empty_like(z)
    along, out = z.swapaxes(0, axis), gradient.swapaxes(0, axis)
    np.subtract(along[2:], along[:-2], out=out[1:-1])
    out[1:-1] *= np.float32(0.5)
    out[0], out[-1] = along[1] - along[0], along[-1] - along[-2]
    return gradient


def _box() -> Floats:
    """Weights (14, 56) of the mean over each block of 4 and its two neighbours, the borders repeated."""
    blocks = np.repeat(np.eye(BLOCKS), _BLOCK, axis=1) / _BLOCK
    ends = np.pad(blocks, ((1, 1), (0, 0)), mode="edge")
    return np.asarray((ends[:-2] + ends[1:-1] + ends[2:]) / 3, np.float32)


BOX = _box()
