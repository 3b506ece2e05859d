"""`ongebd evaluate`: its report, and one clear line with exit status 2 for each mistake."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ongebd.cli import main
from ongebd.common.text import printable
from ongebd.data import read_labels
from ongebd.errors import ConfigError
from ongebd.lab.evaluation import EvaluationConfig
from ongebd.lab.evaluation.floors import clock_times

Official = Callable[..., dict[str, dict[str, object]]]
PNG = b"\x89PNG"


@pytest.fixture
def files(tmp_path: Path, official: Official) -> dict[str, Path]:
    """A small set of labels, the output of two runs, and a folder for the report."""
    labels = official(
        aaaaaaaaaaa=(10.0, [[2.0, 5.0], [2.2, 5.1, 8.0], [5.0]]),
        bbbbbbbbbbb=(8.0, [[4.0], [3.8], [4.1]]),
        ccccccccccc=(9.0, [[3.0, 6.0], [3.1], [3.2, 6.1]]),
        low=(9.0, [[3.0]]),
    )
    labels["low"]["f1_consis_avg"] = 0.1
    paths = {name: tmp_path / name for name in ("labels.pkl", "run", "run2.json", "report")}
    paths["labels.pkl"].write_bytes(pickle.dumps(labels))
    paths["run"].mkdir()
    for stem, boundaries in (
        ("x_aaaaaaaaaaa_000001", [(2.1, 1.9, 2.4), (7.0, 6.9, 7.1)]),
        ("bbbbbbbbbbb", []),
    ):
        records: list[dict[str, object]] = [{"type": "header", "source": f"{stem}.mp4"}]
        records += [{"type": "boundary", "time": t, "onset": o, "decided": d} for t, o, d in boundaries]
        records.append({"type": "end", "complete": True})
        (paths["run"] / f"{stem}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    paths["run2.json"].write_text(
        json.dumps({"aaaaaaaaaaa": [2.0, 5.0], "ccccccccccc": [3.0], "stranger": [1.0]})
    )
    return paths


def run(files: dict[str, Path], *more: str, predictions: str = "run") -> int:
    names = [
        "--labels",
        str(files["labels.pkl"]),
        "--predictions",
        str(files.get(predictions, files["run"].parent / predictions)),
    ]
    draws = [] if "--resamples" in more else ["--resamples", "50"]
    return main(["evaluate", *names, *draws, *more])


def report(files: dict[str, Path], *more: str, predictions: str = "run") -> dict[str, Any]:
    assert run(files, "--out", str(files["report"]), *more, predictions=predictions) == 0
    return json.loads((files["report"] / "report.json").read_text())  # type: ignore[no-any-return]


def test_the_report_has_scores_floors_human_skill_delay_and_counts(files: dict[str, Path]) -> None:
    found = report(files)
    assert found["scored"] == "centre"
    assert found["n"] == 3
    assert found["labels"]["sha256"]
    assert found["videos"] | {"hours_watched": 0} == {
        "labelled": 4,
        "filtered": 1,
        "skipped": 0,
        "scored": 3,
        "found": 2,
        "missing": 1,
        "empty": 1,
        "out_of_range_detections": 0,
        "hours_watched": 0,
    }
    assert found["predictions"]["matched_exactly"] == 1
    assert found["predictions"]["not_exact"] == {"x_aaaaaaaaaaa_000001": "aaaaaaaaaaa"}
    assert found["absolute"]["0.25"]["f1"] == pytest.approx(2 / 7)  # 1 of 2 detections, 5 boundaries in all
    assert len(found["absolute"]["1.0"]["f1_interval"]) == 2
    assert found["absolute"]["0.5"]["false_alarms_per_hour"] == pytest.approx(200)
    assert set(found["floors"]) == {"clock", "uniform", "random"}
    assert found["floors"]["clock"]["figures"]["average"]["detail"].startswith("every ")
    assert found["human"]["each annotator in turn"]["n"] == 3
    assert found["delay"]["n"] == 1
    assert found["delay"]["median"] == pytest.approx(0.4)
    assert found["f1_within_delay"]["rows"]["0.1"]["tp"] == 0
    assert found["f1_within_delay"]["rows"]["0.5"]["tp"] == 1


def test_skill_is_the_share_of_the_way_from_the_best_floor_to_the_human(files: dict[str, Path]) -> None:
    found = report(files)
    for figure, skill in found["skill"].items():
        floors = [floor["figures"][figure]["f1"] for floor in found["floors"].values()]
        human = found["human"]["each annotator in turn"]["figures"][figure]
        assert skill["floor_f1"] == max(floors)
        assert skill["human_f1"] == human
        if human <= max(floors):
            assert skill["value"] is None
            assert "best floor" in skill["why_none"]
        else:
            kind, _, place = figure.partition(" ")
            rows = found["relative" if kind in ("average", "relative") else "absolute"]
            f1 = rows[place or "average"]["f1"]
            assert skill["value"] == pytest.approx((f1 - max(floors)) / (human - max(floors)))


def test_the_report_can_be_read_and_its_picture_is_there(files: dict[str, Path], capsys: Any) -> None:
    report(files)
    parts = ["sha256 of the labels", "floor: clock", "annotators: each against the others", "n = 3 videos"]
    parts.append("(F1 − best floor) / (annotators − best floor)")
    for text in (capsys.readouterr().out, (files["report"] / "report.md").read_text()):
        assert not [part for part in parts if part not in text]
        assert "human" not in text.lower()  # annotators need not be people
    names = {file.name for file in files["report"].iterdir()}
    assert names == {"report.md", "report.json", "f1_against_threshold.png"}
    assert (files["report"] / "f1_against_threshold.png").read_bytes().startswith(PNG)


def test_onsets_are_scored_where_asked_and_the_report_says_so(files: dict[str, Path]) -> None:
    found = report(files, "--score", "onset")
    assert found["scored"] == "onset"
    assert found["delay"]["median"] is None
    assert found["delay"]["why_none"] == "the predictions don't say when each onset was known"
    assert "why_none" in found["f1_within_delay"]
    text = (files["report"] / "report.md").read_text()
    assert "the onset" in text
    assert "the centre" not in text


def test_the_delay_of_an_onset_runs_to_when_it_was_known(files: dict[str, Path]) -> None:
    path = files["run"] / "x_aaaaaaaaaaa_000001.jsonl"
    records = [json.loads(line) for line in path.read_text().split("\n") if line]
    for record in records:
        if record["type"] == "boundary":
            record["onset_known"] = record["onset"] + 3.0
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert report(files, "--score", "onset")["delay"]["median"] == pytest.approx(1.9 + 3.0 - 2.0)
    assert report(files)["delay"]["median"] == pytest.approx(2.4 - 2.0)  # the centre's is another


def test_predictions_without_decisions_have_no_delay_and_say_why(files: dict[str, Path]) -> None:
    found = report(files, predictions="run2.json")
    assert found["delay"]["median"] is None
    assert "don't say when" in found["delay"]["why_none"]
    assert found["predictions"]["unknown_ids"] == ["stranger"]


def test_two_systems_are_compared_on_the_same_videos(files: dict[str, Path], capsys: Any) -> None:
    found = report(files, "--compare", str(files["run2.json"]))
    assert found["n"] == found["other"]["n"] == 3
    for figure, place in (("average", "average"), ("relative 0.05", "0.05")):
        difference = found["relative"][place]["f1"] - found["other"]["relative"][place]["f1"]
        assert found["difference"][figure]["f1"] == pytest.approx(difference)
    assert "Paired bootstrap over the same n = 3 videos" in capsys.readouterr().out


def test_skipping_missing_videos_compares_what_both_have(files: dict[str, Path]) -> None:
    found = report(files, "--missing", "skip", "--compare", str(files["run2.json"]))
    assert found["n"] == found["other"]["n"] == 1
    assert found["relative"]["average"]["f1_interval"] is None  # one video cannot vary


def test_single_annotators_give_no_skill_and_say_why(files: dict[str, Path]) -> None:
    files["labels.pkl"].write_bytes(
        pickle.dumps({"aaaaaaaaaaa": {"video_duration": 10.0, "substages_timestamps": [[2.0]]}})
    )
    found = report(files, predictions="run2.json")
    assert found["skill"]["average"]["value"] is None
    assert "no video has two annotators" in found["skill"]["average"]["why_none"]


def test_tapos_shows_the_rule_in_frames_beside_the_one_in_seconds(files: dict[str, Path]) -> None:
    found = report(files, "--dataset", "tapos", predictions="run2.json")
    assert found["videos"]["filtered"] == 0
    assert set(found["relative_in_frames"]) == {"f1", "average"}


def test_frames_are_scored_as_frames_and_as_seconds(files: dict[str, Path]) -> None:
    files["run2.json"].write_text(
        json.dumps({"aaaaaaaaaaa": [50, 125], "bbbbbbbbbbb": [100], "ccccccccccc": [75, 150]})
    )
    found = report(files, "--unit", "frames", predictions="run2.json")
    assert found["relative"]["average"]["f1"] == 1.0
    assert found["relative_in_frames"]["average"] == 1.0


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("labels.pkl", pickle.dumps({"v": Evil()}), "labels.pkl: refused, the pickle asks for"),
        ("labels.pkl", pickle.dumps({"v": [1.0] * 99})[:-30], "labels.pkl: not a whole pickle"),
        ("labels.pkl", pickle.dumps({}), "labels.pkl: no labelled video in it"),
        ("labels.pkl", b"", "labels.pkl: the file is empty"),
        ("run2.json", pickle.dumps({"v": Evil()}), "run2.json: not UTF-8 text"),
        ("run2.json", b'{"aaaaaaaaaaa": [NaN]}', "position 1: nan is not a finite number"),
        ("run2.json", b'{"someone": [1.0], "else": [2.0]}', "none of its 2 ids is in"),
        ("run2.json", b'{"aaaaaaaaaaa": [1.0], "x_aaaaaaaaaaa": [2.0]}', "both match video 'aaaaaaaaaaa'"),
    ],
)
def test_a_mistake_gets_one_line_status_2_and_no_report(
    files: dict[str, Path],
    capsys: Any,
    monkeypatch: Any,
    tmp_path: Path,
    name: str,
    content: bytes,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    files[name].write_bytes(content)
    assert run(files, "--out", str(files["report"]), predictions="run2.json") == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.startswith("ongebd: ")
    assert len(error.splitlines()) == 1
    assert not files["report"].exists()
    assert not (tmp_path / "ran").exists()


def test_unsorted_negative_and_late_times_are_counted_not_refused(
    files: dict[str, Path], capsys: Any
) -> None:
    files["run2.json"].write_text(json.dumps({"aaaaaaaaaaa": [5.0, 2.0, -1.0, 11.0]}))
    found = report(files, predictions="run2.json")
    assert found["videos"]["out_of_range_detections"] == 2
    assert any("1 video with times out of order" in note for note in found["predictions"]["notes"])
    assert "2 before 0 or after the end" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--resamples", "-1", "resamples must be at least 0"),
        ("--seed", "-1", "seed must be at least 0"),
        ("--score", "middle", "--score"),
        ("--id-pattern", "(", "not a regular expression"),
        ("--min-consistency", "2", "no video has f1_consis_avg of 2"),
        ("--min-consistency", "nan", "min_consistency must be at least 0 and finite, not nan"),
        ("--min-consistency", "inf", "min_consistency must be at least 0 and finite, not inf"),
        ("--min-consistency", "-0.1", "min_consistency must be at least 0 and finite, not -0.1"),
        ("--resamples", "1.5", "1.5: must be a whole number"),
        ("--resamples", "nan", "nan: must be a whole number"),
        ("--resamples", "1000000", "resamples must be at least 0 and at most 100000"),
        ("--seed", "0.5", "0.5: must be a whole number"),
        ("--out", "a" * 300, "File name too long"),
        ("--ids", "a" * 300, "File name too long"),
        ("--ids", "nowhere.csv", "nowhere.csv: No such file"),
        ("--out", "labels.pkl", "is a file; name a folder"),
    ],
)
def test_an_option_that_cannot_be_is_refused(
    files: dict[str, Path],
    capsys: Any,
    monkeypatch: Any,
    tmp_path: Path,
    option: str,
    value: str,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(files, option, value) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "settings",
    [{"min_consistency": "some"}, {"min_consistency": True}, {"resamples": 1.5}, {"seed": float("nan")}],
)
def test_settings_from_python_are_checked_too(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        EvaluationConfig(**settings)


HOSTILE = [
    b"bad\xff",
    rb"a$\frac{$",
    "动作视频".encode(),
    b"[red]x[bold]",
    b"two\nlines | a `b` <i>",
    b"\x1b[31mred\x07\xc2\x9b1m",
    b"_x_",
    b"_",
    b"%s{0}",
]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_any_name_is_reported_escaped(
    files: dict[str, Path], capsys: Any, recwarn: pytest.WarningsRecorder, name: bytes
) -> None:
    text, out = os.fsdecode(name), files["report"]
    header = {"type": "header", "source": f"{text}.mp4", "model": f"model {text}"}
    (files["run"] / "z.jsonl").write_text(json.dumps(header) + "\n")
    try:
        labels = files["labels.pkl"].rename(out.with_name(f"{text}.pkl"))
        folder = files["run"].rename(out.with_name(text))
        other = files["run2.json"].rename(out.with_name(f"{text}.json"))
        listed = out.with_name(f"{text}.csv")
        listed.write_text("id\naaaaaaaaaaa\nbbbbbbbbbbb\nccccccccccc\n")
    except OSError:
        pytest.skip("this file system takes no such name")
    command = ["evaluate", "--labels", str(labels), "--predictions", str(folder), "--compare", str(other)]
    assert main([*command, "--ids", str(listed), "--resamples", "9", "--out", str(out)]) == 0
    assert not recwarn.list
    printed = capsys.readouterr()
    markdown, document = ((out / f"report.{kind}").read_text(encoding="utf-8") for kind in ("md", "json"))
    for shown in (printed.out, printed.err, markdown, document):
        assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in shown if c != "\n")
    for ending in (".pkl", ".json", ".csv"):
        assert f"{printable(text)}{ending}" in printed.out
    assert f"model {printable(text)}" in printed.out
    found = json.loads(document)
    assert Path(found["labels"]["file"]).stem == Path(found["other"]["predictions"]["file"]).stem == text
    stem = text.replace("\\", "/").split("/")[-1]  # a source may be a path of Windows
    assert stem in found["predictions"]["unknown_ids"]
    columns = {"What was scored": 2, "F1, floors": 7, "Official": 10, "Absolute": 7, "Delay": (2, 4)}
    title = ""
    for line in markdown.splitlines():
        title = line if line.startswith("## ") else title
        if line.startswith("|"):
            cells = len(re.split(r"(?<!\\)(?:\\\\)*\|", line)) - 2
            wanted = next((count for start, count in columns.items() if title[3:].startswith(start)), 4)
            assert cells in (wanted if isinstance(wanted, tuple) else (wanted,))
    assert (out / "f1_against_threshold.png").read_bytes().startswith(PNG)


def test_a_full_standard_output_is_one_line_and_the_report_is_complete(files: dict[str, Path]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    command = [sys.executable, "-m", "ongebd", "evaluate", "--labels", str(files["labels.pkl"])]
    command += ["--predictions", str(files["run"]), "--resamples", "9", "--out", str(files["report"])]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[-1].startswith("ongebd: can't write to standard output: No space left")
    assert all(line.startswith("wrote ") for line in lines[:-1])
    assert {file.name for file in files["report"].iterdir()} == {Path(line[6:]).name for line in lines[:-1]}


def test_a_second_report_overwrites_the_first(files: dict[str, Path]) -> None:
    first = report(files)
    (files["report"] / "notes.txt").write_text("mine")
    assert report(files, predictions="run2.json") != first
    names = {file.name for file in files["report"].iterdir()}
    assert names == {"report.md", "report.json", "f1_against_threshold.png", "notes.txt"}


@pytest.mark.parametrize("which", ["--labels", "--predictions", "--compare", "--ids"])
def test_a_report_is_never_written_over_what_was_read_for_it(
    files: dict[str, Path], capsys: Any, which: str
) -> None:
    folder, name = files["report"], "report.json"
    folder.mkdir()
    given = {"--labels": files["labels.pkl"], "--predictions": files["run2.json"]}
    content = b"id\naaaaaaaaaaa\n" if which == "--ids" else given.get(which, files["run2.json"]).read_bytes()
    (folder / name).write_bytes(content)
    given[which] = folder / name
    arguments = [str(part) for pair in given.items() for part in pair]
    assert main(["evaluate", *arguments, "--resamples", "0", "--out", str(folder)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "would be overwritten" in line
    assert (folder / name).read_bytes() == content
    assert [path.name for path in folder.iterdir()] == [name]


def test_a_folder_instead_of_a_file_of_the_report_is_refused_before_anything_is_written(
    files: dict[str, Path], capsys: Any
) -> None:
    (files["report"] / "report.json").mkdir(parents=True)
    assert run(files, "--out", str(files["report"])) == 2
    assert "report.json: is a folder" in capsys.readouterr().err
    assert [file.name for file in files["report"].iterdir()] == ["report.json"]


def test_the_report_says_which_method_found_the_boundaries(files: dict[str, Path], capsys: Any) -> None:
    header = {"type": "header", "source": "bbbbbbbbbbb.mp4", "model": "window-mean", "version": "9.9"}
    header["settings"] = {"tau": 1.25}  # type: ignore[assignment]
    (files["run"] / "bbbbbbbbbbb.jsonl").write_text(json.dumps(header) + "\n")
    assert report(files)["predictions"]["made_by"] == {"window-mean, τ 1.25, ongebd 9.9": 1}
    assert "window-mean, τ 1.25, ongebd 9.9 (1 video)" in capsys.readouterr().out


@pytest.mark.parametrize("width", [30, 80, 200])
def test_no_word_is_broken_at_any_width(
    files: dict[str, Path], capsys: Any, monkeypatch: Any, width: int
) -> None:
    monkeypatch.setattr("ongebd.cli.tables.UNBOUNDED", width)
    assert run(files, "--compare", str(files["run2.json"])) == 0
    printed = capsys.readouterr().out
    words = set(re.split(r"[\s│┃]+", printed))
    assert {"precision", "detections", "positives", "threshold", "0.05", "annotators:", "run2.json"} <= words
    frames = [line for line in printed.splitlines() if line.startswith(("┃", "│", "┏", "└"))]
    assert max(map(len, frames)) <= width


def test_tapos_needs_no_option(files: dict[str, Path], shared: Path, capsys: Any) -> None:
    labels = read_labels(shared / "labels/tapos_gt_val.pkl")
    clock = {name: clock_times(video.duration, 2.0).tolist() for name, video in labels.videos.items()}
    files["run2.json"].write_text(json.dumps(clock))
    files["labels.pkl"] = shared / "labels/tapos_gt_val.pkl"
    ids = str(shared / "labels/tapos_official_val_ids.csv")
    found = report(files, "--ids", ids, "--resamples", "0", predictions="run2.json")
    assert found["labels"]["dataset"] == "tapos"
    assert found["settings"]["min_consistency"] is None
    assert (found["n"], found["relative"]["0.05"]["positives"]) == (1337, 3312)
    scores = found["relative"]["0.05"]["f1"], found["relative"]["average"]["f1"]
    assert scores == pytest.approx((0.396, 0.561), abs=5e-4)
    in_frames = found["relative_in_frames"]
    assert (in_frames["f1"]["0.05"], in_frames["average"]) == pytest.approx((0.397, 0.562), abs=5e-4)
    assert "By the official notebooks' rule in frames" in capsys.readouterr().out


def test_frame_numbers_taken_for_seconds_are_told(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "frames.json").write_text(json.dumps({"aaaaaaaaaaa": [50, 125], "bbbbbbbbbbb": [100.0]}))
    notes = report(files, predictions="frames.json")["predictions"]["notes"]
    assert notes == ["3 of 3 times are after the video's end: frame numbers? (see --unit frames)"]
    assert "frame numbers?" in capsys.readouterr().out


def test_a_detection_of_a_video_of_another_length_is_told(files: dict[str, Path]) -> None:
    file = files["run"] / "bbbbbbbbbbb.jsonl"
    for duration, told in ((8.5, False), (12.0, True), (3.0, True)):
        lines = [{"type": "header"}, {"type": "end", "complete": True, "duration": duration}]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        notes = report(files)["predictions"]["notes"]
        wanted = f"'bbbbbbbbbbb' {duration:.1f} s, not 8.0 s"
        assert any(wanted in note for note in notes) is told


@pytest.mark.parametrize("name", ["p.npy", "p.npz", "p.txt", "p"])
def test_predictions_of_another_kind_are_refused_with_a_form_to_save_them_in(
    files: dict[str, Path], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"\x93NUMPY")
    assert run(files, predictions=name) == 2
    assert "save {id: [times]} as JSON" in capsys.readouterr().err


def test_where_labels_have_kinds_the_report_says_how_many_of_each_were_found(
    files: dict[str, Path], capsys: Any
) -> None:
    labels = files["labels.pkl"].with_name("labels.csv")
    labels.write_text(
        "id,duration,annotator,boundaries,kinds\n"
        "aaaaaaaaaaa,10,anna,2 5 7.2,cut dissolve cut\n"
        "aaaaaaaaaaa,10,ben,2,dissolve\n"
        "bbbbbbbbbbb,8,anna,4,cut\n"
    )
    given = {**files, "labels.pkl": labels}
    assert run(given, "--resamples", "0", "--out", str(files["report"])) == 0
    found = json.loads((files["report"] / "report.json").read_text())["by_kind"]
    assert [row["tp"] for row in found["cut"].values()] == [0, 2, 2, 2]
    assert [row["positives"] for row in found["cut"].values()] == [3, 3, 3, 3]
    assert found["dissolve"]["0.25"] == {"positives": 1, "tp": 0}
    assert "Recall by kind" in capsys.readouterr().out
