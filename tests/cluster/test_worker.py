"""What a worker makes of one video, and what the driver does when workers die; without Ray."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ongebd import __version__, backbones
from ongebd.cli import main
from ongebd.cluster.connection import Cluster
from ongebd.cluster.detect import DetectTask, Found
from ongebd.cluster.extract import FeatureTask
from ongebd.cluster.worker import MOST, Answer, Setup, Task, Video, Work, answers, work_on
from ongebd.detector import load
from ongebd.errors import ClusterError, ConfigError
from ongebd.features.extract import VideoFeatures
from ongebd.features.records import Failure
from ongebd.features.store import FeatureStore
from ongebd.output import Reading

IDENTITY = backbones.get().identity
FEATURES = FeatureTask(backbone=backbones.DEFAULT, identity=IDENTITY, fps=24.0)
BOUNDARIES = DetectTask(
    model="window-mean",
    formats=("jsonl", "vtt"),
    identity=load("window-mean").backbone.identity,
    reading=Reading(version=__version__),
)


@dataclass(frozen=True)
class Made:
    """A task that calls a function with each video."""

    work: Work

    def ready(self) -> Work:
        return self.work


@dataclass(frozen=True)
class Unready:
    """A task that can't be made ready."""

    def ready(self) -> Work:
        raise ConfigError("no GPU here")


def ask(task: Task, source: str) -> Answer:
    result = work_on(Setup(task, __version__, None), [Video(0, Path(source).stem, source)])
    assert isinstance(result, list)
    return result[0]


def test_the_features_of_a_video_are_those_that_the_plain_command_stores(
    clips: list[str], tmp_path: Path
) -> None:
    main(["extract", clips[0], "--out", str(tmp_path / "store"), "--quiet"])
    stored = FeatureStore.open(tmp_path / "store")["clip0"]
    answer = ask(FEATURES, clips[0])
    assert isinstance(answer.result, VideoFeatures)
    assert answer.trace is None
    assert np.array_equal(answer.result.features, stored.features)
    assert answer.result.times == stored.times.tolist()


def test_the_files_of_a_detection_are_those_that_the_plain_command_writes(
    clips: list[str], tmp_path: Path
) -> None:
    main(["detect", clips[1], "--model", "window-mean", "-f", "jsonl,vtt", "--out", str(tmp_path), "--quiet"])
    found = ask(BOUNDARIES, clips[1]).result
    assert isinstance(found, Found)
    assert found.failed is None
    assert found.files == {what: (tmp_path / f"clip1.{what}").read_bytes() for what in ("jsonl", "vtt")}
    assert found.end is not None
    assert found.end.boundaries == 1


def test_a_corrupt_video_is_a_failure_and_no_exception(clips: list[str]) -> None:
    failure = ask(FEATURES, clips[2]).result
    assert isinstance(failure, Failure)
    assert "can't read it as a video" in failure.reason
    found = ask(BOUNDARIES, clips[2]).result
    assert isinstance(found, Found)
    assert found.files == {}
    assert "can't read it as a video" in (found.failed or "")


def test_a_bug_in_the_program_is_reported_with_its_traceback() -> None:
    def work(_video: Video) -> Failure:
        raise ZeroDivisionError("of all things")

    answer = ask(Made(work), "x.mp4")
    assert isinstance(answer.result, Failure)
    assert answer.result.reason.startswith("unexpected ZeroDivisionError: of all things")
    assert "raise ZeroDivisionError" in (answer.trace or "")


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        (Setup(Unready(), __version__, None), "can't do the work: no GPU here"),
        (
            Setup(replace(FEATURES, identity="other@1"), __version__, None),
            f"has {IDENTITY}, but the store has other@1",
        ),
        (Setup(replace(BOUNDARIES, identity="other@1"), __version__, None), "not other@1; install the same"),
        (Setup(FEATURES, "0.0.1", None), "not 0.0.1; install the same"),
        (
            Setup(FEATURES, __version__, "/no/such/folder"),
            "/no/such/folder: No such file or directory; name the videos",
        ),
    ],
)
def test_a_machine_that_cannot_do_the_work_says_so(setup: Setup, said: str) -> None:
    unfit = work_on(setup, [Video(0, "x", "x.mp4")])
    assert isinstance(unfit, str)
    assert said in unfit
    assert "\n" not in unfit


