"""A stream's newest packets, out of which a clip is cut at each onset; and where the clips are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from av.packet import Packet
from av.video.stream import VideoStream

from ongebd.errors import ConfigError, a_number
from ongebd.video.packets import Piece, RecentPackets
from ongebd.video.picture import UPRIGHT, Turn
from ongebd.watch.awaited import AwaitedClips
from ongebd.watch.records import Filmed, Footage, Found, Onset

LONGEST = 60.0
"""Seconds that a clip may begin before its onset, and end after it."""
_MOST_PATHS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipLength:
    """What of a source is in a clip.

    Raises:
        ConfigError: A number is out of its range.
    """

    before: float = 5.0
    """Seconds before the onset, at least; what can be copied begins at the keyframe before that."""

    after: float = 5.0
    """Seconds after it."""

    most_bytes: int = 32 * 1024 * 1024
    """Bytes of the packets that are kept of a stream at most; a clip may have half as many again."""

    def __post_init__(self) -> None:
        for name in ("before", "after"):
            if not 0 <= a_number(name, getattr(self, name)) <= LONGEST:
                raise ConfigError(
                    f"a clip takes 0 to {LONGEST:g} s {name} the onset, not {getattr(self, name)}"
                )
        if self.before + self.after < 1:
            raise ConfigError(f"a clip lasts at least 1 s, not {self.before + self.after:g}")


class Clips:
    """The clips of one stream. Its reader tells it of all packets (`ongebd.video.reader.Keeper`).

    A clip never reaches over a break: each epoch has packets of its own. Those of the epoch before are kept
    for as long as decisions on it may still come.

    Args:
        length: Of a clip.
        backlog: Seconds by which a decision may come after its frame's packet.
        hand_over: Takes each clip when its last packet is there; called in the reader's thread or the pool's.
        tell: Hears of each boundary whose centre is known and whose clip is there, or cannot be.
    """

    def __init__(
        self,
        length: ClipLength,
        backlog: float,
        hand_over: Callable[[Footage], object],
        tell: Callable[[Filmed], object],
    ) -> None:
        self.turn: Turn = UPRIGHT
        self._length, self._backlog, self._hand_over = length, backlog, hand_over
        self._newest: RecentPackets | None = None
        self._of_epoch: dict[int, RecentPackets] = {}
        self._began: float | None = None  # time of the newest one's first packet
        self._paths: OrderedDict[int, Path] = OrderedDict()
        self._awaited = AwaitedClips(tell)

    # What the reader tells.

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

    # What the stream tells.

    def number(self, epoch: int) -> None:
        """The newest packets are of this epoch; told before anything is decided of it."""
        if self._newest is not None and self._of_epoch.get(epoch) is not self._newest:
            self._of_epoch = {**self._of_epoch, epoch: self._newest}

    def cut(self, onset: Onset) -> None:
        """Cut out the clip of an onset. Never waits."""
        self._awaited.begin(onset.number)
        packets = self._of_epoch.get(onset.epoch)

        def done(piece: Piece | None) -> None:
            self._hand_over(Footage(onset.stream, onset.wall, onset, piece))

        if packets is None:
            done(None)
        else:
            packets.cut(onset.time - self._length.before, onset.time + self._length.after, done)

    def found(self, found: Found) -> None:
        """The centre of a boundary is known."""
        self._awaited.found(found)

    # Where clips are.

    def wrote(self, number: int, path: Path) -> None:
        """The clip of a boundary is in this file."""
        self._paths[number] = path
        while len(self._paths) > _MOST_PATHS:
            self._paths.popitem(last=False)
        self._awaited.settle(number, path)

    def missed(self, number: int) -> None:
        """There will be no clip of a boundary."""
        self._awaited.settle(number, None)

    def give_up(self) -> None:
        """No clip is written any more."""
        self._awaited.give_up()

    def path(self, number: int) -> Path | None:
        """The file of a boundary's clip; it may be deleted by now."""
        return self._paths.get(number)
