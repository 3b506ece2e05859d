"""A benchmark as tables, and its files: `bench.md`, `bench.json` and `bench.png`."""

from __future__ import annotations

import json
from pathlib import Path

from ongebd.common.tables import NOTHING, Table, escaped, markdown_section
from ongebd.lab.benchmark.picture import draw
from ongebd.lab.benchmark.result import (
    BenchResult,
    MethodResult,
    VideoResult,
    WayResult,
    printed_cost,
    to_json,
)
from ongebd.lab.benchmark.timing import Cell, Spread, ratio
from ongebd.lab.benchmark.video import PYSCENEDETECT
from ongebd.lab.evaluation.report import write_files

PEERS = {"PySceneDetect": PYSCENEDETECT, "TransNetV2": "transnetv2"}


def bench_tables(result: BenchResult) -> list[Table]:
    """All tables that have a value."""
    tables = [_machine_table(result)]
    if result.methods:
        tables.append(_cost_table(result))
    if any(_measured(way) for method in result.methods for way in method.ways):
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
    """The report as Markdown, with a link to bench.png."""
    parts = ["# Speed", escaped(headline(result)) + ".", *map(markdown_section, bench_tables(result))]
    return "\n\n".join([*parts, "![frames a second](bench.png)"]) + "\n"


def write_bench(result: BenchResult, folder: Path) -> list[Path]:
    """Write the three files into a folder, which is made if necessary.

    Raises:
        ConfigError: They can't be written.
    """
    text = json.dumps(to_json(result), indent=1, ensure_ascii=False) + "\n"
    contents = {
        "bench.md": to_markdown(result).encode(),
        "bench.json": text.encode("utf-8", "backslashreplace"),
        "bench.png": draw(result),
    }
    return write_files(folder, contents)


def _measured(way: WayResult) -> bool:
    return all(cell.samples for cell in (way.features, way.method, way.overall))


def _machine_table(result: BenchResult) -> Table:
    plan = result.plan
    how = f"{plan.device}, {plan.computes_in}"
    how += "" if plan.on_gpu else f" by {plan.runtime}, {_counted(plan.threads, 'thread')} a frame"
    facts = [(name, str(value)) for name, value in result.machine.items()]
    facts += [("ours on", how), ("turns", f"{plan.repeats} of {plan.seconds:g} s each, all things in turn")]
    why: dict[str, list[str]] = {}
    for each in result.left_out:
        why.setdefault(each.why.removeprefix(f"{each.name}: "), []).append(each.name)
    notes = [f"Left out, {', '.join(names)}: {reason}" for reason, names in why.items()]
    return Table("What it was measured on", ("", ""), facts, [*notes, *result.notes])


def _cost_table(result: BenchResult) -> Table:
    gpu = result.plan.on_gpu
    header = ["method", "M parameters", "paper's", "GFLOPs", "whole window", "paper's", "state, bytes"]
    header += ["latency, frames", f"peak memory, MiB ({'GPU' if gpu else 'process'})"]
    rows = []
    for method in result.methods:
        cost, paper = method.cost, printed_cost(method.name)
        flops = None if cost.backbone_gflops is None else cost.backbone_gflops + (cost.method_gflops or 0)
        memory = method.ways[0].device_bytes if gpu and method.ways else method.memory
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
                _number(None if memory is None else memory / 2**20, ",.0f"),
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
        " the host, and its latencies. The paper's are of an RTX A6000."
    ]
    for note in dict.fromkeys(method.note for method in result.methods if method.note):
        titles = [method.title for method in result.methods if method.note == note]
        notes.append(f"{', '.join(titles)}: {note}.")
    return Table(f"One stream, frames/s on {result.where}", header, rows, notes)


def _many_table(result: BenchResult) -> Table:
    methods = [method for method in result.methods if method.many]
    streams = sorted({count for method in methods for count in method.many})
    pools = sorted({method.pool[0] for method in methods if method.pool})
    header = ["method", *(_counted(count, "stream") for count in streams)]
    header += [*(f"{count} of a StreamPool" for count in pools), f"p99 of a step of {streams[-1]}, ms"]
    rows = [_many_row(method, streams, pools) for method in methods]
    notes = [
        "Frames a second of all streams together, two steps under way. A pool is fed by four threads of the"
        " same process."
        + (" The method's small kernels are not compiled here." if result.plan.on_gpu else "")
    ]
    return Table(f"Many streams, frames/s on {result.where}", header, rows, notes)


def _many_row(method: MethodResult, streams: list[int], pools: list[int]) -> list[str]:
    speeds = [_spread(method.many[count].fps) for count in streams]
    pooled = [_spread(method.pool[1].fps) if method.pool else "" for _ in pools]
    return [method.title, *speeds, *pooled, _milliseconds(method.many[streams[-1]], "p99")]


def _video_table(video: VideoResult) -> Table:
    cells = dict(video.rows)
    peers = {name: cells[row] for name, row in PEERS.items() if row in cells}
    header = ("program", "source frames/s", *(f"× {name}" for name in peers))
    rows = [
        (name, _spread(cell.fps), *(_over(cell, peer) for peer in peers.values()))
        for name, cell in video.rows
        if cell.samples
    ]
    notes = [
        "Decoding included, start-up not. TransNetV2 is fed by our decoder, with all cores for its network."
    ]
    return Table(f"{video.name}, {video.frames} frames, from end to end", header, rows, notes)


def _over(cell: Cell, peer: Cell) -> str:
    found = ratio(cell, peer)
    return NOTHING if found is None or cell is peer else _spread(found, ".2f")


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
