"""Every error of ours can be caught by a name of `ongebd`."""

from __future__ import annotations

import ast
from pathlib import Path

import ongebd
from ongebd.errors import OngebdError


def test_every_error_has_a_public_name_and_is_one_of_ours():
    found = set()
    for path in Path(ongebd.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and node.name[0] != "_":
                found.add(node.name)
    assert {"FrameError", "MissingExtraError", "StoreError"} <= found <= set(ongebd.__all__)
    assert all(issubclass(getattr(ongebd, name), OngebdError) for name in found)


def test_every_public_name_is_there():
    assert all(hasattr(ongebd, name) for name in ongebd.__all__)
    assert set(ongebd.__all__) <= set(dir(ongebd))
