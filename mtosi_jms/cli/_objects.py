"""Objects of the stubs out of assignments, and objects as plain values for JSON. A field has its XML or Python name."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from mtosi_jms.cli.arguments import nearest
from mtosi_jms.cli.calls import fill_shape
from mtosi_jms.errors import ConfigError, EncodeError
from mtosi_jms.xmlbind import ClassTable, DistinguishedNameMixin, Field, Nil, RawXml, XmlObject


def fill(cls: type[XmlObject], assignments: Iterable[str]) -> XmlObject:
    made: XmlObject = fill_shape(_Class(cls.__xml__), assignments)
    return made


class _Class:
    def __init__(self, table: ClassTable) -> None:
        self._table = table

    def slot(self, name: str, path: str) -> _Slot:
        for item in self._table.fields:
            if name in (item.local, item.name) and (item.local or item.kind == "text"):
                return _Slot(item)
        known = [one.local or one.name for one in self._table.fields if one.local or one.kind == "text"]
        raise ConfigError(f"{path!r}: no field {name!r}; {nearest(name, known)}")

    def make(self, values: Mapping[str, list[Any]], path: str) -> Any:
        table = self._table
        try:
            return table.cls(**{key: held if table.field(key).many else held[0] for key, held in values.items()})
        except TypeError:
            missing = [item.local for item in table.fields if item.min and item.name not in values and item.local]
            raise ConfigError(f"{path or table.element}: {', '.join(missing) or 'something'} is needed") from None


class _Slot:
    def __init__(self, wanted: Field) -> None:
        self._field = wanted
        self.key = wanted.name
        self.local = wanted.local
        self.many = wanted.many

    def shape(self) -> _Class | None:
        wanted = self._field
        is_object = wanted.kind == "element" and wanted.simple() is None and isinstance(wanted.type, str)
        return _Class(wanted.table()) if is_object else None

    def value(self, text: str, path: str) -> Any:
        simple = self._field.simple()
        try:
            if simple is not None:
                value, problem = simple.lenient(text)
                if problem is not None:
                    raise ConfigError(f"{path!r}: {problem}")
                return value
            if self.shape() is not None:
                cls = self._field.table().cls
                if issubclass(cls, DistinguishedNameMixin):
                    return cls.parse(text)
                own = next((item for item in cls.__xml__.fields if item.kind == "text"), None)
                if own is not None:
                    return cls(**{own.name: _Slot(own).value(text, path)})
        except ConfigError:
            raise
        except (ValueError, EncodeError) as error:
            raise ConfigError(f"{path!r}: {text!r} does not fit: {error}") from None
        raise ConfigError(f"{path!r}: no value can be given here; name a field inside it, or take a file with --body")


def plain(value: Any) -> Any:
    """A value as JSON has it: fields by their Python names, names and XML of unknown classes as text, nil as null."""
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
    return value if isinstance(value, str | bool | int | float) else str(value)


def _fields(value: XmlObject) -> dict[str, Any]:
    found = {
        item.name: plain(held)
        for item in dataclasses.fields(value)
        if item.name != "extras" and (held := getattr(value, item.name)) not in (None, [])
    }
    if value.extras is not None and (unknown := value.unknown_elements()):
        found["unknown_elements"] = plain(unknown)
    return found
