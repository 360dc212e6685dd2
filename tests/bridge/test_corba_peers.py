"""Java programs as peers, with the stubs of the specification: a channel that acknowledges, and a client of bridges.

JacORB's notification service does not have the interfaces of acknowledgement.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import BridgeFactory, BridgeOptions, BridgeStatus, FlowStyle, MessageType
from mtosi_jms.bridge.corba import Orb, OrbOptions
from mtosi_jms.bridge.endpoints import Grouping
from mtosi_jms.bridge.events import RefusedEvent, StructuredEvent, any_of
from mtosi_jms.bridge.qos import qos
from mtosi_jms.errors import UnsupportedQoS
from mtosi_jms.jms import Queue
from mtosi_jms.testing import MemoryChannel
from mtosi_jms.transport import Backoff, connect

from ..processes import Program
from .bridges import MANY, ONE, PULL, PUSH, RELIABLE, SOON, STYLES, TYPES, World, event, number, to_channel, to_jms
from .ems import with_orb

ASKED = {**RELIABLE, **qos(Retries=2, RetryInterval=2_000_000)}


@pytest.fixture(scope="module")
def command(java: Anything, jacorb_jars: list[Path]) -> list[str]:
    return with_orb(java.compiled(Path(__file__).with_name("AckChannel.java"), jacorb_jars))


class Served(World):
    """A channel of the program's."""

    def __init__(self, orb: Anything, program: Program, address: str, name: str) -> None:
        backoff = Backoff(0.05, 0.2, 0.0)
        super().__init__(name, orb.channel(address), qos=ASKED, backoff=backoff)
        self.program = program

    def numbers(self, count: int) -> list[Anything]:
        found = super().numbers(count)
        assert self.nothing_waits()
        return found

    def close(self) -> None:
        for one in self.factories:
            one.close()
            assert self.program.line() == "disconnected"
        super().close()


@pytest.fixture(scope="module")
def peer(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, str]]:
    """The program, and its address."""
    with Program(command, cwd=tmp_path_factory.mktemp("acks")) as program:
        yield program, program.line()


@pytest.fixture
def world(orb: Anything, peer: tuple[Program, str], request: pytest.FixtureRequest) -> Iterator[Served]:
    made = Served(orb, *peer, request.node.name)
    yield made
    made.close()


@STYLES
@TYPES
@pytest.mark.obligation(
    "000-A1", "000-A2", "000-A3", "000-A4", "000-A8", "000-A10", "000-A11", "000-A12", "000-A17", "000-B3",
)  # fmt: skip
def test_a_channel_is_told_that_jms_has_its_events(world: Served, style: FlowStyle, type: MessageType) -> None:
    """What comes again under its number is known, and acknowledged again."""
    world.bridge(to_jms(style, type))
    given, values = ("give 1 2", [1, 2]) if type is MANY else ("give 1", [1])
    world.program.say(given)
    taken = 1 if style is PUSH else 0
    assert sorted(world.program.lines(1 + taken)) == ["acknowledged 0", "taken 0"][: 1 + taken]
    assert world.numbers(len(values)) == values
    world.program.say("deaf 1")
    world.program.say("give 3")
    assert sorted(world.program.lines(1 + taken)) == ["deaf", "taken 1"][: 1 + taken]
    if style is PUSH:
        world.program.say("again 1")
        assert sorted(world.program.lines(2)) == ["acknowledged 1", "taken 1"]
    else:
        assert world.program.line() == "acknowledged 1"
    assert world.numbers(1) == [3]


@STYLES
@TYPES
@pytest.mark.obligation("000-EJ14", "000-A4")
def test_an_event_that_cannot_be_decoded_is_parked_in_its_place(
    world: Served, style: FlowStyle, type: MessageType
) -> None:
    """With what is known of it; the others go on in order, and it is acknowledged as they are."""
    bridge = world.bridge(to_jms(style, type))
    given = [[1, -1, 2], [3]] if type is MANY else [[1], [-1], [2], [3]]
    for numbers in given:
        world.program.say(f"give {' '.join(map(str, numbers))}")
    told = world.program.lines(len(given) * (2 if style is PUSH else 1))
    assert [one for one in told if one.startswith("ack")] == [f"acknowledged {at}" for at in range(len(given))]
    assert world.numbers(3) == [1, 2, 3]
    ((event, error),) = world.parked
    assert isinstance(event, RefusedEvent)
    assert (event.domain_name, event.type_name, event.event_name) == ("d", "t", "e")
    assert [one.name for one in event.filterable_data] == ["n"]
    assert event.get("n") == any_of(-1)
    assert "deep: a value is nested deeper than 64" in str(error)
    assert bridge.get_status() is BridgeStatus.ACTIVE


