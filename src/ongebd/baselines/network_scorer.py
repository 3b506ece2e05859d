"""A trained baseline on one stream: each frame's probability of being a boundary. Needs torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ongebd.backbones.torch_backbone import computing_threads
from ongebd.baselines.network import OnlineNetwork
from ongebd.types import Feature


class NetworkScorer:
    """A scorer (`ongebd.detector.detector.Scorer`) that owns one stream's state; the network is shared.

    Args:
        network: In evaluation mode.
        name: What to call it.
        threads: CPU threads in which a frame is computed; None leaves them as PyTorch has them.
    """

    latency: int = 0

    def __init__(self, network: OnlineNetwork[Any], name: str, threads: int | None = None) -> None:
        self.name = name
        self.network = network
        self._threads = threads
        weights = next(network.parameters())
        self._device, self._dtype = weights.device, weights.dtype
        self.reset()
        self.state_bytes = sum(tensor.nbytes for tensor in self._state)

    @torch.inference_mode()
    def reset(self) -> None:
        """Forget everything seen."""
        self._state = self.network.start()
        self._first = True

    @torch.inference_mode()
    def update(self, feature: Feature, time: float) -> float | None:
        """The next frame's probability, from its feature (D,); None for the first, which ends nothing."""
        del time  # frames come at the rate that the network was trained at
        given = torch.from_numpy(np.asarray(feature, np.float32)).to(self._device, self._dtype)
        with computing_threads(self._threads, self._device):
            logit, self._state = self.network.step(given[None], self._state)
        first, self._first = self._first, False
        return None if first else float(logit.float().sigmoid()[0])

    @torch.inference_mode()
    def probabilities(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Those of all frames of a stream, (T, D) → (T,), in one call; the first one ends nothing."""
        given = torch.from_numpy(features).to(self._device, self._dtype)
        with computing_threads(self._threads, self._device):
            logits = self.network(given[None])[0]
        result: npt.NDArray[np.float64] = logits.float().sigmoid().double().cpu().numpy()
        return result

    def flush(self) -> list[float | None]:
        """Nothing is held back."""
        return []
