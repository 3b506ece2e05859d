"""Work that is done is kept, under a key of all that it depends on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ongebd.errors import ConfigError
from ongebd.lab.experiments.shelf import Shelf


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


KILLED = """
import os, signal, sys
from pathlib import Path
from ongebd.lab.experiments.shelf import Shelf

def make(folder):
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

Shelf(Path(sys.argv[1])).kept("kind", {"a": int(sys.argv[2])}, make)
"""


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_killed_runs_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    work, made = tmp_path / "work", []
    shelf = Shelf(work)
    whole = shelf.kept("kind", {"a": 0}, write("whole", made))
    others = [
        work / "kind" / "mine.new",
        work / "kind" / "0123.lock",
        work / "deeper" / "er" / f"{'a' * 20}.new",
    ]
    for other in others:
        other.mkdir(parents=True)
    before = names(work)
    for key in (1, 2):
        done = subprocess.run([sys.executable, "-c", KILLED, str(work), str(key)], check=False)
        assert done.returncode == -signal.SIGKILL
    assert sum(name.endswith("/half") for name in names(work)) == 2
    assert shelf.clear() == 2
    assert names(work) == before
    assert shelf.clear() == 0
    assert (whole / "result").read_text() == "whole"
    assert not shelf.has("kind", {"a": 1})


def test_what_a_living_run_is_making_stays(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "half").write_text("half")
        assert Shelf(tmp_path).clear() == 0
        assert (folder / "half").exists()

    folder = Shelf(tmp_path).kept("kind", {"a": 1}, make)
    assert names(folder) == ["facts.json", "half"]
    assert names(folder.parent) == [folder.name, *(f"{folder.name}/{name}" for name in names(folder))]


def test_a_piece_that_another_run_is_making_is_waited_for_and_not_made_twice(tmp_path: Path) -> None:
    made: list[str] = []
    begun, told = threading.Event(), threading.Event()
    said: list[str] = []

    def slow(folder: Path) -> dict[str, str]:
        begun.set()
        assert told.wait(30)
        return write("first", made)(folder)

    def tell(line: str) -> None:
        said.append(line)
        told.set()

    with ThreadPoolExecutor(1) as other:
        first = other.submit(Shelf(tmp_path).kept, "kind", {"a": 1}, slow)
        assert begun.wait(30)
        second = Shelf(tmp_path, tell).kept("kind", {"a": 1}, write("second", made))
        assert first.result() == second
    assert made == ["first"]
    assert len(said) == 1
    assert said[0].startswith("another run is making this, and is waited for (")
    assert names(tmp_path / "kind") == [second.name, f"{second.name}/facts.json", f"{second.name}/result"]


def test_many_runs_at_once_make_each_piece_once(tmp_path: Path) -> None:
    made: list[str] = []

    def run(_: int) -> list[Path]:
        shelf = Shelf(tmp_path)
        shelf.clear()
        return [shelf.kept("kind", {"a": key}, write(str(key), made)) for key in range(6)]

    with ThreadPoolExecutor(6) as runs:
        places = list(runs.map(run, range(6)))
    assert all(each == places[0] for each in places)
    assert sorted(made) == [str(key) for key in range(6)]
    assert {path.name for path in (tmp_path / "kind").iterdir()} == {place.name for place in places[0]}
