"""Curves for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ongebd.errors import MissingExtraError


class Curves:
    """Writes what is known of each epoch into `OUT/tensorboard`.

    Args:
        out: The folder; None writes nothing.

    Raises:
        MissingExtraError: TensorBoard is not installed.
    """

    def __init__(self, out: Path | None) -> None:
        self._writer: Any = None
        if out is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ModuleNotFoundError as problem:
                raise MissingExtraError.of(problem.name, "train") from None
            self._writer = SummaryWriter(str(out / "tensorboard"))

    def epoch(self, row: dict[str, Any]) -> None:
        """One epoch's row of the history."""
        if self._writer is None:
            return
        for name, value in row.items():
            values = value if isinstance(value, dict) else {"": value}
            for part, number in values.items():
                if name != "epoch":
                    self._writer.add_scalar(f"{name}/{part}" if part else name, number, row["epoch"] + 1)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()
