"""`ongebd detect --device cuda`, with the pool's CPU runtime in place of a GPU's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ongebd.cli import main
from ongebd.output import read_jsonl
from ongebd.pool.runtime import CpuRuntime
from waiting import until

Maker = Callable[..., Any]
ON_CPU = """
import sys
from ongebd.cli import main
from ongebd.pool import pool
from ongebd.pool.runtime import CpuRuntime
if __name__ == "__main__":
    pool.open_runtime = lambda model, device, precision, **options: CpuRuntime(model)
    sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ongebd.pool.pool.open_runtime", lambda model, _device, _precision, **_options: CpuRuntime(model)
    )


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory, make_video: Maker, make_scene: Maker) -> list[Path]:
    """Films of several sizes and rates; the last one changes its size, and so has two epochs."""
    folder = tmp_path_factory.mktemp("films")
    paths = []
    for number, (width, rate, count) in enumerate([(240, 30, 20), (432, 12, 12)]):
        shots = [make_scene(10 * number + n, width, 240) for n in range(2)]
        panned = [shot[:, n : n + width - 64] for shot in shots for n in range(count)]
        paths.append(make_video(folder / f"film {number}.mp4", panned, rate=rate))
    parts = [
        make_video(folder / f"part{n}.ts", [make_scene(n, *size)] * 12 + [make_scene(9, *size)] * 12, rate=24)
        for n, size in enumerate([(320, 240), (240, 320)])
    ]
    paths.append(folder / "two sizes.ts")
    paths[-1].write_bytes(b"".join(part.read_bytes() for part in parts))
    return paths


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("model", ["immediate", "window-mean"])
def test_files_side_by_side_are_written_as_one_after_the_other(
    films: list[Path], tmp_path: Path, model: str, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_text("no video\n" * 100)
    written, said = [], []
    for name, more in (("plain", []), ("gpu", ["--device", "cuda", "--workers", "2"])):
        sources = [str(bad), *map(str, films)]
        arguments = ["--out", str(tmp_path / name), "--model", model, "--format", "jsonl,html", *more]
        assert main(["detect", *sources, *arguments]) == 2
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
        *lines, summary = capfd.readouterr().err.splitlines()
        said.append([*sorted(line.partition(" (")[0] for line in lines), summary])
    assert written[1] == written[0]
    assert len(written[0]) == 6
    assert said[1] == said[0]
    assert "1 of 4 sources failed: " in said[0][-1]
    assert b'"type": "epoch"' in written[0]["two sizes.jsonl"]
    assert sum(data.count(b'"type": "boundary"') for data in written[0].values()) >= 1


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("count", [1, 3])
def test_boundaries_are_lines_on_stdout(
    films: list[Path], count: int, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["detect", *map(str, films[-count:]), "--model", "window-mean", "-q"]
    assert main(arguments) == 0
    plain = capfd.readouterr()
    assert main([*arguments, "--device", "cuda"]) == 0
    out, err = capfd.readouterr()
    for ours, wanted in ((out, plain.out), (err, plain.err)):
        assert sorted(ours.splitlines()) == sorted(wanted.splitlines())
    assert out.count("\n") >= 2


@contextmanager
def reading(fifo: Path, others: list[Path], out: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, at work on a pipe whose writer says no more after two shots, and on files."""
    os.mkfifo(fifo)
    program = out.parent / "program.py"
    program.write_text(ON_CPU)
    arguments = ["detect", str(fifo), *map(str, others), "--out", str(out), "--model", "window-mean"]
    command = [sys.executable, str(program), *arguments, "--device", "cuda", "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        with os.fdopen(os.open(fifo, os.O_RDWR), "wb") as writer:  # waits for no reader
            writer.write(others[-1].read_bytes())
            writer.flush()
            until(lambda: all('"end"' in text_of(out / f"{one.stem}.jsonl") for one in others))
            until(lambda: '"boundary"' in text_of(out / "pipe.jsonl"))
            yield process
    finally:
        process.kill()


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_a_stop_leaves_whole_results(films: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with reading(tmp_path / "pipe.ts", films[1:], out) as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    recording = read_jsonl(out / "pipe.jsonl")
    assert recording.end is not None
    assert not recording.complete
    assert recording.boundaries
    assert "stopped early" in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("on_cpu")
def test_what_breaks_the_decisions_is_one_line(
    films: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("CUDA error: the card is gone")

    monkeypatch.setattr(CpuRuntime, "begin", broken)
    assert main(["detect", *map(str, films), "--out", str(tmp_path), "--device", "cuda"]) == 2
    err = capfd.readouterr().err
    assert "CUDA error: the card is gone" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "PyTorch sees 0 GPUs here; use --device cpu|torch is not installed"),
        (["--device", "cuda:9"], "PyTorch sees {} GPUs here; use --device cpu|torch is not installed"),
        (["--workers", "0"], "--workers must be at least 1, not 0"),
        (["-"], "give - alone"),
        (["--device", "cpu", "--workers", "2"], "--workers needs"),
        (["--model", "clock"], "clock doesn't run on cuda"),
    ],
)
def test_what_cannot_be_is_one_line(
    films: list[Path], tmp_path: Path, arguments: list[str], says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    device = [] if "--device" in arguments else ["--device", "cuda"]
    if not arguments:
        torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
    assert main(["detect", str(films[0]), *arguments, "--out", str(tmp_path / "out"), *device]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    torch = sys.modules.get("torch")
    says = says.format(torch.cuda.device_count() if torch else 0)
    assert any(one in err for one in says.split("|")), err
    assert not (tmp_path / "out").exists()


def test_without_torch_one_line_says_how_to_get_it(
    films: list[Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["detect", str(films[0]), "--device", "cuda"]) == 2
    assert "torch is not installed: " in capfd.readouterr().err
