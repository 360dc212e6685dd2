"""A bounded embedded provider: senders wait for room, or are refused, and nothing is lost either way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError, ResourceLimitError, SendTimeoutError
from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport import AckMode
from mtosi_jms.transport.memory import MemoryConnection
from mtosi_jms.transport.memory import _session as sessions

from ..waiting import PATIENCE, background
from .conftest import numbered, opened, until_memory_blocks

QUEUE = Queue("bounded")


@pytest.fixture(autouse=True)
def _no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that waits is woken when there is room: it must not need its look at what expired meanwhile."""
    monkeypatch.setattr(sessions, "_EXPIRY_LOOK", 600.0)


@pytest.fixture
def bounded() -> Iterator[MemoryConnection]:
    with opened(capacity=2) as connection:
        yield connection


def test_a_sender_waits_until_a_message_is_taken(bounded: MemoryConnection) -> None:
    sender = bounded.session()
    sender.send(QUEUE, numbered(1))
    sender.send(QUEUE, numbered(2))
    third = background(lambda: sender.send(QUEUE, numbered(3)))
    until_memory_blocks(sender)
    assert bounded.provider.depth(QUEUE) == 2
    consumer = bounded.session().consumer(QUEUE)
    assert [consumer.receive(PATIENCE).message.body for _ in range(3)] == [b"1", b"2", b"3"]
    assert third.result(PATIENCE).message_id.startswith("ID:")


def test_a_full_destination_refuses_after_the_send_timeout() -> None:
    with opened(capacity=1, send_timeout=0) as connection:
        session = connection.session()
        session.send(QUEUE, numbered(1))
        with pytest.raises(ResourceLimitError, match="queue:bounded: full with 1 messages"):
            session.send(QUEUE, numbered(2))
        session.send(Queue("another"), numbered(3))
        assert connection.provider.depth(QUEUE) == 1


def test_expiry_makes_room() -> None:
    clock = ManualClock(1_000)
    with opened(clock=clock, capacity=1, send_timeout=0) as connection:
        session = connection.session()
        session.send(QUEUE, JmsMessage(body=b"old", time_to_live_ms=500))
        clock.advance(1)
        session.send(QUEUE, numbered(2))
        assert connection.session().consumer(QUEUE).receive(0).message.body == b"2"


