"""Schema constructs as classes: what is generated is imported, built, written, validated by libxml2 and read back."""

from __future__ import annotations

import datetime as dt
import decimal
import importlib
import inspect
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from lxml import etree

import mtosi_jms
from mtosi_codegen import Result
from mtosi_jms import xmlbind
from mtosi_jms.errors import DecodeError, EncodeError
from mtosi_jms.inventory import name_text

from .conftest import ASK, MESSAGES, wsdl, xsd

Load = Callable[..., ModuleType]


def _round_trip(obj: Any, schema: str) -> bool:
    """Whether it is read back equal and without a warning; it must be valid."""
    data = xmlbind.encode(obj)
    etree.XMLSchema(etree.fromstring(schema.encode())).assertValid(etree.fromstring(data))
    warnings: list[xmlbind.XmlWarning] = []
    return xmlbind.decode(data, type(obj), warnings=warnings) == obj and not warnings


def _fields(cls: Any) -> dict[str, tuple[int, int | None]]:
    return {field.name: (field.min, field.max) for field in cls.__xml__.fields}


def test_built_in_types(module: Load) -> None:
    kinds = {
        "string": "a", "token": "a", "anyURI": "urn:a", "boolean": True, "int": -1, "unsignedLong": 2**64 - 1,
        "decimal": decimal.Decimal("1.50"), "double": 1.5, "date": dt.date(2024, 2, 29), "time": dt.time(1, 2, 3),
        "dateTime": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "base64Binary": b"\0\1", "hexBinary": b"\xff",
        "NMTOKENS": ["a", "b"], "gYear": "2024",
    }  # fmt: skip
    body = "".join(f'<x:element name="{kind}E" type="x:{kind}"/>' for kind in kinds)
    schema = xsd(f'<x:element name="all"><x:complexType><x:sequence>{body}</x:sequence></x:complexType></x:element>')
    generated = module(schema)
    values = {field.name: value for field, value in zip(generated.All.__xml__.fields, kinds.values(), strict=True)}
    assert _round_trip(generated.All(**values), schema)


def test_occurrence_and_nillable(module: Load) -> None:
    schema = xsd(
        '<x:element name="r"><x:complexType><x:sequence><x:element name="one" type="x:int"/>'
        '<x:element name="maybe" type="x:int" minOccurs="0"/><x:element name="nil" type="x:int" nillable="true"/>'
        '<x:element name="many" type="x:int" nillable="1" minOccurs="0" maxOccurs="unbounded"/>'
        '<x:element name="none" type="x:int" minOccurs="0" maxOccurs="0"/>'
        "</x:sequence></x:complexType></x:element>"
    )
    generated = module(schema)
    assert _fields(generated.R) == {"one": (1, 1), "maybe": (0, 1), "nil": (1, 1), "many": (0, None)}
    with pytest.raises(TypeError, match="one"):
        generated.R(nil=1)
    assert _round_trip(generated.R(one=1, nil=xmlbind.NIL, many=[1, xmlbind.NIL]), schema)


def test_enumerations(module: Load) -> None:
    schema = xsd(
        '<x:simpleType name="ColourType"><x:restriction base="x:string"><x:enumeration value="red"/>'
        '<x:enumeration value="dark red"/><x:enumeration value="dark-red"/><x:enumeration value="name"/>'
        '<x:enumeration value=""/></x:restriction></x:simpleType>'
        '<x:element name="c"><x:complexType><x:sequence><x:element name="named" type="t:ColourType"/>'
        '<x:element name="inline" maxOccurs="2"><x:simpleType><x:restriction base="x:string">'
        '<x:enumeration value="A"/></x:restriction></x:simpleType></x:element>'
        '<x:element name="number"><x:simpleType><x:restriction base="x:int"><x:enumeration value="1"/>'
        '<x:enumeration value="2"/></x:restriction></x:simpleType></x:element>'
        "</x:sequence></x:complexType></x:element>"
    )
    generated = module(schema)
    colours = generated.ColourType
    assert {member.value for member in colours} == {"red", "dark red", "dark-red", "name", ""}
    assert len({member.name for member in colours}) == 5
    assert colours("dark red").name == "dark_red"
    assert colours("name").name == "name_"
    assert _round_trip(generated.C(named=colours("dark-red"), inline=[generated.CInline.A], number=2), schema)
    with pytest.raises(DecodeError):
        xmlbind.decode(b'<c xmlns="urn:t"><named>blue</named><inline>A</inline><number>1</number></c>',
                       generated.C, strict=True)  # fmt: skip


