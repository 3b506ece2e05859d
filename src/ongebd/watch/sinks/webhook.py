"""Posts each boundary, clip and change of state to a URL as JSON, and retries if that fails."""

from __future__ import annotations

import random

from ongebd import __version__
from ongebd.common.text import public_name
from ongebd.errors import ConfigError, MissingExtraError, OngebdError
from ongebd.watch.records import Clip, Dropped, Found, Onset, StateChanged, record_line
from ongebd.watch.sink import Complain, HubSink
from ongebd.watch.watcher import Watcher

_TRIES = 6
_SECONDS = 10
_FIRST_DELAY = 0.5


class WebhookSink(HubSink):
    """Posts records in order, one a request; the body is a line of `RecordSink`.

    If the server doesn't answer, or answers 5xx, 408 or 429, the record is posted again after 0.5, 1, 2, … s.
    Every other answer is final. Redirects are not followed. Records that come meanwhile wait.

    Args:
        url: http or https; credentials in it become basic authentication, and are never shown.

    Raises:
        ConfigError: The URL is malformed.
        MissingExtraError: `httpx` is not installed.
    """

    def __init__(self, url: str, watcher: Watcher, complain: Complain) -> None:
        try:
            import httpx
        except ModuleNotFoundError as problem:
            raise MissingExtraError.of("httpx", "live") from problem
        self._httpx, self._name = httpx, public_name(url)
        try:
            self._url = httpx.URL(url)
        except (httpx.InvalidURL, ValueError):
            raise ConfigError(f"--webhook: {self._name} is not a valid URL") from None
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise ConfigError(f"--webhook: {self._name} is not an http or https URL")
        self._client = httpx.Client(timeout=_SECONDS, headers={"User-Agent": f"ongebd/{__version__}"})
        super().__init__("webhook", watcher.hub, (Onset, Found, StateChanged, Dropped, Clip), complain)

    def handle(self, record: Onset | Found | StateChanged | Dropped | Clip) -> None:
        """Post a record until it is taken; only once if the watch is ending."""
        body = record_line(record)
        for attempt in range(1, _TRIES + 1):
            problem, final = self._post(body)
            if not problem:
                return
            delay = _FIRST_DELAY * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)
            if final or attempt == _TRIES or self.ending.wait(delay):
                raise OngebdError(f"{self._name}: {problem} ({attempt} {'try' if attempt == 1 else 'tries'})")

    def tidy(self) -> None:
        """Close the connections."""
        self._client.close()

    def _post(self, body: object) -> tuple[str, bool]:
        """What went wrong, if anything, and whether that is final."""
        try:
            with self._client.stream("POST", self._url, json=body) as answer:
                status = answer.status_code  # the rest of the answer is not read
        except self._httpx.TimeoutException:
            return f"no answer for {_SECONDS} s", False
        except self._httpx.HTTPError as problem:
            return public_name(str(problem) or type(problem).__name__), False
        trouble = "" if 200 <= status < 300 else f"answered {status}"
        return trouble, status < 500 and status not in (408, 429)
