"""What a benchmark is asked to measure."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from ongebd.backbones.cpu_runtime import CPU_RUNTIMES, check_runtime
from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError, MissingExtraError

MOST_STREAMS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """What to measure.

    Attributes:
        methods: Names as `ongebd.load` takes them; one of the paper's methods without its folder has random
            weights. None means all usual ones that are available.
        device: `cpu`, `cuda` or `cuda:N`.
        runtime: What runs networks on the CPU.
        precision: Of networks; None means float32 on the CPU and float16 on a GPU.
        streams: Numbers of streams to run together; empty for one stream alone.
        video: A file to read from beginning to end, on the CPU.
        repeats: Turns of each measurement.
        seconds: Of each turn.
        threads: CPU threads for one frame's inference.

    Raises:
        ConfigError: A value is out of range, or the device does not exist.
        MissingExtraError: A GPU is asked for, and torch is not installed.
    """

    methods: tuple[str, ...] | None = None
    device: str = "cpu"
    runtime: str = CPU_RUNTIMES[0]
    precision: str | None = None
    streams: tuple[int, ...] = ()
    video: Path | None = None
    repeats: Annotated[int, Range(least=1)] = 3
    seconds: Annotated[float, Range(above=0, most=600)] = 0.5
    threads: Annotated[int, Range(least=1)] = 1

    def __post_init__(self) -> None:
        check_fields(self, "--")
        if not self.on_gpu:
            check_runtime(self.runtime, self.computes_in)
            return
        _check_gpu(self.device)
        if self.video is not None:
            raise ConfigError("--video is read on the CPU; drop --device")
        if self.runtime != CPU_RUNTIMES[0]:
            raise ConfigError(f"{self.runtime} runs on the CPU only; drop --device")
        if self.computes_in not in ("float32", "bfloat16", "float16"):
            raise ConfigError(
                f"--precision must be float32, bfloat16 or float16 on a GPU, not {self.precision}"
            )

    @property
    def on_gpu(self) -> bool:
        """Whether streams run on a GPU."""
        return self.device != "cpu"

    @property
    def computes_in(self) -> str:
        """The precision."""
        return self.precision or ("float16" if self.on_gpu else "float32")


def _check_gpu(device: str) -> None:
    if find_spec("torch") is None:
        raise MissingExtraError.of("torch", "train")
    from ongebd.backbones.torch_backbone import torch_device

    if torch_device(device).type != "cuda":
        raise ConfigError(f"--device must be cpu, cuda or cuda:N, not {device}")


def parse_streams(text: str) -> tuple[int, ...]:
    """Numbers of streams from a list with commas, in order of size.

    >>> parse_streams("64,1, 16")
    (1, 16, 64)

    Raises:
        ConfigError: It isn't such a list.
    """
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not word.isdecimal() or not 1 <= int(word) <= MOST_STREAMS:
            raise ConfigError(
                f"--streams takes whole numbers from 1 to {MOST_STREAMS} with commas between, as 1,16,64;"
                f" not {word or 'nothing'!r}"
            )
    return tuple(sorted(set(map(int, words))))


def parse_methods(text: str) -> tuple[str, ...]:
    """Names from a list with commas, each once.

    Raises:
        ConfigError: It has no name.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise ConfigError("--methods names none; leave it out for all")
    return names
