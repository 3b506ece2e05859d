"""Files appear whole or not at all; what goes wrong is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ongebd.common.writing import write_whole
from ongebd.errors import StoreError, os_errors


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    with write_whole(path) as part:
        part.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("problem", [OSError, ValueError, KeyboardInterrupt])
def test_what_was_there_stays_when_writing_fails(tmp_path: Path, problem: type[BaseException]) -> None:
    path = tmp_path / "report.md"
    path.write_text("old")

    def fail() -> None:
        with write_whole(path) as part:
            part.write_text("half")
            raise problem

    with pytest.raises(problem):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "report.md"
    with (
        pytest.raises(StoreError, match=r"report\.md: No such file or directory; name another folder$"),
        os_errors(path, "name another folder", StoreError),
        write_whole(path) as part,
    ):
        part.write_text("new")


def test_a_broken_pipe_is_not_a_mistake_of_the_user() -> None:
    with pytest.raises(BrokenPipeError), os_errors("out"):
        raise BrokenPipeError
