"""Endpoints of bridges, and a provider and a channel with bridges between them."""

from __future__ import annotations

import threading
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import (
    LOSS_CLEARED,
    Bridge,
    BridgeFactory,
    BridgeOptions,
    ExternalEndpoint,
    ExternalEndpointRole,
    FlowStyle,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge.endpoints import Channel, EventSource
from mtosi_jms.bridge.events import Property, StructuredEvent, any_of
from mtosi_jms.bridge.qos import PERSISTENT, qos
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.errors import TransportError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import Backoff, Connection, connect

PUSH, PULL = FlowStyle.PUSH, FlowStyle.PULL
SOURCE, SINK = ExternalEndpointRole.SOURCE, ExternalEndpointRole.SINK
ONE, MANY = MessageType.STRUCTURED_EVENT, MessageType.SEQUENCE_EVENT
QUEUE = JMSDestination(JMSDestinationType.QUEUE, "q")
RELIABLE = qos(EventReliability=PERSISTENT, ConnectionReliability=PERSISTENT, DeliveryReliability=1)
SOON = 60.0
STYLES = pytest.mark.parametrize("style", [PUSH, PULL], ids=lambda one: one.name)
TYPES = pytest.mark.parametrize("type", [ONE, MANY], ids=lambda one: one.name)
Ends = tuple[ExternalEndpoint, ExternalEndpoint]


def jms(role: ExternalEndpointRole, style: FlowStyle = PUSH) -> ExternalEndpoint:
    return ExternalEndpoint(role, QUEUE, style, MessageType.JMS_MESSAGE)


def channel_end(role: ExternalEndpointRole, style: FlowStyle = PUSH, type: MessageType = ONE) -> ExternalEndpoint:
    return ExternalEndpoint(role, 0, style, type)


def to_jms(style: FlowStyle = PUSH, type: MessageType = ONE) -> Ends:
    return channel_end(SOURCE, style, type), jms(SINK)


def to_channel(receives: FlowStyle = PUSH, sends: FlowStyle = PUSH, type: MessageType = ONE) -> Ends:
    return jms(SOURCE, receives), channel_end(SINK, sends, type)


def address(service: BrokerProcess) -> str:
    """Where the event channel factory of a notification service is."""
    return f"corbaloc::127.0.0.1:{service.endpoints.ports['giop']}/NotificationService"


def event(number: int, **header: Anything) -> StructuredEvent:
    fields = tuple(Property(name, value) for name, value in qos(**header).items())
    return StructuredEvent("d", "t", variable_header=fields, filterable_data=(Property("n", any_of(number)),))


def number(one: StructuredEvent | JmsMessage) -> Anything:
    """The number of an event, or of the message that it became or came from."""
    if isinstance(one, JmsMessage):
        return one.properties.get("$fd_n", one.properties.get("n"))
    found = one.get("n")
    return None if found is None else found.value


class World:
    """A provider, a channel, and bridges between them. `defaults`: options of the bridges.

    Attributes:
        broken: whether no connection can be opened.
        opened: the connections of the bridges.
        losses: what bridges told of losses; `cleared`: set when one was over.
        reasons: why bridges failed; `failed`: set when one did.
        parked: what bridges left out, and the errors.
    """

    def __init__(self, name: str, channel: Channel, **defaults: Anything) -> None:
        self.url = f"memory:{name}"
        self.channel: Anything = channel
        self.connection: Connection = connect(self.url)
        self.connection.start()
        self.session = self.connection.session()
        self.broken = False
        self.opened: list[Connection] = []
        self.losses: list[str] = []
        self.cleared = threading.Event()
        self.reasons: list[str] = []
        self.failed = threading.Event()
        self.parked: list[tuple[Anything, Exception]] = []
        self.factories: list[BridgeFactory] = []
        self._defaults: dict[str, Anything] = {
            "backoff": Backoff(0.01, 0.02, 0.0),
            "pacing": 0.05,
            "on_loss": self._lose,
            "on_failed": self._fail,
            "on_parked": lambda what, error: self.parked.append((what, error)),
            **defaults,
        }

    def _lose(self, what: str, reason: str) -> None:
        self.losses.append(what)
        if what == LOSS_CLEARED:
            self.cleared.set()

    def _fail(self, reason: str) -> None:
        self.reasons.append(reason)
        self.failed.set()

    @property
    def peer(self) -> Anything:
        """The channel, as those know it that push and pull beside the bridges."""
        return self.channel

    def open(self) -> Connection:
        if self.broken:
            raise TransportError("the provider is down")
        made = connect(self.url)
        self.opened.append(made)
        return made

    def break_provider(self) -> None:
        self.broken = True
        for one in self.opened:
            one.close()

    def factory(self, *, opened: Anything = None, **options: Anything) -> BridgeFactory:
        """A factory of bridges; `opened`: how they connect, else by `open`."""
        chosen = BridgeOptions(**{**self._defaults, **options})
        self.factories.append(BridgeFactory({0: self.channel}, {"": opened or self.open}, chosen))
        return self.factories[-1]

    def stopped(self, ends: Ends, **options: Anything) -> Bridge:
        """A bridge that is not started."""
        return self.factory(**options).create_bridge(*ends)[0]

    def bridge(self, ends: Ends, **options: Anything) -> Bridge:
        """A started bridge."""
        made = self.stopped(ends, **options)
        made.start_bridge()
        return made

    def send(self, *numbers: int, **fields: Anything) -> None:
        """Sends numbered messages."""
        for one in numbers:
            self.session.send(Queue("q"), JmsMessage(properties={"n": one}, **fields))

    def received(self, count: int, name: str = "q") -> list[JmsMessage]:
        """So many messages, each acknowledged."""
        consumer = self.session.consumer(Queue(name))
        found = []
        for _ in range(count):
            delivery = consumer.receive(SOON)
            assert delivery is not None, f"{len(found)} of {count} messages came"
            delivery.acknowledge()
            found.append(delivery.message)
        consumer.close()
        return found

    def numbers(self, count: int) -> list[Anything]:
        """The numbers of so many messages."""
        return [number(one) for one in self.received(count)]

    def nothing_waits(self) -> bool:
        return self.session.browse(Queue("q")) == []

    def push(self, *events: StructuredEvent | int) -> None:
        """Pushes events, or numbered ones."""
        sink = self.peer.event_sink()
        sink.connect()
        sink.push([event(one) if isinstance(one, int) else one for one in events])
        sink.disconnect()

    def pulled(self, count: int) -> list[Anything]:
        """The numbers of so many events, from a source that connects now."""
        source: EventSource = self.peer.event_source(PULL)
        source.connect()
        found = [number(one) for _ in range(count) for one in source.pull(timeout=SOON)]
        source.disconnect()
        return found

    def close(self) -> None:
        for one in self.factories:
            one.close()
        self.connection.close()
        self.channel.close()
