"""The manifest: each video once, whatever was interrupted; and what a second command finds done."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.cluster.detect import DetectTask, Found, Job, _kept, jobs_of
from ongebd.cluster.manifest import Entry, Manifest
from ongebd.cluster.worker import Answer
from ongebd.detector import StreamConfig
from ongebd.errors import ConfigError
from ongebd.output import Reading, RunEnd

TASK = DetectTask(
    model="window-mean", formats=("jsonl", "csv"), identity="net@1", reading=Reading(version="1")
)
END = RunEnd(True, 1.0, 24, 0)


def statuses(folder: Path) -> dict[str, str]:
    """Each line's status by its id; an id that stands twice is an error."""
    lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    assert len({line["id"] for line in lines}) == len(lines)
    return {line["id"]: line["status"] for line in lines}


def entry(video_id: str, status: str = "done") -> Entry:
    return Entry(id=video_id, source=f"{video_id}.mp4", status=status)  # type: ignore[arg-type]


def test_lines_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "manifest.jsonl").write_bytes(b"[" * 100_000 + b"\n\xff\n{}\n" + entry("a").to_line())
    assert list(Manifest(tmp_path).read()) == ["a"]


commands = st.lists(
    st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["done", "failed", "cut"])), max_size=4
)


@given(commands)
def test_each_video_stands_once_whatever_commands_ran(
    tmp_path_factory: pytest.TempPathFactory, runs: list[dict[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("m")
    expected: dict[str, str] = {}
    for run in runs:
        manifest = Manifest(folder)
        done = [name for name in run if expected.get(name) in ("done", "skipped")]
        todo = [name for name in run if name not in done]
        manifest.begin([entry(name, "skipped") for name in done], todo)
        expected = {name: status for name, status in expected.items() if name not in todo}
        expected |= dict.fromkeys(done, "skipped")
        for name in todo:
            if run[name] == "cut":  # the command ends here
                break
            manifest.add(entry(name, run[name]))
            expected[name] = run[name]
    if runs:
        assert statuses(folder) == expected
    assert {name: found.status for name, found in Manifest(folder).read().items()} == expected


def test_a_line_that_was_cut_short_is_passed_over_and_overwritten(tmp_path: Path) -> None:
    manifest = Manifest(tmp_path)
    manifest.begin([], ["a", "b"])
    manifest.add(entry("a"))
    with manifest.path.open("ab") as file:
        file.write(b'{"id": "b", "sour')
    assert list(Manifest(tmp_path).read()) == ["a"]
    again = Manifest(tmp_path)
    again.begin([entry("a", "skipped")], ["b"])
    again.add(entry("b", "failed"))
    assert statuses(tmp_path) == {"a": "skipped", "b": "failed"}


@pytest.fixture
def video(tmp_path: Path) -> str:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"a video")
    return str(path)


def found(tmp_path: Path, source: str, task: DetectTask) -> bool:
    """Whether a second command would find this video done."""
    (job,) = jobs_of([source], ["a"], tmp_path / "out", task)
    return job.done is not None


def kept(tmp_path: Path, source: str, failed: str | None = None) -> None:
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    (job,) = jobs_of([source], ["a"], out, TASK)
    manifest = Manifest(out)
    manifest.begin([], ["a"])
    _kept(job, Answer(Found(source, {"jsonl": b"j", "csv": b"c"}, END, failed)), out, manifest)


def test_what_is_done_is_done_until_something_that_it_depends_on_changes(tmp_path: Path, video: str) -> None:
    assert not found(tmp_path, video, TASK)
    kept(tmp_path, video)
    assert found(tmp_path, video, TASK)
    for other in (
        replace(TASK, reading=Reading(version="1", settings=StreamConfig(tau=3.0))),
        replace(TASK, model="persistence"),
        replace(TASK, formats=("jsonl",)),
        replace(TASK, identity="net@2"),
        replace(TASK, reading=Reading(version="2")),
        replace(TASK, reading=Reading(version="1", stream=1)),
    ):
        assert not found(tmp_path, video, other)


def test_a_video_that_was_written_anew_is_done_again(tmp_path: Path, video: str) -> None:
    kept(tmp_path, video)
    Path(video).write_bytes(b"another")
    os.utime(video, ns=(1, 1))
    assert not found(tmp_path, video, TASK)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_text("written over")])
def test_a_result_that_was_lost_or_written_over_is_made_again(tmp_path: Path, video: str, spoil) -> None:  # type: ignore[no-untyped-def]
    kept(tmp_path, video)
    spoil(tmp_path / "out" / "a.csv")
    assert not found(tmp_path, video, TASK)


def test_one_that_broke_off_is_tried_again_though_its_files_are_there(tmp_path: Path, video: str) -> None:
    kept(tmp_path, video, failed="the network went away")
    assert (tmp_path / "out" / "a.csv").read_bytes() == b"c"
    assert statuses(tmp_path / "out") == {"a": "failed"}
    assert not found(tmp_path, video, TASK)


def test_other_weights_in_the_folder_of_a_model_are_another_key(tmp_path: Path, video: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    task = replace(TASK, model=f"estimator:{folder}")
    (before,) = jobs_of([video], ["a"], tmp_path, task)
    (folder / "weights").write_bytes(b"2")
    (after,) = jobs_of([video], ["a"], tmp_path, task)
    assert isinstance(before, Job)
    assert before.key != after.key


def test_what_was_not_written_for_this_video_is_overwritten_by_force_only(tmp_path: Path, video: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.csv").write_text("time,label\n1.0,mine\n")
    with pytest.raises(ConfigError, match=r"a\.csv already exists"):
        jobs_of([video], ["a"], out, TASK)
    assert jobs_of([video], ["a"], out, TASK, force=True)[0].done is None
    (out / "a.csv").unlink()
    kept(tmp_path, video)
    assert jobs_of([video], ["a"], out, TASK)[0].done is not None
    with pytest.raises(ConfigError, match=r"a\.\w+ already exists"):
        jobs_of([str(tmp_path / "other" / "a.mp4")], ["a"], out, TASK)
