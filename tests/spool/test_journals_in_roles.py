"""Publisher, subscriber, requestor, supplier and consumer runtime with an outbox or inbox, on the embedded provider."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import HandlerTimeoutError, IllegalStateError, MtosiFault, TransportError, UnknownOutcomeError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules
from mtosi_jms.spool import Inbox, Outbox
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import NotifyMessage
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import ManualClock, connect_privately

ID = "MTOSIX_messageId"
NAMES = {"jms/EmsOS": "queue:EMS", "jms/NocOS": "queue:NOC", "jms/Topic": "topic:INVENTORY"}
TOPIC = mtosi.Topic("INVENTORY")
PATIENCE = 30.0


@pytest.fixture
def connection() -> Iterator[Any]:
    with connect_privately(NAMES) as made:
        yield made


@pytest.fixture
def other(connection: Any) -> Iterator[Any]:
    """A second connection to the same provider."""
    with type(connection)(connection.provider, connection.names) as made:
        made.start()
        yield made


def event(number: int) -> ResourceObjectCreation:
    return ResourceObjectCreation(notification_id=str(number))


def numbers(events: Any) -> list[str]:
    return [received.event.notification_id for received in events]


class TestPublisher:
    def test_it_goes_out_persistent_and_confirmed(self, connection: Any, tmp_path: Path) -> None:
        with (
            mtosi.Subscriber(connection, "jms/Topic", timeout=0) as subscriber,
            Outbox(tmp_path / "outbox") as outbox,
            mtosi.Publisher(connection, {"Inventory": "jms/Topic"}, sender_uri="jms/EmsOS", outbox=outbox) as publisher,
        ):
            publisher.publish(event(1))
            (received,) = subscriber
            assert numbers([received]) == ["1"]
            assert received.message.delivery_mode is DeliveryMode.PERSISTENT
            assert len(outbox) == 0

    def test_what_failed_is_sent_by_the_next_publisher(self, connection: Any, other: Any, tmp_path: Path) -> None:
        topics = {"Inventory": "jms/Topic"}
        with Outbox(tmp_path / "outbox") as outbox:
            publisher = mtosi.Publisher(connection, topics, sender_uri="jms/EmsOS", outbox=outbox)
            connection.close()
            with pytest.raises(IllegalStateError):
                publisher.publish(event(1))
        with (
            mtosi.Subscriber(other, "jms/Topic", timeout=0) as subscriber,
            Outbox(tmp_path / "outbox") as outbox,
            mtosi.Publisher(other, topics, sender_uri="jms/EmsOS", outbox=outbox) as publisher,
        ):
            assert numbers(subscriber) == ["1"]
            publisher.publish(event(2))
            assert numbers(subscriber) == ["2"]
            assert (outbox.resent, publisher.resend(), len(outbox)) == (1, 0, 0)

    def test_a_publisher_that_cannot_send_stored_messages_is_not_made(self, connection: Any, tmp_path: Path) -> None:
        with Outbox(tmp_path / "outbox") as outbox:
            outbox.put(JmsMessage(body=b"<x/>"), TOPIC)

            class Failing:
                def send(self, *_: Any) -> JmsMessage:
                    raise NotImplementedError

                def resend(self, session: Any) -> int:
                    raise UnknownOutcomeError("lost")

            with pytest.raises(UnknownOutcomeError):
                mtosi.Publisher(connection, {"Inventory": TOPIC}, sender_uri="jms/EmsOS", outbox=Failing())


class TestSubscriber:
    def publish(self, connection: Any, *numbers: int) -> list[JmsMessage]:
        with mtosi.Publisher(connection, {"Inventory": TOPIC}, sender_uri="jms/EmsOS") as publisher:
            return [publisher.publish(event(number)) for number in numbers]

    def test_each_event_once_and_a_copy_is_dropped(self, connection: Any, tmp_path: Path) -> None:
        with (
            Inbox(tmp_path / "inbox") as inbox,
            mtosi.Subscriber(connection, TOPIC, timeout=0, inbox=inbox) as subscriber,
        ):
            message = JmsMessage(
                body=self.publish(connection, 1)[0].body,
                delivery_mode=DeliveryMode.PERSISTENT,
                properties={ID: "one"},
            )
            session = connection.session()
            session.send(TOPIC, message)
            session.send(TOPIC, message)
            assert numbers(subscriber) == ["1", "1"], "one had no id, the other came twice"
            assert (inbox.duplicates, len(inbox), inbox.in_doubt) == (1, 0, [])

    def test_what_was_in_hand_at_an_error_is_in_doubt(self, connection: Any, other: Any, tmp_path: Path) -> None:
        with Inbox(tmp_path / "inbox") as inbox:

            def fail_at_the_first() -> None:
                with mtosi.Subscriber(connection, TOPIC, timeout=0, inbox=inbox) as subscriber:
                    self.publish(connection, 1, 2)
                    for _ in subscriber:
                        raise LookupError

            with pytest.raises(LookupError):
                fail_at_the_first()
            assert len(inbox.in_doubt) == 1
        with (
            Inbox(tmp_path / "inbox") as inbox,
            mtosi.Subscriber(other, TOPIC, timeout=0, inbox=inbox) as subscriber,
        ):
            assert list(subscriber) == []
            assert len(inbox.in_doubt) == 1
            inbox.release(inbox.in_doubt[0].key)
            assert numbers(subscriber) == ["1"]

    @pytest.mark.parametrize("how", ["end of the block", "done", "close"])
    def test_the_last_message(self, connection: Any, tmp_path: Path, how: str) -> None:
        """Done with at the end of the block or by `done`; a mere `close` does not say so."""
        with Inbox(tmp_path / "inbox") as inbox:
            subscriber = mtosi.Subscriber(connection, TOPIC, timeout=0, inbox=inbox)
            self.publish(connection, 1)
            next(subscriber)
            assert len(inbox) == 1
            if how == "done":
                subscriber.done()
            if how == "end of the block":
                with subscriber:
                    pass
            subscriber.close()
            assert len(inbox.in_doubt) == (1 if how == "close" else 0)

    def test_for_coroutines(self, connection: Any, tmp_path: Path) -> None:
        async def receive(subscriber: Any) -> list[Any]:
            return [one async for one in subscriber.aio]

        with (
            Inbox(tmp_path / "inbox") as inbox,
            mtosi.Subscriber(connection, TOPIC, timeout=0.05, inbox=inbox) as subscriber,
        ):
            self.publish(connection, 1, 2)
            assert numbers(asyncio.run(receive(subscriber))) == ["1", "2"]
            assert (len(inbox), inbox.handed) == (0, 2)


class TestRequestor:
    def test_one_way_requests_are_kept(self, connection: Any, other: Any, tmp_path: Path) -> None:
        receiving = other.session().consumer(Queue("EMS"))
        with (
            Outbox(tmp_path / "outbox") as outbox,
            mtosi.Requestor(connection, sender_uri="jms/NocOS", outbox=outbox) as requestor,
        ):
            consumer = NotificationConsumer(requestor, "jms/EmsOS")
            consumer.notify(topic="Fault", message=NotifyMessage(common_event_information=[event(1)]))
            delivery = receiving.receive(0)
            assert delivery is not None
            assert delivery.message.delivery_mode is DeliveryMode.PERSISTENT
            assert delivery.message.properties[ID]
            connection.close()
            with pytest.raises(IllegalStateError):
                consumer.notify(topic="Fault", message=NotifyMessage(common_event_information=[event(1)]))
            assert len(outbox) == 1
            with other.session() as session:
                assert outbox.resend(session) == 1
            assert receiving.receive(0) is not None


class Ems(ManagedElementRetrieval.Supplier):
    def __init__(self) -> None:
        self.asked = 0

    def get_all_managed_elements(self, request: Any, context: Any) -> Any:
        self.asked += 1
        for number in range(7):
            yield ManagedElementType(name=name(f"MD=EMS1/ME={number}"))


class TestSupplier:
    @pytest.mark.parametrize("kept", [False, True])
    def test_a_reply_of_one_with_an_inbox_is_out_before_its_request_is_done_with(
        self, connection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
    ) -> None:
        """Elsewhere the acknowledgement of the request goes behind it on the wire; an inbox needs no wire."""
        soon: list[Any] = []
        real = type(connection.session()).send_soon

        def send_soon(session: Any, *message: Any, **how: Any) -> Any:
            soon.append(session)
            return real(session, *message, **how)

        with Inbox(tmp_path / "inbox") as inbox, mtosi.Requestor(connection, sender_uri="jms/NocOS") as requestor:
            supplier = mtosi.Supplier(connection, "jms/EmsOS", services=[Ems()], inbox=inbox if kept else None)
            monkeypatch.setattr(type(connection.session()), "send_soon", send_soon)
            with supplier, pytest.raises(MtosiFault, match="not implemented"):
                ManagedElementRetrieval(requestor, "jms/EmsOS").get_managed_element(me_ref=name("MD=1/ME=1"))
        assert bool(soon) is not kept

    def test_a_request_received_twice_is_answered_once(self, connection: Any, other: Any, tmp_path: Path) -> None:
        ems = Ems()
        with (
            Inbox(tmp_path / "inbox") as inbox,
            mtosi.Supplier(connection, "jms/EmsOS", services=[ems], inbox=inbox) as supplier,
            mtosi.Requestor(other, sender_uri="jms/NocOS") as requestor,
        ):
            retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")
            call = retrieval.get_all_managed_elements
            assert [len(batch.me_list.me) for batch in call.batches(batch_size=3)] == [3, 3, 1]
            supplier.drain(PATIENCE)
            assert (ems.asked, inbox.handed, len(inbox)) == (1, 1, 0)

    def test_what_was_being_answered_is_in_doubt(self, connection: Any, other: Any, tmp_path: Path) -> None:
        ems = Ems()
        told = threading.Event()
        with Inbox(tmp_path / "inbox", on_doubt=lambda entry: told.set()) as inbox:
            with mtosi.Supplier(connection, "jms/EmsOS", services=[ems], inbox=inbox) as supplier:

                def fail(*_: Any) -> None:
                    raise TransportError("the provider failed")

                supplier.answer = fail  # type: ignore[method-assign]
                other.session().send(Queue("EMS"), JmsMessage(body=b"<x/>", properties={ID: "one"}))
                assert told.wait(PATIENCE)
            assert [entry.key for entry in inbox.in_doubt] == ["one"]


class TestRuntime:
    WORK = Queue("WORK")

    def runtime(self, connection: Any, handler: Any, inbox: Inbox, **rules: Any) -> ConsumerRuntime:
        at_once = Backoff(0.0, 0.0, 0.0)
        return ConsumerRuntime(
            lambda: type(connection)(connection.provider, connection.names),
            self.WORK,
            handler,
            inbox=inbox,
            parking=Queue("PARKED"),
            rules=RuntimeRules(retry=at_once, reconnect=at_once, **rules),
        )

    def send(self, connection: Any, *numbers: int) -> None:
        with connection.session() as session:
            for number in numbers:
                session.send(self.WORK, JmsMessage(body=b"%d" % number, properties={ID: f"id-{number}"}))

    def test_each_message_is_handled_once_and_again_after_a_failed_attempt(
        self, connection: Any, tmp_path: Path
    ) -> None:
        handled: list[tuple[bytes, int]] = []
        over = threading.Event()

        def handle(message: JmsMessage, context: Any) -> None:
            handled.append((message.body, context.attempt))
            if message.body == b"2" and context.attempt < 3:
                raise LookupError
            if {(b"2", 3), (b"3", 1)} <= set(handled):
                over.set()

        with Inbox(tmp_path / "inbox") as inbox:
            self.send(connection, 1, 2, 1, 3)
            with self.runtime(connection, handle, inbox):
                assert over.wait(PATIENCE)
            assert sorted(handled) == [(b"1", 1), (b"2", 1), (b"2", 2), (b"2", 3), (b"3", 1)]
            assert (inbox.duplicates, len(inbox)) == (1, 0)
            with connection.session() as session:
                assert session.browse(self.WORK) == []

    def test_no_message_is_handed_out_twice_after_a_lost_connection(self, connection: Any, tmp_path: Path) -> None:
        """What is being handled goes on, is done with, and comes neither from the provider nor from the inbox."""
        handled: list[bytes] = []
        made: list[Any] = []
        begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

        def connect() -> Any:
            made.append(type(connection)(connection.provider, connection.names))
            return made[-1]

        def handle(message: JmsMessage, context: Any) -> None:
            handled.append(message.body)
            if message.body == b"1":
                begun.set()
                assert go_on.wait(PATIENCE)
            if message.body == b"4":
                over.set()

        with Inbox(tmp_path / "inbox") as inbox:
            self.send(connection, 1, 2, 3)
            rules = RuntimeRules(reconnect=Backoff(0.0, 0.0, 0.0), retry=Backoff(0.0, 0.0, 0.0))
            runtime = ConsumerRuntime(connect, self.WORK, handle, inbox=inbox, parking=Queue("PARKED"), rules=rules)
            with runtime:
                assert begun.wait(PATIENCE)
                made[0].close()
                go_on.set()
                self.send(connection, 4)
                assert over.wait(PATIENCE)
            assert sorted(handled) == [b"1", b"2", b"3", b"4"]
            assert len(inbox) == 0

    def test_waiting_messages_are_handled_by_the_next_runtime(self, connection: Any, tmp_path: Path) -> None:
        handled: list[bytes] = []
        over = threading.Event()

        def drain_first(message: JmsMessage, context: Any) -> None:
            handled.append(message.body)
            first.drain()

        def handle(message: JmsMessage, context: Any) -> None:
            handled.append(message.body)
            if message.body == b"6":
                over.set()

        self.send(connection, 1, 2, 3, 4, 5, 6)
        with Inbox(tmp_path / "inbox") as inbox:
            first = self.runtime(connection, drain_first, inbox)
            first.run()
            assert handled == [b"1"]
            assert inbox.in_doubt == []
            with self.runtime(connection, handle, inbox):
                assert over.wait(PATIENCE)
        assert handled == [b"%d" % number for number in range(1, 7)], "in the order of arrival"

    def test_a_message_past_its_deadline_is_in_doubt_and_not_tried_again(self, connection: Any, tmp_path: Path) -> None:
        begun: list[bytes] = []
        errors: list[type[BaseException]] = []
        started, go_on, over = threading.Event(), threading.Event(), threading.Event()
        clock = ManualClock()

        def handle(message: JmsMessage, context: Any) -> None:
            begun.append(message.body)
            started.set()
            if message.body == b"1":
                assert go_on.wait(PATIENCE)
            else:
                over.set()

        with Inbox(tmp_path / "inbox") as inbox:
            self.send(connection, 1, 2)
            with ConsumerRuntime(
                connection,
                self.WORK,
                handle,
                inbox=inbox,
                parking=Queue("PARKED"),
                rules=RuntimeRules(deadline=5.0),
                on_error=lambda error, message: errors.append(type(error)),
                clock=clock,
            ):
                assert started.wait(PATIENCE)
                clock.advance(6)
                assert over.wait(PATIENCE)
                go_on.set()
            assert begun == [b"1", b"2"]
            assert errors == [HandlerTimeoutError]
            assert [entry.key for entry in inbox.in_doubt] == ["id-1"]

    def test_poison_is_parked_and_settled(self, connection: Any, tmp_path: Path) -> None:
        def handle(message: JmsMessage, context: Any) -> None:
            raise LookupError

        with Inbox(tmp_path / "inbox") as inbox:
            self.send(connection, 1)
            with (
                self.runtime(connection, handle, inbox, attempts=2),
                connection.session() as session,
            ):
                connection.start()
                parked = session.consumer(Queue("PARKED")).receive(PATIENCE)
                assert parked is not None
            assert len(inbox) == 0


def test_a_redelivery_of_a_landed_message_is_recognised(connection: Any, other: Any, tmp_path: Path) -> None:
    from mtosi_jms.spool import InboxReceiver

    queue = Queue("WORK")
    connection.session().send(queue, JmsMessage(body=b"1", properties={ID: "one"}))
    with Inbox(tmp_path / "inbox") as inbox:
        session = other.session()
        consumer = session.consumer(queue)
        delivery = consumer.receive(0)
        assert delivery is not None
        inbox.land(replace(delivery.message))
        session.recover()
        receiver = InboxReceiver(session, consumer, inbox)
        found = receiver.receive(0)
        assert found is not None
        assert receiver.receive(0) is None
        assert (inbox.duplicates, other.session().browse(queue)) == (1, [])


def test_a_journal_that_cannot_store_leaves_it_to_the_provider(connection: Any, other: Any, tmp_path: Path) -> None:
    from mtosi_jms.errors import SpoolError
    from mtosi_jms.spool import InboxReceiver

    queue = Queue("WORK")
    connection.session().send(queue, JmsMessage(body=b"1"))
    inbox = Inbox(tmp_path / "inbox")
    inbox.close()
    session = other.session()
    receiver = InboxReceiver(session, session.consumer(queue), inbox)
    with pytest.raises(SpoolError):
        receiver.receive(0)
    session.close()
    assert len(connection.session().browse(queue)) == 1
