"""The Online Boundary Discriminator (OBD): does this error stand out from the recent ones?

Section "Online Boundary Discriminator" of the paper, with each choice that it leaves open made explicit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import KW_ONLY, dataclass
from math import fsum, sqrt
from typing import Annotated, Self

from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError, FeatureError

_LARGEST = 1e150  # squares of larger errors would overflow


@dataclass(eq=False)
class BoundaryDiscriminator:
    """Calls a frame positive when its error is an outlier among the last Δ errors.

    The error ε of a frame is compared with the queue Q of the errors before it: z = (ε − μ_Q) / σ_Q, positive
    when z > τ. Then ε joins Q, positive or not, and the oldest error leaves.

    Mean and population standard deviation are computed afresh from the queue in float64 for each frame, so
    that the millionth decision equals that of a new discriminator fed the last Δ errors.

    Args:
        tau: τ, how many standard deviations are an outlier (strictly more than). The paper: 1.5.
        delta: Δ, the length of the queue. The paper: 21.
        warmup: Errors that must be in the queue before a frame is tested; from 2 to Δ. The paper leaves the
            cold start open. None waits for a full queue.
        min_std: Floor on σ, for still pictures whose errors hardly vary. The paper has none (0).
        min_error: No error at or under this is positive, however much it stands out. The paper has none (0).
        inliers_only: Keep positive errors out of the queue: the paper's ablation, which it found worse.

    Attributes:
        is_boundary: Whether the last error was positive.
        z: How far it stood out, in standard deviations; 0 while not `ready`.
        mean, std: Of the queue that it was compared with (0 where that was empty).
        threshold: The error above which it would have been positive.
        ready: Whether the queue held enough errors for a test.

    Raises:
        ConfigError: A setting is outside its range.

    A level shift at index 10 fires immediately. The queue then learns it, and the next errors do not fire:

    >>> obd = BoundaryDiscriminator(tau=3.0, delta=6, min_std=0.01)
    >>> errors = [0.10, 0.11, 0.09, 0.10, 0.11, 0.10, 0.09, 0.10, 0.11, 0.10, 0.40, 0.12, 0.10, 0.11, 0.35]
    >>> [i for i, error in enumerate(errors) if obd.update(error).is_boundary]
    [10]
    >>> round(obd.mean, 3), round(obd.std, 3), round(obd.z, 2)
    (0.157, 0.109, 1.77)
    """

    tau: Annotated[float, Range(above=0)] = 1.5
    delta: Annotated[int, Range(least=2)] = 21
    _: KW_ONLY
    warmup: Annotated[int | None, Range(least=2)] = None
    min_std: Annotated[float, Range(least=0)] = 0.0
    min_error: Annotated[float, Range(least=0)] = 0.0
    inliers_only: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.warmup is None:
            self.warmup = self.delta
        if self.warmup > self.delta:
            raise ConfigError(f"warmup must be at most delta ({self.delta}), not {self.warmup}")
        self._needed = self.warmup
        self._queue: deque[float] = deque(maxlen=self.delta)
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next error is the first."""
        self._queue.clear()
        self.is_boundary = self.ready = False
        self.z = self.mean = self.std = 0.0
        self.threshold = self.min_error

    def update(self, error: float) -> Self:
        """Test one error ε_t, at most 1e150, then let it join the queue.

        Raises:
            FeatureError: The error is NaN, infinite or absurdly large; the state is as before.
        """
        error = float(error)
        if not abs(error) <= _LARGEST:
            raise FeatureError(f"a prediction error must be a number of at most 1e150, not {error}")
        self.mean, self.std = _moments(self._queue)
        spread = max(self.std, self.min_std)
        self.threshold = max(self.mean + self.tau * spread, self.min_error)
        self.ready = len(self._queue) >= self._needed
        self.z = _stands_out(error - self.mean, spread) if self.ready else 0.0
        self.is_boundary = self.ready and self.z > self.tau and error > self.min_error
        if not (self.inliers_only and self.is_boundary):
            self._queue.append(error)
        return self


def _stands_out(above: float, spread: float) -> float:
    if spread > 0:
        # A denormal spread would overflow; no real z comes near this bound.
        return max(-1e9, min(above / spread, 1e9))
    # σ = 0 and no floor: any rise stands out without bound, and nothing else does.
    return 1e9 if above > 0 else -1e9 if above < 0 else 0.0


def _moments(values: deque[float]) -> tuple[float, float]:
    """Mean and population standard deviation, exact to rounding whatever came before."""
    n = len(values)
    if n == 0:
        return 0.0, 0.0
    mean = fsum(values) / n
    return mean, sqrt(fsum((v - mean) ** 2 for v in values) / n)
