"""Messages of all kinds for the console, the gateway and a bridge: an answer, and never the end of a role."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra console is not installed")
pytest.importorskip("httpx", reason="the extra http is not installed")

import httpx

import mtosi_jms as mtosi
from mtosi_jms.bridge import (
    BridgeFactory,
    BridgeOptions,
    ExternalEndpoint,
    ExternalEndpointRole,
    FlowStyle,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.console import Console, Traffic
from mtosi_jms.gateway import ByRequestor, Endpoint, Store
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.soap import parse
from mtosi_jms.testing import MemoryChannel, connect_privately

from .test_hostile_inputs import hostile_messages

PAGES = ["/", "/messages", "/destinations", "/notifications", "/dead-letters", "/topology"]
LINK = re.compile(r'href="(/(?:message|exchange)[^"]*)"')
CALL = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>
<m:getManagedElementRequest xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1"/></s:Body></s:Envelope>"""

pytestmark = pytest.mark.obligation("OPS6")


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> list[JmsMessage]:
    return list(hostile_messages(tmp_path_factory.mktemp("hostile")))


def client_of(app: Any) -> Any:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost:8085", timeout=60)


def test_the_pages_of_a_console(messages: list[JmsMessage]) -> None:
    traffic = Traffic()
    for number, message in enumerate(messages):
        traffic.record(message.stamped(Queue("Q"), message_id=f"ID:{number}", timestamp_ms=number))

    async def visit() -> None:
        async with client_of(Console(traffic)) as client:
            texts = [(await client.get(page)).raise_for_status().text for page in PAGES]
            links = {unescape(link) for text in texts for link in LINK.findall(text)}
            assert len(links) > len(messages) // 2
            for link in links:
                assert "Traceback" not in (await client.get(link)).raise_for_status().text

    asyncio.run(visit())


def test_replies_to_a_gateway(messages: list[JmsMessage]) -> None:
    with connect_privately({"jms/OS": "queue:OS", "jms/Ems": "queue:Ems"}) as connection:
        requestor = mtosi.Requestor(connection, sender_uri="jms/OS", timeouts=mtosi.Timeouts(first_reply=0.2))
        session = connection.session()
        consumer = session.consumer(Queue("Ems"))
        waiting = iter(messages)

        def answer(delivery: Any) -> None:
            request = delivery.message
            reply = replace(next(waiting), correlation_id=request.message_id, reply_to=None)
            session.send(request.reply_to, reply)

        consumer.listen(answer)
        endpoint = Endpoint(ByRequestor(requestor, "jms/Ems", Store(2**20)))

        async def call() -> None:
            async with client_of(endpoint) as client:
                for message in messages:
                    answer = await client.post("/", content=CALL, headers={"Content-Type": "text/xml"})
                    found = parse(answer.content, needs_header=False)
                    assert (answer.status_code == 200) is (found.fault is None), message

        asyncio.run(call())


def test_messages_for_a_channel(messages: list[JmsMessage]) -> None:
    """What a bridge cannot carry is told and set aside; what comes after it arrives."""
    channel = MemoryChannel("channel", queue=True)
    connection = connect_privately({})
    told: list[Exception] = []
    options = BridgeOptions(pacing=0.05, on_parked=lambda _, error: told.append(error))
    factory = BridgeFactory({0: channel}, {"": lambda: connection}, options)
    queue = JMSDestination(JMSDestinationType.QUEUE, "Q")
    source = ExternalEndpoint(ExternalEndpointRole.SOURCE, queue, FlowStyle.PUSH, MessageType.JMS_MESSAGE)
    sink = ExternalEndpoint(ExternalEndpointRole.SINK, 0, FlowStyle.PUSH, MessageType.STRUCTURED_EVENT)
    with factory, connection, connection.session() as session:
        bridge, _ = factory.create_bridge(source, sink)
        for message in messages:
            session.send(Queue("Q"), message)
        session.send(Queue("Q"), JmsMessage(properties={"last": True}))
        bridge.start_bridge()
        events = channel.event_source(FlowStyle.PULL)
        events.connect()
        while not any(event.get("last") for event in events.pull(timeout=30)):
            pass
        assert bridge.forwarded + len(told) == len(messages) + 1
