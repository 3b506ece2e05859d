"""Runs the streams of one model on a GPU (or, for tests, as tensors on the CPU). Needs torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from queue import Empty, SimpleQueue
from time import perf_counter

import numpy as np
import numpy.typing as npt
import torch

from ongebd.backbones.whole_picture import WholePicture
from ongebd.detector.config import StreamConfig
from ongebd.detector.models import Model
from ongebd.errors import ConfigError, FeatureError
from ongebd.pool.gpu.discriminator import SETTINGS
from ongebd.pool.gpu.engine import Engine
from ongebd.pool.gpu.lane import DeviceLane, settings_row
from ongebd.pool.gpu.ledger import Ledger
from ongebd.pool.gpu.networks import device_network
from ongebd.pool.gpu.pinned import Pinned, address_of, pin, ready
from ongebd.pool.gpu.resize import CropPlan, plan_crop
from ongebd.pool.gpu.scorers import batched_scorer
from ongebd.pool.gpu.uploads import DIRECT, Given, Stage, Uploader, in_order
from ongebd.pool.gpu.views import SpeaksInViews
from ongebd.pool.runtime.base import Outcome, Window, Work, check_picture
from ongebd.types import Feature, ImageU8

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""The precisions by name. In float32 a convolution is float32 indeed, not TF32 as by PyTorch's default."""


_LARGE = 64  # rows


class DeviceStep:
    """Frames of which the device is working out the verdicts."""

    def __init__(
        self, runtime: GpuRuntime, stage: Stage, work: Sequence[Work[DeviceLane]], bucket: int
    ) -> None:
        self._runtime = runtime
        self._stage = stage
        self._work = work
        self._bucket = bucket

    def finish(self) -> list[Outcome]:
        """Wait for the verdicts, and let each stream's ledger take its own."""
        if self._runtime.engine.graphs:
            self._stage.done[self._bucket <= DIRECT].synchronize()
        verdicts = self._stage.verdicts[: len(self._work)].tolist()
        self._runtime.give_back(self._stage)
        outcomes: list[Outcome] = []
        for work, verdict in zip(self._work, verdicts, strict=True):
            try:
                outcomes.append(work.lane.ledger.take(work.time, verdict))
            except FeatureError as problem:
                outcomes.append(problem)
        return outcomes


class TwoSteps:
    """A step of pictures and one of features, begun as one; outcomes come in the order of the work."""

    def __init__(self, parts: Sequence[tuple[Sequence[int], DeviceStep]]) -> None:
        self._parts = parts

    def finish(self) -> list[Outcome]:
        """Wait for both."""
        placed: dict[int, Outcome] = {}
        for places, step in self._parts:
            placed |= zip(places, step.finish(), strict=True)
        return [placed[place] for place in sorted(placed)]


