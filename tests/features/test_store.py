"""A store, and the list of its failures, keep what was written whole."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from ongebd.errors import OngebdError, StoreError
from ongebd.features import store as store_module
from ongebd.features.records import Failure, Failures
from ongebd.features.store import FeatureStore, StoredVideo

DIM = 6


@pytest.fixture
def store(tmp_path: Path) -> FeatureStore:
    return FeatureStore.create(tmp_path / "store", backbone="net@abc", dim=DIM, fps=24)


def features_of(seed: int, frames: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(frames, DIM)).astype(np.float32)


def put(store: FeatureStore, name: str, seed: int, frames: int = 4) -> None:
    store.add(
        name, features_of(seed, frames), np.arange(frames) / 24, np.zeros(frames), frames / 24, f"{name}.mp4"
    )


def assert_holds(store: FeatureStore, name: str, seed: int, frames: int = 4) -> None:
    np.testing.assert_array_equal(store[name].features, features_of(seed, frames).astype(np.float16))


def test_what_goes_in_comes_out_as_float16_with_times_and_epochs(store: FeatureStore) -> None:
    given = features_of(1, 3)
    store.add("clip", given, [0.0, 0.04, 0.04], [0, 0, 1], 0.12, "clip.mp4")
    video: StoredVideo = FeatureStore.open(store.path)["clip"]
    assert (video.features.dtype, video.times.dtype, video.epochs.dtype) == (np.float16, np.float64, np.int32)
    np.testing.assert_array_equal(video.features, given.astype(np.float16))
    assert video.times.tolist() == [0.0, 0.04, 0.04]
    assert video.epochs.tolist() == [0, 0, 1]
    assert (video.id, video.duration, video.source, len(video)) == ("clip", 0.12, "clip.mp4", 3)


def test_the_header_and_the_ids_come_back_in_order(store: FeatureStore) -> None:
    for seed, name in enumerate(("b", "a", "with space", "zażółć", "-dash")):
        put(store, name, seed)
    again = FeatureStore.open(store.path)
    assert (again.backbone, again.dim, again.fps, len(again)) == ("net@abc", DIM, 24.0, 5)
    assert again.ids() == list(again) == ["b", "a", "with space", "zażółć", "-dash"]
    assert "a" in again
    assert "c" not in again
    assert len(again["a"]) == 4


def test_features_are_views_into_the_file_that_nobody_can_write_through(store: FeatureStore) -> None:
    put(store, "a", 1)
    video = FeatureStore.open(store.path)["a"]
    assert not video.features.flags.owndata
    assert not video.features.flags.writeable


def test_videos_of_no_frames_and_of_one_frame_are_kept_as_such(store: FeatureStore) -> None:
    put(store, "none", 0, frames=0)
    put(store, "one", 1, frames=1)
    put(store, "none again", 0, frames=0)
    again = FeatureStore.open(store.path)
    assert again["none"].features.shape == (0, DIM)
    assert again["none again"].times.shape == (0,)
    assert_holds(again, "one", 1, frames=1)


def test_large_stores_are_spread_over_several_files(
    store: FeatureStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "SHARD_BYTES", 300)
    for seed in range(9):
        put(store, f"v{seed}", seed)
    assert len(list(store.path.glob("shard-*.bin"))) >= 3
    again = FeatureStore.open(store.path)
    for seed in range(9):
        assert_holds(again, f"v{seed}", seed)


def test_a_store_can_be_handed_to_another_process(store: FeatureStore) -> None:
    put(store, "a", 1)
    assert_holds(pickle.loads(pickle.dumps(store)), "a", 1)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(FeatureStore.ids, (store,)) == ["a"]


def test_credentials_in_a_source_are_hidden(store: FeatureStore) -> None:
    store.add("cam", features_of(1), np.arange(4), np.zeros(4), 4.0, "https://me:secret@host/a.mp4?token=xyz")
    assert b"secret" not in (store.path / "index.jsonl").read_bytes()
    assert b"xyz" not in (store.path / "index.jsonl").read_bytes()
    assert store["cam"].source == "https://***@host/a.mp4?token=***"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"backbone": "net@other"}, "backbone 'net@abc', not 'net@other'"),
        ({"fps": 6}, "fps 24.0, not 6.0"),
        ({"dim": 7}, "dim 6, not 7"),
        ({"sampling": "another"}, "sampling '', not 'another'"),
    ],
)
def test_other_features_are_never_mixed_in(store: FeatureStore, change: dict[str, object], said: str) -> None:
    same = {"backbone": "net@abc", "dim": DIM, "fps": 24}
    assert FeatureStore.open_or_create(store.path, **same).dim == DIM
    with pytest.raises(StoreError, match=f"holds other features .{said}"):
        FeatureStore.open_or_create(store.path, **{**same, **change})


@pytest.mark.parametrize(
    ("features", "times", "epochs", "duration", "said"),
    [
        (np.ones((2, 5)), [0, 1], [0, 0], 1.0, r"shape \(2, 5\), wanted \(T, 6\)"),
        (np.ones((2, DIM)), [0], [0, 0], 1.0, "2 features, times of shape"),
        (np.ones((2, DIM)), [0, 1], [0], 1.0, "epochs of shape"),
        (np.full((2, DIM), np.nan), [0, 1], [0, 0], 1.0, "with NaN"),
        (np.full((2, DIM), 1e6), [0, 1], [0, 0], 1.0, "too large for float16"),
        (np.ones((2, DIM)), [0, np.inf], [0, 0], 1.0, "a time or a duration that isn't a finite number"),
        (np.ones((2, DIM)), [0, 1], [0, 0], np.nan, "a time or a duration that isn't a finite number"),
        (np.ones((3, DIM)), [0, 2, 1], [0, 0, 0], 3.0, "times that decrease, 1 after 2 s at frame 2"),
        (np.ones((3, DIM)), [0, 2, 1], [0, 0, 1], 3.0, "times that decrease"),  # in a new epoch neither
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    store: FeatureStore, features: np.ndarray, times: list, epochs: list, duration: float, said: str
) -> None:
    with pytest.raises(StoreError, match=said):
        store.add("a", features, times, epochs, duration, "a.mp4")
    assert len(FeatureStore.open(store.path)) == 0


def test_an_id_occurs_once(store: FeatureStore) -> None:
    put(store, "a", 1)
    with pytest.raises(StoreError, match="has 'a' already"):
        put(store, "a", 2)
    with pytest.raises(StoreError, match="has an empty id"):
        put(store, "", 2)
    assert_holds(store, "a", 1)


def test_an_unknown_id_is_named(store: FeatureStore) -> None:
    with pytest.raises(StoreError, match="no video 'x' among its 0"):
        store["x"]


def test_a_torn_index_line_is_passed_over_and_overwritten(store: FeatureStore) -> None:
    put(store, "a", 1)
    put(store, "b", 2)
    store.close()
    index = store.path / "index.jsonl"
    index.write_bytes(index.read_bytes()[:-20])
    again = FeatureStore.open(store.path)
    assert again.ids() == ["a"]
    put(again, "c", 3)
    last = FeatureStore.open(store.path)
    assert last.ids() == ["a", "c"]
    assert_holds(last, "a", 1)
    assert_holds(last, "c", 3)


def test_bytes_behind_the_last_video_are_overwritten(store: FeatureStore) -> None:
    put(store, "a", 1)
    with (store.path / "shard-00000.bin").open("ab") as shard:
        shard.write(b"half a video" * 100)
    put(store, "b", 2)
    size = (store.path / "shard-00000.bin").stat().st_size
    assert size < 600
    assert_holds(FeatureStore.open(store.path), "b", 2)


def test_a_broken_line_in_the_middle_is_refused_with_its_number(store: FeatureStore) -> None:
    for seed, name in enumerate("abc"):
        put(store, name, seed)
    index = store.path / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(lines[0] + b'{"id": "b", "sha\n' + lines[2])
    with pytest.raises(StoreError, match=r"index.jsonl, line 2: damaged"):
        FeatureStore.open(store.path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field in ("shard", "offset", "frames") for value in ("2", 2.0, -1, True, None)),
        *(("duration", value) for value in ("1.0", None, True, float("nan"), float("inf"), 10**400)),
        *((field, value) for field in ("id", "source") for value in (3, None, ["a"])),
    ],
)
def test_a_field_of_another_kind_is_refused_when_the_store_is_opened(
    store: FeatureStore, field: str, value: object
) -> None:
    put(store, "a", 1)
    index = store.path / "index.jsonl"
    index.write_text(json.dumps(json.loads(index.read_text()) | {field: value}) + "\n")
    with pytest.raises(StoreError, match=r"index.jsonl, line 1: damaged"):
        FeatureStore.open(store.path)


def test_what_is_nested_too_deeply_is_refused_in_the_index_and_in_the_header(store: FeatureStore) -> None:
    put(store, "a", 1)
    for name, said in (("index.jsonl", "line 1: damaged"), ("store.json", "damaged, or not the header")):
        (store.path / name).write_text("[" * 200_000 + "\n")
        with pytest.raises(StoreError, match=said):
            FeatureStore.open(store.path)


def test_a_lost_index_does_not_make_the_features_writable_space(store: FeatureStore) -> None:
    put(store, "a", 1)
    (store.path / "index.jsonl").unlink()
    with pytest.raises(StoreError, match=r"index\.jsonl is missing"):
        FeatureStore.open(store.path)


def test_a_truncated_shard_is_reported(store: FeatureStore) -> None:
    put(store, "a", 1, frames=400)
    os.truncate(store.path / "shard-00000.bin", 1000)
    again = FeatureStore.open(store.path)
    with pytest.raises(StoreError, match=r"shorter than its index says \(at 'a'\); copy the store again"):
        again["a"]


def test_a_second_writer_is_refused_until_the_first_is_done(store: FeatureStore) -> None:
    put(store, "a", 1)
    other = FeatureStore.open(store.path)
    with pytest.raises(StoreError, match="another process is writing to it"):
        put(other, "b", 2)
    put(store, "c", 3)
    store.close()
    put(other, "b", 2)  # and behind what the first wrote meanwhile
    assert FeatureStore.open(store.path).ids() == ["a", "c", "b"]


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="isn't empty"):
        FeatureStore.create(tmp_path, backbone="n", dim=1, fps=1)
    with pytest.raises(StoreError, match="can't make a store"):
        FeatureStore.create(tmp_path / "notes.txt", backbone="n", dim=1, fps=1)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(("dim", "fps"), [(0, 24), (4, 0), (4, float("nan"))])
def test_a_store_needs_a_size_and_a_rate(tmp_path: Path, dim: int, fps: float) -> None:
    with pytest.raises(StoreError, match="dim and fps above 0"):
        FeatureStore.create(tmp_path / "s", backbone="n", dim=dim, fps=fps)


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "not a feature store"), ("{}", "damaged, or not the header"), ('{"format": 9}', "format 9")],
)
def test_a_folder_that_is_not_a_store_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "store.json").write_text(text)
    with pytest.raises(OngebdError, match=said):
        FeatureStore.open(tmp_path)


FILL = """
import resource, sys
import numpy as np
from ongebd.errors import StoreError
from ongebd.features.store import FeatureStore
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
store = FeatureStore.open(sys.argv[1])
added = 0
try:
    while True:
        store.add(f"v{added}", np.full((100, 6), added), np.zeros(100), np.zeros(100), 1.0, "x")
        added += 1
