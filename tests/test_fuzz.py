"""Some of the inputs of `make fuzz`, which runs 25,000."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuzz


@pytest.mark.parametrize("kind", ["files", pytest.param("texts", marks=pytest.mark.slow)])
def test_a_damaged_input_gives_a_result_or_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    counts = {"files": 0, "texts": 0, kind: 30}
    given = [word for name, count in counts.items() for word in (f"--{name}", str(count))]
    films = "mp4:libx264+aac mpegts:libx264+aac matroska:ffv1 gif:gif image2:mjpeg"
    assert fuzz.main([*given, "--jobs", "1", "--keep", str(tmp_path)], films) == 0, capfd.readouterr().out
