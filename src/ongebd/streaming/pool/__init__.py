"""Many streams at once."""

from ongebd.streaming.pool.pool import StreamPool
from ongebd.streaming.pool.stream import Counts, PoolResult, PoolStream

__all__ = ["Counts", "PoolResult", "PoolStream", "StreamPool"]