def test_facets_hold_when_writing(module: Load) -> None:
    def element(name: str, base: str, *facets: str) -> str:
        inner = "".join(f"<x:{facet}/>" for facet in facets)
        return (
            f'<x:element name="{name}" minOccurs="0"><x:simpleType><x:restriction base="x:{base}">{inner}'
            "</x:restriction></x:simpleType></x:element>"
        )

    body = "".join(
        [
            element("pattern", "string", r'pattern value="\d{3}-[A-Z]+"', 'pattern value="none"'),
            element("short", "string", 'minLength value="2"', 'maxLength value="3"'),
            element("exact", "hexBinary", 'length value="2"'),
            element("bounded", "int", 'minInclusive value="1"', 'maxExclusive value="5"'),
            element("money", "decimal", 'fractionDigits value="2"', 'maxInclusive value="9.99"'),
            element("day", "date", 'minInclusive value="2024-01-01"'),
        ]
    )
    schema = xsd(f'<x:element name="f"><x:complexType><x:sequence>{body}</x:sequence></x:complexType></x:element>')
    f = module(schema).F
    good = {"pattern": "123-AB", "short": "ab", "exact": b"ab", "bounded": 4, "money": decimal.Decimal("9.99")}
    assert _round_trip(f(**good, day=dt.date(2024, 1, 1)), schema)
    assert _round_trip(f(pattern="none"), schema)
    bad = {"pattern": "12-AB", "short": "abcd", "exact": b"abc", "bounded": 5, "money": decimal.Decimal("1.234")}
    for name, value in {**bad, "day": dt.date(2023, 12, 31)}.items():
        with pytest.raises(ValueError, match=name):
            xmlbind.encode(f(**{name: value}))


def test_lists_and_unions(module: Load) -> None:
    schema = xsd(
        '<x:simpleType name="Numbers"><x:list itemType="x:int"/></x:simpleType>'
        '<x:simpleType name="Few"><x:restriction base="t:Numbers"><x:maxLength value="2"/></x:restriction>'
        "</x:simpleType>"
        '<x:simpleType name="Word"><x:restriction base="x:string"><x:enumeration value="many"/></x:restriction>'
        "</x:simpleType>"
        '<x:simpleType name="Count"><x:union memberTypes="x:unsignedInt t:Word"/></x:simpleType>'
        '<x:element name="u"><x:complexType><x:sequence><x:element name="few" type="t:Few"/>'
        '<x:element name="count" type="t:Count" maxOccurs="unbounded"/></x:sequence></x:complexType></x:element>'
    )
    generated = module(schema)
    assert _round_trip(generated.U(few=[1, 2], count=[3, generated.Word.many]), schema)
    with pytest.raises(ValueError, match="few"):
        xmlbind.encode(generated.U(few=[1, 2, 3], count=[3]))


def test_extension_and_xsi_type(module: Load) -> None:
    schema = xsd(
        '<x:complexType name="Base" abstract="true"><x:sequence><x:element name="a" type="x:int"/></x:sequence>'
        '<x:attribute name="id" type="x:string" use="required"/></x:complexType>'
        '<x:complexType name="Derived"><x:complexContent><x:extension base="t:Base"><x:sequence>'
        '<x:element name="b" type="x:int"/></x:sequence></x:extension></x:complexContent></x:complexType>'
        '<x:element name="holder"><x:complexType><x:sequence><x:element name="it" type="t:Base" maxOccurs="2"/>'
        "</x:sequence></x:complexType></x:element>"
    )
    generated = module(schema)
    assert issubclass(generated.Derived, generated.Base)
    assert [field.name for field in generated.Derived.__xml__.own] == ["b"]
    assert _round_trip(generated.Holder(it=[generated.Derived(a=1, b=2, id="x")]), schema)
    with pytest.raises(ValueError, match="abstract"):
        xmlbind.encode(generated.Holder(it=[generated.Base(a=1, id="x")]))


