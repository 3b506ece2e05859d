"""Runs a benchmark: makes everything ready, then measures in turns, each thing once per turn."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.detector import Model, SourceRun
from ongebd.errors import MissingExtraError, OngebdError
from ongebd.lab.benchmark.cost import cost
from ongebd.lab.benchmark.machine import cores, machine
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.result import BenchResult, MethodResult, VideoResult, WayResult
from ongebd.lab.benchmark.subjects import Subject, subjects
from ongebd.lab.benchmark.timing import Cell, OneByOne, Run, Sample, Steps
from ongebd.lab.benchmark.ways import Way, open_ways
from ongebd.pool.pool import open_runtime
from ongebd.types import ImageU8
from ongebd.video import VideoReader

PYSCENEDETECT = "PySceneDetect AdaptiveDetector, its own program"


def count_frames(path: Path) -> int:
    """The frames of a file that can be decoded; reading it once also brings it into the system's memory.

    Raises:
        SourceError: It can't be read.
    """
    with VideoReader(str(path), 1.0, short_side=64) as video:
        for _frame in video:
            pass
        return video.decoded


def read_by_model(model: Model, path: Path) -> Run:
    """A model on a file. A turn is the whole file."""

    def read(_seconds: float) -> Sample:
        began = time.perf_counter()
        with SourceRun(str(path), model) as run:
            for _event in run:
                pass
        return Sample(run.video.decoded, time.perf_counter() - began)

    return read


def read_by_pyscenedetect(path: Path, frames: int) -> Run:
    """PySceneDetect's own program on a file, with its own decoder."""

    def read(_seconds: float) -> Sample:
        package = import_module("scenedetect")
        began = time.perf_counter()
        package.detect(str(path), package.AdaptiveDetector())
        return Sample(frames, time.perf_counter() - began)

    return read


Progress = Callable[[str, int, int], object]
"""Takes what is being done, how many parts are done, and of how many, as far as is known."""
Named = tuple[str, Cell]

PICTURES, FEATURES = 16, 8
SOURCE = (1280, 720)
"""The assumed size of the source; a reader brings its frames to the method's size."""


