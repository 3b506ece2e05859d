"""Who may look: the token, sessions of browsers that gave it, and patience with wrong ones."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from ongebd.errors import ConfigError

Answer = Literal["right", "wrong", "wait"]

SHORTEST_TOKEN = 8
SESSION_SECONDS = 30 * 24 * 3600
_MOST_SESSIONS = 1024
_MOST_ADDRESSES = 1024
_WRONG_AT_ONCE = 5
_SECONDS_A_TRY = 10.0


def check_token(token: str) -> None:
    """Refuse a token that guesses would find, or that no header can carry.

    Raises:
        ConfigError: It is shorter than 8 characters, or has others than visible ASCII ones.
    """
    if len(token) < SHORTEST_TOKEN or not all("!" <= character <= "~" for character in token):
        raise ConfigError(
            f"the token must have {SHORTEST_TOKEN} or more visible ASCII characters and no blank; "
            'one is made by: python -c "import secrets; print(secrets.token_urlsafe())"'
        )


class Access:
    """Decides on tokens and sessions. Used in one thread only.

    Args:
        token: What a client must know; None: nothing is asked.
        clock: Seconds that never step back.
    """

    def __init__(self, token: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        if token is not None:
            check_token(token)
        self._digest = None if token is None else _digest(token)
        self._clock = clock
        self._sessions: OrderedDict[bytes, float] = OrderedDict()
        self._tries: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def needed(self) -> bool:
        """Whether a token is asked for at all."""
        return self._digest is not None

    def judge(self, token: str, address: str) -> Answer:
        """Compare a token, in constant time; "wait" without a look at it after too many wrong ones.

        Each network may be wrong five times at once, and once in ten seconds from then on.
        """
        if self._digest is None:
            return "right"
        network = _network(address)
        left = self._left(network)
        if left < 1:
            return "wait"
        if hmac.compare_digest(_digest(token), self._digest):
            return "right"
        self._tries[network] = (left - 1, self._clock())
        self._tries.move_to_end(network)
        if len(self._tries) > _MOST_ADDRESSES:
            self._tries.popitem(last=False)
        return "wrong"

    def open_session(self) -> str:
        """A new secret for the cookie of a browser that gave the right token."""
        secret = secrets.token_urlsafe(32)
        self._sessions[_digest(secret)] = self._clock() + SESSION_SECONDS
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return secret

    def knows_session(self, secret: str) -> bool:
        """Whether a cookie's secret is that of an open session."""
        return self._sessions.get(_digest(secret), 0.0) > self._clock()

    def close_session(self, secret: str) -> None:
        """Forget a session."""
        self._sessions.pop(_digest(secret), None)

    def _left(self, network: str) -> float:
        left, then = self._tries.get(network, (float(_WRONG_AT_ONCE), 0.0))
        return min(float(_WRONG_AT_ONCE), left + (self._clock() - then) / _SECONDS_A_TRY)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _network(address: str) -> str:
    """An IPv4 address, or the /64 of an IPv6 one: who has one address of it has them all."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)
