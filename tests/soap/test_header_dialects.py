"""The header in its dialects: read and written by one class, mapped by one table, and mended where the field errs."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import random
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import HeaderTemplates, from_jms, to_jms
from mtosi_jms.cli import main
from mtosi_jms.console import _facts as console_facts
from mtosi_jms.errors import ConfigError, DecodeError, HeaderError, MtosiFault
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.header import BY_TAG, DIALECTS, FIELDS, MTOSI_1X, HeaderDialect, dialect_named
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.namespaces import split_clark
from mtosi_jms.soap import FIELD_NAMES, Envelope, Header, as_dialect, dialect_of, header_class, header_texts, parse
from mtosi_jms.stubs.fmw.hdr import HeaderMsgSpecificProperties, HeaderMsgSpecificPropertiesProperty
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.xmlbind import RawXml

VENDOR = dialect_named("{vendor.v1}Head")
ALL = (*DIALECTS, VENDOR)
ENVELOPE = '<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Header>{}</S:Header><S:Body>{}</S:Body></S:Envelope>'
BODY = '<ask xmlns="vendor.v1"/>'
OLD_BODY = '<getAllManagedElements xmlns="tmf854.v1"/>'
NEW_BODY = '<m:getAllManagedElementsRequest xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1"/>'
REQUEST = {
    "activityName": "getAllManagedElements",
    "msgName": "getAllManagedElements",
    "msgType": "REQUEST",
    "senderURI": "queue:OS",
    "destinationURI": "queue:EMS",
    "correlationId": "1",
    "communicationPattern": "SimpleResponse",
    "communicationStyle": "MSG",
}
TABLE_2 = {
    "destinationURI": ("MTOSI_destinationURI", "String"),
    "activityName": ("MTOSI_activityName", "String"),
    "msgType": ("MTOSI_msgType", "String"),
    "msgName": ("MTOSI_msgName", "String"),
    "failureReplytoURI": ("MTOSI_failureReplytoURI", "String"),
    "activityStatus": ("MTOSI_activityStatus", "String"),
    "communicationPattern": ("MTOSI_communicationPattern", "String"),
    "communicationStyle": ("MTOSI_communicationStyle", "String"),
    "requestedBatchSize": ("MTOSI_requestedBatchSize", "Integer"),
    "batchSequenceNumber": ("MTOSI_batchSequenceNumber", "Integer"),
    "batchSequenceEndOfReply": ("MTOSI_batchSequenceEndOfReply", "Boolean"),
}
TEXT = st.text(st.sampled_from("abcXYZ012_-/&<é"), min_size=1, max_size=8)
NUMBER = st.integers(0, 2**31 - 1).map(str)
VALUES: dict[str, Any] = {
    "activityName": TEXT,
    "msgName": TEXT,
    "msgType": st.sampled_from(["REQUEST", "RESPONSE", "ERROR"]),
    "senderURI": TEXT,
    "destinationURI": TEXT,
    "replyToURI": TEXT,
    "originatorURI": TEXT,
    "failureReplytoURI": TEXT,
    "activityStatus": st.sampled_from(["SUCCESS", "FAILURE", "WARNING"]),
    "correlationId": TEXT,
    "priority": st.sampled_from("0123456789"),
    "communicationPattern": st.sampled_from(["SimpleResponse", "MultipleBatchResponse"]),
    "communicationStyle": st.sampled_from(["MSG", "RPC"]),
    "requestedBatchSize": NUMBER,
    "batchSequenceNumber": NUMBER,
    "batchSequenceEndOfReply": st.sampled_from(["true", "false", "1", "0"]),
    "iteratorReferenceURI": TEXT,
    "fileLocationURI": TEXT,
}


def document(dialect: HeaderDialect, fields: list[tuple[str, str]], body: str = BODY, attributes: str = "") -> bytes:
    """An envelope with a header as text, without anything of the SDK."""
    namespace, local = split_clark(dialect.tag)
    inside = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in fields)
    header = f'<{local} xmlns="{namespace}"{attributes}>{inside}</{local}>'
    return ENVELOPE.format(header, body).encode()


def made(dialect: HeaderDialect, **more: Any) -> Header:
    header = parse(document(dialect, list(REQUEST.items())), header=dialect.tag).header
    assert header is not None
    return as_dialect(type(header), {**{n: getattr(header, n) for n in FIELD_NAMES.values()}, **more})


@given(
    dialect=st.sampled_from(DIALECTS),
    fields=st.fixed_dictionaries({}, optional=VALUES),
    seed=st.integers(0, 99),
)
def test_any_header_in_any_dialect_is_mapped_by_the_rules(
    dialect: HeaderDialect, fields: dict[str, str], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pairs = [(name, fields[name]) for name in FIELD_NAMES if name in fields]
    if not dialect.is_ordered:
        random.Random(seed).shuffle(pairs)
    file = tmp_path_factory.getbasetemp() / "header.xml"
    file.write_bytes(document(dialect, pairs))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["map", str(file), "--json"]) == 0
    shown = json.loads(printed.getvalue())

    def typed(name: str) -> object:
        kind = TABLE_2[name][1]
        return {"Integer": int, "Boolean": lambda text: text in ("true", "1")}.get(kind, str)(fields[name])

    is_request = fields.get("msgType", "REQUEST") == "REQUEST"
    expected = {prop: {"type": kind, "value": typed(name)} for name, (prop, kind) in TABLE_2.items() if name in fields}
    if "senderURI" in fields and ("replyToURI" in fields or not is_request):
        expected["MTOSI_senderURI"] = {"type": "String", "value": fields["senderURI"]}
    reply_to = fields.get("replyToURI", fields.get("senderURI")) if is_request else None
    assert shown["properties"] == expected
    assert shown["headers"].get("JMSReplyTo") == reply_to
    assert shown["headers"]["JMSPriority"] == int(fields.get("priority", "4"))
    assert shown["release"] == dialect.release
    missing = {one["message"] for one in shown["warnings"] if "which MTOSI 1.x requires" in one["message"]}
    assert len(missing) == sum(name not in fields for name in dialect.required)


def test_the_table_has_the_fields_of_the_schema() -> None:
    assert [field.name for field in FIELDS] == list(FIELD_NAMES)


@pytest.mark.parametrize("dialect", ALL, ids=lambda one: one.tag)
def test_one_class_reads_and_writes_every_dialect(dialect: HeaderDialect) -> None:
    part = HeaderMsgSpecificPropertiesProperty(prop_name="a", prop_value="b")
    header = made(dialect, msg_specific_properties=HeaderMsgSpecificProperties(property=[part]))
    wire = Envelope(header=header, body=RawXml(BODY.encode())).to_bytes()
    spaces = {split_clark(str(child.tag))[0] for child in RawXml(header.to_xml()).element().iter()}
    assert spaces == {split_clark(dialect.tag)[0]}
    again = parse(wire, header=dialect.tag)
    assert (again.header, again.warnings) == (header, [])
    assert isinstance(again.header, Header)
    assert dialect_of(again.header) == dialect
    for twin in (pickle.loads(pickle.dumps(header)), copy.deepcopy(header), copy.copy(header)):
        assert twin == header
        assert twin.to_xml() == header.to_xml()


@pytest.mark.parametrize("dialect", ALL, ids=lambda one: one.tag)
def test_templates_make_the_messages_of_every_dialect(dialect: HeaderDialect) -> None:
    """Those of requests that are repeated equal those that are made one by one."""
    templates, body = HeaderTemplates(BindingProfile()), EntityNotFoundFault.__detail__
    assert body is not None
    from mtosi_jms.exchange.messages import moment
    from mtosi_jms.jms import NamingContext

    header = made(dialect, timestamp=moment())
    for _ in range(3):
        one = templates.to_jms(header, body(reason="x"), names=NamingContext(), reply_to=Queue("X"))
        other = to_jms(header, body(reason="x"), reply_to=Queue("X"))
        assert (one.body, one.properties) == (other.body, other.properties)


def without(*names: str, **changed: str) -> list[tuple[str, str]]:
    return [(name, changed.get(name, text)) for name, text in REQUEST.items() if name not in names]


SLIPS: dict[str, tuple[list[tuple[str, str]], str, list[str], dict[str, str | None]]] = {
    "a placeholder": (
        without(senderURI=" ? "),
        "",
        ["senderURI has the placeholder '?'", "senderURI is missing"],
        {"senderURI": None},
    ),
    "a placeholder for the id": (
        without(correlationId="?"),
        "",
        ["correlationId has the placeholder"],
        {"correlationId": None},
    ),
    "a style that is misspelt": (
        without(communicationStyle="RCP"),
        "",
        ["communicationStyle 'RCP' is read as 'RPC'"],
        {"communicationStyle": "RPC"},
    ),
    "fields that are missing": (
        without("activityName", "destinationURI"),
        "",
        ["activityName is missing", "destinationURI is missing"],
        {"activityName": None},
    ),
    "placeholders for attributes": (
        without(),
        ' tmf854Version="?" extAuthor="?"',
        ["tmf854Version has the placeholder", "extAuthor has the placeholder"],
        {},
    ),
    "an unknown version": (without(), ' tmf854Version="3.7"', ["tmf854Version '3.7' is no version of MTOSI 1.x"], {}),
    "blanks around a version": (without(), ' tmf854Version=" 1.1 "', ["tmf854Version ' 1.1 ' has blanks"], {}),
    "a placeholder inside a field": (
        [*without(), ("msgSpecificProperties", "?/?")],
        "",
        ["propName has the placeholder"],
        {},
    ),
    "a known version": (without(), ' tmf854Version="1.1"', [], {}),
    "a vendor's author": (without(), ' extAuthor="acme" extVersion="7"', [], {}),
}


@pytest.mark.obligation("DIA2")
@pytest.mark.parametrize("tag", [one.tag for one in DIALECTS if one.release == "1.x"])
@pytest.mark.parametrize("slip", SLIPS)
def test_what_the_field_gets_wrong_is_read_with_a_warning_each_and_never_written(slip: str, tag: str) -> None:
    fields, attributes, expected, texts = SLIPS[slip]
    data = document(BY_TAG[tag], fields, NEW_BODY if not expected else BODY, attributes)
    data = data.replace(b"?/?", b"<property><propName>?</propName><propValue>?</propValue></property>")
    envelope = parse(data)
    warnings = [one.message for one in envelope.warnings if "another release" not in one.message]
    assert len(warnings) == len(expected)
    assert all(any(text in one for one in warnings) for text in expected)
    assert all(one.line is not None for one in envelope.warnings)
    assert envelope.to_bytes() == data
    header: Any = envelope.header
    assert {name: header_texts(header).get(name) for name in texts} == texts
    assert getattr(header, "tmf854_version", None) == ("1.1" if "1.1" in attributes else None)
    header.msg_name = "changed"
    for written in (envelope.to_bytes(), *(one.to_bytes() for one in Dispatcher([]).dispatch(envelope))):
        assert not any(wrong in written for wrong in (b"?<", b'"?"', b"RCP", b"3.7"))
    if expected:
        with pytest.raises(DecodeError):
            parse(data, strict=True)


@pytest.mark.obligation("DIA3")
def test_a_request_of_1x_that_lacks_fields_is_answered_in_its_own_dialect() -> None:
    class Ems(ManagedElementRetrieval.Supplier):
        """Nothing is served."""

    for dialect in DIALECTS:
        data = document(dialect, [("communicationPattern", "SimpleResponse"), ("msgType", "REQUEST")])
        (fault,) = Dispatcher([Ems()], sender_uri="queue:EMS").dispatch(parse(data))
        answer = parse(fault.to_bytes())
        assert answer.header is not None
        assert dialect_of(answer.header) == dialect
        assert answer.header.msg_type == "ERROR"


@pytest.mark.obligation("DIA1")
def test_a_header_that_lacks_a_field_of_its_dialect_is_not_sent() -> None:
    header = made(MTOSI_1X, destination_uri=None)
    with pytest.raises(HeaderError, match="destinationURI"):
        to_jms(header, RawXml(OLD_BODY.encode()), reply_to=Queue("X"))


@pytest.mark.obligation("DIA4")
@pytest.mark.parametrize(
    ("dialect", "body", "mixed"),
    [
        (DIALECTS[0], OLD_BODY, True),
        (DIALECTS[1], NEW_BODY, True),
        (DIALECTS[3], NEW_BODY, True),
        (DIALECTS[0], NEW_BODY, False),
        (DIALECTS[1], OLD_BODY, False),
        (DIALECTS[1], BODY, False),
        (DIALECTS[0], BODY, False),
    ],
)
def test_a_header_over_a_body_of_another_release_is_read_with_a_warning(
    dialect: HeaderDialect, body: str, mixed: bool
) -> None:
    envelope = parse(document(dialect, list(REQUEST.items()), body))
    assert [one.rule for one in envelope.warnings if "another release" in one.message] == ["header"] * mixed
    assert envelope.header is not None
    assert envelope.header.correlation_id == "1"


@pytest.mark.obligation("DIA4")
def test_of_two_headers_the_first_counts_and_the_other_is_kept(tmp_path: Path, capsys: Any) -> None:
    first, second = (
        document(one, [*REQUEST.items(), ("originatorURI", one.release)]) for one in (DIALECTS[1], DIALECTS[0])
    )
    blocks = [data.decode().partition("<S:Header>")[2].partition("</S:Header>")[0] for data in (first, second)]
    envelope = parse(ENVELOPE.format("".join(blocks), BODY))
    assert envelope.header is not None
    assert envelope.header.originator_uri == "1.x"
    assert [one.rule for one in envelope.warnings] == ["P36"]
    assert [block.tag for block in envelope.blocks] == [DIALECTS[0].tag]
    file = tmp_path / "two.xml"
    file.write_text(ENVELOPE.format("".join(blocks), BODY))
    assert main(["validate", str(file), "--json"]) == 1
    assert "2 MTOSI headers" in capsys.readouterr().out


@pytest.mark.obligation("DIA5")
@pytest.mark.parametrize("space", ["", "tmf854.v1", "vendor.v1"])
def test_fields_in_another_namespace_than_their_header_are_read(space: str) -> None:
    tag = "MTOSI_Header" if space else "{tmf854.v1}header"
    namespace, local = split_clark(tag)
    inside = "".join(
        f'<p xmlns="{space}">{text}</p>'.replace("<p", f"<{name}").replace("</p", f"</{name}")
        for name, text in REQUEST.items()
    )
    block = f'<h:{local} xmlns:h="{namespace}">{inside}</h:{local}>' if namespace else f"<{local}>{inside}</{local}>"
    envelope = parse(ENVELOPE.format(block, BODY))
    assert header_texts(envelope.header or Header()) == REQUEST
    assert len(envelope.warnings) == len(REQUEST)


def test_fields_of_a_vendors_header_are_typed() -> None:
    data = document(DIALECTS[3], [*REQUEST.items(), ("domain", "access"), ("payloadVersion", "2"), ("odd", "x")])
    envelope = parse(data)
    header: Any = envelope.header
    assert (header.domain, header.payload_version) == ("access", "2")
    assert len(envelope.warnings) == 1
    assert console_facts.header_fields(data)["correlationId"] == "1"


@pytest.mark.obligation("DIA6")
def test_a_profile_names_a_vendors_header_element() -> None:
    profile = BindingProfile(header=VENDOR.tag)
    data = document(VENDOR, list(REQUEST.items()))
    assert parse(data).header is None
    envelope = from_jms(JmsMessage(body=data), header=profile.header)
    assert envelope.header is not None
    assert type(envelope.header) is header_class(VENDOR)
    for wrong in ("{}", "{urn:x}", "a b", 3):
        with pytest.raises(ConfigError):
            BindingProfile(header=wrong)  # type: ignore[arg-type]


FAULT = (
    "<S:Fault><faultcode>S:Server</faultcode><faultstring>failed</faultstring><detail>"
    '<ProcessingFailureException xmlns="tmf854.v1">{}<exception>{}</exception><reason>gone</reason>'
    "</ProcessingFailureException></detail></S:Fault>"
)


@pytest.mark.obligation("DIA7")
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("EXCPT_ENTITY_NOT_FOUND", "entityNotFound"),
        ("EXCPT_INTERNAL_ERROR", "internalError"),
        ("EXCPT_COMM_FAILURE", "commLoss"),
        ("EXCPT_OBJECT_IN_USE", "objectInUse"),
        ("EXCPT_TP_INVALID_ENDPOINT", "tpInvalidEndPoint"),
        ("MINOR_own", "MINOR_own"),
        ("excpt_entity_not_found", "entityNotFound"),
    ],
)
def test_a_fault_of_1x_is_the_fault_of_its_code(code: str, kind: str) -> None:
    header = document(MTOSI_1X, list(REQUEST.items())).decode().partition("<S:Header>")[2].partition("</S:Header>")[0]
    envelope = parse(ENVELOPE.format("", FAULT.format(header, code)))
    fault = envelope.fault
    assert isinstance(fault, MtosiFault)
    assert (fault.kind, fault.reason) == (kind, "gone")
    assert isinstance(fault, EntityNotFoundFault) == (kind == "entityNotFound")
    assert fault.header.correlation_id == "1"
    assert pickle.loads(pickle.dumps(fault)) == fault


@pytest.mark.obligation("DIA7")
@pytest.mark.parametrize("space", ["tmf854.v1", "vendor.v1"])
def test_a_fault_of_1x_in_a_wrapper_is_the_fault_of_its_code(space: str) -> None:
    before, opened, rest = FAULT.format("", "EXCPT_ENTITY_NOT_FOUND").partition("<detail>")
    inside, closed, after = rest.partition("</detail>")
    wrapped = f'{before}{opened}<askException xmlns="{space}">{inside}</askException>{closed}{after}'
    envelope = parse(ENVELOPE.format("", wrapped), needs_header=False)
    assert isinstance(envelope.fault, EntityNotFoundFault)
    envelope.fault.reason = "changed"
    again = parse(envelope.to_bytes(), needs_header=False).fault
    assert isinstance(again, EntityNotFoundFault)
    assert again.reason == "changed"


def test_commands_read_the_header_of_1x(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "request.xml"
    file.write_bytes(document(MTOSI_1X, list(REQUEST.items())))
    assert main(["inspect", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["release"], shown["header"]["msgType"], shown["operation"]) == (
        "1.x",
        "REQUEST",
        "getAllManagedElements",
    )
