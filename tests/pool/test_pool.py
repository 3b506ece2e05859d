"""Many streams in a pool: each gets what it would get alone, and none disturbs another."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import astuple, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ongebd
from ongebd.baselines.naive import WindowMean
from ongebd.detector import Model
from ongebd.errors import ConfigError, FeatureError
from ongebd.pool import Counts, PoolResult, StreamPool
from ongebd.pool.runtime import CpuRuntime
from ongebd.video import VideoReader
from waiting import until

SEEN = 60


def features(seed: int, count: int = SEEN) -> np.ndarray:
    """(count, 4): three directions, each for a while, with some noise."""
    random = np.random.default_rng(seed)
    centres = random.uniform(0.1, 1, (4, 4))
    return (centres[np.arange(count) * 4 // count] + random.normal(0, 0.01, (count, 4))).astype(np.float32)


def picture(feature) -> np.ndarray:
    rgb = np.zeros((8, 8, 3), np.uint8)
    rgb[0, :4, 0] = feature
    return rgb


class Stub:
    name = identity = "stub"
    dim = 4
    input_size = resize_size = 8

    def crop(self, rgb):
        return np.ascontiguousarray(rgb[:8, :8])

    def embed(self, frames):
        return frames[:, 0, :4, 0].astype(np.float32)


@pytest.fixture
def stub_model() -> Model:
    """The default model's settings on the stub."""
    defaults = ongebd.load("window-mean").defaults
    return Model("stub", "for tests", Stub(), defaults, lambda config: WindowMean(config.window))


def rest(stream) -> list:
    """The last results at the end of a stream, in the pool's order."""
    said: list = list(stream.drain())
    while (boundary := stream.flush()) is not None:
        said.append(boundary)
    return said


def said(results: list[PoolResult]) -> list:
    return [result.boundary or result.decision or result.ended or str(result.error) for result in results]


def closed(results: list[PoolResult]) -> list[tuple]:
    """Each boundary with its peak and kind, which `==` of boundaries doesn't compare."""
    return [astuple(boundary) for result in results for boundary in result.closed]


@settings(max_examples=25)
@given(data=st.data())
def test_any_interleaving_gives_each_stream_what_it_gets_alone(data):
    model = ongebd.load("window-mean")
    stub = Model("stub", "for tests", Stub(), model.defaults, model.method)
    streams = data.draw(st.integers(1, 4), "streams")
    pool = StreamPool(
        stub,
        max_batch=data.draw(st.integers(1, 5), "batch"),
        max_delay=data.draw(st.sampled_from([0.0, 0.002]), "delay"),
        workers=data.draw(st.integers(1, 3), "workers"),
    )
    with pool:
        pooled = [pool.add(name=n, tau=2.0 + n) for n in range(streams)]
        alone = [stub.stream(tau=2.0 + n) for n in range(streams)]
        wanted: list[list] = [[] for _ in range(streams)]
        frames = [iter(enumerate(features(seed))) for seed in range(streams)]
        for _ in range(data.draw(st.integers(0, 120), "steps")):
            n = data.draw(st.integers(0, streams - 1))
            match data.draw(st.sampled_from(["frame"] * 12 + ["broken", "flush", "epoch"])):
                case "frame":
                    index, feature = next(frames[n], (0, features(n)[0]))  # then the clock steps back
                    pooled[n].submit_feature(feature, index / 24)
                    wanted[n].append(alone[n].update_feature(feature, index / 24))
                case "broken":
                    pooled[n].submit_feature(np.zeros(4), 1.0)
                    with pytest.raises(FeatureError) as problem:
                        alone[n].update_feature(np.zeros(4), 1.0)
                    wanted[n].append(str(problem.value))
                case "flush":
                    pooled[n].flush()
                    wanted[n] += [*rest(alone[n]), "flush"]
                case "epoch":
                    pooled[n].new_epoch()
                    wanted[n] += [*rest(alone[n]), "epoch"]
                    alone[n].new_epoch()
    results = list(pool.results())
    for n in range(streams):
        of_this = said([result for result in results if result.stream is pooled[n]])
        assert of_this == [*wanted[n], *rest(alone[n]), "close"]
        assert closed([r for r in results if r.stream is pooled[n]]) == list(map(astuple, alone[n].closed()))


