"""Runs the streams of one model on a GPU (or, for tests, as tensors on the CPU). Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from queue import SimpleQueue

import numpy as np
import torch

from ongebd.backbones.base import check_picture
from ongebd.backbones.onnx_backbone import WholePicture
from ongebd.backbones.torch_backbone import torch_device
from ongebd.common.settings import read_as
from ongebd.detector.config import StreamConfig
from ongebd.detector.models import Model
from ongebd.errors import ConfigError, FeatureError
from ongebd.pool.gpu.cuda import compile_gather, pin
from ongebd.pool.gpu.discriminator import SETTINGS
from ongebd.pool.gpu.engine import Engine
from ongebd.pool.gpu.networks import device_network
from ongebd.pool.gpu.resize import CropPlan, plan_crop
from ongebd.pool.gpu.scorers import batched_scorer
from ongebd.pool.gpu.slot import DeviceSlot
from ongebd.pool.gpu.uploads import DIRECT, Given, Staging, Uploader
from ongebd.pool.runtime import AtLeastOne, Finish, Outcome, Pixels, Runtime, Window, Work
from ongebd.types import Feature, ImageU8

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""The precisions by name. In float32, convolutions are float32, not TF32 as by PyTorch's default."""

_LARGE = 64  # rows


class GpuRuntime(Runtime):
    """Runs streams on a GPU. Call `begin` and `finish` from one thread each, `accept` from any.

    Decisions are not the CPU's to the bit: see docs/runtime.md for how near they come.

    Args:
        model: A loaded model whose backbone and method have a GPU form.
        device: "cuda" or "cuda:N"; "cpu" computes the same as tensors, slowly, for tests.
        precision: Of backbone and method: "float32", "bfloat16" or "float16". Errors, queue and decision are
            always float64.
        config: Settings whose `delta` is the longest queue that a stream may have, and whose `window` every
            stream has; None takes the model's.
        max_streams: How many streams may be open; each takes some of the GPU's memory (docs/runtime.md).
        max_batch: The most frames in one step.
        compiles: Whether `torch.compile` joins the method's small kernels: it takes seconds at the start and
            saves some tens of microseconds a step.

    Raises:
        ConfigError: The device doesn't exist, the model has no GPU form, or a number is out of range.
        MissingExtraError: `onnx` is needed and not installed.
    """

    def __init__(
        self,
        model: Model,
        *,
        device: str = "cuda",
        precision: str = "float16",
        config: StreamConfig | None = None,
        max_streams: int = 1024,
        max_batch: int = 256,
        compiles: bool = True,
    ) -> None:
        if precision not in DTYPES:
            raise ConfigError(f"precision must be one of {', '.join(DTYPES)}, not {precision!r}")
        max_streams = read_as(max_streams, AtLeastOne, "max_streams")
        self.max_batch = read_as(max_batch, AtLeastOne, "max_batch")
        self._config = model.configured(config)
        self._levels = model.levels
        self._device = torch_device(device)
        if self._device.type not in ("cpu", "cuda"):
            raise ConfigError(f"device {device}: streams run on cpu, cuda or cuda:N")
        dtype = DTYPES[precision]
        backbone = self._backbone = model.backbone
        with torch.inference_mode(), self._on_device():
            method = model.method(self._config)
            self._scorer = scorer = batched_scorer(method, backbone.dim, self._device, dtype)
            self.engine = Engine(
                device_network(backbone, self._device, dtype),
                scorer,
                backbone,
                slots=max_streams,
                delta=1 if scorer.cuts else self._config.discriminator().delta,
                buckets=_buckets(max_batch),
                device=self._device,
                compiles=compiles,
            )
            self._free_staging: SimpleQueue[Staging] = SimpleQueue()
            for _ in range(self.depth + 1):
                self._free_staging.put(Staging(self.engine))
        # Motion cues depend on the last bit of the pixels.
        exact = precision == "float32" or isinstance(backbone, WholePicture)
        resizing = torch.float32 if exact else torch.float16
        self._uploads = Uploader(self.engine, resizing)
        self._settings = np.zeros((max_streams, len(SETTINGS)))
        self._free = list(range(max_streams - 1, -1, -1))

    def open(self, config: StreamConfig) -> DeviceSlot:
        """A slot for a new stream.

        Raises:
            ConfigError: All are taken, or the stream wants another window or a longer queue than there is.
        """
        ours = self._config
        if not self._scorer.cuts:
            if config.window != ours.window:
                wanted = f"every stream here has a window of {ours.window} frames"
                raise ConfigError(f"{wanted}, not {config.window}")
            if config.discriminator().delta > ours.discriminator().delta:
                raise ConfigError(f"delta may be at most {ours.delta} here, not {config.delta}")
        try:
            number = self._free.pop()
        except IndexError:
            taken = f"all {len(self._settings)} streams are taken"
            raise ConfigError(f"{taken}; set max_streams higher") from None
        return DeviceSlot(number, config, self._scorer, self._settings[number], self._levels)

    def release(self, slot: DeviceSlot) -> None:
        """Give the slot to the next stream that opens."""
        self._free.append(slot.number)

    def restart_ahead(self, slot: DeviceSlot) -> None:
        """The next frame that is begun starts a new epoch."""
        slot.restart = True

    def retune_ahead(self, slot: DeviceSlot, config: StreamConfig) -> None:
        """Let the device use other knobs for the frames that are begun from now on."""
        slot.retune_ahead(config)

    def accept(self, picture: ImageU8, copy: bool = True) -> Given:
        """Cut out of a picture what the backbone looks at."""
        picture = check_picture(picture)
        plan = self._plan(*picture.shape[:2])
        pixels = plan.cut(picture)
        return Given(pixels.copy() if copy else pixels, plan if plan.weights else None)

    def accept_feature(self, feature: Feature) -> Given:
        """A copy of a feature in float32.

        Raises:
            FeatureError: It has another shape.
        """
        with np.errstate(over="ignore"):  # the device finds the infinity
            given = np.array(feature, np.float32)
        wanted = (self._backbone.dim,)
        if given.shape != wanted:
            raise FeatureError(f"the feature has shape {given.shape}, but the backbone's is {wanted}")
        return Given(feature=given)

    def window(self, height: int, width: int) -> Window:
        """What `accept` cuts out."""
        plan = self._plan(height, width)
        return *plan.rows, *plan.columns

    def accept_windows(self, height: int, width: int, windows: Pixels, memory: Pixels) -> list[list[Given]]:
        """Arrays of pictures of that size, already cut; the GPU reads them where they lie, if it can."""
        plan, pinned = self._plan(height, width), pin(memory, self._device)
        if pinned is not None:
            compile_gather(windows[0, 0].nbytes, self._device)

        def given(pixels: ImageU8) -> Given:
            address = 0 if pinned is None else pixels.ctypes.data
            return Given(pixels, plan if plan.weights else None, pinned=pinned, address=address)

        return [[given(pixels) for pixels in several] for several in windows]

    def begin(self, work: Sequence[Work]) -> Finish:
        """Enqueue the step: pictures in the first rows, then features."""
        order = sorted(range(len(work)), key=lambda place: work[place].given.order)
        work = [work[place] for place in order]
        staging = self._free_staging.get_nowait()
        try:
            done = self._enqueue(staging, work)
        except BaseException as problem:
            self._free_staging.put(staging)
            if not isinstance(problem, torch.OutOfMemoryError):
                raise
            much = f"{self._device}: too little memory for {len(work)} frames together"
            raise ConfigError(f"{much}; use a smaller max_batch or fewer streams") from None
        return partial(self._finish, order, work, staging, done)

    def close(self) -> None:
        """Join the threads. The GPU's memory is free once nothing holds the runtime."""
        self._uploads.threads.shutdown()

    def _finish(
        self, order: list[int], work: Sequence[Work], staging: Staging, done: torch.cuda.Event | None
    ) -> list[Outcome]:
        """Wait for a step's verdicts, and let each stream take its own; None: they are there already."""
        if done is not None:
            done.synchronize()
        verdicts = staging.verdicts[: len(work)].tolist()
        self._free_staging.put(staging)
        outcomes: dict[int, Outcome] = {}
        for place, item, verdict in zip(order, work, verdicts, strict=True):
            try:
                outcomes[place] = item.slot.decide(item.time, verdict)
            except FeatureError as problem:
                outcomes[place] = problem
        return [outcomes[place] for place in range(len(work))]

    def _enqueue(self, staging: Staging, work: Sequence[Work]) -> torch.cuda.Event | None:
        engine, count = self.engine, len(work)
        bucket = engine.bucket(count)
        given = [item.given for item in work]
        pictures = sum(item.feature is None for item in given)
        main = torch.cuda.stream(engine.main) if engine.graphs else nullcontext()
        with torch.inference_mode(), self._on_device(), main:
            if pictures:
                self._uploads.send_pictures(staging, given[:pictures])
                engine.embed(engine.bucket(pictures))
            if pictures < count:
                self._uploads.send_features(staging, given[pictures:], pictures)
            self._write_control(staging, work, bucket)  # while the GPU is at the features
            used = staging.control_bytes
            engine.uploaded[:used].copy_(staging.up[:used], non_blocking=True)
            engine.decide(bucket)
            staging.down[:count].copy_(engine.verdicts[:count], non_blocking=True)
            if not engine.graphs:
                return None
            done = staging.done[bucket <= DIRECT]
            done.record()
            return done

    def _write_control(self, staging: Staging, work: Sequence[Work], bucket: int) -> None:
        """What the device reads for each row; see `ongebd.pool.gpu.engine.CONTROL`."""
        slots, count, control = [item.slot.number for item in work], len(work), staging.control
        control[:count, 0] = slots
        control[:count, 1] = [item.slot.restart for item in work]
        control[:count, 2] = [item.time for item in work]
        control[:count, 3:] = self._settings[slots]
        control[count:bucket] = 0.0
        control[count:bucket, 0] = self.engine.spare
        for item in work:
            item.slot.restart = False

    def _plan(self, height: int, width: int) -> CropPlan:
        return plan_crop(height, width, self._backbone.view, self._backbone.input_size)

    def _on_device(self) -> AbstractContextManager[object]:
        return torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext()


def _buckets(most: int) -> list[int]:
    """How many rows a step may have. A step costs its bucket; each takes most of a second at the start.

    >>> _buckets(6), _buckets(1), _buckets(128)
    ([1, 6], [1], [1, 16, 32, 64, 96, 128])
    """
    powers = {2**power for power in range(4, most.bit_length()) if 2**power < most}
    return sorted({1, most} | powers | ({3 * most // 4} if most >= _LARGE else set()))
