"""Documents of managed elements that are read as unread objects."""

from __future__ import annotations

import datetime as dt
import random
from types import MethodType
from typing import Any

import pytest

from mtosi_jms import xmlbind
from mtosi_jms.stubs.fmw.gen import AliasNameListType, AliasNameListTypeAlias
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateListType, LayerRateType
from mtosi_jms.stubs.nrf.me import CommunicationStateType, ManagedElementListType, ManagedElementType, Me
from mtosi_jms.xmlbind import XmlObject, scan, scanner
from mtosi_jms.xmlbind.scanner import Scanner

SLOT: Any = XmlObject.__dict__["extras"]
LABELS = (None, "", "plain", "a & b <c> \"d\" 'e'", "Århus", "Gdańsk & 中 \U0001f600", "x" * 300, "]] > />")


def is_unread(obj: Any) -> bool:
    return type(SLOT.__get__(obj)) is MethodType


def element(number: int) -> Me:
    chance = random.Random(number)

    def some(*values: Any) -> Any:
        return chance.choice((None, *values))

    aliases = [AliasNameListTypeAlias(alias_name=f"n{index}", alias_value="a & b") for index in range(number % 6)]
    rates = [LayerRateType(value=chance.choice(tuple(LayerRateEnumType))) for _ in range(chance.randrange(6))]
    return Me(
        name=some(name("/".join(f"ME={part}" for part in range(1 + number % 5)))),
        user_label=chance.choice(LABELS),
        owner=chance.choice(LABELS),
        alias_name_list=some(AliasNameListType(alias=aliases)),
        resource_state=some(*(ResourceStateType(value=value) for value in ResourceStateEnumType)),
        manufacture_date=some(dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        is_in_sync_state=some(True, False),
        supported_connection_layer_rate_list=some(LayerRateListType(layer_rate=rates)),
        communication_state=some(*CommunicationStateType),
        asap_ref=some(name("AP=1")),
    )


def document(count: int = 40, first: int = 0) -> bytes:
    elements: list[ManagedElementType] = [element(number) for number in range(first, first + count)]
    data = xmlbind.encode(GetAllManagedElementsResponse(me_list=ManagedElementListType(me=elements)))
    return data.replace(b"<coi:owner/>", b"<coi:owner></coi:owner>")


def from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have unread objects even of small documents, from the first on."""
    monkeypatch.setattr(scan, "SMALLEST", 0)
    monkeypatch.setattr(scan, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(scan, "scanners", scan.Recipes(Scanner))
    monkeypatch.setattr(scanner, "LARGE", 0)
    monkeypatch.setattr(scanner, "WORTH_SHELLS", 0)
