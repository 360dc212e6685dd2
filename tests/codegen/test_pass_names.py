"""names: stable, told apart without counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtosi_codegen import Result


def _type(name: str) -> str:
    return f'<x:complexType name="{name}"><x:sequence><x:element name="e" type="x:int"/></x:sequence></x:complexType>'


def _names(result: Result) -> dict[str, str]:
    return {f"{cls.kind} {cls.xml.local}": cls.name for cls in result.model.classes}


def test_the_order_of_definitions_does_not_matter(build: Callable[..., Result], xsd: Any) -> None:
    names = ["a-b", "a.b", "a_b", "AB", "aB"]
    forward = _names(build({"a.xsd": xsd("".join(map(_type, names)))}))
    backward = _names(build({"a.xsd": xsd("".join(map(_type, reversed(names))))}))
    assert forward == backward
    assert len(set(forward.values())) == len(names)
    assert forward["type AB"] == "AB"


def test_one_more_definition_does_not_rename_the_others(build: Callable[..., Result], xsd: Any) -> None:
    before = _names(build({"a.xsd": xsd(_type("OneType") + '<x:element name="one" type="t:OneType"/>')}))
    after = _names(build({"a.xsd": xsd(_type("OneType") + _type("Zwei") + '<x:element name="one" type="t:OneType"/>')}))
    assert before.items() <= after.items()


def test_anonymous_types_give_way_to_named_ones(build: Callable[..., Result], xsd: Any) -> None:
    inline = (
        '<x:complexType name="A"><x:sequence><x:element name="b"><x:complexType/></x:element></x:sequence>'
        "</x:complexType>"
    )
    names = _names(build({"a.xsd": xsd(inline + _type("AB"))}))
    assert names["type AB"] == "AB"
    assert names["anonymous b"] == "A_B"


def test_fields_of_a_base_keep_their_names(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd(
                '<x:complexType name="Z"><x:sequence><x:element name="someName" type="x:int"/></x:sequence>'
                '</x:complexType><x:complexType name="A"><x:complexContent><x:extension base="t:Z"><x:sequence>'
                '<x:element name="some_name" type="x:int"/></x:sequence></x:extension></x:complexContent>'
                "</x:complexType>"
            )
        }
    )
    fields = {cls.name: [field.name for field in cls.all_fields()] for cls in result.model.classes}
    assert fields == {"Z": ["some_name"], "A": ["some_name", "some_x5f_name"]}
