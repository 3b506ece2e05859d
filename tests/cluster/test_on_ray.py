"""On a real Ray of two workers: the results of the plain commands, whatever happens to the workers."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ongebd import __version__, backbones
from ongebd.cli import main
from ongebd.cluster.connection import Cluster
from ongebd.cluster.detect import DetectTask, detect_on, jobs_of
from ongebd.cluster.extract import FeatureTask, extract_on
from ongebd.cluster.worker import Video, Work, answers
from ongebd.detector import load
from ongebd.errors import ClusterError
from ongebd.features.extract import ExtractConfig, Extracted, sampling_identity
from ongebd.features.records import Failure
from ongebd.features.store import FeatureStore
from ongebd.output import Reading

pytestmark = pytest.mark.slow

NET = backbones.get()
FEATURES = FeatureTask(backbone=backbones.DEFAULT, identity=NET.identity, fps=24.0)
MODEL = load("immediate")
BOUNDARIES = DetectTask(
    model="immediate",
    formats=("jsonl", "csv", "vtt", "png"),
    identity=MODEL.backbone.identity,
    reading=Reading(version=__version__),
)


@pytest.fixture(scope="module")
def plain_store(clips: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "store"
    assert main(["extract", *clips, "--out", str(out), "--quiet"]) == 2
    return out


@pytest.fixture(scope="module")
def plain_results(clips: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "results"
    assert main(["detect", *clips, "--out", str(out), "-f", "jsonl,csv,vtt", "--plot", "--quiet"]) == 2
    return out


def contents(folder: Path) -> dict[str, bytes]:
    """All files but those that a plain command has not."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.jsonl"}


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]


def extracted(
    clips: list[str], out: Path, cluster: Cluster, task: FeatureTask = FEATURES
) -> list[Extracted | Failure]:
    with FeatureStore.open_or_create(
        out, backbone=NET.identity, dim=NET.dim, fps=24.0, sampling=sampling_identity(NET)
    ) as store:
        return list(extract_on([(Path(clip).stem, clip) for clip in clips], store, task, cluster))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_store_is_that_of_the_plain_command_to_the_byte(
    jobs: int, clips: list[str], plain_store: Path, tmp_path: Path, cluster: Cluster
) -> None:
    out = tmp_path / "store"
    config = ExtractConfig(jobs=jobs, workers=1)
    events = extracted(clips, out, cluster, replace(FEATURES, config=config))
    assert [event.id for event in events] == [f"clip{number}" for number in range(6)]
    assert contents(out) == contents(plain_store)
    assert [(line["id"], line["status"]) for line in lines(out)] == [
        (f"clip{number}", "failed" if number == 2 else "done") for number in range(6)
    ]


def test_what_is_in_the_store_is_skipped_and_what_failed_is_tried_again(
    clips: list[str], plain_store: Path, tmp_path: Path, cluster: Cluster
) -> None:
    out = tmp_path / "store"
    assert len(extracted(clips[:4], out, cluster)) == 4
    events = extracted(clips, out, cluster)
    assert [event.id for event in events] == ["clip2", "clip4", "clip5"]
    assert contents(out) == contents(plain_store)
    statuses = {str(line["id"]): line["status"] for line in lines(out)}
    assert len(lines(out)) == 6
    assert statuses == {
        **dict.fromkeys(("clip0", "clip1", "clip3"), "skipped"),
        **dict.fromkeys(("clip4", "clip5"), "done"),
        "clip2": "failed",
    }


def test_results_are_those_of_the_plain_command_to_the_byte_and_are_not_made_twice(
    clips: list[str], plain_results: Path, tmp_path: Path, cluster: Cluster
) -> None:
    stems = [Path(clip).stem for clip in clips]
    events = list(detect_on(jobs_of(clips, stems, tmp_path, BOUNDARIES), tmp_path, BOUNDARIES, cluster))
    assert [event.failed is None for event in events] == [True, True, False, True, True, True]
    assert contents(tmp_path) == contents(plain_results)

    again = jobs_of(clips, stems, tmp_path, BOUNDARIES)
    assert [job.stem for job in again if job.done is None] == ["clip2"]
    (event,) = detect_on(again, tmp_path, BOUNDARIES, cluster)
    assert event.failed is not None
    assert event.end is None
    assert sorted(str(line["status"]) for line in lines(tmp_path)) == ["failed"] + ["skipped"] * 5
    assert contents(tmp_path) == contents(plain_results)


@dataclass(frozen=True)
class Deadly:
    """Kills its worker at some videos: once at `once`, always at `always`."""

    folder: str
    once: int
    always: int

    def ready(self) -> Work:
        return self.work

    def work(self, video: Video) -> Failure:
        mark = Path(self.folder) / str(video.number)
        if video.number == self.always or (video.number == self.once and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Failure(video.id, video.source, "came to an end")


@pytest.fixture
def _sent_whole() -> None:
    """Send what this file defines to the workers, which cannot import it."""
    import ray.cloudpickle

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.mark.usefixtures("_sent_whole")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_worker_that_dies_costs_no_video_and_one_that_always_kills_is_given_up(
    jobs: int, tmp_path: Path, cluster: Cluster
) -> None:
    videos = [Video(number, f"v{number}", f"v{number}.mp4") for number in range(16)]
    found = list(answers(cluster, Deadly(str(tmp_path), 3, 8), videos, jobs, gpu=False))
    assert [video.number for video, _ in found] == list(range(16))
    reasons = {
        video.number: answer.result.reason for video, answer in found if isinstance(answer.result, Failure)
    }
    assert reasons.pop(8).startswith("its worker died 3 times")
    assert set(reasons.values()) == {"came to an end"}
    assert found[3][1].attempts == 2
    assert found[8][1].attempts == 3


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (replace(FEATURES, identity="another@1"), "but the store has another@1; install the same"),
        (replace(FEATURES, backbone="resnet50", weights=Path("/no/such/file")), "/no/such/file"),
    ],
)
def test_a_cluster_that_cannot_do_the_work_ends_the_job_in_one_line(
    task: FeatureTask, said: str, clips: list[str], cluster: Cluster
) -> None:
    with pytest.raises(ClusterError) as refused:
        list(answers(cluster, task, [Video(0, "clip0", clips[0])], 1, gpu=False))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


class Unknown:
    """A task that a worker can't unpickle, as if its machine had another ongebd."""

    def __reduce__(self) -> tuple[object, ...]:
        return importlib.import_module, ("ongebd.of_another_version",)


def test_a_machine_with_another_ongebd_ends_the_job_in_one_line(clips: list[str], cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match=r"check that every machine has ongebd") as refused:
        list(answers(cluster, Unknown(), [Video(0, "clip0", clips[0])], 1, gpu=False))  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)


def test_a_task_runs_where_relative_names_begin_in_the_same_folder(
    clips: list[str], tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(clips[0]).parent)
    (event,) = extracted(["clip0.mp4"], tmp_path / "store", cluster)
    assert isinstance(event, Extracted)
    assert event.source == "clip0.mp4"
