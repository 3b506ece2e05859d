"""`ongebd bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ongebd.cli import main
from ongebd.cli.bench import bench
from ongebd.lab.benchmark import bench as bench_module
from ongebd.lab.benchmark import timing

ONE = ["bench", "--methods", "persistence", "--repeats", "1", "--seconds", "0.001"]
QUICK = [*ONE, "--streams", "0"]


@pytest.fixture(autouse=True)
def _light(monkeypatch):
    """With little warming up."""
    monkeypatch.setattr(timing, "WARM_UP", 0.0)


def test_tables_on_the_terminal_and_files(tmp_path, capsys):
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    for part in ("What it was measured on", "Size and cost of a frame", "One stream", "persistence"):
        assert part in out
    assert "Many streams" not in out
    assert [line.split()[0] for line in err.splitlines()] == ["wrote"] * 2
    said = json.loads((tmp_path / "bench.json").read_text())
    assert said["plan"]["streams"] == []
    assert {file.name for file in tmp_path.iterdir()} == {"bench.md", "bench.json"}


def test_what_was_measured_is_on_disk_though_it_cannot_be_shown(tmp_path, monkeypatch):
    def gone(*_):
        raise BrokenPipeError

    monkeypatch.setattr("ongebd.cli.bench.print_tables", gone)
    with pytest.raises(BrokenPipeError):
        bench(
            methods="persistence", streams="0", repeats=1, seconds=0.001, out=tmp_path / "bench", quiet=True
        )
    assert {file.name for file in (tmp_path / "bench").iterdir()} == {"bench.md", "bench.json"}


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_measured(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("ongebd.cli.bench.Bench", None)
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "below" / "it"):
        assert main([*QUICK, "--out", str(out)]) == 2
        (line,) = capfd.readouterr().err.strip().splitlines()
        assert "is a file; name a folder" in line


def test_nothing_is_written_unasked(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(QUICK) == 0
    assert capsys.readouterr().err == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--methods", "no-such"], "unknown model 'no-such'"),
        (["--methods", ","], "--methods names none"),
        (["--streams", "1,x"], "not 'x'"),
        (["--streams", ""], "--streams has an empty value"),
        (["--device", "tpu"], "--device tpu: unknown device"),
        (["--device", "cuda:77"], "cuda:77|torch is not installed"),
        (["--device", "openvino:int4"], "int4"),
        (["--precision", "bfloat16"], "openvino"),
        (["--repeats", "0"], "--repeats must be at least 1"),
        (["--repeats", "1.5"], "must be a whole number"),
        (["--seconds", "-1"], "--seconds must be above 0"),
        (["--video", "gone.mp4"], "gone.mp4: "),
        (["--out", "file"], "--out file: "),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments, said, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("no video")
    assert main(["bench", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert any(part in err for part in said.split("|"))


def test_a_file_that_is_not_a_video(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.mp4").write_text("no video")
    assert main([*QUICK, "--video", "text.mp4"]) == 2
    assert capfd.readouterr().err.startswith("ongebd: text.mp4: ")


def test_an_interrupt_writes_what_was_measured(monkeypatch, tmp_path, capsys):
    turn, count = bench_module.Cell.turn, iter(range(100))

    def interrupted(cell, seconds):
        if next(count) == 3:
            raise KeyboardInterrupt
        turn(cell, seconds)

    monkeypatch.setattr(bench_module.Cell, "turn", interrupted)
    assert main([*ONE, "--streams", "1", "--out", str(tmp_path)]) == 130
    assert "stopped before its end" in capsys.readouterr().out
    assert json.loads((tmp_path / "bench.json").read_text())["complete"] is False


def test_an_interrupt_before_anything_was_measured(monkeypatch, tmp_path, capsys):
    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_module, "subjects", interrupted)
    assert main([*QUICK, "--out", str(tmp_path / "new")]) == 130
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "new").exists()
