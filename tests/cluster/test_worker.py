"""What a worker makes of one video, without Ray: results, failures and faults are all answers."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from ongebd import __version__, backbones
from ongebd.cli import main
from ongebd.cluster import DetectTask, FeatureTask
from ongebd.cluster.detect import Found
from ongebd.cluster.worker import MOST, Answer, Attempts, Task, Turns, Unfit, Video, Work, Worker
from ongebd.detector import load
from ongebd.errors import ConfigError
from ongebd.features import Failure, FeatureStore, VideoFeatures
from ongebd.output.follow import Reading

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
    """A task that cannot be made ready."""

    def ready(self) -> Work:
        raise ConfigError("no GPU here")


def worker(
    task: Task, attempts: Attempts | None = None, version: str = __version__, folder: str | None = None
) -> Worker:
    counter = attempts or Attempts()
    return Worker(task, version, folder, 1, lambda method, number: getattr(counter, method)(number))


def ask(worker: Worker, source: str, number: int = 0) -> Answer | Unfit:
    video = Video(number, Path(source).stem, source)
    answer: Answer | Unfit = pickle.loads(worker({"video": pickle.dumps(video)})["answer"])
    return answer


def test_the_features_of_a_video_are_those_that_the_plain_command_stores(
    clips: list[str], tmp_path: Path
) -> None:
    main(["extract", clips[0], "--out", str(tmp_path / "store"), "--quiet"])
    stored = FeatureStore.open(tmp_path / "store")["clip0"]
    answer = ask(worker(FEATURES), clips[0], number=5)
    assert isinstance(answer, Answer)
    assert isinstance(answer.result, VideoFeatures)
    assert (answer.number, answer.attempts, answer.trace) == (5, 1, None)
    assert np.array_equal(answer.result.features, stored.features)
    assert answer.result.times == stored.times.tolist()


def test_the_files_of_a_detection_are_those_that_the_plain_command_writes(
    clips: list[str], tmp_path: Path
) -> None:
    main(["detect", clips[1], "--model", "window-mean", "-f", "jsonl,vtt", "--out", str(tmp_path), "--quiet"])
    answer = ask(worker(BOUNDARIES), clips[1])
    assert isinstance(answer, Answer)
    assert isinstance(answer.result, Found)
    assert answer.result.failed is None
    assert answer.result.files == {
        what: (tmp_path / f"clip1.{what}").read_bytes() for what in ("jsonl", "vtt")
    }
    assert answer.result.end is not None
    assert answer.result.end.boundaries == 1


def test_a_corrupt_video_is_a_failure_and_no_exception(clips: list[str]) -> None:
    answer = ask(worker(FEATURES), clips[2])
    assert isinstance(answer, Answer)
    assert isinstance(answer.result, Failure)
    assert "can't read it as a video" in answer.result.reason
    found = ask(worker(BOUNDARIES), clips[2])
    assert isinstance(found, Answer)
    assert isinstance(found.result, Found)
    assert found.result.files == {}
    assert "can't read it as a video" in (found.result.failed or "")


def test_a_fault_of_the_program_is_told_with_its_traceback() -> None:
    def work(_video: Video) -> Failure:
        raise ZeroDivisionError("of all things")

    answer = ask(worker(Made(work)), "x.mp4")
    assert isinstance(answer, Answer)
    assert isinstance(answer.result, Failure)
    assert answer.result.reason.startswith("unexpected ZeroDivisionError: of all things")
    assert "raise ZeroDivisionError" in (answer.trace or "")


@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        (Unready(), {}, "can't do the work: no GPU here"),
        (replace(FEATURES, identity="other@1"), {}, f"has {IDENTITY}, but the store has other@1"),
        (replace(BOUNDARIES, identity="other@1"), {}, "not other@1; install the same"),
        (FEATURES, {"version": "0.0.1"}, "not 0.0.1; install the same"),
        (
            FEATURES,
            {"folder": "/no/such/folder"},
            "/no/such/folder: No such file or directory; name the videos",
        ),
    ],
)
def test_a_machine_that_cannot_do_the_work_says_so_for_every_video(
    task: Task, options: dict[str, str], said: str
) -> None:
    unfit = ask(worker(task, **options), "x.mp4")  # type: ignore[arg-type]
    assert isinstance(unfit, Unfit)
    assert said in unfit.reason
    assert "\n" not in unfit.reason


def test_a_video_that_kills_its_workers_is_given_up_and_named() -> None:
    attempts, begun = Attempts(), []

    def work(video: Video) -> Failure:
        begun.append(video.source)
        raise SystemExit  # as near to a death as a test may come: nothing is answered, and no end is told

    for _ in range(MOST):
        with pytest.raises(SystemExit):
            ask(worker(Made(work), attempts), "killer.mp4")
    answer = ask(worker(Made(work), attempts), "killer.mp4")
    assert begun == ["killer.mp4"] * MOST
    assert isinstance(answer, Answer)
    assert isinstance(answer.result, Failure)
    assert answer.result.reason.startswith(f"its worker died {MOST} times:")
    assert answer.attempts == MOST


def test_an_attempt_that_came_to_an_end_does_not_count() -> None:
    attempts = Attempts()
    one = worker(Made(lambda video: Failure.of(video.id, video.source, "bad")), attempts)
    for _ in range(MOST + 2):
        answer = ask(one, "x.mp4")
        assert isinstance(answer, Answer)
        assert answer.attempts == 1


def test_a_suspect_is_worked_on_alone() -> None:
    turns = Turns(2)
    inside: list[str] = []
    seen: dict[str, list[str]] = {}
    together, lock = threading.Barrier(2), threading.Lock()

    def go(name: str, alone: bool) -> None:
        with turns.turn(alone=alone):
            with lock:
                inside.append(name)
            if not alone:
                together.wait(timeout=10)  # the two others are in at once
            with lock:
                seen[name] = list(inside)
                inside.remove(name)

    threads = [threading.Thread(target=go, args=(name, name == "suspect")) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    suspect = threading.Thread(target=go, args=("suspect", True))
    suspect.start()
    for thread in [*threads, suspect]:
        thread.join(timeout=20)
    assert seen["suspect"] == ["suspect"]
    assert {"a", "b"} in (set(seen["a"]), set(seen["b"]))
