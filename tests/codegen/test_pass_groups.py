"""groups: references give way to what they refer to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_codegen import Result
from mtosi_codegen.passes import groups


def test_groups_inside_groups_and_types_inside_groups(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd(
                '<x:group name="Outer"><x:sequence><x:group ref="t:Inner" minOccurs="0"/></x:sequence></x:group>'
                '<x:group name="Inner"><x:choice><x:element name="a" type="x:int"/><x:element name="b"><x:complexType/>'
                "</x:element></x:choice></x:group>"
                '<x:complexType name="One"><x:group ref="t:Outer"/></x:complexType>'
                '<x:complexType name="Two"><x:group ref="t:Inner"/></x:complexType>'
            )
        }
    )
    classes = {cls.name: cls for cls in result.model.classes}
    assert sorted(classes) == ["InnerB", "One", "Two"]
    assert [(field.name, field.minimum) for field in classes["One"].fields] == [("a", 0), ("b", 0)]
    model = classes["One"].model
    assert model is not None
    assert (model.kind, model.minimum) == ("choice", 0)


def test_a_group_that_contains_itself(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd(
                '<x:group name="G"><x:sequence><x:element name="a" type="x:int"/><x:group ref="t:G"/></x:sequence>'
                '</x:group><x:attributeGroup name="A"><x:attributeGroup ref="t:A"/></x:attributeGroup>'
                '<x:complexType name="T"><x:group ref="t:G"/><x:attributeGroup ref="t:A"/></x:complexType>'
            )
        }
    )
    assert [finding.rule for finding in result.findings] == ["cycle", "cycle"]
    assert [field.name for field in result.model.classes[0].fields] == ["a"]


def test_an_attribute_that_comes_twice_counts_once(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd(
                '<x:attributeGroup name="A"><x:attribute name="n" type="x:int"/></x:attributeGroup>'
                '<x:complexType name="T"><x:attributeGroup ref="t:A"/><x:attribute name="n" type="x:int"/>'
                "</x:complexType>"
            )
        }
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
def test_groups_that_multiply_are_bounded(build: Callable[..., Result], xsd: Any, levels: int, bound: str) -> None:
    body = _laughs(levels) + (
        '<x:complexType name="T"><x:sequence><x:group ref="t:G0"/></x:sequence></x:complexType>\n'
        '<x:element name="e"><x:complexType><x:group ref="t:G0"/></x:complexType></x:element>\n'
        '<x:complexType name="Good"><x:sequence><x:element name="b" type="x:int"/></x:sequence></x:complexType>'
    )
    result = build({"a.xsd": xsd(body)})
    assert [(finding.rule, finding.file, finding.line) for finding in result.findings] == [
        ("too-large", "a.xsd", 4 + levels),
        ("too-large", "a.xsd", 5 + levels),
    ]
    assert f"type {{urn:t}}T has more than {bound}" in result.findings[0].message
    assert result.failed
    assert [field.name for cls in result.model.classes for field in cls.fields] == ["b"]


def test_all_types_together_are_bounded(
    build: Callable[..., Result], xsd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MAX_ALL_PARTICLES", 100)
    body = _laughs(4) + "".join(f'<x:complexType name="T{n}"><x:group ref="t:G0"/></x:complexType>' for n in range(3))
    result = build({"a.xsd": xsd(body)})
    assert [finding.rule for finding in result.findings] == ["too-large", "too-large"]
    assert [len(cls.fields) for cls in result.model.classes] == [1, 0, 0]


@pytest.mark.parametrize("times", [1, 2])
def test_attribute_groups_that_multiply_are_read_once(build: Callable[..., Result], xsd: Any, times: int) -> None:
    levels = 1500
    body = "".join(
        f'<x:attributeGroup name="A{n}"><x:attribute name="n{n % 3}" type="x:int"/>'
        + f'<x:attributeGroup ref="t:A{n + 1}"/>' * times
        + "</x:attributeGroup>"
        for n in range(levels)
    )
    body += f'<x:attributeGroup name="A{levels}"><x:attribute name="last" type="x:int"/></x:attributeGroup>'
    result = build({"a.xsd": xsd(body + '<x:complexType name="T"><x:attributeGroup ref="t:A0"/></x:complexType>')})
    assert result.findings == ()
    assert [field.name for field in result.model.classes[0].fields] == ["n0", "n1", "n2", "last"]
