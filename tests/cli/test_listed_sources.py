"""`--list FILE`: more sources than a command line takes, named in a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ongebd.cli import main
from ongebd.cli.options import checked_sources
from ongebd.errors import ConfigError, SourceError
from ongebd.features.store import FeatureStore


def test_listed_sources_stand_behind_those_that_are_named(tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_bytes(b"b.mp4\r\n\nwith blank.mp4\n\xff.mp4\nlast.mp4")
    assert checked_sources("detect", ["a.mp4"], listed) == [
        "a.mp4",
        "b.mp4",
        "with blank.mp4",
        os.fsdecode(b"\xff.mp4"),
        "last.mp4",
    ]
    assert checked_sources("detect", None, listed)[0] == "b.mp4"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_list_may_be_written_as_windows_does(tmp_path: Path, encoding: str, line_end: str) -> None:
    listed = tmp_path / "list.txt"
    names = ["clip 1.mp4", "会议.mp4", "last.mp4"]
    listed.write_bytes(line_end.join([*names, ""]).encode(encoding))
    assert checked_sources("detect", None, listed) == names
    listed.write_bytes("会议.mp4".encode("utf-16"))
    assert checked_sources("detect", None, listed) == ["会议.mp4"]


@pytest.mark.parametrize(
    "data",
    [b"\0", b"a.mp4\nb\0.mp4", "a.mp4".encode("utf-32"), b"\0\0\0\x1cftypisom", b"a.mp4\n" + b"[" * 9999],
)
def test_a_list_that_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "list.txt").write_bytes(data)
    with pytest.raises(ConfigError, match=r"^--list [^\n]*not a list of names"):
        checked_sources("detect", None, tmp_path / "list.txt")


@pytest.mark.parametrize("name", ["-o8UVNqpvVk_000001.mp4", "--out.mp4", "-q", "--stem=x.mp4"])
@pytest.mark.parametrize("command", ["detect", "extract"])
def test_a_name_that_a_glob_gives_is_a_source_though_it_begins_with_a_dash(
    command: str,
    name: str,
    tmp_path: Path,
    make_video: Callable[..., Path],
    make_numbered: Callable[..., list[np.ndarray]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_video(tmp_path / "clip.mp4", make_numbered(5), rate=24).rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert main([command, name, "--out", "out", "--quiet"]) == 0
    stem = Path(name).stem
    found = (
        [path.stem for path in Path("out").iterdir()]
        if command == "detect"
        else FeatureStore.open("out").ids()
    )
    assert found == [stem]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "out"])


def test_a_list_is_worked_on_like_names(
    tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., list[np.ndarray]]
) -> None:
    clips = [make_video(tmp_path / f"{name}.mp4", make_numbered(5), rate=24) for name in "ab"]
    (tmp_path / "list.txt").write_text("".join(f"{clip}\n" for clip in clips))
    store = tmp_path / "store"
    assert main(["extract", "--list", str(tmp_path / "list.txt"), "--out", str(store), "--quiet"]) == 0
    assert FeatureStore.open(store).ids() == ["a", "b"]


@pytest.mark.parametrize("command", ["extract", "detect"])
def test_a_list_that_cannot_be_read_or_names_nothing_is_refused_in_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert main([command, "--list", str(tmp_path / "none.txt"), *out]) == 2
    assert capsys.readouterr().err.endswith("none.txt: can't read: No such file or directory\n")
    (tmp_path / "empty.txt").write_text("\n")
    assert main([command, "--list", str(tmp_path / "empty.txt"), *out]) == 2
    assert capsys.readouterr().err.startswith("ongebd: no source:")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def videos(
    tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., list[np.ndarray]]
) -> Path:
    """Videos in a folder and below it, beside what isn't one."""
    folder = tmp_path / "videos"
    names = ["b.mp4", "a.MP4", "class 1/c.mkv", "class 1/deep/d.avi", ".hidden/e.mp4", "._f.mp4"]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make_video(tmp_path / "made.mp4", make_numbered(4), rate=24).rename(folder / name)
    for other in ("list.csv", "a.jpg", "notes.txt"):
        (folder / other).write_text("x")
    return folder


def test_a_folder_stands_for_its_videos_and_those_below(videos: Path, tmp_path: Path) -> None:
    found = ["a.MP4", "b.mp4", "class 1/c.mkv", "class 1/deep/d.avi"]
    wanted = [str(videos / name) for name in found]
    assert checked_sources("detect", [str(videos)]) == wanted
    assert checked_sources("detect", ["x.mp4", str(videos), "-"]) == ["x.mp4", *wanted, "-"]
    (tmp_path / "list.txt").write_text(f"{videos}\n")
    assert checked_sources("extract", None, tmp_path / "list.txt") == wanted
    assert checked_sources("watch", [str(videos)]) == [str(videos)], "watch takes live sources"
    assert main(["extract", str(videos), "--out", str(tmp_path / "store"), "-q"]) == 0
    assert FeatureStore.open(tmp_path / "store").ids() == ["a", "b", "c", "d"]
    assert main(["detect", str(videos), "-m", "window-mean", "--out", str(tmp_path / "found"), "-q"]) == 0
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == [f"{n}.jsonl" for n in "abcd"]


def test_a_folder_of_pictures_is_one_source(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.png").write_bytes(b"\x89PNG")
    assert checked_sources("detect", [str(folder)]) == [str(folder)]
    (folder / "preview.mp4").write_bytes(b"x")
    with pytest.raises(SourceError, match="has pictures and videos; name the videos, or the pictures by"):
        checked_sources("detect", [str(folder)])
    for number in range(3):
        (folder / f"{number}.mp4").write_bytes(b"x")
    assert len(checked_sources("detect", [str(folder)])) == 4, "thumbnails are fewer than the videos"


def test_a_folder_without_videos_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty" / "below").mkdir(parents=True)
    (tmp_path / "empty" / "notes.txt").write_text("x")
    for command in (["detect"], ["extract", "--out", str(tmp_path / "store")]):
        assert main([*command, str(tmp_path / "empty")]) == 2
        shown = capsys.readouterr().err
        assert "empty: no video in this folder or below it (.3gp, .avi, " in shown
        assert shown.count("\n") == 1
