"""Peers that mean harm, or are broken: typed errors, nothing followed, and the next event comes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mtosi_jms.bridge.corba import Orb, OrbOptions
from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.bridge.events import RefusedEvent
from mtosi_jms.errors import EventError, MtosiError, ReferenceRefusedError, TransportError

from .bridges import World, to_jms
from .giop_peer import GiopPeer, Out, event, reference

Write = Callable[[Out], Out]


@pytest.fixture
def peer() -> Iterator[GiopPeer]:
    with GiopPeer() as made:
        yield made


@pytest.fixture(scope="module")
def impatient(jacorb_jars: object) -> Iterator[Any]:
    """An ORB that does not wait long."""
    with Orb(OrbOptions(call_timeout=1.5, connect_timeout=1.0)) as orb:
        yield orb


def test_a_peer_that_behaves(impatient: Any, peer: GiopPeer) -> None:
    source = impatient.channel(peer.address).event_source(FlowStyle.PULL)
    source.connect()
    assert source.pull(wait=False)[0].get("odd").value == 5


def test_a_proxy_at_another_host_is_not_followed(impatient: Any, peer: GiopPeer) -> None:
    with GiopPeer("127.0.0.3") as other:
        peer.answers["_get_default_consumer_admin"] = reference(other.host, other.port)
        channel = impatient.channel(peer.address)
        with pytest.raises(ReferenceRefusedError, match=r"127\.0\.0\.3") as caught:
            channel.event_source(FlowStyle.PULL)
        assert (caught.value.host, caught.value.port, other.connections) == (other.host, other.port, 0)


def test_a_host_that_was_named_is_followed(jacorb_jars: object, peer: GiopPeer) -> None:
    with GiopPeer("127.0.0.3") as other, Orb(OrbOptions(hosts=(other.host,))) as orb:
        peer.answers["_get_default_consumer_admin"] = reference(other.host, other.port)
        orb.channel(peer.address).event_source(FlowStyle.PULL)
        assert other.asked[-1] == "get_qos"


def test_a_request_is_not_forwarded_to_another_host(impatient: Any, peer: GiopPeer) -> None:
    with GiopPeer("127.0.0.4") as other:
        channel = impatient.channel(peer.address)
        peer.forward_to = (other.host, other.port)
        with pytest.raises(MtosiError):
            channel.event_source(FlowStyle.PULL)
        assert not channel.is_alive()
        assert other.connections == 0


def test_a_peer_that_never_answers(impatient: Any, peer: GiopPeer) -> None:
    channel = impatient.channel(peer.address)
    source = channel.event_source(FlowStyle.PULL)
    source.connect()
    peer.answers["try_pull_structured_event"] = None
    with pytest.raises(TransportError, match="TIMEOUT"):
        source.pull(timeout=60)


@pytest.mark.parametrize("answer", [lambda out: out, lambda out: out.raw(b"\xff" * 5), lambda out: out.ulong(2**31)])
def test_an_answer_that_is_none(impatient: Any, peer: GiopPeer, answer: Write) -> None:
    source = impatient.channel(peer.address).event_source(FlowStyle.PULL)
    source.connect()
    peer.answers["try_pull_structured_event"] = answer
    with pytest.raises((TransportError, EventError)):
        source.pull(wait=False)


def encapsulated(*numbers: int, named: bool = True) -> bytes:
    out = Out().raw(b"\0")
    if named:
        out.string("IDL:test/T:1.0").string("T")
    return out.ulong(*numbers).data


def nested(depth: int) -> bytes:
    """The parameters of a sequence of sequences."""
    inner = encapsulated(3, 0, named=False)
    for _ in range(depth):
        inner = Out().raw(b"\0").ulong(19).octets(inner).ulong(0).data
    return inner


def value_of_java(name: str) -> Write:
    """A valuetype that names a class of Java's, with a code base."""

    def write(out: Out) -> Out:
        kind = Out().raw(b"\0").string(f"RMI:{name}:1").string("V").raw(struct.pack(">h", 0)).ulong(0, 0).data
        out.ulong(29).octets(kind)
        return out.ulong(0x7FFFFF03).string("http://127.0.0.1:1/x").string(f"RMI:{name}:1").ulong(0, 0)

    return write


HOSTILE: dict[str, Write] = {
    "octets of 2^32": lambda out: out.ulong(19).octets(encapsulated(10, 0, named=False)).ulong(0xFFFFFFFF),
    "longs of 2^31": lambda out: out.ulong(19).octets(encapsulated(3, 0, named=False)).ulong(0x7FFFFFFF),
    "string of 2^31": lambda out: out.ulong(18, 0, 0x7FFFFFFF),
    "struct of 2^24 members": lambda out: out.ulong(15).octets(encapsulated(1 << 24)),
    "sequences nested too deep": lambda out: out.ulong(19).octets(nested(80)).ulong(0),
    "sequences nested very deep": lambda out: out.ulong(19).octets(nested(3_000)).ulong(0),
    "a TypeCode in itself": lambda out: (
        out.ulong(19).octets(Out().raw(b"\0").ulong(0xFFFFFFFF).raw(struct.pack(">i", -16)).ulong(0).data).ulong(0)
    ),
    "no kind of TypeCode": lambda out: out.ulong(0xFFFE),
    "a value of Java's": value_of_java("java.util.HashMap"),
    "a value of nobody's": value_of_java("test.Nothing"),
    "an abstract interface": lambda out: out.ulong(32).octets(encapsulated()).raw(b"\0").ulong(0),
    "a principal": lambda out: out.ulong(13).octets(b"me"),
}