@pytest.mark.parametrize("name", ["window-mean", "persistence", "predictability", "clock"])
def test_pictures_through_the_backbone_are_the_same_to_the_bit(name, make_scene):
    model = ongebd.load(name)
    shots = [[make_scene(seed + 9 * (n >= 12), 96, 72) for n in range(20)] for seed in range(2)]
    alone = [model.stream() for _ in shots]
    with StreamPool(model, workers=2) as pool:
        pooled = [pool.add(name=seed) for seed in range(2)]
        for n in range(20):
            for seed in range(2):
                assert pooled[seed].submit(shots[seed][n], Fraction(n, 24))
    results = list(pool.results())
    for seed in range(2):
        wanted = [alone[seed].update(shot, Fraction(n, 24)) for n, shot in enumerate(shots[seed])]
        assert said([r for r in results if r.stream is pooled[seed]]) == [
            *wanted,
            *rest(alone[seed]),
            "close",
        ]


@pytest.mark.parametrize("frames", [20, 50, 55, 80])
def test_after_any_part_of_a_stream_what_was_told_and_updated_is_what_detect_finds(
    frames, tmp_path, make_video, make_scene, backbone
):
    shots = [make_scene(1 + (n >= 30) + (n >= 52), 96, 72) for n in range(frames)]
    film = make_video(tmp_path / "film.mp4", shots, rate=24)
    model = replace(ongebd.load("window-mean"), backbone=backbone)
    with VideoReader(film, 24, view=backbone.view) as reader, StreamPool(model) as pool:
        stream = pool.add()
        for frame in reader:
            stream.submit(frame.rgb, frame.time)
    results = list(pool.results())
    wanted = ongebd.detect(film, model).boundaries
    assert closed(results) == list(map(astuple, wanted))
    assert [result.found for result in results if result.found] == wanted
    assert len(wanted) == (frames > 30) + (frames > 52)


def test_streams_come_and_go(stub_model):
    with StreamPool(stub_model) as pool:
        first = pool.add(name="first")
        for n, feature in enumerate(features(1)):
            first.submit_feature(feature, n / 24)
            if n == 20:
                second = pool.add(name="second")
            if n >= 20:
                second.submit_feature(feature, n / 24)
            if n == 40:
                second.close()
                with pytest.raises(ConfigError, match="stream 'second' is closed"):
                    second.submit_feature(feature, 3)
                second = pool.add(name="third")
        assert pool.wait(60)
        assert len(pool) == 2
        names = [result.stream.name for result in pool.poll()]
        assert [names.count(name) for name in ("first", "second", "third")] == [60, 22, 19]
    assert pool.counts() == Counts(60 + 21 + 19, 0, 60 + 21 + 19, 0)


def test_a_bad_frame_is_its_streams_alone(stub_model):
    with StreamPool(stub_model) as pool:
        good, bad = pool.add(name="good"), pool.add(name="bad")
        with pytest.raises(FeatureError, match="wanted uint8 of shape"):
            bad.submit(np.zeros((8, 8), np.uint8), 0.0)
        with pytest.raises(ConfigError, match="must be a number of seconds"):
            bad.submit(picture([1, 0, 0, 0]), float("nan"))
        for n in range(10):
            good.submit(picture([9, n, 1, 1]), n / 24)
            bad.submit(picture([9, n, 1, 1] if n != 4 else [0, 0, 0, 0]), n / 24)
    by_stream = {name: [r for r in pool.poll() if r.stream.name == name] for name in ["bad"]}
    problems = [result for result in by_stream["bad"] if result.error is not None]
    assert [str(problem.error) for problem in problems] == [
        "frame 4 at 0.167 s: the feature has norm zero; check the backbone's weights"
    ]
    assert [r.decision.index for r in by_stream["bad"] if r.decision] == [*range(9)], "the stream goes on"
    assert good.counts() == Counts(10, 0, 10, 0)
    assert bad.counts() == Counts(10, 0, 9, 1)


