"""Envelopes: read in any dress, written in SOAP 1.1 or the request's version, kept while nothing is touched."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import DecodeError, EncodeError, EnvelopeError, MtosiError, MtosiFault
from mtosi_jms.soap import Envelope, Header, correlation_id, header_text, parse, read
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import NIL, RawXml, core

from .conftest import GET_ME, envelope

HEADER = "<h:header><h:msgType>REQUEST</h:msgType><h:correlationId>1</h:correlationId></h:header>"


def rules(envelope: Envelope) -> list[str]:
    return [warning.rule for warning in envelope.warnings]


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_read_and_written_in_its_version(version: str) -> None:
    data = envelope(HEADER, GET_ME, version)
    found = parse(data)
    assert (found.version, rules(found), found.fault) == (version, [], None)
    assert type(found.body) is GetManagedElementRequest
    assert str(found.body.me_ref) == "ME=NE-7"
    again = parse(found.encode())
    assert again == found
    assert again.version == version


@pytest.mark.obligation("P36", "C52")
@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_built_and_read(version: str) -> None:
    header = Header(msg_type=MessageTypeType.REQUEST, correlation_id="7")
    built = Envelope(header=header, body=GetManagedElementRequest(me_ref=name("ME=NE-7")), version=version)
    found = parse(built.to_bytes())
    assert (found.header, found.body, found.version) == (built.header, built.body, version)
    assert rules(found) == []
    assert Envelope().version == "1.1", "C52"


@pytest.mark.obligation("C11")
def test_header_children_in_any_order() -> None:
    fields = {"msgType": "REQUEST", "senderURI": "a", "correlationId": "1", "priority": "3"}
    texts = [f"<h:{key}>{text}</h:{key}>" for key, text in fields.items()]
    orders = [parse(envelope(f"<h:header>{''.join(parts)}</h:header>")) for parts in itertools.permutations(texts)]
    assert len({found.encode() for found in orders}) == 1
    for found in orders:
        assert {key: header_text(found.header or Header(), key) for key in fields} == fields
        assert set(rules(found)) <= {"order"}


def test_other_header_blocks_are_kept_in_their_places() -> None:
    blocks = '<a:one xmlns:a="urn:a" s:mustUnderstand="1">x</a:one>', '<b:two xmlns:b="urn:b"/>'
    found = parse(envelope(f"{blocks[0]}{HEADER}{blocks[1]}"))
    assert [block.tag for block in found.blocks] == ["{urn:a}one", "{urn:b}two"]
    again = parse(found.encode())
    assert again.blocks == found.blocks
    text = found.encode()
    assert text.index(b"one") < text.index(b"REQUEST") < text.index(b"two")


@pytest.mark.obligation("P36")
def test_of_several_headers_the_first_counts() -> None:
    second = HEADER.replace(">1<", ">2<")
    found = parse(envelope(HEADER + second))
    assert correlation_id(found.header) == "1"
    assert [block.tag.rpartition("}")[2] for block in found.blocks] == ["header"]
    assert rules(found) == ["P36"]
    assert parse(found.encode()).content() == found.content()


@pytest.mark.obligation("001-S1")
@pytest.mark.parametrize("header", [None, "", "<other/>"])
def test_no_header(header: str | None) -> None:
    found = parse(envelope(header))
    assert found.header is None
    assert correlation_id(found.header) is None
    assert rules(found) == ["no-header"]
    with pytest.raises(DecodeError):
        parse(envelope(header), strict=True)


@pytest.mark.parametrize(
    ("data", "told", "more"),
    [
        (envelope(HEADER, ""), ["empty-body"], []),
        (envelope(HEADER, f"{GET_ME}<y/>"), ["P36"], ["y"]),
        (envelope(HEADER).replace(b"</s:Body>", b"</s:Body><s:Body/><z/>"), ["P36", "P36"], []),
        (envelope(HEADER).replace(b"<s:Body>", b"stray<s:Body>stray"), ["stray-text", "stray-text"], []),
    ],
)
def test_what_an_envelope_should_not_have_is_told(data: bytes, told: list[str], more: list[str]) -> None:
    found = parse(data)
    assert (rules(found), [element.tag for element in found.more]) == (told, more)
    assert parse(found.encode()).content() == found.content()


def test_an_unknown_body_stays_as_it_is() -> None:
    found = parse(envelope(HEADER, '<z xmlns="urn:z" k="v"> <q>1</q> </z>'))
    assert isinstance(found.body, RawXml)
    assert parse(found.encode()).body == found.body


@pytest.mark.obligation("001-E11")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<Envelope/>", "not a SOAP envelope"),
        (b"<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelop/'/>", "not a SOAP envelope"),
        (b"<s:Envelope xmlns:s='urn:mail'><s:Body/></s:Envelope>", "not a SOAP envelope"),
        (b"<s:Body xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'/>", "the root element is Body"),
        (b"<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'/>", "without a Body"),
        (b"<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><Body/></s:Envelope>", "without a Body"),
    ],
)
def test_what_is_no_envelope(data: bytes, words: str) -> None:
    with pytest.raises(EnvelopeError, match=words) as caught:
        parse(data, source="here.xml")
    assert (caught.value.source, caught.value.line) == ("here.xml", 1)


@pytest.mark.parametrize("form", ["<h:{0}/>", "<h:{0}></h:{0}>", "<h:{0}> \t\n</h:{0}>"])
@pytest.mark.parametrize(
    "field",
    ["msgType", "senderURI", "correlationId", "requestedBatchSize", "batchSequenceEndOfReply", "activityStatus"],
)
def test_an_empty_header_element_counts_as_absent(field: str, form: str) -> None:
    found = parse(envelope(f"<h:header>{form.format(field)}</h:header>"))
    assert found.header is not None
    assert header_text(found.header, field) is None


@pytest.mark.obligation("R3c")
@pytest.mark.parametrize("text", [" 1", "1 ", " a  b\t", "\n1\n", "ü€𝄞", "x" * 300])
def test_the_correlation_id_is_kept_with_its_blanks(text: str) -> None:
    found = parse(envelope(f"<h:header><h:correlationId>{text}</h:correlationId></h:header>"))
    assert correlation_id(found.header) == text
    assert correlation_id(parse(found.encode()).header) == text
    built = Envelope(header=Header(correlation_id=text), body=RawXml(b"<x></x>"))
    assert correlation_id(parse(built.to_bytes()).header) == text


def test_nil_is_absent_too() -> None:
    assert header_text(Header(msg_name=NIL), "msgName") is None  # type: ignore[arg-type]


DRESSES = {
    "declaration": lambda text: b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n' + text,
    "bom": lambda text: b"\xef\xbb\xbf" + text,
    "utf-16": lambda text: text.decode().encode("utf-16"),
    "comments": lambda text: text.replace(b"<s:Body>", b"<!-- c --><?p i?><s:Body><!-- d -->"),
    "blanks": lambda text: text.replace(b"><", b">\n  <") + b"\n\n",
    "quotes": lambda text: text.replace(b'"', b"'"),
    "latin-1": lambda text: b'<?xml version="1.0" encoding="ISO-8859-1"?>' + text.replace(b"NE-7", b"NE-\xe9"),
}


@pytest.mark.obligation("P37")
@pytest.mark.parametrize("dress", DRESSES)
def test_untouched_it_goes_out_as_it_came(dress: str) -> None:
    data = DRESSES[dress](envelope(HEADER, GET_ME))
    found = parse(data)
    assert type(found.body) is GetManagedElementRequest
    assert found.to_bytes() == data
    assert header_text(found.header or Header(), "msgType") == "REQUEST", "looking is not touching"
    assert found.to_bytes() == data
    assert parse(found.encode()).body == found.body


def change_rdn(found: Envelope) -> None:
    found.body.me_ref.rdn[0].value = "NE-8"


def add_rdn(found: Envelope) -> None:
    found.body.me_ref.rdn *= 2


def change_header(found: Envelope) -> None:
    assert found.header is not None
    found.header.correlation_id = "2"


def change_version(found: Envelope) -> None:
    found.version = "1.2"


def add_block(found: Envelope) -> None:
    found.blocks.append(RawXml(b"<b></b>"))


def add_more(found: Envelope) -> None:
    found.more.append(RawXml(b"<b></b>"))


def set_attribute(found: Envelope) -> None:
    found.attributes["Body"] = {"{urn:u}Id": "1"}


@pytest.mark.parametrize(
    "change", [change_rdn, add_rdn, change_header, change_version, add_block, add_more, set_attribute]
)
def test_what_is_touched_anywhere_is_written_anew(change: Callable[[Envelope], None]) -> None:
    data = envelope(HEADER, GET_ME)
    found = parse(data)
    change(found)
    written = found.to_bytes()
    assert written != data
    again = parse(written)
    assert again.content() == found.content()
    change_back = parse(data)
    assert change_back.to_bytes() == data


def test_an_envelope_that_says_it_is_nil_is_written_as_it_came() -> None:
    document = (
        '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"'
        ' i:nil="true"><s:Body><x/></s:Body></s:Envelope>'
    )
    found = parse(document.encode(), needs_header=False)
    assert parse(found.encode(), needs_header=False).attributes == found.attributes != {}


def test_what_cannot_be_xml_is_refused() -> None:
    with pytest.raises(EncodeError):
        Envelope(header=Header(msg_name="\x01")).to_bytes()
    with pytest.raises(EncodeError):
        Envelope(body=object()).to_bytes()


def test_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_bytes(envelope(HEADER))
    assert read(file).source == str(file)
    with pytest.raises(OSError, match="missing"):
        read(tmp_path / "missing.xml")


@pytest.mark.obligation("C55")
@pytest.mark.parametrize(
    "header",
    [
        "<h:header><h:security>S3CRET</h:security></h:header>",
        "<h:header><h:security>S3CRET</h:security><h:security>S3CRET</h:security></h:header>",
        "<h:header><h:security><h:a>S3CRET</h:a></h:security></h:header>",
        '<h:header><h:security k="S3CRET">S3CRET</h:security></h:header>',
        '<w:Security xmlns:w="urn:w">S3CRET</w:Security><h:header><h:security>S3CRET</h:security></h:header>',
    ],
)
def test_a_security_value_is_shown_nowhere(header: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    found = parse(envelope(header))
    told = (
        f"{found!r} {found.header!r} {found.blocks!r} {found.warnings!r} {[str(warning) for warning in found.warnings]}"
    )
    try:
        parse(envelope(header), strict=True)
    except MtosiError as error:
        told += f"{error} {error!r}"
    assert "S3CRET" not in told + caplog.text
    assert found.encode().count(b"S3CRET") == header.count("S3CRET"), "and nothing of it is lost"


# An envelope that is passed on with another header: the body goes on as it came.

MER = "http://www.tmforum.org/mtop/mri/xsd/mer/v1"
OPEN = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"'
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=30)


def came(text: str) -> Envelope:
    """The envelope as the native core reads it where it is installed; the Python core writes all anew."""
    envelope = parse(text.encode())
    assert envelope.origin is not None
    assert (envelope.origin.cuts is not None) == (core().name == "native")
    return envelope


def written(prefix: str, inner: str, beginning: str = OPEN) -> str:
    header = "<s:Header><h:header><h:activityName>x</h:activityName></h:header></s:Header>"
    body = f"<s:Body> <{prefix}:getManagedElementResponse>{inner}</{prefix}:getManagedElementResponse> </s:Body>"
    return f'{beginning} xmlns:{prefix}="{MER}">{header}{body}</s:Envelope>'


def test_the_octets_of_the_body_are_those_that_came() -> None:
    odd = "<q:me><b:location>größe &amp;\n Ä</b:location></q:me>"
    envelope = came(written("q", odd, f'{OPEN} xmlns:b="http://www.tmforum.org/mtop/nrf/xsd/me/v1"'))
    envelope.header = Header(activity_name="other", correlation_id="7")
    assert (odd.encode() in envelope.passed_on()) == (core().name == "native")
    read = parse(envelope.passed_on())
    assert (read.header, read.body) == (envelope.header, envelope.body)


@given(TEXTS, TEXTS, st.sampled_from(["", "other", "getManagedElementsIteratorResponse"]))
def test_it_says_what_writing_it_anew_says(name: str, location: str, local: str) -> None:
    body = GetManagedElementResponse(me=ManagedElementType(location=location))
    made = Envelope(header=Header(activity_name="a"), body=body)
    envelope = came(made.to_bytes().decode())
    envelope.header = Header(activity_name=name, correlation_id=name)
    read = parse(envelope.passed_on(f"{{{MER}}}{local}" if local else ""))
    assert read.header == envelope.header
    if local:
        assert read.body.tag == f"{{{MER}}}{local}"
        assert read.body.text == location
    else:
        assert read.body == body


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1.2"},
        {"header": None},
        {"origin": None},
        {"body": GetManagedElementResponse(), "origin": None},
    ],
)
def test_what_cannot_stay_is_written_anew(change: dict[str, Any]) -> None:
    envelope = replace(came(written("q", "")), **change)
    read = parse(envelope.passed_on(), needs_header=False)
    assert (read.version, read.header, read.body) == (envelope.version, envelope.header, envelope.body)


def test_a_default_namespace_of_theirs_does_not_reach_the_header() -> None:
    envelope = parse(written("q", "", f'{OPEN} xmlns="urn:theirs"').encode())
    envelope.header = Header(activity_name="other")
    assert parse(envelope.passed_on()).header == envelope.header


def test_another_namespace_for_the_body() -> None:
    envelope = came(written("q", ""))
    assert parse(envelope.passed_on("{urn:other}x")).body.tag == "{urn:other}x"


def test_a_fault_goes_on_as_it_came() -> None:
    text = Envelope.bare_fault(MtosiFault("no"), Header(activity_name="x")).to_bytes().replace(b"><s", b"> <s")
    assert parse(text).passed_on() == text
