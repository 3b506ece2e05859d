"""A checkpoint that came over the network damaged, cut short or from a stranger is refused in one line."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from safetensors.torch import save_file  # noqa: E402

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


@pytest.mark.filterwarnings("error")  # torch's would not be one line of ours
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


class Planter(torch.nn.Module):
    """A TorchScript module that would write a file when it is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = torch.zeros(1, dtype=torch.uint8)

    def forward(self, a: int) -> int:
        return a

    @torch.jit.export
    def __getstate__(self) -> str:
        return "planted"

    @torch.jit.export
    def __setstate__(self, text: str) -> None:
        self.training = False
        codes = [ord(c) for c in text]
        self.kept = torch.from_file("planted.py", True, len(codes), dtype=torch.uint8)
        self.kept.copy_(torch.tensor(codes, dtype=torch.uint8))


def _script(path: Path) -> None:
    torch.jit.script(Planter()).save(str(path))


def _patch(path: Path) -> None:
    """A legacy file that turns torch's own function into a module whose changed source is written down."""

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    body = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nN}(" + text("dump_patches") + b"\x88" + text("__name__")
        + text("planted") + b"u\x86bq\x000(" + text("module") + b"h\x00" + text("any.py") + text("x") + b"tQ."
    )  # fmt: skip
    parts = (
        0x1950A86A20F9469CFC6C,
        1001,
        {"little_endian": True, "protocol_version": 1001, "type_sizes": {}},
    )
    path.write_bytes(b"".join(pickle.dumps(part, 2) for part in parts) + body + pickle.dumps([], 2))


def _module(path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), path)


def _tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("storages"))


def _compressed(path: Path) -> None:
    torch.save({"weight": torch.zeros(1000)}, path)
    with zipfile.ZipFile(path) as plain:
        entries = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in entries.items():
            packed.writestr(name, data)


@pytest.mark.parametrize("make", [_script, _patch, _module, _tar, _compressed])
def test_code_in_a_checkpoint_never_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "evil.pth")
    with pytest.raises(ConfigError, match=r"no named tensors|not a checkpoint of plain"):
        read_state(tmp_path / "evil.pth")
    assert [path.name for path in tmp_path.iterdir()] == ["evil.pth"]


def zip_of(entries: dict[str, bytes], packed: bool = False) -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w", 8 if packed else 0) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()


def big_one() -> dict[str, bytes]:
    """The entries of a checkpoint of 64 MB, all zeros."""
    torch.save({"a": torch.zeros(1 << 24)}, file := io.BytesIO())
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize(
    "kind", ["compressed", "end mark behind the end", "another directory", "overlapping"]
)
def test_an_archive_unpacks_to_its_own_size_whatever_torch_finds_in_it(tmp_path: Path, kind: str) -> None:
    path, content = tmp_path / "x.pth", zip_of(big_one(), packed=True)
    if kind == "end mark behind the end":  # which Python's reader takes, and torch's doesn't
        content += b"PK\5\6" + bytes(9)
    if (
        kind == "another directory"
    ):  # Python's reader takes the record before the locator, torch's where it says
        at = content.rindex(b"PK\5\6")
        count, _, size, start = struct.unpack_from("<HHII", content, at + 8)
        inner = written(True)
        torch_sees = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
        base = len(content[:at]) + len(torch_sees)
        place = inner.rindex(b"PK\5\6")
        number, _, length, first = struct.unpack_from("<HHII", inner, place + 8)
        python_sees = struct.pack(
            "<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, number, number, length, first + base
        )
        content = content[:at] + torch_sees + inner[:place] + python_sees
        content += struct.pack("<4sIQI", b"PK\6\7", 0, at, 1) + b"PK\5\6" + bytes(4) + b"\xff" * 12 + bytes(2)
    if kind == "overlapping":
        content = zip_of({"x/data.pkl": b"x" * 5000, **{f"x/{n}": b"" for n in range(9)}})
        head, tail = content[: content.index(b"PK\1\2")], content[content.index(b"PK\1\2") :]
        one = tail[: tail.index(b"PK\1\2", 4)]
        end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 10, 10, 10 * len(one), len(head), 0)
        content = head + one * 10 + end
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="damaged, or not a checkpoint"):
        fit_state(read_state(path), STATE, "net", "x", "another")


def test_safetensors_are_read(tmp_path: Path) -> None:
    save_file({"weight": torch.ones(2)}, tmp_path / "x.safetensors")
    assert read_state(tmp_path / "x.safetensors")["weight"].tolist() == [1, 1]
