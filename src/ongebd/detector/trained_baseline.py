"""A trained baseline's folder (`ongebd.baselines.weights`, beside `ongebd.json`), ready for streams."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ongebd.detector.scorers import Scorer
from ongebd.detector.trained import read_about
from ongebd.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from ongebd.baselines.network import OnlineNetwork


class TrainedBaseline:
    """One of the paper's online baselines with its weights; streams share it.

    Args:
        folder: What `ongebd train` wrote.
        device: A torch device; None is the CPU.
        threads: CPU threads for one frame.

    Attributes:
        about: Backbone, settings and summary.
        dim: D, numbers in a feature.

    Raises:
        ConfigError: The folder is damaged, or there is no such device.
        MissingExtraError: Torch is not installed.
    """

    def __init__(self, folder: Path, device: str | None = None, threads: int = 1) -> None:
        self.about = read_about(folder)
        self.name = folder.resolve().name
        self._threads = threads
        for module in ("torch", "safetensors"):
            if find_spec(module) is None:
                raise MissingExtraError.of(module, "train")
        from ongebd.baselines.weights import load_network

        try:
            self._network: OnlineNetwork[Any] = load_network(folder).to(device or "cpu")
        except (RuntimeError, AssertionError) as problem:  # torch says AssertionError where it has no CUDA
            raise ConfigError(f"device {device}: {problem}") from None
        self.dim = self._network.shape.dim

    def scorer(self) -> Scorer:
        """A new stream's."""
        from ongebd.baselines.network_scorer import NetworkScorer

        return NetworkScorer(self._network, self.name, self._threads)
