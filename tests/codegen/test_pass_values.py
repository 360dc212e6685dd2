"""values: simple types."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from mtosi_codegen import Result
from mtosi_codegen.model import Builtin, EnumValue, FacetValue, ListValue, UnionValue
from mtosi_codegen.passes.values import builtin_of, is_text


def _value(build: Callable[..., Result], xsd: Any, body: str, more: str = "") -> Any:
    result = build(
        {"a.xsd": xsd(f'<x:simpleType name="S">{body}</x:simpleType>{more}<x:element name="e" type="t:S"/>')}
    )
    (cls,) = result.model.classes
    return cls.fields[0].type


def test_a_restriction_without_facets_is_its_base(build: Callable[..., Result], xsd: Any) -> None:
    assert _value(build, xsd, '<x:restriction base="x:date"/>') == Builtin("date")


def test_facets_of_several_steps_add_up(build: Callable[..., Result], xsd: Any) -> None:
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
def test_white_space(build: Callable[..., Result], xsd: Any, mode: str, name: str) -> None:
    body = f'<x:restriction base="x:string"><x:whiteSpace value="{mode}"/></x:restriction>'
    assert _value(build, xsd, body) == Builtin(name)


def test_enumerations_of_texts_are_classes_those_of_numbers_are_facets(build: Callable[..., Result], xsd: Any) -> None:
    text = _value(build, xsd, '<x:restriction base="x:anyURI"><x:enumeration value="u"/></x:restriction>')
    number = _value(build, xsd, '<x:restriction base="x:int"><x:enumeration value="1"/></x:restriction>')
    assert isinstance(text, EnumValue)
    assert number == FacetValue(Builtin("int"), (("values", ("1",)),))


def test_a_restricted_enumeration_is_an_enumeration_of_its_own(build: Callable[..., Result], xsd: Any) -> None:
    value = _value(
        build,
        xsd,
        '<x:restriction base="t:B"><x:enumeration value="a"/></x:restriction>',
        '<x:simpleType name="B"><x:restriction base="x:string"><x:enumeration value="a"/><x:enumeration value="b"/>'
        "</x:restriction></x:simpleType>",
    )
    assert isinstance(value, EnumValue)
    assert (value.enum.name, [text for text, _ in value.enum.values]) == ("S", ["a"])


def test_lists_and_unions(build: Callable[..., Result], xsd: Any) -> None:
    inline = '<x:simpleType><x:restriction base="x:int"/></x:simpleType>'
    assert _value(build, xsd, f"<x:list>{inline}</x:list>") == ListValue(Builtin("int"))
    union = _value(build, xsd, f'<x:union memberTypes="x:string x:string">{inline}</x:union>')
    assert union == UnionValue((Builtin("string"), Builtin("int")))
    assert not is_text(union)
    assert builtin_of(union) == ""


def test_types_defined_by_each_other(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd(
                '<x:simpleType name="A"><x:restriction base="t:B"/></x:simpleType>'
                '<x:simpleType name="B"><x:restriction base="t:A"/></x:simpleType>'
            )
        }
    )
    assert {finding.rule for finding in result.findings} == {"cycle"}


def test_unions_that_multiply_are_flat(build: Any, xsd: Any) -> None:
    body = "".join(
        f'<x:simpleType name="U{n}"><x:union memberTypes="t:U{n + 1} t:V{n + 1}"/></x:simpleType>'
        f'<x:simpleType name="V{n}"><x:union memberTypes="t:V{n + 1} t:U{n + 1}"/></x:simpleType>'
        for n in range(40)
    )
    body += '<x:simpleType name="U40"><x:restriction base="x:int"/></x:simpleType>'
    body += '<x:simpleType name="V40"><x:restriction base="x:date"/></x:simpleType>'
    result = build({"a.xsd": xsd(body + '<x:element name="e" type="t:U0"/>')})
    (field,) = result.model.classes[0].fields
    assert field.type == UnionValue((Builtin("int"), Builtin("date")))
    assert result.findings == ()


def test_a_list_of_lists_is_reported(build: Any, xsd: Any) -> None:
    body = '<x:simpleType name="L0"><x:list itemType="x:int"/></x:simpleType>\n'
    body += "\n".join(
        f'<x:simpleType name="L{n + 1}"><x:list><x:simpleType><x:union memberTypes="t:L{n} x:int"/></x:simpleType>'
        f"</x:list></x:simpleType>"
        for n in range(30)
    )
    result = build({"a.xsd": xsd(body + '<x:element name="e" type="t:L30"/>')})
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
    base: str, facet: str, text: str, build: Callable[..., Result], xsd: Any, package: Any
) -> None:
    restricted = f'<x:restriction base="x:{base}"><x:{facet} value="{text}"/></x:restriction>'
    schema = xsd(f'<x:simpleType name="S">{restricted}</x:simpleType><x:element name="e" type="t:S"/>')
    result = build({"a.xsd": schema})
    assert [(finding.rule, finding.line) for finding in result.findings] == [("xsd-unsupported", 3)]
    assert repr(text) in result.findings[0].message
    assert importlib.import_module(f"{package(result)}.urn_t.types").E


def test_bounds_without_end(build: Callable[..., Result], xsd: Any) -> None:
    facets = '<x:minInclusive value="-INF"/><x:maxInclusive value=" INF "/>'
    schema = xsd(f'<x:simpleType name="S"><x:restriction base="x:double">{facets}</x:restriction></x:simpleType>')
    assert build({"a.xsd": schema}).findings == ()
