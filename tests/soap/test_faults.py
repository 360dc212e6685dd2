"""Faults of every shape: typed, with kind, reason, header and correlationId; changed and written; valid when made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from mtosi_jms.errors import MtosiFault
from mtosi_jms.soap import Envelope, Header, correlation_id, exception_for, fault_class, fault_kinds, header_text, parse
from mtosi_jms.stubs.fmw.hdr import ActivityStatusEnumType, ActivityStatusType, MessageTypeType
from mtosi_jms.stubs.fmw.msg import EntityNotFound, EntityNotFoundFault, InvalidInputFault, UnableToComplyFault
from mtosi_jms.stubs.mri.mer import GetManagedElementException
from mtosi_jms.xmlbind import RawXml

from .conftest import ERROR, KIND, envelope, fault_text

Text = Callable[..., str]
CODES = {"1.1": "Server", "1.2": "Receiver"}


def header() -> Header:
    return Header(
        msg_type=MessageTypeType.ERROR,
        activity_status=ActivityStatusType(value=ActivityStatusEnumType.FAILURE),
        correlation_id=" 17 ",
    )


def fault_in(data: bytes) -> MtosiFault:
    found = parse(data).fault
    assert found is not None
    return found


WRAPPED = "<mer:getManagedElementException>{}</mer:getManagedElementException>"
SHAPES = {
    "as-in-the-samples": WRAPPED,
    "unknown-exception": '<z:getMoonException xmlns:z="urn:z">{}</z:getMoonException>',
    "no-exception-around": "{}",
    "junk-around": '<j:stack xmlns:j="urn:j">at x</j:stack>' + WRAPPED + "<j2/>",
    "junk-inside": "<mer:getManagedElementException><j/>{}<j/></mer:getManagedElementException>",
    "blanks": "\n  <mer:getManagedElementException>\n  {}\n </mer:getManagedElementException>\n",
}


@pytest.mark.obligation("C17")
@pytest.mark.parametrize("shape", SHAPES)
def test_kind_reason_header_and_id(shape: str) -> None:
    data = envelope(None, fault_text(SHAPES[shape].format(KIND)))
    found = parse(data)
    fault = found.fault
    assert type(fault) is EntityNotFoundFault
    assert (fault.kind, fault.reason) == ("entityNotFound", "no NE-7")
    assert (fault.fault_code, fault.fault_string) == ("Client", "words")
    assert isinstance(fault.detail, EntityNotFound)
    assert fault.header is found.header
    assert correlation_id(found.header) == " 17 ", "C17"
    assert header_text(found.header or Header(), "msgType") == "ERROR"
    assert "no-header" not in [warning.rule for warning in found.warnings]
    assert found.to_bytes() == data
    again = parse(found.encode())
    assert again.content() == found.content()


def test_a_kind_that_the_operation_does_not_declare() -> None:
    fault = fault_in(envelope(None, fault_text(WRAPPED.format(KIND.replace("m:entityNotFound", "m:objectInUse")))))
    assert fault.kind == "objectInUse"
    assert fault.header is not None


def test_a_kind_that_nobody_knows() -> None:
    inner = f'<k:moonIsDown xmlns:k="urn:k">{ERROR}<k:reason>eclipse</k:reason></k:moonIsDown>'
    fault = fault_in(envelope(None, fault_text(WRAPPED.format(inner))))
    assert type(fault) is MtosiFault
    assert fault.kind == "moonIsDown"
    assert isinstance(fault.detail, RawXml)
    assert correlation_id(fault.header) == " 17 "
    assert (fault.reason, str(fault)) == ("words", "moonIsDown: words")


@pytest.mark.obligation("C17")
def test_a_header_beside_the_kind_is_no_kind() -> None:
    for inner, shown in ((ERROR, "getManagedElementException"), (f"{ERROR}<moonIsDown/>", "moonIsDown")):
        fault = fault_in(envelope(None, fault_text(WRAPPED.format(inner))))
        assert fault.kind == shown
        assert correlation_id(fault.header) == " 17 "


@pytest.mark.parametrize(
    ("detail", "reason"),
    [
        pytest.param(None, "words", id="none"),
        pytest.param("", "words", id="empty"),
        pytest.param("  plain text ", "words", id="plain-text"),
        pytest.param("<mer:getManagedElementException/>", "words", id="empty-exception"),
        pytest.param('<x xsi:nil="true" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/>', "words", id="nil"),
    ],
)
def test_detail_without_a_kind(detail: str | None, reason: str) -> None:
    data = envelope(None, fault_text(detail))
    found = parse(data)
    assert type(found.fault) is MtosiFault
    assert found.fault.reason == reason
    assert found.header is None
    assert found.to_bytes() == data
    assert parse(found.encode()).content() == found.content()


def test_plain_text_detail_speaks_where_nothing_else_does() -> None:
    assert fault_in(envelope(None, fault_text("  it broke ", words=""))).reason == "it broke"


@pytest.mark.parametrize(
    ("code", "shown"), [("Client", "Client"), ("s:Server.Db", "Server.Db"), (" s:Client ", "Client"), ("", "")]
)
def test_codes_without_prefix(code: str, shown: str) -> None:
    assert fault_in(envelope(None, fault_text(None, code=code))).fault_code == shown


@pytest.mark.parametrize("code", ["", " s:Client ", "Sender", "z:own"])
def test_a_code_that_nobody_touched_stays(code: str) -> None:
    found = parse(envelope(None, fault_text(None, code=code)))
    assert f"<faultcode>{code}</faultcode>".encode() in found.encode()
    found.version = "1.2"
    assert found.fault is not None
    assert parse(found.encode()).version == "1.2"


def test_children_in_the_soap_namespace() -> None:
    text = fault_text(WRAPPED.format(KIND))
    for part in ("faultcode", "faultstring", "detail"):
        text = text.replace(f"<{part}", f"<s:{part}").replace(f"</{part}", f"</s:{part}")
    fault = fault_in(envelope(None, text))
    assert type(fault) is EntityNotFoundFault
    assert (fault.fault_code, fault.fault_string) == ("Client", "words")


@pytest.mark.obligation("001-S3")
def test_soap_1_2() -> None:
    text = (
        "<s:Fault><s:Code><s:Value>s:Sender</s:Value></s:Code><s:Reason><s:Text xml:lang='en'>words</s:Text></s:Reason>"
        f"<s:Detail>{WRAPPED.format(KIND)}</s:Detail></s:Fault>"
    )
    found = parse(envelope(None, text, "1.2"))
    assert type(found.fault) is EntityNotFoundFault
    assert (found.fault.fault_code, found.fault.fault_string, found.version) == ("Sender", "words", "1.2")
    assert parse(found.encode()).content() == found.content()


@pytest.mark.obligation("C17")
def test_the_header_in_the_detail_counts() -> None:
    outer = "<h:header><h:msgType>ERROR</h:msgType><h:correlationId>outer</h:correlationId></h:header>"
    found = parse(envelope(outer, fault_text(WRAPPED.format(KIND))))
    assert correlation_id(found.header) == " 17 "
    assert [block.tag.rpartition("}")[2] for block in found.blocks] == ["header"]
    assert parse(found.encode()).content() == found.content()
    without = parse(envelope(outer, fault_text(None)))
    assert without.fault is not None
    assert correlation_id(without.header) == correlation_id(without.fault.header) == "outer"


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_changed_deep_inside_is_written(shape: str) -> None:
    data = envelope(None, fault_text(SHAPES[shape].format(KIND), more="<faultactor>urn:me</faultactor>"))
    found = parse(data)
    assert found.fault is not None
    found.fault.detail.reason = "changed"
    written = found.to_bytes()
    assert fault_in(written).reason == "changed"
    assert b"urn:me" in written, "what was not touched stays"
    found = parse(data)
    assert found.header is not None
    found.header.correlation_id = "18"
    assert correlation_id(parse(found.to_bytes()).header) == "18"
    found = parse(data)
    assert found.fault is not None
    found.fault.fault_code, found.fault.fault_string = "Server", "other"
    again = fault_in(found.to_bytes())
    assert (again.fault_code, again.fault_string, again.reason) == ("Server", "other", "no NE-7")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_reason_that_is_changed_is_written_where_it_was(shape: str) -> None:
    found = parse(envelope(None, fault_text(SHAPES[shape].format(KIND))))
    assert found.fault is not None
    found.fault.reason = "changed"
    again = fault_in(found.to_bytes())
    assert (again.reason, again.detail.reason, again.fault_string) == ("changed", "changed", "words")
    found.fault.detail.reason = "in the detail"
    assert fault_in(found.to_bytes()).reason == "in the detail"
    found.fault.reason = "no NE-7"
    assert fault_in(found.to_bytes()).reason == "in the detail"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_reason_goes_with_other_changes(shape: str) -> None:
    found = parse(envelope(None, fault_text(SHAPES[shape].format(KIND))))
    assert found.fault is not None
    found.fault.reason = "changed"
    found.fault.detail.header.correlation_id = "18"
    found.fault.fault_string = "other"
    again = parse(found.to_bytes())
    assert again.fault is not None
    assert (again.fault.reason, again.fault.fault_string) == ("changed", "other")
    assert correlation_id(again.header) == "18"


@pytest.mark.parametrize("shape", ["as-in-the-samples", "no-exception-around", "junk-inside", "unknown-exception"])
def test_a_detail_that_is_exchanged_is_written(shape: str) -> None:
    found = parse(envelope(None, fault_text(SHAPES[shape].format(KIND))))
    assert found.fault is not None
    found.fault.detail = EntityNotFound(header=header(), reason="another")
    assert fault_in(found.to_bytes()).reason == "another"


@pytest.mark.parametrize(
    "detail",
    [None, "", "<v:moonIsDown xmlns:v='urn:v'><v:why>x</v:why></v:moonIsDown>"],
)
def test_a_reason_without_a_kind_for_it_is_the_fault_string(detail: str | None) -> None:
    found = parse(envelope(None, fault_text(detail)))
    assert found.fault is not None
    assert found.fault.reason == "words"
    found.fault.reason = "a & b"
    again = fault_in(found.to_bytes())
    assert (again.reason, again.fault_string, again.detail) == ("a & b", "a & b", found.fault.detail)


PARTS = {
    "1.1": "<s:Fault>{}<detail/></s:Fault>",
    "1.2": "<s:Fault>{}<s:Detail/></s:Fault>",
}


@pytest.mark.parametrize("version", PARTS)
@pytest.mark.parametrize("code", [False, True])
def test_words_and_code_that_did_not_come_are_written(version: str, code: bool) -> None:
    given = {"1.1": "<faultcode>s:Client</faultcode>", "1.2": "<s:Code><s:Value>s:Client</s:Value></s:Code>"}[version]
    found = parse(envelope(None, PARTS[version].format(given if code else ""), version))
    assert found.fault is not None
    assert (found.fault.fault_code, found.fault.reason) == ("Client" if code else "", "")
    found.fault.fault_code, found.fault.reason = "Server.db", "why"
    written = found.to_bytes()
    again = fault_in(written)
    assert (again.fault_code, again.reason) == ({"1.1": "Server.db", "1.2": "Receiver.db"}[version], "why")
    children = [etree.QName(child).localname for child in RawXml(again.raw or b"").element()]
    assert children == {"1.1": ["faultcode", "faultstring", "detail"], "1.2": ["Code", "Reason", "Detail"]}[version]


@pytest.fixture(scope="module")
def schema(root: Path) -> etree.XMLSchema:
    """The messages of ManagedElementRetrieval, as libxml2 reads them."""
    return etree.XMLSchema(etree.parse(root / "xsd" / "mri" / "mer.xsd"))


FAULTS = {
    "declared": EntityNotFoundFault("no NE-7"),
    "other-declared": InvalidInputFault("bad <&> name"),
    "undeclared": UnableToComplyFault("cannot"),
    "own-kind": MtosiFault("why", kind="moonIsDown"),
    "no-kind": MtosiFault("why"),
    "with-detail": EntityNotFoundFault("x", detail=EntityNotFound(header=Header(), reason="told in the detail")),
    "no-words": MtosiFault(),
}


@pytest.mark.obligation("C17")
@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("in_soap_header", [False, True])
@pytest.mark.parametrize("case", FAULTS)
def test_what_a_supplier_answers_is_valid(
    case: str, in_soap_header: bool, version: str, schema: etree.XMLSchema
) -> None:
    fault = FAULTS[case]
    made = Envelope.for_fault(
        fault, GetManagedElementException, header(), in_soap_header=in_soap_header, version=version
    )
    data = made.to_bytes()
    exception = etree.fromstring(data).find(".//{*}getManagedElementException")
    assert exception is not None
    schema.assertValid(etree.fromstring(etree.tostring(exception)))
    found = parse(data)
    assert found.warnings == []
    assert (found.version, correlation_id(found.header)) == (version, " 17 ")
    assert len(found.blocks) == int(in_soap_header), "C17"
    assert found.fault is not None
    assert found.fault.fault_code == CODES[version]
    assert found.fault.kind in fault_kinds(GetManagedElementException)
    if case.endswith("declared") and case != "undeclared":
        assert type(found.fault) is type(fault)
    if case == "own-kind":
        assert (found.fault.kind, found.fault.reason) == ("internalError", "moonIsDown: why")
    if case == "with-detail":
        assert found.fault.reason == "told in the detail"


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_a_fault_without_detail(version: str) -> None:
    made = Envelope.bare_fault(MtosiFault("no such operation", fault_code="Client"), header(), version=version)
    root = etree.fromstring(made.to_bytes())
    assert root.find(".//{*}detail") is None
    found = parse(made.to_bytes())
    assert found.warnings == []
    assert found.fault is not None
    assert (found.fault.reason, found.fault.kind) == ("no such operation", "")
    assert found.fault.fault_code == {"1.1": "Client", "1.2": "Sender"}[version]
    assert correlation_id(found.header) == " 17 ", "the requestor can tell what is answered"


def test_the_header_of_the_fault_is_the_reply_s_and_not_the_handler_s() -> None:
    made = exception_for(FAULTS["with-detail"], GetManagedElementException, header())
    assert isinstance(made, GetManagedElementException)
    assert made.entity_not_found is not None
    assert made.entity_not_found.header == header()
    detail = FAULTS["with-detail"].detail
    assert detail.header == Header(), "the handler's object is left alone"


def test_fault_classes_by_kind() -> None:
    assert fault_class("entityNotFound", GetManagedElementException) is EntityNotFoundFault
    assert fault_class("moonIsDown", GetManagedElementException) is MtosiFault
    assert "entityNotFound" in fault_kinds(GetManagedElementException)


@pytest.mark.obligation("C55")
def test_a_fault_shows_no_security_value() -> None:
    secret = KIND.replace("</h:header>", "<h:security>S3CRET</h:security></h:header>")
    found = parse(envelope(None, fault_text(WRAPPED.format(secret))))
    fault = found.fault
    assert fault is not None
    assert fault.header.security == "S3CRET"
    shown = f"{fault} {fault!r} {fault.header!r} {fault.detail!r} {found!r} {found.warnings}"
    assert "S3CRET" not in shown
