"""The watcher over readers that a test makes: no file, no network, no sleep that is not asked for."""

from __future__ import annotations

import threading
import time
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ongebd
from ongebd.baselines.pictures import Pictures
from ongebd.errors import ConfigError
from ongebd.watch import (
    Dropped,
    Found,
    HubSink,
    Onset,
    Patience,
    Point,
    Retuned,
    StateChanged,
    Updated,
    Warned,
    Watcher,
)
from ongebd.watch.stream import WatchedStream
from waiting import NEVER, until

from .conftest import QUICK, FixedClock, MadeReader, everything, made_frames, opens, our_threads

LIVE = "cam=rtsp://made/1"
ONCE = replace(QUICK, retries=1, first_delay=0.001, longest_delay=0.001)


def watching(model, *connections, source=LIVE, patience=ONCE, **options):
    options.setdefault("max_pending", 10_000)
    return Watcher([source], model=model, opener=opens(*connections), patience=patience, **options)


def numbers(one):
    return (one.time, one.error, one.mean, one.std, one.z, one.threshold, one.ready)


_MODEL = replace(ongebd.load("window-mean"), backbone=Pictures(8, 6))


@settings(max_examples=30)
@given(
    st.lists(
        st.one_of(
            st.just("refused"), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 25)), max_size=5)
        ),
        max_size=5,
    )
)
def test_every_epoch_is_decided_as_by_a_fresh_detector(script):
    runs = [
        one if one == "refused" else made_frames([level for level, often in one for _ in range(often)])
        for one in script
    ]
    watcher = watching(
        _MODEL,
        *(one if isinstance(one, str) else MadeReader(one) for one in runs),
        patience=replace(ONCE, retries=10),
    )
    with watcher.hub.subscribe(Point, Found, Updated, limit=10_000) as told, watcher:
        assert watcher.join(60)
        records = everything(told)
    shown = [frames for frames in runs if frames and not isinstance(frames, str)]
    for epoch, frames in enumerate(shown):
        detector = _MODEL.stream()
        decisions = [detector.update(frame.rgb, frame.time) for frame in frames]
        boundaries = [decision.boundary for decision in decisions if decision.boundary]
        while (last := detector.flush()) is not None:
            boundaries.append(last)
        points = [r for r in records if isinstance(r, Point) and r.epoch == epoch]
        assert [numbers(point) for point in points] == [numbers(decision) for decision in decisions]
        assert [point.positive for point in points] == [decision.is_boundary for decision in decisions]
        found, updated = (
            [r for r in records if isinstance(r, kind) and r.epoch == epoch] for kind in (Found, Updated)
        )
        assert [r.boundary for r in found] == boundaries
        assert [astuple(r.boundary) for r in updated] == list(map(astuple, detector.closed()))
        assert [r.number for r in updated] == [r.number for r in found]
    assert watcher.streams["cam"].status().state == "failed"
    assert sum(isinstance(record, Point) for record in records) == sum(map(len, shown))


def test_the_states_of_a_source_that_is_lost_are_told_in_order(light_model):
    steady = made_frames([0] * 30)
    watcher = watching(
        light_model,
        "the host is down",
        MadeReader(steady),
        MadeReader(steady, broken="cable cut"),
        patience=ONCE,
    )
    with watcher.hub.subscribe(StateChanged) as told, watcher:
        assert watcher.join(60)
        changes = [(r.state, r.epoch, r.reason) for r in everything(told)]
    assert [(state, epoch) for state, epoch, _ in changes] == [
        ("reconnecting", 0),
        ("live", 0),
        ("reconnecting", 0),
        ("live", 1),
        ("reconnecting", 1),
        ("failed", 1),
    ]
    assert changes[0][2].startswith("the host is down; next attempt in ")
    assert changes[2][2].startswith("the source ended; ")
    assert changes[4][2].startswith("cable cut; ")
    assert changes[5][2].endswith("; given up after 1 attempt")
    assert watcher.streams["cam"].status().reconnects == 1


def test_numbers_go_on_over_epochs_and_an_open_run_is_decided_when_the_source_is_lost(light_model):
    levels = [0] * 30 + [1] * 3  # broken off within the run of positive frames
    watcher = watching(light_model, MadeReader(made_frames(levels)), MadeReader(made_frames(levels)))
    with watcher.hub.subscribe(Onset, Found) as told, watcher:
        assert watcher.join(60)
        events = everything(told)
    assert [(type(event).__name__, event.number, event.epoch) for event in events] == [
        ("Onset", 1, 0),
        ("Found", 1, 0),
        ("Onset", 2, 1),
        ("Found", 2, 1),
    ]
    assert events[0].time == events[2].time == pytest.approx(30 / 24)


