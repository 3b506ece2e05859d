"""Posts each boundary, clip and change of state to a URL as JSON, and tries again where that fails."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from ongebd import __version__
from ongebd.common.text import public_name
from ongebd.errors import ConfigError, MissingExtraError, OngebdError
from ongebd.watch.hub import Hub
from ongebd.watch.records import Clip, Dropped, Found, Onset, Record, StateChanged
from ongebd.watch.sinks.base import Complain, HubSink
from ongebd.watch.sinks.records import record_line

if TYPE_CHECKING:
    import httpx

KINDS: tuple[type[Record], ...] = (Onset, Found, StateChanged, Dropped, Clip)


class WebhookSink(HubSink):
    """Posts records as JSON, one a request, in their order. The body is a line of `RecordSink`.

    What the server answers with 5xx, 408 or 429, or does not answer, is tried again after 0.5, 1, 2, … s; any
    other answer but 2xx is final. Redirects are not followed. Records that come meanwhile wait.

    Args:
        url: http or https; credentials in it become basic authentication.
        hub: Where records come from.
        complain: Who hears of trouble; the URL's credentials are not shown.
        tries: How often a record is posted at most.
        timeout: Seconds for connecting, and for each read and write.
        first_delay: Seconds before the second try.
        limit: Records that may wait.

    Raises:
        ConfigError: The URL is none.
        MissingExtraError: `httpx` is not installed.
    """

    def __init__(
        self,
        url: str,
        hub: Hub,
        complain: Complain,
        *,
        tries: int = 6,
        timeout: float = 10.0,
        first_delay: float = 0.5,
        limit: int = 1024,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError as problem:
            raise MissingExtraError.of("httpx", "live") from problem
        self._name, self._tries, self._first_delay = public_name(url), tries, first_delay
        try:
            self._url = httpx.URL(url)
        except (httpx.InvalidURL, ValueError):
            raise ConfigError(f"--webhook: {self._name} is no URL") from None
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise ConfigError(f"--webhook: {self._name} is no http or https URL")
        self._chance = random.Random()
        self._client: httpx.Client = httpx.Client(
            timeout=timeout, headers={"User-Agent": f"ongebd/{__version__}"}
        )
        super().__init__("webhook", hub, KINDS, complain, limit=limit)

    def handle(self, record: Record) -> None:
        """Post a record, as often as it takes; only once when all is about to end."""
        body = record_line(record)
        for attempt in range(1, self._tries + 1):
            problem, final = self._post(body)
            if problem is None:
                return
            delay = self._first_delay * 2.0 ** (attempt - 1) * self._chance.uniform(0.5, 1.0)
            if final or attempt == self._tries or self.ending.wait(min(30.0, delay)):
                raise OngebdError(f"{self._name}: {problem} ({attempt} {'try' if attempt == 1 else 'tries'})")

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def _post(self, body: object) -> tuple[str | None, bool]:
        """What went wrong, and whether that is final."""
        import httpx

        began = time.monotonic()
        try:
            with self._client.stream("POST", self._url, json=body) as answer:
                status = answer.status_code  # what it says besides is not read
        except httpx.TimeoutException:
            return f"no answer for {time.monotonic() - began:.0f} s", False
        except httpx.HTTPError as problem:
            return public_name(str(problem) or type(problem).__name__), False
        if 200 <= status < 300:
            return None, True
        return f"answered {status}", not (status >= 500 or status in (408, 429))
