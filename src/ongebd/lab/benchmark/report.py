"""A benchmark as tables, and its files: `bench.md`, `bench.json` and `bench.png`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ongebd.common.tables import NOTHING, Table, markdown_section
from ongebd.lab.benchmark.paper import PAPER
from ongebd.lab.benchmark.plot import draw
from ongebd.lab.benchmark.result import BenchResult, MethodResult, to_json
from ongebd.lab.benchmark.timing import Cell, Spread, percentiles, ratio
from ongebd.lab.benchmark.video import PYSCENEDETECT
from ongebd.lab.evaluation.report import write_files

FILES = ("bench.md", "bench.json", "bench.png")
PEERS = {"PySceneDetect": PYSCENEDETECT, "TransNetV2": "transnetv2"}
_MANY_DIGITS = 100


def bench_tables(result: BenchResult) -> list[Table]:
    """All tables, those without a figure left out."""
    some = [way for method in result.methods for way in method.ways if way.measured]
    tables = [_machine_table(result)]
    if result.methods:
        tables.append(_cost_table(result))
    if some:
        tables.append(_stream_table(result))
    if any(cell.samples for method in result.methods for cell in method.many.values()):
        tables.append(_many_table(result))
    if result.video is not None and any(cell.samples for _, cell in result.video.rows):
        tables.append(_video_table(result))
    return tables


def headline(result: BenchResult) -> str:
    """The outcome in one line."""
    first = next((m for m in result.methods if m.ways and m.ways[0].overall.samples), None)
    if first is None:
        return "nothing was measured of one stream"
    fps, over = first.ways[0].overall.fps, first.over_eager()
    text = f"{first.title}: {_spread(fps)} frames/s over all, one stream on {_where(result)}"
    text += f", {_times(over)} eager float32" if over is not None else ""
    return text if result.complete else f"{text}; stopped before its end"


def to_markdown(result: BenchResult, picture: str | None = None) -> str:
    """The report as Markdown."""
    parts = ["# Speed", headline(result) + ".", *map(markdown_section, bench_tables(result))]
    parts += [f"![frames a second]({picture})"] if picture else []
    return "\n\n".join(parts) + "\n"


def write_bench(result: BenchResult, folder: Path) -> list[Path]:
    """Write the three files into a folder, which is made where it is not there.

    Raises:
        ConfigError: They cannot be written.
    """
    text = json.dumps(to_json(result), indent=1, ensure_ascii=False) + "\n"
    contents = {
        "bench.md": to_markdown(result, "bench.png").encode(),
        "bench.json": text.encode("utf-8", "backslashreplace"),
        "bench.png": draw(result),
    }
    return write_files(folder, contents)


def _machine_table(result: BenchResult) -> Table:
    plan = result.plan
    facts = [(name, str(value)) for name, value in result.machine.items()]
    how = f"{plan.device}, {plan.computes_in}"
    how += "" if plan.on_gpu else f" by {plan.runtime}, {_counted(plan.threads, 'thread')} a frame"
    facts.append(("ours on", how))
    facts.append(("turns", f"{plan.repeats} of {plan.seconds:g} s each, all things in turn"))
    why: dict[str, list[str]] = {}
    for each in result.left_out:
        why.setdefault(each.why.removeprefix(f"{each.name}: "), []).append(each.name)
    notes = [f"Left out, {', '.join(names)}: {reason}" for reason, names in why.items()] + result.notes
    return Table("What it was measured on", ("", ""), facts, notes)


def _cost_table(result: BenchResult) -> Table:
    gpu = result.plan.on_gpu
    header = ["method", "M parameters", "paper's", "GFLOPs", "window anew", "paper's", "state, bytes"]
    header += ["latency, frames", f"peak memory, MiB ({'GPU' if gpu else 'process'})"]
    rows = []
    for method in result.methods:
        cost, printed = method.cost, PAPER.get(method.name)
        flops = None if cost.backbone_gflops is None else cost.backbone_gflops + (cost.method_gflops or 0)
        memory = method.ways[0].device_bytes if gpu and method.ways else method.memory
        rows.append(
            (
                method.title,
                f"{(cost.backbone_parameters + cost.method_parameters) / 1e6:.3f}",
                f"{printed.parameters:.2f}" if printed else "",
                _number(flops, ".3f"),
                _number(cost.window_gflops, ".2f"),
                f"{printed.gflops:.1f}" if printed else "",
                f"{cost.state_bytes:,}",
                str(cost.latency),
                _number(None if memory is None else memory / 2**20, ",.0f"),
            )
        )
    notes = [
        "Backbone and method together. GFLOPs are two for each multiplication with its addition, by torch's"
        " own counter, of the networks alone; “window anew” is a frame whose whole window is computed again."
        " The columns “paper's” are what the paper prints.",
    ]
    return Table("Size and cost of a frame", header, rows, notes)


def _stream_table(result: BenchResult) -> Table:
    header = ["method", "way", "features", "model", "overall", "p50 ms", "p95 ms", "p99 ms", "× eager"]
    header += ["ready in, s", "paper's overall"]
    rows = []
    for method in result.methods:
        printed = PAPER.get(method.name)
        for place, way in enumerate(method.ways):
            at = percentiles(way.overall.latencies())
            latencies = [_number(1e3 * at[name], ".3g") if at else NOTHING for name in ("p50", "p95", "p99")]
            over = method.over_eager() if place == 0 else None
            rows.append(
                (
                    method.title if place == 0 else "",
                    way.name,
                    *(_spread(cell.fps) for cell in (way.features, way.method, way.overall)),
                    *latencies,
                    _times(over) if over is not None else "",
                    f"{way.startup:.2f}",
                    f"{printed.fps:.1f}" if printed and place == 0 else "",
                )
            )
    notes = [
        "Frames a second: median of the turns (smallest–largest). Features: from a frame to its feature;"
        " model: from a feature to the decision; overall: from a uint8 frame on the host to the decision on"
        " the host, and its latencies. The paper's are of an RTX A6000.",
        *_random_note(result.methods),
    ]
    return Table(f"One stream, frames/s on {_where(result)}", header, rows, notes)


def _many_table(result: BenchResult) -> Table:
    streams = sorted({count for method in result.methods for count in method.many})
    pools = sorted({method.pool[0] for method in result.methods if method.pool})
    header = ["method", *(_counted(count, "stream") for count in streams)]
    header += [*(f"{count} of a StreamPool" for count in pools), f"p99 of a step of {streams[-1]}, ms"]
    rows = []
    for method in result.methods:
        if not method.many:
            continue
        cells = [_spread(method.many[count].fps) if count in method.many else "" for count in streams]
        cells += [_spread(method.pool[1].fps) if method.pool else "" for _ in pools]
        at = percentiles(method.many[streams[-1]].latencies())
        rows.append((method.title, *cells, _number(1e3 * at["p99"], ".3g") if at else NOTHING))
    notes = [
        "Frames a second of all streams together, two steps under way. A pool is fed by four threads of the"
        " same process."
        + (" The method's small kernels are not compiled here." if result.plan.on_gpu else "")
    ]
    return Table(f"Many streams, frames/s on {_where(result)}", header, rows, notes)


def _video_table(result: BenchResult) -> Table:
    assert result.video is not None
    cells = dict(result.video.rows)
    peers = {name: cells[row] for name, row in PEERS.items() if row in cells}
    header = ("program", "source frames/s", *(f"× {name}" for name in peers))
    rows = [
        (name, _spread(cell.fps), *(_over(cell, peer) for peer in peers.values()))
        for name, cell in result.video.rows
        if cell.samples
    ]
    notes = [
        "Decoding included, start-up not. TransNetV2 is fed by our decoder, with all cores for its network."
    ]
    return Table(f"{result.video.name}, {result.video.frames} frames, from end to end", header, rows, notes)


def _random_note(methods: list[MethodResult]) -> Iterator[str]:
    for note in dict.fromkeys(method.note for method in methods if method.note):
        yield f"{', '.join(method.title for method in methods if method.note == note)}: {note}."


def _over(cell: Cell, peer: Cell) -> str:
    found = ratio(cell, peer)
    return NOTHING if found is None or cell is peer else _spread(found, ".2f")


def _times(spread: Spread) -> str:
    return f"{_spread(spread, '.2f')} ×"


def _spread(spread: Spread | None, form: str | None = None) -> str:
    """A median, and from where to where its values go."""
    if spread is None:
        return NOTHING
    shape = form or (",.0f" if spread.median >= _MANY_DIGITS else ".1f")
    if len(spread.turns) == 1:
        return format(spread.median, shape)
    return f"{spread.median:{shape}} ({spread.low:{shape}}–{spread.high:{shape}})"


def _number(value: float | None, shape: str) -> str:
    return NOTHING if value is None else format(value, shape)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _where(result: BenchResult) -> str:
    return str(result.machine.get("card") or result.machine["processor"])
