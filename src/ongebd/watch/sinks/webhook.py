"""Posts each boundary, clip and change of state to a URL as JSON, and retries if that fails."""

from __future__ import annotations

from math import inf
from typing import get_args

from ongebd import __version__
from ongebd.common.text import public_name
from ongebd.errors import ConfigError, OngebdError, import_extra
from ongebd.watch.records import Told, record_line
from ongebd.watch.sink import Complain, HubSink, may_pass
from ongebd.watch.watcher import Watcher

_SECONDS = 10


class WebhookSink(HubSink):
    """Posts records in order, one a request; the body is a line of `RecordSink`.

    If the server doesn't answer, or answers 5xx, 408 or 429, the record is posted again until the server
    takes it; after a 500, which may be the record's fault, six times at most. Every other answer is final.
    Redirects are not followed. Records that come meanwhile wait.

    Args:
        url: http or https; credentials in it become basic authentication, and are never shown.

    Raises:
        ConfigError: The URL is malformed.
        MissingExtraError: `httpx` is not installed.
    """

    def __init__(self, url: str, watcher: Watcher, complain: Complain) -> None:
        self._httpx = httpx = import_extra("httpx", "live")
        self._name = public_name(url)
        try:
            self._url = httpx.URL(url)
        except (httpx.InvalidURL, ValueError):
            raise ConfigError(f"--webhook: {self._name} is not a valid URL") from None
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise ConfigError(f"--webhook: {self._name} is not an http or https URL")
        self._client = httpx.Client(timeout=_SECONDS, headers={"User-Agent": f"ongebd/{__version__}"})
        super().__init__("webhook", watcher.hub, get_args(Told), complain, limit=16_384)

    def handle(self, record: Told) -> None:
        """Post a record."""
        try:
            with self._client.stream("POST", self._url, json=record_line(record)) as answer:
                status = answer.status_code  # the rest of the answer is not read
        except self._httpx.TimeoutException:
            raise ConnectionError(f"{self._name}: no answer for {_SECONDS} s") from None
        except self._httpx.HTTPError as problem:
            why = public_name(str(problem) or type(problem).__name__)
            raise ConnectionError(f"{self._name}: {why}") from None
        if not 200 <= status < 300:
            self.tries = 6 if status == 500 else inf
            raise (ConnectionError if may_pass(status) else OngebdError)(f"{self._name}: answered {status}")

    def tidy(self) -> None:
        """Close the connections."""
        self._client.close()
