"""Formats of other programs: read by consumers that aren't ours, and back again within a frame."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import opentimelineio as otio
import pympi
import pytest

from ongebd.cli import main
from ongebd.data import read_labels
from ongebd.errors import LabelError
from ongebd.output import JsonlWriter, RunEnd, RunHeader
from ongebd.output.formats import FORMATS, format_of
from ongebd.types import Boundary

ROOT = Path(__file__).parents[2]
FRAMES = [0, 41, 42, 250, 1801, 2400]  # where segments begin, and the end
RATES = [Fraction(25), Fraction(30000, 1001), Fraction(24000, 1001), Fraction(60000, 1001), Fraction(25, 2)]
TIMED = ["scenes", "edl", "otio", "elan", "labelstudio", "fiftyone", "json", "gebd"]


def results(
    folder: Path, rate: Fraction = RATES[0], name: str = "talk & <é>.mp4", extra: tuple[float, ...] = ()
) -> Path:
    """What `detect` writes of a video that has a boundary at each of `FRAMES`."""
    path = folder / f"{Path(name).stem}.jsonl"
    times = sorted([*(float(number / rate) for number in FRAMES[1:-1]), *extra])
    writer = JsonlWriter(path, RunHeader(name, "m", {}, 640, 360, "1", rate=str(rate)))
    for time in times:
        writer.boundary(Boundary(time, time, time, 0.5))
    writer.close(RunEnd(True, float(FRAMES[-1] / rate), FRAMES[-1], len(times)))
    return path


def converted(source: Path, name: str, *more: str, status: int = 0) -> Path:
    target = source.with_name(f"out{FORMATS[name].suffix}")
    assert main(["convert", str(source), str(target), "--force", *more]) == status
    return target


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("name", TIMED)
def test_what_is_written_comes_back_within_a_frame(tmp_path: Path, name: str, rate: Fraction):
    labels = read_labels(converted(results(tmp_path, rate), name))
    (video,) = labels.videos.values()
    (times,) = video.boundaries
    wanted = [float(number / rate) for number in FRAMES[1:-1]]
    assert times == pytest.approx(wanted, abs=0.001 if name in ("elan", "scenes") else 2e-6)
    assert video.duration == pytest.approx(float(FRAMES[-1] / rate), abs=0.002)


@pytest.mark.parametrize("name", ["edl", "otio", "fcpxml", "fcp7", "scenes", "qp", "labelstudio"])
def test_a_time_between_two_frames_is_rounded_and_that_is_said(tmp_path: Path, name: str, capsys: Any):
    converted(results(tmp_path, extra=(10.01,)), name)
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "moved" in line]
    assert said.endswith("of 7 times moved to the nearest frame at 25 frames/s, by at most 10 ms")
    converted(results(tmp_path), name)
    assert "moved" not in capsys.readouterr().err


@pytest.mark.parametrize(("rate", "counted"), [("15", 30), ("12/1", 24), ("10000/347", 30000 / 1001)])
def test_a_rate_that_time_codes_cannot_count_takes_one_that_they_can(tmp_path: Path, rate: str, counted: int):
    text = converted(results(tmp_path, Fraction(rate)), "edl").read_text()
    timeline = otio.adapters.read_from_string(text, "cmx_3600", rate=counted)
    starts = [clip.range_in_parent().start_time.to_seconds() for clip in timeline.find_clips()]
    assert starts == pytest.approx([float(n / Fraction(rate)) for n in FRAMES[:-1]], abs=1 / counted)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("name", ["edl", "otio", "fcp7"])
def test_opentimelineio_finds_the_segments_to_the_frame(tmp_path: Path, name: str, rate: Fraction):
    text = converted(results(tmp_path, rate), name).read_text("utf-8")
    how = {"rate": 25.0 if rate == Fraction(25, 2) else float(rate)} if name == "edl" else {}
    adapter = {"edl": "cmx_3600", "otio": "otio_json", "fcp7": "fcp_xml"}[name]
    timeline = otio.adapters.read_from_string(text, adapter, **how)
    clips = list(timeline.find_clips())
    frames = [round(clip.range_in_parent().start_time.to_seconds() * float(rate), 3) for clip in clips]
    assert frames == FRAMES[:-1]
    assert sum(clip.duration().to_seconds() for clip in clips) * float(rate) == pytest.approx(FRAMES[-1])
    source = ROOT / "talk & <é>.mp4"
    assert {clip.media_reference.target_url for clip in clips if name != "edl"} <= {source.as_uri()}


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_fcpxml_has_exact_times_on_frames(tmp_path: Path, rate: Fraction):
    from xml.etree import ElementTree

    root = ElementTree.parse(converted(results(tmp_path, rate), "fcpxml")).getroot()
    clips = [
        {key: Fraction(clip.get(key, "")[:-1]) for key in ("offset", "duration")}
        for clip in root.iter("asset-clip")
    ]
    assert [clip["offset"] * rate for clip in clips] == FRAMES[:-1]
    assert sum(clip["duration"] for clip in clips) * rate == FRAMES[-1]
    if rate == 25:
        library = otio.adapters.read_from_string(ElementTree.tostring(root, "unicode"), "fcpx_xml")
        assert len([child for timeline in library for child in timeline.find_clips()]) == len(FRAMES) - 1


def test_a_timeline_has_sound_if_the_source_has(tmp_path: Path, make_video: Any, make_numbered: Any):
    for audio, kinds in ((None, ["Video"]), ("last", ["Video", "Audio"])):
        video = make_video(tmp_path / "v.mp4", make_numbered(10), audio=audio)
        timeline = otio.adapters.read_from_file(str(converted(results(tmp_path, name=str(video)), "otio")))
        assert [track.kind for track in timeline.tracks] == kinds


def test_a_link_to_a_file_that_is_not_there_is_said(tmp_path: Path, capsys: Any):
    for name in ("otio", "elan"):
        converted(results(tmp_path, name="gone.mp4"), name)
        assert "gone.mp4 is missing; name it with `ongebd convert --video`" in capsys.readouterr().err


def test_pympi_reads_the_tier(tmp_path: Path):
    document = pympi.Elan.Eaf(str(converted(results(tmp_path), "elan")))
    assert list(document.get_tier_names()) == ["events"]
    assert document.get_annotation_data_for_tier("events")[1] == (1640, 1680, "Event 2")
    assert document.get_full_time_interval() == (0, 96000)


def test_pyscenedetect_reads_its_list(tmp_path: Path):
    with converted(results(tmp_path), "scenes").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["Start Frame"]) - 1 for row in rows] == FRAMES[:-1]
    assert [int(row["End Frame"]) for row in rows] == FRAMES[1:]
    assert [row["Start SMPTE"] for row in rows] == [
        "00:00:00:00",
        "00:00:01:16",
        "00:00:01:17",
        "00:00:10:00",
        "00:01:12:01",
    ]


def test_ffprobe_reads_chapters_and_subtitles(tmp_path: Path, ffprobe: Any):
    chapters = ffprobe(converted(results(tmp_path), "ffmetadata"), "-f", "ffmetadata", "-show_chapters")[
        "chapters"
    ]
    assert [float(one["start_time"]) for one in chapters] == [n / 25 for n in FRAMES[:-1]]
    assert chapters[1]["tags"]["title"] == "Event 2"
    for name in ("vtt", "srt"):
        packets = ffprobe(converted(results(tmp_path), name), "-show_packets")["packets"]
        assert [float(one["pts_time"]) for one in packets] == [n / 25 for n in FRAMES[:-1]]


def test_youtube_gets_whole_seconds(tmp_path: Path):
    text = converted(results(tmp_path), "youtube").read_text()
    assert text.splitlines() == ["00:00 Event 1", "00:01 Event 2", "00:10 Event 3", "01:12 Event 4"]


def test_label_studio_takes_the_tasks(tmp_path: Path):
    (task,) = json.loads(converted(results(tmp_path), "labelstudio").read_text("utf-8"))
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="too heavy for every test run")
    config = '<View><Video name="video" value="$video"/><TimelineLabels name="events" toName="video">'
    config += '<Label value="Event"/></TimelineLabels></View>'
    (prediction,) = task["predictions"]
    assert (
        interface.LabelInterface(config).validate_prediction({**prediction, "score": 1.0}, return_errors=True)
        == []
    )


def test_fiftyone_imports_the_detections(tmp_path: Path, make_video: Any, make_numbered: Any):
    importers = pytest.importorskip("fiftyone.utils.data.importers", reason="too heavy for every test run")
    make_video(tmp_path / "v.mp4", make_numbered(50))
    labels = converted(results(tmp_path, name="v.mp4"), "fiftyone")
    importer = importers.FiftyOneTemporalDetectionDatasetImporter(
        data_path=str(tmp_path), labels_path=str(labels), compute_metadata=True
    )
    with importer:
        (_, _, found, *_), *_ = list(importer)
    assert len(found.detections) == len(FRAMES) - 1


def test_a_qp_file_names_the_first_frame_of_each_segment(tmp_path: Path):
    lines = converted(results(tmp_path), "qp").read_text().splitlines()
    assert lines == [f"{number} I -1" for number in FRAMES[:-1]]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "labels.json"
    two = {"duration": 60.0, "fps": 25, "boundaries": [[3.2, 12.0], [3.4]]}
    path.write_text(json.dumps({"kitchen": two, "garden": {"duration": 9.0, "fps": 25, "boundaries": [1.0]}}))
    return path


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.many and name != "elan"])
def test_several_videos_and_annotators_go_into_one_file_and_come_back(people: Path, name: str):
    labels = read_labels(converted(people, name))
    assert {key: [list(times) for times in video.boundaries] for key, video in labels.videos.items()} == {
        "kitchen": [[3.2, 12.0], [3.4]],
        "garden": [[1.0]],
    }


def test_a_format_for_one_video_refuses_several(people: Path, capsys: Any):
    for name, what in (
        ("edl", "has 2 videos; choose one: add --video with one of kitchen, garden, or a format"),
        ("elan", "an ELAN file holds one video, not 2; add --video with one of kitchen, garden"),
    ):
        converted(people, name, status=2)
        assert what in capsys.readouterr().err


def test_each_stream_of_a_watch_is_a_run_of_its_own(tmp_path: Path, capsys: Any):
    path = tmp_path / "seen.jsonl"
    writer = JsonlWriter(path, RunHeader("rtsp://a, rtsp://b", "m", {}, 0, 0, "1"))
    writer.write({"type": "streams", "streams": {"door": "rtsp://a", "hall": "rtsp://b"}})
    for number, stream in enumerate(["door", "hall", "door"], 1):
        told = {"type": "boundary", "stream": stream, "number": number, "epoch": 0}
        writer.write(told | dict.fromkeys(("time", "onset", "decided", "score"), float(number)))
    writer.close(RunEnd(True, 9.0, 225, 3))
    labels = read_labels(converted(path, "json")).videos
    assert {key: [list(times) for times in one.boundaries] for key, one in labels.items()} == {
        "door": [[1.0, 3.0]],
        "hall": [[2.0]],
    }
    converted(path, "vtt", status=2)
    assert "add --video with one of door, hall, or" in capsys.readouterr().err
    assert converted(path, "vtt", "--video", "hall").read_text().count("-->") == 2


def test_labels_of_people_are_annotations_and_each_has_a_tier(tmp_path: Path, people: Path):
    assert all("annotations" in task for task in json.loads(converted(people, "labelstudio").read_text()))
    people.write_text('{"kitchen": {"duration": 60, "boundaries": [[3.2, 12.0], [3.4]]}}')
    assert set(pympi.Elan.Eaf(str(converted(people, "elan"))).get_tier_names()) == {
        "annotator 1",
        "annotator 2",
    }


def test_a_folder_of_label_files_is_one_set_for_training_and_scoring(tmp_path: Path):
    folder = tmp_path / "labels"
    folder.mkdir()
    for stem, name in (("a", "elan"), ("b", "otio"), ("c-Scenes", "scenes")):
        suffix = ".csv" if name == "scenes" else FORMATS[name].suffix
        converted(results(tmp_path), name).rename(folder / f"{stem}{suffix}")
    assert list(read_labels(folder).videos) == ["a", "b", "c"]
    (folder / "a.json").write_text('{"a": {"duration": 9, "boundaries": [1]}}')
    with pytest.raises(LabelError, match="video 'a' is in another file of this folder too"):
        read_labels(folder)


def test_labels_score_what_was_found(tmp_path: Path, capsys: Any):
    path = results(tmp_path, name="talk.mp4")
    labels = converted(path, "elan").rename(tmp_path / "talk.eaf")
    assert main(["evaluate", "--labels", str(labels), "--predictions", str(path), "--resamples", "0"]) == 0
    assert "1.000" in capsys.readouterr().out


def test_a_csv_of_pyscenedetect_may_begin_with_its_cuts(tmp_path: Path):
    path = converted(results(tmp_path), "scenes")
    before = read_labels(path).videos["out"].boundaries[0]
    path.write_text("Timecode List:,00:00:01.640\n" + path.read_text())
    assert list(read_labels(path).videos["out"].boundaries[0]) == list(before)


@pytest.mark.parametrize(
    "text",
    [
        '[{"data": {"u": "https://x/0a1b2c3d-v.mp4?k=1"}, "annotations": [{"result": [{"value": {}},'
        ' {"value": {"ranges": [{"start": 1, "end": 50}, {"start": 76, "end": 100}]}}]}]}]',
        '{"classes": [], "labels": {"v": [{"support": [1, 50]}, {"support": [76, 100]}]}}',
    ],
    ids=["Label Studio", "FiftyOne"],
)
def test_frames_become_seconds_by_the_rate_that_the_user_gives(tmp_path: Path, text: str):
    (tmp_path / "a.json").write_text(text)
    assert main(["convert", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--fps", "25"]) == 0
    assert json.loads((tmp_path / "b.json").read_text()) == {
        "v": {"duration": 4.0, "boundaries": [[2.0, 3.0]]}
    }


NOT_ITS = "not what its program writes"
BOMB = '<!DOCTYPE a [<!ENTITY b "' + "x" * 99 + '">]><ANNOTATION_DOCUMENT>&b;</ANNOTATION_DOCUMENT>'
EAF = (
    '<A><TIME_SLOT TIME_SLOT_ID="1" TIME_VALUE="{}"/>'
    '<TIER><ALIGNABLE_ANNOTATION TIME_SLOT_REF1="1" TIME_SLOT_REF2="1"/></TIER></A>'
)
TASK = '[{"data": {"video": "a.mp4"%s}, "annotations": [{"result": [{"value": {"ranges": [%s]}}]}]}]'


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.eaf", BOMB, "declares entities"),
        ("a.eaf", "<A><B></A>", NOT_ITS),
        ("a.eaf", "<A>" * 100_000, NOT_ITS),
        ("a.eaf", EAF.format("soon"), "TIME_SLOT: 'soon' is not a number"),
        ("a.eaf", EAF.format("1e999"), "is not a finite number"),
        ("a.eaf", "<A/>", "no segment in it"),
        ("a.edl", "TITLE: x\n", "counts frames but has no frame rate"),
        ("a.edl", "* ongebd: x; frame rate 25\nnonsense", NOT_ITS),
        ("a.edl", "* ongebd: x; frame rate 0/0\n", "counts frames but"),
        ("a.edl", "* ongebd: x; frame rate 0\n", "counts frames but"),
        ("a.xml", BOMB, "declares entities"),
        ("a.xml", "<xmeml/>", NOT_ITS),
        ("a.otio", "{}", NOT_ITS),
        ("a.otio", "[" * 100_000, "nested too deeply"),
        ("a.otio", '{"OTIO_SCHEMA": "Clip.2"}', NOT_ITS),
        ("a.json", '[{"data": 3}]', NOT_ITS),
        ("a.json", TASK % ("", '{"start": 1, "end": 2}'), "counts frames but has no frame rate"),
        ("a.json", TASK % (', "fps": 25', '{"start": 1}'), NOT_ITS),
        ("a.json", TASK % (', "fps": "x"', '{"start": 1, "end": 2}'), NOT_ITS),
        ("a.json", '{"classes": [], "labels": {"v": [{}]}}', NOT_ITS),
        ("a.json", '{"classes": [], "labels": {"v": [{"support": [1, 2]}]}}', "counts frames"),
        ("a.json", '{"classes": [], "labels": {"v": [{"timestamps": [2, 1]}]}}', "before it starts"),
        ("a.csv", "Scene Number,Start Time (seconds)\n1,2\n", "column 'end time (seconds)' is missing"),
        (
            "a.csv",
            "Scene Number,Start Time (seconds),End Time (seconds)\n1,nan,2\n",
            "is not a finite number",
        ),
        ("a.mp4", "no video", "can't read it as a video"),
    ],
)
def test_a_strangers_file_is_refused_in_one_line(
    tmp_path: Path, name: str, text: str, complaint: str, capsys: Any
):
    (tmp_path / name).write_text(text)
    target = tmp_path / "out.json"
    assert main(["convert", str(tmp_path / name), str(target)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert complaint in line
    assert not target.exists()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"type":"boundary","time":NaN,"onset":1,"decided":1,"score":1}', "is not a finite number"),
        ('{"type":"end","complete":true,"duration":"x","frames":1,"boundaries":0}', "must be a number"),
    ],
)
def test_hostile_results_are_refused_in_one_line(tmp_path: Path, line: str, complaint: str, capsys: Any):
    path = results(tmp_path)
    path.write_text(path.read_text("utf-8") + line + "\n", "utf-8")
    converted(path, "otio", status=2)
    (said,) = capsys.readouterr().err.splitlines()
    assert complaint in said


@pytest.mark.parametrize("rate", ["x", "0", "1/0", "-5", "1e9", "nan"])
def test_a_frame_rate_that_is_none_is_refused(tmp_path: Path, rate: str, capsys: Any):
    path = results(tmp_path)
    path.write_text(path.read_text("utf-8").replace('"rate": "25"', f'"rate": "{rate}"'), "utf-8")
    converted(path, "edl", status=2)
    assert "frame rate" in capsys.readouterr().err


def test_a_killed_run_ends_at_its_last_boundary(tmp_path: Path):
    path = results(tmp_path)
    path.write_text("\n".join(path.read_text("utf-8").splitlines()[:-1]) + "\n", "utf-8")
    assert converted(path, "vtt").read_text().count("-->") == len(FRAMES) - 2


def test_nothing_is_overwritten_without_force(tmp_path: Path, capsys: Any):
    path = results(tmp_path)
    target = tmp_path / "mine.edl"
    target.write_text("mine")
    assert main(["convert", str(path), str(target)]) == 2
    assert main(["convert", str(path), str(path), "--force"]) == 2
    assert target.read_text() == "mine"
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("already exists; name another, or add --force")
    assert "is the source" in said[1]


@pytest.mark.parametrize("long", ["source", "target"])
def test_a_name_that_is_too_long_is_one_line(tmp_path: Path, long: str, capsys: Any):
    path, name = results(tmp_path), "x" * 300
    names = [f"{name}.jsonl", "a.vtt"] if long == "source" else [str(path), f"{tmp_path}/{name}.vtt"]
    assert main(["convert", *names]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "File name too long" in line


def test_a_part_of_a_video_begins_where_detection_began(tmp_path: Path):
    path = results(tmp_path)
    path.write_text(path.read_text("utf-8").replace('"settings": {}', '"settings": {"start": 1.0}'), "utf-8")
    assert "00:00:01.000 --> 00:00:01.640" in converted(path, "vtt").read_text()


def test_what_is_missing_is_named_with_its_command(tmp_path: Path, monkeypatch: Any, capsys: Any):
    import sys

    for module in ("opentimelineio", "ongebd.output.editors"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "ongebd.output.editors")
    converted(results(tmp_path), "edl", status=2)
    assert "opentimelineio is not installed: " in capsys.readouterr().err


def rows_of_page() -> Iterator[list[str]]:
    for line in (ROOT / "docs/formats.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            yield cells


def test_the_page_lists_every_format_with_its_ending():
    listed = {cells[0].split("`")[1]: cells[1].split("`")[1] for cells in rows_of_page()}
    assert listed == {name: form.suffix for name, form in FORMATS.items()}
    assert all(format_of(f"talk{suffix}") == name for name, suffix in listed.items())
