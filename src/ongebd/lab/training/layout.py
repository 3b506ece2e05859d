"""How a method's training samples are laid: as long as its loss needs them."""

from __future__ import annotations

from typing import NamedTuple

from ongebd.baselines.methods import make_network, network_shape
from ongebd.errors import ConfigError
from ongebd.lab.training.config import ESTIMATOR, TrainConfig


class SampleLayout(NamedTuple):
    """L, K and R of `ongebd.data.windows`."""

    window: int
    region: int
    run: int


def layout_of(config: TrainConfig, dim: int) -> SampleLayout:
    """The layout of a training's samples.

    Args:
        config: The training's.
        dim: D.

    Raises:
        ConfigError: The network's settings make no sense.
    """
    if config.method == ESTIMATOR:
        return SampleLayout(config.window, config.region, config.run)
    import torch

    with torch.device("meta"):  # its shape is wanted, not its weights
        network = make_network(config.method, network_shape(config.method, network_settings(config), dim=dim))
    return SampleLayout(*network.layout())


def network_settings(config: TrainConfig) -> dict[str, int | float]:
    """The settings of a baseline's network that differ from the published ones.

    Raises:
        ConfigError: One is no `name=number`.
    """
    values: dict[str, int | float] = {}
    for pair in filter(None, (part.strip() for part in config.network.split(","))):
        name, _, text = pair.partition("=")
        try:
            number = float(text)
        except ValueError:
            raise ConfigError(f"network: {pair!r} is no name=number") from None
        values[name.strip()] = int(number) if number.is_integer() and "." not in text else number
    return values