class Slow(CpuRuntime):
    """Begins steps only after `go`."""

    def __init__(self, model: Model, **options) -> None:
        super().__init__(model, workers=1, **options)
        self.go = threading.Event()
        self.sizes: list[int] = []
        self.order: list[str] = []

    def begin(self, work):
        assert self.go.wait(60)
        self.sizes.append(len(work))
        self.order += [item.time for item in work]
        return super().begin(work)


@pytest.fixture
def slow(stub_model) -> Slow:
    return Slow(stub_model, max_batch=4)


def fill(stream, count: int, timeout: float | None = None) -> list[bool]:
    return [stream.submit(picture([9, 1, 1, 1]), n / 24, timeout=timeout) for n in range(count)]


def begun(slow: Slow, pool: StreamPool) -> None:
    """Begin a step of another stream, so that what comes next must wait."""
    other = pool.add(name="other")
    fill(other, 1)
    until(lambda: not pool._queue)


def test_what_finds_no_room_is_dropped_and_counted(stub_model, slow):
    with StreamPool(stub_model, runtime=slow, max_pending=3) as pool:
        begun(slow, pool)
        newest = pool.add()
        oldest = pool.add()
        oldest.when_full = "drop-oldest"
        assert fill(newest, 5, timeout=0) == [True] * 3 + [False] * 2
        assert fill(oldest, 5) == [True] * 5
        assert newest.counts() == Counts(5, 2, 0, 0)
        assert newest.counts().waiting == 3
        slow.go.set()
    times = {
        stream: [r.decision.time * 24 for r in pool._results if r.stream is stream and r.decision]
        for stream in (newest, oldest)
    }
    assert times == {newest: [0, 1, 2], oldest: [2, 3, 4]}
    assert newest.counts() == oldest.counts() == Counts(5, 2, 3, 0)


def test_a_stream_that_blocks_waits_for_room(stub_model, slow):
    with StreamPool(stub_model, runtime=slow, max_pending=2) as pool:
        begun(slow, pool)
        stream = pool.add()
        assert fill(stream, 2) == [True, True]
        assert not stream.submit(picture([9, 1, 1, 1]), 1.0, timeout=0.01), "dropped"
        threading.Timer(0.02, slow.go.set).start()
        assert stream.submit(picture([9, 1, 1, 1]), 2.0)
    assert stream.counts() == Counts(4, 1, 3, 0)


def test_a_submit_that_waits_fails_when_the_pool_closes(stub_model, slow):
    pool = StreamPool(stub_model, runtime=slow, max_pending=1)
    begun(slow, pool)
    stream = pool.add()
    fill(stream, 1)
    seen = []

    def submit() -> None:
        try:
            fill(stream, 1)
        except ConfigError as problem:
            seen.append(str(problem))

    waiting = threading.Thread(target=submit)
    waiting.start()
    until(lambda: pool._room._waiters)
    threading.Timer(0.05, slow.go.set).start()
    pool.close()
    waiting.join(60)
    assert seen == ["the pool is closed; open another"]
    assert stream.counts() == Counts(1, 0, 1, 0)


def test_a_flood_does_not_starve_the_others(stub_model, slow):
    with StreamPool(stub_model, runtime=slow, max_pending=200) as pool:
        begun(slow, pool)
        flood = pool.add()
        for n in range(100):
            flood.submit(picture([9, 1, 1, 1]), 1000 + n)
        calm = [pool.add() for _ in range(6)]
        for n, stream in enumerate(calm):
            stream.submit(picture([9, 1, 1, 1]), n)
        slow.go.set()
    behind = [place for place, when in enumerate(slow.order) if when < 1000]
    assert len(behind) == 7
    assert behind[-1] <= 12, "at most one frame of the flood for each turn of the others"


def test_a_batch_waits_for_others_as_long_as_it_may(stub_model, slow):
    slow.go.set()
    with StreamPool(stub_model, runtime=slow, max_delay=150) as pool:
        streams = [pool.add() for _ in range(6)]
        for stream in streams[:4]:
            fill(stream, 1)
        assert pool.wait(60), "four are a whole batch"
        fill(streams[4], 1)
        assert not pool.wait(0.05), "one is none yet"
        streams[5].close()  # what ends a stream doesn't wait
        assert pool.wait(60)
    assert slow.sizes == [4, 1]


