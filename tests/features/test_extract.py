"""Extraction: the features of the stream, for many videos, whatever happens to one of them or to the run."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

import ongebd
from ongebd import backbones
from ongebd.errors import ConfigError, StoreError
from ongebd.features.extract import (
    ExtractConfig,
    Extracted,
    Working,
    extract,
    sampling_identity,
    video_features,
)
from ongebd.features.records import Failure, Failures
from ongebd.features.store import FeatureStore

Clips = Callable[..., list[tuple[str, Path]]]


def open_store(path: Path, backbone: object, fps: float = 24) -> FeatureStore:
    return FeatureStore.open_or_create(
        path, backbone=backbone.identity, dim=backbone.dim, fps=fps, sampling=sampling_identity(backbone)
    )


def run(videos: list, store: FeatureStore, backbone: object, **config: object) -> list[Extracted | Failure]:
    events = extract(videos, store, backbone, ExtractConfig(**config))
    return [event for event in events if not isinstance(event, Working)]


def test_features_are_those_of_the_stream(
    tmp_path: Path, make_video: Callable[..., Path], make_scene: Callable[..., np.ndarray]
) -> None:
    """What the stream's anticipator is shown, rounded to float16: the same to the last bit."""
    scenes = [make_scene(seed) for seed in (1, 2)]
    pictures = [np.roll(scenes[i // 10], 3 * i, axis=1) for i in range(20)]
    clip = make_video(tmp_path / "clip.mp4", pictures, rate=30)
    net = backbones.get("efficientnet_lite0")

    store = open_store(tmp_path / "store", net)
    run([("clip", clip)], store, net, workers=2)
    stored = store["clip"]

    seen: list[np.ndarray] = []
    times: list[float] = []

    class Listening:
        name, window = "listening", 1

        def anticipate(self, past: np.ndarray) -> np.ndarray:
            seen.append(past[-1].copy())
            return past[-1]

    model = ongebd.load("persistence")
    listening = ongebd.Model("listening", "", model.backbone, model.defaults, lambda _window: Listening())
    detection = ongebd.detect(clip, listening, fps=24)
    times = [decision.time for decision in detection.decisions]

    np.testing.assert_array_equal(stored.features[:-1], np.array(seen, np.float16))
    assert stored.times.tolist() == times
    assert stored.duration == detection.duration
    assert len(stored) == 16  # 20 frames at 30/s, sampled to 24/s


def test_batches_and_many_videos_at_once_give_the_same_store(
    tmp_path: Path, backbone: object, make_clips: Clips
) -> None:
    clips = make_clips(7)
    one = open_store(tmp_path / "one", backbone)
    run(clips, one, backbone)
    many = open_store(tmp_path / "many", backbone)
    run(clips, many, backbone, jobs=3, workers=2, batch=4)
    for name in ("index.jsonl", "shard-00000.bin", "store.json"):
        assert (one.path / name).read_bytes() == (many.path / name).read_bytes()


def test_what_is_in_the_store_is_not_done_again(tmp_path: Path, backbone: object, make_clips: Clips) -> None:
    clips = make_clips(4)
    store = open_store(tmp_path / "store", backbone)
    run(clips[:2], store, backbone)
    backbone.calls.clear()
    assert [event.id for event in run(clips, store, backbone)] == ["v002", "v003"]
    assert len(backbone.calls) == 2 * 5
    assert store.ids() == ["v000", "v001", "v002", "v003"]


def test_one_bad_video_does_not_stop_the_rest_and_is_tried_again(
    tmp_path: Path, backbone: object, make_clips: Clips
) -> None:
    clips = make_clips(4)
    good = clips[1][1].read_bytes()
    clips[1][1].write_text("no video at all")
    videos = [*clips, ("gone", tmp_path / "gone.mp4"), ("folder", tmp_path)]
    store = open_store(tmp_path / "store", backbone)
    outcome = {event.id: event for event in run(videos, store, backbone, jobs=2)}

    assert store.ids() == ["v000", "v002", "v003"]
    recorded = {failure.id: failure.reason for failure in Failures(store.path).read()}
    assert set(recorded) == {"v001", "gone", "folder"}
    assert recorded["v001"] == outcome["v001"].reason
    assert "can't read it as a video" in recorded["v001"]
    assert "no such file" in recorded["gone"]
    assert "is a directory" in recorded["folder"]

    run(videos, store, backbone)  # fails again, and is recorded once
    assert len(Failures(store.path).read()) == 3
    clips[1][1].write_bytes(good)
    assert isinstance(run(clips, store, backbone)[0], Extracted)
    assert {failure.id for failure in Failures(store.path).read()} == {"gone", "folder"}


def test_credentials_are_in_no_record_of_a_failure(tmp_path: Path, backbone: object) -> None:
    store = open_store(tmp_path / "store", backbone)
    address = "http://me:secret@127.0.0.1:9/a.mp4?token=xyz"
    (failure,) = run([("a", address)], store, backbone)
    text = (store.path / "failures.jsonl").read_text()
    assert "127.0.0.1" in text
    for hidden in ("secret", "xyz"):
        assert hidden not in text
        assert hidden not in str(failure)


def test_a_video_of_no_frames_is_stored_as_such(tmp_path: Path, backbone: object) -> None:
    empty = tmp_path / "empty.mkv"
    with av.open(str(empty), "w") as out:  # the video stream is declared, and a sound is all there is
        stream = out.add_stream("libx264", rate=24)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        sound = out.add_stream("aac", rate=8000)
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.float32), "fltp", "mono")
        silence.sample_rate, silence.pts = 8000, 0
        out.mux([*sound.encode(silence), *sound.encode(None)])
    store = open_store(tmp_path / "store", backbone)
    (event,) = run([("empty", empty)], store, backbone)
    assert isinstance(event, Extracted)
    assert (event.frames, store["empty"].features.shape) == (0, (0, 48))


def test_a_clock_that_breaks_is_in_the_epochs(
    tmp_path: Path, backbone: object, make_numbered: Callable, make_video: Callable
) -> None:
    parts = [
        make_video(tmp_path / f"{n}.ts", make_numbered(10), rate=25, container="mpegts", codec="mpeg2video")
        for n in range(2)
    ]
    joined = tmp_path / "joined.ts"
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    video = video_features(joined, backbone, 25)
    assert set(video.epochs) == {0, 1}
    assert video.times == sorted(video.times)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.nan, "NaN or infinity"),
        (np.inf, "NaN or infinity"),
        (0.0, "norm zero"),
        (1e6, "more than float16"),
    ],
)
def test_a_feature_that_no_model_can_learn_from_fails_its_video_alone(
    tmp_path: Path, backbone: object, make_clips: Clips, value: float, said: str
) -> None:
    right = backbone.embed

    def embed(frames: np.ndarray) -> np.ndarray:
        features = right(frames)
        return np.full_like(features, value) if len(backbone.calls) == 3 else features

    backbone.embed = embed
    store = open_store(tmp_path / "store", backbone)
    first, second = run(make_clips(2), store, backbone)
    assert isinstance(first, Failure)
    assert said in first.reason
    assert "frame 2 at 0.083 s" in first.reason
    assert isinstance(second, Extracted)


