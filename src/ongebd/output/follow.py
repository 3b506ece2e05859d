"""Runs one source to its end, into its writers: the same for a command and for a worker of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

from ongebd.detector import Model, Seen, SourceRun, StreamConfig
from ongebd.detector.models import runtime_of
from ongebd.output.writer import Results, RunEnd, RunHeader, Writer
from ongebd.types import Boundary, Epoch

Show = Callable[[float, float | None, int], object]
"""Takes the time of a frame, the expected duration (seconds, None if unknown), and the boundaries so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How a source is read and judged.

    Attributes:
        version: Version of ongebd, for the header.
        settings: As `model.configured` gives them; None takes the model's own.
        stream: Which video stream of a source.
        source_fps: Frames per second of a source without timestamps.
        device: Where the networks compute; see `ongebd.load`.
        workers: Frames that the backbone processes in parallel; None uses up to four processors.
    """

    version: str
    settings: StreamConfig | None = None
    stream: int | None = None
    source_fps: float | None = None
    device: str = "cpu"
    workers: int | None = None


def detect_source(
    source: str,
    model: Model,
    reading: Reading,
    open_writers: Callable[[RunHeader], Sequence[Writer]],
    show: Show,
    ended: Callable[[RunEnd], object],
) -> str | None:
    """Find the boundaries of one source.

    Returns:
        Why the source broke off before its end, in one line; None if it did not.

    Raises:
        OngebdError: Reading or writing failed. What was found until then is in the results.
    """
    settings = reading.settings or model.configured()
    run = SourceRun(
        source,
        model,
        settings,
        stream=reading.stream,
        source_fps=reading.source_fps,
        workers=reading.workers,
    )
    header = RunHeader(
        source,
        model.name,
        asdict(settings),
        run.video.width,
        run.video.height,
        reading.version,
        *runtime_of(reading.device),
    )
    with run:
        follow(run, Results(lambda: open_writers(header)), show, ended)
    return run.video.broken


def follow(run: SourceRun, results: Results, show: Show, ended: Callable[[RunEnd], object]) -> None:
    """Run one source to its end, or to Ctrl-C; either way the results are finished.

    Args:
        run: The source in its detector.
        results: Where everything is written.
        show: Called at the start and after each frame.
        ended: Called when the results are finished; never for a source refused before its first frame.

    Raises:
        OngebdError: Reading or writing failed. What was found until then is in the results.
    """
    frames = boundaries = 0
    complete = stopped = False
    expected = run.video.expected_duration
    try:
        with closing(iter(run)) as events:
            show(0.0, expected, 0)
            for event in events:
                match event:
                    case Seen(frame, decision):
                        frames += 1
                        results.decision(frame, decision)
                        show(decision.time, expected, boundaries)
                    case Boundary():
                        boundaries += 1
                        results.boundary(event)
                    case Epoch():
                        results.epoch(event)
        complete = run.video.broken is None
    except KeyboardInterrupt:
        stopped = True
        raise
    finally:
        if complete or stopped or results.is_open:
            while not complete and (last := run.detector.flush()) is not None:
                boundaries += 1
                results.boundary(last)
            end = RunEnd(complete, float(run.video.duration), frames, boundaries, run.video.warnings)
            results.close(end)
            ended(end)
