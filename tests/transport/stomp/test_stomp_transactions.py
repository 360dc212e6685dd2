"""Transactions on the wire: what goes out when, and what is known when one does not end well."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.errors import TransportError, WriteError
from mtosi_jms.jms import Queue
from mtosi_jms.transport.stomp._link import Link

from .conftest import everything, persistent
from .proxy import Proxy

pytestmark = pytest.mark.broker


def test_only_what_must_be_is_confirmed(by_proxy: Any, proxy: Any, queue: Queue) -> None:
    """A hundred messages, and two receipts at most: of COMMIT, and of what is before it where the broker wants that."""
    session = by_proxy().session(transacted=True)
    for number in range(100):
        session.send(queue, persistent(number))
    before = proxy.sent.count(b"receipt:")
    session.commit()
    assert proxy.sent.count(b"receipt:") - before <= 2
    found = everything(by_proxy().session().consumer(queue), 100)
    assert found == [f"<n>{number}</n>".encode() for number in range(100)]


class TestMoreThanMayBeOnTheWay:
    """Transactions in which more is received than may be on the way at once; see the contract too."""

    @pytest.fixture
    def connection(self, activemq: Any, open_stomp: Any) -> Any:
        """Five messages may be on the way to a consumer. Artemis' STOMP receives in no transaction."""
        return open_stomp(activemq.endpoints.url("stomp"), prefetch=5)

    @pytest.fixture
    def fill(self, activemq: Any, open_stomp: Any) -> Callable[[Queue, int], list[bytes]]:
        """Sends so many messages; their bodies."""
        sender = open_stomp(activemq.endpoints.url("stomp")).session(transacted=True)

        def send(queue: Queue, count: int) -> list[bytes]:
            messages = [persistent(number) for number in range(count)]
            for message in messages:
                sender.send(queue, message)
            sender.commit()
            return [message.body for message in messages]

        return send

    def test_none_waits_for_ever(self, activemq: Any, open_stomp: Any, fill: Any) -> None:
        """What ActiveMQ has set aside for a subscription since the last commit comes, full as that subscription is."""
        connection = open_stomp(activemq.endpoints.url("stomp"), prefetch=50)
        for number in range(16):
            queue = Queue(f"set.aside.{number}")
            bodies = fill(queue, 400)
            session = connection.session(transacted=True)
            consumer = session.consumer(queue)
            found: list[bytes] = []
            for _ in range(4):
                found += taken(consumer, 100)
                session.commit()
            assert sorted(found) == sorted(bodies)
            session.close()

    def test_a_listener_may_take_as_many(self, connection: Any, fill: Any, queue: Queue) -> None:
        bodies = fill(queue, 100)
        session = connection.session(transacted=True)
        found: list[bytes] = []
        done = threading.Event()

        def listen(delivery: Any) -> None:
            found.append(delivery.message.body)
            if len(found) % 50 == 0:
                session.commit()
            if len(found) == len(bodies):
                done.set()

        session.consumer(queue).listen(listen)
        assert done.wait(30)
        assert sorted(found) == sorted(bodies)

    def test_a_consumer_in_the_place_of_a_closed_one(self, connection: Any, fill: Any, queue: Queue) -> None:
        """What comes for the closed one, which is kept for what it had handed out, is for the one after it."""
        other = Queue(f"{queue.name}.other")
        bodies, others = fill(queue, 30), fill(other, 30)
        session = connection.session(transacted=True)
        closed, beside = session.consumer(queue), session.consumer(other)
        first = taken(closed, 3)
        closed.close()
        rest = taken(beside, 12)
        consumer = session.consumer(queue)
        assert sorted(first + taken(consumer, 27)) == sorted(bodies)
        session.commit()
        assert sorted(rest + taken(beside, 18)) == sorted(others)
        session.commit()

    @pytest.mark.parametrize(
        "error", [WriteError("another frame was not written in time; not sent"), KeyboardInterrupt()], ids=type
    )
    def test_a_commit_that_is_not_written_keeps_nothing(
        self, connection: Any, fill: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch, error: BaseException
    ) -> None:
        bodies = fill(queue, 20)
        session = connection.session(transacted=True)
        consumer = session.consumer(queue)
        taken(consumer, 12)

        def fail(*_: Any, **__: Any) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Link, "send", fail)
            if isinstance(error, KeyboardInterrupt):
                with pytest.raises(KeyboardInterrupt):
                    session.commit()
            else:
                with pytest.raises(TransportError, match="rolled back"):
                    session.commit()
        if isinstance(error, KeyboardInterrupt):  # nobody was told yet
            with pytest.raises(TransportError):
                session.commit()
        assert sorted(taken(consumer, 20)) == sorted(bodies)
        session.commit()
        assert consumer.receive(0.4) is None

    def test_a_cut_in_between_brings_all_of_it_again(
        self, activemq: Any, open_stomp: Any, fill: Any, queue: Queue
    ) -> None:
        bodies = fill(queue, 40)
        proxy = Proxy(activemq.endpoints.ports["stomp"])
        login = {"user": activemq.endpoints.user, "password": activemq.endpoints.password}
        session = open_stomp(f"stomp://127.0.0.1:{proxy.port}", prefetch=5, **login).session(transacted=True)
        consumer = session.consumer(queue)
        taken(consumer, 20)
        proxy.cut()
        with pytest.raises(TransportError, match=r"rolled back|outcome is unknown"):  # whether the cut was seen by then
            session.commit()
        assert sorted(taken(consumer, 40)) == sorted(bodies)
        session.commit()
        assert consumer.receive(0.4) is None
        proxy.close()


def taken(consumer: Any, count: int) -> list[bytes]:
    """So many messages, each of which comes."""
    deliveries = [consumer.receive(10) for _ in range(count)]
    assert None not in deliveries
    return [delivery.message.body for delivery in deliveries]
