"""What the roles do with single messages: ids and times of those sent, what the patterns get of those that come."""

from __future__ import annotations

import datetime as dt

import pytest

from mtosi_jms.binding.mapping import to_jms
from mtosi_jms.exchange.messages import moment, read_reply
from mtosi_jms.jms import JmsMessage
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType


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
