"""dedupe: one definition for each name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtosi_codegen import Result
from mtosi_codegen.findings import Findings
from mtosi_codegen.load import load
from mtosi_codegen.passes.dedupe import collect, fingerprint


def test_the_same_definition_twice_counts_once(tree: Any, xsd: Any) -> None:
    body = '<x:element name="e" type="x:int"/>'
    folder = tree({"a.xsd": xsd('<x:include schemaLocation="b.xsd"/>' + body), "b.xsd": xsd("\n\n" + body)})
    findings = Findings()
    schema = collect(load([folder], findings).units, findings)
    assert [str(name) for name in schema.elements] == ["{urn:t}e"]
    assert len(findings) == 0


def test_of_two_different_ones_the_first_counts(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd('<x:include schemaLocation="b.xsd"/><x:element name="e" type="x:int"/>'),
            "b.xsd": xsd('<x:element name="e" type="x:string"/>'),
        }
    )
    assert [finding.rule for finding in result.findings] == ["definition-conflict"]
    assert '_x.TEXT("value", _x.INT)' in result.files["urn_t/types.py"]


def test_fingerprints_leave_out_place_and_documentation(tree: Any, xsd: Any) -> None:
    def only(text: str) -> Any:
        return next(iter(collect(load([tree({"a.xsd": xsd(text)})], Findings()).units, Findings()).elements.values()))

    one = only('<x:element name="e" type="x:int"/>')
    same = only('\n<x:element name="e" type="x:int"><x:annotation><x:documentation>d</x:documentation></x:annotation>'
                "</x:element>")  # fmt: skip
    other = only('<x:element name="e" type="x:int" nillable="true"/>')
    assert fingerprint(one) == fingerprint(same)
    assert fingerprint(one) != fingerprint(other)


def test_definitions_too_deep_to_compare_are_a_conflict(build: Any, xsd: Any) -> None:
    def nested(levels: int) -> str:
        content = f'{"<x:sequence>" * levels}<x:element name="e" type="x:int"/>{"</x:sequence>" * levels}'
        return f'\n<x:complexType name="T">{content}</x:complexType>'

    include = '<x:include schemaLocation="b.xsd"/>'
    result = build({"a.xsd": xsd(include + nested(248)), "b.xsd": xsd(nested(247))})
    assert [(finding.rule, finding.file, finding.line) for finding in result.findings] == [
        ("too-large", "a.xsd", 4),
        ("definition-conflict", "b.xsd", 4),
    ]
