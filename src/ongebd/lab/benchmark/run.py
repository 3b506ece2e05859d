"""Runs a benchmark: everything is made ready first, then measured in turns, each thing once a turn."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.baselines.methods import METHODS
from ongebd.detector.trained import ESTIMATOR
from ongebd.errors import OngebdError
from ongebd.lab.benchmark.cost import cost
from ongebd.lab.benchmark.footprint import peak_memory
from ongebd.lab.benchmark.machine import cores, machine
from ongebd.lab.benchmark.many import Flood, Steps
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.result import BenchResult, MethodResult, VideoResult, WayResult
from ongebd.lab.benchmark.subjects import LeftOut, Subject, subjects
from ongebd.lab.benchmark.timing import Cell, OneByOne
from ongebd.lab.benchmark.video import (
    PYSCENEDETECT,
    ThroughPySceneDetect,
    check_video,
    pyscenedetect_is_here,
    through,
)
from ongebd.lab.benchmark.ways import Way, open_ways
from ongebd.pool import PoolResult, StreamPool
from ongebd.pool.runtime import open_runtime
from ongebd.types import Feature, ImageU8

Progress = Callable[[str, int, int], object]
"""Told what is being done, how many parts are done, and of how many as far as is known."""

PICTURES, FEATURES = 16, 8
GPU_DELAY = 0.005
"""Seconds that a frame may wait for others in a pool on a GPU: its usual value there."""
SOURCE = (1280, 720)
"""The source that the frames are thought to come from; a reader brings them to the method's own size."""
WITHOUT_TORCH = "torch is not installed: no eager way to compare with, and no GFLOPs"


