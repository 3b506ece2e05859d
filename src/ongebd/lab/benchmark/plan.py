"""What a benchmark is asked for, and whether that makes sense."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ongebd.backbones.cpu_runtime import CPU_RUNTIMES, check_runtime
from ongebd.errors import ConfigError, MissingExtraError

MOST_STREAMS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """What to measure.

    Attributes:
        methods: Names as `ongebd.load` takes them, or of one of the paper's methods without its folder: that
            has random weights. None takes all that can be had.
        device: `cpu`, `cuda` or `cuda:N`.
        runtime: What runs networks on the CPU.
        precision: In what networks compute; None takes float32 on the CPU and float16 on a GPU.
        streams: Numbers of streams that are run at once; none for one stream alone.
        video: A file that is also read from its beginning to its end.
        repeats: Turns of each measurement.
        seconds: Of each turn.
        threads: CPU threads for one frame's inference.

    Raises:
        ConfigError: A value makes no sense, or there is no such device.
        MissingExtraError: A GPU is asked for, and torch is not installed.
    """

    methods: tuple[str, ...] | None = None
    device: str = "cpu"
    runtime: str = CPU_RUNTIMES[0]
    precision: str | None = None
    streams: tuple[int, ...] = ()
    video: Path | None = None
    repeats: int = 3
    seconds: float = 0.5
    threads: int = 1

    def __post_init__(self) -> None:
        for name, least in (("repeats", 1), ("threads", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"--{name} must be at least {least}, not {getattr(self, name)}")
        if not 0 < self.seconds <= 600:
            raise ConfigError(f"--seconds must be above 0 and at most 600, not {self.seconds:g}")
        if self.methods is not None and not self.methods:
            raise ConfigError("--methods names none; leave it out for all")
        check_device(self.device)
        if self.on_gpu:
            if self.runtime != CPU_RUNTIMES[0]:
                raise ConfigError(f"--runtime {self.runtime} is for the CPU; leave out --device")
            if self.precision not in (None, "float32", "bfloat16", "float16"):
                raise ConfigError(
                    f"--precision must be float32, bfloat16 or float16 on a GPU, not {self.precision}"
                )
        else:
            check_runtime(self.runtime, self.precision or "float32")

    @property
    def on_gpu(self) -> bool:
        """Whether streams run on a GPU."""
        return self.device != "cpu"

    @property
    def computes_in(self) -> str:
        """The precision."""
        return self.precision or ("float16" if self.on_gpu else "float32")


def check_device(device: str) -> None:
    """Refuse a device that there is not.

    Raises:
        ConfigError: It is none, or is not here.
        MissingExtraError: Torch is needed for it.
    """
    if device == "cpu":
        return
    kind, colon, number = device.partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise ConfigError(f"--device must be cpu, cuda or cuda:N, not {device}")
    if find_spec("torch") is None:
        raise MissingExtraError.of("torch", "train")
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise ConfigError(f"--device {device}: PyTorch sees no GPU here; leave out --device")
    if int(number or 0) >= count:
        raise ConfigError(
            f"--device {device}: PyTorch sees {count} GPU{'' if count == 1 else 's'}, from cuda:0"
        )


def parse_streams(text: str) -> tuple[int, ...]:
    """Numbers of streams out of a list with commas, in order of size.

    >>> parse_streams("64,1, 16")
    (1, 16, 64)

    Raises:
        ConfigError: It is no such list.
    """
    numbers = set()
    for part in text.split(","):
        word = part.strip()
        if not word.isdecimal() or not 1 <= int(word) <= MOST_STREAMS:
            raise ConfigError(
                f"--streams takes whole numbers from 1 to {MOST_STREAMS} with commas between, as 1,16,64;"
                f" {word or 'nothing'!r} is none"
            )
        numbers.add(int(word))
    return tuple(sorted(numbers))


def parse_methods(text: str) -> tuple[str, ...]:
    """Names out of a list with commas, each once.

    Raises:
        ConfigError: There is no name in it.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise ConfigError("--methods names none; leave it out for all")
    return names
