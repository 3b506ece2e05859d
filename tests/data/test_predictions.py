"""Reading predictions: our JSONL, the official pickle, JSON, CSV."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ongebd.data import PredictionSet, as_label_set, read_predictions
from ongebd.data.labels import read_ids, read_labels
from ongebd.errors import LabelError

HEADER = {"type": "header", "source": "films/a clip.mp4", "version": "0.1.0", "model": "window-mean"}
BOUNDARY = {"type": "boundary", "time": 2.0, "onset": 1.9, "decided": 2.2, "score": 3.0}
END = {"type": "end", "complete": True, "duration": 10.0, "frames": 250}


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def times(predictions: PredictionSet) -> dict[str, list[float]]:
    return {name: video.times.tolist() for name, video in predictions.videos.items()}


def test_our_jsonl_gives_centres_onsets_and_decisions_under_the_sources_stem(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(lines(HEADER, {"type": "epoch", "number": 1}, BOUNDARY, {"type": "new kind"}, END))
    predictions = read_predictions(path)
    assert times(predictions) == {"a clip": [2.0]}
    video = predictions.videos["a clip"]
    assert video.decided is not None
    assert (video.decided.tolist(), video.complete, predictions.kind) == ([2.2], True, "ongebd-jsonl")
    assert times(predictions.at("onset")) == {"a clip": [1.9]}


def test_records_of_several_watched_streams_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "watched.jsonl"
    one, two = (
        {"type": "streams", "streams": names} for names in ({"a": "a.mp4"}, {"a": "a.mp4", "b": "b.mp4"})
    )
    path.write_text(lines(HEADER, one, {**BOUNDARY, "stream": "a"}, END))
    assert times(read_predictions(path)) == {"a clip": [2.0]}
    path.write_text(lines(HEADER, two, {**BOUNDARY, "stream": "a"}, {**BOUNDARY, "stream": "b"}, END))
    with pytest.raises(LabelError, match="line 2: records of 2 streams, of `ongebd watch`"):
        read_predictions(path)


def onset_decisions(path: Path) -> list[float] | None:
    (video,) = read_predictions(path).at("onset").videos.values()
    return None if video.decided is None else video.decided.tolist()


@pytest.mark.parametrize(
    ("settings", "known", "decided"),
    [
        ({}, [None, None], None),
        ({"max_run": 1.0}, [None, None], None),
        ({"max_run": 1.0}, [2.0, 6.5], [2.0, 6.5]),
        ({"max_run": 1.0}, [2.0, None], None),  # a part is not enough
        ({"max_run": 0.0}, [None, None], [2.2, 7.0]),  # the onset decides the boundary
        ({"max_run": False}, [None, None], None),
        (7, [None, None], None),
    ],
)
def test_an_onset_was_known_when_the_file_says_so_and_else_nobody_guesses(
    tmp_path: Path, settings: object, known: list[float | None], decided: list[float] | None
) -> None:
    late = {**BOUNDARY, "time": 6.0, "onset": 5.9, "decided": 7.0}
    records = [
        record if when is None else {**record, "onset_known": when}
        for record, when in zip((BOUNDARY, late), known, strict=True)
    ]
    path = tmp_path / "out.jsonl"
    path.write_text(lines({**HEADER, "settings": settings}, *records, END))
    assert onset_decisions(path) == decided


def test_json_and_csv_may_say_when_each_onset_was_known(tmp_path: Path) -> None:
    for extra, column, decided in (({"onsets_known": [2.4]}, ",onset_known", [2.4]), ({}, "", None)):
        value = {"times": [2.0], "decided": [2.2], "onsets": [1.9], **extra}
        (tmp_path / "p.json").write_text(json.dumps({"v": value}))
        (tmp_path / "p.csv").write_text(f"id,time,decided,onset{column}\nv,2.0,2.2,1.9{column and ',2.4'}\n")
        assert onset_decisions(tmp_path / "p.json") == onset_decisions(tmp_path / "p.csv") == decided


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\u000b", "\u000c", "\u001c", "\u001e"])
def test_only_a_line_feed_ends_a_record(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "out.jsonl"
    header = {**HEADER, "source": f"a{separator}clip.mp4"}
    records = (header, BOUNDARY, END)
    path.write_text(
        "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records), encoding="utf-8"
    )
    predictions = read_predictions(path)
    assert times(predictions) == {f"a{separator}clip": [2.0]}
    assert predictions.videos[f"a{separator}clip"].complete
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert times(read_predictions(path)) == times(predictions)


def test_a_folder_is_one_video_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines({**HEADER, "source": "a.mp4"}, BOUNDARY, END))
    (tmp_path / "b.jsonl").write_text(lines({**HEADER, "source": "b.mp4"}, END))
    (tmp_path / "b.png").write_bytes(b"not read")
    predictions = read_predictions(tmp_path)
    assert times(predictions) == {"a": [2.0], "b": []}
    assert predictions.has_decisions


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("C:\\films\\a.b.mp4", "a.b"),
        ("https://host/live/cam.m3u8?token=1", "cam"),
        ("RTSP://host/cam.sdp?channel=1", "cam"),
        ("http:/host/cam.mp4?a", "cam"),  # as pathlib leaves it
        ("films/what?.mp4", "what?"),
        ("what?01.mp4", "what?01"),
        ("C:/films/what?01.mp4", "what?01"),
        ("file:///films/what?01.mp4", "what?01"),
        (None, "out"),
        ("", "out"),
    ],
)
def test_the_id_comes_from_the_source_or_else_from_the_file(
    tmp_path: Path, source: object, name: str
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(lines({**HEADER, "source": source}, BOUNDARY, END))
    assert list(read_predictions(path).videos) == [name]


@pytest.mark.parametrize("tail", ["", '{"type": "bound', lines({**END, "complete": False})])
def test_a_run_that_was_cut_short_is_scored_and_counted(tmp_path: Path, tail: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(lines(HEADER, BOUNDARY) + tail)
    predictions = read_predictions(path)
    assert times(predictions) == {"a clip": [2.0]}
    assert [note.split(" (")[0] for note in predictions.notes] == ["1 video whose detection was cut short"]


def test_the_official_pickle_json_and_csv_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "p.pkl").write_bytes(
        pickle.dumps({np.str_("v"): np.array([5.0, 2.0]), "w": [], b"x": [np.float32(1)]})
    )
    (tmp_path / "p.json").write_text('{"v": [5, 2.0], "w": [], "x": {"times": [1.0], "decided": [1.5]}}')
    (tmp_path / "p.csv").write_text("id,time\nv,5.0\nv,2\nw,\nx,1\n")
    for name in ("p.pkl", "p.json", "p.csv"):
        predictions = read_predictions(tmp_path / name)
        assert times(predictions) == {"v": [5.0, 2.0], "w": [], "x": [1.0]}
        assert any("1 video with times out of order" in note for note in predictions.notes)
        assert not predictions.has_decisions


def test_frames_become_seconds_by_the_labels_rate() -> None:
    labels = as_label_set({"v": {"video_duration": 10.0, "fps": 25.0, "substages_timestamps": [[2.0]]}})
    bare = as_label_set({"v": {"video_duration": 10.0, "substages_timestamps": [[2.0]]}})
    frames = PredictionSet(read_from({"v": [50, 60]}), unit="frames")
    assert times(frames.in_seconds(labels)) == {"v": [2.0, 2.4]}
    assert times(frames.in_seconds(labels).in_frames(labels)) == {"v": [50.0, 60.0]}
    with pytest.raises(LabelError, match="video 'v' has no fps"):
        frames.in_seconds(bare)


def read_from(values: dict[str, list[float]]) -> dict[str, object]:
    from ongebd.data import as_prediction_set

    return dict(as_prediction_set(values, "frames").videos)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("p.json", '{"v": [1.0, NaN]}', "video 'v', position 2: nan is not a finite number"),
        ("p.json", '{"v": ["1"]}', "video 'v', position 1: must be a number, not the text '1'"),
        ("p.json", '{"v": 3}', "video 'v': must be a list of numbers, not a value of type int"),
        ("p.json", '{"v": {"frame_idx": [3], "scores": [0.5]}}', "it has 'frame_idx, scores'"),
        ("p.json", '{"v": {"times": [1.0], "decided": [1, 2]}}', "2 decided for 1 times"),
        ("p.json", "{}", "no video in it"),
        ("p.json", "[]", "predictions are a dict of times by id"),
        ("p.csv", "id,time\nv,x\n", "line 2, time: 'x' is not a number"),
        ("p.csv", "id,time\nv,nan\n", "line 2, time: nan is not a finite number"),
        ("p.csv", "video,time\nv,1\n", "column 'id' is missing"),
        ("p.csv", 'id,time\n"v"x,1\n', "line 2: not CSV"),
        ("p.jsonl", lines(HEADER, {"type": "boundary", "time": 1.0}), "line 2: a boundary without 'onset'"),
        ("p.jsonl", lines(HEADER, {**BOUNDARY, "onset_known": "soon"}), "line 2, onset_known: must be"),
        ("p.jsonl", lines(HEADER) + "oops\n" + lines(END), "line 2: not JSON"),
        ("p.jsonl", lines(HEADER, HEADER), "line 2: a second result for video 'a clip'"),
        ("p.jsonl", "[" * 200_000 + "\n" + lines(END), "line 1: not JSON (nested too deeply)"),
        ("p.jsonl", lines(HEADER) + '{"type": ' * 200_000 + "\n" + lines(END), "line 2: not JSON"),
        ("p.json", '{"v": ' * 200_000, "nested too deeply"),
        ("p.jsonl", lines({"type": "note"}), "no header and no boundary"),
        ("p.jsonl", lines(HEADER, [1]), "line 2: must be an object"),
        ("p.mp4", "x", "predictions are a folder or end in .jsonl"),
        ("p.json", "", "the file is empty"),
    ],
)
def test_a_bad_file_gets_one_clear_line(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(LabelError) as refused:
        read_predictions(path)
    assert complaint in str(refused.value)
    assert name in str(refused.value)


@pytest.mark.parametrize("blank", [b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\xef\xbb\xbf  \r\n \n", b"\n\n"])
@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".pkl"])
def test_a_file_with_nothing_in_it_but_a_byte_order_mark_is_an_empty_one(
    tmp_path: Path, blank: bytes, suffix: str
) -> None:
    path = tmp_path / f"blank{suffix}"
    path.write_bytes(blank)
    for read in (read_predictions, *((read_labels, read_ids) if suffix == ".csv" else ())):
        with pytest.raises(LabelError, match="the file is empty"):
            read(path)


@pytest.mark.parametrize(
    "entries",
    [{"1": [1.0], 1: [2.0]}, {b"v": [1.0], "v": []}, {"1.5": {"times": [1.0]}, 1.5: {"times": [2.0]}}],
)
def test_two_keys_of_a_pickle_that_are_one_id_are_refused(tmp_path: Path, entries: dict[object, Any]) -> None:
    path = tmp_path / "p.pkl"
    path.write_bytes(pickle.dumps(entries))
    with pytest.raises(LabelError, match=r"p\.pkl: video '.*': occurs twice"):
        read_predictions(path)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match=r"no \.jsonl file in this folder"):
        read_predictions(tmp_path)


def test_onsets_that_are_not_known_cannot_be_scored(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"v": [1.0]}')
    with pytest.raises(LabelError, match="video 'v' has no onsets"):
        read_predictions(tmp_path / "p.json").at("onset")


def test_keys_that_are_not_read_are_counted_and_misspelt_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text('{"v": {"times": [1.0], "foo": 2}, "w": {"times": [], "foo": 2, "bar": 3}}')
    assert read_predictions(path).notes == ("not read: 'foo' (2 times), 'bar' (1 time)",)
    for key, meant in (("onset", "onsets"), ("Decided", "decided"), ("decides", "decided")):
        path.write_text(json.dumps({"v": {"times": [1.0], key: [1.0]}}))
        with pytest.raises(LabelError, match=rf"video 'v': unknown '{key}'; did you mean '{meant}'"):
            read_predictions(path)
    (tmp_path / "p.csv").write_text("id,time,onsets\nv,1.0,0.9\n")
    with pytest.raises(LabelError, match=r"p\.csv, line 2: unknown 'onsets'; did you mean 'onset'"):
        read_predictions(tmp_path / "p.csv")


@pytest.mark.parametrize("other", ["films/a clip.mp4", "films/a clip.avi"])
def test_two_results_with_one_id_are_refused(tmp_path: Path, other: str) -> None:
    (tmp_path / "one.jsonl").write_text(lines(HEADER, END))
    (tmp_path / "two.jsonl").write_text(lines({**HEADER, "source": other}, END))
    both = tmp_path / "both.jsonl"
    both.write_text((tmp_path / "one.jsonl").read_text() + (tmp_path / "two.jsonl").read_text())
    with pytest.raises(
        LabelError, match=r"line 3: a second result for video 'a clip', also in .*both\.jsonl"
    ):
        read_predictions(both)
    both.unlink()
    with pytest.raises(LabelError, match=r"two\.jsonl: a second result for video 'a clip', .*one\.jsonl"):
        read_predictions(tmp_path)


def test_the_methods_that_headers_name_are_counted(tmp_path: Path) -> None:
    settings = {"settings": {"tau": 0.5}}
    (tmp_path / "a.jsonl").write_text(lines({**HEADER, **settings, "source": "a.mp4"}, END))
    (tmp_path / "b.jsonl").write_text(lines({**HEADER, **settings, "source": "b.mp4"}, END))
    (tmp_path / "c.jsonl").write_text(lines({"type": "header", "source": "c.mp4", "settings": 3}, END))
    assert read_predictions(tmp_path).made_by == {"window-mean, τ 0.5, ongebd 0.1.0": 2}
