"""Finished work is kept, under a key of all that it depends on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("filelock", reason="the extra `train` is not installed")

from ongebd.errors import ConfigError
from ongebd.lab.experiments.cache import Cache


def write(text: str, made: list[str]):
    def make(folder: Path) -> dict[str, str]:
        made.append(text)
        (folder / "result").write_text(text)
        return {"text": text}

    return make


def entries(work: Path) -> list[str]:
    """All files and folders but the locks."""
    names = (str(path.relative_to(work)) for path in work.rglob("*"))
    return sorted(name for name in names if not name.startswith("locks"))


def test_an_entry_is_made_once_and_again_for_another_key(tmp_path: Path) -> None:
    made: list[str] = []
    cache = Cache(tmp_path / "work")
    assert not cache.has("kind", {})
    assert not (tmp_path / "work").exists()  # nothing is written before there is work
    first = cache.get("kind", {"a": 1, "b": [1, 2]}, write("one", made))
    again = cache.get("kind", {"b": (1, 2), "a": 1}, write("never", made))
    other = cache.get("kind", {"a": 2, "b": [1, 2]}, write("two", made))
    assert made == ["one", "two"]
    assert first == again != other
    assert (again / "result").read_text() == "one"
    assert cache.facts(other)["text"] == "two"


def test_an_interrupted_entry_is_not_there_and_is_made_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def breaks(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.get("kind", {"a": 1}, breaks)
    assert not cache.has("kind", {"a": 1})
    folder = cache.get("kind", {"a": 1}, write("whole", []))
    assert sorted(path.name for path in folder.iterdir()) == ["facts.json", "result"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"work: .*; choose another --work"):
        Cache(tmp_path / "file" / "work").get("kind", {}, write("one", []))


KILLED = """
import os, signal, sys
from pathlib import Path
from ongebd.lab.experiments.cache import Cache

def make(folder):
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

Cache(Path(sys.argv[1])).get("kind", {"a": int(sys.argv[2])}, make)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_what_killed_runs_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    whole = cache.get("kind", {"a": 0}, write("whole", []))
    for other in ("kind/mine.new", "kind/0123.lock", f"deeper/er/{'a' * 20}.new"):
        (tmp_path / other).mkdir(parents=True)
    before = entries(tmp_path)
    for key in (1, 2):
        done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(key)], check=False)
        assert done.returncode == -signal.SIGKILL
    assert sum(name.endswith("/half") for name in entries(tmp_path)) == 2
    assert cache.clear() == 2
    assert entries(tmp_path) == before
    assert cache.clear() == 0
    assert (whole / "result").read_text() == "whole"
    assert not cache.has("kind", {"a": 1})


def test_an_entry_that_another_run_makes_is_kept_and_waited_for(tmp_path: Path) -> None:
    made: list[str] = []
    begun, told = threading.Event(), threading.Event()
    lines: list[str] = []

    def slow(folder: Path) -> dict[str, str]:
        begun.set()
        assert told.wait(60)
        return write("first", made)(folder)

    def tell(line: str) -> None:
        lines.append(line)
        told.set()

    with ThreadPoolExecutor(1) as other:
        first = other.submit(Cache(tmp_path).get, "kind", {"a": 1}, slow)
        assert begun.wait(60)
        assert Cache(tmp_path).clear() == 0
        second = Cache(tmp_path, tell).get("kind", {"a": 1}, write("second", made))
        assert first.result() == second
    assert made == ["first"]
    assert lines == [f"waiting for another run that makes the same ({second})"]
    assert [path.name for path in (tmp_path / "kind").iterdir()] == [second.name]


def test_many_runs_at_once_make_each_entry_once(tmp_path: Path) -> None:
    made: list[str] = []

    def run(_: int) -> list[Path]:
        cache = Cache(tmp_path)
        cache.clear()
        return [cache.get("kind", {"a": key}, write(str(key), made)) for key in range(6)]

    with ThreadPoolExecutor(6) as runs:
        places = list(runs.map(run, range(6)))
    assert all(each == places[0] for each in places)
    assert sorted(made) == [str(key) for key in range(6)]
    assert {path.name for path in (tmp_path / "kind").iterdir()} == {place.name for place in places[0]}
