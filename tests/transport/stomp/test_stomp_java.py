"""A Java JMS client at the other end of the broker: requests and replies both ways, text, bytes and properties."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess
from mtosi_jms.jms import DeliveryMode, JmsMessage, MessageType, Queue, TemporaryQueue

from ...processes import Program
from ..jvm.clients import jars_of

pytestmark = pytest.mark.broker

REQUEST = JmsMessage(
    body="<größe>\U0001f600</größe>".encode(),
    properties={"MTOSI_requestedBatchSize": 200, "MTOSI_batchSequenceEndOfReply": True, "name": "größe"},
    correlation_id="ID:mine",
    jms_type="kind",
    delivery_mode=DeliveryMode.PERSISTENT,
    priority=7,
)
ANSWER = {"MTOSI_batchSequenceNumber": 7, "MTOSI_batchSequenceEndOfReply": True, "name": "größe"}


@pytest.mark.obligation("P5", "R2b", "R15b", "O1")
def test_both_ways(broker: BrokerProcess, open_stomp: Any, java: Any, queue: Queue) -> None:
    jars = jars_of("activemq")
    run = java.compiled(Path(__file__).with_name("StompPeer.java"), [Path(jar) for jar in jars])
    endpoints = broker.endpoints
    url = f"tcp://127.0.0.1:{endpoints.ports['openwire']}"
    asks = Queue(f"{queue.name}.asks")
    connection = open_stomp(endpoints.url("stomp"))
    session = connection.session()
    temporary = session.temporary_queue()
    replies, questions = session.consumer(temporary), session.consumer(asks)
    with Program([*run, url, endpoints.user, endpoints.password, queue.name, asks.name]) as peer:
        session.send(queue, replace(REQUEST, reply_to=temporary))
        answer = replies.receive(30)
        assert answer is not None
        assert answer.message.body == "<a>größe \U0001f600</a>".encode()
        assert dict(answer.message.properties) == ANSWER
        assert answer.message.message_type is MessageType.TEXT
        question = questions.receive(30)
        assert isinstance(question.message.reply_to, TemporaryQueue)
        session.send(question.message.reply_to, JmsMessage(body=b"<" + b"x" * 99_999))
        session.send(queue, JmsMessage(body=bytes(range(256)), message_type=MessageType.BYTES))
        told = peer.lines(8)
    inner = r"\ud83d\ude00" if "Artemis" in connection.metadata.provider else "&#x1F600;"
    assert told == [
        "kind text",
        rf"text <gr\u00f6\u00dfe>{inner}</gr\u00f6\u00dfe>",
        "mode 2 priority 7",
        "correlation ID:mine type kind",
        "size 200 end true",
        r"name gr\u00f6\u00dfe",
        "reply 100000 <",
        "raw bytes 256",
    ]
