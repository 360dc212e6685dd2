"""Constructs of XML Schema: what each becomes, and that the reader holds documents against it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mtosi_codegen import Result
from mtosi_jms import xmlbind
from mtosi_jms.errors import EncodeError
from mtosi_jms.validation import SchemaSet, Validator

from .conftest import rules, xsd

Load = Callable[..., ModuleType]
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


def _read(text: str, cls: Any = None) -> tuple[Any, list[str]]:
    """The object of a document with the default namespace `urn:t`, and the rules of the warnings."""
    warnings: list[xmlbind.XmlWarning] = []
    root, _, rest = text.partition(">")
    slash = root.endswith("/")
    data = f'{root.removesuffix("/")} xmlns="urn:t" xmlns:t="urn:t" {XSI}{"/" * slash}>{rest}'
    value = xmlbind.decode(data, cls, warnings=warnings)
    return value, [warning.rule for warning in warnings]


def _again(value: Any) -> Any:
    return xmlbind.decode(xmlbind.encode(value), type(value), strict=True)


def _sequence(name: str, body: str, more: str = "") -> str:
    return f'<x:element name="{name}"><x:complexType><x:sequence>{body}</x:sequence>{more}</x:complexType></x:element>'


# Values that a declaration gives


def test_an_empty_element_has_its_default_or_fixed_value(module: Load) -> None:
    body = '<x:element name="a" type="x:int" default="7"/><x:element name="b" type="x:string" fixed="yes"/>'
    module(_sequence("r", body))
    value, rules = _read("<r><a/><b/></r>")
    assert (value.a, value.b, rules) == (7, "yes", [])
    assert b"<t:a/><t:b/>" in xmlbind.encode(value).replace(b"t2:", b"t:").replace(b"types:", b"t:")
    value.a = 8
    assert b"a>8<" in xmlbind.encode(value)


def test_a_fixed_value_is_the_only_one(module: Load) -> None:
    attribute = '<x:attribute name="v" type="x:decimal" fixed="1.0"/>'
    body = '<x:element name="b" type="x:boolean" fixed="true" maxOccurs="unbounded"/>'
    r = module(_sequence("r", body, attribute)).R
    assert _read("<r v='1.00'><b>1</b></r>")[1] == []
    assert _read("<r v='2'><b>false</b></r>")[1] == ["bad-value", "bad-value"]
    assert _read("<r v=''><b>true</b></r>")[1] == ["bad-value"]
    with pytest.raises(EncodeError, match="only 'true' is allowed"):
        xmlbind.encode(r(b=[True, False]))


def test_a_root_of_simple_type_has_a_default(module: Load) -> None:
    module('<x:element name="r" type="x:int" default="3"/>')
    value, rules = _read("<r/>")
    assert (value.value, rules) == (3, [])


# Derivation


def test_a_restriction_may_prohibit_an_attribute(module: Load) -> None:
    generated = module(
        '<x:complexType name="B"><x:attribute name="a" type="x:int"/><x:attribute name="b" type="x:int"/>'
        '</x:complexType><x:complexType name="D"><x:complexContent><x:restriction base="t:B">'
        '<x:attribute name="a" use="prohibited"/></x:restriction></x:complexContent></x:complexType>'
        '<x:element name="r" type="t:D"/>'
    )
    value, rules = _read("<r b='1'/>")
    assert (value.a, value.b, rules) == (None, 1, [])
    value, rules = _read("<r a='1' b='1'/>")
    assert rules == ["unknown-attribute"]
    assert b'a="1"' in xmlbind.encode(value)
    with pytest.raises(EncodeError, match="prohibits"):
        xmlbind.encode(generated.R(a=1))


def test_an_element_may_restrict_a_wildcard(module: Load) -> None:
    generated = module(
        '<x:complexType name="B"><x:sequence><x:any/></x:sequence></x:complexType>'
        '<x:complexType name="D"><x:complexContent><x:restriction base="t:B"><x:sequence>'
        '<x:element name="a" type="x:int"/></x:sequence></x:restriction></x:complexContent></x:complexType>'
        '<x:element name="r" type="t:D"/>'
    )
    value, rules = _read("<r><a>1</a></r>")
    assert (value.a, value.any_, rules) == (1, [], [])
    assert _again(value) == value
    assert _again(generated.R(a=2)).a == 2
    assert _read("<r/>")[1] == ["missing-element"]


def test_a_wildcard_may_restrict_a_wildcard(module: Load) -> None:
    module(
        '<x:complexType name="B"><x:sequence>'
        '<x:any namespace="##any" processContents="skip"/></x:sequence></x:complexType>'
        '<x:complexType name="D"><x:complexContent><x:restriction base="t:B"><x:sequence>'
        '<x:any namespace="urn:o" processContents="skip"/></x:sequence></x:restriction></x:complexContent>'
        '</x:complexType><x:element name="r" type="t:D"/>'
    )
    assert _read("<r><o:a xmlns:o='urn:o'/></r>")[1] == []
    assert "missing-element" in _read("<r><o:a xmlns:o='urn:p'/></r>")[1]


def test_a_member_of_a_group_may_restrict_its_head(module: Load) -> None:
    module(
        '<x:element name="head" type="x:string" abstract="true"/>'
        '<x:element name="member" type="x:string" substitutionGroup="t:head"/>'
        '<x:complexType name="B" abstract="true"><x:sequence><x:element ref="t:head"/></x:sequence></x:complexType>'
        '<x:complexType name="D"><x:complexContent><x:restriction base="t:B"><x:sequence>'
        '<x:element ref="t:member"/></x:sequence></x:restriction></x:complexContent></x:complexType>'
        '<x:element name="r" type="t:D"/>'
    )
    value, rules = _read("<r><member>m</member></r>")
    assert (value.member, rules) == ("m", [])
    assert _again(value).member == "m"
    assert type(value).from_dict(value.to_dict()).member == "m"


@pytest.mark.parametrize(("block", "rules"), [("", []), ("extension", ["xsi-type"]), ("restriction", [])])
def test_a_declaration_may_block_derived_types(module: Load, block: str, rules: list[str]) -> None:
    module(
        '<x:complexType name="B"/><x:complexType name="D"><x:complexContent><x:extension base="t:B"/>'
        f'</x:complexContent></x:complexType><x:element name="r" type="t:B" block="{block}"/>'
        + _sequence("s", f'<x:element name="a" type="t:B" block="{block}"/>')
    )
    assert _read('<r xsi:type="t:D"/>')[1] == rules
    assert _read('<s><a xsi:type="t:D"/></s>')[1] == rules


def test_a_head_may_block_its_members(module: Load) -> None:
    body = '<x:element name="h" type="x:int" {}/><x:element name="m" type="x:int" substitutionGroup="t:h"/>'
    module(body.format("") + _sequence("r", '<x:element ref="t:h"/>'))
    assert _read("<r><m>1</m></r>")[1] == []
    module(body.format('block="substitution"') + _sequence("r", '<x:element ref="t:h"/>'))
    assert "unknown-element" in _read("<r><m>1</m></r>")[1]


def test_an_element_may_substitute_for_one_of_another_package(
    build: Callable[..., Result], package: Callable[[Result], str]
) -> None:
    head = xsd(
        '<x:complexType name="H"><x:sequence><x:element name="a" type="x:int"/></x:sequence></x:complexType>'
        '<x:element name="h" type="t:H"/>' + _sequence("r", '<x:element ref="t:h"/>')
    )
    member = (
        '<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:m">'
        '<x:import namespace="urn:t" schemaLocation="h.xsd"/><x:element name="m" substitutionGroup="t:h" type="t:H"/>'
        "</x:schema>"
    )
    both = package(build({"h.xsd": head, "m.xsd": member}))
    alone = package(build({"h.xsd": head}))
    for name in (both, alone):
        __import__(name)
    cls = xmlbind.find_element("{urn:t}r", alone)
    value, rules = _read("<r><m:m xmlns:m='urn:m'><a>1</a></m:m></r>", cls)
    assert rules == []
    assert value.h.a == 1
    assert type(value.h) is xmlbind.find_element("{urn:m}m", both)
    assert b":m>" in xmlbind.encode(value)
    assert _again(value) == value
    assert type(value).from_dict(value.to_dict()) == value


# xsi:type, nil and names


def test_xsi_type_may_name_a_simple_type(module: Load) -> None:
    module(
        '<x:simpleType name="E"><x:restriction base="x:string">'
        '<x:enumeration value="a"/></x:restriction></x:simpleType>'
        '<x:element name="any"/><x:element name="text" type="x:string"/>'
        + _sequence("r", '<x:element name="s" type="x:string"/>')
    )
    xs = "xmlns:xs='http://www.w3.org/2001/XMLSchema'"
    assert _read(f"<any {xs} xsi:type='xs:int'>1</any>")[1] == []
    assert _read(f"<text {xs} xsi:type='xs:NCName'>a</text>")[1] == []
    assert _read(f"<text {xs} xsi:type='xs:NCName'>a b</text>")[1] == ["bad-value"]
    assert _read("<r><s xsi:type='t:E'>a</s></r>")[1] == []
    value, rules = _read(f"<r {xs}><s xsi:type='xs:date'>tomorrow</s></r>")
    assert (value.s, rules) == ("tomorrow", ["bad-value"])
    assert b":type=" in xmlbind.encode(value)


def test_any_type_takes_every_derived_type(module: Load) -> None:
    module('<x:element name="any"/>' + '<x:complexType name="C"><x:attribute name="a" type="x:int"/></x:complexType>')
    value, rules = _read("<any xsi:type='t:C' a='1'/>")
    assert (value.a, rules) == (1, [])
    assert b":any" in xmlbind.encode(value)
    assert _read("<any b='1'/>")[1] == []


def test_a_nillable_element_may_be_the_root(module: Load) -> None:
    module('<x:element name="r" nillable="true" type="x:int"/><x:element name="s" type="x:int"/>')
    assert _read("<r xsi:nil='true'/>") == (xmlbind.NIL, [])
    assert _read("<s xsi:nil='true'/>")[1] == ["nil"]


def test_names_may_hold_combining_characters(module: Load) -> None:
    name = "e\u0301a\u0323"
    module(_sequence("r", f'<x:element name="{name}" type="x:NCName"/>'))
    value, rules = _read(f"<r><{name}>o\u0308</{name}></r>")
    assert rules == []
    assert _again(value) == value


def test_qualified_names_keep_their_meaning(module: Load) -> None:
    names = '<x:simpleType name="L"><x:list itemType="x:QName"/></x:simpleType>'
    listed = (
        '<x:simpleType name="Q"><x:restriction base="x:QName">'
        '<x:enumeration value="t:a"/></x:restriction></x:simpleType>'
    )
    body = '<x:element name="l" type="t:L"/><x:element name="q" type="t:Q"/>'
    module(names + listed + _sequence("r", body))
    value, rules = _read("<r><l xmlns:p='urn:p'>p:a  b</l><q xmlns:u='urn:t'>u:a</q></r>")
    assert (value.l, value.q, rules) == (["{urn:p}a", "{urn:t}b"], "{urn:t}a", [])
    assert _again(value) == value
    assert _read("<r><l/><q>t:b</q></r>")[1] == ["bad-value"]
    assert _read("<r><l>p:a</l><q>t:a</q></r>")[1][0] == "bad-value"
    assert _read("<r><l>-a</l><q>t:a</q></r>")[1] == ["bad-value"]


def test_a_strict_wildcard_asks_for_a_declaration(module: Load) -> None:
    module(_sequence("r", '<x:any namespace="##other"/>') + _sequence("s", '<x:any processContents="lax"/>'))
    assert _read("<r><o:a xmlns:o='urn:o'/></r>")[1] == ["undeclared"]
    assert _read("<s><o:a xmlns:o='urn:o'/></s>")[1] == []


# Bounds and enumerations


@pytest.mark.parametrize(
    ("kind", "facet", "good", "bad"),
    [
        ("gYear", '<x:minInclusive value="2000"/>', "2000", "1999"),
        ("gYearMonth", '<x:maxExclusive value="2000-02"/>', "2000-01", "2000-02"),
        ("gMonthDay", '<x:minInclusive value="--02-01"/>', "--02-29", "--01-31"),
        ("gMonth", '<x:maxInclusive value="--05"/>', "--05", "--06"),
        ("gDay", '<x:minExclusive value="---09"/>', "---10", "---09"),
        ("duration", '<x:minInclusive value="P1M"/>', "P31D", "P30D"),
        ("dateTime", '<x:minInclusive value="2000-01-01T00:00:00Z"/>', "2000-01-02T00:00:00", "2000-01-01T00:00:00"),
        ("time", '<x:maxInclusive value="12:00:00"/>', "12:00:00", "12:00:01"),
        ("float", '<x:maxInclusive value="1"/>', "-INF", "NaN"),
        ("decimal", '<x:enumeration value="1.0"/>', "1.00", "1.01"),
        ("float", '<x:enumeration value="NaN"/>', "NaN", "1"),
        ("NMTOKENS", '<x:enumeration value="a b"/>', "a  b", "a"),
        ("NMTOKENS", '<x:maxLength value="1"/>', "a", "a b"),
        ("IDREFS", "", "a", ""),
        ("gMonth", "", "--12", "--13"),
        ("gMonthDay", "", "--02-29", "--02-30"),
        ("gYear", "", "-12000", "0000"),
    ],
)
def test_a_facet_holds(module: Load, kind: str, facet: str, good: str, bad: str) -> None:
    simple = f'<x:simpleType name="S"><x:restriction base="x:{kind}">{facet}</x:restriction></x:simpleType>'
    module(f'{simple}<x:element name="r" type="t:S"/>')
    assert _read(f"<r>{good}</r>")[1] == []
    assert _read(f"<r>{bad}</r>")[1] == ["bad-value"]


def test_facets_of_unions_and_enumerations_hold(module: Load) -> None:
    module(
        '<x:simpleType name="U"><x:union memberTypes="x:int x:boolean"/></x:simpleType>'
        '<x:simpleType name="V"><x:restriction base="t:U"><x:enumeration value="1"/></x:restriction></x:simpleType>'
        '<x:simpleType name="E"><x:restriction base="x:string"><x:enumeration value="a"/>'
        '<x:enumeration value="bb"/>'
        "</x:restriction></x:simpleType>"
        '<x:simpleType name="F"><x:restriction base="t:E"><x:pattern value="."/></x:restriction></x:simpleType>'
        '<x:element name="u" type="t:V"/><x:element name="e" type="t:F"/>'
    )
    assert _read("<u>1</u>")[1] == []
    assert _read("<u>2</u>")[1] == ["bad-value"]
    assert _read("<e>a</e>")[1] == []
    assert _read("<e>bb</e>")[1] == ["bad-value"]


def test_ten_thousand_values(module: Load) -> None:
    values = "".join(f'<x:enumeration value="v{number}"/>' for number in range(10_000))
    simple = f'<x:simpleType name="S"><x:restriction base="x:string">{values}</x:restriction></x:simpleType>'
    generated = module(f'{simple}<x:element name="r" type="t:S"/>')
    assert len(generated.S) == 10_000
    assert _read("<r>v9999</r>")[1] == []
    assert _read("<r>v10000</r>")[1] == ["bad-value"]


# Redefinition


BASE = (
    '<x:complexType name="P"><x:sequence><x:element name="a" type="x:int"/>'
    '<x:element name="p" type="t:P" minOccurs="0"/>'
    '</x:sequence></x:complexType><x:simpleType name="S"><x:restriction base="x:int"/></x:simpleType>'
    '<x:group name="G"><x:sequence><x:element name="g" type="t:S"/></x:sequence></x:group>'
    '<x:attributeGroup name="A"><x:attribute name="x" type="x:int"/></x:attributeGroup>'
    + _sequence("r", '<x:element name="p" type="t:P"/><x:group ref="t:G"/>', '<x:attributeGroup ref="t:A"/>')
)
REDEFINED = (
    '<x:redefine schemaLocation="base.xsd"><x:complexType name="P"><x:complexContent>'
    '<x:extension base="t:P"><x:sequence>'
    '<x:element name="b" type="x:int"/></x:sequence></x:extension></x:complexContent></x:complexType>'
    '<x:simpleType name="S"><x:restriction base="t:S"><x:maxInclusive value="9"/></x:restriction></x:simpleType>'
    '<x:group name="G"><x:sequence><x:group ref="t:G"/><x:element name="h" type="x:int"/></x:sequence></x:group>'
    '<x:attributeGroup name="A"><x:attributeGroup ref="t:A"/><x:attribute name="y" type="x:int"/></x:attributeGroup>'
    "</x:redefine>"
)


def test_redefined_components_take_the_place_of_others_everywhere(module: Load) -> None:
    generated = module({"base.xsd": xsd(BASE), "new.xsd": xsd(REDEFINED)})
    value, rules = _read("<r x='1' y='2'><p><a>1</a><p><a>2</a><b>3</b></p><b>4</b></p><g>9</g><h>5</h></r>")
    assert rules == []
    assert (value.p.b, value.p.p.b, value.y, value.h) == (4, 3, 2, 5)
    assert _again(value) == value
    assert _read("<r><p><a>1</a><b>2</b></p><g>10</g><h>5</h></r>")[1] == ["bad-value"]
    assert _read("<r><p xsi:type='t:P'><a>1</a><b>2</b></p><g>1</g><h>5</h></r>")[1] == []
    assert "P" in generated.__types__


def test_redefinitions_of_redefinitions(module: Load) -> None:
    again = (
        '<x:redefine schemaLocation="b.xsd"><x:complexType name="P"><x:complexContent>'
        '<x:extension base="t:P"><x:sequence>'
        '<x:element name="c" type="x:int"/></x:sequence></x:extension></x:complexContent></x:complexType></x:redefine>'
    )
    module({"base.xsd": xsd(BASE), "b.xsd": xsd(REDEFINED), "a.xsd": xsd(again)})
    value, rules = _read("<r><p><a>1</a><b>2</b><c>3</c></p><g>1</g><h>5</h></r>")
    assert (value.p.c, rules) == (3, [])


def test_overridden_components_are_replaced(module: Load) -> None:
    override = (
        '<x:override schemaLocation="base.xsd"><x:simpleType name="S"><x:restriction base="x:date"/></x:simpleType>'
        "</x:override>"
    )
    module({"base.xsd": xsd(BASE), "new.xsd": xsd(override)})
    assert _read("<r><p><a>1</a></p><g>2026-11-20</g></r>")[1] == []


# Identity constraints: on demand


@pytest.mark.parametrize(("keys", "refs", "fits"), [("1 2", "2 1 1", True), ("1 1", "1", False), ("1 2", "3", False)])
def test_identity_constraints_are_checked_on_demand(tmp_path: Path, keys: str, refs: str, fits: bool) -> None:
    constraint = (
        '<x:key name="k"><x:selector xpath="t:i"/><x:field xpath="@id"/></x:key>'
        '<x:keyref name="f" refer="t:k"><x:selector xpath="t:j"/><x:field xpath="@to"/></x:keyref>'
    )
    body = (
        '<x:element name="i" maxOccurs="unbounded"><x:complexType><x:attribute name="id" type="x:int"/></x:complexType>'
        '</x:element><x:element name="j" maxOccurs="unbounded"><x:complexType><x:attribute name="to" type="x:int"/>'
        "</x:complexType></x:element>"
    )
    schema = xsd(
        _sequence("r", body).replace("</x:complexType></x:element>", "\0").replace("\0", "</x:complexType></x:element>")
    )
    head, _, tail = schema.rpartition("</x:element>")
    (tmp_path / "a.xsd").write_text(f"{head}{constraint}</x:element>{tail}")
    items = "".join(f'<i id="{key}"/>' for key in keys.split()) + "".join(f'<j to="{ref}"/>' for ref in refs.split())
    report = Validator(SchemaSet.load(tmp_path / "a.xsd")).validate_bytes(f'<r xmlns="urn:t">{items}</r>'.encode())
    assert report.valid == fits
    assert fits or "key" in report.issues[0].message


# Bad input


def test_circular_imports_and_includes(module: Load) -> None:
    loop = '<x:include schemaLocation="{}"/>'
    other = '<x:import namespace="urn:u" schemaLocation="u.xsd"/>'
    back = '<x:import namespace="urn:t" schemaLocation="a.xsd"/><x:element name="u" type="x:int"/>'
    files = {
        "a.xsd": xsd(loop.format("b.xsd") + other + '<x:element name="a" type="t:B"/>'),
        "b.xsd": xsd(loop.format("a.xsd") + '<x:simpleType name="B"><x:restriction base="x:int"/></x:simpleType>'),
        "u.xsd": xsd(back, "urn:u"),
    }
    module(files)
    assert _read("<a>1</a>")[1] == []


def test_a_redefinition_of_itself_ends(build: Callable[..., Result]) -> None:
    redefine = (
        '<x:redefine schemaLocation="a.xsd"><x:simpleType name="S">'
        '<x:restriction base="t:S"/></x:simpleType></x:redefine>'
    )
    result = build(redefine)
    assert set(rules(result)) <= {"redefine-undefined", "cycle", "type-unresolved"}
    assert rules(result)


def test_schema_1_1_is_told_and_the_rest_is_generated(build: Callable[..., Result], package: Any) -> None:
    result = build(
        '<x:complexType name="T"><x:sequence><x:element name="a" type="x:int"/></x:sequence>'
        '<x:assert test="a > 1"/></x:complexType>'
        '<x:element name="r" type="t:T"><x:alternative test="@k" type="t:T"/></x:element>'
        '<x:simpleType name="S"><x:restriction base="x:int"><x:assertion test="$value > 1"/></x:restriction>'
        '</x:simpleType><x:element name="d" type="x:yearMonthDuration"/>'
    )
    found = [(finding.rule, finding.message.split()[0], finding.line) for finding in result.findings]
    assert found == [("xsd-1.1", name, 3) for name in ("alternative", "assert", "assertion")]
    assert not result.failed
    __import__(package(result))
    assert _read("<r><a>1</a></r>")[1] == []
    assert _read("<d>P1Y</d>")[1] == []


def test_a_remote_import_says_where_to_put_the_file(build: Callable[..., Result]) -> None:
    remote = '<x:import namespace="urn:o" schemaLocation="http://example.org/schemas/other.xsd?v=1"/>'
    result = build({"sub/a.xsd": xsd(remote + '<x:element name="a" type="x:int"/>')})
    (finding,) = result.findings
    assert finding.rule == "location-remote"
    assert "put it at sub/other.xsd" in finding.repair