except StoreError as problem:
    print(added, problem)
"""


def test_a_file_that_may_not_grow_ends_the_writing_with_one_line_and_loses_nothing(
    store: FeatureStore,
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FILL, str(store.path)], capture_output=True, text=True, check=True
    )
    added = int(run.stdout.split()[0])
    assert added >= 5
    assert f"can't write 'v{added}': File too large; the {added} videos before it are safe" in run.stdout
    again = FeatureStore.open(store.path)
    assert len(again) == added
    put(again, "more", 7)
    assert_holds(again, "more", 7)
    for i in range(added):
        assert (again[f"v{i}"].features == i).all()


@pytest.mark.parametrize("file", ["shard", "index"])
def test_a_full_disk_is_reported_and_the_store_is_unchanged(
    store: FeatureStore, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a", 1)
    synced: list[int] = []

    def full(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == (1 if file == "shard" else 2):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = (store.path / "index.jsonl").read_bytes()
    with pytest.raises(StoreError, match="can't write 'b': No space left on device; the 1 videos"):
        put(store, "b", 2)
    monkeypatch.undo()
    assert (store.path / "index.jsonl").read_bytes() == before
    put(store, "b", 3)
    assert_holds(FeatureStore.open(store.path), "b", 3)
    assert_holds(FeatureStore.open(store.path), "a", 1)


FIRST, LOST, NEXT, LAST = (Failure(name, f"{name}.mp4", "broken") for name in ("a", "lost", "b", "c"))


def line(failure: Failure) -> bytes:
    return json.dumps(asdict(failure)).encode() + b"\n"


@pytest.mark.parametrize("kept", range(len(line(LOST))))
def test_a_line_cut_off_anywhere_swallows_no_other(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "failures.jsonl"
    path.write_bytes(line(FIRST) + line(LOST)[:kept])
    failures = Failures(tmp_path)
    assert failures.read() == [FIRST]
    failures.add(NEXT)
    failures.add(LAST)
    assert failures.read() == [FIRST, NEXT, LAST]
    assert path.read_bytes() == line(FIRST) + line(NEXT) + line(LAST)


def test_lines_that_are_no_failure_are_passed_over(tmp_path: Path) -> None:
    odd = (b"[" * 200_000, b"7", b"{}", b'{"id": "a"}', b"\xff", b"")
    (tmp_path / "failures.jsonl").write_bytes(b"\n".join((*odd, line(FIRST))))
    assert Failures(tmp_path).read() == [FIRST]