def test_restriction_keeps_the_fields_and_narrows(module: Load) -> None:
    schema = xsd(
        '<x:complexType name="All"><x:choice><x:element name="a" type="x:string"/><x:element name="b" type="x:string"/>'
        '<x:element name="c" type="x:string"/></x:choice></x:complexType>'
        '<x:element name="some"><x:complexType><x:complexContent><x:restriction base="t:All"><x:choice>'
        '<x:element name="a" type="x:string"/><x:element name="c" type="x:string"/></x:choice>'
        "</x:restriction></x:complexContent></x:complexType></x:element>"
        '<x:complexType name="Wide"><x:sequence><x:element name="p" type="x:string" minOccurs="0"/>'
        '<x:element name="q" type="x:string" minOccurs="0"/></x:sequence></x:complexType>'
        '<x:simpleType name="E"><x:restriction base="x:string"><x:enumeration value="V"/></x:restriction>'
        "</x:simpleType>"
        '<x:element name="narrow"><x:complexType><x:complexContent><x:restriction base="t:Wide"><x:sequence>'
        '<x:element name="p" type="t:E"/></x:sequence></x:restriction></x:complexContent></x:complexType></x:element>'
    )
    generated = module(schema)
    assert issubclass(generated.Some, generated.All)
    assert generated.Some.__xml__.own == ()
    assert _round_trip(generated.Some(c="x"), schema)
    with pytest.raises(ValueError, match="one of a, c"):
        xmlbind.encode(generated.Some(b="x"))
    assert _fields(generated.Narrow) == {"p": (1, 1), "q": (0, 1)}
    assert _round_trip(generated.Narrow(p=generated.E.V), schema)


def test_simple_content(module: Load) -> None:
    schema = xsd(
        '<x:complexType name="Price"><x:simpleContent><x:extension base="x:decimal">'
        '<x:attribute name="currency" type="x:string"/><x:attribute name="value" type="x:int"/></x:extension>'
        "</x:simpleContent></x:complexType>"
        '<x:complexType name="Small"><x:simpleContent><x:restriction base="t:Price"><x:maxInclusive value="9"/>'
        "</x:restriction></x:simpleContent></x:complexType>"
        '<x:element name="price" type="t:Price"/><x:element name="small" type="t:Small"/>'
    )
    generated = module(schema)
    assert _round_trip(generated.PriceElement(value=decimal.Decimal("1.5"), currency="EUR", value_attribute=3), schema)
    assert _round_trip(generated.SmallElement(value=decimal.Decimal(9)), schema)
    with pytest.raises(ValueError, match="more than 9"):
        xmlbind.encode(generated.SmallElement(value=decimal.Decimal(10)))


def test_nested_and_repeated_groups(module: Load) -> None:
    schema = xsd(
        '<x:element name="plan"><x:complexType><x:sequence>'
        '<x:sequence maxOccurs="unbounded"><x:element name="start" type="x:int"/>'
        '<x:element name="end" type="x:int" minOccurs="0"/></x:sequence>'
        '<x:choice minOccurs="0"><x:element name="note" type="x:string"/>'
        '<x:sequence><x:element name="from" type="x:string"/><x:element name="to" type="x:string"/></x:sequence>'
        "</x:choice></x:sequence></x:complexType></x:element>"
    )
    plan = module(schema).Plan
    assert _fields(plan) == {"start": (1, None), "end": (0, None), "note": (0, 1), "from_": (0, 1), "to": (0, 1)}
    assert _round_trip(plan(start=[1, 2], end=[3, 4], note="n"), schema)
    assert _round_trip(plan(start=[1], from_="a", to="b"), schema)
    for wrong in ({"note": "n", "to": "b"}, {"from_": "a"}):
        with pytest.raises(ValueError, match=r"note|to"):
            xmlbind.encode(plan(start=[1], **wrong))
    data = b'<plan xmlns="urn:t"><start>1</start><start>2</start><end>3</end></plan>'
    written = etree.fromstring(xmlbind.encode(xmlbind.decode(data, plan)))
    assert [child.text for child in written] == ["1", "2", "3"]


