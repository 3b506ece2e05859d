"""What moves in the pictures of B streams: `MotionCues`, as tensors. Needs torch."""

from __future__ import annotations

import torch
from torch import Tensor

from ongebd.estimator.cues.motion import (
    BACK,
    BLOCKS,
    BOX,
    CELLS,
    FASTEST,
    FEW,
    FLOOR,
    LAGS,
    LEAST_CHANGE,
    LEAST_WEIGHT,
    MOST,
    SIDE,
    STIFF,
)
from ongebd.pool.gpu.cues.history import frames_ago, weight_of_newest, with_newest

# Plain numbers, which a compiler takes for constants.
_LEAST_SPEED, _STIFFNESS, _AT_MOST = float(FLOOR), float(STIFF), float(FASTEST)
_MIDDLE = slice(CELLS // 2 - 1, CELLS // 2 + 1)


class BatchedMotion:
    """The cues in the order of `MotionCues.names`, in float32 throughout.

    Of each stream the blurred pictures of the last 4 frames are kept, (4, 56, 56), and the smoothed flow and
    speeds of the last 12, (12, 3 lags, 3, 196), all float32.

    Args:
        device: Where to compute.
    """

    def __init__(self, device: torch.device) -> None:
        self._lags = torch.tensor(LAGS, device=device)
        self._back = torch.tensor(BACK, device=device)
        self._box = torch.from_numpy(BOX).to(device)
        self._pictures = torch.zeros(1, max(LAGS), SIDE, SIDE, device=device)
        self._smooth = torch.zeros(1, max(BACK), len(LAGS), 3, CELLS, device=device)

    def initial(self, streams: int) -> tuple[Tensor, Tensor]:
        """No pictures, and no motion."""
        return (
            self._pictures.expand(streams, -1, -1, -1),
            self._smooth.expand(streams, -1, -1, -1, -1),
        )

    def step(
        self, luma: Tensor, pictures: Tensor, smooth: Tensor, seen: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The cues of the next frame.

        Args:
            luma: (B, 3136), float32, 0 to 255, row by row.
            pictures: Of the frames before, (B, 4, 56, 56).
            smooth: Their smoothed flow and speeds, (B, 12, lags, 3, 196).
            seen: How many there were since the stream began, (B,), int64.

        Returns:
            (B, 45), float32; and the new pictures, flow and speeds to be kept.
        """
        picture = blurred((luma - luma.mean(1, keepdim=True)).view(-1, SIDE, SIDE))
        recent = with_newest(picture, pictures)
        flow, change = self._flow(picture[:, None], frames_ago(recent, self._lags, seen))
        camera = flow.sort(-1).values[..., _MIDDLE].mean(-1, keepdim=True)  # (B, lags, 2, 1)
        speed = torch.hypot(flow[:, :, 0], flow[:, :, 1])  # (B, lags, 196)
        apart = flow - camera
        own = torch.hypot(apart[:, :, 0], apart[:, :, 1])
        speeds = torch.stack(
            [
                torch.hypot(camera[:, :, 0, 0], camera[:, :, 1, 0]),
                speed.mean(-1),
                own.sort(-1).values[..., -FEW:].mean(-1),
                own.mean(-1),
            ],
            dim=-1,
        )
        levels = (speeds + _LEAST_SPEED).log()  # (B, lags, 4)
        changes = (change.mean(-1, keepdim=True) + LEAST_CHANGE).log()  # (B, lags, 1)

        newest = torch.cat([flow, (own + _LEAST_SPEED).log()[:, :, None]], dim=2)  # (B, lags, 3, 196)
        weight = weight_of_newest(LEAST_WEIGHT, seen, 1).view(-1, 1, 1, 1)
        before = torch.where((seen > 0).view(-1, 1, 1, 1), smooth[:, 0], newest)
        now = before + weight * (newest - before)
        history = with_newest(now, smooth)
        earlier = frames_ago(history, self._back, seen)  # (B, back, lags, 3, 196)
        cues = torch.cat([levels, changes, *_compared(now[:, None], earlier)], dim=-1)
        return cues.flatten(1), recent[:, :-1], history[:, :-1]

    def _flow(self, picture: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """See `block_flow`: (B, 1, 56, 56) and (B, lags, 56, 56) → (B, lags, 2, 196) and (B, lags, 196)."""
        change = picture - before
        right, down = _gradients((picture + before) * 0.5)
        factors = (right * right, right * down, down * down, right * change, down * change, change * change)
        products = torch.stack(factors)  # (6, B, lags, 56, 56)
        means = self._box @ (products @ self._box.T)  # (6, B, lags, 14, 14)
        a, b, c, d, e, squares = means.flatten(3).unbind(0)
        a, c = a + _STIFFNESS, c + _STIFFNESS
        flow = torch.stack([b * e - c * d, b * d - a * e], dim=2) / (a * c - b * b)[:, :, None]
        return flow.clamp(-_AT_MOST, _AT_MOST), squares.clamp_min(0).sqrt()


def _compared(now: Tensor, earlier: Tensor) -> tuple[Tensor, Tensor]:
    """Flow and speeds now, (B, 1, lags, 3, 196), against (B, back, lags, 3, 196).

    Returns:
        (B, lags, 4) and (B, lags, 6).
    """
    flow, old = now[..., :2, :].flatten(3), earlier[..., :2, :].flatten(3)  # (B, 1 or back, lags, 392)
    shifted = flow + 1e-3
    dots = (shifted * old).sum(-1)  # (B, back, lags)
    norms = (shifted.square().sum(-1) * old.square().sum(-1)).sqrt()
    turn = (1 - dots / norms.clamp_min(1e-6)) / 2
    distance = (flow - old).square().sum(-1).sqrt() / BLOCKS
    gain = (now[..., 2, :] - earlier[..., 2, :]).sort(-1).values  # (B, back, lags, 196)
    turns = torch.stack([turn, (distance + _LEAST_SPEED).log()], dim=-1)
    starts = [gain[..., -MOST:].mean(-1), gain[..., :MOST].mean(-1), gain.abs().mean(-1)]
    return _by_lag(turns), _by_lag(torch.stack(starts, dim=-1))


def _by_lag(values: Tensor) -> Tensor:
    """(B, back, lags, n) → (B, lags, back n)."""
    return values.transpose(1, 2).flatten(2)


def blurred(picture: Tensor) -> Tensor:
    """The pictures (B, H, W) under [1 2 1] / 4 in both directions, their borders repeated outwards."""
    rows = torch.cat([picture[:, :1], picture, picture[:, -1:]], dim=1)
    rows = rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]
    both = torch.cat([rows[:, :, :1], rows, rows[:, :, -1:]], dim=2)
    return (both[:, :, :-2] + 2 * both[:, :, 1:-1] + both[:, :, 2:]) / 16


def _gradients(z: Tensor) -> tuple[Tensor, Tensor]:
    """Central differences to the right and down, one-sided at the borders: (…, H, W) each."""
    (right,) = torch.gradient(z, dim=-1)
    (down,) = torch.gradient(z, dim=-2)
    return right, down
