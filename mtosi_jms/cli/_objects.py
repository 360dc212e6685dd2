"""Objects out of assignments, and objects as plain values for JSON.

An assignment is `meRef=MD=EMS1/ME=NE-7`, `filter.location=Delft` or `filter.baseInstance[1]=MD=EMS1`. A step of a path
is a field's XML or Python name, with the place in a list in brackets. Without a place, a value is added to a list of
values, and the fields are those of the first object in a list of objects.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from mtosi_jms.cli._arguments import nearest
from mtosi_jms.errors import ConfigError, EncodeError
from mtosi_jms.xmlbind import ClassTable, DistinguishedNameMixin, Field, Nil, RawXml, XmlObject

_STEP: Final = re.compile(r"([^.\[\]=]+)(?:\[(\d{1,4})\])?")
_HIGHEST: Final = 999


@dataclass(slots=True)
class _Draft:
    """An object that is being filled.

    Attributes:
        table: its class.
        values: what its fields hold: drafts and values, by their place in the list; a single one has the place 0.
    """

    table: ClassTable
    values: dict[str, dict[int, Any]] = field(default_factory=dict)


def fill(cls: type[XmlObject], assignments: Iterable[str]) -> XmlObject:
    """An object with the fields that are assigned.

    Args:
        cls: its class.
        assignments: `path=value` each. A value is the text that XML would have; a name's is `MD=EMS1/ME=NE-7`.

    Raises:
        ConfigError: an unknown field, a value that does not fit its type, a field assigned twice, or a missing
            required one.
    """
    draft = _Draft(cls.__xml__)
    for text in assignments:
        path, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{text!r}: must be path=value")
        _assign(draft, path, value)
    made: XmlObject = _made(draft, "")
    return made


def _assign(draft: _Draft, path: str, value: str) -> None:
    steps = path.split(".")
    for number, step in enumerate(steps):
        found = _STEP.fullmatch(step.strip())
        if found is None:
            raise ConfigError(f"{path!r}: {step!r} is not a step of a path")
        wanted = _field(draft.table, found[1], path)
        held = draft.values.setdefault(wanted.name, {})
        place = int(found[2]) if found[2] is not None else None
        if place is not None and not wanted.many and place > 0:
            raise ConfigError(f"{path!r}: {wanted.local} is not a list")
        if number == len(steps) - 1:
            _set(held, wanted, place, value, path)
            return
        if not _is_object(wanted):
            raise ConfigError(f"{path!r}: {wanted.local} has no fields")
        draft = held.setdefault(place or 0, _Draft(wanted.table()))
        if not isinstance(draft, _Draft):
            raise ConfigError(f"{path!r}: {wanted.local} already has its value")


def _set(held: dict[int, Any], wanted: Field, place: int | None, value: str, path: str) -> None:
    if place is None:
        place = len(held) if wanted.many else 0
    if place in held:
        raise ConfigError(f"{path!r}: assigned twice")
    if place > _HIGHEST:
        raise ConfigError(f"{path!r}: a place in a list must be at most {_HIGHEST}")
    held[place] = _value(wanted, value, path)


def _field(table: ClassTable, name: str, path: str) -> Field:
    for item in table.fields:
        if name in (item.local, item.name) and (item.local or item.kind == "text"):
            return item
    known = [item.local or item.name for item in table.fields if item.local or item.kind == "text"]
    raise ConfigError(f"{path!r}: no field {name!r}; {nearest(name, known)}")


def _is_object(wanted: Field) -> bool:
    return wanted.kind == "element" and wanted.simple() is None and isinstance(wanted.type, str)


def _value(wanted: Field, text: str, path: str) -> Any:
    simple = wanted.simple()
    try:
        if simple is not None:
            value, problem = simple.lenient(text)
            if problem is not None:
                raise ConfigError(f"{path!r}: {problem}")
            return value
        if _is_object(wanted):
            cls = wanted.table().cls
            if issubclass(cls, DistinguishedNameMixin):
                return cls.parse(text)
            own = next((item for item in cls.__xml__.fields if item.kind == "text"), None)
            if own is not None:
                return cls(**{own.name: _value(own, text, path)})
    except ConfigError:
        raise
    except (ValueError, EncodeError) as error:
        raise ConfigError(f"{path!r}: {text!r} does not fit: {error}") from None
    raise ConfigError(f"{path!r}: no value can be given here; name a field inside it, or take a file with --body")


def _made(draft: Any, path: str) -> Any:
    if not isinstance(draft, _Draft):
        return draft
    values: dict[str, Any] = {}
    for name, held in draft.values.items():
        inside = f"{path}.{name}" if path else name
        made = [_made(held[place], inside) for place in sorted(held)]
        values[name] = made if draft.table.field(name).many else made[0]
    try:
        return draft.table.cls(**values)
    except TypeError:
        missing = [item.local for item in draft.table.fields if item.min and item.name not in values and item.local]
        raise ConfigError(f"{path or draft.table.element}: {', '.join(missing) or 'something'} is needed") from None


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
