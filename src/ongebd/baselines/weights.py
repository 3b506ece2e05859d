"""A trained baseline's weights on the disk: `model.safetensors` beside `config.json`. Needs torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import load_file, save_file
from torch import nn

from ongebd.baselines.methods import make_network, network_shape
from ongebd.baselines.network import OnlineNetwork
from ongebd.errors import ConfigError, os_errors

Network = TypeVar("Network", bound=nn.Module)
SHAPE_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"


def save_network(folder: Path, network: Any) -> None:
    """Write a network's shape and weights into a folder; files of an older model are overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"method": network.method, "shape": asdict(network.shape)}
    (folder / SHAPE_FILE).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    state = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    save_file(state, folder / WEIGHTS_FILE)


def load_network(folder: Path) -> OnlineNetwork[Any]:
    """The baseline in a folder, on the CPU, in evaluation mode; ConfigError where it is damaged."""
    return load_made(folder, lambda name, values: make_network(name, network_shape(name, values)))


def load_made(folder: Path, make: Callable[[str, dict[str, Any]], Network]) -> Network:
    """The same for networks that `make` makes from a method's name and the values of its shape."""
    with os_errors(folder / SHAPE_FILE, "train the model again"):
        text = (folder / SHAPE_FILE).read_text(encoding="utf-8")
    try:
        about = json.loads(text)
        name = str(about["method"])
        network = make(name, dict(about["shape"]))
    except (ValueError, KeyError, TypeError, RecursionError) as problem:  # a ConfigError is a ValueError
        raise ConfigError(f"{folder / SHAPE_FILE}: {problem}; train the model again") from None
    try:
        network.load_state_dict(load_file(folder / WEIGHTS_FILE))
    except Exception as problem:  # noqa: BLE001 - safetensors and torch raise what a damaged file brings about
        raise ConfigError(
            f"{folder / WEIGHTS_FILE}: no weights of {name} ({' '.join(str(problem).split())})"
        ) from None
    return network.eval()
