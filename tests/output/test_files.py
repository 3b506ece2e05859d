"""Result files: their names, and from names of formats to open files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.common.text import public_name
from ongebd.errors import ConfigError, OngebdError
from ongebd.output import FORMATS, RunEnd, RunHeader, Writer, clock, files, open_writers, output_stems
from ongebd.output.files import close_all, writer_of
from ongebd.output.formats import format_of

WRITTEN = [name for name, form in FORMATS.items() if form.how != "copy"]


def test_every_format_has_its_file(tmp_path: Path, header: RunHeader, play: Callable[..., RunEnd]):
    folder = tmp_path / "new" / "folder"
    for sink in open_writers([*WRITTEN, "csv"], folder, "clip", header):
        play(sink, 100, [50])
    assert {file.name for file in folder.iterdir()} == {f"clip{FORMATS[name].suffix}" for name in WRITTEN}


def test_an_unknown_format_names_the_known_ones(tmp_path: Path, header: RunHeader):
    with pytest.raises(ConfigError, match=r"unknown format 'avi'; choose from jsonl, csv, scenes, vtt"):
        open_writers(["csv", "avi"], tmp_path / "out", "clip", header)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, header: RunHeader):
    (tmp_path / "file").touch()
    with pytest.raises(OngebdError, match=r"^can't write [^\n]*file/out: Not a directory[^\n]*$"):
        open_writers(["csv"], tmp_path / "file" / "out", "clip", header)


@pytest.mark.parametrize("blocked", WRITTEN)
def test_if_one_file_cannot_be_opened_none_is_left(tmp_path: Path, header: RunHeader, blocked: str):
    (tmp_path / f"clip{FORMATS[blocked].suffix}").mkdir()
    with pytest.raises(OngebdError, match="can't write"):
        open_writers(WRITTEN, tmp_path, "clip", header)
    assert [file.name for file in tmp_path.iterdir()] == [f"clip{FORMATS[blocked].suffix}"]


def test_if_one_sink_cannot_begin_no_new_file_is_left(
    tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
):
    def full(path: Path, header: RunHeader) -> Writer:
        path.write_text("WEBVTT")
        raise OngebdError(f"{path}: no space left")

    (tmp_path / "v.csv").write_text("of an earlier run")
    monkeypatch.setattr(files, "writer_of", lambda name: full if name == "vtt" else writer_of(name))
    with pytest.raises(OngebdError, match="no space left"):
        open_writers(["jsonl", "csv", "vtt", "png"], tmp_path, "v", header, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"]


def test_the_source_is_never_written_over(tmp_path: Path, header: RunHeader):
    source = tmp_path / "clip.png"
    source.write_bytes(b"precious")
    picture = RunHeader(str(source), "m", {}, 1, 1, "0")
    with pytest.raises(ConfigError, match="is the source itself"):
        open_writers(["png"], tmp_path, "clip", picture)
    assert source.read_bytes() == b"precious"


MINE = {
    "jsonl": '{"id": "mine"}\n',
    "csv": "time,label\n1.0,mine\n",
    "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n",
    "png": "\x89PNG mine",
    "srt": "1\n00:00:01,000 --> 00:00:02,000\nHello\n",
    "scenes.csv": "Start Frame\n1\n",
    "json": '{"clip": {"duration": 9, "boundaries": [[1]]}}',
    "eaf": "<ANNOTATION_DOCUMENT/>",
    "edl": "TITLE: mine\n",
}


@pytest.mark.parametrize("ending", MINE)
def test_a_file_made_by_hand_is_overwritten_by_force_only(
    tmp_path: Path, header: RunHeader, ending: str, play: Callable[..., RunEnd]
) -> None:
    path = tmp_path / f"clip.{ending}"
    path.write_text(MINE[ending], "utf-8")
    with pytest.raises(ConfigError, match=rf"^[^\n]*clip\.{ending} already exists[^\n]*--force$"):
        open_writers(WRITTEN, tmp_path, "clip", header)
    assert path.read_text("utf-8") == MINE[ending]
    assert list(tmp_path.iterdir()) == [path]
    for sink in open_writers([str(format_of(path.name))], tmp_path, "clip", header, force=True):
        play(sink, 100, [50])
    assert path.read_bytes() != MINE[ending].encode()


@pytest.mark.parametrize(
    "name", ["a --> b.mp4", "会议 'x\".mp4", os.fsdecode(b"caf\xe9.mp4"), "rtsp://me:pw@cam/1"]
)
def test_results_are_renewed_for_their_own_source_only(
    tmp_path: Path, name: str, play: Callable[..., RunEnd], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(source: str, formats: list[str]) -> None:
        header = RunHeader(source, "m", {}, 1, 1, "0", rate="24")
        for sink in open_writers(formats, tmp_path / "out", "clip", header):
            play(sink, 100, [50])

    run(name, WRITTEN)
    run(name, WRITTEN)
    if "://" not in name:
        run(str(tmp_path / name), WRITTEN)
        run(f"./{name}", WRITTEN)
        run(name, WRITTEN)
    for form in WRITTEN:
        with pytest.raises(ConfigError, match=rf"clip{FORMATS[form].suffix} already exists"):
            run("other/clip.mp4", [form])
    (tmp_path / "out" / "clip.jsonl").unlink()
    with pytest.raises(ConfigError, match="already exists"):  # a table alone doesn't say whose it is
        run(name, ["csv"])
    (tmp_path / "out" / "clip.csv").write_bytes(b"")
    run(name, ["csv"])


def test_results_of_a_source_with_a_hidden_part_are_not_taken_for_those_of_another(tmp_path: Path) -> None:
    for key in ("a", "b", "b"):
        source = f"http://host/films/watch.php?v={key}"
        header = RunHeader(source, "m", {}, 1, 1, "0")
        assert "watch.php" not in repr(header)
        if key == "a":
            open_writers(["jsonl"], tmp_path, "watch", header)[0].close(RunEnd(True, 1.0, 1, 0))
            continue
        with pytest.raises(ConfigError, match="already exists and may not be a result of"):
            open_writers(["jsonl"], tmp_path, "watch", header)


def test_no_file_name_holds_a_secret() -> None:
    sources = ["rtmp://host/live/k3y", "rtmp://host/k3y", "http://h/user=a_password=k3y", "rtsp://u:k3y@h/1"]
    assert output_stems(sources) == ["live", "host", "user=_password=", "1"]


def test_if_one_sink_fails_to_close_the_others_are_closed():
    closed: list[RunEnd] = []

    class Good(Writer):
        def close(self, end: RunEnd) -> None:
            closed.append(end)

    class Bad(Writer):
        def close(self, end: RunEnd) -> None:
            raise OngebdError("disk full")

    with pytest.raises(OngebdError, match="disk full"):
        close_all([Good(), Bad(), Good()], RunEnd(True, 1.0, 1, 0))
    assert len(closed) == 2


@pytest.mark.parametrize(
    ("source", "public"),
    [
        ("rtsp://u:p@host:554/a", "rtsp://***@host:554/a"),
        ("rtsp://u@host/a", "rtsp://***@host/a"),
        ("rtsp://u:p@ss@host/a", "rtsp://***@host/a"),
        ("rtsp://u:p/w?x#y@host/a", "rtsp://***@host/a"),
        ("rtsp://u:12#34@host/a", "rtsp://***@host/a"),
        ("https://host/@user/video.mp4", "https://host/@user/video.mp4"),
        ("https://host:8080/x@y.mp4", "https://***@y.mp4"),  # or a password: 8080/x
        ("https://10.0.0.1:8080/x@y.mp4", "https://10.0.0.1:8080/x@y.mp4"),
        ("http://[::1]:80/x@y", "http://[::1]:80/x@y"),
        ("https://h/v.mp4?X-Amz-Signature=abc&t=3", "https://h/v.mp4?X-Amz-Signature=***&t=3"),
        ("http://cam/v?user=admin&PASSWORD=x", "http://cam/v?user=***&PASSWORD=***"),
        ("srt://h:9000?passphrase=long&latency=2", "srt://h:9000?passphrase=***&latency=2"),
        ("concat:http://a:b@h/1.ts|http://c:d@h/2.ts", "concat:http://***@h/1.ts|http://***@h/2.ts"),
        ("-", "-"),
        ("me@home token=x.mp4", "me@home token=x.mp4"),
    ],
)
def test_credentials_are_hidden_and_nothing_else(source: str, public: str):
    assert public_name(source) == public


passwords = st.text(
    st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters="|"), min_size=6
)


@given(passwords)
def test_no_password_is_seen(password: str):
    secret = f"s3{password}3t"
    assert secret not in public_name(f"rtsp://admin:{secret}@cam.example/live/1")


def test_stems_are_unlike_and_safe():
    sources = [
        "x/a.mp4",
        "y/a.mkv",
        "y/A.MP4",
        "-",
        "rtsp://u:pw@cam/live/?k=1",
        "http://h/",
        "-v.mp4",
        "a-2.mp4",
    ]
    assert output_stems(sources) == ["a", "a-2", "A-3", "stdin", "live", "h", "-v", "a-2-2"]


def test_a_stem_leaves_room_for_an_ending():
    stem = output_stems(["日" * 80 + ".mp4"])[0]
    assert len(os.fsencode(stem)) <= 200


@given(st.text(), st.booleans())
def test_any_source_gives_a_file_name(source: str, remote: bool):
    (stem,) = output_stems([f"rtsp://{source}" if remote else source])
    assert stem
    assert "/" not in stem


@given(st.floats(0, 1e7))
def test_clock_never_says_sixty_seconds(seconds: float):
    assert ":60" not in clock(seconds)
