"""Tells an MQTT broker of incidents, in the way in which Home Assistant finds devices by itself."""

from __future__ import annotations

import json
import re
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from ongebd import __version__
from ongebd.common.text import printable, public_name
from ongebd.errors import ConfigError, import_extra
from ongebd.watch.history import Best
from ongebd.watch.records import Incident, StateChanged, record_line
from ongebd.watch.sink import Complain, HubSink
from ongebd.watch.watcher import Watcher

_SECONDS = 5.0
_FOUND = "homeassistant/{}/{}/ongebd/config"


class MqttSink(HubSink):
    """Publishes each camera as a device: a binary sensor that is on during an incident, and its best picture.

    While the broker is away, records wait. All messages are retained, with quality of service 1:
    `BASE/CAMERA/incident` (JSON, as in `RecordSink`), `…/picture` (JPEG), `…/status` and `BASE/status`
    (`online` or `offline`; the broker itself says that we are gone).

    Apprise can't do this: it connects for each message, and sends text only.

    Args:
        url: `mqtt://user:password@host:1883/BASE`, or mqtts with TLS. BASE is `ongebd` by default.

    Raises:
        ConfigError: The URL is malformed.
        MissingExtraError: paho-mqtt is not installed.
    """

    def __init__(self, url: str, watcher: Watcher, complain: Complain) -> None:
        mqtt = import_extra("paho.mqtt.client", "live")
        self._name = public_name(url)
        try:
            parts = urlsplit(url)
            secure = {"mqtt": False, "mqtts": True}[parts.scheme]
            host, port = parts.hostname or "", parts.port or (8883 if secure else 1883)
        except (KeyError, ValueError):
            host = ""
        base = parts.path.strip("/") or "ongebd" if host else ""
        if not re.fullmatch(r"[\w-]{1,60}", base, re.ASCII):
            raise ConfigError(f"--mqtt {self._name}: give mqtt://HOST, mqtts://HOST:PORT or mqtt://HOST/NAME")
        self._streams, self._base = watcher.streams, base
        self._there, self._why = threading.Event(), "no connection"
        self._begun, self._shown = False, dict[str, bytes]()
        self._client = client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        if parts.username:
            client.username_pw_set(unquote(parts.username), unquote(parts.password or ""))
        if secure:
            client.tls_set()
        client.will_set(f"{base}/status", "offline", 1, retain=True)
        client.reconnect_delay_set(1, 30)
        client.connect_timeout = _SECONDS
        client.on_connect, client.on_disconnect = self._connected, self._disconnected
        client.on_message = self._seen
        super().__init__("mqtt", watcher.hub, (Incident, StateChanged), complain)
        client.connect_async(host, port, 30)

    def start(self) -> None:
        """Begin to connect."""
        super().start()
        cameras = self.cameras or self._streams
        self._streams = {key: stream for key, stream in self._streams.items() if key in cameras}
        self._client.loop_start()

    def handle(self, record: Incident | StateChanged) -> None:
        """Publish a record, and wait until the broker has it."""
        if not self._there.wait(0 if self.ending.is_set() else _SECONDS):
            raise ConnectionError(f"{self._name}: {self._why}")
        key = record.stream
        if isinstance(record, StateChanged):
            self._send(f"{key}/status", "online" if record.state == "live" else "offline")
        elif record.held is None:
            picture = self._streams[key].history.picture(Best(record.number)) if record.has_picture else None
            if picture is not None and picture != self._shown.get(key):
                self._send(f"{key}/picture", picture)  # first, so that the alert finds it
                self._shown[key] = picture
            self._send(f"{key}/incident", json.dumps(record_line(record)))

    def tidy(self) -> None:
        """Say that we are gone, and disconnect."""
        if self._there.is_set():
            self._there.clear()
            with suppress(ConnectionError):
                self._send("status", "offline", 1)
        self._client.disconnect()  # its thread ends

    def _send(self, topic: str, content: str | bytes, seconds: float = _SECONDS) -> None:
        message = self._client.publish(f"{self._base}/{topic}", content, 1, retain=True)
        with suppress(RuntimeError, ValueError):  # the connection is lost, or was lost meanwhile
            message.wait_for_publish(seconds)
            if message.is_published():
                return
        raise ConnectionError(f"{self._name}: {self._why}")

    # The client's thread calls these.

    def _connected(self, client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            self._why = printable(str(reason))
            self._report(f"{self._name}: {self._why}; trying again", broken=True)
            return
        client.subscribe(_FOUND.format("+", "+"), 1)
        for key, stream in self._streams.items():
            for kind, message in self._devices(key, stream.name).items():
                client.publish(
                    _FOUND.format(kind, f"{self._base}_{key}"), json.dumps(message), 1, retain=True
                )
            if not self._begun:  # a run that broke off may have left it on
                client.publish(f"{self._base}/{key}/incident", '{"state": "ended"}', 1, retain=True)
            state = "online" if stream.status().state == "live" else "offline"
            client.publish(f"{self._base}/{key}/status", state, 1, retain=True)
        client.publish(f"{self._base}/status", "online", 1, retain=True)
        self._begun = True
        self._there.set()
        self._works()

    def _disconnected(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._there.clear()
        self._why = "the connection was lost"

    def _seen(self, client: Any, _data: Any, message: Any) -> None:
        """Take back the device of a camera that we don't watch any more."""
        node = message.topic.split("/")[2]
        base, _, key = node.rpartition("_")
        if base == self._base and key not in self._streams and message.payload:
            client.publish(message.topic, b"", 1, retain=True)

    def _devices(self, key: str, name: str) -> dict[str, dict[str, Any]]:
        """The discovery messages of a camera, by kind of entity."""
        base, node = f"{self._base}/{key}", f"{self._base}_{key}"
        maker = {"name": "ongebd", "sw_version": __version__}
        common = {
            "device": {
                "identifiers": [node],
                "manufacturer": "ongebd",
                "name": name,
                "sw_version": __version__,
            },
            "origin": maker,
            "availability": [{"topic": f"{self._base}/status"}, {"topic": f"{base}/status"}],
            "availability_mode": "all",
        }
        return {
            "binary_sensor": common
            | {
                "name": "Incident",
                "unique_id": f"{node}_incident",
                "device_class": "motion",
                "state_topic": f"{base}/incident",
                "value_template": "{{ 'OFF' if value_json.state == 'ended' else 'ON' }}",
                "json_attributes_topic": f"{base}/incident",
            },
            "image": common
            | {
                "name": "Best picture",
                "unique_id": f"{node}_picture",
                "image_topic": f"{base}/picture",
                "content_type": "image/jpeg",
            },
        }
