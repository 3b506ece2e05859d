"""The GPU runtime. Needs torch."""

from ongebd.streaming.gpu.runtime import GpuRuntime
from ongebd.streaming.gpu.scorers import BatchedScorer, Rows
from ongebd.streaming.gpu.stream import DeviceStream

__all__ = ["BatchedScorer", "DeviceStream", "GpuRuntime", "Rows"]
