"""substitution: heads and members, and simple_elements: references to elements of simple type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtosi_codegen import Result
from mtosi_codegen.model import Builtin, ObjectValue


def test_members_of_members_count_abstract_ones_do_not(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd(
                '<x:complexType name="T"/><x:element name="head" type="t:T"/>'
                '<x:element name="middle" type="t:T" substitutionGroup="t:head" abstract="true"/>'
                '<x:element name="leaf" type="t:T" substitutionGroup="t:middle"/>'
                '<x:complexType name="Use"><x:sequence><x:element ref="t:head"/><x:element ref="t:leaf"/></x:sequence>'
                "</x:complexType>"
            )
        }
    )
    use = next(cls for cls in result.model.classes if cls.name == "Use")
    assert [[member.name for member in field.members] for field in use.fields] == [["Leaf"], []]
    assert [field.head for field in use.fields] == [True, False]


def test_a_simple_element_is_its_value_unless_it_is_a_head(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd(
                '<x:element name="plain" type="x:int"/><x:element name="head" type="x:int"/>'
                '<x:element name="member" type="x:int" substitutionGroup="t:head"/>'
                '<x:complexType name="Use"><x:sequence><x:element ref="t:plain"/><x:element ref="t:head"/></x:sequence>'
                "</x:complexType>"
            )
        }
    )
    use = next(cls for cls in result.model.classes if cls.name == "Use")
    assert use.fields[0].type == Builtin("int")
    assert isinstance(use.fields[1].type, ObjectValue)


def test_a_head_that_nothing_defines(build: Callable[..., Result], xsd: Any) -> None:
    result = build({"a.xsd": xsd('<x:element name="e" type="x:int" substitutionGroup="t:no"/>')})
    assert [finding.rule for finding in result.findings] == ["element-unresolved"]