def test_a_break_within_a_connection_begins_an_epoch_with_its_reason(light_model):
    frames = made_frames([0] * 30) + made_frames([1] * 30, epoch=1, start=30)
    watcher = watching(light_model, MadeReader(frames))
    with watcher.hub.subscribe(StateChanged, Point, Onset) as told, watcher:
        assert watcher.join(60)
        records = everything(told)
    breaks = [r for r in records if isinstance(r, StateChanged) and r.state == "live"]
    assert [(r.epoch, r.reason) for r in breaks] == [(0, ""), (1, "the clock stepped back by 1 s")]
    assert [r.epoch for r in records if isinstance(r, Point)] == [0] * 30 + [1] * 30
    assert not any(isinstance(r, Onset) for r in records)  # the other level is another epoch's beginning


def test_a_file_ends_and_a_file_that_is_not_there_is_refused_at_once(light_model, make_video, tmp_path):
    path = make_video(tmp_path / "clip.mp4", [np.full((48, 64, 3), 90, np.uint8)] * 50)
    missing = tmp_path / "missing.mp4"
    with Watcher([str(path), f"gone={missing}"], model=light_model, thumbnails=False) as watcher:
        assert watcher.join(60)
        ended, failed = (stream.status() for stream in watcher.streams.values())
    assert (ended.state, ended.reason, ended.frames) == ("ended", "the source has ended", 48)
    assert failed.state == "failed"
    assert failed.reason == f"{missing}: no such file; check the path"


