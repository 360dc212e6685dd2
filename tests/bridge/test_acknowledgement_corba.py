"""Acknowledgement over CORBA: a channel of JacORB's servants in a process of its own, with the specification's stubs.

JacORB's notification service does not have the interfaces of acknowledgement.
"""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import (
    Bridge,
    BridgeFactory,
    BridgeOptions,
    BridgeStatus,
    ExternalEndpoint,
    ExternalEndpointRole,
    FlowStyle,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge.events import RefusedEvent, any_of
from mtosi_jms.bridge.qos import PERSISTENT, qos
from mtosi_jms.errors import UnsupportedQoS
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import Backoff, connect

PUSH, PULL = FlowStyle.PUSH, FlowStyle.PULL
ONE, MANY = MessageType.STRUCTURED_EVENT, MessageType.SEQUENCE_EVENT
JMS = JMSDestination(JMSDestinationType.QUEUE, "q")
SOON = 60.0
RELIABLE = qos(EventReliability=PERSISTENT, ConnectionReliability=PERSISTENT, DeliveryReliability=1)
ASKED = {**RELIABLE, **qos(Retries=2, RetryInterval=2_000_000)}
STYLES = pytest.mark.parametrize("style", [PUSH, PULL], ids=lambda one: one.name)
TYPES = pytest.mark.parametrize("type", [ONE, MANY], ids=lambda one: one.name)


class Peer:
    """The process; its lines come through a queue."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=folder
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.address = self.line()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))

    def line(self) -> str:
        return self._lines.get(timeout=SOON)

    def lines(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture(scope="module")
def command(java: Anything, jacorb_jars: list[Path]) -> list[str]:
    found: list[str] = java.compiled(Path(__file__).with_name("AckChannel.java"), jacorb_jars)
    defined = ("ORBClass=org.jacorb.orb.ORB", "ORBSingletonClass=org.jacorb.orb.ORBSingleton")
    own = [f"-Dorg.omg.CORBA.{one}" for one in defined]
    return [found[0], *own, "-DOAIAddr=127.0.0.1", "-Djacorb.log.default.verbosity=0", *found[1:]]


@pytest.fixture(scope="module")
def peer(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    made = Peer(command, tmp_path_factory.mktemp("acks"))
    yield made
    made.close()


class World:
    def __init__(self, orb: Anything, peer: Peer, name: str) -> None:
        self.peer = peer
        self.url = f"memory:{name}"
        self.channel = orb.channel(peer.address)
        self.connection = connect(self.url)
        self.connection.start()
        self.session = self.connection.session()
        self.failed = threading.Event()
        self.parked: list[tuple[Anything, Exception]] = []
        self.factory: BridgeFactory | None = None

    def bridge(self, source: tuple[Anything, ...], sink: tuple[Anything, ...], **options: Anything) -> Bridge:
        chosen: dict[str, Anything] = {
            "qos": ASKED,
            "backoff": Backoff(0.05, 0.2, 0.0),
            "pacing": 0.05,
            "on_failed": lambda reason: self.failed.set(),
            "on_parked": lambda what, error: self.parked.append((what, error)),
        }
        options = {**chosen, **options}
        self.factory = BridgeFactory({-1: self.channel}, {"": partial(connect, self.url)}, BridgeOptions(**options))
        made, _ = self.factory.create_bridge(
            ExternalEndpoint(ExternalEndpointRole.SOURCE, *source), ExternalEndpoint(ExternalEndpointRole.SINK, *sink)
        )
        made.start_bridge()
        return made

    def to_jms(self, style: FlowStyle, type: MessageType = ONE, **options: Anything) -> Bridge:
        return self.bridge((-1, style, type), (JMS, PUSH, MessageType.JMS_MESSAGE), **options)

    def to_channel(self, receives: FlowStyle, sends: FlowStyle, type: MessageType = ONE) -> Bridge:
        return self.bridge((JMS, receives, MessageType.JMS_MESSAGE), (-1, sends, type))

    def send(self, *numbers: int) -> None:
        for number in numbers:
            self.session.send(Queue("q"), JmsMessage(properties={"n": number}))

    def received(self, count: int) -> list[Anything]:
        consumer = self.session.consumer(Queue("q"))
        found = []
        for _ in range(count):
            delivery = consumer.receive(SOON)
            assert delivery is not None
            delivery.acknowledge()
            found.append(delivery.message.properties["$fd_n"])
        assert consumer.receive(0) is None
        consumer.close()
        return found

    def close(self) -> None:
        if self.factory is not None:
            self.factory.close()
            assert self.peer.line() == "disconnected"
        self.connection.close()
        self.channel.close()


@pytest.fixture
def world(orb: Anything, peer: Peer, request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(orb, peer, request.node.name)
    yield made
    made.close()


@STYLES
@TYPES
@pytest.mark.obligation(
    "000-A1", "000-A2", "000-A3", "000-A4", "000-A8", "000-A10", "000-A11", "000-A12", "000-A17", "000-B3",
)  # fmt: skip
def test_a_channel_is_told_that_jms_has_its_events(world: World, style: FlowStyle, type: MessageType) -> None:
    """What comes again under its number is known, and acknowledged again."""
    world.to_jms(style, type)
    given, values = ("give 1 2", [1, 2]) if type is MANY else ("give 1", [1])
    world.peer.say(given)
    taken = 1 if style is PUSH else 0
    assert sorted(world.peer.lines(1 + taken)) == ["acknowledged 0", "taken 0"][: 1 + taken]
    assert world.received(len(values)) == values
    world.peer.say("deaf 1")
    world.peer.say("give 3")
    assert sorted(world.peer.lines(1 + taken)) == ["deaf", "taken 1"][: 1 + taken]
    if style is PUSH:
        world.peer.say("again 1")
        assert sorted(world.peer.lines(2)) == ["acknowledged 1", "taken 1"]
    else:
        assert world.peer.line() == "acknowledged 1"
    assert world.received(1) == [3]


@STYLES
@TYPES
@pytest.mark.obligation("000-EJ14", "000-A4")
def test_an_event_that_cannot_be_decoded_is_parked_in_its_place(
    world: World, style: FlowStyle, type: MessageType
) -> None:
    """With what is known of it; the others go on in order, and it is acknowledged as they are."""
    bridge = world.to_jms(style, type)
    given = [[1, -1, 2], [3]] if type is MANY else [[1], [-1], [2], [3]]
    for numbers in given:
        world.peer.say(f"give {' '.join(map(str, numbers))}")
    told = world.peer.lines(len(given) * (2 if style is PUSH else 1))
    assert [one for one in told if one.startswith("ack")] == [f"acknowledged {at}" for at in range(len(given))]
    assert world.received(3) == [1, 2, 3]
    ((event, error),) = world.parked
    assert isinstance(event, RefusedEvent)
    assert (event.domain_name, event.type_name, event.event_name) == ("d", "t", "e")
    assert [one.name for one in event.filterable_data] == ["n"]
    assert event.get("n") == any_of(-1)
    assert "deep: a value is nested deeper than 64" in str(error)
    assert bridge.get_status() is BridgeStatus.ACTIVE


@pytest.mark.obligation("000-X20")
def test_what_was_taken_too_late_is_not_taken_again(jacorb_jars: list[Path], peer: Peer) -> None:
    """The channel was told TRANSIENT while the consumer still had the event, and gives it again."""
    from mtosi_jms.bridge.corba import Orb, OrbOptions

    taken: list[Anything] = []
    told = threading.Event()

    def consumer(events: Anything) -> None:
        told.wait(SOON)
        taken.extend(one.get("n").value for one in events)

    with Orb(OrbOptions(call_timeout=30.0, answer_timeout=0.3)) as orb:
        source = orb.channel(peer.address).event_source(PUSH)
        source.connect(consumer)
        peer.say("give 1")
        assert peer.line() == "not taken 0 TRANSIENT"
        told.set()
        peer.say("again 0")
        assert peer.line() == "taken 0"
        peer.say("give 1")
        assert peer.line() == "taken 1"
        source.disconnect()
        assert peer.line() == "disconnected"
    assert taken == [1, 1]


@pytest.mark.obligation("000-A13", "000-A15", "000-X11")
def test_an_acknowledgement_that_fails_too_often(world: World) -> None:
    bridge = world.to_jms(PULL)
    world.peer.say("deaf 3")
    world.peer.say("give 1")
    assert world.peer.lines(3) == ["deaf"] * 3
    assert world.failed.wait(SOON)
    assert bridge.get_status() is BridgeStatus.INACTIVE
    bridge.stop_bridge()
    bridge.start_bridge()
    world.peer.say("again 0")
    assert world.peer.line() == "acknowledged 0"
    assert world.received(1) == [1]


@STYLES
@pytest.mark.obligation("000-A8", "000-A10", "000-A11", "000-A12", "000-A14", "000-A17", "000-B4", "000-X11")
def test_what_the_channel_does_not_acknowledge_is_pushed_again(world: World, style: FlowStyle) -> None:
    world.peer.say("silent 1")
    world.to_channel(style, PUSH)
    world.send(1)
    assert world.peer.lines(2) == ["pushed 0 1"] * 2
    world.peer.say("refuse 2")
    world.send(2)
    assert world.peer.lines(3) == ["refused 1 2", "refused 1 2", "pushed 1 2"]
    world.send(3)
    assert world.peer.line() == "pushed 2 3"


@pytest.mark.obligation("000-A8", "000-A17", "000-B4")
def test_a_sequence_has_one_number(world: World) -> None:
    world.send(1, 2, 3)
    world.peer.say("silent 1")
    world.to_channel(PULL, PUSH, MANY)
    assert world.peer.lines(2) == ["pushed 0 1+2+3"] * 2


@pytest.mark.obligation("000-A9", "000-A12", "000-A15", "000-A16", "000-X8", "000-X11")
def test_a_channel_that_never_acknowledges(world: World) -> None:
    """Delivery stops after two retries; what is started again begins where it was."""
    world.peer.say("silent 3")
    bridge = world.to_channel(PULL, PUSH)
    world.send(1)
    assert world.peer.lines(3) == ["pushed 0 1"] * 3
    assert world.failed.wait(SOON)
    assert bridge.get_status() is BridgeStatus.INACTIVE
    bridge.stop_bridge()
    bridge.start_bridge()
    assert world.peer.line() == "pushed 0 1"
    world.send(2)
    assert world.peer.line() == "pushed 1 2"


@TYPES
@pytest.mark.obligation("000-A8", "000-A10", "000-A11", "000-A12", "000-A17", "000-B4", "000-X10")
def test_what_a_channel_pulls_is_kept_until_it_acknowledges(world: World, type: MessageType) -> None:
    world.send(1, 2)
    bridge = world.to_channel(PULL, PULL, type)
    world.peer.say("pull")
    first = "pulled 0 1+2" if type is MANY else "pulled 0 1"
    assert world.peer.line() == first
    again = None
    while again in (None, "nothing", "pulled 1 2"):  # RetryInterval is to pass
        world.peer.say("pull")
        again = world.peer.line()
    assert again == first
    world.peer.say("acknowledge 0 1 99")
    assert world.peer.line() == "told"
    world.peer.say("acknowledge 0")
    assert world.peer.line() == "told"
    bridge.stop_bridge()
    left = world.session.browse(Queue("q"))
    assert [one.properties["n"] for one in left] in ([], [2])


@pytest.mark.obligation("000-C3")
def test_jacorbs_service_has_no_acknowledgement(orb: Anything, jacorb_address: str) -> None:
    channel = orb.channel(jacorb_address)
    for grouping in (ONE, MANY):
        for style in (PUSH, PULL):
            source = ExternalEndpoint(ExternalEndpointRole.SOURCE, 0, style, grouping)
            sink = ExternalEndpoint(ExternalEndpointRole.SINK, JMS, PUSH, MessageType.JMS_MESSAGE)
            factory = BridgeFactory({0: channel}, {"": partial(connect, "memory:")}, BridgeOptions(qos=RELIABLE))
            with pytest.raises(UnsupportedQoS):
                factory.create_bridge(source, sink)
    channel.close()
