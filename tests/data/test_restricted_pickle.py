"""Pickles from strangers: nothing that they ask for is run, and what labels need is read."""

from __future__ import annotations

import os
import pickle
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.data.restricted_pickle import read_pickle
from ongebd.errors import LabelError

NAME = Path("labels.pkl")


class Calls:
    """Pickles as a call."""

    def __init__(self, function: Any, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_run_a_command_is_refused_and_runs_nothing(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "ran"
    data = pickle.dumps({"v": Calls(os.system, f"touch {mark}")}, protocol)
    with pytest.raises(LabelError, match=r"refused, the pickle asks for \w+\.system"):
        read_pickle(data, NAME)
    assert not mark.exists()


@pytest.mark.parametrize(
    "value",
    [
        Calls(eval, "1"),
        Calls(getattr, np.dtype("f8"), "name"),
        Calls(np.load, "x.npy"),
        Calls(OrderedDict),
        np.load,
        Path("x"),
        {"v": {1, 2} and frozenset({1}), "w": Calls(open, "x")},
    ],
    ids=["eval", "getattr", "numpy.load", "OrderedDict", "a numpy function", "a path", "open in a dict"],
)
def test_names_that_labels_do_not_need_are_refused(value: object) -> None:
    with pytest.raises(LabelError, match="refused, the pickle asks for"):
        read_pickle(pickle.dumps(value), NAME)


@pytest.mark.parametrize(
    "name",
    [b"cnumpy\ndtype.__class__\n", b"cnumpy.core.multiarray\nscalar.__call__\n", b"cnumpy\n__class__\n"],
)
def test_attributes_of_allowed_names_are_refused(name: bytes) -> None:
    with pytest.raises(LabelError, match="refused"):
        read_pickle(name + b".", NAME)


def test_a_pickle_cannot_change_what_later_ones_see() -> None:
    spoil = b"cnumpy\ndtype\n(NS'spec'\nS'x'\n\x86\x86b."  # BUILD with a state for slots
    for state in (b"}U\x04specU\x01xsb.", b"N}U\x04specU\x01xs\x86b."):
        with pytest.raises(LabelError, match="not a whole pickle"):
            read_pickle(b"\x80\x02cnumpy\ndtype\n" + state, NAME)
    with pytest.raises(LabelError):
        read_pickle(spoil, NAME)
    assert read_pickle(pickle.dumps(np.float64(0.5)), NAME) == 0.5


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(2, dtype=[("a", "f8"), ("b", "O")]),
        np.array([[None, 1], [2, 3]], dtype=object),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.zeros(1, dtype="V8"),
    ],
    ids=["structured", "objects in two dimensions", "dates", "raw memory"],
)
def test_numpy_data_other_than_numbers_and_text_is_refused(value: object) -> None:
    with pytest.raises(LabelError, match=r"labels\.pkl: "):
        read_pickle(pickle.dumps(value), NAME)


@pytest.mark.parametrize("protocol", range(6))
def test_numpy_scalars_and_arrays_come_out_as_plain_values(protocol: int) -> None:
    value = {
        np.str_("vidéo"): [np.float64(0.1), np.int64(-3), np.bool_(True), np.float32(0.5)],
        "arrays": [np.arange(6, dtype=">i4").reshape(2, 3), np.asfortranarray([[1.5, 2.5], [3.5, 4.5]])],
        "objects": np.array([1.0, "x", None], dtype=object),
        "text": np.array(["a", "bc"]),
        "bytes": np.array([b"a", b"bc"]),
        "none": None,
        "pair": (1, 2.5),
    }
    plain = read_pickle(pickle.dumps(value, protocol), NAME)
    assert plain == {
        "vidéo": [0.1, -3, True, 0.5],
        "arrays": [[[0, 1, 2], [3, 4, 5]], [[1.5, 2.5], [3.5, 4.5]]],
        "objects": [1.0, "x", None],
        "text": ["a", "bc"],
        "bytes": ["a", "bc"],
        "none": None,
        "pair": (1, 2.5),
    }
    assert isinstance(plain, dict)
    assert [type(item) for item in plain["vidéo"]] == [float, int, bool, float]


def test_a_python_2_pickle_is_read_as_latin1() -> None:
    scalar = (
        b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(U\x02f8K\x00K\x01tR"
        b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbU\x08" + struct.pack("<d", 9.75) + b"tR"
    )
    assert read_pickle(b"\x80\x02}U\x04caf\xe9" + scalar + b"s.", NAME) == {"café": 9.75}


def test_a_pickle_cut_off_anywhere_is_refused() -> None:
    data = pickle.dumps({"v": [np.float64(1.5), [1, 2, 3], "x"]})
    for length in range(len(data)):
        with pytest.raises(LabelError, match=r"labels\.pkl: not a whole pickle"):
            read_pickle(data[:length], NAME)


@pytest.mark.parametrize("put", [b"r\xff\xff\xff\x7f", b"p2147483647\n"])
def test_a_small_pickle_that_asks_for_gigabytes_is_refused(put: bytes) -> None:
    with pytest.raises(LabelError, match="far more memory than it could fill"):
        read_pickle(b"\x80\x02]" + put + b".", NAME)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_one_clear_error(data: bytes) -> None:
    complaint = ""
    try:
        read_pickle(data, NAME)
    except LabelError as refused:
        complaint = str(refused)
    assert len(complaint.splitlines()) <= 1
