"""The backbones by name."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ongebd.backbones.base import Backbone
from ongebd.backbones.efficientnet_lite0 import efficientnet_lite0
from ongebd.errors import ConfigError

_MAKERS: dict[str, Callable[[int], Backbone]] = {"efficientnet_lite0": efficientnet_lite0}
_made: dict[tuple[str, int], Backbone] = {}
_making = threading.Lock()

DEFAULT = "efficientnet_lite0"
"""The backbone whose weights are in our wheel."""


def names() -> list[str]:
    """All names that `get` knows, sorted."""
    return sorted(_MAKERS)


def get(name: str = DEFAULT, threads: int = 1) -> Backbone:
    """The backbone of that name; the same object each time, for it holds no state.

    Args:
        name: One of `names()`.
        threads: Threads in which one call of `embed` computes, at least 1.

    Raises:
        ConfigError: No such backbone, or no such number of threads.

    >>> get("efficientnet_lite0").dim
    1280
    """
    if name not in _MAKERS:
        raise ConfigError(f"no backbone is called {name!r}; there is {', '.join(names())}")
    if threads < 1:
        raise ConfigError(f"a backbone needs at least 1 thread, not {threads}")
    with _making:
        if (name, threads) not in _made:
            _made[name, threads] = _MAKERS[name](threads)
        return _made[name, threads]
