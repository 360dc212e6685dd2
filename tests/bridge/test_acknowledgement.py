"""Bridges to channels that acknowledge: numbers, what is sent again, retries and their end (formal/04-10-09, 4.2)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import BridgeFactory, BridgeOptions, BridgeStatus, FlowStyle, MessageType
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.qos import number_of, qos
from mtosi_jms.errors import TransportError, UnsupportedQoS
from mtosi_jms.testing import MemoryChannel
from mtosi_jms.transport import connect

from .bridges import MANY, PULL, PUSH, RELIABLE, SOON, TYPES, World, number, to_channel, to_jms

INTERVAL = 200_000  # of 100 ns
ASKED = {**RELIABLE, **qos(Retries=2, RetryInterval=INTERVAL)}
PATIENT = {**ASKED, **qos(Retries=1_000, RetryInterval=10**9)}


class Through:
    """An end of a channel whose calls fail when a test says so, and are noted.

    `answer`: a call is done, and its answer lost; `told`: an acknowledgement of the channel's comes with the next.
    """

    def __init__(self, faults: Faults, end: Anything) -> None:
        self._faults = faults
        self._end = end

    def __getattr__(self, name: str) -> Anything:
        return getattr(self._end, name)

    def _call(self, name: str, work: Callable[[], Anything]) -> Anything:
        self._faults.meet(name)
        found = work()
        self._faults.meet("answer")
        return found

    def push(self, events: Sequence[StructuredEvent]) -> None:
        self._faults.numbers.append(number_of(events))
        self._call("push", lambda: self._end.push(events))

    def pull(self, *args: Anything, **options: Anything) -> Anything:
        return self._call("pull", lambda: self._end.pull(*args, **options))

    def acknowledge(self, numbers: Sequence[int]) -> None:
        self._call("acknowledge", lambda: self._end.acknowledge(numbers))
        self._faults.note(self._faults.acknowledged, list(numbers))

    def connect(
        self, called: Anything = None, on_lost: Anything = None, on_acknowledged: Anything = None, **how: Anything
    ) -> None:
        if on_acknowledged is None:
            self._end.connect(called, on_lost, **how)
            return

        def told(numbers: Sequence[int]) -> None:
            self._faults.held.extend(numbers)
            if not self._faults.takes("told"):
                given, self._faults.held[:] = list(self._faults.held), []
                on_acknowledged(given)
                self._faults.note(self._faults.told, given)

        def supplied(most: int, wait: bool) -> Anything:
            found = called(most, wait)
            if found:
                self._faults.note(self._faults.numbers, number_of(found))
            return found

        self._end.connect(None if called is None else supplied, on_lost, told)


class Faults:
    """A channel that acknowledges, with faults; see `Through`.

    Attributes:
        fails: by the name of a call, how often it fails from now on.
        numbers: the SequenceNumbers of what was pushed, or given to the channel where it pulls.
        acknowledged: what the bridge has acknowledged.
        told: what the channel has acknowledged.
        held: what it will acknowledge with the next.
        met: the names of the calls that failed.
    """

    def __init__(self, **options: Anything) -> None:
        self.channel = MemoryChannel("acks", queue=True, acknowledges=True, **options)
        self.fails: dict[str, int] = {}
        self.numbers: list[int | None] = []
        self.acknowledged: list[list[int]] = []
        self.held: list[int] = []
        self.met: list[str] = []
        self.told: list[list[int]] = []
        self.changed = threading.Condition()

    def __getattr__(self, name: str) -> Anything:
        return getattr(self.channel, name)

    def takes(self, name: str) -> bool:
        left = self.fails.get(name, 0)
        self.fails[name] = max(0, left - 1)
        return left > 0

    def meet(self, name: str) -> None:
        if self.takes(name):
            self.note(self.met, name)
            raise TransportError(f"no {name}")

    def note(self, where: list[Anything], what: Anything) -> None:
        with self.changed:
            where.append(what)
            self.changed.notify_all()

    def until(self, where: list[Anything], count: int) -> bool:
        """Waits until so much was noted."""
        with self.changed:
            return self.changed.wait_for(lambda: len(where) >= count, SOON)

    def event_source(self, *args: Anything, **options: Anything) -> Anything:
        return Through(self, self.channel.event_source(*args, **options))

    def event_sink(self, *args: Anything, **options: Anything) -> Anything:
        return Through(self, self.channel.event_sink(*args, **options))


class Acknowledged(World):
    """A channel that acknowledges; who pushes and pulls beside the bridge meets no faults."""

    def __init__(self, name: str) -> None:
        super().__init__(name, Faults(), qos=ASKED, pacing=0.02, watch=0.05)

    @property
    def peer(self) -> Anything:
        return self.channel.channel

    def pulled(self, count: int) -> list[Anything]:
        """The numbers of so many events, each acknowledged; there are no more."""
        source = self.peer.event_source(PULL)
        source.connect()
        found: list[Anything] = []
        while len(found) < count:
            (event,) = source.pull(timeout=SOON)
            found.append(number(event))
            source.acknowledge([number_of([event]) or 0])
        assert not source.pull(wait=False)
        source.disconnect()
        return found

    def numbers(self, count: int) -> list[Anything]:
        found = super().numbers(count)
        assert self.nothing_waits()
        return found


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = Acknowledged(request.node.name)
    yield made
    made.close()


RECEIVES = pytest.mark.parametrize("receives", [PUSH, PULL], ids=lambda one: one.name)


@RECEIVES
@pytest.mark.parametrize("fault", ["push", "told"])
@pytest.mark.obligation("000-A8", "000-A10", "000-A12", "000-A14", "000-X11")
def test_what_is_pushed_and_not_acknowledged_is_pushed_again(world: World, receives: FlowStyle, fault: str) -> None:
    """Twice for each of two messages: the count begins anew after a success. The channel has each once, in order."""
    world.bridge(to_channel(receives))
    for one in (1, 2):
        world.channel.fails = {fault: 2}
        world.send(one)
        assert world.pulled(1) == [one]
        assert world.channel.until(world.channel.told, one)
    world.send(3)
    assert world.pulled(1) == [3]
    assert world.channel.numbers == [0, 0, 0, 1, 1, 1, 2]
    assert not world.reasons


@RECEIVES
@pytest.mark.obligation("000-A11")
def test_what_is_acknowledged_is_not_pushed_again(world: World, receives: FlowStyle) -> None:
    """Though the answer to the push was lost."""
    world.channel.fails = {"answer": 1}
    world.bridge(to_channel(receives))
    world.send(1, 2)
    assert world.pulled(2) == [1, 2]
    assert (world.channel.numbers, world.channel.met) == ([0, 1], ["answer"])


@RECEIVES
@pytest.mark.parametrize("fault", ["push", "told"])
@pytest.mark.obligation("000-A9", "000-A12", "000-A15", "000-X11")
def test_when_all_retries_failed_delivery_stops_and_a_restart_goes_on(
    world: World, receives: FlowStyle, fault: str
) -> None:
    world.channel.fails = {fault: 1_000}
    bridge = world.bridge(to_channel(receives))
    world.send(1, 2)
    assert world.failed.wait(SOON)
    assert bridge.get_status() is BridgeStatus.INACTIVE
    assert world.channel.numbers == [0, 0, 0]
    assert world.reasons == ["acks: not acknowledged after 2 retries"]
    world.channel.fails = {}
    bridge.stop_bridge()
    bridge.start_bridge()
    assert world.pulled(2) == [1, 2]
    assert bridge.get_status() is BridgeStatus.ACTIVE
    assert world.channel.numbers == [0, 0, 0, 0, 1]
    assert len(world.reasons) == 1


@RECEIVES
@pytest.mark.obligation("000-A9", "000-X8")
def test_numbers_go_on_after_a_stop_and_begin_anew_with_another_connection(world: World, receives: FlowStyle) -> None:
    bridge = world.bridge(to_channel(receives))
    world.send(1)
    assert world.pulled(1) == [1]
    bridge.stop_bridge()
    bridge.start_bridge()
    world.send(2)
    assert world.pulled(1) == [2]
    world.channel.break_down()
    world.channel.recover()
    assert world.cleared.wait(SOON)
    world.send(3)
    assert world.pulled(1) == [3]
    assert world.channel.numbers == [0, 1, 0]


@pytest.mark.obligation("000-A8", "000-A10", "000-A12")
def test_a_sequence_has_one_number_and_is_acknowledged_as_a_whole(world: World) -> None:
    world.send(*range(7))
    world.channel.fails = {"told": 1}
    world.bridge(to_channel(PULL, type=MANY), batch=4)
    assert world.pulled(7) == list(range(7))
    assert world.channel.numbers == [0, 0, 1]


@pytest.mark.obligation("000-A10", "000-A11", "000-A12", "000-A14")
@TYPES
def test_what_a_channel_pulls_is_kept_until_it_acknowledges(world: World, type: MessageType) -> None:
    """An acknowledgement is late, and what it is for comes again."""
    world.channel.fails = {"told": 1}
    bridge = world.bridge(to_channel(PULL, PULL, type))
    world.send(1)
    assert world.pulled(1) == [1]
    assert world.channel.until(world.channel.told, 1)
    world.send(2, 3)
    assert world.pulled(2) == [2, 3]
    bridge.destroy()
    assert world.channel.numbers[:2] == [0, 0]
    assert world.nothing_waits()


@pytest.mark.obligation("000-A11")
def test_a_channel_that_pulls_acknowledges_several_at_once(world: World) -> None:
    world.channel.fails = {"told": 2}
    bridge = world.bridge(to_channel(PULL, PULL), qos=PATIENT)
    world.send(1, 2, 3)
    assert world.channel.until(world.channel.told, 1)
    bridge.destroy()
    assert (world.channel.told, world.channel.numbers) == ([[0, 1, 2]], [0, 1, 2])
    assert world.nothing_waits()


@pytest.mark.obligation("000-A12", "000-A15", "000-X11")
def test_a_channel_that_pulls_and_never_acknowledges_is_told_of(world: World) -> None:
    world.channel.fails = {"told": 1_000}
    bridge = world.bridge(to_channel(PULL, PULL))
    world.send(1)
    assert world.failed.wait(SOON)
    assert (bridge.get_status(), world.channel.numbers) == (BridgeStatus.INACTIVE, [0, 0, 0])
    world.channel.fails = {}
    bridge.stop_bridge()
    bridge.start_bridge()
    world.send(2)
    assert sorted(world.pulled(2)) == [1, 2]


@pytest.mark.obligation("000-A9")
def test_what_a_lost_channel_pulled_and_did_not_acknowledge_goes_to_the_next(world: World) -> None:
    world.channel.fails = {"told": 1}
    world.bridge(to_channel(PULL, PULL), qos=PATIENT)
    world.send(1)
    assert world.pulled(1) == [1]
    world.channel.break_down()
    world.channel.recover()
    assert world.cleared.wait(SOON)
    assert world.pulled(1) == [1]
    assert world.channel.numbers == [0, 0]


@pytest.mark.obligation("000-A13", "000-A14", "000-X11")
@pytest.mark.parametrize("fault", ["pull", "acknowledge"])
def test_pulls_and_acknowledgements_are_tried_again(world: World, fault: str) -> None:
    """Twice, and twice again: after a success the count has begun anew."""
    world.bridge(to_jms(PULL))
    for one in (1, 2):
        world.channel.fails = {fault: 2}
        world.push(one)
        assert world.numbers(1) == [one]
        assert world.channel.until(world.channel.acknowledged, one)
    world.push(3)
    assert world.numbers(1) == [3]
    assert (world.channel.met, world.reasons) == ([fault] * 4, [])


@pytest.mark.obligation("000-A12", "000-A13")
def test_what_a_pull_took_whose_answer_was_lost_is_given_again(world: World) -> None:
    world.channel.fails = {"answer": 1}
    world.push(1)
    world.bridge(to_jms(PULL))
    assert world.channel.until(world.channel.met, 1)
    world.channel.resend()
    assert world.numbers(1) == [1]


@pytest.mark.obligation("000-A13", "000-A15", "000-X11")
@pytest.mark.parametrize("fault", ["pull", "acknowledge"])
def test_pulling_stops_when_all_retries_failed(world: World, fault: str) -> None:
    bridge = world.bridge(to_jms(PULL))
    world.channel.fails = {fault: 1_000}
    world.push(1)
    assert world.failed.wait(SOON)
    assert bridge.get_status() is BridgeStatus.INACTIVE
    assert world.channel.met == [fault] * 3
    assert len(world.reasons) == 1
    world.channel.fails = {}
    bridge.stop_bridge()
    bridge.start_bridge()
    world.channel.resend()
    world.push(2)
    assert world.numbers(2) == [1, 2]
    bridge.destroy()
    assert world.channel.waiting() == 0


@pytest.mark.obligation("000-A13")
def test_pulls_and_acknowledgements_are_counted_each_by_itself(world: World) -> None:
    world.channel.fails = {"pull": 2, "acknowledge": 2}
    world.bridge(to_jms(PULL))
    world.push(1)
    assert world.numbers(1) == [1]
    world.push(2)
    assert world.numbers(1) == [2]
    assert (world.channel.met, world.reasons) == (["pull"] * 2 + ["acknowledge"] * 2, [])


@pytest.mark.obligation("000-A2", "000-A4", "000-A10", "000-A12")
def test_a_lost_acknowledgement_of_what_is_pushed_is_not_tried_again(world: World) -> None:
    """The channel pushes the event again, which is known, and acknowledged."""
    world.channel.fails = {"acknowledge": 1}
    bridge = world.bridge(to_jms(PUSH))
    world.push(1)
    assert world.numbers(1) == [1]
    world.push(2)
    assert world.numbers(1) == [2]
    assert world.channel.until(world.channel.acknowledged, 1)
    world.channel.resend()
    world.push(3)
    assert world.numbers(1) == [3]
    bridge.destroy()
    assert (world.channel.acknowledged, world.channel.waiting()) == ([[1], [0], [2]], 0)


@pytest.mark.obligation("000-A11", "000-T6")
def test_a_transaction_is_acknowledged_as_a_whole(world: World) -> None:
    bridge = world.bridge(to_jms(PUSH))
    bridge.enable_transaction(3, 0)
    world.push(1, 2, 3)
    assert world.numbers(3) == [1, 2, 3]
    bridge.destroy()
    assert world.channel.acknowledged == [[0, 1, 2]]


@pytest.mark.obligation("000-T6", "000-A11")
def test_a_transaction_of_jms_is_committed_when_all_of_it_is_acknowledged(world: World) -> None:
    bridge = world.bridge(to_channel(PULL, PULL))
    bridge.enable_transaction(2, 0)
    world.channel.fails = {"told": 1}
    world.send(1, 2)
    assert world.pulled(2) == [1, 2]
    bridge.destroy()
    assert world.nothing_waits()


@pytest.mark.obligation("000-A16")
def test_limits_of_the_proxy_go_before_those_of_the_channel(world: World) -> None:
    world.channel = Faults(qos=qos(Retries=0, RetryInterval=INTERVAL))
    world.channel.fails = {"push": 1_000}
    world.send(1)
    world.bridge(to_channel(PULL), qos=RELIABLE)
    assert world.failed.wait(SOON)
    assert world.channel.numbers == [0]
    world.factories[0].close()
    world.failed.clear()
    world.bridge(to_channel(PULL), qos={**RELIABLE, **qos(Retries=1)})
    assert world.failed.wait(SOON)
    assert world.channel.numbers == [0, 0, 0]


@pytest.mark.obligation("000-A6", "000-C3")
@pytest.mark.parametrize("ends", [to_jms(PUSH), to_jms(PULL)], ids=["push", "pull"])
def test_acknowledgement_that_a_channel_does_not_have(world: World, ends: Anything) -> None:
    factory = BridgeFactory({0: MemoryChannel()}, {"": partial(connect, world.url)}, BridgeOptions(qos=ASKED))
    with pytest.raises(UnsupportedQoS) as caught:
        factory.create_bridge(*ends)
    assert caught.value.names == ("DeliveryReliability",)


class WithoutIds:
    """A connection, a session or a consumer of a provider that gives messages no ids."""

    def __init__(self, made: Anything) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Anything:
        return getattr(self._made, name)

    def session(self, **options: Anything) -> Anything:
        return WithoutIds(self._made.session(**options))

    def consumer(self, *arguments: Anything, **options: Anything) -> Anything:
        return WithoutIds(self._made.consumer(*arguments, **options))

    def receive(self, timeout: float | None = None) -> Anything:
        delivery = self._made.receive(timeout)
        if delivery is not None:
            delivery.message = replace(delivery.message, message_id=None)
        return delivery


@pytest.mark.obligation("000-A8", "000-A12")
def test_messages_without_ids_are_numbered_each_by_itself(world: World) -> None:
    world.channel.fails = {"push": 1}
    world.send(1, 2, 3)
    world.bridge(to_channel(PULL), opened=lambda: WithoutIds(connect(world.url)))
    assert world.pulled(3) == [1, 2, 3]
    assert world.channel.numbers == [0, 0, 1, 2]


@pytest.mark.parametrize("qos_", [ASKED, {}], ids=["acknowledged", "plain"])
@pytest.mark.obligation("000-EJ14")
def test_one_of_a_sequence_that_cannot_be_sent_is_parked_alone(world: World, qos_: Anything) -> None:
    """A string of CORBA has no NUL, and a text of JMS may have one."""
    world.send(1)
    world.send(2, body=b"a\0b")
    world.send(3)
    world.bridge(to_channel(PULL, type=MANY), qos=qos_)
    assert world.pulled(2) == [1, 3]
    ((what, error),) = world.parked
    assert (number(what), "NUL" in str(error)) == (2, True)


@pytest.mark.obligation("000-A11")
def test_what_a_channel_pulls_and_cannot_become_an_event_is_parked(world: World) -> None:
    parked = threading.Event()
    world.send(1, body=b"\xff")
    bridge = world.bridge(to_channel(PULL, PULL), on_parked=lambda what, error: parked.set())
    assert parked.wait(SOON)
    bridge.destroy()
    assert world.nothing_waits()
