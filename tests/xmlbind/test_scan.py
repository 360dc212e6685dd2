"""Documents read from their text: the same as from the tree, or not at all."""

from __future__ import annotations

import gc
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms import soap, xmlbind
from mtosi_jms.errors import ForbiddenXmlError, MtosiError
from mtosi_jms.soap import _frames as frames
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.nrf.me import ManagedElementListType, Me
from mtosi_jms.xmlbind import DEFAULT_LIMITS, Issues, Limits, decode_root, find_element, parse_xml
from mtosi_jms.xmlbind import _scan as scan
from mtosi_jms.xmlbind import _scanner as scanner
from mtosi_jms.xmlbind.columns import Scanner

Doc = Callable[[str], bytes]
RDN = "<nam:rdn><nam:type>ME</nam:type><nam:value>1</nam:value></nam:rdn>"
ME = f"<me:me><coi:name>{RDN}</coi:name><coi:userLabel>a &amp; b</coi:userLabel><coi:owner></coi:owner></me:me>"
VENDOR = "<v:e a='&lt;'>a &amp; b<v:f xmlns='urn:f'><g/></v:f></v:e>"
BATCH = f"<mer:getAllManagedElementsResponse><mer:meList>{ME * 3}</mer:meList></mer:getAllManagedElementsResponse>"


