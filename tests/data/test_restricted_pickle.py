"""Pickles from strangers: nothing that they ask for is run, and what labels need is read."""

from __future__ import annotations

import os
import pickle
import struct
import tracemalloc
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
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
        Calls(Counter),
        np.load,
        Path("x"),
        {"v": {1, 2} and frozenset({1}), "w": Calls(open, "x")},
    ],
    ids=["eval", "getattr", "numpy.load", "Counter", "a numpy function", "a path", "open in a dict"],
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
        with pytest.raises(LabelError, match=r"neither labels|uses dtype"):
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


def shared_bytes(count: int) -> list[object]:
    """Many arrays over one run of bytes."""
    raw = np.zeros(5000, np.uint8)
    return [raw] * count


def nested(levels: int) -> object:
    value: object = [1.0]
    for _ in range(levels):
        value = [value, value]
    return value


def holding_itself() -> object:
    value: list[object] = []
    value.append({"v": value})
    return value


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((20_000_000, 0)),
        lambda: np.zeros((3000, 3000, 3000, 0, 7)),
        lambda: [np.zeros((90, 0))] + [np.zeros((10**5, 0)) for _ in range(5)],
        lambda: dict(enumerate(shared_bytes(200))),
        lambda: nested(40),
        holding_itself,
        lambda: {(1, (2, 3)): 1.0},
    ],
    ids=["empty lists", "nested empty lists", "many", "shared bytes", "doubled", "itself", "odd key"],
)
def test_a_small_pickle_cannot_fill_the_memory(make: Callable[[], object], protocol: int) -> None:
    data = pickle.dumps(make(), protocol)
    tracemalloc.start()
    try:
        with pytest.raises(
            LabelError, match=r"labels\.pkl: refused, .*get the file from its official source"
        ):
            read_pickle(data, NAME)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000 + 60 * len(data)
    finally:
        tracemalloc.stop()


def test_one_run_of_bytes_cannot_be_unpacked_again_and_again() -> None:
    raw = b"\0" * 1000
    scalar = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tRq\x010"
    build = b"cnumpy.core.multiarray\n_reconstruct\n)R(K\x01M\xe8\x03\x85h\x01\x89h\x02tb"
    data = b"\x80\x02]q\x00(" + scalar + b"T" + struct.pack("<I", 1000) + raw + b"q\x02" + build * 500 + b"e."
    with pytest.raises(LabelError, match="far more memory than it could fill"):
        read_pickle(data, NAME)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 4), (7, 0)])
def test_a_shape_that_does_not_match_its_bytes_is_refused(shape: tuple[int, ...]) -> None:
    data = pickle.dumps(np.arange(4.0), 3)
    right, wrong = pickle.dumps((4,), 3)[2:-1], pickle.dumps(shape, 3)[2:-1]
    assert data.count(right[:3]) == 1
    with pytest.raises(LabelError, match=r"a numpy array of shape \(.*\) has 32 bytes"):
        read_pickle(data.replace(right[:3], wrong.split(b"q")[0], 1), NAME)


@pytest.mark.parametrize("protocol", range(6))
def test_empty_arrays_and_bytes_are_read(protocol: int) -> None:
    value = [np.zeros(0), np.zeros((5, 0)), np.zeros((200, 1), bool), b""]
    plain = read_pickle(pickle.dumps(value, protocol), NAME)
    assert plain == [[], [[]] * 5, [[False]] * 200, b""]


def test_a_cut_off_pickle_and_a_hostile_one_get_different_advice() -> None:
    whole = pickle.dumps([1.0, "x"])
    for data, advice in (
        (whole[:-4], "download it again"),
        (b'{"v": [1.0]}', "download it again"),
        (pickle.dumps(np.zeros((10**6, 0))), "official source"),
        (b"\x80\x02K\x01K\x02\x93.", "official source"),
        (pickle.dumps(object), "may run code"),
    ):
        with pytest.raises(LabelError) as refused:
            read_pickle(data, NAME)
        assert advice in str(refused.value)
        assert ("download it again" in str(refused.value)) == (advice == "download it again")


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", [OrderedDict, lambda pairs: defaultdict(list, pairs)])
def test_ordered_and_default_dicts_are_dicts(protocol: int, kind: Callable[..., Any]) -> None:
    value = {"a": {"times": [1.0, 2.0]}, "b": {}}
    data = pickle.dumps(kind([(name, kind(list(entry.items()))) for name, entry in value.items()]), protocol)
    assert read_pickle(data, NAME) == value


def test_an_ordered_dict_of_python_2_is_a_dict() -> None:
    python2 = b"ccollections\nOrderedDict\np0\n((lp1\n(lp2\nS'a'\np3\naF1.5\naatp4\nRp5\n."
    assert read_pickle(python2, NAME) == {"a": 1.5}


def test_dicts_that_share_their_pairs_many_times_are_refused() -> None:
    pairs = b"(l" + b"".join(b"(lI%d\naI0\naa" % n for n in range(2000)) + b"p1\n0"
    calls = b"".join(b"ccollections\nOrderedDict\n(g1\ntRa" for _ in range(2000))
    with pytest.raises(LabelError, match="far more memory"):
        read_pickle(pairs + b"(l" + calls + b".", NAME)