def test_one_element_in_two_places(module: Load) -> None:
    schema = xsd(
        '<x:element name="twice"><x:complexType><x:sequence><x:element name="a" type="x:int"/>'
        '<x:element name="b" type="x:int"/><x:element name="a" type="x:int"/></x:sequence></x:complexType></x:element>'
    )
    twice = module(schema).Twice
    assert _fields(twice) == {"a": (2, 2), "b": (1, 1)}
    assert _round_trip(twice(a=[1, 2], b=3), schema)


def test_all_and_groups(module: Load) -> None:
    schema = xsd(
        '<x:group name="Pair"><x:sequence><x:element name="l" type="x:int"/><x:element name="r"><x:complexType>'
        '<x:sequence><x:element name="n" type="x:int"/></x:sequence></x:complexType></x:element></x:sequence></x:group>'
        '<x:attributeGroup name="Inner"><x:attribute name="i" type="x:int"/></x:attributeGroup>'
        '<x:attributeGroup name="Outer"><x:attributeGroup ref="t:Inner"/><x:attribute name="o" type="x:int"/>'
        "</x:attributeGroup>"
        '<x:element name="any"><x:complexType><x:all><x:element name="x1" type="x:int"/>'
        '<x:element name="x2" type="x:int" minOccurs="0"/></x:all></x:complexType></x:element>'
        '<x:element name="g"><x:complexType><x:sequence><x:element name="h" type="x:int"/>'
        '<x:group ref="t:Pair" maxOccurs="2"/></x:sequence><x:attributeGroup ref="t:Outer"/></x:complexType>'
        "</x:element>"
    )
    generated = module(schema)
    assert _round_trip(
        generated.Any_(x1=1, x2=2) if hasattr(generated, "Any_") else generated.AnyElement(x1=1, x2=2), schema
    )
    pair = generated.PairR
    assert _round_trip(generated.G(h=0, l=[1, 2], r=[pair(n=1), pair(n=2)], i=1, o=2), schema)


def test_wildcards_any_type_and_mixed(module: Load) -> None:
    schema = xsd(
        '<x:element name="known" type="x:string"/>'
        '<x:element name="open"><x:complexType><x:sequence><x:element name="a" type="x:int"/>'
        '<x:element name="free"/><x:element name="also" type="x:anyType" minOccurs="0"/>'
        '<x:any namespace="##other" processContents="lax" minOccurs="0" maxOccurs="unbounded"/>'
        "</x:sequence></x:complexType></x:element>"
        '<x:element name="text"><x:complexType mixed="true"><x:sequence><x:any minOccurs="0" processContents="lax"/>'
        '</x:sequence><x:attribute name="lang" type="x:string"/></x:complexType></x:element>'
    )
    generated = module(schema)
    raw = xmlbind.RawXml
    free = raw(b'<t:free xmlns:t="urn:t"><b/></t:free>')
    assert _round_trip(generated.Open(a=1, free=free, any_=[raw(b'<v:z xmlns:v="urn:v"/>')]), schema)
    assert _round_trip(generated.Text(content=["a ", generated.Known(value="k"), " b"], lang="en"), schema)


def test_substitution_groups(build: Callable[..., Result], package: Callable[[Result], str]) -> None:
    base = xsd(
        '<x:complexType name="EventType" abstract="true"><x:sequence><x:element name="when" type="x:int"/></x:sequence>'
        '</x:complexType><x:element name="event" type="t:EventType" abstract="true"/>'
        '<x:element name="log"><x:complexType><x:sequence><x:element ref="t:event" maxOccurs="unbounded"/>'
        "</x:sequence></x:complexType></x:element>",
        "urn:base",
    )
    alarm = xsd(
        '<x:import namespace="urn:base" schemaLocation="base.xsd"/>'
        '<x:complexType name="AlarmType"><x:complexContent><x:extension base="b:EventType"><x:sequence>'
        '<x:element name="level" type="x:int"/></x:sequence></x:extension></x:complexContent></x:complexType>'
        '<x:element name="alarm" type="t:AlarmType" substitutionGroup="b:event"/>'
        '<x:element name="siren" type="t:AlarmType" substitutionGroup="t:alarm"/>',
        "urn:alarm",
        'xmlns:b="urn:base"',
    )
    result = build({"base.xsd": base, "alarm.xsd": alarm})
    name = package(result)
    log = __import__(f"{name}.urn_base.types", fromlist=["Log"]).Log
    alarms = __import__(f"{name}.urn_alarm.types", fromlist=["Alarm"])
    (field,) = log.__xml__.fields
    assert field.head
    assert field.members == ("urn_alarm.types:Alarm", "urn_alarm.types:Siren")
    value = log(event=[alarms.Alarm(when=1, level=2), alarms.Siren(when=3, level=4)])
    assert xmlbind.decode(xmlbind.encode(value), log) == value


