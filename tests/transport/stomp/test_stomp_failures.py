"""Connections that are cut or stand still, brokers that are killed: what is lost, what comes again, what is told."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from mtosi_jms.errors import AuthenticationError, ConfigError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue, Topic
from mtosi_jms.transport import AckMode
from mtosi_jms.transport.stomp._subscriptions import Entry

from ...waiting import background
from .conftest import everything, persistent, send_surely

pytestmark = pytest.mark.broker
PERSISTENT = DeliveryMode.PERSISTENT


class TestUnknownOutcome:
    def test_a_receipt_that_never_comes(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        """The broker has the message; the sender is told that it may have it, and it is not sent twice."""
        connection = by_proxy()
        session = connection.session()
        proxy.cut_at_answer(b"RECEIPT")
        with pytest.raises(UnknownOutcomeError, match="unknown") as caught:
            session.send(queue, persistent(1))
        assert [(found.destination, found.body) for found in caught.value.messages] == [(queue, b"<n>1</n>")]
        assert everything(session.consumer(queue), 1) == [b"<n>1</n>"]
        assert proxy.sent.count(b"<n>1</n>") == 1

    def test_a_broker_that_takes_nothing(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        session = by_proxy(send_timeout=0.3).session()
        proxy.stall(to_broker=True)

        def send_on() -> None:
            for _ in range(50):
                session.send(queue, JmsMessage(body=b"x" * 1_000_000))

        with pytest.raises(TransportError, match="took nothing"):
            send_on()


class TestReconnect:
    def test_consumers_and_temporary_queues_go_on(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        connection = by_proxy()
        session = connection.session()
        consumer = session.consumer(queue)
        temporary = session.temporary_queue()
        replies = session.consumer(temporary)
        proxy.cut()
        sender = connection.session()
        send_surely(sender, queue, JmsMessage(body=b"<ask/>", delivery_mode=PERSISTENT, reply_to=temporary))
        request = consumer.receive(30)
        assert request is not None
        other = by_proxy()
        reader = other.session()
        sender.send(queue, JmsMessage(body=b"<more/>", delivery_mode=PERSISTENT, reply_to=temporary))
        consumer.close()
        request.acknowledge()
        delivery = reader.consumer(queue).receive(30)
        assert delivery is not None
        reader.send(delivery.message.reply_to, JmsMessage(body=b"<answer/>"))
        reply = replies.receive(30)
        assert reply is not None
        assert reply.message.body == b"<answer/>"

    def test_what_was_not_acknowledged_comes_again_marked(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        session = by_proxy().session()
        for number in range(3):
            session.send(queue, persistent(number))
        consumer = session.consumer(queue)
        first, second = consumer.receive(30), consumer.receive(30)
        second.acknowledge()
        session.send(queue, persistent(9))  # confirmed, so that the acknowledgement before it has arrived
        proxy.cut()
        marks: dict[bytes, bool] = {}
        while len(marks) < 3:  # what was here before the loss was noticed may come twice
            message = consumer.receive(30).message
            marks[message.body] = message.redelivered
        with pytest.raises(TransportError, match="again"):
            first.acknowledge()
        assert set(marks) == {b"<n>0</n>", b"<n>2</n>", b"<n>9</n>"}
        assert marks[b"<n>0</n>"]

    def test_listeners_go_on(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        connection = by_proxy()
        heard = {persistent(number).body: threading.Event() for number in (1, 2)}
        connection.session(AckMode.AUTO).consumer(queue).listen(lambda delivery: heard[delivery.message.body].set())
        connection.session().send(queue, persistent(1))
        assert heard[b"<n>1</n>"].wait(30)  # Artemis may keep what it is delivering as the connection is lost
        proxy.cut()
        send_surely(connection.session(), queue, persistent(2))
        assert heard[b"<n>2</n>"].wait(60)

    def test_without_it_the_loss_is_told(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        connection = by_proxy(reconnect=False)
        consumer = connection.session().consumer(queue)
        threading.Timer(0.1, proxy.cut).start()
        with pytest.raises(TransportError, match="lost"):
            consumer.receive(30)
        with pytest.raises(TransportError, match="lost"):
            connection.session().send(queue, persistent(1))

    def test_it_is_given_up(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        connection = by_proxy(reconnect_timeout=0.2)
        consumer = connection.session().consumer(queue)
        proxy.close()
        with pytest.raises(TransportError):
            consumer.receive(30)

    def test_the_next_host_is_taken(self, broker: Any, open_stomp: Any, queue: Queue) -> None:
        nobody = socket.create_server(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        nobody.close()
        login = f"{broker.endpoints.user}:{broker.endpoints.password}"
        url = f"failover:(stomp://{login}@127.0.0.1:{port},{broker.endpoints.url('stomp')})"
        session = open_stomp(url).session()
        session.send(queue, persistent(1))
        assert everything(session.consumer(queue), 1) == [b"<n>1</n>"]


class TestSignsOfLife:
    def test_a_silent_broker_is_taken_for_dead(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        def wait_on() -> None:
            consumer = by_proxy(heart_beat=0.2, reconnect=False).session().consumer(queue)
            proxy.stall(to_client=True)
            consumer.receive(30)

        with pytest.raises(TransportError, match="no sign of life"):  # a slow machine makes it silent earlier
            wait_on()

    def test_a_quiet_connection_lives_and_one_with_a_slow_listener_too(self, by_proxy: Any, queue: Queue) -> None:
        busy, quiet = (by_proxy(heart_beat=2.0, reconnect=False) for _ in range(2))
        begun, done = threading.Event(), threading.Event()

        def on_message(delivery: Any) -> None:
            begun.set()
            assert done.wait(60)

        busy.session(AckMode.AUTO).consumer(queue).listen(on_message)
        busy.session().send(queue, persistent(1))
        assert begun.wait(60)
        other = Queue(f"{queue.name}.quiet")
        consumer = quiet.session().consumer(other)
        assert consumer.receive(4.5) is None
        done.set()
        for connection in (busy, quiet):
            connection.session().send(other, persistent(2))
        assert everything(consumer, 2) == [b"<n>2</n>"] * 2


class TestConnecting:
    def test_a_wrong_password_is_told_without_it(self, broker: Any, open_stomp: Any, caplog: Any) -> None:
        caplog.set_level("DEBUG")
        port = broker.endpoints.ports["stomp"]
        with pytest.raises(AuthenticationError, match="check user and password") as caught:
            open_stomp(f"stomp://mtosi:wr0ng-one@127.0.0.1:{port}")
        assert f"127.0.0.1:{port}" in str(caught.value)
        assert "wr0ng-one" not in str(caught.value) + caplog.text

    def test_no_login_at_all(self, broker: Any, open_stomp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MTOSI_JMS_USER", raising=False)
        with pytest.raises(AuthenticationError, match="no user was given"):
            open_stomp(f"stomp://127.0.0.1:{broker.endpoints.ports['stomp']}")

    def test_nothing_secret_is_logged_or_shown(self, broker: Any, open_stomp: Any, caplog: Any, queue: Queue) -> None:
        caplog.set_level("DEBUG")
        connection = open_stomp(broker.endpoints.url("stomp"))
        connection.session().send(queue, JmsMessage(body=b"<b/>", properties={"MTOSI_security": "t0p"}))
        assert broker.endpoints.password not in caplog.text + repr(connection)
        assert "t0p" not in caplog.text

    def test_somebody_who_is_no_broker(self, open_stomp: Any) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            with pytest.raises(TransportError, match="no answer within"):
                open_stomp(f"stomp://127.0.0.1:{port}", connect_timeout=0.3)

    def test_somebody_who_says_nothing(self, open_stomp: Any) -> None:
        """ActiveMQ closes some connections that it refuses before it has said why: so it is asked more than once."""
        refusal = b"ERROR\nmessage:Broker: b - Client: me already connected from x\n\n\0"
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer(*answers: bytes) -> None:
                for said in answers:
                    with listener.accept()[0] as client:
                        assert client.recv(65_536).endswith(b"\0")
                        client.sendall(said)

            url = f"stomp://127.0.0.1:{listener.getsockname()[1]}"
            told = background(lambda: answer(b"", b"", refusal))
            with pytest.raises(ConfigError, match="already connected"):
                open_stomp(url, client_id="me")
            told.result()
            told = background(lambda: answer(b"", b"", b""))
            with pytest.raises(TransportError, match="closed the connection unanswered"):
                open_stomp(url, client_id="me")
            told.result()

    def test_nobody(self, open_stomp: Any) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with pytest.raises(TransportError, match="check host, port and firewall"):
            open_stomp(f"stomp://127.0.0.1:{port}")

    def test_close_keeps_what_was_sent(self, broker: Any, open_stomp: Any, queue: Queue) -> None:
        """Without a receipt for DISCONNECT the end would overtake what is under way."""
        with open_stomp(broker.endpoints.url("stomp")) as connection:
            session = connection.session()
            for number in range(2_000):
                message = JmsMessage(body=b"%d" % number)
                if session.send_soon(queue, message, can_wait=True) is None:
                    session.send(queue, message)
        consumer = open_stomp(broker.endpoints.url("stomp")).session(AckMode.DUPS_OK).consumer(queue)
        assert len(everything(consumer, 2_000)) == 2_000


class TestMoreThanMayBeOnTheWay:
    """STOMP sends no more than the window while nothing is acknowledged: a large transaction must not wait for ever."""

    @pytest.mark.parametrize("prefetch", [1, 10])
    def test_held_unacknowledged(self, broker: Any, open_stomp: Any, queue: Queue, prefetch: int) -> None:
        connection = open_stomp(broker.endpoints.url("stomp"), prefetch=prefetch)
        session = connection.session()
        for number in range(200):
            session.send(queue, JmsMessage(body=b"%d" % number))
        consumer = session.consumer(queue)
        held = [consumer.receive(30) for _ in range(200)]
        assert [delivery.message.body for delivery in held] == [b"%d" % number for number in range(200)]
        for delivery in held:
            delivery.acknowledge()
        assert everything(consumer, 0) == []

    def test_one_at_a_time_is_shared_fairly(self, broker: Any, open_stomp: Any, queue: Queue) -> None:
        """prefetch=1: who is busy keeps nothing from others."""
        connection = open_stomp(broker.endpoints.url("stomp"), prefetch=1)
        busy, other = connection.session(), connection.session()
        holding, free = busy.consumer(queue), other.consumer(queue)
        for number in range(20):
            busy.send(queue, JmsMessage(body=b"%d" % number))
        held = holding.receive(30)
        assert len(everything(free, 19)) == 19
        held.acknowledge()

    @pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.CLIENT, AckMode.DUPS_OK])
    def test_what_has_expired_here_makes_room(
        self, broker: Any, open_stomp: Any, queue: Queue, mode: AckMode, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All that was on the way has expired: it is acknowledged, or nothing else would come."""
        monkeypatch.setattr(Entry, "is_expired", lambda entry: entry.message.body == b"old")
        connection = open_stomp(broker.endpoints.url("stomp"), prefetch=3)
        sender = connection.session()
        for body in [b"old"] * 7 + [b"new"] * 5:
            sender.send(queue, JmsMessage(body=body))
        assert everything(connection.session(mode).consumer(queue), 5) == [b"new"] * 5

    def test_what_has_expired_makes_room_for_a_listener(
        self, broker: Any, open_stomp: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Entry, "is_expired", lambda entry: entry.message.body == b"old")
        connection = open_stomp(broker.endpoints.url("stomp"), prefetch=3)
        sender = connection.session()
        for body in [b"old"] * 7 + [b"new"]:
            sender.send(queue, JmsMessage(body=body))
        came = threading.Event()
        connection.session(AckMode.AUTO).consumer(queue).listen(lambda delivery: came.set())
        assert came.wait(30)

    def test_a_subscriber_of_a_topic(self, broker: Any, open_stomp: Any) -> None:
        session = open_stomp(broker.endpoints.url("stomp"), prefetch=1).session()
        consumer = session.consumer(Topic("stomp.wide"))
        for number in range(300):
            session.send(Topic("stomp.wide"), JmsMessage(body=b"%d" % number))
        assert len([consumer.receive(30) for _ in range(300)]) == 300
