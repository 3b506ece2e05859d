"""Work that is done is kept, under a key of all that it depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ongebd.errors import ConfigError
from ongebd.experiments.shelf import Shelf


def write(text: str, made: list[str]):
    def make(folder: Path) -> dict[str, str]:
        made.append(text)
        (folder / "result").write_text(text)
        return {"said": text}

    return make


def test_a_piece_is_made_once_and_again_for_another_key(tmp_path: Path) -> None:
    made: list[str] = []
    shelf = Shelf(tmp_path / "work")
    first = shelf.kept("kind", {"a": 1, "b": [1, 2]}, write("one", made))
    again = shelf.kept("kind", {"b": (1, 2), "a": 1}, write("never", made))
    other = shelf.kept("kind", {"a": 2, "b": [1, 2]}, write("two", made))
    assert made == ["one", "two"]
    assert first == again != other
    assert (again / "result").read_text() == "one"
    assert shelf.facts("kind", {"a": 2, "b": [1, 2]})["said"] == "two"
    assert sorted(facts["said"] for facts in shelf.every("kind")) == ["one", "two"]


def test_a_piece_that_broke_off_is_not_there_and_is_made_anew(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)

    def breaks(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shelf.kept("kind", {"a": 1}, breaks)
    assert not shelf.has("kind", {"a": 1})
    folder = shelf.kept("kind", {"a": 1}, write("whole", []))
    assert sorted(path.name for path in folder.iterdir()) == ["facts.json", "result"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be written .*name another --work"):
        Shelf(tmp_path / "file" / "work").kept("kind", {}, write("one", []))


def test_nothing_is_written_before_there_is_work(tmp_path: Path) -> None:
    assert not Shelf(tmp_path / "work").has("kind", {})
    assert not (tmp_path / "work").exists()
