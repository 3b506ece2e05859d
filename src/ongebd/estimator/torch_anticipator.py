"""A trained anticipator with torch, on a GPU or on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from ongebd.backbones.torch_backbone import computing_threads, torch_device
from ongebd.errors import ConfigError
from ongebd.estimator.anticipation import full_window
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.types import Feature

_WINDOWS = 512  # in one call


class TorchAnticipator:
    """The anticipator in a folder that `ongebd train` wrote. It keeps no state; share it freely.

    Args:
        folder: With `model.safetensors` and `config.json`.
        name: What to call it.
        device: A torch device: cpu, cuda, cuda:1, …
        threads: CPU threads in which a frame is computed; None leaves them as PyTorch has them.
    """

    def __init__(self, folder: Path, name: str, device: str = "cpu", threads: int | None = None) -> None:
        self.name = name
        self._threads = threads
        self.device = torch_device(device)
        self.model = load_anticipator(folder).to(self.device)
        self.window = self.model.config.window

    def anticipate(self, past: npt.NDArray[np.float32]) -> Feature:
        """f̂_t, (D,), from the features before it, (n, D) with 1 ≤ n ≤ L."""
        return self.anticipate_run(np.array(full_window(past, self.window), np.float32)).ravel()

    @torch.inference_mode()
    def anticipate_run(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """What comes after each window of a run of features: (F, D) with F ≥ L → (F − L + 1, D)."""
        out = np.empty((len(features) - self.window + 1, features.shape[1]), np.float32)
        with computing_threads(self._threads, self.device):
            for first in range(0, len(out), _WINDOWS):
                given = torch.from_numpy(features[first : first + _WINDOWS + self.window - 1]).to(self.device)
                out[first : first + _WINDOWS] = self.model(given[None])[0].float().cpu().numpy()
        return out


def load_anticipator(folder: Path) -> ConsistentEventAnticipator:
    """The network in a folder, in evaluation mode; ConfigError where its files are missing or damaged."""
    try:
        return ConsistentEventAnticipator.from_pretrained(folder).eval()
    except Exception as problem:  # noqa: BLE001 - safetensors and torch raise what a damaged file brings about
        raise ConfigError(f"{folder}: no trained anticipator ({' '.join(str(problem).split())})") from None
