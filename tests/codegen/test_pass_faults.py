"""faults: which kinds a fault element has, and operations: which classes an operation has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_codegen import Result

CODE = '<x:element name="code" type="x:int"/>'
SEQUENCE = f'<x:complexType><x:sequence>{CODE}<x:element name="text" type="x:string"/></x:sequence></x:complexType>'
EXTENSION = (
    '<x:complexType><x:complexContent><x:extension base="t:TroubleType">'
    f"<x:sequence>{CODE}</x:sequence></x:extension></x:complexContent></x:complexType>"
)
CHOICE = "<x:complexType><x:choice>{}</x:choice></x:complexType>"


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        (CHOICE.format('<x:element ref="t:lost"/><x:element ref="t:refused"/>'), ["lost", "refused"]),
        (CHOICE.format('<x:element ref="t:lost"/>'), ["lost"]),
        (CHOICE.format('<x:element name="local" type="t:TroubleType"/>'), ["local"]),
        (
            CHOICE.format(
                '<x:element ref="t:lost"/><x:sequence><x:element name="first" type="t:TroubleType"/>'
                '<x:element name="detail" type="t:TroubleType"/></x:sequence>'
            ),
            ["first", "lost"],
        ),
        (SEQUENCE, ["askException"]),
        (EXTENSION, ["askException"]),
    ],
)
def test_kinds(
    build: Callable[..., Result], wsdl: Any, ask: dict[str, str], messages: str, content: str, kinds: list[str]
) -> None:
    start = messages.index('<x:element name="askException">') + len('<x:element name="askException">')
    end = messages.index("</x:element>", messages.index("</x:choice>"))
    result = build({"a.wsdl": wsdl("".join(ask.values())), "messages.xsd": messages[:start] + content + messages[end:]})
    assert result.findings == ()
    assert [fault.element for fault in result.model.faults] == kinds
    text = result.files["urn_m/types.py"]
    for fault in result.model.faults:
        assert f"class {fault.name}(_x.MtosiFault):" in text
        assert f'"{fault.element}": "{fault.name}"' in text


def test_an_operation_knows_its_classes(
    build: Callable[..., Result], wsdl: Any, ask: dict[str, str], messages: str
) -> None:
    result = build({"a.wsdl": wsdl("".join(ask.values())), "messages.xsd": messages})
    (operation,) = result.services[0].operations
    classes = (operation.request_class, operation.response_class, operation.fault_class)
    assert [cls.name for cls in classes if cls is not None] == ["AskRequest", "AskResponse", "AskException"]
