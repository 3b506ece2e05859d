"""From names of formats to open files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ongebd.errors import ConfigError, OngebdError
from ongebd.output import FORMATS, Results, RunEnd, RunHeader, Writer, files, open_writers
from ongebd.output.files import writer_of


def test_every_format_has_its_file(tmp_path: Path, header: RunHeader, play: Callable[..., RunEnd]):
    folder = tmp_path / "new" / "folder"
    play(Results(lambda: open_writers([*FORMATS, "csv"], folder, "clip", header)), 100, [50])
    assert sorted(file.name for file in folder.iterdir()) == [
        "clip.csv",
        "clip.jsonl",
        "clip.png",
        "clip.vtt",
    ]


def test_an_unknown_format_names_the_known_ones(tmp_path: Path, header: RunHeader):
    with pytest.raises(ConfigError, match=r"unknown format 'srt'; choose from jsonl, csv, vtt, png"):
        open_writers(["csv", "srt"], tmp_path / "out", "clip", header)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, header: RunHeader):
    (tmp_path / "file").touch()
    with pytest.raises(OngebdError, match=r"^can't write [^\n]*file/out: Not a directory[^\n]*$"):
        open_writers(["csv"], tmp_path / "file" / "out", "clip", header)


@pytest.mark.parametrize("blocked", list(FORMATS))
def test_if_one_file_cannot_be_opened_none_is_left(tmp_path: Path, header: RunHeader, blocked: str):
    (tmp_path / f"clip.{blocked}").mkdir()
    with pytest.raises(OngebdError, match="can't write"):
        open_writers(list(FORMATS), tmp_path, "clip", header)
    assert [file.name for file in tmp_path.iterdir()] == [f"clip.{blocked}"]


def test_if_one_sink_cannot_begin_no_new_file_is_left(
    tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
):
    def full(path: Path, header: RunHeader) -> Writer:
        path.write_text("WEBVTT")
        raise OngebdError(f"{path}: no space left")

    (tmp_path / "v.csv").write_text("of an earlier run")
    monkeypatch.setattr(files, "writer_of", lambda name: full if name == "vtt" else writer_of(name))
    with pytest.raises(OngebdError, match="no space left"):
        open_writers(["jsonl", "csv", "vtt", "png"], tmp_path, "v", header)
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"]


def test_the_source_is_never_written_over(tmp_path: Path, header: RunHeader):
    source = tmp_path / "clip.png"
    source.write_bytes(b"precious")
    picture = RunHeader(str(source), "m", {}, 1, 1, "0")
    with pytest.raises(ConfigError, match="is the source itself"):
        open_writers(["png"], tmp_path, "clip", picture)
    assert source.read_bytes() == b"precious"


def test_if_one_sink_fails_to_close_the_others_are_closed():
    closed: list[RunEnd] = []

    class Good(Writer):
        def close(self, end: RunEnd) -> None:
            closed.append(end)

    class Bad(Writer):
        def close(self, end: RunEnd) -> None:
            raise OngebdError("disk full")

    with pytest.raises(OngebdError, match="disk full"):
        Results(lambda: [Good(), Bad(), Good()]).close(RunEnd(True, 1.0, 1, 0))
    assert len(closed) == 2
