"""The cues of `ongebd.estimator.cues`, of many streams at once, as tensors. Needs torch.

The same numbers, in the same order, by the same rule for a stream's start: where the CPU looks at what is
kept, these choose by each stream's own number of frames, so that all streams do the same work.
"""

from ongebd.pool.gpu.cues.appearance import BatchedAppearance
from ongebd.pool.gpu.cues.context import BatchedContext
from ongebd.pool.gpu.cues.motion import BatchedMotion

__all__ = ["BatchedAppearance", "BatchedContext", "BatchedMotion"]
