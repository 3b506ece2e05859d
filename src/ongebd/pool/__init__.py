"""Many streams at once."""

from ongebd.pool.pool import StreamPool
from ongebd.pool.stream import Counts, PoolResult, PoolStream

__all__ = ["Counts", "PoolResult", "PoolStream", "StreamPool"]
