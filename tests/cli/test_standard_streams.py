"""Standard output that is full, closed or gone; a stop while results are finished; what is called how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ongebd.output import read_jsonl
from waiting import until

Maker = Callable[..., Any]
POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="redirections of a POSIX shell")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory, make_video: Maker, make_scene: Maker) -> Path:
    path = tmp_path_factory.mktemp("clips") / "clip.mp4"
    return make_video(path, [make_scene(1)] * 24 + [make_scene(2)] * 24, rate=24)


def shell(command: str, clip: Path, **variables: object) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        **{name: str(value) for name, value in variables.items()},
        "O": f"{sys.executable} -m ongebd",
        "CLIP": str(clip),
    }
    return subprocess.run(
        ["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@POSIX_ONLY
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("where", ["> /dev/full", ">&-"])
@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "detect --help", "models", "models --json", 'detect -q "$CLIP"']
)
def test_results_that_cannot_be_written_are_never_lost_without_a_word(
    clip: Path, arguments: str, where: str
) -> None:
    done = shell(f"$O {arguments} {where}", clip)
    assert done.returncode == 2
    assert done.stderr.startswith("ongebd: ")
    assert "standard output" in done.stderr
    assert done.stderr.count("\n") == 1


@POSIX_ONLY
def test_results_in_a_folder_need_no_standard_output(clip: Path, tmp_path: Path) -> None:
    done = shell('$O detect "$CLIP" -q --out "$DIR" >&- 2>&- <&-', clip, DIR=tmp_path)
    assert done.returncode == 0
    assert read_jsonl(tmp_path / "clip.jsonl").complete


@POSIX_ONLY
@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_a_standard_error_that_is_gone_spoils_no_results(clip: Path, where: str) -> None:
    if "full" in where and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = shell(f'$O detect "$CLIP" {where}', clip)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert shell(f"$O detect gone.mp4 {where}", clip).returncode == 2


@POSIX_ONLY
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_the_picture_is_drawn_is_told(clip: Path, tmp_path: Path, stop: signal.Signals) -> None:
    drawing = tmp_path / "drawing"
    program = (
        "import sys, time, pathlib, ongebd.output.figure as figure\n"
        "def png(scene):\n"
        "    pathlib.Path(sys.argv.pop()).touch()\n"
        "    time.sleep(150)\n"
        "figure.png = png\n"
        "from ongebd.cli import main\n"
        "sys.exit(main(sys.argv[1:-1]))\n"
    )
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "detect", clip, "-q", "--out", out, "--plot", drawing],
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: drawing.exists() or process.poll() is not None)
    process.send_signal(stop)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"stopped before {out / 'clip.png'} was written" in err
    assert [path.name for path in out.iterdir()] == ["clip.jsonl"]
    assert read_jsonl(out / "clip.jsonl").complete


@POSIX_ONLY
def test_an_mp4_with_its_index_at_the_end_is_refused_from_a_pipe(clip: Path, tmp_path: Path) -> None:
    done = shell('cat "$CLIP" | $O detect - --out "$DIR" -f jsonl,csv,vtt,png', clip, DIR=tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith("ongebd: standard input: can't read it as a video")
    assert "this isn't a video, or its kind can't be piped; give its name" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@POSIX_ONLY
def test_standard_input_is_called_so_in_all_that_people_read(clip: Path, tmp_path: Path) -> None:
    done = shell('$O detect - --out "$DIR" -f vtt < "$CLIP"', clip, DIR=tmp_path)
    assert done.stderr.startswith("standard input: 1 boundary in 2.000 s")
    assert "Events of standard input" in (tmp_path / "stdin.vtt").read_text()


def test_a_bar_shows_the_latest_progress_until_it_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    from ongebd.cli.terminal import Progress

    with Progress() as progress:
        assert progress._bar is not None
        progress.show("2/4  a[b].mp4", 1.0, 2.0, "1.0 s")
        progress.show("2/4  a[b].mp4", 1.5, 2.0, "1.5 s")
        (task,) = progress._bar.tasks
        assert (task.description, task.completed, task.fields["now"]) == ("2/4  a[b].mp4", 1.5, "1.5 s")
        progress.restart()
        assert progress._bar.tasks == []


@POSIX_ONLY
@pytest.mark.parametrize("command", ["--help", "models", "models --json", "watch --help", "detect -q CLIP"])
def test_a_reader_that_went_away_is_told_as_every_program_tells_it(clip: Path, command: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "ongebd", *command.replace("CLIP", str(clip)).split()],
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@POSIX_ONLY
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
@pytest.mark.parametrize("command", ["detect", "watch"])
def test_a_character_that_the_terminal_lacks_is_escaped(
    clip: Path, tmp_path: Path, command: str, encoding: str
) -> None:
    (tmp_path / "日本.mp4").symlink_to(clip)
    sources = ["日本.mp4", "gone-日.mp4", *(["日=日本.mp4"] if command == "watch" else [])]
    done = subprocess.run(
        [sys.executable, "-m", "ongebd", command, *sources, "-m", "window-mean"],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        cwd=tmp_path,
        capture_output=True,
        encoding=encoding,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    name = "日" if encoding == "utf-8" else r"\u65e5"
    assert f"ongebd: gone-{name}.mp4: no such file" in done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    assert {"detect": len(lines), "watch": done.stdout.count("ended, epoch")}[command] == len(sources) - 1
    assert name in done.stdout + done.stderr
