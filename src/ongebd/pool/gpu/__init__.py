"""The GPU runtime. Needs torch."""

from ongebd.pool.gpu.batched_scorer import BatchedScorer, Rows
from ongebd.pool.gpu.runtime import GpuRuntime
from ongebd.pool.gpu.stream import DeviceStream

__all__ = ["BatchedScorer", "DeviceStream", "GpuRuntime", "Rows"]
