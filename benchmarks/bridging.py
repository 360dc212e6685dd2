"""A bridge of MTNM alarms from JacORB's channel to JMS, compared with publishing the same notifications.

No other Python library does the same work. The events wait in the channel before a round begins, so pushing them is not
measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from brokered import running
from mapping import alarm
from measure import Comparison, Side, SkippedError, compare

import mtosi_jms as mtosi
from mtosi_jms.bridge import (
    Bridge,
    BridgeFactory,
    BridgeOptions,
    BridgeRules,
    ExternalEndpoint,
    ExternalEndpointRole,
    FlowStyle,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge.endpoints import Channel, Grouping
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.mtnm import notification_of
from mtosi_jms.bridge.qos import qos
from mtosi_jms.broker import start_channel_process
from mtosi_jms.errors import ConfigError, MissingExtraError
from mtosi_jms.jms import JmsMessage, Topic
from mtosi_jms.notifications import Publisher
from mtosi_jms.testing import MemoryChannel
from mtosi_jms.transport import Connection

ALARMS = 2_000
IN_A_SEQUENCE = 50
TOPIC = Topic("FAULT")
NAMES = {"jms/FaultTopic": "topic:FAULT"}
PERSISTENT = mtosi.BindingProfile()
Connect = Callable[[], Connection]


def to_memory(*, quick: bool) -> Comparison:
    """A bridge to memory:, from JacORB's channel and from a channel in this process."""
    return _bridged("bridge-memory", "memory:", partial(mtosi.connect, "memory:bridging", names=NAMES), quick)


def to_artemis(*, quick: bool) -> Comparison:
    """A bridge to Artemis, over STOMP."""
    with running("artemis") as (broker, dialect):
        connect = partial(mtosi.connect, broker.endpoints.url("stomp"), names=NAMES)
        return _bridged("bridge-artemis", dialect.provider, connect, quick)


def _bridged(name: str, provider: str, connect: Connect, quick: bool) -> Comparison:
    events = [alarm(number) for number in range(ALARMS // 10 if quick else ALARMS)]
    mapped = [notification_of(event).notification for event in events]
    with ExitStack() as stack:
        publisher = Publisher(stack.enter_context(connect()), {"Fault": "jms/FaultTopic"}, sender_uri="E")
        stack.enter_context(publisher)
        jacorb = _Flow(stack, _jacorb(stack), connect, publisher, events)
        memory = _Flow(stack, MemoryChannel(), connect, publisher, events)

        def publishing() -> int:
            return sum(bool(publisher.publish(one)) for one in mapped)

        sides = [
            Side("the bridge, from JacORB's channel", "ours", jacorb.run, jacorb.prepare),
            Side("the bridge, from a channel in the process", "ours", memory.run, memory.prepare),
            Side("publishing alone", "limit", publishing),
        ]
        title = f"alarms of MTNM by a bridge to {provider}, as notifications"
        return compare(name, title, "alarms", sides, rounds=3 if quick else 7)


class _Flow:
    """Events that wait in a channel, and a bridge that forwards them."""

    def __init__(
        self, stack: ExitStack, channel: Channel, connect: Connect, publisher: Publisher, events: list[StructuredEvent]
    ) -> None:
        self._events = events
        self._bridge = _bridge(stack, channel, connect, publisher)
        self._bridge.start_bridge()
        self._sink = channel.event_sink(FlowStyle.PUSH, Grouping.SEQUENCE_EVENT)
        self._sink.connect()

    def prepare(self) -> None:
        """Push the events into the channel."""
        self._bridge.stop_bridge()
        for at in range(0, len(self._events), IN_A_SEQUENCE):
            self._sink.push(self._events[at : at + IN_A_SEQUENCE])

    def run(self) -> int:
        """Forward the events; return when JMS has them."""
        begin = self._bridge.forwarded
        self._bridge.start_bridge()
        while self._bridge.forwarded - begin < len(self._events):
            time.sleep(0.001)
        return self._bridge.forwarded - begin


def _bridge(stack: ExitStack, channel: Channel, connect: Connect, publisher: Publisher) -> Bridge:
    def mapper(event: StructuredEvent) -> Sequence[JmsMessage]:
        message = publisher.message_of(TOPIC, [notification_of(event).notification])
        return [replace(message, destination=TOPIC)]

    options = BridgeOptions(
        rules=BridgeRules(profile="mtosi"),
        qos=qos(MaximumBatchSize=IN_A_SEQUENCE, PacingInterval=500_000),
        batch=IN_A_SEQUENCE,
        mapper=mapper,
        watch=60.0,
    )
    factory = stack.enter_context(BridgeFactory({0: channel}, {"": connect}, options))
    source = ExternalEndpoint(ExternalEndpointRole.SOURCE, 0, FlowStyle.PUSH, MessageType.SEQUENCE_EVENT)
    there = JMSDestination(JMSDestinationType.TOPIC, TOPIC.name)
    sink = ExternalEndpoint(ExternalEndpointRole.SINK, there, FlowStyle.PUSH, MessageType.JMS_MESSAGE)
    return factory.create_bridge(source, sink)[0]


def _jacorb(stack: ExitStack) -> Any:
    """Start JacORB's channel in a process of its own.

    Raises:
        SkippedError: it is not available.
    """
    from mtosi_jms.bridge.corba import Orb, OrbOptions

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    try:
        service = start_channel_process(folder)
        stack.callback(service.kill)
        orb = stack.enter_context(Orb(OrbOptions(call_timeout=60.0)))
    except (ConfigError, MissingExtraError) as error:
        raise SkippedError(str(error)) from error
    return orb.channel(f"corbaloc::127.0.0.1:{service.endpoints.ports['giop']}/NotificationService")
