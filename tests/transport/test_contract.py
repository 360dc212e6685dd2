"""What every transport must do, written once. It knows the seam alone; `conftest.py` says on which it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, IllegalStateError, InvalidDestinationError, SelectorError
from mtosi_jms.jms.destinations import Destination, Queue, TemporaryQueue, Topic
from mtosi_jms.jms.message import INT_MAX, INT_MIN, LONG_MAX, DeliveryMode, JmsMessage, Long, MessageType
from mtosi_jms.transport.base import AckMode, Connection, Consumer, Session

Background = Callable[[Callable[[], Any]], "Future[Any]"]
UntilBlocked = Callable[[Session], None]
SOON = 5.0
"""Seconds that a message which must come may take."""


def text(number: int | str, **fields: Any) -> JmsMessage:
    return JmsMessage(body=f"<n>{number}</n>".encode(), **fields)


def drain(consumer: Consumer, timeout: float = 0) -> list[JmsMessage]:
    """What is there, each acknowledged."""
    taken = []
    while (delivery := consumer.receive(timeout)) is not None:
        delivery.acknowledge()
        taken.append(delivery.message)
    return taken


def take(consumer: Consumer) -> Any:
    delivery = consumer.receive(SOON)
    assert delivery is not None, "no message came"
    return delivery


class TestSending:
    def test_a_message_arrives_as_it_was_sent(self, connection: Connection, queue: Queue) -> None:
        """P37, R15: body, types of properties, correlation id, JMSType and delivery mode."""
        properties = {
            "MTOSI_msgType": "REQUEST",
            "MTOSI_requestedBatchSize": 200,
            "MTOSI_batchSequenceEndOfReply": True,
            "low": INT_MIN,
            "high": INT_MAX,
            "long": Long(LONG_MAX),
            "ratio": 0.1,
            "empty": "",
        }
        message = JmsMessage(
            body="<größe>\U0001f600</größe>".encode(),
            properties=properties,
            correlation_id="ID:of-the-request",
            jms_type="kind",
            delivery_mode=DeliveryMode.PERSISTENT,
            priority=7,
        )
        session = connection.session()
        session.send(queue, message)
        received = take(session.consumer(queue)).message
        assert received.body == message.body
        assert dict(received.properties) == properties
        assert [type(v) for v in received.properties.values()] == [type(v) for v in properties.values()]
        assert (received.correlation_id, received.jms_type) == ("ID:of-the-request", "kind")
        assert (received.delivery_mode, received.priority) == (DeliveryMode.PERSISTENT, 7)
        assert (received.message_type, received.destination) == (MessageType.TEXT, queue)
        assert (received.redelivered, received.delivery_count) == (False, 1)

    @pytest.mark.parametrize("size", [0, 1, 1024, 1_000_000])
    def test_bodies_of_any_size(self, connection: Connection, queue: Queue, size: int) -> None:
        session = connection.session()
        session.send(queue, JmsMessage(body=b"x" * size))
        assert take(session.consumer(queue)).message.body == b"x" * size

    def test_bytes_stay_bytes(self, connection: Connection, queue: Queue) -> None:
        """O1: tolerated, and told apart from text."""
        session = connection.session()
        session.send(queue, JmsMessage(body=bytes(range(256)), message_type=MessageType.BYTES))
        received = take(session.consumer(queue)).message
        assert (received.message_type, received.body) == (MessageType.BYTES, bytes(range(256)))

    def test_the_provider_sets_its_headers(self, connection: Connection, queue: Queue) -> None:
        """C45, T1.1, T1.2, T1.4, T1.5: what the sender had put there does not count."""
        theirs = text(
            1,
            message_id="mine",
            destination=Queue("elsewhere"),
            timestamp_ms=1,
            expiration_ms=2,
            redelivered=True,
            delivery_count=9,
            time_to_live_ms=60_000,
        )
        session = connection.session()
        sent = session.send(queue, theirs)
        received = take(session.consumer(queue)).message
        assert sent.message_id is not None
        assert sent.timestamp_ms is not None
        assert sent.message_id.startswith("ID:")
        assert sent.destination == queue
        assert sent.expiration_ms - sent.timestamp_ms == 60_000
        assert (sent.redelivered, sent.delivery_count) == (False, 1)
        assert received.message_id == sent.message_id
        assert received.timestamp_ms == sent.timestamp_ms
        assert received.expiration_ms == sent.expiration_ms
        assert theirs.message_id == "mine"

    def test_message_ids_are_unique(self, provider: Any, queue: Queue) -> None:
        """T1.1: over connections and sessions."""
        sessions = [provider.connect().session() for _ in range(4)]
        ids = {sessions[n % 4].send(queue, text(n)).message_id for n in range(1000)}
        assert len(ids) == 1000

    def test_sending_works_before_start(self, provider: Any, queue: Queue) -> None:
        """C44: delivery alone waits."""
        made = provider.connect()
        session = made.session()
        session.send(queue, text(1))
        consumer = session.consumer(queue)
        assert consumer.receive(0) is None
        made.start()
        assert take(consumer).message.body == b"<n>1</n>"

    @pytest.mark.parametrize("reply_to", [Queue("answers"), Topic("answers")], ids=str)
    def test_reply_to_is_a_destination(self, connection: Connection, queue: Queue, reply_to: Destination) -> None:
        """R15b: the kind survives."""
        session = connection.session()
        session.send(queue, text(1, reply_to=reply_to))
        assert take(session.consumer(queue)).message.reply_to == reply_to


class TestOrder:
    def test_first_in_first_out(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        for number in range(50):
            session.send(queue, text(number))
        assert [m.body for m in drain(session.consumer(queue))] == [text(n).body for n in range(50)]

    def test_high_priority_first(self, connection: Connection, queue: Queue) -> None:
        """T1.6: ten priorities, and order inside each."""
        session = connection.session()
        for number, priority in enumerate([4, 0, 9, 4, 9, 1]):
            session.send(queue, text(number, priority=priority))
        taken = drain(session.consumer(queue))
        assert [m.priority for m in taken] == [9, 9, 4, 4, 1, 0]
        assert [m.body for m in taken] == [text(n).body for n in (2, 4, 0, 3, 5, 1)]


class TestExpiry:
    def test_an_expired_message_is_not_delivered(self, provider: Any, connection: Connection, queue: Queue) -> None:
        """P7, P13: the time to live is in milliseconds."""
        session = connection.session()
        session.send(queue, text("short", time_to_live_ms=500))
        session.send(queue, text("long", time_to_live_ms=3_600_000))
        session.send(queue, text("ever"))
        provider.pass_time(0.75)
        assert [m.body for m in drain(session.consumer(queue))] == [text("long").body, text("ever").body]

    def test_it_is_delivered_until_then(self, provider: Any, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        session.send(queue, text(1, time_to_live_ms=60_000))
        provider.pass_time(0.1)
        assert take(session.consumer(queue)).message.expiration_ms > 0

    def test_no_time_to_live_means_no_expiration(self, connection: Connection, queue: Queue) -> None:
        """T1.5: 0 never expires."""
        assert connection.session().send(queue, text(1)).expiration_ms == 0


class TestReceiving:
    def test_no_message_no_wait(self, connection: Connection, queue: Queue) -> None:
        assert connection.session().consumer(queue).receive(0) is None

    def test_a_timeout_waits_and_returns_nothing(self, connection: Connection, queue: Queue) -> None:
        """P10."""
        consumer = connection.session().consumer(queue)
        begun = time.monotonic()
        assert consumer.receive(0.05) is None
        assert time.monotonic() - begun >= 0.05

    @pytest.mark.parametrize("timeout", [-1, float("nan")])
    def test_a_timeout_is_seconds(self, connection: Connection, queue: Queue, timeout: float) -> None:
        with pytest.raises(ConfigError, match="timeout"):
            connection.session().consumer(queue).receive(timeout)

    @pytest.mark.parametrize("timeout", [None, 15.0, 1e12])
    def test_a_blocked_receiver_gets_what_is_sent(
        self,
        connection: Connection,
        queue: Queue,
        timeout: float | None,
        background: Background,
        until_blocked: UntilBlocked,
        patience: float,
    ) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        future = background(lambda: consumer.receive(timeout))
        until_blocked(session)
        connection.session().send(queue, text(1))
        assert future.result(patience).message.body == b"<n>1</n>"

    @pytest.mark.parametrize("what", ["consumer", "session", "connection"])
    def test_close_wakes_a_blocked_receiver(
        self,
        connection: Connection,
        queue: Queue,
        what: str,
        background: Background,
        until_blocked: UntilBlocked,
        patience: float,
    ) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        future = background(consumer.receive)
        until_blocked(session)
        {"consumer": consumer, "session": session, "connection": connection}[what].close()
        assert future.result(patience) is None

    def test_stop_holds_delivery_and_start_resumes_it(
        self,
        connection: Connection,
        queue: Queue,
        background: Background,
        until_blocked: UntilBlocked,
        patience: float,
    ) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        connection.stop()
        connection.session().send(queue, text(1))
        assert consumer.receive(0) is None
        future = background(consumer.receive)
        until_blocked(session)
        connection.start()
        assert future.result(patience).message.body == b"<n>1</n>"

    def test_selectors(self, connection: Connection, queue: Queue) -> None:
        """A selector is obeyed or refused, never overlooked; a blank one takes everything."""
        session = connection.session()
        session.send(queue, text(1))
        with pytest.raises(SelectorError):
            session.consumer(queue, "MTOSI_msgType = = 'REQUEST'")
        assert take(session.consumer(queue, "  ")).message.body == b"<n>1</n>"


class TestSharing:
    def test_each_message_goes_to_one_consumer(self, provider: Any, connection: Connection, queue: Queue) -> None:
        """P7: two consumers of two connections share a queue, the union is all, nothing comes twice."""
        other = provider.connect()
        other.start()
        sender, consumers = (
            connection.session(),
            [connection.session().consumer(queue), other.session().consumer(queue)],
        )
        for number in range(40):
            sender.send(queue, text(number))
        taken: list[bytes] = []
        for number in range(40):
            delivery = take(consumers[number % 2])
            delivery.acknowledge()
            taken.append(delivery.message.body)
        assert sorted(taken) == sorted(text(n).body for n in range(40))
        assert [consumer.receive(0) for consumer in consumers] == [None, None]

    def test_many_threads_lose_and_double_nothing(
        self, connection: Connection, queue: Queue, background: Background, patience: float
    ) -> None:
        def send(first: int) -> None:
            with connection.session() as session:
                for number in range(first, first + 200):
                    session.send(queue, text(number, priority=number % 10))

        def receive() -> list[bytes]:
            taken: list[bytes] = []
            with connection.session() as session, session.consumer(queue) as consumer:
                while True:
                    delivery = take(consumer)
                    delivery.acknowledge()
                    if delivery.message.body == b"end":
                        return taken
                    taken.append(delivery.message.body)

        receivers = [background(receive) for _ in range(8)]
        for future in [background(lambda first=first: send(first)) for first in range(0, 1600, 200)]:
            future.result(patience)
        session = connection.session()
        for _ in receivers:
            session.send(queue, JmsMessage(body=b"end", priority=0))
        taken = [body for future in receivers for body in future.result(patience)]
        assert sorted(taken) == sorted(text(n).body for n in range(1600))
        assert session.consumer(queue).receive(0) is None


class TestAcknowledging:
    def test_auto_needs_no_acknowledgement(self, connection: Connection, queue: Queue) -> None:
        """P19."""
        with connection.session(AckMode.AUTO) as session:
            session.send(queue, text(1))
            delivery = take(session.consumer(queue))
            delivery.acknowledge()
        assert connection.session().consumer(queue).receive(0) is None
        delivery.acknowledge()

    def test_what_is_acknowledged_is_gone(self, connection: Connection, queue: Queue) -> None:
        with connection.session() as session:
            session.send(queue, text(1))
            delivery = take(session.consumer(queue))
            delivery.acknowledge()
            delivery.acknowledge()
        delivery.acknowledge()
        assert connection.session().consumer(queue).receive(0) is None

    @pytest.mark.parametrize("what", ["session", "connection"])
    def test_what_is_not_comes_again_after_close(self, provider: Any, queue: Queue, what: str) -> None:
        """T1.10: marked, and counted."""
        first = provider.connect()
        first.start()
        session = first.session()
        session.send(queue, text(1))
        delivery = take(session.consumer(queue))
        (session if what == "session" else first).close()
        with pytest.raises(IllegalStateError):
            delivery.acknowledge()
        second = provider.connect()
        second.start()
        again = take(second.session().consumer(queue)).message
        assert (again.redelivered, again.delivery_count) == (True, 2)
        assert again.message_id == delivery.message.message_id
        assert not delivery.message.redelivered

    def test_each_message_is_acknowledged_by_itself(self, connection: Connection, queue: Queue) -> None:
        """CLIENT here is individual: the second alone, and the first and third come again, in order."""
        with connection.session() as session:
            for number in range(3):
                session.send(queue, text(number))
            consumer = session.consumer(queue)
            _, second, _ = take(consumer), take(consumer), take(consumer)
            second.acknowledge()
        assert [m.body for m in drain(connection.session().consumer(queue))] == [text(0).body, text(2).body]

    def test_recover_delivers_again_in_order(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        for number in range(4):
            session.send(queue, text(number))
        consumer = session.consumer(queue)
        stale = [take(consumer) for _ in range(3)]
        session.recover()
        with pytest.raises(IllegalStateError, match="again"):
            stale[0].acknowledge()
        again = drain(consumer)
        assert [m.body for m in again] == [text(n).body for n in range(4)]
        assert [m.delivery_count for m in again] == [2, 2, 2, 1]

    def test_every_delivery_is_counted(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        session.send(queue, text(1))
        consumer = session.consumer(queue)
        counts = []
        for _ in range(4):
            counts.append(take(consumer).message.delivery_count)
            session.recover()
        assert counts == [1, 2, 3, 4]

    def test_closing_a_consumer_keeps_what_it_handed_out(self, connection: Connection, queue: Queue) -> None:
        with connection.session() as session:
            session.send(queue, text(1))
            with session.consumer(queue) as consumer:
                delivery = take(consumer)
            assert session.consumer(queue).receive(0) is None
            delivery.acknowledge()
        assert connection.session().consumer(queue).receive(0) is None

    def test_an_expired_message_does_not_come_again(self, provider: Any, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        session.send(queue, text(1, time_to_live_ms=500))
        consumer = session.consumer(queue)
        take(consumer)
        provider.pass_time(0.75)
        session.recover()
        assert consumer.receive(0) is None

    def test_what_comes_again_wakes_a_blocked_receiver(
        self,
        connection: Connection,
        queue: Queue,
        background: Background,
        until_blocked: UntilBlocked,
        patience: float,
    ) -> None:
        holder, waiter = connection.session(), connection.session()
        holder.send(queue, text(1))
        take(holder.consumer(queue))
        consumer = waiter.consumer(queue)
        future = background(consumer.receive)
        until_blocked(waiter)
        holder.close()
        assert future.result(patience).message.redelivered


class TestTransactions:
    """P18: sends and receives take effect together."""

    def test_sends_are_seen_at_commit(self, connection: Connection, queue: Queue) -> None:
        session, consumer = connection.session(transacted=True), connection.session().consumer(queue)
        for number in range(3):
            session.send(queue, text(number))
        assert consumer.receive(0) is None
        session.commit()
        assert [m.body for m in drain(consumer)] == [text(n).body for n in range(3)]
        session.commit()
        assert consumer.receive(0) is None

    def test_rollback_undoes_both_ways(self, connection: Connection, queue: Queue) -> None:
        connection.session().send(queue, text(1))
        session = connection.session(transacted=True)
        consumer = session.consumer(queue)
        take(consumer).acknowledge()
        session.send(queue, text(2))
        session.rollback()
        again = take(consumer)
        assert (again.message.body, again.message.delivery_count) == (b"<n>1</n>", 2)
        session.commit()
        assert consumer.receive(0) is None
        session.close()
        assert connection.session().consumer(queue).receive(0) is None

    def test_close_rolls_back(self, connection: Connection, queue: Queue) -> None:
        connection.session().send(queue, text(1))
        with connection.session(transacted=True) as session:
            take(session.consumer(queue))
            session.send(queue, text(2))
        again = drain(connection.session().consumer(queue))
        assert [(m.body, m.redelivered) for m in again] == [(b"<n>1</n>", True)]

    def test_the_wrong_kind_of_session(self, connection: Connection) -> None:
        with pytest.raises(IllegalStateError):
            connection.session().commit()
        with pytest.raises(IllegalStateError):
            connection.session().rollback()
        with pytest.raises(IllegalStateError):
            connection.session(transacted=True).recover()

    def test_a_commit_that_cannot_be_is_rolled_back(self, provider: Any, connection: Connection, queue: Queue) -> None:
        other = provider.connect()
        temporary = other.session().temporary_queue()
        connection.session().send(queue, text(1))
        session = connection.session(transacted=True)
        consumer = session.consumer(queue)
        take(consumer)
        session.send(queue, text(2))
        session.send(temporary, text(3))
        other.close()
        with pytest.raises(InvalidDestinationError):
            session.commit()
        assert [m.body for m in drain(consumer)] == [b"<n>1</n>"]


class TestTemporaryDestinations:
    def test_a_reply_comes_back(self, provider: Any, connection: Connection, queue: Queue) -> None:
        """R2b: a requestor's temporary queue, a supplier on another connection that answers JMSReplyTo."""
        requestor = connection.session()
        reply_queue = requestor.temporary_queue()
        requestor.send(queue, text("ask", reply_to=reply_queue))
        other = provider.connect()
        other.start()
        supplier = other.session()
        request = take(supplier.consumer(queue)).message
        assert isinstance(request.reply_to, TemporaryQueue)
        supplier.send(request.reply_to, text("answer", correlation_id=request.message_id))
        reply = take(requestor.consumer(reply_queue)).message
        assert (reply.body, reply.correlation_id) == (text("answer").body, request.message_id)

    def test_only_its_connection_may_consume(self, provider: Any, connection: Connection) -> None:
        """R2c."""
        session = connection.session()
        temporary = session.temporary_queue()
        assert temporary.owner == connection.id
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(temporary)
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(replace(temporary, owner=""))
        assert connection.session().consumer(temporary).destination == temporary

    def test_it_goes_with_its_connection(self, provider: Any, connection: Connection) -> None:
        made = provider.connect()
        session = made.session()
        temporary = session.temporary_queue()
        session.send(temporary, text(1))
        session.close()
        connection.session().send(temporary, text(2))
        made.close()
        with pytest.raises(InvalidDestinationError):
            connection.session().send(temporary, text(3))

    def test_each_is_another(self, connection: Connection) -> None:
        """P5: the system names it."""
        session = connection.session()
        assert len({session.temporary_queue().name for _ in range(10)}) == 10

    def test_a_temporary_topic(self, provider: Any, connection: Connection) -> None:
        session = connection.session()
        temporary = session.temporary_topic()
        consumers = [session.consumer(temporary), session.consumer(temporary)]
        provider.connect().session().send(temporary, text(1))
        assert [take(consumer).message.body for consumer in consumers] == [b"<n>1</n>"] * 2
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(temporary)


