"""`ongebd detect` as a user meets it: results on disk, one line for a mistake, nothing lost."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ongebd.cli import app, main
from ongebd.cli.options import SHORT
from ongebd.detector import load
from ongebd.output import read_jsonl
from waiting import until

Maker = Callable[..., Any]


@pytest.fixture(scope="session")
def two_shots(tmp_path_factory: pytest.TempPathFactory, make_video: Maker, make_scene: Maker) -> Path:
    """Two seconds of one scene, then two of another: one boundary, at 2 s."""
    path = tmp_path_factory.mktemp("clips") / "two shots.mp4"
    return make_video(path, [make_scene(1)] * 48 + [make_scene(2)] * 48, rate=24)


OBD = ["--model", "window-mean"]
"""What it finds follows from a rule, not from weights."""


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ongebd", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_boundary_is_a_line_on_stdout_and_the_summary_goes_to_stderr(
    two_shots: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["detect", str(two_shots), *OBD]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("0:00:02.0")
    assert out.count("\n") == 1
    assert "1 boundary in 4.000 s" in err


def test_results_stand_in_the_folder_under_the_name_of_the_video(two_shots: Path, tmp_path: Path) -> None:
    arguments = ["--out", str(tmp_path), "-f", "jsonl,csv,vtt", "--plot", "-q"]
    assert main(["detect", str(two_shots), *arguments, *OBD]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        f"two shots.{ending}" for ending in ("csv", "jsonl", "png", "vtt")
    ]
    header, boundary, update, end = records(tmp_path / "two shots.jsonl")
    assert header["type"] == "header"
    assert (update["type"], update["onset"]) == ("update", boundary["onset"])
    assert header["settings"]["fps"] == 24.0
    assert set(boundary) == {"type", "time", "onset", "decided", "score", "onset_known"}
    assert boundary["onset"] == boundary["onset_known"] == 2.0
    assert boundary["onset"] <= boundary["time"] < boundary["decided"]
    assert end["type"] == "end"
    assert end["complete"] is True
    assert end["duration"] == 4.0
    assert (tmp_path / "two shots.csv").read_text().startswith("time,onset,decided,score")
    assert (tmp_path / "two shots.vtt").read_text().startswith("WEBVTT")


def test_settings_given_by_name_reach_the_detector(two_shots: Path, tmp_path: Path) -> None:
    arguments = ["--tau", "7", "--fps", "12", "--window", "3", "--model", "predictability"]
    assert main(["detect", str(two_shots), "--out", str(tmp_path), "-q", *arguments]) == 0
    header = records(tmp_path / "two shots.jsonl")[0]
    assert header["model"] == "predictability"
    assert header["settings"]["tau"] == 7.0
    assert header["settings"]["window"] == 3
    assert records(tmp_path / "two shots.jsonl")[-1]["frames"] == 48


def test_the_default_model_says_what_it_was_set_to_and_draws_it(
    tmp_path: Path, make_video: Maker, make_scene: Maker
) -> None:
    panned = [scene[:, n : n + 320] for scene in map(make_scene, (1, 2)) for n in range(0, 96, 2)]
    path = make_video(tmp_path / "film.mp4", panned, rate=24)
    arguments = [
        "--out",
        str(tmp_path / "out"),
        "-f",
        "jsonl,csv,vtt",
        "--plot",
        "-q",
        "--sensitivity",
        "0.8",
    ]
    assert main(["detect", str(path), *arguments]) == 0
    header, *told, end = records(tmp_path / "out" / "film.jsonl")
    boundaries = [record for record in told if record["type"] == "boundary"]
    settings = header["settings"]
    assert (header["model"], settings["head"], settings["sensitivity"]) == ("immediate", "hysteresis", 0.8)
    assert settings["threshold"] < load("immediate").defaults.threshold
    assert settings["tau"] is None
    assert end["frames"] == 96
    assert any(boundary["onset"] == pytest.approx(2.0, abs=0.3) for boundary in boundaries)
    for boundary in boundaries:
        assert boundary["time"] == boundary["onset"] == boundary["decided"]
        assert 0 < boundary["score"] <= 1
    assert (tmp_path / "out" / "film.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "avi"], "unknown format 'avi'"),
        (["--model", "crystal-ball"], "unknown model 'crystal-ball'"),
        ([*OBD, "--tau", "-1"], "tau must be above 0"),
        (["--tau", "high"], "--tau"),
        ([*OBD, "--warmup", "99"], "warmup must be at most delta (21)"),
        (["--tau", "3"], "immediate doesn't use tau; its head, hysteresis, uses threshold, rearm"),
        (["--sensitivity", "1"], "sensitivity must be above 0 and below 1"),
        (["--sensitivity", "0.7", "--threshold", "0.9"], "replaces threshold: set only one of them"),
        ([*OBD, "--sensitivity", "0.7", "--tau", "9"], "replaces tau: set only one of them"),
        (["--model", "clock", "--sensitivity", "0.7"], "clock has no sensitivity"),
        (["--stream", "7"], "no video stream 7"),
        (["--plot"], "add --out"),
        (["--format", "jsonl,csv"], "add --out"),
        (["--sensitivty", "1"], "--sensitivty"),
    ],
)
def test_a_mistake_is_one_line_with_status_2_and_writes_nothing(
    two_shots: Path, arguments: list[str], says: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    where = [] if arguments[0] in ("--plot", "--format") and says == "add --out" else ["--out", str(tmp_path)]
    assert main(["detect", str(two_shots), *where, *arguments]) == 2
    out, err = capfd.readouterr()
    assert says in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_the_header_says_what_computed_where_that_was_asked_for(two_shots: Path, tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="the extra `openvino` is not installed")
    usual, asked = tmp_path / "usual", tmp_path / "asked"
    assert main(["detect", str(two_shots), "--out", str(usual), "-q", *OBD]) == 0
    assert main(["detect", str(two_shots), "--out", str(asked), "-q", *OBD, "--device", "openvino"]) == 0
    (first, *_), (header, boundary, *_) = (records(folder / "two shots.jsonl") for folder in (usual, asked))
    assert header == first | {"runtime": "openvino", "precision": "float32"}
    assert boundary["onset"] == boundary["onset_known"] == 2.0
    read = read_jsonl(asked / "two shots.jsonl").header
    assert (read.runtime, read.precision) == ("openvino", "float32")
    assert read_jsonl(usual / "two shots.jsonl").header.runtime is None


def test_in_a_batch_the_good_ones_go_on_and_the_bad_ones_are_named(
    two_shots: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "notes.mp4"
    text.write_text("not a video\n" * 100)
    out = tmp_path / "out"
    status = main(["detect", str(tmp_path / "gone.mp4"), str(text), str(two_shots), "--out", str(out), "-q"])
    assert status == 2
    err = capfd.readouterr().err
    assert "gone.mp4: no such file" in err
    assert "notes.mp4: can't read it as a video" in err
    assert "2 of 3 sources failed" in err
    assert [p.name for p in out.iterdir()] == ["two shots.jsonl"]


def test_many_bad_names_are_lines_that_a_terminal_shows_safely(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "list.txt"
    listed.write_bytes(b"".join(b"x\x1b[2J\r%d.mp4\n" % number for number in range(500)))
    assert main(["detect", "--list", str(listed), "--model", "clock", "--out", str(tmp_path / "out")]) == 2
    *lines, summary = capfd.readouterr().err.splitlines()
    assert len(lines) == 500
    assert "500 of 500 sources failed" in summary
    assert len(summary) < 500
    assert not {"\x1b", "\r"} & set("".join([*lines, summary]))


def test_two_videos_of_one_name_get_two_results(two_shots: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / two_shots.name
    other.parent.mkdir()
    other.write_bytes(two_shots.read_bytes())
    out = tmp_path / "out"
    assert main(["detect", str(two_shots), str(other), "--out", str(out), "-q"]) == 0
    sources = {records(path)[0]["source"] for path in out.iterdir()}
    assert sources == {str(two_shots), str(other)}


def test_one_format_goes_to_stdout_without_a_folder(
    two_shots: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["detect", str(two_shots), "--format", "jsonl", "-q", *OBD]) == 0
    types = [json.loads(line)["type"] for line in capfd.readouterr().out.splitlines()]
    assert types == ["header", "boundary", "update", "end"]


def test_a_video_can_be_piped_in(tmp_path: Path, make_video: Maker, make_scene: Maker) -> None:
    path = make_video(tmp_path / "a.ts", [make_scene(1)] * 48 + [make_scene(2)] * 24, rate=24)
    with path.open("rb") as video:
        done = run("detect", "-", "-q", *OBD, stdin=video)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0:00:02.0")


@pytest.mark.parametrize("arguments", [["-q", *OBD, "--", "-odd.mp4"], ["./-odd.mp4", "-q", *OBD]])
def test_a_name_may_begin_with_a_dash(arguments: list[str], two_shots: Path, tmp_path: Path) -> None:
    (tmp_path / "-odd.mp4").write_bytes(two_shots.read_bytes())
    done = run("detect", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0:00:02.0")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_was_found_before_a_stop_is_on_disk(
    stop: signal.Signals, tmp_path: Path, make_video: Maker, make_scene: Maker
) -> None:
    # The source never ends: a pipe whose writer keeps it open after some seconds of video.
    video = make_video(
        tmp_path / "live.ts", [make_scene(1)] * 48 + [make_scene(2)] * 48 + [make_scene(3)] * 48, rate=24
    )
    result = tmp_path / "out" / "stdin.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "ongebd", "detect", "-", "--out", str(tmp_path / "out"), *OBD],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(video.read_bytes())
    process.stdin.flush()
    until(lambda: result.exists() and '"boundary"' in result.read_text())  # while the source is open
    process.send_signal(stop)
    _, err = process.communicate(timeout=60)
    recording = read_jsonl(result)
    assert recording.boundaries
    assert abs(recording.boundaries[0].onset - 2.0) < 0.01
    assert b"Traceback" not in err
    if stop is signal.SIGKILL:
        assert recording.end is None
    else:
        assert process.returncode == 130
        assert recording.end is not None
        assert recording.end.complete is False


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("came", ["nothing", "some of it"])
def test_a_source_that_says_no_more_does_not_hold_up_a_stop(
    stop: signal.Signals, came: str, tmp_path: Path, make_video: Maker, make_scene: Maker
) -> None:
    video = make_video(tmp_path / "live.ts", [make_scene(1)] * 48, rate=24)
    process = subprocess.Popen(
        [sys.executable, "-m", "ongebd", "detect", "-", "--out", str(tmp_path / "out"), *OBD],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    if came == "some of it":
        process.stdin.write(video.read_bytes())
        process.stdin.flush()
    until(lambda: _waits_for_its_source(process.pid))
    process.send_signal(stop)
    code = process.wait(timeout=60)  # the pipe is open all the while, and its writer silent
    err = process.stderr.read() if process.stderr else b""
    process.stdin.close()
    assert code == 130
    assert b"Traceback" not in err


def _waits_for_its_source(pid: int) -> bool:
    """Whether a process has begun, and has nothing to do now."""

    def look() -> tuple[set[str], int]:
        threads = [one.read_text().rpartition(")")[2].split() for one in tasks.glob("*/stat")]
        return {one[0] for one in threads}, sum(int(one[11]) + int(one[12]) for one in threads)

    if not (tasks := Path(f"/proc/{pid}/task")).is_dir():
        time.sleep(5)
        return True
    looks = [(look(), time.sleep(0.02))[0] for _ in range(10)]
    spent = [hundredths for _, hundredths in looks]
    return all(states == {"S"} for states, _ in looks) and spent[0] > 20 and spent[-1] - spent[0] <= 3


def test_a_video_shorter_than_the_cold_start_has_an_empty_result(
    tmp_path: Path, make_video: Maker, make_scene: Maker
) -> None:
    path = make_video(tmp_path / "short.mp4", [make_scene(1)], rate=24)
    assert main(["detect", str(path), "--out", str(tmp_path / "out"), "-f", "jsonl,csv,vtt,png", "-q"]) == 0
    header, end = records(tmp_path / "out" / "short.jsonl")
    assert (header["type"], end["type"], end["boundaries"], end["frames"]) == ("header", "end", 0, 1)


def options_of(*arguments: str) -> set[str]:
    with redirect_stdout(io.StringIO()) as out:
        assert main([*arguments]) == 0
    return set(re.findall(r"^│[ *]*(--[a-z-]+)", out.getvalue(), re.MULTILINE))


COMMANDS = [name for name in app if not name.startswith("-")]


@pytest.mark.parametrize("command", [*COMMANDS, "experiment figure", "experiment run"])
def test_help_shows_at_most_twelve_options_and_help_all_every_one(command: str) -> None:
    few, every = options_of(*command.split(), "--help"), options_of(*command.split(), "--help-all")
    assert len(few) <= 12
    assert few <= every
    for option in re.findall("[a-z-]+", SHORT.get(command.split()[-1], "")):
        assert f"--{option}" in few


@pytest.mark.parametrize("command", ["detect", "watch"])
def test_help_does_not_offer_what_the_model_does_not_use(command: str) -> None:
    every = options_of(command, "--model", "no-such", "--help-all")
    immediate = options_of(command, "--model", "immediate", "--help-all")
    window_mean = options_of(command, "--help-all", "--model=window-mean")
    assert {"--tau", "--delta", "--rearm"} <= every
    assert immediate < every
    assert {"--tau", "--delta"} <= window_mean - immediate
    assert "--rearm" in immediate - window_mean
    assert {
        "--fps",
        "--sensitivity",
        "--out" if command == "detect" else "--clips",
    } <= immediate & window_mean
    assert options_of(command, "--help-all") == immediate  # the default


def test_importing_the_package_brings_no_heavy_library() -> None:
    code = (
        "import sys, ongebd, ongebd.cli; "
        "print([m for m in ('av', 'torch', 'onnxruntime', 'matplotlib', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_detecting_needs_no_torch(two_shots: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; "
        "from ongebd.cli import main; raise SystemExit(main(['detect', '-q', sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(two_shots)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_real_annotated_video_gives_boundaries_for_each_model(shared: Path, tmp_path: Path) -> None:
    clip = shared / "clips/other/kinetics400_tutorial__arm_wrestling__C4lCVBZ3ux0_000028_000038.mp4"
    for model in ("immediate", "window-mean"):
        assert main(["detect", str(clip), "--out", str(tmp_path), "--model", model, "-q"]) == 0
        recording = read_jsonl(tmp_path / f"{clip.stem}.jsonl")
        assert 1 <= len(recording.boundaries) <= 15
        assert recording.end is not None
        assert np.isclose(recording.end.duration, 10.017, atol=0.01)
