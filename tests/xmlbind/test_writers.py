"""Both cores write the same of an object: the same bytes, or the same error."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from lxml import etree

from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage, UnsubscribeResponse
from mtosi_jms.stubs.mri import rir
from mtosi_jms.stubs.mri.eir import GetEquipmentIteratorRequest
from mtosi_jms.xmlbind import NIL, Extras, RawXml, XmlObject

STRANGE: tuple[Any, ...] = (
    None,
    "",
    "plain",
    "a & b",
    "<b>",
    "]]>",
    "line\r\nline",
    "caf\u00e9 \U0001f600",
    "\ud800",
    "\x00",
    "\ufffe",
    0,
    -1,
    True,
    1.5,
    Decimal("1.0"),
    dt.date(2026, 1, 1),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    b"bytes",
    [],
    ["text"],
    [None],
    ("text",),
    {},
    NIL,
    object(),
    RawXml(b"<v xmlns='urn:v'/>"),
)


def _objects_in(value: Any) -> list[XmlObject]:
    """An object and all below it."""
    if isinstance(value, list):
        return [found for item in value for found in _objects_in(item)]
    if not isinstance(value, XmlObject):
        return []
    fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [value, *(found for item in fields for found in _objects_in(item))]


def test_elements_that_hold_nothing(both: Callable[[Any], tuple[Any, Any]]) -> None:
    for cls in (GetEquipmentIteratorRequest, UnsubscribeResponse):
        for _ in range(3):
            natively, in_python = both(cls())
            assert natively == in_python
            assert etree.fromstring(natively[1]).tag == cls.__xml__.tag


@pytest.mark.parametrize("seed", range(60))
def test_changed_at_random(both: Callable[[Any], tuple[Any, Any]], seed: int) -> None:
    chance = random.Random(seed)
    network = Network(elements=3, ports=2, channels=1, seed=seed)
    events = network.events(6, seed=seed, start=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    documents: list[Any] = [
        rir.GetInventoryResponse(inventory_data=InventoryEms(network).data(range(3))),
        *(Notify(topic="fault", message=NotifyMessage(common_event_information=[event])) for event in events),
    ]
    for document in documents:
        natively, in_python = both(document)
        assert natively == in_python
        assert natively[0] == "bytes", natively
    for document in documents:
        for _ in range(5):
            owner = chance.choice(_objects_in(document))
            field = chance.choice([field.name for field in dataclasses.fields(owner)])
            kept = getattr(owner, field)
            strange = chance.choice(STRANGE if field != "extras" else (None, Extras(attributes={"{urn:v}a": "1"})))
            setattr(owner, field, [*kept, strange] if isinstance(kept, list) and chance.random() < 0.5 else strange)
            natively, in_python = both(document)
            assert natively == in_python
            setattr(owner, field, kept)