class TestTopics:
    def test_every_current_subscriber_gets_a_copy(self, provider: Any, connection: Connection, topic: Topic) -> None:
        """P8, P34: those who come later miss it."""
        other = provider.connect()
        other.start()
        early = [connection.session().consumer(topic), other.session().consumer(topic)]
        connection.session().send(topic, text(1))
        late = connection.session().consumer(topic)
        connection.session().send(topic, text(2))
        assert [[m.body for m in drain(consumer, 0)] for consumer in early] == [[b"<n>1</n>", b"<n>2</n>"]] * 2
        assert [m.body for m in drain(late)] == [b"<n>2</n>"]

    def test_nobody_listens(self, connection: Connection, topic: Topic) -> None:
        session = connection.session()
        assert session.send(topic, text(1)).message_id
        assert session.consumer(topic).receive(0) is None

    def test_a_queue_of_the_same_name_is_another(self, connection: Connection, topic: Topic) -> None:
        session = connection.session()
        consumer = session.consumer(Queue(topic.name))
        session.send(topic, text(1))
        assert consumer.receive(0) is None

    def test_a_subscriber_recovers_its_own_copy(self, connection: Connection, topic: Topic) -> None:
        one, two = connection.session(), connection.session()
        first, second = one.consumer(topic), two.consumer(topic)
        connection.session().send(topic, text(1))
        take(first)
        take(second).acknowledge()
        one.recover()
        assert take(first).message.redelivered
        assert second.receive(0) is None

    def test_a_closed_subscriber_gets_nothing_more(self, connection: Connection, topic: Topic) -> None:
        session = connection.session()
        with session.consumer(topic) as consumer:
            session.send(topic, text(1))
            delivery = take(consumer)
        delivery.acknowledge()
        session.send(topic, text(2))
        assert session.consumer(topic).receive(0) is None


