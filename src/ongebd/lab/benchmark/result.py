"""What was measured, as values and as plain JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ongebd.lab.benchmark.cost import Cost
from ongebd.lab.benchmark.paper import PAPER
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.subjects import LeftOut
from ongebd.lab.benchmark.timing import Cell, Spread, percentiles, ratio

FORMAT = 1


@dataclass(slots=True)
class WayResult:
    """One stream run in one way.

    Attributes:
        name: The way's.
        startup: Seconds.
        device_bytes: The most memory that it took of a GPU; None on the CPU.
        features: From frame to feature.
        method: From feature to decision.
        overall: From frame to decision.
    """

    name: str
    startup: float
    device_bytes: int | None
    features: Cell
    method: Cell
    overall: Cell

    @property
    def measured(self) -> bool:
        """Whether there is a figure of each part."""
        return bool(self.features.samples and self.method.samples and self.overall.samples)


@dataclass(slots=True)
class MethodResult:
    """All of one method.

    Attributes:
        name: As it was asked for.
        title: As in the paper's table, or the name.
        note: What a reader must know; empty where there is nothing.
        cost: Parameters and operations.
        ways: Ours first.
        many: By the number of streams.
        pool: How many streams were run through a pool, and how fast; None where none were.
        memory: Bytes of a process that runs it on the CPU alone; None where that is not known.
    """

    name: str
    title: str
    note: str
    cost: Cost
    ways: list[WayResult] = field(default_factory=list)
    many: dict[int, Cell] = field(default_factory=dict)
    pool: tuple[int, Cell] | None = None
    memory: int | None = None

    def over_eager(self) -> Spread | None:
        """How many times torch's own frames a second ours are, turn by turn; None without such a way."""
        return ratio(self.ways[0].overall, self.ways[1].overall) if len(self.ways) > 1 else None


@dataclass(slots=True)
class VideoResult:
    """A file, read from its beginning to its end.

    Attributes:
        name: The file's, without its folder.
        frames: That can be decoded.
        rows: Each program and how fast it was; frames are the source's.
    """

    name: str
    frames: int
    rows: list[tuple[str, Cell]]


@dataclass(slots=True)
class BenchResult:
    """All that was measured.

    Attributes:
        plan: What was asked for.
        machine: What it ran on.
        methods: In the order of the plan.
        left_out: Usual methods that cannot be had here.
        notes: What else a reader must know, one line each.
        video: The file, if one was asked for.
        complete: Whether all turns were measured.
    """

    plan: BenchPlan
    machine: dict[str, str | int | float]
    methods: list[MethodResult] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    video: VideoResult | None = None
    complete: bool = False

    @property
    def measured(self) -> bool:
        """Whether there is a figure at all."""
        cells = [
            cell for method in self.methods for way in method.ways for cell in (way.overall, way.features)
        ]
        cells += [cell for method in self.methods for cell in method.many.values()]
        cells += [cell for _, cell in self.video.rows] if self.video else []
        return any(cell.samples for cell in cells)


def to_json(result: BenchResult) -> dict[str, Any]:
    """A result as plain values: times in seconds, memory in bytes."""
    plan = {name: value for name, value in asdict(result.plan).items() if name != "video"}
    video = result.video
    return {
        "format": FORMAT,
        "complete": result.complete,
        "machine": result.machine,
        "plan": plan | {"precision": result.plan.computes_in},
        "methods": [_method(method) for method in result.methods],
        "left_out": [asdict(each) for each in result.left_out],
        "notes": result.notes,
        "video": video
        and {
            "name": video.name,
            "frames": video.frames,
            "frames_per_second": {name: _cell(cell) for name, cell in video.rows},
        },
    }


def _method(method: MethodResult) -> dict[str, Any]:
    printed = PAPER.get(method.name)
    over = method.over_eager()
    return {
        "name": method.name,
        "title": method.title,
        "note": method.note,
        "cost": asdict(method.cost),
        "memory": method.memory,
        "paper": printed
        and {"parameters_millions": printed.parameters, "gflops": printed.gflops, "fps": printed.fps},
        "ways": [
            {
                "name": way.name,
                "startup": way.startup,
                "device_memory": way.device_bytes,
                "features": _cell(way.features),
                "method": _cell(way.method),
                "overall": _cell(way.overall),
                "latency": percentiles(way.overall.latencies()),
            }
            for way in method.ways
        ],
        "over_eager": over and asdict(over),
        "many": {str(streams): _cell(cell) for streams, cell in method.many.items()},
        "pool": method.pool and {"streams": method.pool[0], "frames_per_second": _cell(method.pool[1])},
    }


def _cell(cell: Cell) -> dict[str, Any] | None:
    return None if cell.fps is None else asdict(cell.fps)
