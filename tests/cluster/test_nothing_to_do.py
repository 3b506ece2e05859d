"""A command whose videos are all done says so and asks no cluster; one that is left is asked for."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ongebd.cli import main
from ongebd.cluster import connection
from ongebd.cluster.connection import Cluster
from ongebd.cluster.extract import FeatureTask
from ongebd.cluster.worker import Answer, Task, Video, answers
from ongebd.errors import ClusterError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were connected to. The work is done here, by what the workers run."""
    addresses: list[str] = []

    @contextmanager
    def connected(address: str, workers: int | None, *, verbose: bool) -> Iterator[Cluster]:
        addresses.append(address)
        yield Cluster(address, cpus=1, gpus=0)

    def worked(
        cluster: Cluster | None, task: Task, videos: Sequence[Video], jobs: int, *, gpu: bool
    ) -> Iterator[tuple[Video, Answer]]:
        assert cluster is not None or not videos
        for video in videos:
            yield video, Answer(task.ready()(video))

    monkeypatch.setattr(connection, "connected", connected)
    for room in (importlib.import_module(f"ongebd.cluster.{name}") for name in ("detect", "extract")):
        monkeypatch.setattr(room, "answers", worked)
    return addresses


def statuses(out: Path) -> list[str]:
    return [json.loads(line)["status"] for line in (out / "manifest.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("command", ["extract", "detect"])
@pytest.mark.parametrize(
    ("address", "said"), [("local", "Ray on this machine"), ("head:6379", "the cluster at head:6379")]
)
def test_where_all_is_done_no_cluster_is_asked(
    command: str,
    address: str,
    said: str,
    asked: list[str],
    clips: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    line = [command, *clips[:2], "--out", str(out), "--cluster", address]
    assert main([*line, "--quiet"]) == 0
    assert (asked, statuses(out)) == ([address], ["done", "done"])
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.name != "manifest.jsonl"}
    capsys.readouterr()

    assert main(line) == 0
    assert (asked, statuses(out)) == ([address], ["skipped", "skipped"])
    assert before == {path.name: path.read_bytes() for path in out.iterdir() if path.name != "manifest.jsonl"}
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"ongebd: everything is already done, without {said}"
    assert "2 were " in shown[1]
    assert len(shown) == 2
    assert main([*line, "--quiet"]) == 0
    assert capsys.readouterr().err == ""

    assert main([command, *clips[:4], "--out", str(out), "--cluster", address, "--quiet"]) == 2
    assert asked == [address, address]
    assert sorted(statuses(out)) == ["done", "failed", "skipped", "skipped"]
    # What failed is tried again: that is something to do.
    assert main([command, *clips[:4], "--out", str(out), "--cluster", address, "--quiet"]) == 2
    assert asked == [address] * 3


@pytest.mark.parametrize("command", ["extract", "detect"])
def test_a_wrong_address_is_refused_there_too(
    command: str, asked: list[str], clips: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [command, clips[0], "--out", str(tmp_path / "out"), "--quiet", "--cluster"]
    assert main([*line, "local"]) == 0
    assert main([*line, "head"]) == 2
    assert capsys.readouterr().err.startswith("ongebd: --cluster head: not an address")


def test_work_without_a_cluster_is_an_error_and_none_without_work_is_not() -> None:
    task = FeatureTask(backbone="x", identity="x@1", fps=24.0)
    assert list(answers(None, task, [], 1, gpu=False)) == []
    with pytest.raises(ClusterError, match="no cluster for 1 videos"):
        list(answers(None, task, [Video(0, "a", "a.mp4")], 1, gpu=False))
