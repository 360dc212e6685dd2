"""Ids of messages: random UUIDs, never twice the same, whoever makes them."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import to_jms
from mtosi_jms.exchange.messages import moment, read_reply
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.jms.ids import random_id
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import connect_privately
from mtosi_jms.transport import ALL_CAPABILITIES, Capability, Connection

from ..waiting import background
from .conftest import SmallEms


@pytest.mark.obligation("SEC21")
def test_ids_are_random_uuids() -> None:
    found = [random_id() for _ in range(1_000)]
    assert len(set(found)) == len(found)
    for text in found:
        known = uuid.UUID(text)
        assert str(known) == text
        assert (known.version, known.variant) == (4, uuid.RFC_4122)


def test_threads_get_different_ones() -> None:
    found = [background(lambda: [random_id() for _ in range(2_000)]) for _ in range(4)]
    every = [one for done in found for one in done.result(60)]
    assert len(set(every)) == 8_000


@pytest.mark.obligation("SEC21")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_gets_different_ones() -> None:
    random_id()  # so that some are in stock
    reading, writing = os.pipe()
    child = multiprocessing.get_context("fork").Process(target=lambda: os.write(writing, random_id().encode()))
    child.start()
    child.join(60)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert uuid.UUID(pipe.read().decode()) != uuid.UUID(random_id())


# Ids where a wire tells a sender no message ids (C62): the request's own JMSCorrelationID, and who returns it.

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


# What the roles do with single messages: ids and times of those sent, what the patterns get of those that come.


def test_the_time_of_a_header_is_in_whole_seconds_of_utc() -> None:
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    said = moment()
    assert before <= said <= dt.datetime.now(dt.UTC)
    assert (said.microsecond, said.tzinfo) == (0, dt.UTC)


@pytest.mark.parametrize(("one", "other", "same"), [(3, 3, True), (3, 4, False), (None, None, True)])
def test_a_digest_tells_numbered_replies_apart(one: int | None, other: int | None, same: bool) -> None:
    first, second = (read_reply(_reply(number)) for number in (one, other))
    assert first.batch_number == one
    assert (first.body_digest == second.body_digest) is same
    assert bool(first.body_digest) is (one is not None)


def _reply(number: int | None) -> JmsMessage:
    header = Header(
        msg_type=MessageTypeType.RESPONSE,
        sender_uri="queue:A",
        correlation_id=f"id-{number}",
        communication_pattern=CommunicationPatternType.MultipleBatchResponse
        if number is not None
        else CommunicationPatternType.SimpleResponse,
        communication_style=CommunicationStyleType.MSG,
        batch_sequence_number=number,
        batch_sequence_end_of_reply=None if number is None else False,
    )
    return to_jms(header, Envelope(header=header, body=Header(msg_name=f"body {number}")))
