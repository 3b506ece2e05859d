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
_TURNS, _STARTS = 5, 5 + 2 * len(BACK)  # where the names of the last two lines begin
_COMPARED = len(BACK) * [0.5, 1 / BLOCKS] + len(BACK) * [1 / MOST, 1 / MOST, 1 / CELLS]
_SCALES = np.array([1, 1 / CELLS, 1 / FEW, 1 / CELLS, 1 / CELLS, *_COMPARED], np.float32)
_FLOORS = np.array(4 * [FLOOR] + [LEAST_CHANGE] + len(BACK) * [0, FLOOR] + len(BACK) * [0, 0, 0], np.float32)


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
        picture = blurred(luma.reshape(SIDE, SIDE) - mean(luma))
        self._lumas[now % len(self._lumas)] = picture
        before = self._lumas.take([max(now - lag, 0) % len(self._lumas) for lag in LAGS], axis=0)
        flow, change = block_flow(picture, before)
        ordered = np.sort(flow, axis=-1)
        camera = (ordered[..., CELLS // 2 - 1] + ordered[..., CELLS // 2]) * np.float32(0.5)  # (2, lags)
        own = np.hypot(*(flow - camera[..., None]))  # (lags, cells)
        newest: Floats = np.empty((len(LAGS), 3, CELLS), np.float32)
        newest[:, 0], newest[:, 1], newest[:, 2] = *flow, np.log(own + FLOOR)
        last = self._smooth[(now - 1) % len(self._smooth)] if now else newest
        smooth = np.subtract(newest, last, out=self._smooth[now % len(self._smooth)])
        smooth *= np.float32(max(LEAST_WEIGHT, 1 / (now + 1)))
        smooth += last
        cues: Floats = np.empty((len(LAGS), len(_NAMES)), np.float32)
        cues[:, 0] = np.hypot(*camera)
        for place, values in enumerate((np.hypot(*flow), np.sort(own, axis=-1)[:, -FEW:], own, change)):
            np.add.reduce(values, axis=-1, out=cues[:, 1 + place])
        earlier = [max(now - j, 0) % len(self._smooth) for j in BACK]
        _compare(smooth, self._smooth.take(earlier, axis=0), cues)
        cues *= _SCALES
        cues += _FLOORS
        return np.log(cues, out=cues, where=_FLOORS > 0).reshape(-1)


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


def mean(values: Floats) -> np.float32:
    """Of (n,); quicker than the method, with the same bits."""
    return np.float32(np.add.reduce(values) / np.float32(values.size))


def _compare(smooth: Floats, earlier: Floats, cues: Floats) -> None:
    """The flow and the speeds, (lags, 3, cells), against earlier ones, (back, lags, 3, cells)."""
    back, lags = earlier.shape[:2]
    turns = cues[:, _TURNS:_STARTS].reshape(lags, back, -1).T  # (2, back, lags)
    starts = cues[:, _STARTS:].reshape(lags, back, -1).T  # (3, back, lags)
    apart = smooth - earlier
    moved, old = (z[:, :, :2].reshape(back, lags, -1) for z in (apart, earlier))
    shifted = smooth[:, :2].reshape(lags, -1) + np.float32(1e-3)  # a still picture points somewhere
    dots = np.einsum("lf,blf->bl", shifted, old)
    norms = np.sqrt(np.einsum("lf,lf->l", shifted, shifted) * np.einsum("blf,blf->bl", old, old))
    np.subtract(1, dots / np.maximum(norms, np.float32(1e-6)), out=turns[0])
    np.sqrt(np.einsum("blf,blf->bl", moved, moved), out=turns[1])
    gain = np.sort(apart[:, :, 2], axis=-1)  # (back, lags, cells)
    for out, values in zip(starts, (gain[..., -MOST:], gain[..., :MOST], np.abs(gain)), strict=True):
        np.add.reduce(values, axis=-1, out=out)


def blurred(picture: Floats) -> Floats:
    """The picture (H, W) under [1 2 1] / 4 in both directions, its borders repeated outwards."""
    return _three_tap(_three_tap(picture, 0), 1) * np.float32(1 / 16)


def _three_tap(z: Floats, axis: int) -> Floats:
    """Under [1 2 1] along an axis."""
    step, last, along, out = z.strides[axis] // z.itemsize, z.shape[axis] - 1, z.swapaxes(0, axis), z + z
    out.reshape(-1)[step:] += z.reshape(-1)[:-step]
    out.reshape(-1)[:-step] += z.reshape(-1)[step:]
    border, outside = along[::last], out.swapaxes(0, axis)[::last]
    np.add(border + border + along[1 :: last - 2], border, out=outside)
    return out


def block_flow(picture: Floats, before: Floats) -> tuple[Floats, Floats]:
    """The flow from earlier pictures to this one, and the root of the mean squared change.

    Args:
        picture: (56, 56).
        before: Earlier ones, (n, 56, 56).

    Returns:
        (2, n, 196): to the right and down, in pixels, at most 4 each; and (n, 196).
    """
    between = picture + before  # twice the mean, whose gradient is the mean of both gradients
    right, down, change = factors = np.empty((3, *before.shape), np.float32)  # both gradients times four
    _differences(between, 2, out=right)
    _differences(between, 1, out=down)
    np.subtract(picture, before, out=change)
    products: Floats = np.empty((6, *before.shape), np.float32)
    np.multiply(right, factors, out=products[:3])
    np.multiply(down, factors[1:], out=products[3:5])
    np.multiply(change, change, out=products[5])
    means = (BOX @ products) @ BOX.T  # (6, n, 14, 14); each a small product, which BLAS does in one thread
    a, b, _, c, _, squares = means = means.reshape(6, len(before), CELLS)
    means[:4:3] += 16 * STIFF  # a and c
    flow = b * means[4:1:-2] - means[3::-3] * means[2:5:2]  # b e - c d, b d - a e
    flow /= (a * c - b * b) * np.float32(0.25)
    return np.minimum(np.maximum(flow, -FASTEST), FASTEST), np.sqrt(np.maximum(squares, 0))


def _differences(z: Floats, axis: int, out: Floats) -> None:
    """Of both neighbours along an axis; at the borders twice that of the last two."""
    step, last, flat = z.strides[axis] // z.itemsize, z.shape[axis] - 1, z.reshape(-1)
    np.subtract(flat[2 * step :], flat[: -2 * step], out=out.reshape(-1)[step:-step])
    z, out = z.swapaxes(0, axis), out.swapaxes(0, axis)
    np.multiply(z[1 :: last - 1] - z[: -1 : last - 1], np.float32(2), out=out[::last])


def _box() -> Floats:
    """Weights (14, 56) of the mean over each block of 4 and its two neighbours, the borders repeated."""
    blocks = np.repeat(np.eye(BLOCKS), _BLOCK, axis=1) / _BLOCK
    ends = np.pad(blocks, ((1, 1), (0, 0)), mode="edge")
    return np.asarray((ends[:-2] + ends[1:-1] + ends[2:]) / 3, np.float32)


BOX = _box()
