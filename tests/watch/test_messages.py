"""Messages to people and to Home Assistant: what they say, and that an outage loses none."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from ongebd.errors import ConfigError
from ongebd.watch import Digest, Incident, Patience, StateChanged
from ongebd.watch.sinks.mqtt import MqttSink
from ongebd.watch.sinks.notify import NotifySink
from ongebd.watch.sinks.webhook import WebhookSink
from waiting import until

from .conftest import sink_watcher

WALL = 1_795_852_800.25
PICTURE = b"\xff\xd8\xff picture"
SECRETS = ("hunter2", "tk_secret", "my-topic")


def incident(number=1, state="started", stream="cam", **changes):
    over = state == "ended"
    end, wall_end = (5.0, WALL + 2) if over else (None, None)
    made = Incident(stream, number, state, number, 0, 3.0, end, WALL, wall_end, 0.8, 1, "event", True)
    return replace(made, **changes)


@pytest.fixture
def watcher(monkeypatch):
    monkeypatch.setattr("ongebd.watch.sink._PAUSES", Patience(first_delay=0.02, longest_delay=0.02))
    made = sink_watcher(picture=PICTURE)
    for stream in made.streams.values():
        stream.status = lambda: StateChanged("cam", "live", WALL, 0, "")
    return made


@contextmanager
def running(sink):
    sink.start()
    try:
        yield sink
    finally:
        sink.end()
        sink.finish(lambda: 3.0)


class Service:
    """An HTTP service that can go away and come back; what it was sent."""

    def __init__(self, port):
        self.port, self.got, self.status, self.server, self.asked = port, [], 200, None, 0
        self.up()

    def up(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                service.asked += 1
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if service.status == 200:
                    service.got.append((self.path, dict(self.headers), body))
                self.send_response(service.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_PUT = do_POST  # noqa: N815

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}).start()

    def down(self):
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


@pytest.fixture
def service(free_port):
    made = Service(free_port)
    yield made
    made.down()


# People.


@pytest.fixture
def phone(service, watcher, monkeypatch):
    pytest.importorskip("apprise", reason="messages need apprise")
    monkeypatch.setattr("apprise.plugins.ntfy.NotifyNtfy.request_rate_per_sec", 0)  # else five seconds each
    complaints = []
    url = f"ntfy://me:hunter2@127.0.0.1:{service.port}/my-topic"
    with running(NotifySink(url, watcher, complaints.append)) as sink:
        yield sink, complaints
    assert not any(secret in line for line in complaints for secret in SECRETS)


def test_an_incident_is_one_message_with_the_cameras_name_the_time_and_the_picture(phone, service, watcher):
    for state in ("started", "updated", "ended"):
        watcher.hub.publish(incident(1, state))
    watcher.hub.publish(incident(2, "started", held="repeats"))
    watcher.hub.publish(incident(3, "started", held="cooldown"))
    watcher.hub.publish(incident(3, "updated"))  # it is told after all
    until(lambda: len(service.got) == 2)
    path, headers, body = service.got[0]
    said = json.dumps([path, *headers.values()])
    assert body == PICTURE
    assert path.startswith("/my-topic")
    assert "Front" in said
    assert "apprise" not in said.lower(), "nothing of another site"
    watcher.hub.publish(Digest("cam", WALL, "2026-11-28", 3, {"cap": 4, "repeats": 5}, (7, 6)))
    until(lambda: len(service.got) == 3)
    assert "2026-11-28: 3 alerts; without an alert: 9." in str(service.got[2])
    assert re.search(r"Something happened at \d\d:\d\d:\d\d", said.replace("+", " ").replace("%3A", ":"))


@pytest.mark.parametrize("status", [None, 503, 429])
def test_a_service_that_is_away_and_comes_back_gets_every_message(phone, service, watcher, status):
    sink, complaints = phone
    if status is None:
        service.down()
    else:
        service.status = status
    for number in (1, 2, 3):
        watcher.hub.publish(incident(number))
    until(lambda: complaints)
    assert re.fullmatch(r"notify: ntfy://\*\*\*: (not delivered|answered \d+); trying again", complaints[0])
    service.status = 200
    if status is None:
        service.up()
    until(lambda: len(service.got) == 3 and sink.done == 3)
    assert complaints[1:] == ["notify: works again; records lost: 0"]


def test_a_camera_has_its_own_outputs(phone, service, watcher):
    sink, _ = phone
    sink.cameras = {"yard"}
    for number, stream in enumerate(("cam", "yard", "cam"), 1):
        watcher.hub.publish(incident(number, stream=stream))
    until(lambda: len(service.got) == 1)
    until(lambda: sink.done)  # it is counted after the service has it
    assert (sink.done, len(service.got)) == (1, 1)


def test_a_refused_message_is_told_and_the_next_one_is_tried(phone, service, watcher):
    sink, complaints = phone
    service.status = 403
    watcher.hub.publish(incident(1))
    until(lambda: sink.failed)
    assert complaints == ["notify: ntfy://***: answered 403"]
    service.status = 200
    watcher.hub.publish(incident(2))
    until(lambda: len(service.got) == 1)


@pytest.mark.parametrize("url", ["nonsense", "nope://hunter2@host/x", "tgram://hunter2", "", "://"])
def test_an_address_that_apprise_does_not_know_is_refused_without_its_secret(watcher, url, capfd):
    pytest.importorskip("apprise", reason="messages need apprise")
    with pytest.raises(ConfigError, match="--notify") as refused:
        NotifySink(url, watcher, print)
    assert "hunter2" not in str(refused.value) + "".join(capfd.readouterr())


# A web hook.


@pytest.mark.parametrize("status", [None, 503, 429, 408])
def test_a_web_hook_that_is_away_and_comes_back_gets_every_record(service, watcher, status):
    pytest.importorskip("httpx")
    complaints = []
    url = f"http://me:hunter2@127.0.0.1:{service.port}/hook"
    with running(WebhookSink(url, watcher, complaints.append)):
        if status is None:
            service.down()
        else:
            service.status = status
        for number in range(40):
            watcher.hub.publish(incident(number))
        until(lambda: complaints)
        until(lambda: status is None or service.asked > 6)
        service.status = 200
        if status is None:
            service.up()
        until(lambda: len(service.got) == 40)
    assert [json.loads(body)["number"] for _, _, body in service.got] == list(range(40))
    assert complaints[1:] == ["webhook: works again; records lost: 0"]
    assert "hunter2" not in str(complaints)


def test_a_record_that_crashes_the_hook_does_not_hold_up_the_others(service, watcher):
    pytest.importorskip("httpx")
    complaints = []
    with running(WebhookSink(f"http://127.0.0.1:{service.port}/", watcher, complaints.append)) as sink:
        service.status = 500
        watcher.hub.publish(incident(1))
        until(lambda: sink.failed)
        service.status = 200
        watcher.hub.publish(incident(2))
        until(lambda: service.got)
    assert [json.loads(body)["number"] for _, _, body in service.got] == [2]


# Home Assistant.


class Broker:
    """A real broker that keeps what it should, and can go away."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        (folder / "conf").write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {folder}/users\n"
            f"persistence true\npersistence_location {folder}/\nuser root\n"
        )
        (folder / "users").touch(mode=0o600)
        maker = ["mosquitto_passwd", "-b", str(folder / "users"), "me", "hunter2"]
        subprocess.run(maker, check=True, capture_output=True)
        self.up()

    def up(self):
        command = [shutil.which("mosquitto") or "/usr/sbin/mosquitto", "-c", str(self.folder / "conf")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with socket.socket() as client:
            until(lambda: client.connect_ex(("127.0.0.1", self.port)) == 0)

    def down(self):
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture
def broker(tmp_path, free_port):
    if not (shutil.which("mosquitto", path="/usr/sbin:/usr/bin") and shutil.which("mosquitto_passwd")):
        pytest.skip("no mosquitto is installed (Debian: mosquitto)")
    pytest.importorskip("paho.mqtt.client", reason="MQTT needs paho-mqtt")
    made = Broker(tmp_path, free_port)
    yield made
    made.down()


@pytest.fixture
def home(broker):
    """What Home Assistant's client hears: the newest message of each topic, and all in order."""
    import paho.mqtt.client as mqtt

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.username_pw_set("me", "hunter2")
    client.newest, client.heard = {}, []

    def hears(_client, _data, message):
        client.newest[message.topic] = message.payload
        client.heard.append((message.topic, message.payload))

    client.on_message = hears
    client.on_connect = lambda *_: client.subscribe("#", 1)
    client.reconnect_delay_set(1, 1)
    client.connect_async("127.0.0.1", broker.port)
    client.loop_start()
    yield client
    client.disconnect()
    client.loop_stop()


@pytest.fixture
def mqtt(broker, watcher):
    complaints = []
    with running(MqttSink(f"mqtt://me:hunter2@127.0.0.1:{broker.port}", watcher, complaints.append)) as sink:
        sink.complaints = complaints
        yield sink
    assert "hunter2" not in str(complaints)


DOCUMENTED = {
    "binary_sensor": {"device_class", "state_topic", "value_template", "json_attributes_topic"},
    "image": {"image_topic", "content_type"},
}
EVERY = {"name", "unique_id", "device", "origin", "availability", "availability_mode"}


def test_each_camera_is_a_device_that_home_assistant_finds_by_itself(mqtt, home):
    topics = {
        f"homeassistant/{kind}/ongebd_{key}/ongebd/config" for kind in DOCUMENTED for key in ("cam", "yard")
    }
    until(lambda: topics <= set(home.newest) and home.newest.get("ongebd/status") == b"online")
    identities = set()
    for topic in topics:
        kind, message = topic.split("/")[1], json.loads(home.newest[topic])
        assert set(message) == EVERY | DOCUMENTED[kind]
        assert message["device"]["name"] == "Front"
        assert message["device"]["identifiers"] == [topic.split("/")[2]]
        assert message["availability"][0]["topic"] == "ongebd/status"
        identities.add(message["unique_id"])
    assert len(identities) == len(topics)


def test_the_sensor_is_on_during_an_incident_and_the_picture_comes_first(mqtt, home, watcher):
    until(lambda: home.newest.get("ongebd/status") == b"online")
    home.heard.clear()
    for state in ("started", "ended"):
        watcher.hub.publish(incident(1, state))
    watcher.hub.publish(incident(2, held="cap"))
    watcher.hub.publish(StateChanged("yard", "reconnecting", WALL, 0, "gone"))
    until(lambda: home.newest.get("ongebd/yard/status") == b"offline")
    told = [(topic, body) for topic, body in home.heard if topic.startswith("ongebd/cam/")]
    assert [topic.rpartition("/")[2] for topic, _ in told] == ["picture", "incident", "incident"]
    assert told[0][1] == PICTURE
    states = [json.loads(body) for _, body in told[1:]]
    assert [one["state"] for one in states] == ["started", "ended"]
    assert [states[0][name] for name in ("number", "peak", "kind", "wall")] == [1, 0.8, "event", WALL]


def test_a_broker_that_is_away_and_comes_back_gets_every_incident_in_order(
    mqtt, home, watcher, broker, monkeypatch
):
    monkeypatch.setattr("ongebd.watch.sinks.mqtt._SECONDS", 0.2)
    until(lambda: home.newest.get("ongebd/status") == b"online")
    broker.down()
    for number in range(1, 21):
        for state in ("started", "ended"):
            watcher.hub.publish(incident(number, state))
    until(lambda: mqtt.complaints)
    assert "trying again" in mqtt.complaints[0]
    home.heard.clear()
    broker.up()
    until(lambda: mqtt.done == 40)
    until(lambda: json.loads(home.newest["ongebd/cam/incident"]).get("number") == 20)
    numbers = [json.loads(body).get("number") for topic, body in home.heard if topic == "ongebd/cam/incident"]
    told = [number for number in dict.fromkeys(numbers) if number is not None]
    assert told[-5:] == [16, 17, 18, 19, 20]  # a client that comes later hears the newest only
    assert mqtt.complaints[1:] == ["mqtt: works again; records lost: 0"]


def test_the_broker_says_so_when_we_end_and_forgets_cameras_that_are_gone(mqtt, home, watcher):
    old = "homeassistant/image/ongebd_old/ongebd/config"
    other = "homeassistant/image/ongebd_two_old/ongebd/config"
    for topic in (old, other):
        home.publish(topic, "{}", 1, retain=True)
    until(lambda: home.newest.get(old) == b"")
    assert home.newest[other] == b"{}", "another ongebd's"
    mqtt.end()
    mqtt.finish(lambda: 2.0)
    until(lambda: home.newest["ongebd/status"] == b"offline")


def test_a_wrong_password_is_told_without_it(broker, watcher):
    complaints = []
    with running(MqttSink(f"mqtt://me:hunter3@127.0.0.1:{broker.port}", watcher, complaints.append)):
        until(lambda: complaints)
    assert "Not authorized" in complaints[0]
    assert "hunter3" not in str(complaints)


@pytest.mark.parametrize(
    "url", ["", "host", "http://host", "mqtt://", "mqtt://host:x", "mqtt://host/a/b", "mqtt://host/a+b"]
)
def test_an_address_that_is_no_broker_is_refused(watcher, url):
    pytest.importorskip("paho.mqtt.client", reason="MQTT needs paho-mqtt")
    with pytest.raises(ConfigError, match=r"--mqtt .*mqtt://HOST"):
        MqttSink(url, watcher, print)