class TestLifeCycle:
    def test_close_may_be_repeated(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        for closeable in (consumer, consumer, session, session, connection, connection):
            closeable.close()
        with pytest.raises(IllegalStateError):
            connection.start()

    def test_what_is_closed_refuses(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        consumer.close()
        with pytest.raises(IllegalStateError, match="consumer is closed"):
            consumer.receive(0)
        session.close()
        for action in (session.temporary_queue, session.temporary_topic, session.recover, lambda: consumer.receive(0)):
            with pytest.raises(IllegalStateError, match="session is closed"):
                action()
        with pytest.raises(IllegalStateError, match="session is closed"):
            session.send(queue, text(1))
        with pytest.raises(IllegalStateError, match="session is closed"):
            session.consumer(queue)
        connection.close()
        for action in (connection.start, connection.stop, connection.session):
            with pytest.raises(IllegalStateError, match="connection is closed"):
                action()

    def test_start_and_stop_may_be_repeated(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        connection.stop()
        connection.stop()
        session.send(queue, text(1))
        assert consumer.receive(0) is None
        connection.start()
        connection.start()
        assert take(consumer).message.body == b"<n>1</n>"

    def test_with_closes(self, provider: Any, queue: Queue) -> None:
        with provider.connect() as made, made.session() as session, session.consumer(queue) as consumer:
            assert consumer.destination == queue
        with pytest.raises(IllegalStateError):
            made.session()

    def test_a_session_is_for_one_thread(
        self,
        connection: Connection,
        queue: Queue,
        background: Background,
        until_blocked: UntilBlocked,
        patience: float,
    ) -> None:
        """P4: a second thread is told, and the first is not disturbed."""
        session = connection.session()
        consumer = session.consumer(queue)
        future = background(consumer.receive)
        until_blocked(session)
        for action in (lambda: session.send(queue, text(1)), session.temporary_queue, lambda: consumer.receive(0)):
            with pytest.raises(IllegalStateError, match="P4"):
                action()
        connection.session().send(queue, text(2))
        delivery = future.result(patience)
        delivery.acknowledge()
        assert delivery.message.body == b"<n>2</n>"

    def test_threads_share_a_connection(
        self, connection: Connection, queue: Queue, background: Background, patience: float
    ) -> None:
        ready = threading.Barrier(8)

        def work() -> bool:
            ready.wait(patience)
            with connection.session() as session:
                temporary = session.temporary_queue()
                consumer = session.consumer(temporary)
                for number in range(50):
                    session.send(temporary, text(number))
                return [m.body for m in drain(consumer)] == [text(n).body for n in range(50)]

        assert [future.result(patience) for future in [background(work) for _ in range(8)]] == [True] * 8
