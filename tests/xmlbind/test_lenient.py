"""What does not fit the schema is kept where it stood and reported with rule, path and line; writing gives it back."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from lxml import etree

from mtosi_jms import soap, xmlbind
from mtosi_jms.errors import DecodeError, EncodeError
from mtosi_jms.xmlbind import NIL, Duration, RawXml, XmlWarning

from .conftest import canonical, doc

Read = Callable[..., Any]


class Odd(NamedTuple):
    name: str
    xml: str
    found: list[tuple[str, str, int]]


ODD = [
    Odd("unknown-element", "<c:leaves><c:new>1</c:new></c:leaves>", [("unknown-element", "/leaves/new", 1)]),
    Odd("unknown-elements-in-between",
        "<c:leaves>\n<c:n1/><c:string>s</c:string>\n<v:n2 a='b'>x<v:y/></v:n2><v:n3/>\n<c:flag>true</c:flag><c:n4/>"
        "</c:leaves>",
        [("unknown-element", "/leaves/n1", 2), ("unknown-element", "/leaves/n2", 3),
         ("unknown-element", "/leaves/n3", 3), ("unknown-element", "/leaves/n4", 4)]),
    Odd("unknown-element-among-many",
        "<c:leaves><c:many>1</c:many><c:x/><c:many>2</c:many><c:y/></c:leaves>",
        [("unknown-element", "/leaves/x", 1), ("unknown-element", "/leaves/y", 1)]),
    Odd("unknown-element-in-other-namespace", "<c:leaves><v:string>1</v:string></c:leaves>",
        [("unknown-element", "/leaves/string", 1)]),
    Odd("unknown-element-without-namespace", "<c:leaves><string>1</string></c:leaves>",
        [("unknown-element", "/leaves/string", 1)]),
    Odd("unknown-attribute", "<c:leaves a='1' v:b='2'/>",
        [("unknown-attribute", "/leaves", 1), ("unknown-attribute", "/leaves", 1)]),
    Odd("unknown-attribute-of-a-leaf", "<c:leaves><c:string v:a='1'>s</c:string></c:leaves>",
        [("unknown-attribute", "/leaves/string", 1)]),
    Odd("unknown-attribute-in-a-list", "<c:leaves><c:many>1</c:many><c:many a='b'>2</c:many></c:leaves>",
        [("unknown-attribute", "/leaves/many[2]", 1)]),
    Odd("bad-boolean", "<c:leaves><c:flag>yes</c:flag></c:leaves>", [("bad-value", "/leaves/flag", 1)]),
    Odd("bad-integer", "<c:leaves>\n<c:int>1_000</c:int></c:leaves>", [("bad-value", "/leaves/int", 2)]),
    Odd("integer-out-of-range", "<c:leaves><c:unsigned>256</c:unsigned></c:leaves>",
        [("bad-value", "/leaves/unsigned", 1)]),
    Odd("empty-number", "<c:leaves><c:int/></c:leaves>", [("bad-value", "/leaves/int", 1)]),
    Odd("bad-date", "<c:leaves><c:day>2026-02-30</c:day></c:leaves>", [("bad-value", "/leaves/day", 1)]),
    Odd("ITU-time", "<c:leaves><c:moment>20051004140305</c:moment></c:leaves>", [("bad-value", "/leaves/moment", 1)]),
    Odd("year-0", "<c:leaves><c:moment>0000-01-01T00:00:00Z</c:moment></c:leaves>",
        [("bad-value", "/leaves/moment", 1)]),
    Odd("year-before-0", "<c:leaves><c:moment>-0044-03-15T12:00:00</c:moment><c:day>-0044-03-15</c:day></c:leaves>",
        [("bad-value", "/leaves/moment", 1), ("bad-value", "/leaves/day", 1)]),
    Odd("year-10000", "<c:leaves><c:moment>12026-01-01T00:00:00Z</c:moment><c:day>12026-01-01</c:day></c:leaves>",
        [("bad-value", "/leaves/moment", 1), ("bad-value", "/leaves/day", 1)]),
    Odd("year-of-many-digits",
        f"<c:leaves><c:moment>{'9' * 30}-01-01T00:00:00Z</c:moment><c:day>{'9' * 30}-01-01</c:day></c:leaves>",
        [("bad-value", "/leaves/moment", 1), ("bad-value", "/leaves/day", 1)]),
    Odd("midnight-of-the-last-day", "<c:leaves><c:moment>9999-12-31T24:00:00</c:moment></c:leaves>",
        [("bad-value", "/leaves/moment", 1)]),
    Odd("bad-duration", "<c:leaves><c:span>P</c:span></c:leaves>", [("bad-value", "/leaves/span", 1)]),
    Odd("bad-base64", "<c:leaves><c:base64>A</c:base64><c:hex>ABC</c:hex></c:leaves>",
        [("bad-value", "/leaves/base64", 1), ("bad-value", "/leaves/hex", 1)]),
    Odd("unknown-enum-value", "<c:leaves><c:colour>pink</c:colour></c:leaves>", [("bad-value", "/leaves/colour", 1)]),
    Odd("empty-enum-value", "<c:leaves><c:colour/></c:leaves>", [("bad-value", "/leaves/colour", 1)]),
    Odd("enum-value-with-blanks", "<c:leaves><c:colour> red </c:colour></c:leaves>",
        [("bad-value", "/leaves/colour", 1)]),
    Odd("unknown-enum-value-in-a-list", "<c:leaves><c:levels>high higher</c:levels></c:leaves>",
        [("bad-value", "/leaves/levels", 1)]),
    Odd("bad-number-in-a-list", "<c:leaves><c:numbers>1 b</c:numbers></c:leaves>",
        [("bad-value", "/leaves/numbers", 1)]),
    Odd("number-out-of-range-in-a-list", "<c:leaves><c:numbers>1 99999999999</c:numbers></c:leaves>",
        [("bad-value", "/leaves/numbers", 1)]),
    Odd("bad-union", "<c:leaves><c:size>medium</c:size></c:leaves>", [("bad-value", "/leaves/size", 1)]),
    Odd("undeclared-prefix-of-a-name", "<c:leaves><c:qname>zz:x</c:qname></c:leaves>",
        [("bad-value", "/leaves/qname", 1)]),
    Odd("elements-in-a-leaf", "<c:leaves><c:string>a<c:b/></c:string><c:flag><c:x/></c:flag></c:leaves>",
        [("bad-value", "/leaves/string", 1), ("bad-value", "/leaves/flag", 1)]),
    Odd("elements-named-like-fields-in-a-leaf", "<c:leaves><c:string>a<c:flag>true</c:flag></c:string></c:leaves>",
        [("bad-value", "/leaves/string", 1)]),
    Odd("facets",
        "<c:facets><c:pattern>ab1</c:pattern><c:length>a</c:length><c:range>10</c:range><c:digits>123.45</c:digits>"
        "<c:after>1999-12-31</c:after><c:pair>1 2 3</c:pair></c:facets>",
        [("bad-value", f"/facets/{name}", 1) for name in ("pattern", "length", "range", "digits", "after", "pair")]),
    Odd("bad-attribute", "<c:tagged number='x' colour='pink' o:level='?'/>",
        [("bad-value", "/tagged", 1), ("bad-value", "/tagged", 1), ("bad-value", "/tagged", 1)]),
    Odd("missing-attribute", "<c:tagged/>", [("missing-attribute", "/tagged", 1)]),
    Odd("missing-element", "<c:team>\n\n<c:member>a</c:member><c:member>b</c:member></c:team>",
        [("missing-element", "/team", 1)]),
    Odd("missing-element-deep", "<c:drawing><c:part id='1' xsi:type='c:CircleType'/></c:drawing>",
        [("missing-element", "/drawing/part", 1)]),
    Odd("unreadable-required-element",
        "<c:drawing><c:circle id='1'><c:radius>big</c:radius></c:circle></c:drawing>",
        [("bad-value", "/drawing/circle/radius", 1)]),
    Odd("missing-from-a-list", "<c:team><c:lead>l</c:lead></c:team>", [("missing-element", "/team", 1)]),
    Odd("too-few", "<c:team><c:lead>l</c:lead><c:member>a</c:member></c:team>", [("missing-element", "/team", 1)]),
    Odd("too-many",
        "<c:team><c:lead>l</c:lead>" + "<c:member>a</c:member>" * 4 + "</c:team>", [("repeated", "/team", 1)]),
    Odd("empty-name", "<hdr:header><hdr:msgType/></hdr:header>", [("bad-value", "/header/msgType", 1)]),
    Odd("repeated", "<c:leaves><c:string>1</c:string><c:string>2</c:string></c:leaves>",
        [("repeated", "/leaves/string[2]", 1)]),
    Odd("repeated-later", "<c:leaves><c:string>1</c:string><c:flag>true</c:flag><c:string>2</c:string></c:leaves>",
        [("repeated", "/leaves/string[2]", 1)]),
    Odd("repeated-object",
        "<c:drawing><c:circle id='1'><c:radius>1</c:radius></c:circle><c:circle id='2'/></c:drawing>",
        [("repeated", "/drawing/circle[2]", 1)]),
    Odd("stray-text", "<c:leaves>a<c:string>s</c:string>b<c:flag>true</c:flag>\nc</c:leaves>",
        [("stray-text", "/leaves", 1)] * 3),
    Odd("stray-text-and-unknown-elements", "<c:leaves>a<v:x/>b<v:x/>c<c:flag>true</c:flag>d<v:x/>e</c:leaves>",
        [("stray-text", "/leaves", 1), ("unknown-element", "/leaves/x[1]", 1), ("stray-text", "/leaves", 1),
         ("unknown-element", "/leaves/x[2]", 1), ("stray-text", "/leaves", 1), ("stray-text", "/leaves", 1),
         ("unknown-element", "/leaves/x[3]", 1), ("stray-text", "/leaves", 1)]),
    Odd("blanks-that-are-text", "<c:leaves>\xa0<c:string>s</c:string>\u2003<c:flag>true</c:flag>\x85</c:leaves>",
        [("stray-text", "/leaves", 1)] * 3),
    Odd("nil-with-blanks-that-are-text", "<c:store><c:height xsi:nil='true'>\xa0</c:height></c:store>",
        [("nil", "/store/height", 1)]),
    Odd("text-in-an-empty-element", "<c:leaves>nothing</c:leaves>", [("stray-text", "/leaves", 1)]),
    Odd("nil-not-nillable", "<c:store><c:strict xsi:nil='true' unit='m'/><c:plain xsi:nil='1'/></c:store>",
        [("nil", "/store/strict", 1), ("nil", "/store/plain", 1)]),
    Odd("nil-with-content", "<c:store><c:height xsi:nil='true'>5</c:height></c:store>", [("nil", "/store/height", 1)]),
    Odd("nil-object-with-content",
        "<c:store><c:box xsi:nil='true'><c:inside>x</c:inside></c:box><c:box/></c:store>",
        [("nil", "/store/box[1]", 1)]),
    Odd("nil-no-boolean", "<c:store><c:box xsi:nil='yes'/><c:height xsi:nil=''>1</c:height></c:store>",
        [("bad-value", "/store/box", 1), ("bad-value", "/store/height", 1)]),
    Odd("nil-false-not-nillable", "<c:store><c:strict xsi:nil='false'/><c:plain xsi:nil='0'>x</c:plain></c:store>",
        [("nil", "/store/strict", 1), ("nil", "/store/plain", 1)]),
    Odd("nil-member-of-a-group", "<c:history><c:started xsi:nil='true'/></c:history>",
        [("nil", "/history/started", 1)]),
    Odd("nil-in-a-wildcard", "<c:foreign><o:thing xsi:nil='true'/></c:foreign>", [("nil", "/foreign/thing", 1)]),
    Odd("xsi-type-unknown",
        "<c:drawing><c:circle xsi:type='c:Nope' id='1'><c:radius>1</c:radius></c:circle></c:drawing>",
        [("xsi-type", "/drawing/circle", 1)]),
    Odd("xsi-type-undeclared",
        "<c:drawing><c:circle xsi:type='zz:CircleType' id='1'><c:radius>1</c:radius></c:circle></c:drawing>",
        [("xsi-type", "/drawing/circle", 1)]),
    Odd("xsi-type-not-derived",
        "<c:drawing><c:circle xsi:type='c:EventType' id='1'><c:radius>1</c:radius></c:circle></c:drawing>",
        [("xsi-type", "/drawing/circle", 1)]),
    Odd("abstract-type", "<c:drawing><c:part id='1'/></c:drawing>", [("abstract", "/drawing/part", 1)]),
    Odd("abstract-element", "<c:history><c:event><c:at>1</c:at></c:event></c:history>",
        [("abstract", "/history/event", 1)]),
    Odd("two-alternatives", "<c:route><c:road>1</c:road><c:rail>2</c:rail></c:route>", [("content", "/route", 1)]),
    Odd("alternative-and-group", "<c:route><c:ship>1</c:ship><c:road>2</c:road></c:route>", [("content", "/route", 1)]),
    Odd("no-alternative", "<c:route/>", [("content", "/route", 1)]),
    Odd("half-a-group", "<c:plan><c:start>1</c:start><c:from>a</c:from></c:plan>", [("content", "/plan", 1)]),
    Odd("group-not-begun", "<c:plan><c:end>1</c:end></c:plan>", [("missing-element", "/plan", 1)]),
    Odd("all-without-required", "<c:settings><c:title>t</c:title></c:settings>", [("missing-element", "/settings", 1)]),
    Odd("all-repeated", "<c:settings><c:width>1</c:width><c:width>2</c:width></c:settings>",
        [("repeated", "/settings/width[2]", 1)]),
    Odd("wildcard-of-own-namespace", "<c:foreign><c:middle/></c:foreign>",
        [("unknown-element", "/foreign/middle", 1)]),
    Odd("wildcard-full", "<c:foreign><v:a/><v:b/><v:c/></c:foreign>", [("repeated", "/foreign/c", 1)]),
    Odd("wildcard-does-not-admit", "<c:listed><v:a/></c:listed>", [("unknown-element", "/listed/a", 1)]),
    Odd("simple-content-bad", "<c:price currency='EUR'>cheap</c:price>", [("bad-value", "/price", 1)]),
    Odd("simple-content-empty", "<c:price/>", [("bad-value", "/price", 1)]),
    Odd("simple-content-with-elements", "<c:price>1<v:x/>2</c:price>",
        [("unknown-element", "/price/x", 1)]),
    Odd("simple-content-with-elements-and-bad", "<c:price>a<v:x/>b</c:price>",
        [("unknown-element", "/price/x", 1), ("bad-value", "/price", 1)]),
]  # fmt: skip
odd_ones = pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)


@odd_ones
def test_what_is_odd_is_reported(odd: Odd, read: Read) -> None:
    found = read(odd.xml)
    assert [(warning.rule, warning.path, warning.line) for warning in found.warnings] == odd.found
    assert all(warning.message for warning in found.warnings)


@odd_ones
def test_what_is_odd_goes_out_as_it_came(odd: Odd, read: Read, package: str) -> None:
    value = read(odd.xml).value
    written = xmlbind.encode(value)
    assert canonical(written) == canonical(doc(odd.xml))
    again: list[XmlWarning] = []
    assert canonical(xmlbind.encode(xmlbind.decode(written, warnings=again))) == canonical(written)
    assert [warning.rule for warning in again] == [rule for rule, _, _ in odd.found]


@odd_ones
def test_strict_raises_the_first(odd: Odd, package: str) -> None:
    with pytest.raises(DecodeError) as caught:
        xmlbind.decode(doc(odd.xml), strict=True, source="file.xml")
    error = caught.value
    assert (error.source, error.path, error.line) == ("file.xml", odd.found[0][1], odd.found[0][2])
    assert str(error).startswith(f"file.xml:{error.line} {error.path}: ")


@odd_ones
def test_streaming_reports_the_same(odd: Odd, read: Read) -> None:
    value = read(odd.xml).value
    warnings: list[XmlWarning] = []
    assert list(xmlbind.iter_decode(doc(odd.xml), type(value), warnings=warnings)) == [value]
    assert [warning.rule for warning in warnings] == [rule for rule, _, _ in odd.found]


REORDERED = [
    ("sequence", "<c:leaves><c:flag>true</c:flag><c:string>s</c:string></c:leaves>",
     "<c:leaves><c:string>s</c:string><c:flag>true</c:flag></c:leaves>", ["/leaves/string"]),
    ("list-apart", "<c:leaves><c:many>1</c:many><c:flag>true</c:flag><c:many>2</c:many></c:leaves>",
     "<c:leaves><c:flag>true</c:flag><c:many>1</c:many><c:many>2</c:many></c:leaves>", ["/leaves/flag"]),
    ("with-neighbours", "<c:leaves><c:flag>true</c:flag><v:a/><c:string>s</c:string><v:b/></c:leaves>",
     "<c:leaves><c:string>s</c:string><v:b/><c:flag>true</c:flag><v:a/></c:leaves>", ["/leaves/string"]),
    ("group", "<c:route><c:ship>s</c:ship><c:port>p</c:port></c:route>",
     "<c:route><c:port>p</c:port><c:ship>s</c:ship></c:route>", ["/route"]),
    ("wildcard-late", "<c:foreign><c:last>l</c:last><v:x/></c:foreign>",
     "<c:foreign><v:x/><c:last>l</c:last></c:foreign>", ["/foreign/x"]),
    ("wildcard-early", "<c:foreign><v:x/><c:first>f</c:first></c:foreign>",
     "<c:foreign><c:first>f</c:first><v:x/></c:foreign>", ["/foreign/first"]),
    ("header", "<hdr:header><hdr:msgType>REQUEST</hdr:msgType><hdr:activityName>a</hdr:activityName></hdr:header>",
     "<hdr:header><hdr:activityName>a</hdr:activityName><hdr:msgType>REQUEST</hdr:msgType></hdr:header>",
     ["/header/activityName"]),
]  # fmt: skip


@pytest.mark.parametrize(("xml", "written", "paths"), [case[1:] for case in REORDERED], ids=[c[0] for c in REORDERED])
def test_order_is_reported_and_put_right(xml: str, written: str, paths: list[str], read: Read) -> None:
    found = read(xml)
    assert [warning.path for warning in found.warnings if warning.rule == "order"] == paths
    assert {warning.rule for warning in found.warnings} <= {"order", "unknown-element"}
    assert canonical(xmlbind.encode(found.value)) == canonical(doc(written))


KEPT_ORDER = [
    "<c:log><c:count>1</c:count><c:note>a</c:note><c:count>2</c:count><c:note>b</c:note></c:log>",
    "<c:plan><c:start>1</c:start><c:start>2</c:start><c:end>3</c:end></c:plan>",
    "<c:settings><c:title>t</c:title><c:width>1</c:width></c:settings>",
    "<c:log><c:count>1</c:count><v:x/><c:note>a</c:note></c:log>",
]


@pytest.mark.parametrize("xml", KEPT_ORDER)
def test_order_that_means_something_is_kept(xml: str, read: Read) -> None:
    found = read(xml)
    assert [rule for rule in found.rules if rule != "unknown-element"] == []
    assert canonical(xmlbind.encode(found.value)) == canonical(doc(xml))


@pytest.mark.parametrize("name", ["c:1x", "c:Ring Type", "c:", ":x", "c:a:b", "&amp;", "c:x/"])
def test_what_is_no_name_is_kept_and_written_as_it_came(name: str, package: str) -> None:
    for xml in (
        f"<c:leaves><c:qname>{name}</c:qname></c:leaves>",
        f"<c:store><c:box xsi:type='{name}' unit='m'/></c:store>",
    ):
        warnings: list[xmlbind.XmlWarning] = []
        written = xmlbind.encode(xmlbind.decode(doc(xml), warnings=warnings))
        assert warnings
        assert name.encode() in written


def test_values_that_are_added_leave_the_others_in_their_places(read: Read, c: ModuleType) -> None:
    log = read("<c:log><c:count>1</c:count><c:note>a</c:note><c:count>2</c:count></c:log>").value
    log.note.append("b")
    assert [child.text for child in xmlbind.to_element(log)] == ["1", "a", "2", "b"]


SPELLINGS = [
    ("<c:flag>1</c:flag>", "flag", True),
    ("<c:flag> true\n</c:flag>", "flag", True),
    ("<c:int>+007</c:int>", "int", 7),
    ("<c:decimal>.5</c:decimal>", "decimal", None),
    ("<c:double>1E2</c:double>", "double", 100.0),
    ("<c:moment>2026-01-01T24:00:00Z</c:moment>", "moment", dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
    ("<c:moment>2026-01-01T00:00:00.123456789+02:00</c:moment>", "moment", None),
    ("<c:moment>2026-01-01T00:00:00+00:00</c:moment>", "moment", dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
    ("<c:day>2026-01-01Z</c:day>", "day", dt.date(2026, 1, 1)),
    ("<c:clock>24:00:00</c:clock>", "clock", dt.time(0)),
    ("<c:span>PT60S</c:span>", "span", Duration(0, Decimal(60))),
    ("<c:base64> AP 8h </c:base64>", "base64", b"\0\xff!"),
    ("<c:hex>00ff</c:hex>", "hex", b"\0\xff"),
    ("<c:numbers> 1\n2 </c:numbers>", "numbers", [1, 2]),
    ("<c:token>  a   b </c:token>", "token", "a b"),
    ("<c:qname xmlns:w='urn:vendor'> w:x </c:qname>", "qname", "{urn:vendor}x"),
    ("<c:size>low</c:size>", "size", "low"),
]


@pytest.mark.parametrize(("leaf", "field", "expected"), SPELLINGS, ids=[leaf for leaf, _, _ in SPELLINGS])
def test_other_spellings_are_no_breach_and_survive(leaf: str, field: str, expected: Any, read: Read) -> None:
    xml = f"<c:leaves>{leaf}<c:many>x</c:many></c:leaves>"
    found = read(xml)
    assert found.warnings == []
    assert expected is None or getattr(found.value, field) == expected
    assert canonical(xmlbind.encode(found.value)) == canonical(doc(xml))


def test_a_spelling_goes_when_its_value_is_changed(read: Read) -> None:
    leaves = read("<c:leaves><c:flag>1</c:flag><c:int>+007</c:int></c:leaves>").value
    leaves.int = 8
    assert [child.text for child in xmlbind.to_element(leaves)] == ["1", "8"]
    leaves.int = 7
    leaves.flag = False
    assert [child.text for child in xmlbind.to_element(leaves)] == ["false", "+007"]


def test_true_is_not_taken_for_one(read: Read) -> None:
    leaves = read("<c:leaves><c:int>01</c:int></c:leaves>").value
    leaves.int = True
    with pytest.raises(EncodeError, match=r"Leaves\.int"):
        xmlbind.encode(leaves)


def test_nil_empty_and_absent_are_three_things(read: Read) -> None:
    nil, empty, absent = (
        read(f"<c:store>{inner}</c:store>").value
        for inner in ("<c:label xsi:nil='true'/>", "<c:label/>", "")
    )  # fmt: skip
    assert (nil.label, empty.label, absent.label) == (NIL, "", None)
    assert not nil.label
    assert len({xmlbind.encode(value) for value in (nil, empty, absent)}) == 3


def test_a_breach_is_excused_only_where_the_document_had_it(read: Read, c: ModuleType) -> None:
    team = read("<c:team><c:member>a</c:member><c:member>b</c:member></c:team>").value
    assert xmlbind.encode(team)
    team.member = []
    with pytest.raises(EncodeError, match=r"Team\.member: 0 where 2 to 3 are needed"):
        xmlbind.encode(team)
    route = read("<c:route><c:road>1</c:road><c:rail>2</c:rail></c:route>").value
    route.port = "p"
    with pytest.raises(EncodeError):
        xmlbind.encode(route)
    store = read("<c:store><c:plain xsi:nil='true'/></c:store>").value
    store.strict = NIL
    with pytest.raises(EncodeError, match=r"Store\.strict: nil"):
        xmlbind.encode(store)


def test_what_was_broken_can_be_mended(read: Read, constructs_schema: etree.XMLSchema) -> None:
    team = read("<c:team><c:member>a</c:member></c:team>").value
    team.lead = "l"
    team.member.append("b")
    constructs_schema.assertValid(etree.fromstring(xmlbind.encode(team)))
    route = read("<c:route><c:road>1</c:road><c:rail>2</c:rail></c:route>").value
    route.rail = None
    constructs_schema.assertValid(etree.fromstring(xmlbind.encode(route)))
    assert team.extras is not None


def test_unknown_elements_can_be_asked_for(read: Read) -> None:
    leaves = read("<c:leaves><v:a>1</v:a><c:flag>maybe</c:flag></c:leaves>").value
    assert [raw.tag for raw in leaves.unknown_elements()] == ["{urn:vendor}a", "{urn:test:constructs}flag"]
    assert read("<c:leaves/>").value.unknown_elements() == []


def test_kept_elements_stay_where_their_neighbours_left(read: Read) -> None:
    leaves = read("<c:leaves><c:string>s</c:string><v:a/>tail<c:flag>true</c:flag></c:leaves>").value
    leaves.string = None
    root = xmlbind.to_element(leaves)
    assert [child.tag.rpartition("}")[2] for child in root] == ["flag", "a"]
    assert root[1].tail == "tail"


def test_an_unknown_enumeration_value_is_a_member_that_says_so(read: Read, c: ModuleType) -> None:
    colour = read("<c:leaves><c:colour>pink</c:colour></c:leaves>").value.colour
    assert isinstance(colour, c.ColourType)
    assert colour == "pink"
    assert not colour.is_known
    assert c.ColourType("red").is_known
    assert list(c.ColourType) == ["red", "dark red", "blue"]


@pytest.mark.parametrize(
    ("xml", "shown"),
    [
        (
            "<c:shape xsi:type='c:RingType' id='1'><c:radius>2</c:radius><c:hole>1</c:hole></c:shape>",
            lambda value: type(value).__name__ == "RingType",
        ),
        (
            "<c:leaves xsi:schemaLocation='urn:a a.xsd'><c:string xsi:type='xsd:string'>s</c:string></c:leaves>",
            lambda value: value.string == "s",
        ),
        (
            "<c:store><c:box xsi:nil='false'/><c:height xsi:nil='0'>1</c:height></c:store>",
            lambda value: value.height == 1,
        ),
    ],
    ids=["type", "schemaLocation", "nil"],
)
def test_attributes_of_xsi_are_kept_without_a_word(xml: str, shown: Callable[[Any], bool], read: Read) -> None:
    found = read(xml)
    assert (found.warnings, shown(found.value)) == ([], True)
    assert canonical(xmlbind.encode(found.value)) == canonical(doc(xml))


def test_an_xsi_type_in_a_wildcard_and_a_group_keeps_the_element(read: Read, c: ModuleType) -> None:
    for xml in (
        "<c:paragraph><c:shape xsi:type='c:CircleType' id='1'><c:radius>2</c:radius></c:shape></c:paragraph>",
        "<c:history><c:stopped xsi:type='c:CrashedType'><c:trace>t</c:trace></c:stopped></c:history>",
        "<c:history><c:event/><c:stopped xsi:type='c:CrashedType'><c:trace>t</c:trace></c:stopped></c:history>",
    ):
        found = read(xml)
        assert set(found.rules) <= {"abstract"}
        assert canonical(xmlbind.encode(found.value)) == canonical(doc(xml))


def test_a_root_that_is_nil(read: Read) -> None:
    found = read("<c:leaves xsi:nil='true'/>")
    assert found.value is NIL
    assert found.rules == ["nil"]
    assert list(xmlbind.iter_decode(doc("<c:leaves xsi:nil='true'/>"), type(read("<c:leaves/>").value))) == []


def test_a_root_that_no_package_knows(read: Read) -> None:
    found = read("<v:unknown a='1'>x</v:unknown>")
    assert isinstance(found.value, RawXml)
    assert found.warnings == []
    assert found.value.tag == "{urn:vendor}unknown"
    assert xmlbind.encode(found.value).endswith(b'<v:unknown xmlns:v="urn:vendor" a="1">x</v:unknown>')


def test_elements_of_any_parser_are_taken(c: ModuleType) -> None:
    xml = (
        '<w xmlns:p="urn:test:constructs" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
        '<p:drawing><!-- a --><?b c?><p:part xsi:type="p:CircleType" id="1"><!-- d -->\n'
        "<p:radius>1<!-- e -->2</p:radius><!-- f --></p:part><p:x/></p:drawing>\n</w>"
    )
    element = etree.fromstring(xml)[0]
    before = etree.tostring(element)
    warnings: list[XmlWarning] = []
    drawing = xmlbind.decode(element, warnings=warnings)
    assert drawing.part == [c.CircleType(id="1", radius=12)]
    assert [(warning.path, warning.line) for warning in warnings] == [("/w/drawing/x", 3)]
    assert etree.tostring(element) == before


def test_warnings_read_well() -> None:
    assert str(XmlWarning("order", "out of order", "/a/b", 3)) == "line 3 /a/b: out of order"
    assert str(XmlWarning("R16", "no reply")) == "no reply"


NAME = "<coi:userLabel>u</coi:userLabel>"


@pytest.mark.parametrize(
    ("element", "name"),
    [("coi:commonObjectInfo", "ManagedElementType"), ("cri:commonResourceInfo", "ManagedElementType"), ("me:me", "Me")],
)
def test_an_xsi_type_on_a_head_of_the_stubs(element: str, name: str, read: Read) -> None:
    xml = f"<{element} xsi:type='me:ManagedElementType'>{NAME}<me:location>l</me:location></{element}>"
    found = read(xml)
    assert found.warnings == []
    assert type(found.value).__name__ == name
    for twin in (found.value, copy.deepcopy(found.value), pickle.loads(pickle.dumps(found.value))):
        assert canonical(xmlbind.encode(twin)) == canonical(doc(xml))


@pytest.mark.parametrize("element", ["hbt:heartbeat", "cei:commonEventInformation"])
def test_a_member_of_a_group_with_an_xsi_type_keeps_its_name(element: str, read: Read) -> None:
    event = f"<{element} xsi:type='hbt:HeartbeatType'><cei:notificationId>1</cei:notificationId></{element}>"
    xml = (
        f"<notmsg:notify><notmsg:topic>t</notmsg:topic><notmsg:message>{event}{event}</notmsg:message></notmsg:notify>"
    )
    found = read(xml)
    assert found.warnings == []
    assert canonical(xmlbind.encode(found.value)) == canonical(doc(xml))
    found.value.message.common_event_information[1].notification_id = "2"
    assert canonical(xmlbind.encode(found.value)) == canonical(doc("2".join(xml.rsplit("1", 1))))


def test_what_stands_beside_a_nan_survives(read: Read) -> None:
    xml = "<c:leaves><c:double v:unit='dB'>NaN</c:double></c:leaves>"
    found = read(xml)
    assert found.rules == ["unknown-attribute"]
    for twin in (found.value, copy.deepcopy(found.value), pickle.loads(pickle.dumps(found.value))):
        assert canonical(xmlbind.encode(twin)) == canonical(doc(xml))
    found.value.double = 1.5
    assert canonical(xmlbind.encode(found.value)) == canonical(doc("<c:leaves><c:double>1.5</c:double></c:leaves>"))


def test_an_envelope_with_a_nan_is_given_back_as_it_came(package: str) -> None:
    space = "http://schemas.xmlsoap.org/soap/envelope/"
    leaves = "<c:leaves xmlns:c='urn:test:constructs'><c:double>NaN</c:double><c:int> 1 </c:int></c:leaves>"
    fault = f"<s:Fault><faultcode>s:Server</faultcode><faultstring/><detail>{leaves}</detail></s:Fault>"
    for body in (leaves, fault):
        data = f"<s:Envelope xmlns:s='{space}'>\n<s:Body>{body}</s:Body></s:Envelope>".encode()
        found = soap.parse(data, package=package)
        assert found.to_bytes() == data
        found.body.int = 2
        assert soap.parse(found.to_bytes(), package=package).body.int == 2
