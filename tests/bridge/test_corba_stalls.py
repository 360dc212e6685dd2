"""A channel that stands still, and connections to it that are cut: nothing is lost, and the order is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bridge import (
    LOSS_CLEARED,
    LOSS_OCCURRED,
    BridgeFactory,
    BridgeOptions,
    ExternalEndpoint,
    ExternalEndpointRole,
    FlowStyle,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge.endpoints import Grouping
from mtosi_jms.bridge.events import Property, StructuredEvent, any_of
from mtosi_jms.broker import BrokerProcess, free_ports, start_channel_process
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import Backoff, connect

SOON = 60.0
JMS = JMSDestination(JMSDestinationType.QUEUE, "q")
SOURCE, SINK = ExternalEndpointRole.SOURCE, ExternalEndpointRole.SINK


class Notes:
    """What a bridge tells of losses, or what a consumer is given."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self._changed = threading.Condition()

    def lose(self, what: str, reason: str) -> None:
        self._add([what])

    def take(self, events: Any) -> None:
        self._add([one.get("n").value for one in events])

    def _add(self, what: list[Any]) -> None:
        with self._changed:
            self.told += what
            self._changed.notify_all()

    def until(self, what: Any, count: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.told.count(what) >= count, SOON), self.told


@pytest.fixture
def port() -> int:
    """Where the service listens."""
    return free_ports(1)[0]


@pytest.fixture
def way(make_proxy: Callable[..., Any], jacorb_jars: list[Path], port: int) -> Any:
    """The way to the service: its references lead here."""
    return make_proxy(port, listen_in=False)


@pytest.fixture
def service(way: Any, port: int, tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {"jacorb.ior_proxy_host": "127.0.0.1", "jacorb.ior_proxy_port": way.port}
    process = start_channel_process(tmp_path / "service", port, settings=settings)
    yield process
    process.kill()


@pytest.fixture
def patient(jacorb_jars: list[Path]) -> Iterator[Any]:
    """An ORB that does not wait long."""
    from mtosi_jms.bridge.corba import Orb, OrbOptions

    with Orb(OrbOptions(call_timeout=1.0, connect_timeout=1.0)) as made:
        yield made


def address(port: int) -> str:
    return f"corbaloc::127.0.0.1:{port}/NotificationService"


def event(number: int) -> StructuredEvent:
    return StructuredEvent("d", "t", filterable_data=(Property("n", any_of(number)),))


def bridge(url: str, channel: Any, there: ExternalEndpoint, here: ExternalEndpoint, losses: Notes) -> BridgeFactory:
    options = BridgeOptions(on_loss=losses.lose, watch=0.2, pacing=0.2, backoff=Backoff(0.05, 0.2, 0.0))
    factory = BridgeFactory({0: channel}, {"": partial(connect, url)}, options)
    made, _ = factory.create_bridge(there, here)
    made.start_bridge()
    return factory


def test_a_channel_that_stands_still_loses_nothing(patient: Any, orb: Any, service: BrokerProcess) -> None:
    url, losses = "memory:stalls", Notes()
    source = ExternalEndpoint(SOURCE, 0, FlowStyle.PUSH, MessageType.SEQUENCE_EVENT)
    sink = ExternalEndpoint(SINK, JMS, FlowStyle.PUSH, MessageType.JMS_MESSAGE)
    where = address(service.endpoints.ports["giop"])
    pushing = orb.channel(where).event_sink(grouping=Grouping.SEQUENCE_EVENT)
    pushing.connect()
    with connect(url) as connection, bridge(url, patient.channel(where), source, sink, losses):
        connection.start()
        consumer = connection.session().consumer(Queue("q"))
        for number in range(2):
            pushing.push([event(n) for n in range(number * 100, number * 100 + 100)])
            service.pause()
            losses.until(LOSS_OCCURRED, number + 1)
            service.resume()
            losses.until(LOSS_CLEARED, number + 1)
        pushing.push([event(200)])
        numbers = []
        for _ in range(201):
            delivery = consumer.receive(SOON)
            assert delivery is not None, len(numbers)
            delivery.acknowledge()
            numbers.append(delivery.message.properties["$fd_n"])
    assert numbers == list(range(201))


@pytest.mark.parametrize("how", ["cut", pytest.param("stalled", marks=pytest.mark.endurance)])
def test_messages_go_on_over_bad_connections(
    patient: Any, orb: Any, way: Any, service: BrokerProcess, how: str
) -> None:
    """Something may come twice: what was pushed when the answer was lost."""
    url, losses = f"memory:{how}", Notes()
    taken = Notes()  # the channel calls here by another way
    orb.channel(address(way.port)).event_source(FlowStyle.PUSH).connect(taken.take)
    source = ExternalEndpoint(SOURCE, JMS, FlowStyle.PULL, MessageType.JMS_MESSAGE)
    sink = ExternalEndpoint(SINK, 0, FlowStyle.PUSH, MessageType.STRUCTURED_EVENT)
    with connect(url) as connection, bridge(url, patient.channel(address(way.port)), source, sink, losses):
        session = connection.session()
        for number in range(4):
            for n in range(number * 50, number * 50 + 50):
                session.send(Queue("q"), JmsMessage(properties={"n": n}))
            taken.until(number * 50 + 10)
            if how == "cut":
                way.cut()
            else:
                way.stall(to_client=True)
                losses.until(LOSS_OCCURRED, number + 1)
                way.flow()
                losses.until(LOSS_CLEARED, number + 1)
        taken.until(199)
    assert list(dict.fromkeys(taken.told)) == list(range(200))
