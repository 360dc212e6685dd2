"""classes: one for each complex type and each global element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtosi_codegen import Result


def test_named_anonymous_and_element_classes(build: Callable[..., Result], xsd: Any) -> None:
    result = build(
        {
            "a.xsd": xsd(
                '<x:complexType name="InventoryDataType"><x:sequence><x:element name="mdList"><x:complexType>'
                '<x:sequence><x:element name="md"><x:complexType/></x:element></x:sequence></x:complexType></x:element>'
                '</x:sequence></x:complexType><x:element name="inventory" type="t:InventoryDataType"/>'
                '<x:element name="note" type="x:string"/>'
            )
        }
    )
    kinds = {cls.name: cls.kind for cls in result.model.classes}
    assert kinds == {
        "InventoryDataType": "type",
        "InventoryDataTypeMdList": "anonymous",
        "InventoryDataTypeMdListMd": "anonymous",
        "Inventory": "element",
        "Note": "element",
    }
