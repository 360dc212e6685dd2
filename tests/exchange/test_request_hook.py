"""`on_request`: what a caller makes of the envelope of a request is what goes out."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, HeaderError
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import NotifyMessage
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.testing import exchange
from mtosi_jms.xmlbind import RawXml

from .conftest import SmallEms


def changed(envelope: Envelope) -> Envelope:
    """The envelope with another originator, priority and correlation id."""
    assert envelope.header is not None
    header = dataclasses.replace(envelope.header, originator_uri="urn:a", priority="8", correlation_id="case 1")
    return dataclasses.replace(envelope, header=header, blocks=[RawXml(b"<ticket xmlns='urn:b'/>")])


CHANGED = CallOptions(on_request=changed)


def test_headers_properties_and_correlation_follow_it() -> None:
    ems = SmallEms()
    with exchange([ems]) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        assert stub.get_managed_element(me_ref="MD=EMS1/ME=NE-1", options=CHANGED).me
        with stub.get_all_managed_elements.batches(batch_size=2, options=CHANGED) as batches:
            assert batches.correlation_id == "case 1"
            assert len(list(batches)) == 3
        assert asyncio.run(stub.aio.get_managed_element(me_ref="MD=EMS1/ME=NE-1", options=CHANGED)).me
    assert len(ems.contexts) == 3
    for context in ems.contexts:
        assert (context.header.originator_uri, context.correlation_id) == ("urn:a", "case 1")
        assert context.message.priority == 8
        assert parse(context.message.body).blocks[0].tag == "{urn:b}ticket"


def test_a_one_way_request_too() -> None:
    with exchange() as pair:
        event = NotifyMessage(common_event_information=[Alarm(object_type="ME")])
        pair.stub(NotificationConsumer).notify(topic="fault", message=event, options=CHANGED)
        header = pair.scripted.take().envelope.header
        assert header is not None
        assert header.originator_uri == "urn:a"


def test_what_must_not_be_sent_is_not_sent() -> None:
    ems = SmallEms()
    with exchange([ems]) as pair:
        stub = pair.stub(ManagedElementRetrieval)

        def call(on_request: Any) -> None:
            stub.get_managed_element(me_ref="MD=EMS1/ME=NE-1", options=CallOptions(on_request=on_request))

        with pytest.raises(ConfigError, match="on_request: return the envelope to send, not NoneType"):
            call(lambda envelope: None)
        with pytest.raises(ConfigError, match="not an envelope without a header"):
            call(lambda envelope: dataclasses.replace(envelope, header=None))
        with pytest.raises(HeaderError, match="correlationId"):
            call(
                lambda envelope: dataclasses.replace(
                    envelope, header=dataclasses.replace(envelope.header, correlation_id=None)
                )
            )
        with pytest.raises(ZeroDivisionError):
            call(lambda envelope: 1 / 0)
        with pytest.raises(ConfigError, match="on_request: give a function"):
            CallOptions(on_request="x")  # type: ignore[arg-type]
        assert pair.requestor.pending == 0
    assert ems.contexts == []
