"""A benchmark as tables, and its files: `bench.md` and `bench.json`."""

from __future__ import annotations

import json
from pathlib import Path

from ongebd.common.tables import NOTHING, Table, escaped, markdown_section
from ongebd.lab.benchmark.result import BenchResult, VideoResult, printed_cost, to_json
from ongebd.lab.benchmark.timing import Cell, Spread
from ongebd.lab.evaluation.report import write_files


def bench_tables(result: BenchResult) -> list[Table]:
    """All tables that have a value."""
    tables = [_machine_table(result)]
    if result.methods:
        tables.append(_cost_table(result))
    if any(way.overall.samples for method in result.methods for way in method.ways):
        tables.append(_stream_table(result))
    if any(cell.samples for method in result.methods for cell in method.many.values()):
        tables.append(_many_table(result))
    if result.video is not None and any(cell.samples for _, cell in result.video.rows):
        tables.append(_video_table(result.video))
    return tables


def headline(result: BenchResult) -> str:
    """The outcome in one line."""
    first = next((m for m in result.methods if m.ways and m.ways[0].overall.samples), None)
    if first is None:
        return "nothing was measured of one stream"
    text = (
        f"{first.title}: {_spread(first.ways[0].overall.fps)} frames/s over all, one stream on {result.where}"
    )
    if first.over_eager is not None:
        text += f", {_times(first.over_eager)} eager float32"
    return text if result.complete else f"{text}; stopped before its end"


def to_markdown(result: BenchResult) -> str:
    """The report as Markdown."""
    parts = ["# Speed", escaped(headline(result)) + ".", *map(markdown_section, bench_tables(result))]
    return "\n\n".join(parts) + "\n"


def write_bench(result: BenchResult, folder: Path) -> list[Path]:
    """Write both files into a folder, which is made if necessary.

    Raises:
        ConfigError: They can't be written.
    """
    text = json.dumps(to_json(result), indent=1, ensure_ascii=False) + "\n"
    contents = {
        "bench.md": to_markdown(result).encode(),
        "bench.json": text.encode("utf-8", "backslashreplace"),
    }
    return write_files(folder, contents)


def _machine_table(result: BenchResult) -> Table:
    plan = result.plan
    how = f"{plan.device}, {plan.computes_in}"
    how += "" if plan.on_gpu else f" by {plan.runtime}, {_counted(plan.threads, 'thread')} a frame"
    facts = [(name, str(value)) for name, value in result.machine.items()]
    facts += [("ours on", how), ("turns", f"{plan.repeats} of {plan.seconds:g} s each, all things in turn")]
    why: dict[str, list[str]] = {}
    for name, reason in result.left_out.items():
        why.setdefault(reason.removeprefix(f"{name}: "), []).append(name)
    notes = [f"Left out, {', '.join(names)}: {reason}" for reason, names in why.items()]
    return Table("What it was measured on", ("", ""), facts, [*notes, *result.notes])


def _cost_table(result: BenchResult) -> Table:
    gpu = result.plan.on_gpu
    header = ["method", "M parameters", "paper's", "GFLOPs", "whole window", "paper's", "state, bytes"]
    header += ["latency, frames", *(["GPU memory, MiB"] if gpu else [])]
    rows = []
    for method in result.methods:
        cost, paper = method.cost, printed_cost(method.name)
        flops = None if cost.backbone_gflops is None else cost.backbone_gflops + (cost.method_gflops or 0)
        memory = method.ways[0].device_bytes if gpu and method.ways else None
        rows.append(
            (
                method.title,
                f"{(cost.backbone_parameters + cost.method_parameters) / 1e6:.3f}",
                _number(paper["parameters-millions"], ".2f") if paper else "",
                _number(flops, ".3f"),
                _number(cost.window_gflops, ".2f"),
                _number(paper["gflops"], ".1f") if paper else "",
                f"{cost.state_bytes:,}",
                str(cost.latency),
                *([_number(None if memory is None else memory / 2**20, ",.0f")] if gpu else []),
            )
        )
    notes = [
        "Backbone and method together. GFLOPs are two for each multiplication with its addition, by torch's"
        " own counter, of the networks alone; “whole window”: each frame's window is computed in full."
        " The columns “paper's” are what the paper prints."
    ]
    return Table("Size and cost of a frame", header, rows, notes)


def _stream_table(result: BenchResult) -> Table:
    header = ["method", "way", "features", "model", "overall", "p50 ms", "p95 ms", "p99 ms", "× eager"]
    header += ["ready in, s", "paper's overall"]
    rows = []
    for method in result.methods:
        title, over, paper = method.title, method.over_eager, printed_cost(method.name)
        times = "" if over is None else _times(over)
        printed = _number(paper["fps"], ".1f") if paper else ""
        for way in method.ways:
            speeds = [_spread(cell.fps) for cell in (way.features, way.method, way.overall)]
            latencies = [_milliseconds(way.overall, name) for name in ("p50", "p95", "p99")]
            rows.append((title, way.name, *speeds, *latencies, times, f"{way.startup:.2f}", printed))
            title = times = printed = ""  # only in the first row of a method
    notes = [
        "Frames a second: median of the turns (smallest–largest). Features: from a frame to its feature;"
        " model: from a feature to the decision; overall: from a uint8 frame on the host to the decision on"
        " the host, and its latencies. The paper used an RTX A6000."
    ]
    if random := [method for method in result.methods if method.note]:
        notes.append(f"{', '.join(method.title for method in random)}: {random[0].note}.")
    return Table(f"One stream, frames/s on {result.where}", header, rows, notes)


def _many_table(result: BenchResult) -> Table:
    methods = [method for method in result.methods if method.many]
    streams = sorted({count for method in methods for count in method.many})
    header = [
        "method",
        *(_counted(count, "stream") for count in streams),
        f"p99 of a step of {streams[-1]}, ms",
    ]
    rows = [
        (
            method.title,
            *(_spread(method.many[count].fps) for count in streams),
            _milliseconds(method.many[streams[-1]], "p99"),
        )
        for method in methods
    ]
    note = "Frames a second of all streams together, two steps under way."
    note += " The method's small kernels are not compiled here." if result.plan.on_gpu else ""
    return Table(f"Many streams, frames/s on {result.where}", header, rows, [note])


def _video_table(video: VideoResult) -> Table:
    rows = [(name, _spread(cell.fps)) for name, cell in video.rows if cell.samples]
    note = "Decoding included, start-up not. TransNetV2 uses our decoder, and all cores for its network."
    title = f"{video.name}, {video.frames} frames, from end to end"
    return Table(title, ("program", "source frames/s"), rows, [note])


def _times(spread: Spread) -> str:
    return f"{_spread(spread, '.2f')} ×"


def _milliseconds(cell: Cell, name: str) -> str:
    at = cell.percentiles()
    return f"{1e3 * at[name]:.3g}" if at else NOTHING


def _spread(spread: Spread | None, form: str = "") -> str:
    """A median with its smallest and largest value, if there are several."""
    if spread is None:
        return NOTHING
    shape = form or (",.0f" if spread.median >= 100 else ".1f")
    around = f" ({spread.low:{shape}}–{spread.high:{shape}})" if len(spread.turns) > 1 else ""
    return f"{spread.median:{shape}}{around}"


def _number(value: float | None, shape: str) -> str:
    return NOTHING if value is None else format(value, shape)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