class GpuRuntime:
    """Runs streams on a GPU. `begin` and `finish` are for one thread each; `accept` is for any.

    Decisions are not a CPU's to the bit: see docs/runtime.md for how near they come.

    Args:
        model: A loaded model whose backbone and method have a GPU form.
        device: "cuda" or "cuda:N"; "cpu" computes the same as tensors, slowly, for tests.
        precision: In what backbone and method compute: "float32", "bfloat16" or "float16". Errors, queue and
            decision are float64 always.
        config: Settings of which `delta` is the longest queue that a stream may have and `window` every
            stream's; None takes the model's.
        max_streams: How many streams there may be at once; each takes `state_bytes` of the GPU's memory.
        max_batch: The most frames in one step.
        compiles: Whether `torch.compile` joins the method's small kernels: seconds at the start, for some
            tens of microseconds a step.
        cache_dir: Where compiled kernels are kept between runs (it sets TORCHINDUCTOR_CACHE_DIR for this
            process); None leaves that as it is.
        threads: Threads that copy many pictures at once into pinned memory; None takes a quarter of the
            processors, at least one and at most eight.

    Attributes:
        startup: Seconds that making it ready took: weights, compilation, and the graphs of every bucket.
        state_bytes: What is kept of one stream, on the device but for what views have said.

    Raises:
        ConfigError: There is no such device, the model has no GPU form, or a number is out of range.
        MissingExtraError: `onnx` is needed and not installed.
    """

    depth = 2

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
        cache_dir: Path | str | None = None,
        threads: int | None = None,
    ) -> None:
        began = perf_counter()
        if precision not in DTYPES:
            raise ConfigError(f"precision must be one of {', '.join(DTYPES)}, not {precision!r}")
        for name, number in (("max_streams", max_streams), ("max_batch", max_batch), ("threads", threads)):
            if number is not None and number < 1:
                raise ConfigError(f"{name} must be at least 1, not {number}")
        if cache_dir is not None:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.fspath(cache_dir)
        self._config = model.configured(config)
        self._device = _checked(device)
        self.device = str(self._device)
        self.precision = precision
        self.max_batch = max_batch
        dtype = DTYPES[precision]
        backbone = model.backbone
        self._dim, self._view, self._size = backbone.dim, backbone.view, backbone.input_size
        self._plans: dict[tuple[int, int], CropPlan] = {}
        with torch.inference_mode(), _on(self._device):
            scorer = batched_scorer(model._made(self._config), self._dim, self._device, dtype)
            self.engine = Engine(
                device_network(backbone, self._device, dtype),
                scorer,
                dim=self._dim,
                size=self._size,
                slots=max_streams,
                delta=1 if isinstance(scorer, SpeaksInViews) else self._config.discriminator().delta,
                buckets=_buckets(max_batch),
                device=self._device,
                compiles=compiles,
            )
            self._stages: SimpleQueue[Stage] = SimpleQueue()
            for _ in range(2 * self.depth + 1):  # a step may be two
                self._stages.put(Stage(self.engine, self._size, self._dim))
            for bucket in self.engine.buckets:
                self.engine.capture(bucket, embeds=True)
        self._views = scorer.views if isinstance(scorer, SpeaksInViews) else None
        self.state_bytes = self.engine.state.bytes_a_slot() + (self._views.state_bytes if self._views else 0)
        self._method = scorer.name
        share = max(1, min(8, (os.cpu_count() or 1) // 4))
        # Motion is told from the last bit of the pixels.
        exact = precision == "float32" or isinstance(backbone, WholePicture)
        resizing = torch.float32 if exact else torch.float16
        self._uploads = Uploader(self.engine, resizing, threads or share)
        self._settings = np.zeros((max_streams, len(SETTINGS)))
        self._free = list(range(max_streams - 1, -1, -1))
        self._freeing = threading.Lock()
        self.startup = perf_counter() - began

    def open(self, config: StreamConfig) -> DeviceLane:
        """A slot for a new stream.

        Raises:
            ConfigError: All are taken, or the stream wants another window or a longer queue than there is.
        """
        ours = self._config
        if self._views is None:
            if config.window != ours.window:
                wanted = f"every stream here has a window of {ours.window} frames"
                raise ConfigError(f"{wanted}, not {config.window}")
            if config.discriminator().delta > ours.discriminator().delta:
                raise ConfigError(f"delta may be at most {ours.delta} here, not {config.delta}")
        ledger = Ledger(config, self._method, self.precision, self._views)
        with self._freeing:
            if not self._free:
                raise ConfigError(f"all {len(self._settings)} streams are taken; set max_streams higher")
            slot = self._free.pop()
        self._settings[slot] = settings_row(config, judged_here=self._views is not None)
        return DeviceLane(slot, config, ledger, self.state_bytes, self._settings[slot])

    def release(self, lane: DeviceLane) -> None:
        """Give the slot to the next stream that opens."""
        with self._freeing:
            self._free.append(lane.slot)

    def accept(self, picture: ImageU8, copy: bool = True) -> Given:
        """Cut out of a picture what the backbone looks at."""
        picture = check_picture(picture)
        plan = self._plan(*picture.shape[:2])
        pixels = plan.cut(picture)
        return Given(pixels.copy() if copy else pixels, plan if plan.resizes else None)

    def window(self, height: int, width: int) -> Window:
        """What `accept` cuts out."""
        plan = self._plan(height, width)
        return *plan.rows, *plan.columns

    def pin(self, memory: npt.NDArray[np.uint8]) -> Pinned | None:
        """Let the GPU read pictures in that memory by itself, where it can."""
        return pin(memory, self._device)

    def accept_window(self, pixels: ImageU8, height: int, width: int, pinned: Pinned | None = None) -> Given:
        """A picture of that size, cut already."""
        plan = self._plan(height, width)
        pixels = check_picture(pixels)
        address = address_of(pixels, pinned)
        if address:
            ready(pixels.nbytes, self._device)
        return Given(pixels, plan if plan.resizes else None, pinned=pinned, address=address)

    def _plan(self, height: int, width: int) -> CropPlan:
        plan = self._plans.get((height, width))
        if plan is None:
            if len(self._plans) >= 64:  # a source of ever new sizes must not fill the memory
                self._plans.clear()
            plan = plan_crop(height, width, self._view, self._size)
            plan = self._plans.setdefault((height, width), plan)
        return plan

    def accept_feature(self, feature: Feature) -> Given:
        """A copy of a feature in float32.

        Raises:
            FeatureError: It has another shape.
        """
        with np.errstate(over="ignore"):  # the device finds the infinity
            given = np.array(feature, np.float32)
        if given.shape != (self._dim,):
            wanted = (self._dim,)
            raise FeatureError(f"the feature has shape {given.shape}, but the backbone's is {wanted}")
        return Given(feature=given)

    def begin(self, work: Sequence[Work[DeviceLane]]) -> DeviceStep | TwoSteps:
        """Enqueue the step, or two where some frames are features."""
        by_kind: dict[bool, list[int]] = {True: [], False: []}
        for place, item in enumerate(work):
            by_kind[item.given.feature is None].append(place)
        parts = []
        for embeds, places in by_kind.items():
            places.sort(key=lambda place: in_order(work[place].given))
            if not places:
                continue
            try:
                parts.append((places, self._begin([work[place] for place in places], embeds)))
            except BaseException:
                for _, step in parts:
                    step.finish()  # it has begun, and its memory must come back
                raise
        return TwoSteps(parts)

    def close(self) -> None:
        """Join the threads. The GPU's memory is free once nothing holds the runtime."""
        self._uploads.close()

    def give_back(self, stage: Stage) -> None:
        """A step's pinned memory is free again."""
        self._stages.put(stage)

    def _begin(self, work: Sequence[Work[DeviceLane]], embeds: bool) -> DeviceStep:
        bucket = self.engine.bucket(len(work))
        try:
            stage = self._stages.get_nowait()
        except Empty:
            raise RuntimeError(f"more than {self.depth} steps were begun and not finished") from None
        try:
            self._enqueue(stage, work, bucket, embeds)
        except torch.OutOfMemoryError:
            self.give_back(stage)
            raise ConfigError(
                f"{self._device}: too little memory for {len(work)} frames at once; give a smaller max_batch,"
                " or fewer streams"
            ) from None
        except BaseException:
            self.give_back(stage)
            raise
        return DeviceStep(self, stage, work, bucket)

    def _enqueue(self, stage: Stage, work: Sequence[Work[DeviceLane]], bucket: int, embeds: bool) -> None:
        engine, count = self.engine, len(work)
        with torch.inference_mode(), _on(self._device):
            engine.capture(bucket, embeds=embeds)
            with _current(engine):
                if embeds:
                    self._uploads.send_pictures(stage, [item.given for item in work])
                    engine.embed(bucket)
                else:
                    self._uploads.send_features(stage, [item.given.feature for item in work])
                self._write_control(stage, work, bucket)  # while the GPU is at the features
                self._uploads.send_control(stage)
                engine.decide(bucket)
                stage.down[:count].copy_(engine.verdicts[:count], non_blocking=True)
                if engine.graphs:
                    stage.done[bucket <= DIRECT].record()

    def _write_control(self, stage: Stage, work: Sequence[Work[DeviceLane]], bucket: int) -> None:
        """What the device is told of each row; see `ongebd.pool.gpu.engine.CONTROL`."""
        slots, count, control = [item.lane.slot for item in work], len(work), stage.control
        control[:count, 0] = slots
        control[:count, 1] = [item.lane.begins_anew() for item in work]
        control[:count, 2] = [item.time for item in work]
        control[:count, 3:] = self._settings[slots]
        control[count:bucket] = 0.0
        control[count:bucket, 0] = self.engine.spare


def _buckets(most: int) -> list[int]:
    """Powers of two, the largest batch itself, and of a large one three quarters: a step costs its bucket.

    >>> _buckets(6), _buckets(1), _buckets(128)[-3:]
    ([1, 2, 4, 6], [1], [64, 96, 128])
    """
    between = {3 * most // 4} if most >= _LARGE else set()
    return sorted({min(most, 2**power) for power in range(most.bit_length() + 1)} | between)


def _checked(text: str) -> torch.device:
    try:
        device = torch.device(text)
    except RuntimeError:
        raise ConfigError(f"device {text}: no such kind of device; give cpu, cuda or cuda:0") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {text}: streams run on cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device {text}: PyTorch sees {torch.cuda.device_count()} such GPUs here; give cpu")
    return device


def _on(device: torch.device) -> AbstractContextManager[object]:
    """That GPU is the current one meanwhile; nothing changes for the CPU."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _current(engine: Engine) -> AbstractContextManager[object]:
    """What is enqueued goes to the engine's stream."""
    return torch.cuda.stream(engine.main) if engine.graphs else nullcontext()
