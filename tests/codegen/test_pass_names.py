"""names: stable, told apart without counters."""

from __future__ import annotations

import importlib
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


def test_no_class_takes_a_name_that_the_module_uses(build: Callable[..., Result], xsd: Any, package: Any) -> None:
    pairs = ["Str", "str", "Dataclass", "dataclass", "Field", "field", "List", "list"]
    result = build(
        {"a.xsd": xsd("".join(f'<x:element name="{name}" type="t:{name}"/>{_type(name)}' for name in pairs))}
    )
    names = _names(result)
    assert {names[f"type {name}"] for name in pairs} >= {"Str", "Dataclass", "Field", "List"}
    assert not {"str", "dataclass", "field", "list"} & set(names.values())
    module = importlib.import_module(f"{package(result)}.urn_t.types")
    assert [getattr(module, names[f"type {name}"])(e=1).e for name in pairs] == [1] * len(pairs)


def test_enumeration_values_whose_names_are_all_taken(build: Callable[..., Result], xsd: Any) -> None:
    values = ["a-b", "a_b", "a_b_", "a_x2d_b", "a_x2d_b_", "+1", "-1", "1"]
    literals = "".join(f'<x:enumeration value="{value}"/>' for value in values)
    schema = xsd(f'<x:simpleType name="E"><x:restriction base="x:string">{literals}</x:restriction></x:simpleType>')
    (enum,) = build({"a.xsd": schema}).model.enums
    assert len(set(enum.members.values())) == len(values)
    assert [enum.members[value] for value in values[1:5]] == values[1:5]
    assert enum.members["1"] == "n1"
