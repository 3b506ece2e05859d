"""What a user hears who names no cluster, or one that is not there: one line, soon; nothing is written."""

from __future__ import annotations

import importlib.util
import re
import socket
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from ongebd.cli import main
from ongebd.cluster import connection
from ongebd.cluster.connection import Cluster
from ongebd.errors import ClusterError

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine on which something other than Ray listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@needs_ray
@pytest.mark.parametrize("command", ["extract", "detect"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workers", "2"], "--workers needs a cluster; add --cluster local"),
        (["--verbose"], "--verbose needs a cluster"),
        (["--cluster", "head"], "--cluster head: not an address; use local, auto, or HOST:PORT"),
        (["--cluster", "ray://head:10001"], "run the command on a machine of the cluster"),
        (["--cluster", "local", "--workers", "0"], "--workers must be at least 1, not 0"),
        (["--cluster", "local", "--device", "cuda:1"], "use --device cuda"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(
    command: str,
    options: list[str],
    said: str,
    clips: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([command, clips[0], "--out", str(tmp_path / "out"), "--quiet", *options]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("source", ["-", "camera:0"])
def test_what_only_this_machine_has_is_refused(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", source, "--out", "x", "--cluster", "local"]) == 2
    assert capsys.readouterr().err == f"ongebd: {source} is only on this machine; drop --cluster\n"


def test_detect_on_a_cluster_needs_a_folder(clips: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", clips[0], "--cluster", "local"]) == 2
    assert capsys.readouterr().err == "ongebd: --cluster needs --out DIR for its files\n"


def test_without_ray_the_extra_is_named(
    clips: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec

    def without_ray(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "ray" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_ray)
    assert main(["extract", clips[0], "--out", str(tmp_path / "out"), "--cluster", "local", "-q"]) == 2
    assert re.fullmatch(r'ongebd: ray is not installed: .* install "ray.*\n', capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


@needs_ray
def test_where_nobody_answers_one_line_says_so_at_once(
    clips: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"127.0.0.1:{closed_port()}"
    assert main(["extract", clips[0], "--out", str(tmp_path / "out"), "--cluster", address, "-q"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"ongebd: --cluster {address}: can't connect (")
    assert shown.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ("import time; time.sleep(150)", "doesn't connect within 1 s; is it the address"),
        ("import os; os._exit(1)", "Ray doesn't connect: its client crashed"),
        (
            "import sys; sys.exit('Ray talks\\nongebd-probe: no such\\nnode')",
            "Ray doesn't connect: no such node",
        ),
        ("import time; time.sleep(150)", "needs a token, set RAY_AUTH_MODE=token"),
    ],
)
def test_a_cluster_that_does_not_take_us_says_why_in_one_line(
    client: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_ANSWER_S", 1.0)
    monkeypatch.setattr(connection, "_PROBE", client)
    with pytest.raises(ClusterError, match=said) as refused:
        connection.probe("127.0.0.1:1")
    assert "\n" not in str(refused.value)


@needs_ray
def test_where_something_else_listens_the_wait_has_an_end(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_ANSWER_S", 1.0)
    with pytest.raises(ClusterError, match="doesn't connect within 1 s"):
        connection.probe(f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("cluster", "gpu", "places"),
    [
        (Cluster("a", cpus=8, gpus=2), False, 8),
        (Cluster("a", cpus=8, gpus=2), True, 2),
        (Cluster("a", cpus=8, gpus=2, workers=5), False, 5),
    ],
)
def test_there_are_as_many_workers_as_fit_or_as_were_asked_for(
    cluster: Cluster, gpu: bool, places: int
) -> None:
    assert cluster.places(gpu=gpu) == places


@pytest.mark.parametrize(
    ("cluster", "gpu", "said"),
    [
        (Cluster("a", cpus=8, gpus=0), True, "the cluster has no GPUs; drop --device"),
        (Cluster("a", cpus=0, gpus=0), False, "the cluster has no processors"),
        (Cluster("a", cpus=2, gpus=0, workers=3), False, "--workers 3 is too many for 2 processors"),
        (Cluster("a", cpus=8, gpus=1, workers=2), True, "--workers 2 is too many for 1 GPUs"),
    ],
)
def test_more_workers_than_fit_are_refused_and_not_waited_for(cluster: Cluster, gpu: bool, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        cluster.places(gpu=gpu)