class FakeRay(types.ModuleType):
    """Runs tasks in this process, the newest first; a worker dies over some videos, `deaths` times each."""

    def __init__(self, deaths: dict[int, int]) -> None:
        super().__init__("ray")
        self.exceptions = types.ModuleType("ray.exceptions")
        self.error = type("RayError", (Exception,), {})
        for name in ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError"):
            setattr(self.exceptions, name, type(name, (self.error,), {}))
        self.exceptions.__dict__["RayError"] = self.error
        self.deaths, self.most_running, self.ran = deaths, 0, []
        self.cancelled: list[object] = []

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **_options: object) -> Any:
        def decorate(function: Any) -> Any:
            return types.SimpleNamespace(remote=lambda *arguments: (function, tuple(map(_frozen, arguments))))

        return decorate

    def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        self.most_running = max(self.most_running, len(references))
        return references[-num_returns:], references[:-num_returns]

    def get(self, reference: Any) -> Any:
        function, (setup, videos) = reference
        self.ran.append([video.number for video in videos])
        for video in videos:
            if self.deaths.get(video.number, 0):
                self.deaths[video.number] -= 1
                raise self.exceptions.WorkerCrashedError("killed")
        if self.deaths.get(-1):
            raise self.error("the head is gone\nand more")
        return function(setup, videos)

    def cancel(self, reference: object, force: bool) -> None:
        self.cancelled.append(reference)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def driven(
    monkeypatch: pytest.MonkeyPatch, deaths: dict[int, int], task: Task, threads: int = 1
) -> tuple[FakeRay, Sequence[tuple[Video, Answer]]]:
    ray = FakeRay(deaths)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
    videos = [Video(number, f"v{number}", f"/v{number}.mp4") for number in range(40)]
    return ray, list(answers(Cluster("local", cpus=3, gpus=0), task, videos, threads, gpu=False))


ECHO = Made(lambda video: video.id)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_worker_that_dies_costs_no_video_and_a_video_that_always_kills_is_given_up(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    ray, found = driven(monkeypatch, {3: 1, 8: 99}, ECHO, threads)
    assert [video.number for video, _ in found] == list(range(40))
    assert ray.most_running == 3
    for video, answer in found:
        if video.number == 8:
            assert isinstance(answer.result, Failure)
            assert answer.result.reason.startswith(f"its worker died {MOST} times")
            assert answer.attempts == MOST
        else:
            assert answer.result == video.id
    assert found[3][1].attempts == 2
    assert all(numbers == [8] for numbers in ray.ran if 8 in numbers[:1] and len(numbers) == 1)
    assert sum(8 in numbers for numbers in ray.ran) == MOST


@pytest.mark.parametrize(
    ("task", "deaths", "said"),
    [(Unready(), {}, "can't do the work: no GPU here"), (ECHO, {-1: 1}, "Ray stopped: the head is gone;")],
)
def test_a_job_that_cannot_go_on_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, task: Task, deaths: dict[int, int], said: str
) -> None:
    with pytest.raises(ClusterError, match=said) as refused:
        driven(monkeypatch, deaths, task)
    assert "\n" not in str(refused.value)


def test_sources_that_are_named_relative_to_a_folder_need_that_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ray = FakeRay({})
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
    monkeypatch.chdir(tmp_path)
    task = Made(lambda _video: str(Path.cwd()))
    videos = [Video(0, "a", "a.mp4"), Video(1, "b", "https://host/b.mp4")]
    (_, first), _ = answers(Cluster("local", cpus=1, gpus=0), task, videos, 1, gpu=False)
    assert first.result == str(tmp_path)