def test_watching_a_file_finds_what_detect_finds(light_model, make_video, make_scene, tmp_path):
    pictures = [make_scene(n // 25, 96, 64) for n in range(120)]
    path = make_video(tmp_path / "clip.mp4", pictures)
    watcher = Watcher([str(path)], model=light_model)
    with watcher.hub.subscribe(Found) as told, watcher:
        assert watcher.join(60)
    found = [record.boundary for record in everything(told)]
    assert found == ongebd.detect(path, light_model).boundaries
    assert found


def test_a_boundary_seen_while_its_frame_stays_is_told_with_its_picture(make_video, make_scene, tmp_path):
    pictures = [make_scene(n, 96, 64) for n in (0, 1, 2, 2)]
    path = make_video(tmp_path / "slides.mkv", pictures, rate=1, pts=[0, 4, 8, 12], options={"g": "1"})
    watcher = Watcher([str(path)], model=ongebd.load("immediate"))
    with watcher.hub.subscribe(Found) as told, watcher:
        assert watcher.join(60)
    found = [record for record in everything(told) if isinstance(record, Found)]
    assert [record.boundary.time for record in found] == [4.0, 8.0]
    assert all(record.has_thumbnail for record in found)


def test_a_source_without_frames_is_stalled_and_live_again(light_model):
    hold = threading.Event()

    class Pausing(MadeReader):
        def __iter__(self):
            frames = made_frames([0] * 20)
            yield from frames[:10]
            hold.wait(NEVER)
            yield from frames[10:]

    watcher = watching(light_model, Pausing([]), patience=replace(ONCE, stall_after=0.2))
    with watcher.hub.subscribe(StateChanged) as told, watcher:
        until(lambda: watcher.streams["cam"].status().state == "stalled")
        hold.set()
        assert watcher.join(60)
        changes = [(r.state, r.epoch, r.reason) for r in everything(told)]
    assert changes[:3] == [("live", 0, ""), ("stalled", 0, "no frame for 0.2 s"), ("live", 0, "")]


def test_frames_that_were_held_back_when_a_stalled_source_broke_do_not_make_it_live(light_model):
    hold, (last,) = threading.Event(), made_frames([0], start=10)
    broken = MadeReader(made_frames([0] * 10), hold=hold, broken="no data", late=[last])
    watcher = watching(light_model, broken, patience=replace(ONCE, stall_after=0.2))
    with watcher.hub.subscribe(StateChanged, Point) as told, watcher:
        until(lambda: watcher.streams["cam"].status().state == "stalled")
        hold.set()
        assert watcher.join(60)
        records = everything(told)
    states = [one.state for one in records if isinstance(one, StateChanged)]
    assert states[:3] == ["live", "stalled", "reconnecting"]
    assert sum(isinstance(one, Point) for one in records) == 11, "it is judged all the same"


class SlowPictures(Pictures):
    """Twenty milliseconds a frame."""

    def embed(self, frames):
        time.sleep(0.02)
        return super().embed(frames)


def test_a_flood_drops_the_oldest_counts_them_and_keeps_the_times(light_model):
    frames = made_frames([n // 40 for n in range(300)])
    slow = replace(light_model, backbone=SlowPictures(8, 6))
    arrived = {}

    class Noting(MadeReader):
        def __iter__(self):
            for frame in super().__iter__():
                arrived[float(frame.time)] = time.time()
                yield frame

    watcher = watching(slow, Noting(frames, pause=0.001), max_pending=8)
    with watcher.hub.subscribe(Point, Dropped, limit=10_000) as told, watcher:
        assert watcher.join(60)
        status = watcher.streams["cam"].status()
        records = everything(told)
    points = [r for r in records if isinstance(r, Point)]
    drops = [r for r in records if isinstance(r, Dropped)]
    assert status.dropped > 0
    assert len(points) + status.dropped == 300
    assert sum(r.count for r in drops) == drops[-1].total == status.dropped
    assert {point.time for point in points} <= {float(frame.time) for frame in frames}
    assert points[-1].time == float(frames[-1].time)
    walls = [*arrived.values(), float("inf")]  # each frame is taken before the next one is asked for
    for point in points:
        number = round(24 * point.time)
        assert walls[number] <= point.wall <= walls[number + 1]
    assert [point.time for point in points] == sorted(point.time for point in points)


def test_a_pipe_or_file_waits_for_the_model_and_loses_nothing(light_model, tmp_path):
    slow = replace(light_model, backbone=SlowPictures(8, 6))
    reader = MadeReader(made_frames([0] * 40), duration=2.0)
    with watching(slow, reader, source=str(tmp_path / "clip.mp4"), max_pending=4) as watcher:
        assert watcher.join(60)
    status = watcher.streams["clip"].status()
    assert (status.frames, status.dropped, status.state) == (40, 0, "ended")


def test_stopping_decides_what_waits_and_leaves_no_thread(light_model):
    hold = threading.Event()
    watcher = watching(light_model, MadeReader(made_frames([0] * 30 + [1] * 2), hold=hold))
    with watcher.hub.subscribe(Found, StateChanged) as told:
        watcher.start()
        until(lambda: watcher.streams["cam"].status().frames == 32)
        hold.set()
        watcher.stop()
        watcher.stop()
        records = everything(told)
    assert [type(r).__name__ for r in records[-2:]] == ["Found", "StateChanged"]
    assert (records[-1].state, records[-1].reason) == ("ended", "stopped")
    assert not our_threads()


@pytest.mark.parametrize("signals", [0, 1])
def test_stopping_drops_what_a_starved_model_cannot_decide(light_model, monkeypatch, signals):
    """A hundred frames of each camera wait; the model gets on only while a test lets it."""
    gate, looked = threading.Event(), []

    class Starved(Pictures):
        def embed(self, batch):
            looked.append(len(batch))
            gate.wait(NEVER)
            return super().embed(batch)

    sources = [f"cam{number}=rtsp://made/{number}" for number in range(8)]
    frames, hold = made_frames([0] * 100), threading.Event()
    model = replace(light_model, backbone=Starved(8, 6))
    opener = opens(*(MadeReader(frames, hold=hold) for _ in sources))
    watcher = Watcher(sources, model=model, opener=opener, max_pending=100)
    streams = watcher.streams.values()
    with watcher.hub.subscribe(Dropped, StateChanged, limit=1000) as told:
        watcher.start()
        until(lambda: sum(one._pooled.submitted for one in streams) == 800)
        hold.set()
        monkeypatch.setattr("ongebd.watch.watcher._STOP_SECONDS", NEVER if signals else 0.0)
        monkeypatch.setattr("ongebd.watch.sink._HURRY_SECONDS", 0.0)
        given = [None]
        stopping = threading.Thread(target=watcher.stop, args=[given])
        stopping.start()
        given += [None] * signals
        until(lambda: sum(one.status().dropped for one in streams) > 700)
        gate.set()
        stopping.join(60)
        records = everything(told)
    decided, dropped = (sum(getattr(one.status(), name) for one in streams) for name in ("frames", "dropped"))
    assert decided + dropped == 800
    assert len(looked) <= 3 * len(sources)  # those in the model's hands
    assert sum(one.count for one in records if isinstance(one, Dropped)) == dropped
    assert [one.status().state for one in streams] == ["ended"] * len(sources)


def test_a_watcher_that_never_started_stops_without_a_trace(light_model):
    watching(light_model, MadeReader([])).stop()


def test_the_sensitivity_acts_on_the_running_stream_and_survives_a_reconnect(light_model):
    hold = threading.Event()
    first = MadeReader(made_frames([0] * 30), hold=hold)
    watcher = watching(light_model, first, MadeReader(made_frames([0] * 30)))
    stream = watcher.streams["cam"]
    with watcher.hub.subscribe(Retuned, Point, limit=1000) as told, watcher:
        until(lambda: stream.status().frames == 30)
        stream.set_sensitivity(0.75)
        hold.set()
        assert watcher.join(60)
        records = everything(told)
    assert stream.status().sensitivity == 0.75
    assert [r.sensitivity for r in records if isinstance(r, Retuned)] == [0.75]
    retuned = light_model.stream(sensitivity=0.75)
    wanted = [retuned.update(frame.rgb, frame.time).threshold for frame in made_frames([0] * 30)]
    assert [r.threshold for r in records if isinstance(r, Point) and r.epoch == 1] == wanted
    with pytest.raises(ConfigError, match="closed"):
        stream.set_sensitivity(0.5)


@pytest.mark.parametrize("wrong", [0.05, 0.95, float("nan"), "0.5", True])
def test_a_sensitivity_out_of_range_is_refused(light_model, wrong):
    watcher = watching(light_model, MadeReader([]))
    with pytest.raises(ConfigError, match="sensitivity"):
        watcher.streams["cam"].set_sensitivity(wrong)
    watcher.stop()


def test_the_last_minutes_and_their_pictures_are_kept(light_model):
    frames = made_frames([n // 40 for n in range(200)])
    with watching(light_model, MadeReader(frames)) as watcher:
        assert watcher.join(60)
        stream = watcher.streams["cam"]
    assert max(one or 0 for one in stream.history.curve(watcher.clock.wall())["change"]) > 0
    boundaries = stream.history.boundaries(0)
    assert [known.onset.number for known in boundaries] == [1, 2, 3, 4]
    assert stream.status().boundaries == 4
    assert all(known.onset.has_thumbnail and known.found is not None for known in boundaries)
    picture = stream.history.picture(1)
    assert picture is not None
    assert picture[:3] == b"\xff\xd8\xff"
    assert stream.history.picture(99) is None


def test_a_look_ahead_is_told_late_but_at_its_own_time(make_scene):
    model = ongebd.load("predictability")
    light = replace(model, backbone=Pictures(8, 6))
    frames = made_frames([0] * 40 + [1] * 40)
    watcher = watching(light, MadeReader(frames))
    with watcher.hub.subscribe(Point, Onset, limit=1000) as told, watcher:
        assert watcher.join(60)
        records = everything(told)
    points = [r for r in records if isinstance(r, Point)]
    assert [point.time for point in points] == [float(frame.time) for frame in frames]
    assert [point.wall for point in points] == sorted(point.wall for point in points)


def test_frames_without_an_outcome_are_counted_and_the_stream_goes_on(light_model):
    frames = made_frames([0] * 30)
    broken = replace(frames[10], rgb=np.zeros((6, 8, 3), np.uint8))

    class NoNumbers(Pictures):
        def embed(self, pictures):
            features = super().embed(pictures)
            return features * np.nan if not pictures.any() else features

    model = replace(light_model, backbone=NoNumbers(8, 6))
    with watching(model, MadeReader([*frames[:10], broken, *frames[11:]])) as watcher:
        assert watcher.join(60)
    stream = watcher.streams["cam"]
    assert (stream.status().frames, stream.status().failed) == (29, 1)
    assert b'ongebd_frames_failed_total{stream="cam"} 1.0' in watcher.metrics()


def test_what_no_source_is_to_blame_for_stops_the_watcher_and_is_raised(light_model):
    class Faulty(MadeReader):
        def __iter__(self):
            yield made_frames([0])[0]
            raise ZeroDivisionError("a fault of ours")

    with watching(light_model, Faulty([])) as watcher, pytest.raises(RuntimeError, match="a fault of ours"):
        watcher.join(60)


def test_a_fault_after_the_last_frame_was_read_stops_the_watcher_too(light_model, monkeypatch):
    def faulty(*_):
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(WatchedStream, "decided", faulty)
    with (
        watching(light_model, MadeReader(made_frames([0] * 9))) as watcher,
        pytest.raises(RuntimeError, match="a fault of ours"),
    ):
        watcher.join(60)


def test_a_clock_beyond_all_dates_harms_nothing(light_model):
    frames = made_frames([0] * 30) + made_frames([1] * 30, start=10**17)
    with watching(light_model, MadeReader(frames)) as watcher:
        assert watcher.join(60)
    assert watcher.streams["cam"].status().frames == 60


def test_a_paced_file_takes_as_long_as_it_lasts(light_model):
    clock = FixedClock(1000.0)
    reader = MadeReader(made_frames([0] * 49), duration=2.0)
    watcher = watching(light_model, reader, source="film.mp4", realtime=True, clock=clock)
    with watcher.hub.subscribe(Point) as told, watcher:
        assert watcher.join(60)
        points = everything(told)
    assert clock.now == pytest.approx(1002.0)
    walls = [point.wall - points[0].wall for point in points]
    assert walls == pytest.approx([point.time for point in points], abs=1e-6)


def test_no_credentials_are_told(light_model):
    secret = "hunter2"
    watcher = Watcher(
        [f"rtsp://admin:{secret}@127.0.0.1:9/1?token={secret}"],
        model=light_model,
        patience=Patience(retries=1, first_delay=0.01),
    )
    with watcher.hub.subscribe() as told, watcher:
        assert watcher.join(60)
        told_all = repr(everything(told))
    assert "can't open" in told_all
    assert secret not in told_all
    assert secret not in watcher.streams["cam1"].name + repr(watcher.streams["cam1"].status())
    assert secret.encode() not in watcher.metrics()


def test_counters_say_what_happened(light_model):
    frames = made_frames([n // 40 for n in range(200)])
    with watching(light_model, MadeReader(frames), MadeReader(frames)) as watcher:
        assert watcher.join(60)
    text = watcher.metrics().decode()
    for line in (
        'ongebd_frames_total{stream="cam"} 400.0',
        'ongebd_boundaries_total{stream="cam"} 8.0',
        'ongebd_reconnects_total{stream="cam"} 1.0',
        'ongebd_frames_dropped_total{stream="cam"} 0.0',
        'ongebd_state{state="failed",stream="cam"} 1.0',
        'ongebd_lag_seconds_count{stream="cam"} 400.0',
    ):
        assert line in text


def test_a_slow_sink_holds_up_nobody_and_says_what_it_lost(light_model):
    complaints: list[str] = []

    class Sleepy(HubSink):
        def handle(self, record):
            self.ending.wait(NEVER)

    watcher = watching(light_model, MadeReader(made_frames([n // 2 for n in range(400)])))
    sink = Sleepy("sleepy", watcher.hub, (Point,), complaints.append, limit=5)
    watcher.attach(sink)
    with watcher:
        assert watcher.join(60)
        assert sink.done == 0
    assert watcher.streams["cam"].status().frames == 400
    assert sink.lost + sink.done == 400
    assert "sleepy: can't keep up: dropped " in complaints[0]


def test_an_unfit_model_is_refused_and_leaves_no_thread(light_model, tmp_path: Path):
    with pytest.raises(ConfigError, match="unknown model"):
        Watcher(["camera:0"], model="nonsense")
    with pytest.raises(ConfigError, match="max_pending"):
        Watcher(["camera:0"], model=light_model, max_pending=0)


def test_each_warning_of_a_reader_is_told_once_and_its_last_numbers_at_the_end(light_model):
    first = "damaged packets or frames: 1; decoded frames: 9"
    reader = MadeReader(made_frames([0] * 30), duration=1.0)
    reader.warnings = ["several video streams", first]
    watcher = Watcher(["film.mp4"], model=light_model, opener=opens(reader), thumbnails=False)
    told, stream = watcher.hub.subscribe(Warned), watcher.streams["film"]
    with watcher:
        until(stream.over.is_set)
        stream.warn(["several video streams", first.replace(" 1", " 7")])
        assert stream.status().warnings == ("several video streams", first)
        stream.warn(["several video streams", first.replace(" 1", " 7")], last=True)
        assert stream.status().warnings == ("several video streams", first.replace(" 1", " 7"))
    assert [one.warning for one in everything(told)] == [
        "several video streams",
        first,
        first.replace(" 1", " 7"),
    ]


def test_a_live_playlist_that_jumps_is_played_on_at_its_pace(light_model):
    jumped = [*made_frames([0] * 12), *made_frames([1] * 12, epoch=1, start=24_000)]  # 1000 s ahead
    reader = MadeReader(jumped, container="hls")
    with Watcher(["http://camera/1"], model=light_model, opener=opens(reader), patience=QUICK) as watcher:
        stream = watcher.streams["cam1"]
        until(lambda: stream.status().frames == 24)
        assert stream.status().epoch == 1
