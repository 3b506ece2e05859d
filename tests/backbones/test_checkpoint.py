"""A checkpoint that came over the network damaged, cut short or from a stranger is refused in one line."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from ongebd.backbones.checkpoint import fit_state, read_state  # noqa: E402
from ongebd.errors import ConfigError  # noqa: E402

STATE = {"a": torch.ones(3, 3), "b": torch.zeros(2)}


def written(zipped: bool) -> bytes:
    file = io.BytesIO()
    torch.save({"state_dict": STATE}, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut short, or with one to three bytes changed."""
    if rng.random() < 1 / 3:
        return content[: rng.integers(len(content))]
    out = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        out[rng.integers(len(out))] = rng.integers(256)
    return bytes(out)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path, zipped: bool, seed: int) -> None:
    whole, rng, path = written(zipped), np.random.default_rng(seed), tmp_path / "x.pth"
    refusals = []
    for _ in range(250):
        path.write_bytes(damaged(whole, rng))
        try:
            state = read_state(path)
            fit_state(state, STATE, "net", str(path), "another")
        except ConfigError as problem:
            refusals.append(str(problem))
    assert len(refusals) > 60
    assert all(line.startswith(str(path)) and "\n" not in line for line in refusals)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_a_whole_file_is_read(tmp_path: Path, zipped: bool) -> None:
    (tmp_path / "x.pth").write_bytes(written(zipped))
    state = read_state(tmp_path / "x.pth")
    assert state.keys() == STATE.keys()
    assert all(torch.equal(state[name], STATE[name]) for name in STATE)
