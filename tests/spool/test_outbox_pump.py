"""The pump of an outbox: whoever has a message stores it, and a thread of the pump's own sends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtosi_jms.errors import TransportError
from mtosi_jms.jms import Destination, JmsMessage, Queue
from mtosi_jms.spool import Outbox, OutboxPump, OutgoingJournal
from mtosi_jms.spool._journal import Sender
from mtosi_jms.transport import Backoff, Connection, connect

ANSWERS = Queue("PUMPED")
AT_ONCE = Backoff(0.0, 0.0, 0.0)


class Kept:
    """A journal of somebody else's: a list."""

    def __init__(self) -> None:
        self.waiting: list[JmsMessage] = []

    def put(self, message: JmsMessage, destination: Destination) -> JmsMessage:
        self.waiting.append(message)
        return message

    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage:
        return session.send(destination, message)

    def resend(self, session: Sender) -> int:
        sent = 0
        while self.waiting:
            session.send(ANSWERS, self.waiting[0])
            self.waiting.pop(0)
            sent += 1
        return sent


def received(provider: str, number: int) -> list[bytes]:
    with connect(provider) as connection, connection.session() as session:
        consumer = session.consumer(ANSWERS)
        connection.start()
        found = []
        for _ in range(number):
            delivery = consumer.receive(60)
            assert delivery is not None
            delivery.acknowledge()
            found.append(delivery.message.body)
        return found


@pytest.mark.parametrize("kind", ["outbox", "journal"])
def test_what_is_stored_is_sent_in_order_though_the_provider_is_lost_twice(tmp_path: Path, kind: str) -> None:
    provider = f"memory:pump-{kind}"
    lost = iter([TransportError("gone"), TransportError("gone")])

    def reach() -> Connection:
        for error in lost:
            raise error
        return connect(provider)

    def pumped(journal: OutgoingJournal) -> None:
        with OutboxPump(journal, reach, backoff=AT_ONCE) as pump:
            for number in range(3):
                journal.put(JmsMessage(body=b"<a>%d</a>" % number), ANSWERS)
                pump.wake()
            assert received(provider, 3) == [b"<a>0</a>", b"<a>1</a>", b"<a>2</a>"]

    if kind == "journal":
        pumped(Kept())
        return
    with Outbox(tmp_path) as outbox:
        pumped(outbox)
        assert len(outbox) == 0


def test_a_closed_pump_sends_nothing_and_the_outbox_keeps_its_messages(tmp_path: Path) -> None:
    with Outbox(tmp_path) as outbox:
        OutboxPump(outbox, lambda: connect("memory:pump-closed")).close()
        outbox.put(JmsMessage(body=b"<a/>"), ANSWERS)
        assert len(outbox) == 1


def test_a_message_that_is_sent_at_once_is_not_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Outbox(tmp_path) as outbox, connect("memory:pump-direct") as connection, connection.session() as session:
        left = outbox.put(JmsMessage(body=b"<a>left</a>"), ANSWERS)
        read: list[str] = []
        whole = outbox._store.sound_message
        monkeypatch.setattr(outbox._store, "sound_message", lambda number, key: read.append(key) or whole(number, key))
        outbox.send(session, ANSWERS, JmsMessage(body=b"<a>sent</a>"))
        assert read == [str(left.properties["MTOSIX_messageId"])]
        assert len(outbox) == 0