@pytest.mark.obligation("000-X20")
def test_what_was_taken_too_late_is_not_taken_again(jacorb_jars: list[Path], peer: tuple[Program, str]) -> None:
    """The channel was told TRANSIENT while the consumer still had the event, and gives it again."""
    program, address = peer
    taken: list[Anything] = []
    told = threading.Event()

    def consumer(events: Anything) -> None:
        told.wait(SOON)
        taken.extend(map(number, events))

    with Orb(OrbOptions(call_timeout=30.0, answer_timeout=0.3)) as orb:
        source = orb.channel(address).event_source(PUSH)
        source.connect(consumer)
        program.say("give 1")
        assert program.line() == "not taken 0 TRANSIENT"
        told.set()
        program.say("again 0")
        assert program.line() == "taken 0"
        program.say("give 1")
        assert program.line() == "taken 1"
        source.disconnect()
        assert program.line() == "disconnected"
    assert taken == [1, 1]


@pytest.mark.parametrize("grouping", Grouping, ids=lambda one: one.name)
def test_what_was_given_too_late_is_given_again(
    jacorb_jars: list[Path], peer: tuple[Program, str], grouping: Grouping
) -> None:
    """The channel was told TRANSIENT while the supplier still looked for events."""
    program, address = peer
    told = threading.Event()
    numbers = count(1)

    def supplier(most: int, wait: bool) -> list[StructuredEvent]:
        told.wait(SOON)
        return [event(next(numbers)) for _ in range(most)]

    with Orb(OrbOptions(call_timeout=30.0, answer_timeout=0.3)) as orb:
        sink = orb.channel(address).event_sink(PULL, grouping)
        sink.connect(supplier)
        program.say("pull")
        assert program.line() == "not pulled TRANSIENT"
        told.set()
        for expected in ("1+2", "3+4") if grouping is Grouping.SEQUENCE_EVENT else "12":
            program.say("pull")
            assert program.line() == f"pulled -1 {expected}"
        sink.disconnect()
        assert program.line() == "disconnected"


@STYLES
@pytest.mark.obligation("000-A8", "000-A10", "000-A11", "000-A12", "000-A14", "000-A17", "000-B4", "000-X11")
def test_what_the_channel_does_not_acknowledge_is_pushed_again(world: Served, style: FlowStyle) -> None:
    world.program.say("silent 1")
    world.bridge(to_channel(style, PUSH))
    world.send(1)
    assert world.program.lines(2) == ["pushed 0 1"] * 2
    world.program.say("refuse 2")
    world.send(2)
    assert world.program.lines(3) == ["refused 1 2", "refused 1 2", "pushed 1 2"]
    world.send(3)
    assert world.program.line() == "pushed 2 3"


@TYPES
@pytest.mark.obligation("000-A8", "000-A10", "000-A11", "000-A12", "000-A17", "000-B4", "000-X10")
def test_what_a_channel_pulls_is_kept_until_it_acknowledges(world: Served, type: MessageType) -> None:
    world.send(1, 2)
    bridge = world.bridge(to_channel(PULL, PULL, type))
    world.program.say("pull")
    first = "pulled 0 1+2" if type is MANY else "pulled 0 1"
    assert world.program.line() == first
    again = None
    while again in (None, "nothing", "pulled 1 2"):  # RetryInterval is to pass
        world.program.say("pull")
        again = world.program.line()
    assert again == first
    world.program.say("acknowledge 0 1 99")
    assert world.program.line() == "told"
    world.program.say("acknowledge 0")
    assert world.program.line() == "told"
    bridge.stop_bridge()
    assert list(map(number, world.session.browse(Queue("q")))) in ([], [2])


@pytest.mark.obligation("000-C3")
def test_jacorbs_service_has_no_acknowledgement(orb: Anything, jacorb_address: str) -> None:
    channel = orb.channel(jacorb_address)
    factory = BridgeFactory({0: channel}, {"": partial(connect, "memory:")}, BridgeOptions(qos=RELIABLE))
    for grouping in (ONE, MANY):
        for style in (PUSH, PULL):
            with pytest.raises(UnsupportedQoS):
                factory.create_bridge(*to_jms(style, grouping))
    channel.close()


SAID = """\
made 0 of 1
status 1
ALARMS
0
status 0
BridgeAlreadyStarted
status 1
BridgeInactive
InvalidExternalEndPoints 0
BridgeNotFound
left 0
"""


@pytest.mark.obligation(
    "000-B9", "000-B10", "000-B11", "000-B12", "000-B16", "000-B17", "000-B19", "000-B20", "000-B21", "000-B23",
    "000-X15", "ENC7",
)  # fmt: skip
def test_a_java_client_handles_bridges(orb: Any, java: Any, jacorb_jars: list[Path], tmp_path: Path) -> None:
    command = java.compiled(Path(__file__).with_name("BridgeClient.java"), jacorb_jars)
    factory = BridgeFactory({0: MemoryChannel()}, {"": lambda: connect("memory:")})
    try:
        ior = orb.offer(factory)
        done = subprocess.run([*with_orb(command), ior], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    finally:
        factory.close()
    assert (done.stdout, done.returncode) == (SAID, 0), done.stderr