def test_unqualified_and_foreign_names(module: Load) -> None:
    files = {
        "a.xsd": xsd(
            '<x:import namespace="urn:o" schemaLocation="o.xsd"/><x:element name="r"><x:complexType><x:sequence>'
            '<x:element name="name" type="x:int"/><x:element ref="o:name"/><x:element name="Name" type="x:int"/>'
            '<x:element name="extras" type="x:int"/></x:sequence><x:attribute name="name" type="x:int"/>'
            '<x:attribute ref="xml:lang"/></x:complexType></x:element>',
            more='xmlns:o="urn:o"',
            form="unqualified",
        ),
        "o.xsd": xsd('<x:element name="name" type="x:int"/>', "urn:o"),
    }
    r = module(files).R
    fields = {field.name: field.tag for field in r.__xml__.fields}
    assert fields == {
        "name": "name",
        "urn_o_name": "{urn:o}name",
        "Name": "Name",
        "extras_": "extras",
        "name_attribute": "name",
        "lang": "{http://www.w3.org/XML/1998/namespace}lang",
    }
    value = r(**{name: "en" if name == "lang" else 1 for name in fields})
    assert xmlbind.decode(xmlbind.encode(value), r) == value


def test_documentation_is_plain_text(module: Load) -> None:
    schema = xsd(
        '<x:element name="d"><x:annotation><x:documentation><p>First  of\n two.</p><ul><li>a <b>bold</b> word</li></ul>'
        "</x:documentation></x:annotation><x:complexType><x:sequence>"
        '<x:element name="e" type="x:int" default="3"><x:annotation><x:documentation>Back\\slash and """quotes"""'
        "</x:documentation></x:annotation></x:element></x:sequence>"
        '<x:attribute name="v" type="x:int" fixed="1"/></x:complexType></x:element>'
    )
    doc = module(schema).D.__doc__
    assert doc.startswith("First of two.\n\n    a bold word")
    assert "e: Back\\slash and '''quotes''' Default: 3." in doc
    assert "v: Fixed: 1." in doc


def test_mtosi_names_have_a_text_form(module: Load) -> None:
    space = "http://www.tmforum.org/mtop/fmw/xsd/nam/v1"
    schema = xsd(
        '<x:complexType name="NamingAttributeType"><x:sequence><x:element name="rdn" maxOccurs="unbounded">'
        '<x:complexType><x:sequence><x:element name="type" type="x:string"/><x:element name="value" type="x:string"/>'
        "</x:sequence></x:complexType></x:element></x:sequence></x:complexType>",
        space,
    )
    nam = module(schema, "fmw.nam")
    name = nam.name("MD=EMS1/ME=a%2Fb")
    assert [(rdn.type, rdn.value) for rdn in name.rdn] == [("MD", "EMS1"), ("ME", "a/b")]
    assert str(name) == "MD=EMS1/ME=a%2Fb"


