"""Tells a person of incidents, with their pictures: on a phone, in a chat, by e-mail."""

from __future__ import annotations

import logging
import re
from datetime import datetime
from typing import Any

from ongebd.common.text import HIDDEN, printable
from ongebd.errors import ConfigError, OngebdError, import_extra
from ongebd.watch.history import Best
from ongebd.watch.records import Digest, Incident
from ongebd.watch.sink import Complain, HubSink, may_pass
from ongebd.watch.watcher import Watcher

_STATUS = re.compile(r"error\s*=\s*(\d{3})")
_SAID = {"cut": "The picture changed", "gradual": "The picture changed slowly"}


class NotifySink(HubSink):
    """Sends a message for each alert and one a day about the other incidents, with Apprise.

    A message goes out once the best picture is known, up to two seconds after the start. A service that
    doesn't answer is tried until it does.

    Args:
        url: An address as Apprise takes it (`ntfy://…`, `tgram://…`). All of it but the scheme stays hidden.

    Raises:
        ConfigError: Apprise doesn't know this kind of address; see https://appriseit.com/services/.
        MissingExtraError: Apprise is not installed.
    """

    def __init__(self, url: str, watcher: Watcher, complain: Complain) -> None:
        apprise = import_extra("apprise", "live")
        self._attachment = import_extra("apprise.attachment.memory", "live").AttachMemory
        apprise.logger.propagate = False  # its lines may hold secrets
        apprise.logger.addHandler(logging.NullHandler())
        scheme = url.partition("://")[0]
        self._name = f"{scheme if scheme.isalnum() and scheme != url else ''}://{HIDDEN}"
        # Without icons: they would come from another site.
        ours = {"app_id": "ongebd", "app_desc": "ongebd", "app_url": ""}
        asset = apprise.AppriseAsset(**ours, image_url_mask="", image_url_logo="")
        self._apprise = apprise.Apprise(asset=asset)
        if not self._apprise.add(url):
            raise ConfigError(
                f"--notify {self._name}: Apprise doesn't know this kind of address; see https://appriseit.com/services/"
            )
        self._streams, self._told = watcher.streams, dict[str, int]()
        super().__init__("notify", watcher.hub, (Incident, Digest), complain)

    def handle(self, record: Incident | Digest) -> None:
        """Send the message of an incident, unless it was sent or is held; or of a day."""
        if isinstance(record, Digest):
            quiet = sum(record.held.values())
            self._send(record.stream, f"{record.day}: {record.told} alerts; without an alert: {quiet}.", None)
            return
        if record.held is not None or self._told.get(record.stream, 0) >= record.number:
            return
        stream = self._streams[record.stream]
        picture = stream.history.picture(Best(record.number)) if record.has_picture else None
        name = f"{record.stream}-{record.number}.jpg"
        attach = None if picture is None else self._attachment(picture, name, "image/jpeg")
        what = _SAID.get(record.kind or "", "Something happened")
        when = datetime.fromtimestamp(record.wall).astimezone()
        self._send(record.stream, f"{what} at {when:%H:%M:%S}.", attach)
        self._told[record.stream] = record.number

    def _send(self, stream: str, text: str, attach: Any) -> None:
        result = self._apprise.notify(text, printable(self._streams[stream].name), attach=attach)
        if not result:
            said = _STATUS.search(" ".join(entry.message for entry in result.logs()))
            passing = said is None or may_pass(int(said[1]))
            why = f"answered {said[1]}" if said else "not delivered"
            raise (ConnectionError if passing else OngebdError)(f"{self._name}: {why}")
