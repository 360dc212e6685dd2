"""derivation: own and inherited fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_codegen import Result
from mtosi_codegen.model import ModelItem


def _restricted(build: Callable[..., Result], xsd: Any, base: str, restriction: str) -> Any:
    result = build(
        {
            "a.xsd": xsd(
                f'<x:complexType name="B"><x:sequence>{base}</x:sequence></x:complexType>'
                f'<x:complexType name="R"><x:complexContent><x:restriction base="t:B"><x:sequence>{restriction}'
                "</x:sequence></x:restriction></x:complexContent></x:complexType>"
                '<x:simpleType name="E"><x:restriction base="x:string"><x:enumeration value="v"/></x:restriction>'
                "</x:simpleType>"
            )
        }
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
    build: Callable[..., Result], xsd: Any, restriction: str, own: list[str]
) -> None:
    cls = _restricted(build, xsd, OPTIONAL, restriction)
    assert [field.name for field in cls.fields] == own
    assert [field.name for field in cls.all_fields()] == ["a"]
    assert cls.restricts


def test_a_field_that_is_left_out_is_left_out_of_the_model(build: Callable[..., Result], xsd: Any) -> None:
    second = '<x:element name="b" type="x:string" minOccurs="0"/>'
    cls = _restricted(build, xsd, OPTIONAL + second, second)
    assert [item.field.name for item in cls.model.items if isinstance(item, ModelItem)] == ["b"]
    assert _restricted(build, xsd, OPTIONAL + second, OPTIONAL + second).model is None


def test_a_list_stays_a_list(build: Callable[..., Result], xsd: Any) -> None:
    cls = _restricted(
        build, xsd, '<x:element name="a" type="x:string" maxOccurs="9"/>', '<x:element name="a" type="x:string"/>'
    )
    assert cls.fields == []
    (item,) = cls.model.items
    assert (item.minimum, item.maximum) == (1, 1)
