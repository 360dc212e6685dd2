"""prune: with chosen operations, only what they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtosi_codegen import Result


def test_what_an_operation_can_hold_stays(
    build: Callable[..., Result], wsdl: Any, ask: dict[str, str], messages: str, xsd: Any
) -> None:
    unused = (
        '<x:complexType name="Unused"><x:sequence><x:element name="c" type="t:Colour"/></x:sequence></x:complexType>'
        '<x:simpleType name="Colour"><x:restriction base="x:string"><x:enumeration value="red"/></x:restriction>'
        "</x:simpleType>"
        '<x:complexType name="Longer"><x:complexContent><x:extension base="t:AnswerType"/></x:complexContent>'
        "</x:complexType>"
    )
    files = {
        "a.wsdl": wsdl("".join(ask.values())),
        "messages.xsd": messages.replace("</x:schema>", unused + "</x:schema>"),
        "other.xsd": xsd('<x:element name="o" type="x:int"/>', "urn:o"),
    }
    everything, chosen = build(files), build(files, operations=["ask"])
    assert {module.namespace for module in everything.model.modules} == {"urn:m", "urn:o"}
    names = {cls.name for cls in chosen.model.classes}
    assert names == {
        "AskRequest", "AskResponse", "AskException", "AnswerType", "Longer", "TroubleType", "Lost", "Refused",
    }  # fmt: skip
    assert chosen.model.enums == []
    assert everything.model.enums != []
