"""The bridge between a channel in the process and `memory:`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import (
    LOSS_CLEARED,
    LOSS_OCCURRED,
    BridgeOptions,
    BridgeRules,
    BridgeStatus,
    EventLoss,
    FlowStyle,
    MessageType,
)
from mtosi_jms.bridge.endpoints import Grouping
from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.bridge.filters import to_etcl
from mtosi_jms.bridge.omg import message_of
from mtosi_jms.bridge.qos import qos
from mtosi_jms.errors import (
    BridgeAlreadyStarted,
    BridgeInactive,
    BridgeNotFound,
    ConfigError,
    IllegalStateError,
    InvalidExternalEndPoints,
    MessageRefusedError,
    TransactionActive,
    TransactionAlreadyActive,
    TransportError,
    UnsupportedQoS,
    UnsupportedTransaction,
)
from mtosi_jms.jms import DUPLICATE_ID, DeliveryMode, JmsMessage, Queue
from mtosi_jms.jms.selector import parse
from mtosi_jms.spool import Outbox
from mtosi_jms.testing import InterceptedConnection, MemoryChannel
from mtosi_jms.transport import Connection, connect

from .bridges import (
    MANY,
    PULL,
    PUSH,
    QUEUE,
    RELIABLE,
    SINK,
    SOON,
    SOURCE,
    STYLES,
    TYPES,
    World,
    channel_end,
    event,
    jms,
    number,
    to_channel,
    to_jms,
)


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.node.name, MemoryChannel("channel", queue=True))
    yield made
    made.close()


class Counting(MemoryChannel):
    """A channel that notes which proxies it has made."""

    def __init__(self, name: str, **options: Anything) -> None:
        super().__init__(name, **options)
        self.made: list[tuple[str, FlowStyle, Grouping]] = []

    def event_source(
        self, style: FlowStyle, grouping: Grouping = Grouping.STRUCTURED_EVENT, **more: Anything
    ) -> Anything:
        self.made.append(("source", style, grouping))
        return super().event_source(style, grouping, **more)

    def event_sink(
        self, style: FlowStyle = PUSH, grouping: Grouping = Grouping.STRUCTURED_EVENT, **more: Anything
    ) -> Anything:
        self.made.append(("sink", style, grouping))
        return super().event_sink(style, grouping, **more)


@pytest.mark.obligation("000-B13")
@STYLES
def test_making_a_bridge_makes_its_proxies(world: World, style: FlowStyle) -> None:
    """Of the style and grouping that the endpoints say, before the bridge starts; the start makes no others."""
    world.channel.close()
    world.channel = made = Counting("counting", queue=True)
    bridge = world.stopped(to_jms(style, MANY))
    assert made.made == [("source", style, Grouping.SEQUENCE_EVENT)]
    bridge.start_bridge()
    assert len(made.made) == 1
    world.stopped(to_channel(PULL, style))
    assert made.made[1:] == [("sink", style, Grouping.STRUCTURED_EVENT)]


@pytest.mark.obligation("000-B10", "000-B11", "000-B12", "000-B14", "000-B21")
def test_the_factory(world: World) -> None:
    factory = world.factory()
    source, sink = to_jms()
    first, first_id = factory.create_bridge(source, sink)
    second, second_id = factory.create_bridge(*to_channel())
    assert first_id != second_id
    assert factory.get_all_bridges() == [first_id, second_id]
    assert factory.get_bridge_with_id(second_id) is second
    assert (first.end_point_receiver, first.end_point_sender) == (source, sink)
    assert first.get_status() is BridgeStatus.INACTIVE
    with pytest.raises(AttributeError):
        first.end_point_sender = source  # type: ignore[misc]
    first.destroy()
    with pytest.raises(BridgeNotFound) as caught:
        factory.get_bridge_with_id(first_id)
    assert caught.value.bridge_id == first_id


@pytest.mark.obligation("000-B9")
def test_endpoints_that_the_factory_does_not_know(world: World) -> None:
    source = replace(channel_end(SOURCE), connector=9)
    sink = replace(jms(SINK), connector=replace(QUEUE, factory_name="other"))
    with pytest.raises(InvalidExternalEndPoints) as caught:
        world.factory().create_bridge(source, sink)
    assert caught.value.errors == (("SOURCE", "INVALID_CHANNELID"), ("SINK", "INVALID_JMSDESTINATION"))


class Lossy(InterceptedConnection):
    """A connection whose transport has lost the provider, and makes it again."""

    there = True

    @property
    def is_up(self) -> bool:
        return self.there


@pytest.mark.parametrize("towards", ["JMS", "channel"])
@pytest.mark.obligation("CON6")
def test_a_bridge_that_has_lost_jms_is_not_active(world: World, towards: str) -> None:
    ends = to_jms() if towards == "JMS" else to_channel()
    lossy: list[Lossy] = []

    def open_lossy() -> Connection:
        lossy.append(Lossy(world.open()))
        return lossy[-1]

    bridge = world.bridge(ends, opened=open_lossy)
    assert bridge.get_status() is BridgeStatus.ACTIVE
    lossy[-1].there = False
    assert bridge.get_status() is BridgeStatus.INACTIVE
    lossy[-1].there = True
    assert bridge.get_status() is BridgeStatus.ACTIVE


@pytest.mark.parametrize("towards", ["JMS", "channel"])
@pytest.mark.obligation("000-B15", "000-B16", "000-B17", "000-B19", "000-B20", "000-X8", "000-X9")
def test_the_life_of_a_bridge(world: World, towards: str) -> None:
    ends = to_jms() if towards == "JMS" else to_channel()
    bridge = world.stopped(ends)

    give, taken = (world.push, world.numbers) if towards == "JMS" else (world.send, world.pulled)
    with pytest.raises(BridgeInactive):
        bridge.stop_bridge()
    bridge.start_bridge()
    assert bridge.get_status() is BridgeStatus.ACTIVE
    with pytest.raises(BridgeAlreadyStarted):
        bridge.start_bridge()
    give(1)
    assert taken(1) == [1]
    bridge.stop_bridge()
    assert bridge.get_status() is BridgeStatus.INACTIVE
    give(2)
    with pytest.raises(BridgeInactive):
        bridge.stop_bridge()
    if towards == "JMS":
        assert world.channel.waiting() == 1
        assert world.nothing_waits()
    else:
        assert world.channel.waiting() == 0
    bridge.start_bridge()
    assert taken(1) == [2]
    bridge.destroy()
    bridge.destroy()
    for use in (bridge.start_bridge, bridge.stop_bridge, bridge.get_status, bridge.disable_transaction):
        with pytest.raises(IllegalStateError):
            use()
    assert all(one is not None for one in world.opened)


@pytest.mark.parametrize("towards", ["JMS", "JMS pulled", "channel", "channel asked", "channel pulls"])
@pytest.mark.obligation("000-B15", "000-B18")
def test_a_lost_channel_is_told_and_found_again(world: World, towards: str) -> None:
    ends = {
        "JMS": to_jms(),
        "JMS pulled": to_jms(PULL),
        "channel": to_channel(),
        "channel asked": to_channel(PULL, type=MANY),
        "channel pulls": to_channel(PULL, PULL),
    }[towards]
    bridge = world.bridge(ends)
    world.channel.break_down()
    if not towards.startswith("JMS"):
        world.send(7)
    assert bridge.get_status() is BridgeStatus.INACTIVE
    world.channel.recover()
    assert world.cleared.wait(SOON)
    assert world.losses == [LOSS_OCCURRED, LOSS_CLEARED]
    if towards.startswith("JMS"):
        world.push(7)
        assert world.numbers(1) == [7]
    else:
        assert world.pulled(1) == [7]
    assert bridge.get_status() is BridgeStatus.ACTIVE


def lost(loss: EventLoss) -> Sequence[JmsMessage]:
    """A message of a loss, for the queue of the world."""
    return [JmsMessage(properties={"n": f"{loss.source} {'over' if loss.over else 'begins'}"})]


@STYLES
@pytest.mark.parametrize("stored", [False, True], ids=["sent", "outbox"])
def test_jms_is_told_of_losses_between_the_events(world: World, style: FlowStyle, stored: bool, tmp_path: Path) -> None:
    with ExitStack() as stack:
        outbox = stack.enter_context(Outbox(tmp_path)) if stored else None
        bridge = world.stopped(to_jms(style), loss_mapper=lost, outbox=outbox, watch=0.1)
        stack.callback(bridge.destroy)
        bridge.start_bridge()
        world.push(1)
        assert world.numbers(1) == [1]
        bridge.tell_loss(EventLoss(source="EMS", over=False, reason="it says so"))
        world.channel.break_down()
        began = world.received(2)
        world.channel.recover()
        assert world.cleared.wait(SOON)
        bridge.tell_loss(EventLoss(source="EMS", over=True, reason="it says so"))
        rest = world.received(1)
        world.push(2)
        rest += world.received(1)
    assert [number(one) for one in began] == ["EMS begins", "channel begins"]
    assert [number(one) for one in rest] == ["EMS over", 2]  # that of the channel was not the last
    assert world.losses == [LOSS_OCCURRED, LOSS_OCCURRED, LOSS_CLEARED, LOSS_CLEARED]
    assert len({one.properties[DUPLICATE_ID] for one in began + rest}) == 4


def test_jms_is_told_of_a_loss_when_it_is_there_again(world: World) -> None:
    bridge = world.bridge(to_jms(), loss_mapper=lost, watch=0.02, patience=0.05)
    world.break_provider()
    bridge.tell_loss(EventLoss(source="EMS", over=False, reason="it says so"))
    world.push(1)
    bridge.tell_loss(EventLoss(source="EMS", over=True, reason="it says so"))
    world.broken = False
    found = world.numbers(3)
    assert sorted(found, key=str) == [1, "EMS begins", "EMS over"]
    assert found.index("EMS begins") < min(found.index("EMS over"), found.index(1))
    bridge.destroy()


def test_a_loss_without_a_message(world: World) -> None:
    for ends in (to_jms(), to_channel()):
        bridge = world.bridge(ends)
        bridge.tell_loss(EventLoss(source="EMS", over=False, reason="it says so"))
        bridge.destroy()
    assert world.losses == [LOSS_OCCURRED] * 2
    assert world.nothing_waits()


@STYLES
@pytest.mark.obligation("000-B18", "000-T4")
def test_nothing_is_lost_where_the_provider_is_down(world: World, style: FlowStyle) -> None:
    bridge = world.bridge(to_jms(style), patience=0.05)
    world.break_provider()
    assert bridge.get_status() is BridgeStatus.INACTIVE
    for one in range(5):
        world.push(one)
    world.broken = False
    assert world.numbers(5) == list(range(5))


def test_a_source_of_jms_that_is_lost_is_opened_again(world: World) -> None:
    world.bridge(to_channel(PULL))
    world.opened[0].close()
    world.send(1)
    assert world.pulled(1) == [1]
    assert len(world.opened) == 2


NAMED = StructuredEvent("tmf_mtnm", "NT_ALARM", filterable_data=(Property("notificationId", any_of("1")),))
UNNAMED = replace(NAMED, filterable_data=(Property("notificationId", any_of("")),))


class Watched:
    """A connection, or a session of it. `sending`: is called before each message, and may raise; `committed`: after
    each commit."""

    def __init__(
        self, inner: Anything, sending: Callable[[JmsMessage], object], committed: Callable[[], object] = list
    ) -> None:
        self._inner = inner
        self._sending = sending
        self._committed = committed

    def session(self, **options: Anything) -> Anything:
        return Watched(self._inner.session(**options), self._sending, self._committed)

    def send(self, to: Anything, message: JmsMessage, *arguments: Anything, **options: Anything) -> Anything:
        self._sending(message)
        return self._inner.send(to, message, *arguments, **options)

    def commit(self) -> None:
        self._inner.commit()
        self._committed()

    def __getattr__(self, name: str) -> Anything:
        return getattr(self._inner, name)


def no_threes(message: JmsMessage) -> None:
    if number(message) == 3:
        raise MessageRefusedError("no threes")


def ids(found: list[JmsMessage]) -> list[Anything]:
    return [one.properties[DUPLICATE_ID] for one in found]


@STYLES
@pytest.mark.parametrize("event_", [NAMED, UNNAMED], ids=["named", "unnamed"])
@pytest.mark.obligation("000-X20")
def test_what_comes_again_has_its_id_and_what_is_equal_another(
    world: World, style: FlowStyle, event_: StructuredEvent
) -> None:
    """The channel gives all four again where the third was refused and it pushes: two went before, in a transaction.

    Those that name themselves alike are one event.
    """
    sent = itertools.count(1)

    def sending(_: JmsMessage) -> None:
        if next(sent) == 3:
            raise TransportError("not this one")

    def opened() -> Anything:
        return Watched(connect(world.url), sending)

    world.push(event_, event_, event_, event_)
    world.bridge(to_jms(style, MANY), opened=opened, patience=0.0, batch=2)
    found = ids(world.received(6 if style is PUSH else 4))
    if style is PUSH:
        assert found[:2] == found[2:4]
    assert len(set(found)) == (1 if event_ is NAMED else 4)
    world.push(event_)
    assert (ids(world.received(1))[0] in found) is (event_ is NAMED)


@pytest.mark.obligation("000-X20")
def test_an_event_that_names_itself_has_its_id_after_a_crash_too(world: World) -> None:
    """One that does not gets an id of its own: it may be another event."""
    found = []
    for _ in range(2):
        bridge = world.bridge(to_jms())
        world.push(NAMED, UNNAMED)
        found.append(ids(world.received(2)))
        bridge.destroy()
    (named, unnamed), (named_again, other) = found
    assert named == named_again
    assert unnamed != other


@pytest.mark.parametrize("reliability", [0, 1])
def test_messages_have_ids_whatever_their_delivery_mode(world: World, reliability: int) -> None:
    world.bridge(to_jms())
    world.push(event(1, EventReliability=reliability))
    (found,) = world.received(1)
    assert found.delivery_mode is (DeliveryMode.PERSISTENT if reliability else DeliveryMode.NON_PERSISTENT)
    assert found.properties[DUPLICATE_ID]


@pytest.mark.obligation("000-A10", "000-X20")
def test_a_sequence_number_is_no_part_of_the_id(world: World) -> None:
    """A channel that acknowledges gives what it kept another number, over another connection."""
    world.channel = MemoryChannel("acks", queue=True, acknowledges=True)
    found = []
    for before in ([event(0)], []):
        bridge = world.bridge(to_jms())
        world.push(*before, NAMED)
        messages = world.received(len(before) + 1)
        found.append((messages[-1].properties["$ohf_SequenceNumber"], messages[-1].properties[DUPLICATE_ID]))
        bridge.destroy()
    assert [number_ for number_, _ in found] == [1, 0]
    assert found[0][1] == found[1][1]


def test_a_batch_goes_in_transactions(world: World) -> None:
    done: list[str] = []

    def opened() -> Anything:
        return Watched(world.open(), lambda _: done.append("send"), lambda: done.append("commit"))

    bridge = world.stopped(to_jms(PULL, MANY), opened=opened, batch=4)
    world.push(*range(10, 20))
    bridge.start_bridge()
    assert world.numbers(10) == list(range(10, 20))
    assert done == [*["send"] * 4, "commit", *["send"] * 4, "commit", *["send"] * 2, "commit"]


@STYLES
def test_one_of_a_batch_is_refused_and_the_others_go_on(world: World, style: FlowStyle) -> None:
    bridge = world.stopped(to_jms(style, MANY), opened=lambda: Watched(world.open(), no_threes))
    world.push(*range(6))
    bridge.start_bridge()
    assert world.numbers(5) == [0, 1, 2, 4, 5]
    assert [(number(what), str(error)) for what, error in world.parked] == [(3, "no threes")]
    assert world.nothing_waits()


@pytest.mark.obligation("000-EJ14")
def test_what_cannot_become_a_message_is_parked_and_the_others_go_on(world: World) -> None:
    bad = replace(event(1), variable_header=(Property("EventReliability", any_of("x")),))
    world.bridge(to_jms())
    world.push(0, bad, 2)
    assert world.numbers(2) == [0, 2]
    assert [what for what, _ in world.parked] == [bad]
    assert "EventReliability" in str(world.parked[0][1])


def test_a_message_that_cannot_become_an_event_is_parked(world: World) -> None:
    world.bridge(to_channel())
    world.session.send(Queue("q"), JmsMessage(body=b"\xff"))
    world.send(1)
    assert world.pulled(1) == [1]
    assert [what.body for what, _ in world.parked] == [b"\xff"]


def test_the_outbox_takes_events_while_the_provider_is_down(world: World, tmp_path: Path) -> None:
    world.broken = True
    with Outbox(tmp_path) as outbox:
        bridge = world.bridge(to_jms(), outbox=outbox)
        assert bridge.get_status() is BridgeStatus.ACTIVE
        world.push(*range(20))
        world.broken = False
        assert world.numbers(20) == list(range(20))
        with pytest.raises(UnsupportedTransaction):
            bridge.enable_transaction(2, 0)
        bridge.destroy()


def test_a_mapper_chooses_messages_and_destinations(world: World) -> None:
    def twice(one: StructuredEvent) -> list[JmsMessage]:
        made = message_of(one)
        assert made is not None
        return [made, replace(made, destination=Queue("other"))]

    world.bridge(to_jms(), mapper=twice)
    world.push(1)
    (first,) = world.received(1)
    (other,) = world.received(1, "other")
    assert other.properties[DUPLICATE_ID] != first.properties[DUPLICATE_ID]


@pytest.mark.obligation("003-4")
def test_filters_at_the_channel_and_selectors_at_jms(world: World) -> None:
    world.bridge(to_jms(), constraint=to_etcl(parse("n BETWEEN 3 AND 5")))
    world.push(*range(9))
    assert world.numbers(3) == [3, 4, 5]


def test_a_selector_at_jms(world: World) -> None:
    world.bridge(to_channel(), selector="n > 1")
    world.send(*range(4))
    assert world.pulled(2) == [2, 3]


@pytest.mark.parametrize(
    "asked",
    [qos(ConnectionReliability=0), qos(OrderPolicy=0), {"Colour": Any(TypeCode.of(TCKind.long), 1)}],
    ids=lambda one: next(iter(one)),
)
@pytest.mark.obligation("000-C3", "000-Q2")
def test_quality_of_service_that_the_tables_do_not_have(world: World, asked: Anything) -> None:
    with pytest.raises(UnsupportedQoS):
        world.factory(qos=asked).create_bridge(*to_jms())


@pytest.mark.obligation("000-A1", "000-A2", "000-A3", "000-A4", "000-A8", "000-A10", "000-A12")
@STYLES
@TYPES
def test_events_are_acknowledged_and_known_when_they_come_again(
    world: World, style: FlowStyle, type: MessageType
) -> None:
    world.channel = MemoryChannel("acks", queue=True, acknowledges=True)
    bridge = world.bridge(to_jms(style, type), qos=RELIABLE)
    world.push(*range(10))
    assert world.numbers(10) == list(range(10))
    world.channel.resend()
    world.push(10)
    assert world.numbers(1) == [10]
    bridge.destroy()
    assert world.channel.waiting() == 0


@pytest.mark.obligation("000-T3", "000-T6", "000-T7")
def test_transactions_towards_jms(world: World) -> None:
    bridge = world.stopped(to_jms())
    bridge.enable_transaction(3, 0)
    with pytest.raises(TransactionAlreadyActive):
        bridge.enable_transaction(3, 0)
    bridge.start_bridge()
    world.push(*range(7))
    assert world.numbers(6) == list(range(6))
    assert world.nothing_waits()
    with pytest.raises(TransactionActive):
        bridge.disable_transaction()
    assert world.numbers(1) == [6]
    bridge.disable_transaction()
    world.push(7)
    assert world.numbers(1) == [7]


@pytest.mark.obligation("000-T1", "000-T4", "000-T6")
def test_a_transaction_that_is_lost_goes_again(world: World) -> None:
    bridge = world.stopped(to_jms())
    bridge.enable_transaction(3, 0)
    bridge.start_bridge()
    world.push(0, 1)
    world.push(2)
    assert len(world.received(3)) == 3
    world.push(3, 4)
    world.break_provider()
    world.broken = False
    world.push(5)
    assert sorted(world.numbers(3)) == [3, 4, 5]


@pytest.mark.obligation("000-T6")
def test_a_transaction_whose_time_is_over(world: World) -> None:
    bridge = world.stopped(to_jms())
    bridge.enable_transaction(100, 0.05)
    bridge.start_bridge()
    world.push(0, 1)
    assert world.numbers(2) == [0, 1]


@pytest.mark.obligation("000-T3", "000-T6", "000-T7")
def test_transactions_from_jms(world: World) -> None:
    bridge = world.stopped(to_channel(PULL, PULL))
    bridge.enable_transaction(2, 0)
    bridge.start_bridge()
    world.send(*range(4))
    assert world.pulled(4) == list(range(4))
    bridge.destroy()
    assert world.nothing_waits()


@pytest.mark.parametrize("ends", [to_jms(PULL), to_channel(), to_channel(PULL)])
@pytest.mark.obligation("000-T3")
def test_other_configurations_have_no_transactions(world: World, ends: Anything) -> None:
    with pytest.raises(UnsupportedTransaction):
        world.stopped(ends).enable_transaction(1, 0)


@pytest.mark.parametrize("numbers", [(0, 0), (1, -1)])
def test_transactions_of_nothing(world: World, numbers: tuple[int, int]) -> None:
    with pytest.raises(UnsupportedTransaction):
        world.stopped(to_jms()).enable_transaction(*numbers)


@pytest.mark.parametrize("option", [{"batch": 0}, {"pacing": 0}, {"patience": -1}, {"watch": 0}], ids=str)
def test_options_out_of_range(option: dict[str, Anything]) -> None:
    with pytest.raises(ConfigError):
        BridgeOptions(**option)


@pytest.mark.obligation("000-EJ14", "000-X20")
def test_two_bridges_carry_events_there_and_back(world: World) -> None:
    """Nothing is lost; an event may come twice, under one id, and exactly once is never claimed."""
    back = World("other", MemoryChannel("back", queue=True))
    world.bridge(to_jms(), rules=BridgeRules())
    back.bridge(to_channel(), opened=world.open)
    sent = [event(one, Priority=7, EventReliability=1) for one in range(5)]
    world.push(*sent)
    source = back.channel.event_source(PULL)
    source.connect()
    found = [one for _ in sent for one in source.pull(timeout=SOON)]
    back.close()
    assert [(one.get("n"), one.variable_header) for one in found] == [
        (one.get("n"), one.variable_header) for one in sent
    ]
