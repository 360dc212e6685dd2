"""Both cores read the same of an envelope, and the native one reads what has nothing beside header and body."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from mtosi_jms import soap
from mtosi_jms.errors import DecodeError, ForbiddenXmlError, MtosiError
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse, GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType
from mtosi_jms.xmlbind import DEFAULT_LIMITS, XmlLimits
from mtosi_jms.xmlbind.columns import read_enveloped

pytest.importorskip("mtosi_jms.xmlbind._core", reason="the native core is not built")

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


def _from_tree(data: bytes, cores: ModuleType) -> Any:
    with cores.core("python"):
        return _seen(data)


@pytest.fixture(autouse=True)
def native(cores: ModuleType) -> Iterator[None]:
    """The native core runs, whichever the environment asks for."""
    with cores.core("native"):
        yield


def _is_native(data: bytes, limits: XmlLimits = DEFAULT_LIMITS) -> bool:
    return read_enveloped(data, Header, None, strict=False, source=None, limits=limits) is not None


@pytest.mark.parametrize("data", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_plain_envelopes_need_no_tree(data: bytes, cores: ModuleType) -> None:
    assert _is_native(data)
    assert _seen(data) == _from_tree(data, cores)


@pytest.mark.parametrize("data", DOCUMENTS.values(), ids=DOCUMENTS.keys())
@pytest.mark.parametrize("seed", range(8))
def test_damaged_envelopes_are_read_as_from_the_tree(data: bytes, seed: int, cores: ModuleType) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        start = chance.randrange(len(data))
        length = chance.choice((0, 0, 1, 3, 20))
        damaged = data[:start] + chance.choice((b"", *PIECES, *MORE)) + data[start + length :]
        assert _seen(damaged) == _from_tree(damaged, cores)


def test_a_default_namespace_and_many_declarations(cores: ModuleType) -> None:
    many = b"".join(b' xmlns:p%d="urn:p"' % at for at in range(50))
    data = DOCUMENTS["response"].replace(b"mer:", b"").replace(b"xmlns:mer", b"xmlns")
    data = data.replace(b" xmlns:hdr", many + b" xmlns:hdr")
    assert _is_native(data)
    assert _seen(data) == _from_tree(data, cores)
    with pytest.raises(ForbiddenXmlError, match="more than 20 namespace declarations"):
        soap.parse(data, limits=XmlLimits(max_namespaces=20))


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
        (b"<soap:Envelope ", b"<soap:Envelope soap:encodingStyle='urn:e' "),
        (b"<soap:Header>", b"<soap:Header><v xmlns='urn:v'/>"),
        (b"<soap:Header>", b"<soap:Header><!-- <hdr:header> -->"),
        (b'encoding="UTF-8"', b'encoding="ISO-8859-1"'),
        (b"<hdr:header>", b"<hdr:header xmlns:u='urn:u'>"),
        (b"<mer:me>", b"<mer:me><mer:unknown>x</mer:unknown>"),
        (b"<mer:me>", b"<mer:me password='x'>"),
    ],
)
def test_what_is_odd_or_stands_beside_is_reported_and_kept(old: bytes, new: bytes, cores: ModuleType) -> None:
    odd = DOCUMENTS["response"].replace(old, new)
    assert odd != DOCUMENTS["response"]
    assert _seen(odd) == _from_tree(odd, cores)


def test_bounds_hold() -> None:
    data = DOCUMENTS["response"]
    assert _is_native(data, XmlLimits(max_bytes=len(data)))
    with pytest.raises(MtosiError, match="larger than"):
        soap.parse(data, limits=XmlLimits(max_bytes=len(data) - 1))
    with pytest.raises(MtosiError, match="deeper than 3"):
        soap.parse(data, limits=XmlLimits(max_depth=3))


def test_in_strict_mode_the_first_warning_is_an_error(cores: ModuleType) -> None:
    odd = DOCUMENTS["response"].replace(b"<mer:me>", b"<mer:me>\n<mer:unknown/><mer:other/>")
    found = []
    for core in ("python", "native"):
        with cores.core(core), pytest.raises(DecodeError) as caught:
            soap.parse(odd, strict=True, source="name")
        found.append((str(caught.value), caught.value.line, caught.value.path))
    assert found[0] == found[1]
    assert "unknown" in found[0][0]
