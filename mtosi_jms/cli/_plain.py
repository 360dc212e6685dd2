"""Objects as plain values for JSON: fields by their Python names, names as text, what is absent left out."""

from __future__ import annotations

import dataclasses
import datetime as dt
from enum import Enum
from typing import Any, Final

from mtosi_jms.xmlbind import DistinguishedNameMixin, Nil, RawXml, XmlObject

_AS_THEY_ARE: Final = (str, bool, int, float)


def plain(value: Any) -> Any:
    """A value as what JSON has; XML that no class is known for as its text, nil as null."""
    if value is None or isinstance(value, Nil):
        return None
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, DistinguishedNameMixin):
        return str(value)
    if isinstance(value, XmlObject):
        return _fields(value)
    if isinstance(value, RawXml):
        return value.xml.decode("utf-8")
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, _AS_THEY_ARE) else str(value)


def _fields(value: XmlObject) -> dict[str, Any]:
    found = {
        item.name: plain(held)
        for item in dataclasses.fields(value)
        if item.name != "extras" and (held := getattr(value, item.name)) not in (None, [])
    }
    if value.extras is not None and (unknown := value.unknown_elements()):
        found["unknown_elements"] = plain(unknown)
    return found
