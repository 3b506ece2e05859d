"""Boundaries in an asyncio program: told at once, of several streams, and leaving one ends all its work."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from contextlib import aclosing, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ongebd
from ongebd.errors import ConfigError, SourceError
from ongebd.video import connecting
from waiting import HANG, NEVER, at_once, until


@pytest.fixture
def model(stub_model, backbone):
    return replace(stub_model, backbone=backbone)


def changing(seconds, every=2):
    """Red or blue pictures, 25 a second; the colour changes after every so many seconds."""
    red, blue = (np.full((32, 32, 3), colour, np.uint8) for colour in ((200, 20, 20), (20, 20, 200)))
    return [blue if n // (25 * every) % 2 else red for n in range(25 * seconds)]


@pytest.fixture(scope="module")
def film(tmp_path_factory, make_video):
    return make_video(tmp_path_factory.mktemp("film") / "film.mp4", changing(7))


@pytest.fixture(scope="module")
def long_film(tmp_path_factory, make_video):
    """Ten hours, in 180 pieces; its decoding takes longer than any test."""
    piece = make_video(tmp_path_factory.mktemp("film") / "piece.ts", changing(200, every=20), codec="mpeg4")
    path = piece.with_name("long.ts")
    path.write_bytes(piece.read_bytes() * 180)
    return path


@pytest.fixture
def feed(tmp_path, make_video):
    """A live feed over HTTP: twelve seconds at once, then silence. Its address, and an event: it was left."""
    data = make_video(tmp_path / "live.ts", changing(12)).read_bytes()
    left = threading.Event()

    class Feed(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(data)
                self.connection.recv(1)  # until the other side goes away
            left.set()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Feed)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/live.ts", left
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _no_threads_left():
    yield
    until(lambda: not working())


def working():
    """The threads of streams that run."""
    names = ("ongebd-stream", "ongebd-decode", "ongebd-backbone")
    return [one.name for one in threading.enumerate() if one.name.startswith(names)]


@pytest.fixture
def endless(long_film):
    """The long film, open; whoever leaves it may not have read it to its end."""
    with long_film.open("rb") as file:
        yield file
        until(lambda: not working())
        assert file.tell() < long_film.stat().st_size / 2


async def boundaries_of(source, model, **settings):
    return [boundary async for boundary in ongebd.stream_async(source, model, **settings)]


def test_the_boundaries_are_those_of_detect(film, model):
    found = asyncio.run(boundaries_of(film, model))
    assert found == ongebd.detect(film, model).boundaries
    assert [boundary.onset for boundary in found] == pytest.approx([2, 4, 6], abs=0.05)
    with film.open("rb") as file:
        assert asyncio.run(boundaries_of(file, model, fps=10))


def test_a_part_of_a_source_is_streamed_as_it_is_detected(film, model):
    part = {"start": 3, "end": "0:05"}
    found = asyncio.run(boundaries_of(film, model, **part))
    assert found == ongebd.detect(film, model, **part).boundaries
    assert [boundary.onset for boundary in found] == pytest.approx([4], abs=0.05)


def test_a_boundary_that_is_open_when_the_source_ends_is_told(tmp_path, make_video, model):
    film = make_video(tmp_path / "a.mp4", changing(3)[:52])
    assert asyncio.run(boundaries_of(film, model)) == ongebd.detect(film, model).boundaries != []


def test_updates_give_each_boundary_again_with_its_peak_and_kind(film, model):
    wanted = ongebd.detect(film, model).boundaries
    for options in ({}, {"min_length": 3}):
        found = asyncio.run(boundaries_of(film, model, updates=True, **options))
        last = {boundary.onset: boundary for boundary in found}
        assert len(found) == 2 * len(last)
        assert {one.onset: (one.peak, one.kind) for one in wanted if one.onset in last} == {
            onset: (one.peak, one.kind) for onset, one in last.items()
        }


def test_a_minimum_length_and_a_rate_hold_while_it_streams(film, model):
    assert len(asyncio.run(boundaries_of(film, model, min_length=3))) == 1
    assert len(asyncio.run(boundaries_of(film, model, max_per_minute=15))) < 3
    with pytest.raises(ConfigError, match="min_length must be"):
        asyncio.run(boundaries_of(film, model, min_length=-1))


def test_three_streams_run_together_and_cancelling_one_leaves_the_others_alone(film, endless, feed, model):
    url, left = feed
    live = []

    async def watch():
        async for boundary in ongebd.stream_async(url, model):
            live.append(boundary.onset)  # noqa: PERF401 - one by one

    async def service():
        async with asyncio.TaskGroup() as tasks:
            whole = tasks.create_task(boundaries_of(film, model))
            long = tasks.create_task(boundaries_of(endless, model))
            watching = tasks.create_task(watch())
            while len(live) < 4:  # though the feed has no end
                await asyncio.sleep(0.01)
            for task in (long, watching):
                assert not task.done()
                task.cancel()
                await asyncio.wait([task])
            return await whole

    assert len(asyncio.run(asyncio.wait_for(service(), 60))) == 3
    assert live[:4] == pytest.approx([2, 4, 6, 8], abs=0.05)
    assert left.wait(HANG), "the connection was closed"


def test_the_service_in_the_documents_runs(film, feed, capsys):
    page = (Path(__file__).parents[2] / "docs/python.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(import asyncio\n.*?)```", page, re.DOTALL)
    service: dict[str, Any] = {}
    exec(code.partition("asyncio.run")[0].replace("sleep(10)", "sleep(1)"), service)
    asyncio.run(service["main"](feed[0], film, film))
    assert capsys.readouterr().out.count(f"{film} ") >= 4, "the others went on to their ends"
    assert feed[1].wait(HANG)


@pytest.mark.parametrize("fps", [24, 0.002])  # a frame needs a look at many pictures
@pytest.mark.parametrize("leave", ["timeout", "break", "aclose", "error"])
def test_whoever_leaves_the_loop_stops_the_decoding(endless, model, leave, fps):
    async def program():
        boundaries = ongebd.stream_async(endless, model, fps=fps, max_run=0)
        if leave == "timeout":
            async with asyncio.timeout(0.5):
                async for _ in boundaries:
                    pass
        async with aclosing(boundaries):
            if fps < 1:  # it has no boundary yet
                with suppress(TimeoutError):
                    await asyncio.wait_for(anext(boundaries), 0.2)
            else:
                await anext(boundaries)
            if leave == "error":
                raise ZeroDivisionError
        return "left"

    async def breaks():
        async for _ in ongebd.stream_async(endless, model, max_run=0):
            break
        return "left"

    with suppress(TimeoutError, ZeroDivisionError):
        assert asyncio.run((breaks if leave == "break" else program)()) == "left"


@pytest.mark.parametrize("leave", ["cancel", "error"])
def test_a_consumer_that_ends_within_a_boundary_ends_its_stream_while_the_program_goes_on(
    endless, model, leave
):
    busy = asyncio.Event()

    async def consume():
        async for _ in ongebd.stream_async(endless, model):
            busy.set()
            if leave == "error":
                raise ZeroDivisionError
            await asyncio.sleep(100)

    async def program():
        task = asyncio.create_task(consume())
        await busy.wait()
        task.cancel()
        await asyncio.wait([task])
        while working():
            await asyncio.sleep(0.01)
        assert task.cancelled() or isinstance(task.exception(), ZeroDivisionError)

    asyncio.run(program())


def test_a_source_that_never_answers_can_be_cancelled(model, monkeypatch):
    monkeypatch.setattr(connecting, "OPEN_TIMEOUT", NEVER)
    with socket.create_server(("127.0.0.1", 0)) as server:

        async def program(scheme):
            async with asyncio.timeout(0.3):
                await boundaries_of(f"{scheme}://127.0.0.1:{server.getsockname()[1]}/", model)

        for scheme in ("http", "tcp", "rtsp"):
            with at_once(), pytest.raises(TimeoutError):
                asyncio.run(program(scheme))


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("missing.mp4", {}, SourceError, "missing.mp4: no such file"),
        (None, {"model": "nonsense"}, ConfigError, "unknown model"),
        (None, {"sensitivity": 2}, ConfigError, "sensitivity must be"),
        (None, {"nonsense": 2}, ConfigError, "nonsense"),
        (None, {"device": "cuda"}, ConfigError, "a loaded model has a device already"),
    ],
)
def test_an_error_is_raised_where_the_boundaries_are_taken(film, model, source, options, error, message):
    with pytest.raises(error, match=message):
        asyncio.run(boundaries_of(source or film, **{"model": model} | options))


def test_the_error_of_one_stream_ends_a_task_group(endless, model):
    async def program():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(boundaries_of(endless, model))
            tasks.create_task(boundaries_of("missing.mp4", model))

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(program())
    (problem,) = raised.value.exceptions
    assert isinstance(problem, SourceError)


def test_a_source_that_is_cut_off_says_so_after_its_boundaries(tmp_path, make_video, model):
    whole = make_video(tmp_path / "a.mp4", changing(7), container_options={"movflags": "faststart"})
    whole.write_bytes(whole.read_bytes()[: int(0.8 * whole.stat().st_size)])
    found = []

    async def program():
        async for boundary in ongebd.stream_async(whole, model):
            found.append(boundary)  # noqa: PERF401 - up to the error

    with pytest.raises(SourceError, match=r"a\.mp4: cut off or damaged"):
        asyncio.run(program())
    assert found == ongebd.detect(whole, model).boundaries != []


def test_the_event_loop_goes_on_while_a_frame_is_computed(film, model, backbone, monkeypatch):
    begun, turn, embed = threading.Event(), threading.Event(), type(backbone).embed

    def slow(self, frames):
        begun.set()
        assert turn.wait(HANG), "the loop stood still"
        return embed(self, frames)

    async def program():
        task = asyncio.create_task(boundaries_of(film, model))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        turn.set()
        return await task

    monkeypatch.setattr(type(backbone), "embed", slow)
    assert len(asyncio.run(program())) == 3
