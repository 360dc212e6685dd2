"""groups: references give way to what they refer to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtosi_codegen import Result


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