def test_expiry_lets_a_sender_go_on_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody tells it: it looks again."""
    monkeypatch.setattr(sessions, "_EXPIRY_LOOK", 0.01)
    clock = ManualClock(1_000)
    with opened(clock=clock, capacity=1) as connection:
        session = connection.session()
        session.send(QUEUE, JmsMessage(time_to_live_ms=500))
        waiting = background(lambda: session.send(QUEUE, numbered(2)))
        until_memory_blocks(session)
        clock.advance(1)
        assert waiting.result(PATIENCE).message_id


@pytest.mark.parametrize("transacted", [False, True], ids=["send", "commit"])
def test_closing_wakes_a_sender_that_waits(bounded: MemoryConnection, transacted: bool) -> None:
    for number in range(2):
        bounded.session().send(QUEUE, numbered(number))
    sender = bounded.session(transacted=transacted)
    if transacted:
        sender.send(QUEUE, numbered(2))
    waiting = background(sender.commit if transacted else lambda: sender.send(QUEUE, numbered(2)))
    until_memory_blocks(sender)
    sender.close()
    with pytest.raises(IllegalStateError, match="closed"):
        waiting.result(PATIENCE)
    assert bounded.provider.depth(QUEUE) == 2


@pytest.mark.parametrize("durable", [None, "away"], ids=["slow", "durable and away"])
def test_a_subscription_holds_its_publishers_until_it_ends(bounded: MemoryConnection, durable: str | None) -> None:
    topic, session, publisher = Topic("bounded"), bounded.session(), bounded.session()
    slow = session.consumer(topic, durable=durable)
    if durable:
        slow.close()
    for number in range(2):
        publisher.send(topic, numbered(number))
    third = background(lambda: publisher.send(topic, numbered(2)))
    until_memory_blocks(publisher)
    if durable:
        session.unsubscribe(durable)
    else:
        slow.close()
    assert third.result(PATIENCE).body == b"2"


class TestTransactions:
    """What a transaction sends goes at commit, all at once; so it is commit that waits for room."""

    def test_commit_waits_until_there_is_room_for_all(self, bounded: MemoryConnection) -> None:
        bounded.session().send(QUEUE, numbered(0))
        session = bounded.session(transacted=True)
        for number in (1, 2):
            session.send(QUEUE, numbered(number))
        assert bounded.provider.depth(QUEUE) == 1
        done = background(session.commit)
        until_memory_blocks(session)
        assert bounded.provider.depth(QUEUE) == 1
        consumer = bounded.session().consumer(QUEUE)
        assert consumer.receive(0).message.body == b"0"
        done.result(PATIENCE)
        assert [consumer.receive(0).message.body for _ in range(2)] == [b"1", b"2"]

    def test_one_that_is_larger_than_the_capacity_waits_until_nothing_is_there(self, bounded: MemoryConnection) -> None:
        session = bounded.session(transacted=True)
        for number in range(5):
            session.send(QUEUE, numbered(number))
        session.commit()
        assert bounded.provider.depth(QUEUE) == 5

    def test_without_room_in_time_all_is_rolled_back(self) -> None:
        with opened(capacity=1, send_timeout=0) as connection:
            connection.session().send(QUEUE, numbered(0))
            other = Queue("other")
            session = connection.session(transacted=True)
            consumer = session.consumer(other)
            connection.session().send(other, numbered(1))
            assert consumer.receive(0) is not None
            session.send(other, numbered(2))
            session.send(QUEUE, numbered(3))
            with pytest.raises(ResourceLimitError, match="queue:bounded"):
                session.commit()
            again = consumer.receive(0)
            assert again is not None
            assert (again.message.body, again.message.redelivered) == (b"1", True)
            session.commit()
            assert (connection.provider.depth(other), connection.provider.depth(QUEUE)) == (0, 1)

    def test_a_destination_that_goes_meanwhile_rolls_it_back(self, bounded: MemoryConnection) -> None:
        other = MemoryConnection(bounded.provider)
        temporary = other.session().temporary_queue()
        for number in range(2):
            bounded.session().send(temporary, numbered(number))
        session = bounded.session(transacted=True)
        session.send(temporary, numbered(2))
        done = background(session.commit)
        until_memory_blocks(session)
        other.close()
        with pytest.raises(InvalidDestinationError):
            done.result(PATIENCE)


class TestSubscriptions:
    TOPIC = Topic("bounded")

    def test_what_a_selector_leaves_out_takes_no_room(self) -> None:
        with opened(capacity=1, send_timeout=0) as connection:
            session = connection.session()
            consumer = session.consumer(self.TOPIC, "n = 1")
            for number in (0, 0, 1):
                session.send(self.TOPIC, JmsMessage(properties={"n": number}))
            with pytest.raises(ResourceLimitError):
                session.send(self.TOPIC, JmsMessage(properties={"n": 1}))
            assert consumer.receive(0) is not None


def test_a_listener_that_waits_for_room_does_not_hold_up_close(bounded: MemoryConnection) -> None:
    full, errors = Queue("full"), []
    sender = bounded.session()
    for number in range(2):
        sender.send(full, numbered(number))
    session = bounded.session(AckMode.AUTO)
    session.consumer(QUEUE).listen(
        lambda delivery: session.send(full, delivery.message), lambda error, _: errors.append(error)
    )
    sender.send(QUEUE, numbered(2))
    until_memory_blocks(session)
    session.close()
    assert [type(error) for error in errors] == [IllegalStateError]
    assert bounded.provider.depth(QUEUE) == 1


def received(connection: MemoryConnection, count: int, patience: float) -> list[int]:
    with connection.session() as session:
        consumer = session.consumer(QUEUE)
        found = []
        for _ in range(count):
            delivery = consumer.receive(patience)
            assert delivery is not None
            delivery.acknowledge()
            found.append(int(delivery.message.body))
        return found


@pytest.mark.obligation("A6", "A12")
class TestAsynchronous:
    """The outcome waits for room, the sender does not."""

    def test_the_completion_waits_for_room_and_the_sender_does_not(self, bounded: MemoryConnection) -> None:
        session = bounded.session()
        futures = [session.send_async(QUEUE, numbered(number)) for number in range(5)]
        assert [future.done() for future in futures] == [True, True, False, False, False]
        assert bounded.provider.depth(QUEUE) == 2
        assert received(bounded, 5, PATIENCE) == [0, 1, 2, 3, 4]
        assert [int(future.result(PATIENCE).body) for future in futures] == [0, 1, 2, 3, 4]

    @pytest.mark.obligation("A11")
    def test_a_waiting_send_comes_after_those_that_wait_for_room(self, bounded: MemoryConnection) -> None:
        session = bounded.session()
        for number in range(4):
            session.send_async(QUEUE, numbered(number))
        fifth = background(lambda: session.send(QUEUE, numbered(4)))
        until_memory_blocks(session)
        assert received(bounded, 5, PATIENCE) == [0, 1, 2, 3, 4]
        assert fifth.result(PATIENCE).body == b"4"

    @pytest.mark.obligation("A16", "A19")
    def test_closing_finishes_what_waits_for_room(self, bounded: MemoryConnection) -> None:
        session = bounded.session()
        futures = [session.send_async(QUEUE, numbered(number)) for number in range(4)]
        closing = background(session.close)
        assert received(bounded, 4, PATIENCE) == [0, 1, 2, 3]
        closing.result(PATIENCE)
        assert all(future.done() for future in futures)
        with pytest.raises(IllegalStateError, match="closed"):
            session.send_async(QUEUE, numbered(9))

    @pytest.mark.obligation("A8")
    def test_no_room_within_the_send_timeout_is_a_failure(self) -> None:
        with opened(capacity=2, send_timeout=0) as connection:
            session = connection.session()
            futures = [session.send_async(QUEUE, numbered(number)) for number in range(3)]
            assert isinstance(futures[2].exception(PATIENCE), ResourceLimitError)
            assert received(connection, 2, PATIENCE) == [0, 1]
            assert session.send(QUEUE, numbered(3)).body == b"3"

    @pytest.mark.obligation("A8", "AX6")
    def test_what_timed_out_is_not_sent_any_more(self) -> None:
        """Nobody reads: closing goes on all the same, and room that comes later is not for what failed."""
        with opened(0.05, capacity=2) as connection:
            session = connection.session()
            futures = [session.send_async(QUEUE, numbered(number)) for number in range(4)]
            session.close()
            assert [type(future.exception(PATIENCE)) for future in futures[2:]] == [SendTimeoutError] * 2
            assert received(connection, 2, PATIENCE) == [0, 1]
            connection.session().send(QUEUE, numbered(5))
            assert received(connection, 1, PATIENCE) == [5]

    @pytest.mark.obligation("A8")
    def test_a_destination_that_goes_fails_what_waits_for_it(self, bounded: MemoryConnection) -> None:
        with MemoryConnection(bounded.provider) as other:
            temporary = other.session().temporary_queue()
            session = bounded.session()
            futures = [session.send_async(temporary, numbered(number)) for number in range(3)]
        assert isinstance(futures[2].exception(PATIENCE), InvalidDestinationError)

    def test_another_destination_waits_its_turn(self, bounded: MemoryConnection) -> None:
        """One order for the whole session."""
        session, other = bounded.session(), Queue("roomy")
        for number in range(3):
            session.send_async(QUEUE, numbered(number))
        after = session.send_async(other, numbered(3))
        assert bounded.provider.depth(other) == 0
        assert received(bounded, 3, PATIENCE) == [0, 1, 2]
        assert after.result(PATIENCE).destination == other

    @pytest.mark.parametrize("send", ["send", "send_async"])
    def test_many_senders_and_one_receiver_lose_nothing(self, bounded: MemoryConnection, send: str) -> None:
        def send_fifty(first: int) -> None:
            with bounded.session() as session:
                for number in range(first, first + 50):
                    getattr(session, send)(QUEUE, numbered(number))

        senders = [background(lambda first=first: send_fifty(first)) for first in (0, 50, 100)]
        found = received(bounded, 150, PATIENCE)
        for sender in senders:
            sender.result(PATIENCE)
        assert sorted(found) == list(range(150))
        for first in (0, 50, 100):
            own = [number for number in found if first <= number < first + 50]
            assert own == sorted(own)
