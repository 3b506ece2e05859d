"""What was measured, as values and as plain JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ongebd.baselines.methods import METHODS
from ongebd.detector.trained import ESTIMATOR
from ongebd.lab.benchmark.cost import Cost
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.timing import Cell, Spread, ratio
from ongebd.lab.paper import PRINTED

FORMAT = 1


@dataclass(slots=True)
class WayResult:
    """One stream run in one way: see `Way` for its parts."""

    name: str
    startup: float
    device_bytes: int | None
    features: Cell
    method: Cell
    overall: Cell


@dataclass(slots=True)
class MethodResult:
    """All of one method.

    Attributes:
        name: As it was asked for.
        note: What a reader must know; may be empty.
        ways: Ours first.
        many: By the number of streams.
    """

    name: str
    note: str
    cost: Cost
    ways: list[WayResult] = field(default_factory=list)
    many: dict[int, Cell] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """As in the paper, or the name."""
        return _title(self.name)

    @property
    def over_eager(self) -> Spread | None:
        """How many times torch's own frames per second ours are, turn by turn."""
        return ratio(self.ways[0].overall, self.ways[1].overall) if len(self.ways) > 1 else None


@dataclass(slots=True)
class VideoResult:
    """A file read from beginning to end: its name, its frames, and how fast each program was."""

    name: str
    frames: int
    rows: list[tuple[str, Cell]]


@dataclass(slots=True)
class BenchResult:
    """All that was `measured`; `complete` once every turn was.

    `left_out` says why usual methods are not available here. `notes` are lines for the reader.
    """

    plan: BenchPlan
    machine: dict[str, str | int | float]
    methods: list[MethodResult] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    video: VideoResult | None = None
    measured: bool = False
    complete: bool = False

    @property
    def where(self) -> str:
        """The GPU or the processor."""
        return str(self.machine.get("card") or self.machine["processor"])


def printed_cost(name: str) -> dict[str, float | None]:
    """What the paper prints of a method's cost and speed; empty if nothing."""
    table = PRINTED["cost"]
    values = table.rows.get(_title(name).replace(" - ", "-"))
    return {} if values is None else dict(zip(table.columns, values, strict=True))


def _title(name: str) -> str:
    return METHODS[name].title if name in METHODS else "ESTimator" if name == ESTIMATOR else name


def to_json(result: BenchResult) -> dict[str, Any]:
    """A result as plain values: times in seconds, memory in bytes."""
    plan, video = asdict(result.plan), result.video
    del plan["video"]
    speeds = {} if video is None else {name: _values(cell) for name, cell in video.rows}
    return {
        "format": FORMAT,
        "complete": result.complete,
        "machine": result.machine,
        "plan": plan | {"precision": result.plan.computes_in},
        "methods": [_method(method) for method in result.methods],
        "left_out": [{"name": name, "why": why} for name, why in result.left_out.items()],
        "notes": result.notes,
        "video": video and {"name": video.name, "frames": video.frames, "frames_per_second": speeds},
    }


def _method(method: MethodResult) -> dict[str, Any]:
    paper = printed_cost(method.name)
    names = {"parameters_millions": "parameters-millions", "gflops": "gflops", "fps": "fps"}
    return {
        "name": method.name,
        "title": method.title,
        "note": method.note,
        "cost": asdict(method.cost),
        "paper": {name: paper[column] for name, column in names.items()} if paper else None,
        "ways": [_way(way) for way in method.ways],
        "over_eager": method.over_eager and asdict(method.over_eager),
        "many": {str(streams): _values(cell) for streams, cell in method.many.items()},
    }


def _way(way: WayResult) -> dict[str, Any]:
    parts = {name: _values(getattr(way, name)) for name in ("features", "method", "overall")}
    facts = {"name": way.name, "startup": way.startup, "device_memory": way.device_bytes}
    return {**facts, **parts, "latency": way.overall.percentiles()}


def _values(cell: Cell) -> dict[str, Any] | None:
    return None if cell.fps is None else asdict(cell.fps)
