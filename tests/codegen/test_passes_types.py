"""The passes over types: what derives from what, content models as fields, groups, simple types."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from mtosi_codegen import Result
from mtosi_codegen.model import Builtin, EnumValue, FacetValue, ListValue, ModelItem, UnionValue
from mtosi_codegen.passes import groups

from .conftest import xsd


def _classes(result: Result) -> dict[str, Any]:
    return {cls.name: cls for cls in result.model.classes}


def test_a_member_without_type_is_of_its_heads_type(build: Callable[..., Result]) -> None:
    classes = _classes(
        build(
            '<x:element name="head" abstract="true"><x:complexType><x:sequence>'
            '</x:sequence></x:complexType></x:element><x:element name="member" substitutionGroup="t:head"/>'
            '<x:element name="size" type="x:int"/><x:element name="length" substitutionGroup="t:size"/>'
        )
    )
    assert classes["Member"].base is classes["Head"]
    assert not classes["Member"].abstract
    assert [field.name for field in classes["Length"].fields] == ["value"]


def test_a_circle_of_bases_is_cut(build: Callable[..., Result]) -> None:
    def derived(name: str, base: str) -> str:
        return (
            f'<x:complexType name="{name}"><x:complexContent><x:extension base="t:{base}"/></x:complexContent>'
            "</x:complexType>"
        )

    result = build(derived("A", "B") + derived("B", "C") + derived("C", "A"))
    assert {finding.rule for finding in result.findings} == {"cycle"}
    assert sum(cls.base is None for cls in result.model.classes) == 1


def test_an_element_that_substitutes_for_itself(build: Callable[..., Result]) -> None:
    result = build('<x:element name="a" substitutionGroup="t:b"/><x:element name="b" substitutionGroup="t:a"/>')
    assert {cls.name for cls in result.model.classes} == {"A", "B"}
    for path, text in result.files.items():
        compile(text, path, "exec")


@pytest.mark.parametrize("order", [1, -1])
def test_a_long_chain_of_base_types_is_cut_with_findings(build: Callable[..., Result], order: int) -> None:
    def derived(number: int) -> str:
        if not number:
            return (
                '<x:complexType name="T0"><x:sequence><x:element name="e0" type="x:int"/></x:sequence></x:complexType>'
            )
        return (
            f'<x:complexType name="T{number}"><x:complexContent><x:extension base="t:T{number - 1}"><x:sequence>'
            f'<x:element name="e{number}" type="x:int"/></x:sequence></x:extension></x:complexContent></x:complexType>'
        )

    types = [derived(number) for number in range(350)]
    result = build("\n".join(types[::order]))
    lines = sorted(3 + (number if order == 1 else 349 - number) for number in (101, 202, 303))
    assert [(finding.rule, finding.file, finding.line) for finding in result.findings] == [
        ("too-large", "a.xsd", line) for line in lines
    ]
    assert result.failed
    classes = {cls.xml.local: cls for cls in result.model.classes}
    assert [len(classes[name].all_fields()) for name in ("T100", "T101", "T349")] == [101, 1, 47]


def test_a_long_chain_of_simple_types_is_cut_with_a_finding(build: Callable[..., Result]) -> None:
    body = "\n".join(f'<x:simpleType name="S{n}"><x:restriction base="t:S{n + 1}"/></x:simpleType>' for n in range(400))
    body += '<x:simpleType name="S400"><x:restriction base="x:string"/></x:simpleType>'
    result = build(body + '<x:element name="e" type="t:S0"/>')
    assert {(finding.rule, finding.file) for finding in result.findings} == {("too-large", "a.xsd")}
    assert result.findings[0].line == 3 + 50
    assert "urn_t/types.py" in result.files


@pytest.mark.parametrize(
    ("least", "most", "found"),
    [
        ("0", "unbounded", (0, None)),
        ("+2", "0999999999", (2, 999_999_999)),
        ("9" * 4000, "unbounded", (999_999_999, None)),
        ("0", "9" * 5000, (0, None)),
        ("1", "1000000000", (1, None)),
        ("-1", "1", (1, 1)),
        ("x", "1", (1, 1)),
    ],
)
def test_how_often_is_a_number_within_reason(build: Any, least: str, most: str, found: tuple[int, int]) -> None:
    element = f'<x:element name="a" type="x:int" minOccurs="{least}" maxOccurs="{most}"/>'
    result = build(f'<x:complexType name="T"><x:sequence>{element}</x:sequence></x:complexType>')
    (field,) = result.model.classes[0].fields
    assert (field.minimum, field.maximum) == found
    assert [finding.rule for finding in result.findings] == ["xsd-unsupported"] * (found == (1, 1))
    assert all(len(finding.message) < 200 for finding in result.findings)


def test_the_deepest_content_model_is_still_python(build: Any) -> None:
    content = '<x:element name="a" type="x:int"/>'
    for level in range(60):
        kind = ("choice", "sequence")[level % 2]
        content = f'<x:{kind} maxOccurs="2"><x:element name="e{level}" type="x:int"/>{content}</x:{kind}>'
    result = build(f'<x:complexType name="T">{content}</x:complexType>')
    assert result.findings == ()
    assert [compile(text, path, "exec").co_filename for path, text in result.files.items()] == list(result.files)


def _restricted(build: Callable[..., Result], xsd: Any, base: str, restriction: str) -> Any:
    result = build(
        f'<x:complexType name="B"><x:sequence>{base}</x:sequence></x:complexType>'
        f'<x:complexType name="R"><x:complexContent><x:restriction base="t:B"><x:sequence>{restriction}'
        "</x:sequence></x:restriction></x:complexContent></x:complexType>"
        '<x:simpleType name="E"><x:restriction base="x:string"><x:enumeration value="v"/></x:restriction>'
        "</x:simpleType>"
    )
    assert result.findings == ()
    return next(cls for cls in result.model.classes if cls.name == "R")


OPTIONAL = '<x:element name="a" type="x:string" minOccurs="0"/>'


@pytest.mark.parametrize(
    ("restriction", "own"),
    [
        (OPTIONAL, []),
        ('<x:element name="a" type="x:string"/>', ["a"]),
        ('<x:element name="a" type="t:E" minOccurs="0"/>', ["a"]),
        ("", []),
    ],
)
def test_a_field_is_overridden_only_where_it_is_narrower(
    build: Callable[..., Result], restriction: str, own: list[str]
) -> None:
    cls = _restricted(build, xsd, OPTIONAL, restriction)
    assert [field.name for field in cls.fields] == own
    assert [field.name for field in cls.all_fields()] == ["a"]
    assert cls.restricts


def test_a_field_that_is_left_out_is_left_out_of_the_model(build: Callable[..., Result]) -> None:
    second = '<x:element name="b" type="x:string" minOccurs="0"/>'
    cls = _restricted(build, xsd, OPTIONAL + second, second)
    assert [item.field.name for item in cls.model.items if isinstance(item, ModelItem)] == ["b"]
    assert _restricted(build, xsd, OPTIONAL + second, OPTIONAL + second).model is None


def test_a_list_stays_a_list(build: Callable[..., Result]) -> None:
    cls = _restricted(
        build, xsd, '<x:element name="a" type="x:string" maxOccurs="9"/>', '<x:element name="a" type="x:string"/>'
    )
    assert cls.fields == []
    (item,) = cls.model.items
    assert (item.minimum, item.maximum) == (1, 1)


def test_groups_inside_groups_and_types_inside_groups(build: Callable[..., Result]) -> None:
    result = build(
        '<x:group name="Outer"><x:sequence><x:group ref="t:Inner" minOccurs="0"/></x:sequence></x:group>'
        '<x:group name="Inner"><x:choice><x:element name="a" type="x:int"/><x:element name="b"><x:complexType/>'
        "</x:element></x:choice></x:group>"
        '<x:complexType name="One"><x:group ref="t:Outer"/></x:complexType>'
        '<x:complexType name="Two"><x:group ref="t:Inner"/></x:complexType>'
    )
    classes = {cls.name: cls for cls in result.model.classes}
    assert sorted(classes) == ["InnerB", "One", "Two"]
    assert [(field.name, field.minimum) for field in classes["One"].fields] == [("a", 0), ("b", 0)]
    model = classes["One"].model
    assert model is not None
    assert (model.kind, model.minimum) == ("choice", 0)


def test_a_group_that_contains_itself(build: Callable[..., Result]) -> None:
    result = build(
        '<x:group name="G"><x:sequence><x:element name="a" type="x:int"/><x:group ref="t:G"/></x:sequence>'
        '</x:group><x:attributeGroup name="A"><x:attributeGroup ref="t:A"/></x:attributeGroup>'
        '<x:complexType name="T"><x:group ref="t:G"/><x:attributeGroup ref="t:A"/></x:complexType>'
    )
    assert [finding.rule for finding in result.findings] == ["cycle", "cycle"]
    assert [field.name for field in result.model.classes[0].fields] == ["a"]


def test_an_attribute_that_comes_twice_counts_once(build: Callable[..., Result]) -> None:
    result = build(
        '<x:attributeGroup name="A"><x:attribute name="n" type="x:int"/></x:attributeGroup>'
        '<x:complexType name="T"><x:attributeGroup ref="t:A"/><x:attribute name="n" type="x:int"/>'
        "</x:complexType>"
    )
    assert [field.name for field in result.model.classes[0].fields] == ["n"]


def _laughs(levels: int) -> str:
    """Groups that each refer to the next one twice."""
    chain = "".join(
        f'<x:group name="G{n}"><x:sequence><x:group ref="t:G{n + 1}"/><x:group ref="t:G{n + 1}"/></x:sequence>'
        f"</x:group>\n"
        for n in range(levels)
    )
    return f'{chain}<x:group name="G{levels}"><x:sequence><x:element name="a" type="x:int"/></x:sequence></x:group>\n'


@pytest.mark.parametrize(("levels", "bound"), [(40, "20000 particles"), (16, "20000 particles"), (400, "64 levels")])
def test_groups_that_multiply_are_bounded(build: Callable[..., Result], levels: int, bound: str) -> None:
    body = _laughs(levels) + (
        '<x:complexType name="T"><x:sequence><x:group ref="t:G0"/></x:sequence></x:complexType>\n'
        '<x:element name="e"><x:complexType><x:group ref="t:G0"/></x:complexType></x:element>\n'
        '<x:complexType name="Good"><x:sequence><x:element name="b" type="x:int"/></x:sequence></x:complexType>'
    )
    result = build(body)
    assert [(finding.rule, finding.file, finding.line) for finding in result.findings] == [
        ("too-large", "a.xsd", 4 + levels),
        ("too-large", "a.xsd", 5 + levels),
    ]
    assert f"type {{urn:t}}T has more than {bound}" in result.findings[0].message
    assert result.failed
    assert [field.name for cls in result.model.classes for field in cls.fields] == ["b"]


def test_all_types_together_are_bounded(build: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MAX_ALL_PARTICLES", 100)
    body = _laughs(4) + "".join(f'<x:complexType name="T{n}"><x:group ref="t:G0"/></x:complexType>' for n in range(3))
    result = build(body)
    assert [finding.rule for finding in result.findings] == ["too-large", "too-large"]
    assert [len(cls.fields) for cls in result.model.classes] == [1, 0, 0]


@pytest.mark.parametrize("times", [1, 2])
def test_attribute_groups_that_multiply_are_read_once(build: Callable[..., Result], times: int) -> None:
    levels = 1500
    body = "".join(
        f'<x:attributeGroup name="A{n}"><x:attribute name="n{n % 3}" type="x:int"/>'
        + f'<x:attributeGroup ref="t:A{n + 1}"/>' * times
        + "</x:attributeGroup>"
        for n in range(levels)
    )
    body += f'<x:attributeGroup name="A{levels}"><x:attribute name="last" type="x:int"/></x:attributeGroup>'
    result = build(body + '<x:complexType name="T"><x:attributeGroup ref="t:A0"/></x:complexType>')
    assert result.findings == ()
    assert [field.name for field in result.model.classes[0].fields] == ["n0", "n1", "n2", "last"]


def _value(build: Callable[..., Result], xsd: Any, body: str, more: str = "") -> Any:
    result = build(f'<x:simpleType name="S">{body}</x:simpleType>{more}<x:element name="e" type="t:S"/>')
    (cls,) = result.model.classes
    return cls.fields[0].type


def test_facets_of_several_steps_add_up(build: Callable[..., Result]) -> None:
    value = _value(
        build,
        xsd,
        '<x:restriction base="t:P"><x:pattern value="a.*"/><x:maxLength value="3"/></x:restriction>',
        '<x:simpleType name="P"><x:restriction base="x:string"><x:pattern value=".*b"/><x:pattern value="c"/>'
        '<x:maxLength value="9"/></x:restriction></x:simpleType>',
    )
    assert isinstance(value, FacetValue)
    facets = dict(value.facets)
    assert facets["max_length"] == ("3",)
    assert facets["patterns"][1] == "a.*" or len(facets["patterns"]) == 2
    assert "|" in facets["patterns"][0]


@pytest.mark.parametrize(
    ("mode", "name"), [("collapse", "token"), ("replace", "normalizedString"), ("preserve", "string")]
)
def test_white_space(build: Callable[..., Result], mode: str, name: str) -> None:
    body = f'<x:restriction base="x:string"><x:whiteSpace value="{mode}"/></x:restriction>'
    assert _value(build, xsd, body) == Builtin(name)


def test_enumerations_of_texts_are_classes_those_of_numbers_are_facets(build: Callable[..., Result]) -> None:
    text = _value(build, xsd, '<x:restriction base="x:anyURI"><x:enumeration value="u"/></x:restriction>')
    number = _value(build, xsd, '<x:restriction base="x:int"><x:enumeration value="1"/></x:restriction>')
    assert isinstance(text, EnumValue)
    assert number == FacetValue(Builtin("int"), (("values", ("1",)),))


def test_a_restricted_enumeration_is_an_enumeration_of_its_own(build: Callable[..., Result]) -> None:
    value = _value(
        build,
        xsd,
        '<x:restriction base="t:B"><x:enumeration value="a"/></x:restriction>',
        '<x:simpleType name="B"><x:restriction base="x:string"><x:enumeration value="a"/><x:enumeration value="b"/>'
        "</x:restriction></x:simpleType>",
    )
    assert isinstance(value, EnumValue)
    assert (value.enum.name, [text for text, _ in value.enum.values]) == ("S", ["a"])


def test_types_defined_by_each_other(build: Callable[..., Result]) -> None:
    result = build(
        '<x:simpleType name="A"><x:restriction base="t:B"/></x:simpleType>'
        '<x:simpleType name="B"><x:restriction base="t:A"/></x:simpleType>'
    )
    assert {finding.rule for finding in result.findings} == {"cycle"}


def test_unions_that_multiply_are_flat(build: Any) -> None:
    body = "".join(
        f'<x:simpleType name="U{n}"><x:union memberTypes="t:U{n + 1} t:V{n + 1}"/></x:simpleType>'
        f'<x:simpleType name="V{n}"><x:union memberTypes="t:V{n + 1} t:U{n + 1}"/></x:simpleType>'
        for n in range(40)
    )
    body += '<x:simpleType name="U40"><x:restriction base="x:int"/></x:simpleType>'
    body += '<x:simpleType name="V40"><x:restriction base="x:date"/></x:simpleType>'
    result = build(body + '<x:element name="e" type="t:U0"/>')
    (field,) = result.model.classes[0].fields
    assert field.type == UnionValue((Builtin("int"), Builtin("date")))
    assert result.findings == ()


def test_a_list_of_lists_is_reported(build: Any) -> None:
    body = '<x:simpleType name="L0"><x:list itemType="x:int"/></x:simpleType>\n'
    body += "\n".join(
        f'<x:simpleType name="L{n + 1}"><x:list><x:simpleType><x:union memberTypes="t:L{n} x:int"/></x:simpleType>'
        f"</x:list></x:simpleType>"
        for n in range(30)
    )
    result = build(body + '<x:element name="e" type="t:L30"/>')
    assert [(finding.rule, finding.line) for finding in result.findings] == [
        ("xsd-unsupported", line) for line in range(4, 34)
    ]
    (field,) = result.model.classes[0].fields
    assert field.type == ListValue(Builtin("anySimpleType"))


@pytest.mark.parametrize(
    ("base", "facet", "text"),
    [
        ("date", "minInclusive", "bad"), ("decimal", "maxExclusive", ""), ("int", "maxInclusive", "1e3"),
        ("string", "length", "long"), ("decimal", "totalDigits", "-1"), ("dateTime", "minExclusive", "2024-01-01"),
    ],
)  # fmt: skip
def test_a_bound_that_is_no_value_is_reported_and_not_checked(
    base: str, facet: str, text: str, build: Callable[..., Result], package: Any
) -> None:
    restricted = f'<x:restriction base="x:{base}"><x:{facet} value="{text}"/></x:restriction>'
    schema = xsd(f'<x:simpleType name="S">{restricted}</x:simpleType><x:element name="e" type="t:S"/>')
    result = build(schema)
    assert [(finding.rule, finding.line) for finding in result.findings] == [("xsd-unsupported", 3)]
    assert repr(text) in result.findings[0].message
    assert importlib.import_module(f"{package(result)}.urn_t.types").E


def test_bounds_without_end(build: Callable[..., Result]) -> None:
    facets = '<x:minInclusive value="-INF"/><x:maxInclusive value=" INF "/>'
    schema = xsd(f'<x:simpleType name="S"><x:restriction base="x:double">{facets}</x:restriction></x:simpleType>')
    assert build(schema).findings == ()