def test_names_of_mtosi_1x_have_the_same_text_form(module: Load) -> None:
    fields = ("osNm", "mdNm", "meNm", "ptpNm", "tppoolNm", "mlsnNm", "propNm")
    elements = "".join(f'<x:element name="{field}" type="x:string" minOccurs="0"/>' for field in fields)
    schema = xsd(
        f'<x:complexType name="NamingAttributes_T"><x:sequence>{elements}</x:sequence></x:complexType>'
        '<x:element name="n" type="t:NamingAttributes_T"/>',
        "tmf854.v1",
    )
    v1 = module(schema, "ns_tmf854_v1.types")
    pairs = [("MD", "E/1"), ("MLSN", "=%"), ("TPPOOL", "p"), ("PROP", "/alu/x=1"), ("ME", "")]
    made = v1.name(*pairs)
    assert (made.md_nm, made.mlsn_nm, made.prop_nm, made.os_nm) == ("E/1", "=%", "/alu/x=1", None)
    assert str(made) == "MD=E%2F1/MLSN=%3D%25/ME=/TPPOOL=p/PROP=%2Falu%2Fx%3D1"
    assert (v1.name(str(made)), {made: 1}[v1.name(str(made))]) == (made, 1)
    assert v1.name("MD=E/PTP=/rack=1/shelf=2").ptp_nm == "/rack=1/shelf=2"
    assert v1.name("MD=E") < v1.name("MD=E/ME=1")
    text = '<n xmlns="tmf854.v1" xmlns:v="vendor.v1"><mdNm>E</mdNm><v:abcNm>/1</v:abcNm><v:more><v:x/></v:more></n>'
    read = xmlbind.decode(text.encode())
    assert str(read) == name_text(etree.fromstring(text)) == "MD=E/ABC=%2F1"
    assert b"abcNm" in xmlbind.encode(read)
    for wrong in ("ABC=1", "MD=1/MD=2", "MD"):
        with pytest.raises(EncodeError):
            v1.name(wrong)


def test_a_class_named_like_python_s_own_word_leaves_equality_alone(module: Load) -> None:
    body = '<x:element name="{}"><x:complexType><x:sequence/></x:complexType></x:element>'
    generated = module(body.format("notImplemented") + body.format("other") + '<x:complexType name="NotImplemented"/>')
    assert generated.__elements__ == {"notImplemented": "NotImplementedElement", "other": "Other"}
    assert generated.__types__ == {"NotImplemented": "NotImplemented_"}
    assert (generated.Other() == generated.NotImplementedElement()) is False
    assert generated.Other() != 1
    assert generated.Other() == generated.Other()


ANY_ATTRIBUTE = {
    "any": ('namespace="##any"', True, True, True, True),
    "by-default": ("", True, True, True, True),
    "other": ('namespace="##other" processContents="lax"', False, True, True, False),
    "local": ('namespace="##local" processContents="skip"', False, False, False, True),
    "target": ('namespace="##targetNamespace"', True, False, False, False),
    "list": ('namespace=" ##local urn:v  ##targetNamespace"', True, True, False, True),
    "one": ('namespace="urn:v"', False, True, False, False),
}


@pytest.mark.parametrize("case", ANY_ATTRIBUTE)
def test_any_attribute(case: str, module: Load) -> None:
    wildcard, *admitted = ANY_ATTRIBUTE[case]
    generated = module(
        '<x:element name="r"><x:complexType><x:sequence><x:element name="a" minOccurs="0"/></x:sequence>'
        f'<x:attribute name="id" type="x:int"/><x:anyAttribute {wildcard}/></x:complexType></x:element>'
    )
    names = ("{urn:t}k", "{urn:v}k", "{urn:w}k", "k")
    for name, free in zip(names, admitted, strict=True):
        root = etree.Element("{urn:t}r", {name: "1", "id": "7"})
        warnings: list[xmlbind.XmlWarning] = []
        read = xmlbind.decode(etree.tostring(root), generated.R, warnings=warnings)
        assert [warning.rule for warning in warnings] == ([] if free else ["unknown-attribute"])
        assert (read.id, read.extras.attributes) == (7, {name: "1"})
        written = etree.fromstring(xmlbind.encode(read))
        assert dict(written.attrib) == {name: "1", "id": "7"}
        assert xmlbind.decode(xmlbind.encode(read)) == read


def test_any_attribute_is_written_and_valid(module: Load) -> None:
    schema = xsd(
        '<x:element name="r"><x:complexType><x:simpleContent><x:extension base="x:int">'
        '<x:anyAttribute namespace="##other" processContents="lax"/></x:extension></x:simpleContent></x:complexType>'
        '</x:element><x:element name="m"><x:complexType mixed="true"><x:anyAttribute processContents="skip"/>'
        "</x:complexType></x:element>"
    )
    generated = module(schema)
    extras = xmlbind.Extras(attributes={"{urn:v}k": "1 & 2"})
    assert _round_trip(generated.R(value=1, extras=extras), schema)
    assert _round_trip(generated.M(content=["x"], extras=extras), schema)


