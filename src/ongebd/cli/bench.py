"""`ongebd bench`: how fast every method is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ongebd.cli.tables import print_tables
from ongebd.cli.terminal import Progress
from ongebd.detector.models import runtime_of
from ongebd.lab.benchmark import Bench, BenchPlan
from ongebd.lab.benchmark.plan import parse_methods, parse_streams
from ongebd.lab.benchmark.report import bench_tables, headline, write_bench
from ongebd.lab.evaluation.report import check_folder

CPU_STREAMS, GPU_STREAMS = "1,4,16", "1,16,64,256"


def bench(
    *,
    methods: str | None = None,
    device: str = "cpu",
    precision: str | None = None,
    streams: str | None = None,
    video: Path | None = None,
    repeats: int = 3,
    seconds: float = 0.5,
    threads: int = 1,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Measure how fast the methods are on this machine, beside torch's own way in the same run.

    Parameters, operations, frames per second and latencies of one stream; many streams; and with --video a
    whole file. Every method is prepared first and then measured in turns. The paper's methods get random
    weights, which do not affect speed. Ctrl-C shows what was measured until then.

    Parameters
    ----------
    methods
        Comma-separated names, as in `ongebd models`, without FOLDER for random weights. [the default model,
        window-mean, persistence, the paper's five, PySceneDetect and TransNetV2]
    device
        cpu, openvino, openvino:bfloat16, cuda or cuda:N.
    precision
        Number format of the networks on a GPU: float16, bfloat16 or float32. [float16]
    streams
        Numbers of parallel streams, comma-separated; 0 for none. [CPU: 1,4,16, GPU: 1,16,64,256]
    video
        A file to read from beginning to end, on the CPU.
    repeats
        How many turns; results are medians over them.
    seconds
        Length of a measurement in a turn.
    threads
        CPU threads for one frame's inference.
    out
        Folder for bench.md and bench.json.
    quiet
        Show no progress.
    """  # noqa: D405, D411, D416 - `methods` is a parameter, not a section
    if out is not None:
        check_folder(out)
    runtime, cpu_precision = runtime_of(device)
    if runtime is not None:
        device = "cpu"
    many = streams if streams is not None else CPU_STREAMS if device == "cpu" else GPU_STREAMS
    plan = BenchPlan(
        methods=None if methods is None else parse_methods(methods),
        device=device,
        runtime=runtime or "onnxruntime",
        precision=precision or cpu_precision,
        streams=() if many.strip() == "0" else parse_streams(many),
        video=video,
        repeats=repeats,
        seconds=seconds,
        threads=threads,
    )
    with Progress(quiet=quiet) as progress:
        running = Bench(plan, progress.show)
        stopped = False
        try:
            running.run()
        except KeyboardInterrupt:
            stopped = True
    result = running.result
    if stopped and not result.measured:
        return 130
    written = [] if out is None else write_bench(result, out)  # before anything that may fail to be shown
    print_tables(bench_tables(result), headline(result))
    for file in written:
        progress.say(f"wrote {file}")
    return 130 if stopped else 0
