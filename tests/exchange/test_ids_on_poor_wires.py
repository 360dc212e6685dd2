"""Ids where a wire tells a sender no message ids (C62): the request's own JMSCorrelationID, and who returns it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import connect_privately
from mtosi_jms.transport import ALL_CAPABILITIES, Capability, Connection

from .conftest import SmallEms

REQUESTS = Queue("IDS.REQUESTS")


@pytest.fixture
def poor() -> Iterator[Connection]:
    """A connection that says what one over STOMP says."""
    with connect_privately() as made:
        made.capabilities = ALL_CAPABILITIES - {Capability.MESSAGE_IDS}
        made.start()
        yield made


@pytest.mark.obligation("C62", "O13a")
def test_a_request_has_an_id_of_its_own_that_is_not_the_correlation_id(poor: Connection) -> None:
    session = poor.session()
    consumer = session.consumer(REQUESTS)
    with mtosi.Requestor(poor, sender_uri="jms/OS", temporary_reply=True, new_id=lambda: "in-xml") as requestor:
        ManagedElementRetrieval(requestor, REQUESTS).get_all_managed_elements.batches(batch_size=2)
        delivery = consumer.receive(60)
        assert delivery is not None
        message = delivery.message
    assert b">in-xml<" in message.body
    assert message.correlation_id
    assert not message.correlation_id.startswith("ID:")  # JMS keeps that for message ids
    assert "in-xml" not in (message.correlation_id, *message.properties.values())


@pytest.mark.obligation("O13d", "C62")
@pytest.mark.parametrize("correlation", ["both", "jms"])
def test_a_reply_with_that_id_alone_is_understood(poor: Connection, correlation: Any) -> None:
    """A supplier of ours that returns it, and whose correlationId in the header is lost on the way."""
    echoing = BindingProfile(jms_echo="correlation-id-first")
    behind = Queue("IDS.BEHIND")
    session = poor.session()
    with (
        mtosi.Supplier(poor, behind, [SmallEms(1)], profile=echoing),
        mtosi.Requestor(
            poor, sender_uri="jms/OS", temporary_reply=True, profile=BindingProfile(correlation=correlation)
        ) as requestor,
    ):
        batches = ManagedElementRetrieval(requestor, REQUESTS).get_all_managed_elements.batches(batch_size=0)
        asked = session.consumer(REQUESTS).receive(60)
        assert asked is not None
        through = session.temporary_queue()
        session.send(behind, replace(asked.message, reply_to=through))
        answered = session.consumer(through).receive(60)
        assert answered is not None
        assert answered.message.correlation_id == asked.message.correlation_id
        lost = JmsMessage(
            body=answered.message.body.replace(b"correlationId>", b"originatorURI>"),
            properties=answered.message.properties,
            correlation_id=answered.message.correlation_id,
        )
        assert asked.message.reply_to is not None
        session.send(asked.message.reply_to, lost)
        assert [len(batch.me_list.me) for batch in batches] == [1]
