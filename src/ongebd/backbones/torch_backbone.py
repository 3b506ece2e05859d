"""Runs a backbone that is a PyTorch network, on the CPU or on a GPU."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from ongebd.backbones.base import Backbone, Features, FramesU8
from ongebd.errors import ConfigError

Precision = Literal["float32", "bfloat16", "float16"]
"""What the network computes in. Its features are always float32."""

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# ImageNet's, of pixels in [0, 1]. mmaction2's [123.675, 116.28, 103.53] and [58.395, 57.12, 57.375] are the
# same numbers for pixels in [0, 255].
_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)


class TorchBackbone(Backbone):
    """A PyTorch network that takes normalised pictures (N, 3, S, S) and gives features (N, D).

    Several threads may use one object. On the CPU each call computes in `threads` threads. In float32 on a
    GPU, PyTorch's own default holds: convolutions in TF32, which is as fine as float16.

    The network comes with its weights. It is put into inference mode, brought to the device (`cpu`, `cuda` or
    `cuda:N`) and the precision, and shared as `network`. For the sizes see `Backbone`.

    Attributes:
        identity: Name, first 12 digits of the sha256 of the weights, and the precision if not float32.
        normalisation: Mean and deviation of the pixels, 0 to 255, for each colour.

    Raises:
        ConfigError: The device doesn't exist.
    """

    normalisation = tuple(255 * value for value in _MEAN), tuple(255 * value for value in _STD)

    def __init__(
        self,
        name: str,
        network: nn.Module,
        *,
        dim: int = 2048,
        input_size: int = 224,
        resize_size: int = 256,
        device: str = "cpu",
        precision: Precision = "float32",
        threads: int = 1,
    ) -> None:
        self.device, self.precision, self.threads = torch_device(device), precision, threads
        suffix = "" if precision == "float32" else f"+{precision}"
        identity = f"{name}@{weights_hash(network.state_dict())[:12]}{suffix}"
        super().__init__(name, identity, dim, input_size, resize_size)
        self._dtype = _DTYPES[precision]
        network = network.eval().to(self.device, self._dtype)
        # Torch's own stubs lack this form.
        self.network: nn.Module = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._mean = torch.tensor(_MEAN, device=self.device).mul(255).view(1, 3, 1, 1)
        self._std = torch.tensor(_STD, device=self.device).mul(255).view(1, 3, 1, 1)

    def _embed(self, frames: FramesU8) -> Features:
        try:
            with torch.inference_mode(), computing_threads(self.threads, self.device):
                features = self.network(self._normalised(frames)).float().cpu()
        except torch.OutOfMemoryError:
            raise ConfigError(
                f"{self.name}: {len(frames)} pictures don't fit into the memory of {self.device};"
                " use a smaller --batch"
            ) from None
        result: Features = features.numpy()
        return result

    def _normalised(self, frames: FramesU8) -> Tensor:
        """(N, S, S, 3) uint8 → (N, 3, S, S), of mean 0 and deviation 1, with the channels last in memory."""
        if not frames.flags.writeable:
            frames = frames.copy()
        pictures = torch.from_numpy(frames).to(self.device).permute(0, 3, 1, 2)
        return ((pictures.float() - self._mean) / self._std).to(self._dtype)


def weights_hash(state: Mapping[str, Tensor]) -> str:
    """The sha256 of a network's tensors, whichever file they came from. Batch counters don't count."""
    digest = hashlib.sha256()
    for name in sorted(state):
        if not name.endswith("num_batches_tracked"):
            tensor = state[name].detach().cpu().float().contiguous()
            digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def computing_threads(threads: int | None, device: torch.device) -> Iterator[None]:
    """Let PyTorch compute in so many threads on the CPU; None leaves their number alone.

    The number belongs to the calling thread, and is restored at the end of the block.
    """
    before = torch.get_num_threads()
    if threads is None or device.type != "cpu" or before == threads:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_device(text: str) -> torch.device:
    """The device of that name.

    Raises:
        ConfigError: The device doesn't exist.
    """
    try:
        device = torch.device(text)
    except RuntimeError:
        raise ConfigError(f"--device {text}: unknown device; use cpu, cuda or cuda:0") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        found = torch.cuda.device_count()
        raise ConfigError(f"--device {text}: PyTorch sees {found} GPUs here; use --device cpu")
    return device