@pytest.fixture(params=["at once", "unread"])
def eager(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Read even small documents from their text, at the first attempt."""
    if request.param == "unread":
        monkeypatch.setattr(scanner, "LARGE", 0)
        monkeypatch.setattr(scanner, "WORTH_SHELLS", 0)
    monkeypatch.setattr(scan, "SMALLEST", 0)
    monkeypatch.setattr(scan, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(scan, "_PATIENCE", 1 << 60)
    monkeypatch.setattr(scan, "scanners", scan.Recipes(Scanner))


def scanned(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    return scan.read_root(data, None, find_element, limits)


def from_tree(data: bytes) -> tuple[Any, list[xmlbind.XmlWarning]]:
    issues = Issues()
    return decode_root(parse_xml(data), None, issues), issues.found


@pytest.mark.usefixtures("eager", "package")
@pytest.mark.parametrize(
    "boxes",
    [
        "<c:box/>",
        "<c:box><c:inside/></c:box>",
        "<c:box></c:box><c:box/>",
        "<c:box/><c:box><c:inside>x</c:inside></c:box><c:box><c:inside></c:inside></c:box>",
    ],
)
def test_what_is_empty_in_a_list_is_not_what_is_not_there(boxes: str) -> None:
    data = f'<c:store xmlns:c="urn:test:constructs">{boxes}<c:label/></c:store>'.encode()
    found = scanned(data)
    assert found is not None
    assert (found, []) == from_tree(data)


@pytest.mark.parametrize(
    "xml",
    [
        BATCH,
        BATCH.replace("><", ">\n\t <"),
        BATCH.replace("<coi:owner></coi:owner>", "<coi:owner/>"),
        BATCH.replace("<coi:owner></coi:owner>", "<coi:owner />"),
        BATCH.replace("<coi:owner></coi:owner>", "<coi:owner>&lt;&gt;&quot;&apos;&amp;amp; ]] > /> \xe9</coi:owner>"),
        BATCH.replace("a &amp; b", "\u4e2d &amp; \U0001f600"),
        BATCH.replace("<coi:owner></coi:owner>", "<coi:vendorExtensions><x/></coi:vendorExtensions>"),
        BATCH.replace("<coi:owner></coi:owner>", f"<coi:vendorExtensions>{VENDOR}{RDN}</coi:vendorExtensions>"),
        BATCH.replace(
            "<coi:owner></coi:owner>", f"<coi:vendorExtensions>\n<!-- c -->{VENDOR}\n</coi:vendorExtensions>\n"
        ),
        BATCH.replace(ME, ""),
        BATCH.replace(ME, "<me:me></me:me>"),
        BATCH.replace(RDN, RDN * 40),
        (
            "<c:leaves><c:token>t</c:token><c:flag>true</c:flag><c:decimal>1.5</c:decimal><c:moment>2024-01-02T03:04:05Z"
            "</c:moment><c:day>2024-01-02</c:day><c:colour>dark red</c:colour><c:numbers>1 2</c:numbers>"
            "<c:many>a</c:many><c:many></c:many></c:leaves>"
        ),
    ],
)
def test_plain_documents_are_read_from_their_text(xml: str, doc: Doc, package: str, eager: None) -> None:
    data = b'<?xml version="1.0" encoding="utf-8"?>\n' + doc(xml) + b"\n"
    value = scanned(data)
    assert value is not None
    assert (value, []) == from_tree(data)
    assert xmlbind.decode(data, strict=True) == value


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<mer:meList>", "<mer:meList><!-- a comment -->"),
        ("<mer:meList>", "<mer:meList><?an instruction?>"),
        ("<mer:meList>", "<mer:meList> text "),
        ("<mer:meList>", "<mer:meList>\xa0"),
        ("a &amp; b", "<![CDATA[a & b]]>"),
        ("a &amp; b", "a &#38; b"),
        ("a &amp; b", "a\rb"),
        ("<me:me>", "<me:me >"),
        ("<coi:owner></coi:owner>", "<coi:owner\n/>"),
        ("</me:me>", "</me:me >"),
        ("<me:me>", "<me:me id='1'>"),
        (
            "<coi:owner></coi:owner>",
            "<coi:owner xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:nil='true'/>",
        ),
        ("<coi:owner></coi:owner>", "<coi:owner></coi:owner><coi:owner></coi:owner>"),
        ("<coi:owner></coi:owner>", "<coi:owner></coi:owner><coi:userLabel>late</coi:userLabel>"),
        ("<coi:owner></coi:owner>", "<coi:unknown/>"),
        ("<coi:owner></coi:owner>", "<me:isInSyncState>maybe</me:isInSyncState>"),
        ("<coi:owner></coi:owner>", "<me:isInSyncState> true</me:isInSyncState>"),
        ("<coi:owner></coi:owner>", f"<coi:vendorExtensions><x>{'y' * 5000}</x></coi:vendorExtensions>"),
        ("<coi:owner></coi:owner>", "<coi:vendorExtensions>text</coi:vendorExtensions>"),
        ("<coi:owner></coi:owner>", "<coi:vendorExtensions><!-- </coi:vendorExtensions> --></coi:vendorExtensions>"),
        ("<coi:owner></coi:owner>", "<coi:vendorExtensions id='1'><x/></coi:vendorExtensions>"),
        ("<coi:owner></coi:owner>", "<coi:vendorExtensions id='1'/><coi:vendorExtensions><x/></coi:vendorExtensions>"),
        ("<coi:owner></coi:owner>", f"<coi:vendorExtensions>{'<x>' * 70}{'</x>' * 70}</coi:vendorExtensions>"),
        ("<coi:userLabel>a &amp; b</coi:userLabel>", "<userLabel xmlns='http://www.tmforum.org/mtop/fmw/xsd/coi/v1'/>"),
    ],
)
def test_what_is_not_plain_is_left_to_the_tree(old: str, new: str, doc: Doc, eager: None) -> None:
    data = doc(BATCH.replace(old, new, 1) if old in BATCH else BATCH)
    assert old in BATCH
    assert scanned(data) is None
    assert xmlbind.decode(data) == from_tree(data)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a &amp; b", "a & b"),
        ("a &amp; b", "a &amp b"),
        ("a &amp; b", "a &unknown; b"),
        ("a &amp; b", "a ]]> b"),
        ("a &amp; b", "a \x01 b"),
        ("a &amp; b", "a \ufffe b"),
        ("<me:me>", "<me:me><you:me>"),
        ("<me:me>", ""),
        ("</me:me>", ""),
        ("</me:me>", "</mer:meList>"),
        ("<coi:owner>", "<coi:vendorExtensions><x></coi:vendorExtensions><coi:owner>"),
        ("<coi:owner>", "<coi:vendorExtensions><w:x/></coi:vendorExtensions><coi:owner>"),
        ("<coi:owner>", "<coi:vendorExtensions><x>t<!--/></x></coi:vendorExtensions><coi:owner>"),
        ("<coi:owner>", "<coi:vendorExtensions></sea><sea></coi:vendorExtensions><coi:owner>"),
        ("</mer:getAllManagedElementsResponse>", ""),
        ("</mer:getAllManagedElementsResponse>", "</mer:getAllManagedElementsResponse>x"),
        ("<mer:getAllManagedElementsResponse", "x<mer:getAllManagedElementsResponse"),
        ("<mer:getAllManagedElementsResponse", "<mer:getAllManagedElementsResponse a='1' a='2'"),
        ("<mer:getAllManagedElementsResponse", "<mer:getAllManagedElementsResponse a='>'b='"),
        ("<mer:getAllManagedElementsResponse", "<!DOCTYPE a><mer:getAllManagedElementsResponse"),
    ],
)
def test_what_is_no_document_is_reported_by_the_parser(old: str, new: str, doc: Doc, eager: None) -> None:
    data = doc(BATCH)
    assert old.encode() in data
    data = data.replace(old.encode(), new.encode(), 1)
    assert scanned(data) is None
    with pytest.raises(MtosiError):
        xmlbind.decode(data)


@pytest.mark.usefixtures("eager", "package")
@pytest.mark.parametrize(
    ("content", "rules"),
    [
        ("<c:content a='>'/><c:content>2</c:content>", ["repeated"]),
        ("<c:content a='>'/>stray<c:content>2</c:content>", ["stray-text", "repeated"]),
        (f"<c:content>{'<a>' * 150}{'</a>' * 150}</c:content>", []),
    ],
)
def test_what_a_pattern_cannot_see_the_end_of_is_left_to_the_tree(content: str, rules: list[str]) -> None:
    data = f'<c:holder xmlns:c="urn:test:constructs">{content}<c:last></c:last></c:holder>'.encode()
    warnings: list[xmlbind.XmlWarning] = []
    assert scanned(data) is None
    assert (xmlbind.decode(data, warnings=warnings), warnings) == from_tree(data)
    assert [warning.rule for warning in warnings] == rules


@pytest.mark.usefixtures("eager", "package")
def test_elements_that_no_pattern_describes_keep_to_the_bounds() -> None:
    data = b"<c:holder xmlns:c='urn:test:constructs'><c:content>%b</c:content></c:holder>"
    with pytest.raises(ForbiddenXmlError, match="deeper than 200"):
        xmlbind.decode(data % (b"<a>" * 199 + b"</a>" * 199))
    crowd = data % b"<a b='1' c='2' d='3'></a>"
    assert scanned(crowd) is not None
    with pytest.raises(ForbiddenXmlError, match="more than 2 attributes"):
        xmlbind.decode(crowd, limits=Limits(max_attributes=2))


@pytest.mark.parametrize("before", [0, 511, 512, 513, 2000])
@pytest.mark.parametrize(
    ("reference", "plain"), [("&lt;", True), ("&#60;", False), ("&x;", False), ("& ", False), ("&", False)]
)
def test_references_are_looked_at_however_many_there_are(
    before: int, reference: str, plain: bool, doc: Doc, eager: None
) -> None:
    data = doc(BATCH.replace("a &amp; b", "&amp;" * before + reference, 1))
    assert (scanned(data) is not None) is plain


def test_only_utf8_is_read_from_its_text(doc: Doc, eager: None) -> None:
    data = doc(BATCH)
    expected = from_tree(data)[0]
    text = data.decode()
    assert scanned(data) == expected
    others = [
        b'<?xml version="1.0" encoding="ISO-8859-1"?>' + data,
        b"\xef\xbb\xbf" + data,
        ('<?xml version="1.0" encoding="UTF-16"?>' + text).encode("utf-16"),
        b"\xe9".join((data[:-1], b">")),
    ]
    for other in others:
        assert scanned(other) is None
    assert [xmlbind.decode(other) for other in others[:3]] == [expected] * 3


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("octet", [b"\x80", b"\xbf", b"\xe9", b"\xff"])
def test_octets_that_end_no_character_end(octet: bytes, doc: Doc) -> None:
    data = doc(BATCH).replace(b"a &amp; b", octet * 10_000, 1)
    assert scanned(data) is None
    with pytest.raises(MtosiError):
        xmlbind.decode(data)


def test_bounds_are_left_to_the_parser(doc: Doc, eager: None) -> None:
    data = doc(BATCH)
    assert scanned(data, Limits(max_bytes=len(data) - 1)) is None
    assert scanned(data, Limits(max_depth=5)) is None
    crowded = data.replace(b"<mer:get", b"<mer:get", 1).replace(b" xmlns", b" a='1' xmlns", 1)
    assert scanned(crowded) is None
    long = data.replace(b"a &amp; b", b"x" * 10_000_001, 1)
    assert scanned(long) is None
    with pytest.raises(MtosiError):
        xmlbind.decode(long)


def test_namespaces_may_have_several_prefixes(eager: None) -> None:
    response = "http://www.tmforum.org/mtop/mri/xsd/mer/v1"
    element = "http://www.tmforum.org/mtop/nrf/xsd/me/v1"
    names = f'xmlns="{response}" xmlns:unused="{response}" xmlns:a="{element}" xmlns:b="{element}"'
    inner = "<b:me><b:location>x</b:location></b:me>"
    data = f"<getAllManagedElementsResponse {names}><meList>{inner}</meList></getAllManagedElementsResponse>".encode()
    value = scanned(data)
    assert value.me_list.me[0].location == "x"
    mixed = data.replace(b"<b:location>x</b:location>", b"<a:location>x</a:location>")
    assert scanned(mixed) is None
    assert xmlbind.decode(mixed) == value
    swapped = data.replace(b"<b:me>", b'<b:me xmlns:b="urn:other">')
    assert scanned(swapped) is None


TOKENS = [
    *re.split(
        " ", "< > / & &amp; &lt; &lt &#65; &x; ]]> <!-- --> <?x?> <![CDATA[a]]> \" ' = xmlns='urn:y' a='b' /> true 1"
    ),
    *re.split(
        " ", "<x/> <me:me> </me:me> <me:me/> <coi:userLabel/> <nam:rdn> </nam:rdn> <nam:rdn/> <coi:owner> <!DOCTYPE"
    ),
    *(" ", "\t", "\r", "\n", "\x01", "\ufffe", "\xe9", "\xa0", "\u2028", " xmlns:me='urn:x'", "</mer:meList>"),
]


def damaged(text: str, chance: random.Random) -> str:
    """A document with one piece put in, taken out, repeated or replaced."""
    at = text.find("<", chance.randrange(len(text) - 40)) if chance.random() < 0.5 else chance.randrange(len(text))
    end = min(len(text), at + chance.randrange(1, 150))
    kind = chance.randrange(5)
    if kind == 0:
        return text[:at] + chance.choice(TOKENS) + text[at:]
    if kind == 1:
        return text[:at] + text[at + chance.randrange(1, 12) :]
    if kind == 2:
        return text[:at] + text[at:end] * 2 + text[end:]
    if kind == 3:
        return text[:at] + chance.choice(re.findall("<[^<>]+>", text)) + text[at:]
    leaf = chance.choice(list(re.finditer(r"<([^<>/ ]+)>[^<]*</\1>", text)))
    again = chance.choice((f"<{leaf[1]}/>", "", leaf[0] * 2, f"<{leaf[1]}></{leaf[1]}>", f"<{leaf[1]} />"))
    return text[: leaf.start()] + again + text[leaf.end() :]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.endurance) for seed in (1, 2, 3))])
def test_damaged_documents_are_read_the_same_or_left_to_the_tree(seed: int, doc: Doc, eager: None) -> None:
    chance = random.Random(seed)
    more = f"<coi:owner>o</coi:owner><coi:vendorExtensions>{VENDOR}</coi:vendorExtensions><me:location>l</me:location>"
    plain = doc(BATCH.replace("<coi:owner></coi:owner>", more, 2))
    taken = 0
    for _ in range(2000):
        text = plain.decode() if chance.random() < 0.5 else plain.decode().replace("><", ">\n<")
        for _ in range(chance.randint(1, 3)):
            text = damaged(text, chance)
        data = text.encode("utf-8", "surrogatepass")
        value = scanned(data)
        if value is not None:
            taken += 1
            assert (value, []) == from_tree(data), text
    assert taken > 50


def large(count: int = 200) -> GetAllManagedElementsResponse:
    elements = [Me(name=name(f"MD=E/ME={number}"), owner="<&>") for number in range(count)]
    return GetAllManagedElementsResponse(me_list=ManagedElementListType(me=elements))


def test_small_documents_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "scanners", scan.Recipes(Scanner))
    value = large(20)
    assert len(data := xmlbind.encode(value)) < scan.SMALLEST
    assert xmlbind.decode(data) == value
    assert len(scan.scanners) == 0


def test_patterns_are_made_once_there_was_text_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "scanners", scan.Recipes(Scanner))
    data = xmlbind.encode(value := large())
    rounds = 131_072 // len(data)
    assert rounds > 1
    for _ in range(rounds):
        assert scanned(data) is None
    assert scanned(data) == value
    assert len(scan.scanners) == 1


def test_after_some_failures_patterns_are_tried_now_and_then(monkeypatch: pytest.MonkeyPatch, eager: None) -> None:
    monkeypatch.setattr(scan, "_PATIENCE", 3)
    tried: list[str] = []
    real = scan.matched
    monkeypatch.setattr(scan, "matched", lambda *given, **how: (tried.append(given[1]), real(*given, **how))[1])
    good = xmlbind.encode(large(2))
    odd = good.replace(b"</coi:owner>", b"</coi:owner><x/>", 1)
    for _ in range(99):
        assert scanned(odd) is None
    assert len(tried) == 3 + 12
    assert any(scanned(good) is not None for _ in range(8))
    assert scanned(good) is not None


def test_ways_to_name_namespaces_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch, eager: None) -> None:
    monkeypatch.setattr(scan, "_MOST_RECIPES", 8)
    data = xmlbind.encode(value := large(1))
    for number in range(20):
        assert scanned(data.replace(b"me:", b"m%d:" % number).replace(b"xmlns:me=", b"xmlns:m%d=" % number)) == value
        assert len(scan.scanners) <= 8


def envelope(body: Any = None) -> bytes:
    """An envelope that is read without a warning."""
    header = (
        "<h:header xmlns:h='http://www.tmforum.org/mtop/fmw/xsd/hdr/v1'><h:activityName>getAllManagedElements</h:activityName>"
        "<h:msgName>getAllManagedElementsResponse</h:msgName><h:msgType>RESPONSE</h:msgType><h:senderURI>s</h:senderURI>"
        "<h:destinationURI>d</h:destinationURI><h:correlationId>1</h:correlationId><h:communicationPattern>SimpleResponse"
        "</h:communicationPattern><h:communicationStyle>MSG</h:communicationStyle>"
        "<h:timestamp>2026-11-20T10:00:00Z</h:timestamp></h:header>"
    )
    return soap.Envelope(header=xmlbind.decode(header), body=body or large(3)).encode()


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch, eager: None) -> list[Any]:
    """What was read from the text of bodies."""
    monkeypatch.setattr(frames, "remembered", {})
    found: list[Any] = []
    real = scan.Cut.read
    monkeypatch.setattr(scan.Cut, "read", lambda *arguments: (found.append(real(*arguments)), found[-1])[1])
    return found


def test_envelopes_are_the_same_either_way(cuts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (envelope(), envelope().replace(b"><", b">\n  <")):
        read = soap.parse(data)
        assert read.warnings == []
        assert read.body == large(3) == cuts[-1]
        assert read.to_bytes() == data
        read.header.correlation_id = "2"
        assert soap.parse(read.to_bytes()).header.correlation_id == "2"
        with monkeypatch.context() as patch:
            patch.setattr(scan, "SMALLEST", 1 << 60)
            assert soap.parse(data) == soap.parse(data, source=None, strict=True)
            assert soap.parse(data).body == read.body


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<soap:Body>", "<!-- <soap:Body><mer:x> --><soap:Body>"),
        ("</soap:Body>", "</soap:Body><!-- </soap:Body> -->"),
        ("<soap:Header>", "<soap:Header><v:e xmlns:v='urn:v'><v:Body><v:x></v:x></v:Body></v:e>"),
        ("<soap:Header>", "<soap:Header><v:Body xmlns:v='urn:v'/>"),
        ("<soap:Body>", "<soap:Body>text"),
        ("</soap:Body>", "<mer:second/></soap:Body>"),
        ("</soap:Envelope>", "<other/></soap:Envelope>"),
        ("<hdr:msgType>RESPONSE", "<hdr:unknown/><hdr:msgType>RESPONSE"),
    ],
)
def test_odd_envelopes_are_read_from_the_tree(old: str, new: str, cuts: list[Any]) -> None:
    data = envelope().replace(b"><", b">\n<").replace(b"<soap:Body>\n", b"<soap:Body>")
    assert old.encode() in data
    data = data.replace(old.encode(), new.encode(), 1)
    read = soap.parse(data)
    assert read.body == large(3)
    assert read.warnings or not any(isinstance(value, GetAllManagedElementsResponse) for value in cuts)
    lines = data.decode().splitlines()
    for warning in read.warnings:
        assert warning.line is not None
        assert lines[warning.line - 1].startswith("<") or "text" in lines[warning.line - 1]


@pytest.mark.usefixtures("cuts")
def test_the_encoding_counts_however_it_is_declared() -> None:
    data = envelope().replace(b"<coi:owner>", "<coi:owner>\xe9".encode(), 1).partition(b"?>")[2]
    for blank in (" ", "\t", "\n"):
        read = soap.parse(f'<?xml{blank}version="1.0"{blank}encoding="ISO-8859-1"?>'.encode() + data)
        assert read.body.me_list.me[0].owner.startswith("\xc3\xa9")


def test_a_comment_cannot_pass_for_the_body(cuts: list[Any]) -> None:
    data = envelope(GetAllManagedElementsResponse()).decode()
    content = xmlbind.encode(large(1)).decode().partition("?>")[2].strip()
    hidden = data.replace("</soap:Envelope>", f"<!-- <x:Body>{content}</x:Body> --></soap:Envelope>")
    assert hidden != data
    assert soap.parse(hidden).body.me_list is None
    before = data.replace("<soap:Header>", f"<!-- <x:Body>{content}</x:Body> --><soap:Header>")
    assert soap.parse(before).body.me_list is None


def test_files_with_faults_are_named(tmp_path: Path, eager: None) -> None:
    path = tmp_path / "broken.xml"
    path.write_bytes(envelope().replace(b"><", b">\n<").replace(b"</coi:owner>", b"</coi:other>", 1))
    with pytest.raises(MtosiError, match=r"broken.xml.*line \d\d"):
        soap.read(path)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was(enabled: bool, doc: Doc, package: str) -> None:
    """It pauses while a large document is read, whether that ends well or not."""
    data = doc(BATCH.replace(ME, ME * 200))
    assert len(data) > scan.SMALLEST
    try:
        (gc.enable if enabled else gc.disable)()
        for one in [data] * 20 + [data.replace(b"</me:me>", b"<me:odd/></me:me>", 1)]:
            xmlbind.decode(one)
            assert gc.isenabled() is enabled
    finally:
        gc.enable()


@pytest.mark.parametrize("length", [100, 10_000, 1_000_000])
def test_the_time_does_not_depend_on_how_long_texts_are(length: int, doc: Doc) -> None:
    """Twelve megabytes: from ten on it is asked whether one text is too long for libxml2."""
    one = f"<me:me><me:location>{'x' * length}</me:location></me:me>"
    mer = "mer:getAllManagedElementsResponse"
    data = doc(f"<{mer}><mer:meList>@<me:me/></mer:meList></{mer}>").replace(
        b"@", one.encode() * (12_000_000 // length)
    )
    begun = time.process_time()
    parse_xml(data)
    parsed = time.process_time()
    assert len(xmlbind.decode(data).me_list.me) == 12_000_000 // length + 1
    assert time.process_time() - parsed < 20 * (parsed - begun)