class Bench:
    """One benchmark. What is measured stands in `result` as it comes, so an interrupted one is not lost.

    Args:
        plan: What to measure.
        progress: Told how far it is.

    Attributes:
        result: What was measured so far.
    """

    def __init__(self, plan: BenchPlan, progress: Progress = lambda _what, _done, _of: None) -> None:
        self.plan = plan
        self.result = BenchResult(plan, machine(plan.device))
        self._progress = progress
        self._done = 0
        self._parts = 0
        self._subjects: list[Subject] = []
        self._video_frames = 0
        self._features: dict[int, list[Feature]] = {}  # by backbone; many methods share one

    def run(self) -> BenchResult:
        """Measure everything.

        Raises:
            ConfigError: A method that is named cannot be had, or not on this device.
            MissingExtraError: A package for one is not installed.
            SourceError: The video cannot be read.
        """
        if find_spec("torch") is None:
            self.result.notes.append(WITHOUT_TORCH)
        with ExitStack() as held, _torch_threads(self.plan.threads):
            if self.plan.video is not None:
                self._say("reading the video")
                self._video_frames = check_video(self.plan.video)
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="ongebd-bench-")))
            self._subjects, self.result.left_out = subjects(self.plan, folder, self._say)
            one = self._prepare(held)
            many = self._prepare_many(held)
            self._parts = self.plan.repeats * len(one + many)
            self._parts += 0 if self.plan.on_gpu else len(self._subjects)
            for _ in range(self.plan.repeats):
                self._turn(one + many)
            if self.plan.video is not None:
                self._read(self.plan.video, held)
            self._weigh()
        self.result.complete = True
        return self.result

    def _say(self, what: str) -> None:
        self._progress(what, self._done, self._parts)

    def _turn(self, cells: list[tuple[str, Cell]]) -> None:
        for what, cell in cells:
            self._say(what)
            cell.turn(self.plan.seconds)
            self._done += 1

    def _prepare(self, held: ExitStack) -> list[tuple[str, Cell]]:
        """Open every method in every way; what is to be measured of one stream."""
        cells = []
        kept = []
        for each in self._subjects:
            self._say(f"making {each.name} ready")
            try:
                ways = open_ways(each, self.plan)
            except OngebdError as problem:
                if self.plan.methods is not None:
                    raise
                self.result.left_out.append(LeftOut(each.name, str(problem)))
                continue
            kept.append(each)
            method = MethodResult(each.name, _title(each.name), each.note, cost(each.plain))
            self.result.methods.append(method)
            for way in ways:
                held.callback(way.close)
                parts = self._cells(way, each)
                method.ways.append(WayResult(way.name, way.startup, way.device_bytes, *parts))
                cells += [
                    (f"{each.name}, {way.name}: {part}", cell)
                    for part, cell in zip(("features", "method", "overall"), parts, strict=True)
                ]
        self._subjects = kept
        return cells

    def _cells(self, way: Way, subject: Subject) -> tuple[Cell, Cell, Cell]:
        """What is measured of one stream in one way: features, method, overall."""
        frames, features = _pictures(subject), self._some_features(subject)

        def embed(n: int) -> object:
            return way.features(frames[n % len(frames)])

        def judge(n: int) -> object:
            return way.method(features[n % len(features)], n / 24)

        def both(n: int) -> object:
            return way.overall(frames[n % len(frames)], n / 24)

        one_by_one = partial(OneByOne, chunk=subject.chunk)
        return Cell(OneByOne(embed)), Cell(one_by_one(judge)), Cell(one_by_one(both))

    def _some_features(self, subject: Subject) -> list[Feature]:
        """Of some frames, by the backbone itself."""
        backbone = subject.plain.backbone
        if id(backbone) not in self._features:
            frames = _pictures(subject, FEATURES)
            self._features[id(backbone)] = [
                backbone.embed(backbone.crop(frame)[np.newaxis])[0] for frame in frames
            ]
        return self._features[id(backbone)]

    def _prepare_many(self, held: ExitStack) -> list[tuple[str, Cell]]:
        """Open a runtime for each method, with room for all its streams."""
        cells: list[tuple[str, Cell]] = []
        if not self.plan.streams:
            return cells
        most = max(self.plan.streams)
        for each, method in zip(self._subjects, self.result.methods, strict=True):
            if each.chunk > 1:
                continue  # it waits for a hundred frames, then works on them at once
            self._say(f"making {each.name} ready for {most} streams")
            options: dict[str, Any] = {"max_batch": most}
            if self.plan.on_gpu:
                rooms = sum(self.plan.streams) + most
                options |= {"max_streams": rooms, "compiles": False}
            runtime = open_runtime(
                each.model, self.plan.device, self.plan.precision if self.plan.on_gpu else None, **options
            )
            delay = GPU_DELAY if self.plan.on_gpu else 0.0
            pool = StreamPool(each.model, runtime=runtime, max_delay=delay, on_result=_ignored)
            held.callback(pool.close)  # which closes the runtime
            frames = _pictures(each, 4 * PICTURES)
            for streams in self.plan.streams:
                steps = Steps(runtime, each.model, streams, frames)
                cell = method.many[streams] = Cell(steps)
                cells.append((f"{each.name}, {streams} streams", cell))
            if most > 1:
                cell = Cell(Flood(pool, most, frames))
                method.pool = (most, cell)
                cells.append((f"{each.name}, {most} streams of a pool", cell))
        return cells

    def _read(self, path: Path, held: ExitStack) -> None:
        """Read a file with every method that has weights, and beside them by PySceneDetect's own program."""
        rows: list[tuple[str, Cell]] = []
        for each in self._subjects:
            if each.note and self.plan.methods is None:
                continue  # random weights, and nobody asked
            reading = through(each, self.plan, path)
            if hasattr(reading, "close"):
                held.callback(reading.close)
            rows.append((each.name, Cell(reading)))
        if pyscenedetect_is_here():
            rows.append((PYSCENEDETECT, Cell(ThroughPySceneDetect(path, self._video_frames))))
        else:
            self.result.notes.append('PySceneDetect is not installed: pip install "ongebd[peers]"')
        self.result.video = VideoResult(path.name, self._video_frames, rows)
        self._parts += self.plan.repeats * len(rows)
        with _torch_threads(cores()):  # TransNetV2 and other networks of torch get them all
            for _ in range(self.plan.repeats):
                self._turn([(f"{name} through {path.name}", cell) for name, cell in rows])

    def _weigh(self) -> None:
        """The memory of each method, in a process of its own; of a GPU it is known already."""
        if self.plan.on_gpu:
            return
        for each, method in zip(self._subjects, self.result.methods, strict=True):
            self._say(f"memory of {each.name}")
            found = peak_memory(each, self.plan)
            if isinstance(found, int):
                method.memory = found
            else:
                self.result.notes.append(f"memory of {each.name}: not measured, {found}")
            self._done += 1


def _pictures(subject: Subject, count: int = PICTURES) -> list[ImageU8]:
    """Noise, uint8, of the size that a reader would give the method of a 720p source."""
    width, height = subject.model.backbone.view.size(*SOURCE)
    random = np.random.default_rng(0)
    return [random.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(count)]


def _title(name: str) -> str:
    if name in METHODS:
        return METHODS[name].title
    return "ESTimator" if name == ESTIMATOR else name


def _ignored(_result: PoolResult) -> None:
    """What a pool decides is not wanted here."""


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    """Let torch compute in so many threads meanwhile, if it is there."""
    if find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def benchmark(plan: BenchPlan, progress: Progress = lambda _what, _done, _of: None) -> BenchResult:
    """Run a benchmark from Python.

    Raises:
        ConfigError: A method that is named cannot be had, or not on this device.
        MissingExtraError: A package for one is not installed.
        SourceError: The video cannot be read.
    """
    return Bench(plan, progress).run()