def test_a_mistake_in_our_own_code_is_not_taken_for_a_bad_video(
    tmp_path: Path, backbone: object, make_clips: Clips
) -> None:
    def embed(frames: np.ndarray) -> np.ndarray:
        raise TypeError("a bug")

    backbone.embed = embed
    with pytest.raises(TypeError, match="a bug"):
        run(make_clips(2), open_store(tmp_path / "store", backbone), backbone)


def test_a_full_disk_stops_the_run_with_one_error(
    tmp_path: Path, backbone: object, make_clips: Clips, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips = make_clips(5)
    store = open_store(tmp_path / "store", backbone)
    run(clips[:2], store, backbone)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    threads = threading.active_count()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="can't write 'v002': No space left on device"):
        run(clips, store, backbone, jobs=2)
    monkeypatch.undo()
    assert threading.active_count() == threads
    assert FeatureStore.open(store.path).ids() == ["v000", "v001"]
    assert Failures(store.path).read() == []
    run(clips, store, backbone)
    assert len(FeatureStore.open(store.path)) == 5


def test_stopping_early_keeps_finished_videos_and_leaves_no_thread(
    tmp_path: Path, backbone: object, make_clips: Clips
) -> None:
    threads = threading.active_count()
    store = open_store(tmp_path / "store", backbone)
    events = extract(make_clips(6), store, backbone, ExtractConfig(jobs=2))
    while not isinstance(event := next(events), Extracted):
        pass
    events.close()
    assert threading.active_count() == threads
    assert FeatureStore.open(store.path).ids() == [event.id]


def test_features_of_another_backbone_are_refused(tmp_path: Path, backbone: object) -> None:
    store = FeatureStore.create(tmp_path / "s", backbone="another@2", dim=48, fps=24)
    with pytest.raises(ConfigError, match="has features of another@2, not of mean-colours@1"):
        run([], store, backbone)


@pytest.mark.parametrize("name", ["jobs", "workers", "batch"])
def test_at_least_one_of_everything(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be at least 1, not 0"):
        ExtractConfig(**{name: 0})


def test_progress_is_told_while_a_video_takes_long(
    tmp_path: Path, backbone: object, make_clips: Clips, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[extract.__module__], "_LOOK_EVERY", 0.01)
    right, slow = backbone.embed, threading.Event()

    def embed(frames: np.ndarray) -> np.ndarray:
        slow.wait(0.02)
        return right(frames)

    backbone.embed = embed
    store = open_store(tmp_path / "store", backbone)
    told = [event for event in extract(make_clips(1, 24), store, backbone) if isinstance(event, Working)]
    parts = [event.videos for event in told]
    assert parts == sorted(parts)
    assert any(0.1 < part < 1 for part in parts)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
def test_memory_and_open_files_stay_flat_over_hundreds_of_videos(
    tmp_path: Path, backbone: object, make_clips: Clips
) -> None:
    (_, clip) = make_clips(1, 3)[0]
    store = open_store(tmp_path / "store", backbone)
    opened: list[int] = []
    memory: list[int] = []
    videos = [(f"v{i}", clip) for i in range(200)]
    for event in extract(videos, store, backbone, ExtractConfig(jobs=2)):
        if isinstance(event, Extracted) and len(store) % 10 == 0:
            gc.collect()
            opened.append(len(list(Path("/proc/self/fd").iterdir())))
            memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    assert max(opened[10:]) <= max(opened[:10]) + 1
    assert max(memory[10:]) - max(memory[:10]) < 8e6
    assert sum(json.loads(line)["frames"] for line in (store.path / "index.jsonl").open()) == 600