class Bench:
    """One benchmark. `result` has what was measured so far, so that an interrupted one is not lost."""

    def __init__(self, plan: BenchPlan, progress: Progress = lambda _what, _done, _of: None) -> None:
        self.plan = plan
        self.result = BenchResult(plan, machine(plan.device))
        self._progress = progress
        self._done = 0
        self._parts = 0
        self._subjects: list[Subject] = []

    def run(self) -> BenchResult:
        """Measure everything.

        Raises:
            ConfigError: A named method is not available, or not on this device.
            MissingExtraError: A package for one is not installed.
            SourceError: The video can't be read.
        """
        plan, notes = self.plan, self.result.notes
        if find_spec("torch") is None:
            notes.append("torch isn't installed: can't compare with eager mode or count GFLOPs")
        with ExitStack() as held, _torch_threads(plan.threads):
            if plan.video is not None:
                self._say("reading the video")
                self.result.video = VideoResult(plan.video.name, count_frames(plan.video), [])
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="ongebd-bench-")))
            self._subjects, self.result.left_out = subjects(plan, folder, self._say)
            cells = [*self._prepare(held), *self._prepare_many(held)]
            self._parts = plan.repeats * len(cells)
            self._measure(cells)
            if plan.video is not None and self.result.video is not None:
                self._read(plan.video, self.result.video)
        self.result.complete = True
        return self.result

    def _say(self, what: str) -> None:
        self._progress(what, self._done, self._parts)

    def _measure(self, cells: list[Named]) -> None:
        for _ in range(self.plan.repeats):
            for what, cell in cells:
                self._say(what)
                cell.turn(self.plan.seconds)
                self._done += 1
                self.result.measured = True

    def _prepare(self, held: ExitStack) -> list[Named]:
        """Open every method in every way; what to measure of one stream."""
        cells: list[Named] = []
        kept = []
        for each in self._subjects:
            self._say(f"making {each.name} ready")
            try:
                ways = open_ways(each, self.plan)
            except OngebdError as problem:
                if self.plan.methods is not None:
                    raise
                self.result.left_out[each.name] = str(problem)
                continue
            kept.append(each)
            method = MethodResult(each.name, each.note, cost(each.plain))
            self.result.methods.append(method)
            for way in ways:
                held.callback(way.close)
                parts = _parts_of(way, each)
                method.ways.append(WayResult(way.name, way.startup, way.device_bytes, *parts.values()))
                cells += [(f"{each.name}, {way.name}: {part}", cell) for part, cell in parts.items()]
        self._subjects = kept
        return cells

    def _prepare_many(self, held: ExitStack) -> list[Named]:
        """Open a runtime for each method, with room for all its streams."""
        cells: list[Named] = []
        plan, most = self.plan, max(self.plan.streams, default=0)
        for each, method in zip(self._subjects, self.result.methods, strict=True):
            if not most or each.chunk > 1:  # which waits for a hundred frames, then works on them together
                continue
            self._say(f"making {each.name} ready for {most} streams")
            options: dict[str, Any] = {"max_batch": most}
            if plan.on_gpu:
                options |= {"max_streams": sum(plan.streams), "compiles": False}
            precision = plan.precision if plan.on_gpu else None
            runtime = open_runtime(each.model, plan.device, precision, **options)
            held.callback(runtime.close)
            frames = _pictures(each, 4 * PICTURES)
            for streams in plan.streams:
                cell = method.many[streams] = Cell(Steps(runtime, each.model, streams, frames))
                cells.append((f"{each.name}, {streams} streams", cell))
        return cells

    def _read(self, path: Path, video: VideoResult) -> None:
        """Read the file by every method, and by PySceneDetect's own program."""
        for each in self._subjects:
            if not each.note or self.plan.methods is not None:  # random weights only on request
                video.rows.append((each.name, Cell(read_by_model(each.model, path))))
        if find_spec("scenedetect") is not None:
            video.rows.append((PYSCENEDETECT, Cell(read_by_pyscenedetect(path, video.frames))))
        else:
            self.result.notes.append(str(MissingExtraError.of("PySceneDetect", "peers")))
        self._parts += self.plan.repeats * len(video.rows)
        with _torch_threads(cores()):  # for TransNetV2 and other networks of torch
            self._measure([(f"{name} through {path.name}", cell) for name, cell in video.rows])


def _parts_of(way: Way, subject: Subject) -> dict[str, Cell]:
    """What to measure of one stream in one way."""
    frames, backbone = _pictures(subject), subject.plain.backbone
    features = [backbone.embed(backbone.crop(frame)[np.newaxis])[0] for frame in frames[:FEATURES]]

    steps: dict[str, Callable[[int], object]] = {
        "features": lambda n: way.features(frames[n % PICTURES]),
        "method": lambda n: way.method(features[n % FEATURES], n / 24),
        "overall": lambda n: way.overall(frames[n % PICTURES], n / 24),
    }
    return {
        part: Cell(OneByOne(step, 1 if part == "features" else subject.chunk)) for part, step in steps.items()
    }


def _pictures(subject: Subject, count: int = PICTURES) -> list[ImageU8]:
    """Noise, of the size that a reader would bring a 720p source to."""
    width, height = subject.model.backbone.view.size(*SOURCE)
    random = np.random.default_rng(0)
    return [random.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(count)]


def _torch_threads(count: int) -> AbstractContextManager[None]:
    """Let torch, if it is there, compute in so many threads within the block."""
    if find_spec("torch") is None:
        return nullcontext()
    import torch

    from ongebd.backbones.torch_backbone import computing_threads

    return computing_threads(count, torch.device("cpu"))
