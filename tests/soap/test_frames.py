"""Envelopes whose beginning is known are read without a tree: the same as from the tree, or not at all."""

from __future__ import annotations

import random
from typing import Any

import pytest
from lxml import etree

from mtosi_jms import soap
from mtosi_jms.errors import ForbiddenXmlError, MalformedXmlError, MtosiError
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.soap import _frames as frames
from mtosi_jms.soap import _reading as reading
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse, GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType
from mtosi_jms.xmlbind import DEFAULT_LIMITS, Limits
from mtosi_jms.xmlbind import _scan as scan
from mtosi_jms.xmlbind.columns import Scanner

PIECES = (b"<", b">", b"/>", b"</", b"&", b"&amp;", b"&#65;", b"<!-- c -->", b"<?p i?>", b"<![CDATA[x]]>", b"]]>", b" ")
MORE = (
    b"\r",
    b"\0",
    b"\xff",
    b"\xef\xbf\xbe",
    b"=",
    b"'",
    b'"',
    b" xmlns='u'",
    b" a='1'",
    b"<x/>",
    b"Body",
    b"header>",
)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns are made for the first document, and nothing is known of other tests' envelopes."""
    monkeypatch.setattr(frames, "_frames", {})
    monkeypatch.setattr(scan, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(scan, "_PATIENCE", 1 << 60)
    monkeypatch.setattr(scan, "scanners", scan.Recipes(Scanner))
    monkeypatch.setattr(frames, "scanners", scan.scanners)


def _element(number: int) -> ManagedElementType:
    return ManagedElementType(name=name(f"MD=E/ME={number}"), user_label="a & b", owner="", is_in_sync_state=True)


def _document(body: Any, **fields: Any) -> bytes:
    header = Header(
        msg_type=MessageTypeType.RESPONSE,
        sender_uri="jms/EmsOS",
        destination_uri="jms/InventoryOS",
        correlation_id=" c 1 ",
        communication_pattern=CommunicationPatternType.MultipleBatchResponse,
        communication_style=CommunicationStyleType.MSG,
        batch_sequence_number=3,
        batch_sequence_end_of_reply=False,
        **fields,
    )
    return Envelope(header=header, body=body).encode()


DOCUMENTS = {
    "request": _document(GetManagedElementRequest(me_ref=name("MD=E/ME=1"))),
    "response": _document(GetManagedElementResponse(me=_element(1))),
    "batch": _document(GetAllManagedElementsResponse(me_list=ManagedElementListType(me=[_element(1), _element(2)]))),
    "other prefixes": _document(GetManagedElementResponse(me=_element(1)))
    .replace(b"soap:", b"").replace(b"xmlns:soap", b"xmlns").replace(b"hdr:", b"h:").replace(b"xmlns:hdr", b"xmlns:h"),
    "blanks": _document(GetManagedElementResponse(me=_element(1))).replace(b"><", b">\n  <"),
    "soap 1.2": _document(GetManagedElementResponse(me=_element(1))).replace(
        b"http://schemas.xmlsoap.org/soap/envelope/", b"http://www.w3.org/2003/05/soap-envelope"
    ),
}  # fmt: skip


def _seen(data: bytes) -> Any:
    """What is read, or how it fails."""
    try:
        found = soap.parse(data)
    except MtosiError as error:
        return type(error), str(error)
    assert found.to_bytes() == data
    return found.header, found.body, found.version, found.warnings, found.blocks, found.more, found.attributes


def _from_tree(data: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patched:
        patched.setattr(frames, "read_framed", lambda *_: None)
        patched.setattr(frames, "remember", lambda *_: None)
        patched.setattr(reading._ShellReader, "of", lambda *_: None)
        return _seen(data)


@pytest.mark.parametrize("data", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_the_second_envelope_needs_no_tree(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert frames.read_framed(data, None, DEFAULT_LIMITS) is None
    first = _seen(data)
    parts = frames.read_framed(data, None, DEFAULT_LIMITS)
    assert parts is not None
    assert (parts.header, parts.body, parts.version) == first[:3]
    assert first[3] == []
    assert _seen(data) == first == _from_tree(data, monkeypatch)


@pytest.mark.parametrize("data", DOCUMENTS.values(), ids=DOCUMENTS.keys())
@pytest.mark.parametrize("seed", range(8))
def test_damaged_envelopes_are_read_as_from_the_tree(data: bytes, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    soap.parse(data)
    for _ in range(60):
        start = chance.randrange(len(data))
        length = chance.choice((0, 0, 1, 3, 20))
        damaged = data[:start] + chance.choice((b"", *PIECES, *MORE)) + data[start + length :]
        assert _seen(damaged) == _from_tree(damaged, monkeypatch)


def _default_namespace(number: int) -> bytes:
    """A response whose body is in the default namespace; each number has a beginning of its own."""
    data = DOCUMENTS["response"].replace(b"mer:", b"").replace(b"xmlns:mer", b"xmlns")
    return data.replace(b" xmlns:hdr", b' xmlns:n%d="urn:n" xmlns:hdr' % number)


def _odd_names() -> list[bytes]:
    chance = random.Random(5)
    name = b"getManagedElementResponse"
    pieces = [b":", b"::", b"-", b".", b"1", b"mer:", b"hdr:", b" ", b"\t", b"/", b"&amp;", b"\xc2\xb7", b"'"]
    places = (0, 0, 0, len(name), chance.randrange(len(name)))
    return [name[:at] + piece + name[at:] for piece in pieces for at in places]


def test_whether_an_envelope_is_accepted_does_not_depend_on_those_before() -> None:
    known = _default_namespace(0)
    soap.parse(known)
    for number, odd in enumerate(_odd_names(), start=1):
        for old, new in ((b"<getM", b"<"), (b"</getM", b"</"), (b"getM", b"")):
            warm, cold = (
                _default_namespace(at).replace(old + b"anagedElementResponse", new + odd) for at in (0, number)
            )
            assert frames.read_framed(cold, None, DEFAULT_LIMITS) is None
            first, again = _seen(cold), _seen(warm)
            assert type(first[0]) is type(again[0])
            try:
                etree.fromstring(warm)
            except etree.XMLSyntaxError:
                assert again[0] is MalformedXmlError
            else:
                assert again[0] is not MalformedXmlError


def test_a_known_beginning_is_no_way_round_the_limits() -> None:
    data = _default_namespace(1).replace(
        b" xmlns:n1", b"".join(b' xmlns:p%d="urn:p"' % at for at in range(50)) + b" xmlns:n1"
    )
    soap.parse(data)
    assert soap.parse(data).warnings == []
    with pytest.raises(ForbiddenXmlError, match="more than 20 namespace declarations"):
        soap.parse(data, limits=Limits(max_namespaces=20))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"</hdr:header>", b"</hdr:header><v xmlns='urn:v'/>"),
        (b"</hdr:header>", b"</hdr:header><hdr:header/>"),
        (b"<soap:Body>", b"<soap:Body a='1'>"),
        (b"</soap:Body>", b"<v xmlns='urn:v'/></soap:Body>"),
        (b"</soap:Body>", b"</soap:Body><soap:Body/>"),
        (b"</soap:Envelope>", b"</soap:Envelope><!-- the end -->"),
        (b"<hdr:header>", b"<hdr:header a='1'>"),
        (b"<hdr:msgType>RESPONSE", b"<hdr:msgType>NONSENSE"),
        (b"<hdr:correlationId>", b"<hdr:unknown/><hdr:correlationId>"),
        (b"mer:getManagedElementResponse", b"mer:getNothing"),
        (b"mer:getManagedElementResponse", b"nix:getManagedElementResponse"),
        (b"</mer:getManagedElementResponse>", b"</mer:getManagedElementResponse >"),
    ],
)
def test_what_is_odd_is_reported(old: bytes, new: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DOCUMENTS["response"]
    soap.parse(data)
    odd = data.replace(old, new)
    assert odd != data
    assert _seen(odd) == _from_tree(odd, monkeypatch)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"<soap:Envelope ", b"<soap:Envelope soap:encodingStyle='urn:e' "),
        (b"<soap:Header>", b"<soap:Header><v xmlns='urn:v'/>"),
        (b"<soap:Header>", b"<soap:Header><!-- <hdr:header> -->"),
        (b'encoding="UTF-8"', b'encoding="ISO-8859-1"'),
        (b"<hdr:header>", b"<hdr:header xmlns:u='urn:u'>"),
    ],
)
def test_an_odd_beginning_is_not_remembered(old: bytes, new: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = DOCUMENTS["response"].replace(old, new, 1)
    assert odd != DOCUMENTS["response"]
    assert _seen(odd) == _seen(odd) == _from_tree(odd, monkeypatch)
    assert frames._frames == {}


def test_bounds_hold() -> None:
    data = DOCUMENTS["response"]
    soap.parse(data)
    assert frames.read_framed(data, None, Limits(max_bytes=len(data))) is not None
    with pytest.raises(MtosiError, match="larger than"):
        soap.parse(data, limits=Limits(max_bytes=len(data) - 1))
    with pytest.raises(MtosiError, match="deeper than 3"):
        soap.parse(data, limits=Limits(max_depth=3))


def test_peers_that_never_begin_the_same_way_fill_no_memory() -> None:
    for number in range(3 * frames._MOST):
        soap.parse(DOCUMENTS["request"].replace(b"<soap:Envelope", b"<soap:Envelope xmlns:n%d='urn:n'" % number))
    assert 0 < len(frames._frames) <= frames._MOST
