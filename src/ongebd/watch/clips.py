"""The newest packets of a stream, out of which a clip is cut at each onset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from av.packet import Packet
from av.video.stream import VideoStream

from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError
from ongebd.video.packets import Piece, RecentPackets
from ongebd.video.picture import UPRIGHT, Turn
from ongebd.watch.records import Footage, Onset


@dataclass(frozen=True, kw_only=True)
class ClipLength:
    """How much video a clip has.

    Raises:
        ConfigError: A number is out of range.
    """

    before: Annotated[float, Range(least=0, most=60)] = 5.0
    """Seconds before the onset, at least; copied video begins at the keyframe before that."""

    after: Annotated[float, Range(least=0, most=60)] = 5.0
    """Seconds after the onset."""

    most_bytes: int = 32 * 1024 * 1024
    """The most bytes of packets to keep for a stream; a clip may have half as many again."""

    def __post_init__(self) -> None:
        check_fields(self, "clip_")
        if self.before + self.after < 1:
            raise ConfigError(f"a clip lasts at least 1 s, not {self.before + self.after:g}")


class ClipCutter:
    """Cuts the clips of one stream; its reader passes it all packets (`ongebd.video.reader.Keeper`).

    A clip never crosses a break: each epoch has its own packets. Those of the epoch before are kept while
    decisions about it may still come.

    Args:
        length: Of a clip.
        backlog: The most seconds between a frame's packet and the decision on the frame.
        publish: Takes each clip when its last packet is there, in the reader's thread or the pool's.
    """

    def __init__(self, length: ClipLength, backlog: float, publish: Callable[[Footage], object]) -> None:
        self.turn: Turn = UPRIGHT
        self._length, self._backlog, self._publish = length, backlog, publish
        self._newest: RecentPackets | None = None
        self._of_epoch: dict[int, RecentPackets] = {}
        self._began: float | None = None  # time of the newest one's first packet

    def begin(self, stream: VideoStream) -> None:
        """A connection is open."""
        self.turn, self._began = UPRIGHT, None
        self._newest = RecentPackets(stream, self._length.before + self._backlog, self._length.most_bytes)

    def add(self, packet: Packet[VideoStream], time: float) -> None:
        """The next packet; `time` seconds of the connection are decoded."""
        if self._newest is None:
            return
        self._began = time if self._began is None else self._began
        if len(self._of_epoch) > 1 and time - self._began > self._backlog:
            self._of_epoch = dict([max(self._of_epoch.items())])
        self._newest.turn = self.turn
        self._newest.add(packet, time)

    def broke(self, pts: int | None, *, same_picture: bool) -> None:
        """An epoch begins within the connection."""
        if self._newest is not None:
            self._newest = self._newest.branch(pts, same_picture=same_picture)
            self._began = None

    def end(self) -> None:
        """The connection is over."""
        if self._newest is not None:
            self._newest.end()

    def set_epoch(self, epoch: int) -> None:
        """Note the epoch of the newest packets, before anything about it is decided."""
        if self._newest is not None and self._of_epoch.get(epoch) is not self._newest:
            self._of_epoch = {**self._of_epoch, epoch: self._newest}

    def cut(self, onset: Onset) -> None:
        """Cut the clip of an onset. Never waits."""

        def done(piece: Piece | None) -> None:
            self._publish(Footage(onset, piece))

        packets = self._of_epoch.get(onset.epoch)
        if packets is None:
            done(None)
        else:
            packets.cut(onset.time - self._length.before, onset.time + self._length.after, done)
