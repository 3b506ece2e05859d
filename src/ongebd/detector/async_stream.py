"""A source's boundaries for asyncio: threads read and judge, the event loop gets what they find."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

from ongebd.common import MAX_PIXELS
from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.model import Model
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.detector.segments import Choice, Selection
from ongebd.detector.source_run import Closed, SourceRun, given_model
from ongebd.errors import SourceError
from ongebd.types import Boundary
from ongebd.video import Source
from ongebd.video.timing import Moment, part_of

_PATIENCE = 1.0
"""Seconds to wait for the threads of a stream that was left; those that a driver holds up stay behind."""


async def stream_async(
    source: Source,
    model: str | Model = DEFAULT_MODEL,
    *,
    config: StreamConfig | None = None,
    stream: int | None = None,
    source_fps: float | Fraction | None = None,
    max_pixels: int = MAX_PIXELS,
    private_network: bool = False,
    device: str = "cpu",
    start: Moment | None = None,
    end: Moment | None = None,
    duration: Moment | None = None,
    min_length: float | None = None,
    max_per_minute: float | None = None,
    updates: bool = False,
    **settings: Any,
) -> AsyncGenerator[Boundary, None]:
    """The event boundaries of a file, camera or feed, each as soon as it is known.

    The event loop never waits: reading, decoding and the model run in threads of this stream. Cancelling it,
    a timeout, an error or leaving the loop stops them within a second. (As with any async generator, use
    `contextlib.aclosing` if you keep it in a variable.) Streams can share a loaded model.

        async with asyncio.timeout(60):
            async for boundary in ongebd.stream_async("rtsp://camera/1"):
                print("something new begins at", boundary.onset)

    Args:
        source: As in `ongebd.detect`, like the other arguments.
        model: The name of an online model, or a loaded one.
        config: Settings.
        stream: Which video stream.
        source_fps: Frames a second of a source without timestamps.
        max_pixels: The largest picture that is decoded.
        private_network: Whether what a web source names may be on the private network.
        device: Where the networks of a model given by name run.
        start: Where to begin, in seconds or as "h:mm:ss". Times still count from the start of the source.
        end: Where to end.
        duration: Seconds (or "h:mm:ss") after the start, instead of `end`.
        min_length: Seconds. A boundary that comes sooner after the last one isn't reported.
        max_per_minute: Most boundaries a minute: those stronger than recent ones.
        updates: Whether each boundary comes again, with the same onset, once its peak and kind are known:
            within a second, or when the source ends.
        **settings: Single settings by name.

    Raises:
        SourceError: The source can't be read; or, after its last boundary, it broke off or is cut off.
        ConfigError: A setting, a model or a device is unknown or out of range.
        MissingExtraError: An extra is needed and not installed.
    """
    loop, stop = asyncio.get_running_loop(), threading.Event()
    found: asyncio.Queue[Boundary | None] = asyncio.Queue()

    def tell(boundary: Boundary | None) -> None:
        try:
            loop.call_soon_threadsafe(found.put_nowait, boundary)
        except RuntimeError:  # the loop was closed, and this stream with it
            stop.set()

    def read() -> None:
        loaded, asked = given_model(model, device), asked_for(config, settings, stream_async.__annotations__)
        loaded.check_online()
        wanted = Selection(min_length=min_length, max_per_minute=max_per_minute)
        begin, until = part_of(start, end, duration)
        with SourceRun(
            source,
            loaded,
            loaded.configured(asked),
            stream=stream,
            source_fps=asked.fps if source_fps is None else source_fps,
            max_pixels=max_pixels,
            private_network=private_network,
            stop=stop,
            start=begin,
            end=until,
        ) as run:
            choice = Choice(wanted, float(begin), run.video.name)
            for event in run:  # ends once `stop` is set
                if isinstance(event, Closed) and choice.closes(event.boundary) and updates:
                    tell(event.boundary)
                for boundary in choice.take(event) if isinstance(event, Boundary) else ():
                    tell(boundary)
        lacking = run.video.broken or run.video.cut_off
        if lacking is not None:
            raise SourceError(f"{run.video.name}: {lacking}")

    def read_all() -> Exception | None:
        try:
            read()
        except Exception as problem:  # noqa: BLE001 - raised where the boundaries are taken
            return problem
        finally:
            tell(None)
        return None

    threads = ThreadPoolExecutor(1, thread_name_prefix="ongebd-stream")
    reading = loop.run_in_executor(threads, read_all)
    threads.shutdown(wait=False)  # it ends after this one
    try:
        while (boundary := await found.get()) is not None:
            yield boundary
        if (problem := await reading) is not None:
            raise problem
    finally:
        stop.set()
        await asyncio.wait([reading], timeout=_PATIENCE)
