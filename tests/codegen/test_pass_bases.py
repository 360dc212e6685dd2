"""bases: what derives from what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_codegen import Result


def _classes(result: Result) -> dict[str, Any]:
    return {cls.name: cls for cls in result.model.classes}


def test_elements_derive_from_their_type(build: Callable[..., Result], xsd: Any) -> None:
    classes = _classes(
        build(
            {
                "a.xsd": xsd(
                    '<x:complexType name="T" abstract="true"/><x:element name="e" type="t:T"/>'
                    '<x:element name="anything"/><x:element name="h" type="t:T"/>'
                    '<x:element name="member" substitutionGroup="t:h"/>'
                )
            }
        )
    )
    assert classes["E"].base is classes["T"]
    assert classes["E"].abstract
    assert classes["Member"].base is classes["T"]
    assert classes["Member"].substitutes is classes["H"]
    assert classes["Anything"].mixed


def test_a_member_without_type_is_of_its_heads_type(build: Callable[..., Result], xsd: Any) -> None:
    classes = _classes(
        build(
            {
                "a.xsd": xsd(
                    '<x:element name="head" abstract="true"><x:complexType><x:sequence>'
                    '</x:sequence></x:complexType></x:element><x:element name="member" substitutionGroup="t:head"/>'
                    '<x:element name="size" type="x:int"/><x:element name="length" substitutionGroup="t:size"/>'
                )
            }
        )
    )
    assert classes["Member"].base is classes["Head"]
    assert not classes["Member"].abstract
    assert [field.name for field in classes["Length"].fields] == ["value"]


def test_a_circle_of_bases_is_cut(build: Callable[..., Result], xsd: Any) -> None:
    def derived(name: str, base: str) -> str:
        return (
            f'<x:complexType name="{name}"><x:complexContent><x:extension base="t:{base}"/></x:complexContent>'
            "</x:complexType>"
        )

    result = build({"a.xsd": xsd(derived("A", "B") + derived("B", "C") + derived("C", "A"))})
    assert {finding.rule for finding in result.findings} == {"cycle"}
    assert sum(cls.base is None for cls in result.model.classes) == 1


def test_an_element_that_substitutes_for_itself(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {"a.xsd": xsd('<x:element name="a" substitutionGroup="t:b"/><x:element name="b" substitutionGroup="t:a"/>')}
    )
    assert {cls.name for cls in result.model.classes} == {"A", "B"}
    for path, text in result.files.items():
        compile(text, path, "exec")


@pytest.mark.parametrize("order", [1, -1])
def test_a_long_chain_of_base_types_is_cut_with_findings(build: Callable[..., Result], xsd: Any, order: int) -> None:
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
    result = build({"a.xsd": xsd("\n".join(types[::order]))})
    lines = sorted(3 + (number if order == 1 else 349 - number) for number in (101, 202, 303))
    assert [(finding.rule, finding.file, finding.line) for finding in result.findings] == [
        ("too-large", "a.xsd", line) for line in lines
    ]
    assert result.failed
    classes = {cls.xml.local: cls for cls in result.model.classes}
    assert [len(classes[name].all_fields()) for name in ("T100", "T101", "T349")] == [101, 1, 47]


def test_a_long_chain_of_simple_types_is_cut_with_a_finding(build: Callable[..., Result], xsd: Any) -> None:
    body = "\n".join(f'<x:simpleType name="S{n}"><x:restriction base="t:S{n + 1}"/></x:simpleType>' for n in range(400))
    body += '<x:simpleType name="S400"><x:restriction base="x:string"/></x:simpleType>'
    result = build({"a.xsd": xsd(body + '<x:element name="e" type="t:S0"/>')})
    assert {(finding.rule, finding.file) for finding in result.findings} == {("too-large", "a.xsd")}
    assert result.findings[0].line == 3 + 50
    assert "urn_t/types.py" in result.files
