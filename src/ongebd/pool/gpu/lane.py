"""One stream on a device: its slot there, and its ledger here."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ongebd.detector.config import StreamConfig
from ongebd.pool.gpu.discriminator import SETTINGS
from ongebd.pool.gpu.ledger import Ledger
from ongebd.types import Boundary, Decision

Told = npt.NDArray[np.float64]


class DeviceLane:
    """A stream in a `GpuRuntime`.

    Args:
        slot: Its place on the device.
        config: Its settings, every one filled in.
        ledger: The host's part of it.
        state_bytes: What is kept of it, on the device nearly all.
        told: What the device is told of it at each frame, (6,), as in `SETTINGS`; written by `retune_ahead`.

    Attributes:
        latency: Seconds of future that a verdict waits for, at the rate of `config`.
    """

    def __init__(self, slot: int, config: StreamConfig, ledger: Ledger, state_bytes: int, told: Told) -> None:
        self.slot = slot
        self.config = config
        self.ledger = ledger
        self.latency = float(ledger.latency / config.rate())
        self.state_bytes = state_bytes
        self._told = told
        self._anew = True  # whatever the slot's last stream left behind

    def begins_anew(self) -> bool:
        """Whether the next frame begins a new epoch; asked once for each frame."""
        anew, self._anew = self._anew, False
        return anew

    def drain(self) -> list[Decision]:
        """The decisions that a look-ahead still held back."""
        return self.ledger.drain()

    def flush(self) -> Boundary | None:
        """The boundary still open."""
        return self.ledger.flush()

    def break_off(self) -> None:
        """A new epoch begins with the next frame that is begun."""
        self._anew = True

    def new_epoch(self) -> Boundary | None:
        """The host's part of it; returns what `flush` would."""
        return self.ledger.new_epoch()

    def retune_ahead(self, config: StreamConfig) -> None:
        """The discriminator there takes another τ, if it is the judge."""
        if self.ledger.judged_there:
            self._told[:] = settings_row(config, judged_here=False)

    def retune(self, config: StreamConfig) -> None:
        """Any other head is here."""
        self.ledger.retune(config)
        self.config = config


def settings_row(config: StreamConfig, judged_here: bool) -> list[float]:
    """What the discriminator on the device is told of a stream, in the order of `SETTINGS`.

    Args:
        config: The stream's settings.
        judged_here: Whether the host decides on all scores, so that the device's verdict is never looked at.
    """
    if judged_here:
        return [0.0] * len(SETTINGS)
    checked = config.discriminator()
    return [float(getattr(checked, name)) for name in SETTINGS]
