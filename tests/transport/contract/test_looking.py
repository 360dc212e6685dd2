"""Looking at a queue without its messages' bodies, which every transport can."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, SelectorError
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.transport import Connection


@pytest.mark.obligation("P39")
def test_headers_and_number_of_what_waits(connection: Connection, queue: Queue, bodies: Any) -> None:
    session = connection.session()
    assert (session.count(queue), list(session.headers(queue))) == (0, [])
    reply = session.temporary_queue()
    odd = ({}, {"MTOSI_msgName": "it's"})
    for number in range(6):
        message = JmsMessage(
            body=b"<n>%d</n>" % number,
            properties={"MTOSI_requestedBatchSize": number, "MTOSIX_parkedReason": "ValueError"} | odd[number % 2],
            delivery_mode=DeliveryMode.PERSISTENT,
            reply_to=reply,
            correlation_id="ID:of-a-request",
            jms_type="T",
            time_to_live_ms=3_600_000,
        )
        session.send(queue, message)
    seen = list(session.headers(queue, "MTOSI_requestedBatchSize > 3"))
    assert [one.properties for one in seen] == [
        {"MTOSI_requestedBatchSize": number, "MTOSIX_parkedReason": "ValueError"} | odd[number % 2] for number in (4, 5)
    ]
    first = seen[0]
    assert (first.delivery_mode, first.correlation_id, first.jms_type) == (
        DeliveryMode.PERSISTENT,
        "ID:of-a-request",
        "T",
    )
    assert first.message_id is not None
    assert first.reply_to is not None
    assert first.timestamp_ms is not None
    assert first.expiration_ms > first.timestamp_ms
    assert (session.count(queue), session.count(queue, "MTOSI_requestedBatchSize > 3")) == (6, 2)
    first_of = ("MTOSI_msgName", "MTOSI_requestedBatchSize")
    assert session.count_by(queue, first_of) == {"it's": 3, "0": 1, "2": 1, "4": 1}
    assert session.count_by(queue, ("MTOSI_msgName",), "MTOSI_requestedBatchSize > 3") == {"it's": 1, None: 1}
    assert len(bodies(session.consumer(queue))) == 6, "looking takes nothing"


def test_what_cannot_be_looked_at(connection: Connection, queue: Queue, topic: Topic) -> None:
    session = connection.session()
    looks: list[Any] = [session.headers, session.count, lambda *of: session.count_by(of[0], ("n",), *of[1:])]
    for look in looks:
        with pytest.raises(ConfigError, match="topic"):
            look(topic)
        with pytest.raises(SelectorError):
            look(queue, "n >")