def test_any_attribute_of_groups_and_of_derived_types(module: Load) -> None:
    generated = module(
        '<x:attributeGroup name="G"><x:anyAttribute namespace="urn:v urn:w"/></x:attributeGroup>'
        '<x:complexType name="B"><x:attributeGroup ref="t:G"/></x:complexType>'
        '<x:complexType name="E"><x:complexContent><x:extension base="t:B"><x:anyAttribute namespace="urn:u"/>'
        "</x:extension></x:complexContent></x:complexType>"
        '<x:complexType name="R"><x:complexContent><x:restriction base="t:B"><x:anyAttribute namespace="urn:w"/>'
        "</x:restriction></x:complexContent></x:complexType>"
        '<x:complexType name="N"><x:complexContent><x:restriction base="t:B"/></x:complexContent></x:complexType>'
        '<x:complexType name="I"><x:attributeGroup ref="t:G"/><x:anyAttribute namespace="urn:w urn:u"/>'
        "</x:complexType>" + "".join(f'<x:element name="{name.lower()}" type="t:{name}"/>' for name in "BERNI")
    )
    admitted = {"b": "vw", "e": "uvw", "r": "w", "n": "", "i": "w"}
    for element, spaces in admitted.items():
        assert element in generated.__elements__
        for space in "uvw":
            warnings: list[xmlbind.XmlWarning] = []
            xmlbind.decode(f'<{element} xmlns="urn:t" xmlns:o="urn:{space}" o:k="1"/>', warnings=warnings)
            assert (not warnings) == (space in spaces), (element, space)


WORDS = ["self", "to_dict", "to_xml", "to_json", "from_dict", "extras", "unknown_elements", "mro", "parse", "cls", "of"]
PYTHON = ["str", "int", "list", "bool", "field", "type", "property", "dataclass", "_x", "None", "class", "import"]
OWN = ["options", "timeout", "request", "batch_size", "compression"]


@pytest.mark.obligation("GEN6")
@pytest.mark.parametrize("kind", ["element", "attribute"])
def test_fields_with_the_names_of_methods_and_built_ins(module: Any, kind: str) -> None:
    names = [*WORDS, *PYTHON, *OWN]
    parts = "".join(f'<x:{kind} name="{name}" type="x:string"/>' for name in names)
    content = f"<x:sequence>{parts}</x:sequence>" if kind == "element" else parts
    cls = module(f'<x:element name="e"><x:complexType>{content}</x:complexType></x:element>').E
    fields = [field.name for field in cls.__xml__.fields]
    made = cls(**dict(zip(fields, names, strict=True)))
    again = xmlbind.decode(made.to_xml(), cls)
    assert again == made == cls.from_dict(made.to_dict())
    assert sorted(json.loads(made.to_json()).values()) == sorted(names)
    assert made.unknown_elements() == []


@pytest.mark.obligation("GEN6")
def test_calls_take_fields_with_the_names_of_their_arguments(build: Any, package: Any) -> None:
    names = [*WORDS, *OWN]
    more = "".join(f'<x:element name="{name}" type="x:string" minOccurs="0"/>' for name in names)
    text = MESSAGES.replace("</x:sequence>", f"{more}</x:sequence>", 1)
    result = build({"a.wsdl": wsdl("".join(ASK.values())), "messages.xsd": text})
    (service,) = result.model.services
    name = package(result)
    oracle = getattr(importlib.import_module(f"{name}.{service.module}"), service.class_name)
    answer = xmlbind.find_element("{urn:m}askResponse", name)
    came = []

    class Mine(oracle.Supplier):  # type: ignore[misc, name-defined]
        def ask(self, request: Any, context: Any) -> Any:
            came.append(request)
            return answer(answer="yes")  # type: ignore[misc]

    with (
        mtosi_jms.connect("memory:words") as connection,
        mtosi_jms.Supplier(connection, "queue:W", services=[Mine()]),
        mtosi_jms.Requestor(connection, sender_uri="queue:ME", temporary_reply=True) as requestor,
    ):
        stub = oracle(requestor, "queue:W")
        parameters = [
            one for one in inspect.signature(stub.ask).parameters if one not in ("request", "options", "timeout")
        ]
        assert stub.ask(**{one: one for one in parameters}, timeout=20).answer == "yes"
    assert sorted(came[0].to_dict().values()) == sorted(parameters)


