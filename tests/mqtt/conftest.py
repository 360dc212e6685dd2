"""Devices that talk MQTT, by paho's client, and the JMS side of the same broker."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from queue import Queue as Waiting
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess
from mtosi_jms.jms import JmsMessage, Topic
from mtosi_jms.transport import Connection, Session, connect

mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed")
from paho.mqtt.packettypes import PacketTypes  # noqa: E402
from paho.mqtt.properties import Properties  # noqa: E402

PATIENCE = 20.0
HOST = "127.0.0.1"
VERSIONS = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311, "5": mqtt.MQTTv5}
KEPT_SECONDS = 3_600
_numbers = itertools.count(1)


class Device:
    """A client of MQTT.

    Args:
        broker: which one it talks to.
        name: its client id.
        version: of the protocol, a key of `VERSIONS`.
        keeps: whether its subscriptions outlive its connection.
    """

    def __init__(self, broker: BrokerProcess, name: str, *, version: str = "3.1.1", keeps: bool = False) -> None:
        self.version = version
        told, got = self._told, self._got = Waiting[Any](), Waiting[Any]()
        options: dict[str, Any] = {} if version == "5" else {"clean_session": not keeps}
        self._client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, name, protocol=VERSIONS[version], reconnect_on_failure=False, **options
        )
        self._client.username_pw_set(broker.endpoints.user, broker.endpoints.password)
        # Nothing here refers to the device: a client that is in no cycle closes its sockets when it is dropped.
        self._client.on_connect = lambda client, data, flags, code, properties: told.put(not code.is_failure)
        self._client.on_disconnect = lambda *_: told.put(False)
        self._client.on_subscribe = lambda client, data, number, codes, properties: told.put(codes)
        self._client.on_unsubscribe = lambda client, data, number, codes, properties: told.put(codes)
        self._client.on_message = lambda client, data, message: got.put(message)
        more: dict[str, Any] = {}
        if version == "5":
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = KEPT_SECONDS if keeps else 0
            more = {"clean_start": not keeps, "properties": properties}
        self._client.connect(HOST, broker.endpoints.ports["mqtt"], **more)
        self._client.loop_start()
        self.is_connected: bool = self._told.get(timeout=PATIENCE)

    def publish(self, topic: str, payload: bytes, qos: int = 1, *, retain: bool = False, **properties: object) -> None:
        """Returns when the broker has it; for QoS 0 when it is sent."""
        more: dict[str, Any] = {}
        if properties:
            more["properties"] = Properties(PacketTypes.PUBLISH)
            for name, value in properties.items():
                setattr(more["properties"], name, value)
        self._client.publish(topic, payload, qos, retain, **more).wait_for_publish(PATIENCE)

    def subscribe(self, *filters: str, qos: int = 2) -> list[int]:
        """The QoS that the broker grants for each."""
        self._client.subscribe(
            [(one, mqtt.SubscribeOptions(qos=qos) if self.version == "5" else qos) for one in filters]
        )
        return [code.value for code in self._told.get(timeout=PATIENCE)]

    def unsubscribe(self, topic: str) -> None:
        """Returns when the broker has done it."""
        self._client.unsubscribe(topic)
        self._told.get(timeout=PATIENCE)

    def receive(self) -> Any:
        """The next message, as paho has it."""
        return self._got.get(timeout=PATIENCE)

    def close(self) -> None:
        """Says DISCONNECT, and is gone."""
        self._client.disconnect()
        self._client.loop_stop()


class Bench:
    """A broker with devices on one side and JMS on the other. `kind`: `activemq` or `artemis`. `broker`: it. `session`:
    of JMS, over STOMP."""

    def __init__(self, kind: str, broker: BrokerProcess) -> None:
        self.kind, self.broker = kind, broker
        self._devices: list[Device] = []
        self._connection: Connection = connect(broker.endpoints.url("stomp"), client_id=self.name())
        self._connection.start()
        self.session: Session = self._connection.session()

    @property
    def connection(self) -> Connection:
        """The one of `session`."""
        return self._connection

    def name(self) -> str:
        """One that nobody else has."""
        return f"t{os.getpid()}n{next(_numbers)}"

    def device(self, name: str | None = None, **options: Any) -> Device:
        """One that is connected, or was refused; it is closed at the end."""
        self._devices.append(Device(self.broker, name or self.name(), **options))
        return self._devices[-1]

    def topic(self) -> tuple[str, Topic]:
        """One that nobody else has: its name in MQTT, and as JMS has it."""
        name = self.name()
        return f"MTOSI/{name}", Topic(f"MTOSI.{name}")

    def send(self, topic: Topic, body: bytes = b"<a/>", **options: Any) -> None:
        """A message of JMS."""
        self.session.send(topic, JmsMessage(body=body, **options))

    def close(self) -> None:
        """Ends all."""
        for device in self._devices:
            device.close()
        self._connection.close()


@pytest.fixture
def make_bench(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Bench]]:
    """Makes one at a broker by its kind."""
    made: list[Bench] = []

    def make(kind: str) -> Bench:
        broker: BrokerProcess = request.getfixturevalue(kind)
        made.append(Bench(kind, broker))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture(params=["activemq", "artemis"])
def bench(request: pytest.FixtureRequest, make_bench: Callable[[str], Bench]) -> Bench:
    """Both brokers in turn."""
    return make_bench(request.param)


@pytest.fixture
def take() -> Callable[[Any], JmsMessage]:
    """Receives from a consumer of JMS."""

    def receive(consumer: Any) -> JmsMessage:
        delivery = consumer.receive(PATIENCE)
        assert delivery is not None
        delivery.acknowledge()
        return delivery.message  # type: ignore[no-any-return]

    return receive