@pytest.mark.parametrize("any", HOSTILE.values(), ids=HOSTILE)
def test_events_that_are_refused(impatient: Any, peer: GiopPeer, any: Write) -> None:
    source = impatient.channel(peer.address).event_source(FlowStyle.PULL)
    source.connect()
    good = peer.answers["try_pull_structured_event"]
    peer.answers["try_pull_structured_event"] = event(any)
    with pytest.raises(EventError):
        source.pull(wait=False)
    peer.answers["try_pull_structured_event"] = good
    assert source.pull(wait=False)[0].get("odd").value == 5


def pushed(out: Out, *events: Write) -> Out:
    """The argument of a push: an event, or those of a sequence."""
    if len(events) > 1:
        out.ulong(len(events))
    for write in events:
        out.string("d").string("t").string("e").ulong(0, 2).string("n")
        out.ulong(3, 7).string("odd")
        write(out).ulong(0)
    return out


def good(out: Out) -> Out:
    return out.ulong(3, 5)


@pytest.mark.obligation("000-EJ14")
def test_events_that_are_pushed_and_refused_are_parked(impatient: Any, peer: GiopPeer) -> None:
    """With what is known of them, whether JacORB can read them or not; what comes before and after them goes on."""
    world = World("hostile", impatient.channel(peer.address))
    bridge = world.bridge(to_jms())
    for bad in HOSTILE.values():
        for one in (good, bad):
            assert peer.consumers[0].call("push_structured_event", lambda out, one=one: pushed(out, one)) == 0
    assert bridge.forwarded == len(world.received(len(HOSTILE))) == len(HOSTILE)
    assert world.nothing_waits()
    world.close()
    assert len(world.parked) == len(HOSTILE)
    for event_, error in world.parked:
        assert isinstance(event_, RefusedEvent)
        assert (event_.domain_name, event_.type_name, event_.event_name) == ("d", "t", "e")
        assert [one.name for one in event_.filterable_data] == ["n"]
        assert "odd: " in str(error)


@pytest.mark.parametrize(("name", "left"), [("a principal", 2), ("no kind of TypeCode", 1)])
def test_a_sequence_with_an_event_that_is_refused(impatient: Any, peer: GiopPeer, name: str, left: int) -> None:
    """Where the bytes do not even say how long it is, what follows it cannot be found, and is told of."""
    found: list[Any] = []
    source = impatient.channel(peer.address).event_source(FlowStyle.PUSH, Grouping.SEQUENCE_EVENT)
    source.connect(found.extend, keep_refused=True)
    events = [good, HOSTILE[name], *[good] * left]
    assert peer.consumers[0].call("push_structured_events", lambda out: pushed(out, *events)) == 0
    assert [isinstance(one, RefusedEvent) for one in found] == [False, True]
    assert f"so {left} events after it cannot be found" in str(found[1].error)


def test_a_consumer_that_fails_for_an_event_that_is_refused_is_told_again(impatient: Any, peer: GiopPeer) -> None:
    told: list[Any] = []

    def consumer(events: Any) -> None:
        told.extend(events)
        if len(told) == 1:
            raise RuntimeError("disk full")

    source = impatient.channel(peer.address).event_source(FlowStyle.PUSH)
    source.connect(consumer, keep_refused=True)
    statuses = [
        peer.consumers[0].call("push_structured_event", lambda out: pushed(out, HOSTILE["no kind of TypeCode"]))
        for _ in range(2)
    ]
    assert statuses == [2, 0]
    assert told[0] == told[1]


def test_a_consumer_that_does_not_want_to_know(impatient: Any, peer: GiopPeer) -> None:
    found: list[Any] = []
    source = impatient.channel(peer.address).event_source(FlowStyle.PUSH)
    source.connect(found.extend)
    for write, status in (
        (good, 0),
        (HOSTILE["no kind of TypeCode"], 2),
        (HOSTILE["an abstract interface"], 2),
        (good, 0),
    ):
        assert peer.consumers[0].call("push_structured_event", lambda out, one=write: pushed(out, one)) == status
    assert [one.get("n").value for one in found] == [7, 7]


def test_a_text_in_another_charset_is_not_lost(impatient: Any, peer: GiopPeer) -> None:
    source = impatient.channel(peer.address).event_source(FlowStyle.PULL)
    source.connect()
    peer.answers["try_pull_structured_event"] = event(lambda out: out.ulong(18, 0).string("Störung".encode("latin-1")))
    found = source.pull(wait=False)[0].get("odd")
    assert found is not None
    assert found.value == "Störung"


@pytest.mark.obligation("000-A11", "000-A17")
def test_a_channel_that_takes_acknowledgements(impatient: Any, peer: GiopPeer) -> None:
    source = impatient.channel(peer.address).event_source(FlowStyle.PULL)
    source.connect()
    assert source.acknowledges
    source.acknowledge([0, 1])
    assert peer.asked[-1] == "acknowledge"