NOTE = """<x:complexType name="Base" mixed="true"><x:sequence><x:element name="a" type="x:string" minOccurs="0"/>
 <x:element name="b" type="x:int" minOccurs="0"/></x:sequence></x:complexType>
<x:complexType name="Plain"><x:complexContent{mixed}><x:restriction base="t:Base"><x:sequence>
 <x:element name="a" type="x:string"/></x:sequence></x:restriction></x:complexContent></x:complexType>
<x:complexType name="More"><x:complexContent><x:extension base="t:Plain"><x:sequence>
 <x:element name="c" type="x:string" minOccurs="0"/></x:sequence></x:extension></x:complexContent></x:complexType>
<x:complexType name="Same" mixed="true"><x:complexContent><x:restriction base="t:Base"><x:sequence>
 <x:element name="a" type="x:string"/></x:sequence></x:restriction></x:complexContent></x:complexType>
<x:element name="base" type="t:Base"/><x:element name="plain" type="t:Plain"/><x:element name="more" type="t:More"/>
<x:element name="same" type="t:Same"/>"""


@pytest.mark.obligation("GEN7")
@pytest.mark.parametrize("mixed", ["", ' mixed="false"'])
def test_a_restriction_of_mixed_content_to_elements(module: Any, mixed: str) -> None:
    types = module(NOTE.format(mixed=mixed))
    plain = xmlbind.find_element("{urn:t}plain", types.__name__.partition(".")[0])
    assert plain is not None
    assert xmlbind.decode(b'<plain xmlns="urn:t"><a>x</a></plain>', plain, strict=True) == plain(a="x")  # type: ignore[call-arg]
    more = xmlbind.decode(b'<more xmlns="urn:t"><a>x</a><c>y</c></more>', strict=True)
    assert (more.a, more.c, more.content) == ("x", "y", [])
    assert xmlbind.decode(xmlbind.encode(more), strict=True) == more
    same = xmlbind.decode(b'<same xmlns="urn:t">see <a>x</a></same>', strict=True)
    assert same.content[0] == "see "
    warnings: list[xmlbind.XmlWarning] = []
    odd = xmlbind.decode(b'<plain xmlns="urn:t">see <a>x</a></plain>', warnings=warnings)
    assert [warning.rule for warning in warnings] == ["stray-text"]
    assert b">see<" in xmlbind.encode(odd)
    more.content.append("text")
    with pytest.raises(EncodeError, match="no text between") as caught:
        xmlbind.encode(more)
    assert caught.value.path.endswith("content")


@pytest.mark.obligation("GEN7")
def test_an_extension_of_any_type_has_any_content(module: Any) -> None:
    kind = "<x:complexType><x:complexContent><x:extension base='x:anyType'>{}</x:extension></x:complexContent>"
    kind += "</x:complexType></x:element>"
    lang = kind.format("<x:attribute name='lang'/>")
    types = module(f"<x:element name='plain'>{kind.format('')}<x:element name='note'>{lang}")
    text = b'<note xmlns="urn:t" lang="en" more="1">see <b xmlns="urn:o">here</b>.</note>'
    found = xmlbind.decode(text, strict=True)
    assert (found.lang, found.content[0], found.content[2]) == ("en", "see ", ".")
    assert xmlbind.decode(xmlbind.encode(found)) == found
    made = types.Note(lang="en", content=["see ", xmlbind.RawXml(b'<b xmlns="urn:o">here</b>')])
    assert "".join(xmlbind.to_element(made).itertext()) == "see here"
    assert xmlbind.decode(made.to_xml(), strict=True) == made == types.Note.from_dict(made.to_dict())
    assert xmlbind.decode(b'<plain xmlns="urn:t">x</plain>', strict=True).content == ["x"]
