"""Header blocks beside the MTOSI header: handlers see them, and a block that must be understood is not ignored."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable
from threading import Event
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import ConfigError, EnvelopeError, HeaderError, MtosiFault
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.jms import JmsMessage
from mtosi_jms.namespaces import SOAP11, SOAP12
from mtosi_jms.runtime import events
from mtosi_jms.service import CallOptions, ServiceInfo
from mtosi_jms.soap import Envelope, Header, blocks_in, parse
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.testing import exchange
from mtosi_jms.xmlbind import RawXml

from .conftest import SmallEms

SPACES = {"1.1": SOAP11, "1.2": SOAP12}
NAME = "{urn:tx}Transaction"
ASK = mer.GetAllManagedElementsRequest()
TYPED = mer.GetManagedElementResponse
"""A class of the stubs that stands for one of a header block."""


def block(
    version: str, attributes: str, element: str = '<t:Transaction xmlns:t="urn:tx"{}>5</t:Transaction>'
) -> RawXml:
    return RawXml(element.format(f' xmlns:S="{SPACES[version]}"{attributes}').encode())


def request(version: str, *blocks: RawXml) -> Envelope:
    header = Header(activity_name="getAllManagedElements", msg_type=MessageTypeType.REQUEST, sender_uri="urn:os")
    made = Envelope(header=header, body=ASK, version=version, blocks=list(blocks))
    return parse(made.to_bytes())


MUST = ' S:mustUnderstand="1"'
OTHER = "urn:another-node"


@pytest.mark.obligation("REQ3")
@pytest.mark.parametrize(
    ("version", "attributes", "refused"),
    [
        ("1.1", MUST, True),
        ("1.1", ' S:mustUnderstand=" 1 "', True),
        ("1.1", ' S:mustUnderstand="0"', False),
        ("1.1", ' S:mustUnderstand=""', True),
        ("1.1", "", False),
        ("1.1", ' mustUnderstand="1"', False),  # not SOAP's attribute
        ("1.1", f' xmlns:other="{SOAP12}" other:mustUnderstand="1"', False),
        ("1.1", f'{MUST} S:actor="{OTHER}"', False),
        ("1.1", f'{MUST} S:actor=""', True),
        ("1.1", f'{MUST} S:actor="http://schemas.xmlsoap.org/soap/actor/next"', True),
        ("1.2", MUST, True),
        ("1.2", ' S:mustUnderstand="true"', True),
        ("1.2", ' S:mustUnderstand="false"', False),
        ("1.2", ' S:mustUnderstand="0"', False),
        ("1.2", f'{MUST} S:role="{OTHER}"', False),
        ("1.2", f'{MUST} S:role="{SOAP12}/role/none"', False),
        ("1.2", f'{MUST} S:role="{SOAP12}/role/next"', True),
        ("1.2", f'{MUST} S:role="{SOAP12}/role/ultimateReceiver"', True),
    ],
)
def test_a_request(version: str, attributes: str, refused: bool) -> None:
    ems = SmallEms()
    (reply,) = Dispatcher([ems]).dispatch(request(version, block(version, attributes)))
    assert len(ems.contexts) == (not refused)
    if refused:
        read = parse(reply.to_bytes())
        assert read.fault is not None
        assert (read.version, read.fault.fault_code, NAME in read.fault.reason) == (version, "MustUnderstand", True)
        named = [(one.tag, one.element().get("qname")) for one in read.blocks]
        assert named == ([(f"{{{SOAP12}}}NotUnderstood", "of:Transaction")] if version == "1.2" else [])
    else:
        assert reply.fault is None
        assert [one.tag for one in ems.contexts[0].header_blocks] == [NAME]


@pytest.mark.obligation("REQ3")
@pytest.mark.parametrize("version", SPACES)
def test_a_block_without_a_namespace(version: str) -> None:
    plain = block(version, MUST, "<Transaction{}/>")
    (reply,) = Dispatcher([SmallEms()]).dispatch(request(version, plain))
    read = parse(reply.to_bytes())
    assert read.fault is not None
    assert (read.fault.fault_code, "Transaction" in read.fault.reason) == ("MustUnderstand", True)
    assert [one.element().get("qname") for one in read.blocks] == (["Transaction"] if version == "1.2" else [])


class Declared(ManagedElementRetrieval.Supplier):
    """Its WSDL declares a header block of the operation."""

    __service__: ClassVar[ServiceInfo] = dataclasses.replace(
        ManagedElementRetrieval.__service__,
        operations=tuple(
            dataclasses.replace(one, headers=("mri.mer:GetManagedElementResponse",))
            for one in ManagedElementRetrieval.__service__.operations
        ),
    )
    seen: ClassVar[list[Any]] = []

    def get_all_managed_elements(self, request: Any, context: mtosi.RequestContext) -> list[Any]:
        self.seen += context.header_blocks
        return []


@pytest.mark.obligation("REQ3")
def test_what_is_understood() -> None:
    both = [block("1.1", MUST), block("1.1", MUST, f'<m:{TYPED.__name__[0].lower()}{TYPED.__name__[1:]}'
                                      ' xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1"{}/>')]  # fmt: skip
    (reply,) = Dispatcher([SmallEms()]).dispatch(request("1.1", *both))
    assert reply.fault is not None
    assert NAME in reply.fault.reason
    assert "getManagedElementResponse" in reply.fault.reason
    (reply,) = Dispatcher([SmallEms()], understands=[NAME, TYPED]).dispatch(request("1.1", *both))
    assert reply.fault is None
    (reply,) = Dispatcher([Declared()], understands=[NAME]).dispatch(request("1.1", *both))
    assert reply.fault is None
    assert [type(one) for one in Declared.seen] == [RawXml, TYPED]
    for wrong in ("x", [3], [mer], 5):
        with pytest.raises(ConfigError, match="understands"):
            Dispatcher([SmallEms()], understands=wrong)  # type: ignore[arg-type]


def with_block(envelope: Envelope) -> Envelope:
    envelope.blocks.append(block("1.1", MUST))
    return envelope


@pytest.mark.obligation("REQ3")
def test_over_jms_a_request_and_a_reply() -> None:
    ems = SmallEms()
    sending = CallOptions(on_request=with_block)
    with exchange([ems]) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        with pytest.raises(MtosiFault, match=r"urn:tx.Transaction") as refused:
            stub.get_managed_element(me_ref="MD=EMS1/ME=NE-1", options=sending)
        assert refused.value.fault_code == "MustUnderstand"
    assert ems.contexts == []

    def tamper(replies: Iterable[JmsMessage]) -> Iterable[JmsMessage]:
        for reply in replies:
            added = b"<soap:Header>" + block("1.1", MUST).xml
            yield dataclasses.replace(reply, body=reply.body.replace(b"<soap:Header>", added))

    with exchange([ems], tamper=tamper) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        wanted = {"me_ref": "MD=EMS1/ME=NE-1"}
        for call in (
            lambda: stub.get_managed_element(**wanted),
            lambda: asyncio.run(stub.aio.get_managed_element(**wanted)),
            lambda: list(stub.get_all_managed_elements.objects(batch_size=2)),
        ):
            with pytest.raises(EnvelopeError, match="mustUnderstand"):
                call()
        assert stub.get_managed_element(**wanted, options=CallOptions(understands=[NAME])).me
        with pytest.raises(ConfigError, match="understands"):
            CallOptions(understands=NAME)


@pytest.mark.obligation("REQ4")
def test_a_notification() -> None:
    body = Notify(topic="Fault", message=NotifyMessage(common_event_information=[Alarm(object_type="ME")]))
    header = Header(activity_name="notify", msg_type=MessageTypeType.NOTIFICATION, sender_uri="urn:ems")
    message = JmsMessage(body=Envelope(header=header, body=body, blocks=[block("1.1", MUST)]).to_bytes())
    failures: list[Exception] = []
    with mtosi.connect("memory:") as connection:
        connection.session().send(mtosi.Queue("N"), message)
        connection.session().send(mtosi.Queue("N"), message)
        with mtosi.Subscriber(connection, "queue:N", timeout=0.0, on_error=failures.append) as strict:
            assert list(strict) == []
        assert [type(failure) for failure in failures] == [EnvelopeError, EnvelopeError]
        connection.session().send(mtosi.Queue("N"), message)
        with mtosi.Subscriber(connection, "queue:N", timeout=0.0, understands=[NAME]) as knowing:
            assert len(list(knowing)) == 1
    taken: list[Any] = []
    context: Any = SimpleNamespace(cancelled=Event())
    with pytest.raises(EnvelopeError, match="mustUnderstand"):
        events(lambda event, _: taken.append(event))(message, context)
    events(lambda event, _: taken.append(event), understands=[NAME])(message, context)
    assert len(taken) == 1


@pytest.mark.parametrize(
    ("version", "attributes", "written"),
    [
        (
            "1.1",
            f'{MUST} S:actor="http://schemas.xmlsoap.org/soap/actor/next"',
            {"mustUnderstand": "1", "role": "next"},
        ),
        ("1.2", f' S:mustUnderstand="true" S:role="{SOAP12}/role/next"', {"mustUnderstand": "1", "actor": "next"}),
        ("1.2", ' S:mustUnderstand="false" here="x"', {"mustUnderstand": "0", "here": "x"}),
    ],
)
def test_blocks_keep_their_meaning_in_another_version(version: str, attributes: str, written: dict[str, str]) -> None:
    other = "1.2" if version == "1.1" else "1.1"
    given = Envelope(version=version, blocks=[block(version, attributes)])
    assert blocks_in(given, version) == given.blocks
    (made,) = blocks_in(given, other)
    found = made.element().attrib
    assert {name.rpartition("}")[2]: value.rpartition("/")[2] for name, value in found.items()} == written
    assert all(name.startswith(f"{{{SPACES[other]}}}") for name in found if name != "here")


# `on_request`: what a caller makes of the envelope of a request is what goes out.


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