def test_results_go_to_a_function(stub_model):
    heard: list[PoolResult] = []
    with StreamPool(stub_model, on_result=heard.append) as pool:
        fill(pool.add(), 7)
        with pytest.raises(ConfigError, match="go to on_result"):
            pool.poll()
    assert [result.decision.index for result in heard[:-1]] == [*range(7)]
    assert heard[-1].ended == "close"
    assert all(result.waited > 0 for result in heard[:-1])


def test_an_error_of_the_users_function_stops_the_pool_and_is_raised(stub_model):
    def broken(result: PoolResult) -> None:
        raise ZeroDivisionError("mine")

    pool = StreamPool(stub_model, on_result=broken)
    fill(pool.add(), 1)
    with pytest.raises(RuntimeError, match="the pool has stopped: mine"):
        pool.wait(60)
    with pytest.raises(RuntimeError, match="the pool has stopped: mine"):
        pool.close()
    assert not mine()


def test_unread_results_hold_the_pool_up_and_nothing_is_lost(stub_model):
    with StreamPool(stub_model, max_pending=3, max_batch=1) as pool:
        pool.max_results = 4
        stream = pool.add()
        for taken in range(7):
            until(lambda at=taken / 24: stream.submit(picture([9, 1, 1, 1]), at, timeout=0))
        time.sleep(0.05)  # let it decide what it will
        assert len(pool._results) <= 4 + pool.runtime.depth
        assert len(pool.poll()) >= 4
        assert pool.wait(60)
    assert stream.counts().decided == 7


def mine() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("ongebd-")]


@pytest.mark.parametrize("drain", [True, False])
def test_no_thread_is_left_and_every_frame_is_accounted_for(stub_model, drain):
    pool = StreamPool(stub_model, max_pending=50)
    streams = [pool.add() for _ in range(3)]
    for stream in streams:
        fill(stream, 30)
    assert mine()
    pool.close(drain)
    pool.close()
    assert not mine()
    assert len(pool) == 0
    counts = pool.counts()
    assert (counts.submitted, counts.waiting) == (90, 0)
    assert counts.dropped == 0 or not drain
    assert [result.ended for result in pool.results()].count("close") == 3
    with pytest.raises(ConfigError, match="the pool is closed"):
        pool.add()


def test_closing_from_the_users_function_is_refused(stub_model):
    seen = []

    def close(result: PoolResult) -> None:
        try:
            pool.close()
        except ConfigError as problem:
            seen.append(str(problem))

    with StreamPool(stub_model, on_result=close) as pool:
        fill(pool.add(), 1)
        pool.wait(60)
    assert seen[0] == "on_result can't close the pool that calls it"


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        ({"max_batch": 0}, "max_batch must be at least 1"),
        ({"max_pending": 0}, "max_pending must be at least 1"),
        ({"max_pending": 1.5}, "max_pending must be a whole number"),
        ({"max_delay": -1}, "max_delay must be at least 0 and below 3600"),
        ({"when_full": "panic"}, "when_full must be one of block, drop-oldest, not 'panic'"),
        ({"precision": "float16"}, "on the CPU a stream computes in float32"),
        ({"workers": 0}, "workers must be at least 1"),
    ],
)
def test_a_setting_out_of_range_is_refused(stub_model, bad, cause):
    with pytest.raises(ConfigError, match=cause):
        StreamPool(stub_model, **bad)
    assert not mine()


def test_the_caller_may_use_the_frame_again(stub_model, slow):
    with StreamPool(stub_model, runtime=slow, max_pending=9) as pool:
        stream = pool.add()
        frame = np.zeros((8, 8, 3), np.uint8)
        for n in range(5):
            frame[0, :4, 0] = [9, n, 1, 1]
            stream.submit(frame, n / 24)
        slow.go.set()
    alone = stub_model.stream()
    wanted = [alone.update(picture([9, n, 1, 1]), n / 24) for n in range(5)]
    assert said(pool.poll()) == [*wanted, "close"]


def test_a_pool_needs_no_torch():
    program = (
        "import sys, numpy as np, ongebd\n"
        "with ongebd.StreamPool('window-mean') as pool:\n"
        "    pool.add().submit(np.zeros((64, 64, 3), np.uint8), 0.0)\n"
        "assert len(list(pool.results())) == 2 and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
