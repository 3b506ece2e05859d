"""Reading labels: every format, and one clear line for what is wrong."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import pytest

from ongebd.data import read_ids, read_labels
from ongebd.data.labels import as_label_set
from ongebd.errors import LabelError


def entry(**changes: object) -> dict[str, object]:
    video: dict[str, object] = {
        "fps": 25.0,
        "num_frames": 250,
        "video_duration": 10.0,
        "f1_consis": [0.4, 0.6],
        "f1_consis_avg": 0.5,
        "substages_timestamps": [[2.0, 5.0], [2.1]],
        "substages_myframeidx": [[50, 125], [52]],
    }
    return {name: value for name, value in (video | changes).items() if value != "absent"}


def write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    if name.endswith(".pkl"):
        path.write_bytes(pickle.dumps(content))
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["labels.pkl", "labels.json"])
def test_the_official_schema_is_read_with_the_files_fingerprint(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, {"v": entry()})
    labels = read_labels(path)
    video = labels.videos["v"]
    assert [times.tolist() for times in video.boundaries] == [[2.0, 5.0], [2.1]]
    assert (video.duration, video.fps, video.last_frame, video.most_consistent) == (10.0, 25.0, 249, 1)
    assert labels.dataset == "kinetics-gebd"
    assert labels.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (len(labels), labels.boundary_count, labels.annotator_counts) == (1, 2, {2: 1})


def test_tapos_counts_frames_from_start_to_end(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path, "t.pkl", {"v": entry()}), "tapos")
    assert labels.dataset == "tapos"
    assert labels.videos["v"].last_frame == 250  # its num_frames is end − start, so the length is 251


def test_a_file_from_before_2022_has_its_times_from_frames(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path, "old.pkl", {"v": entry(substages_timestamps="absent")}))
    assert labels.videos["v"].boundaries[0].tolist() == [2.0, 5.0]
    assert any("frame numbers only" in note for note in labels.notes)


def test_odd_boundaries_are_kept_and_counted(tmp_path: Path) -> None:
    rows = {
        "v": entry(substages_timestamps=[[5.0, 2.0], []]),
        "w": entry(substages_timestamps=[[-1.0], [11.0]]),
    }
    labels = read_labels(write(tmp_path, "odd.json", rows))
    assert labels.videos["v"].boundaries[0].tolist() == [5.0, 2.0]
    assert [note.split(" (")[0] for note in labels.notes] == [
        "1 video with boundaries out of order",
        "1 video with boundaries before 0 or after the end",
        "1 video with an annotator who saw no boundary",
    ]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"video_duration": "absent"}, "'video_duration' is missing"),
        ({"video_duration": 0}, "duration is 0.0; it must be above 0"),
        ({"video_duration": -3.0}, "duration is -3.0; it must be above 0"),
        ({"video_duration": 1e9}, "it must be above 0 and at most 1,000,000"),
        ({"video_duration": float("nan")}, "video_duration: nan is not a finite number"),
        ({"video_duration": "ten"}, "video_duration: must be a number, not the text 'ten'"),
        (
            {"substages_timestamps": [[2.0], [1.0, float("nan")]]},
            "annotator 1, position 2: nan is not a finite",
        ),
        (
            {"substages_timestamps": [[2.0], [float("inf"), 3]]},
            "annotator 1, position 1: inf is not a finite",
        ),
        (
            {"substages_timestamps": [2.0, 3.0]},
            "annotator 0: must be a list of numbers, not a value of type float",
        ),
        ({"substages_timestamps": [[True], [2.0]]}, "annotator 0, position 1: must be a number"),
        ({"substages_timestamps": []}, "has no annotator"),
        (
            {"substages_timestamps": "absent", "substages_myframeidx": "absent"},
            "'substages_timestamps' is missing",
        ),
        ({"f1_consis": [0.5]}, "1 consistency scores for 2 annotators"),
        ({"fps": 0}, "fps is 0.0; it must be above 0"),
    ],
)
def test_a_bad_entry_is_named_with_its_video_and_place(
    tmp_path: Path, changes: dict[str, object], complaint: str
) -> None:
    path = write(tmp_path, "bad.pkl", {"good": entry(), "bad": entry(**changes)})
    with pytest.raises(LabelError) as refused:
        read_labels(path)
    assert str(refused.value).startswith(f"{path}: video 'bad'")
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("empty.json", "{}", "no labelled video in it"),
        ("blank.json", " \n", "the file is empty"),
        ("list.json", "[1, 2]", "labels are a dict of videos by id, not a value of type list"),
        ("cut.json", '{"v": {"video_duration": 10.0, ', "not valid JSON at line 1"),
        ("twice.json", '{"v": {"duration": 1, "boundaries": []}, "v": {}}', "'v' occurs twice"),
        ("long.json", '{"v": ' + "9" * 5000 + "}", "is too long"),
        ("predictions.json", '{"v": [1.0, 2.0]}', "is this a file of predictions?"),
        ("labels.txt", "x", "labels end in .pkl, .pickle, .json or .csv"),
        ("labels.csv", "id,boundaries\nv,1 2\n", "column 'duration' is missing"),
        ("labels.csv", "id,duration,boundaries\nv,10\n", "line 2: 2 cells where line 1 has 3"),
        ("labels.csv", "id,duration,boundaries\nv,10,1 x\n", "line 2, boundaries: 'x' is not a number"),
        ("labels.csv", "id,duration,boundaries\nv,10,1\nv,11,2\n", "line 3: video 'v' has two durations"),
        (
            "labels.csv",
            "id,duration,boundaries\nv,10,1\nv,10,2\n",
            "line 3: annotator '' of video 'v' occurs twice",
        ),
        ("labels.csv", "id,duration,boundaries\n", "no labelled video in it"),
        ("labels.csv", "id,duration,boundaries\n,1,1\n", "the id is empty"),
        ("labels.csv", "id,duration,boundaries\nv,10,1e999\n", "inf is not a finite number (1e999"),
        ("int.json", '{"v": {"duration": 1' + "0" * 400 + ', "boundaries": []}}', "the number is too large"),
        ("deep.json", "[" * 100_000, "nested too deeply"),
        (
            "own.json",
            '{"v": {"duration": 10, "boundaries": [[2]], "fps": 0}}',
            "fps is 0.0; it must be above",
        ),
        ("own.json", '{"v": {"duration": 10, "boundaries": [[2]], "consistency": "x"}}', "must be a number"),
        ("steps.csv", "id,duration,start,end\nv,10,4,3\n", "line 2: the step ends at 3 s, before it starts"),
    ],
)
def test_a_bad_file_gets_one_clear_line(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    with pytest.raises(LabelError) as refused:
        read_labels(write(tmp_path, name, content))
    assert complaint in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / name))
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match="No such file"):
        read_labels(tmp_path / "none.pkl")
    with pytest.raises(LabelError, match="no labelled video in it"):
        read_labels(tmp_path)


def test_our_csv_and_json_say_the_same(tmp_path: Path) -> None:
    table = "id,duration,annotator,boundaries\nv,10,anna,2.0 5.0\nv,10,ben,\nw,3.5,anna,1.25\n"
    value = {
        "v": {"duration": 10, "boundaries": [[2.0, 5.0], []]},
        "w": {"duration": 3.5, "boundaries": [1.25]},
    }
    from_csv = read_labels(write(tmp_path, "l.csv", table))
    from_json = read_labels(write(tmp_path, "l.json", value))
    for labels in (from_csv, from_json):
        assert labels.dataset == "custom"
        rows = {name: [times.tolist() for times in video.boundaries] for name, video in labels.videos.items()}
        assert rows == {"v": [[2.0, 5.0], []], "w": [[1.25]]}
        assert [video.duration for video in labels.videos.values()] == [10.0, 3.5]


def test_our_csv_json_and_the_official_schema_may_say_kinds(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("id,duration,boundaries,kinds\na,9,1 2.5,cut fade\n")
    (tmp_path / "l.json").write_text(
        '{"a": {"duration": 9, "boundaries": [1, 2.5], "kinds": ["cut", "fade"]}}'
    )
    official = {"a": {"video_duration": 9, "substages_timestamps": [[1, 2.5]], "kinds": [["cut", "fade"]]}}
    found = [read_labels(tmp_path / name) for name in ("l.csv", "l.json")] + [as_label_set(official)]
    assert [labels.videos["a"].kinds for labels in found] == [(("cut", "fade"),)] * 3
    for kinds in ('["cut"]', '"cut fade"', '[["cut", 3]]'):
        (tmp_path / "l.json").write_text(
            f'{{"a": {{"duration": 9, "boundaries": [1, 2.5], "kinds": {kinds}}}}}'
        )
        with pytest.raises(LabelError, match=r"'a'.*(one kind for each boundary|must hold words)"):
            read_labels(tmp_path / "l.json")


def test_steps_become_boundaries_where_they_begin_and_end(tmp_path: Path) -> None:
    table = "id,duration,start,end,step\nv,20,0,4,jack up\nv,20,4,9.5,unscrew\nv,20,12,20,lower\n"
    labels = read_labels(write(tmp_path, "inria.csv", table))
    assert labels.dataset == "inria"
    assert labels.videos["v"].boundaries[0].tolist() == [4.0, 9.5, 12.0]


def test_restricting_to_a_list_counts_what_is_not_there(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path, "l.json", {"a": entry(), "b": entry(), "c": entry()}))
    ids = read_ids(write(tmp_path, "ids.csv", "instance,num_frames\nc,1\na,2\nz,3\n"))
    part = labels.restrict(ids, "ids.csv")
    assert list(part.videos) == ["a", "c"]
    assert part.notes[-1] == (
        "restricted to ids.csv: 2 of its 3 ids are in the labels, 1 not; 1 video left out"
    )
    with pytest.raises(LabelError, match="none of its 1 ids is in the labels"):
        labels.restrict(["nobody"], "ids.csv")


def test_the_official_tapos_set_has_1337_instances_and_3312_boundaries(shared: Path) -> None:
    labels = read_labels(shared / "labels/tapos_gt_val.pkl")
    assert (len(labels), labels.dataset, labels.notes) == (1755, "tapos", ())
    official = labels.restrict(read_ids(shared / "labels/tapos_official_val_ids.csv"), "official")
    assert (len(official), official.boundary_count) == (1337, 3312)
    lengths = [video.last_frame + 1 for video in official.videos.values() if video.last_frame is not None]
    assert sum(lengths) == 436_888  # the official notebook prints the same


def test_kinetics_minval_has_2000_videos_of_three_to_five_annotators(shared: Path) -> None:
    labels = read_labels(shared / "labels/k400_mr345_minval_min_change_duration0.3.pkl")
    assert labels.annotator_counts == {3: 42, 4: 82, 5: 1876}
    assert (labels.dataset, len(labels.notes)) == ("kinetics-gebd", 1)


INSTANCES = ["1y60SfvKbxY_s00002_79_481_81_895", "3w4nIw3vRTQ_s00020_5_112_10_524"]
ONE = {"substages_timestamps": [[2.0]], "substages_myframeidx": [[50]], "f1_consis": [1.0]}


@pytest.mark.parametrize("name", ["labels.pkl", "labels.json"])
def test_tapos_is_recognised_by_its_instances_of_one_annotator(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, {video: entry(**ONE) for video in INSTANCES})
    labels = read_labels(path)
    assert (labels.dataset, labels.notes) == ("tapos", ())
    assert labels.videos[INSTANCES[0]].last_frame == 250
    assert read_labels(path, "kinetics-gebd").dataset == "kinetics-gebd"


@pytest.mark.parametrize(
    ("entries", "doubt"),
    [
        ({"C4lCVBZ3ux0": entry(**ONE)}, "0 of 1 ids are those of TAPOS instances, 1 have one annotator"),
        (
            {INSTANCES[0]: entry(**ONE), "C4lCVBZ3ux0": entry(**ONE)},
            "1 of 2 ids are those of TAPOS instances",
        ),
        ({INSTANCES[0]: entry()}, "1 of 1 ids are those of TAPOS instances, 0 have one annotator"),
    ],
)
def test_where_a_set_cannot_be_told_a_note_asks_for_it(
    tmp_path: Path, entries: dict[str, object], doubt: str
) -> None:
    labels = read_labels(write(tmp_path, "l.pkl", entries))
    assert labels.dataset == "kinetics-gebd"
    assert any(doubt in note and "--dataset" in note for note in labels.notes)
    told = read_labels(tmp_path / "l.pkl", "kinetics-gebd")
    assert not any("--dataset" in note for note in told.notes)


def test_keys_that_are_not_read_are_counted_and_misspelt_ones_refused(tmp_path: Path) -> None:
    plain = {"duration": 10, "boundaries": [2.0]}
    labels = read_labels(write(tmp_path, "l.json", {"v": plain | {"camera": 1}, "w": plain | {"camera": 2}}))
    assert "not read: 'camera' (2 times)" in labels.notes
    labels = read_labels(write(tmp_path, "o.pkl", {"v": entry(f1_consis_avrg=0.1)}))
    assert "not read: 'f1_consis_avrg' (1 time)" in labels.notes
    with pytest.raises(
        LabelError, match=r"l\.json: video 'v': unknown 'consistancy'; did you mean 'consistency'"
    ):
        read_labels(write(tmp_path, "l.json", {"v": plain | {"consistancy": 0.1}}))
    table = "id,duration,anotator,boundaries\nv,10,x,1\n"
    with pytest.raises(LabelError, match=r"l\.csv, line 2: unknown 'anotator'; did you mean 'annotator'"):
        read_labels(write(tmp_path, "l.csv", table))


@pytest.mark.parametrize(
    "text", ["id\na\nb c\n", "a\nb c\n", "video_id,frames\na,3\nb c,4\n", "\ufeffa,3\nb c,4"]
)
def test_a_list_of_ids_may_lack_the_line_that_names_its_column(tmp_path: Path, text: str) -> None:
    (tmp_path / "ids.csv").write_text(text, encoding="utf-8")
    assert read_ids(tmp_path / "ids.csv") == ["a", "b c"]
