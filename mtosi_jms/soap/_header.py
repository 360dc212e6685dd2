"""Read the fields of an MTOSI SOAP header as text.

The class `Header` is generated from the header schema. This module adds two rules that the schema does not have:

- An empty field counts as absent.
- Leading and trailing white space does not count. The exception is correlationId, which the SDK stores and compares
  exactly as received (R3c).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mtosi_jms.soap._dialects import dialect_of
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import Nil, XmlEnum, XmlObject

FIELD_NAMES: Final[dict[str, str]] = {field.local: field.name for field in Header.__xml__.fields if field.local}
"""Maps the XML name of each header field to its Python name, in schema order."""

VERBATIM: Final = frozenset({"correlationId"})


def header_text(header: XmlObject, field: str) -> str | None:
    """The text of a header field of a simple type, spelled as in the document, for example `1` or `true`.

    Args:
        field: XML name of the field.

    Returns:
        The text without leading and trailing white space; for correlationId with it. None if the field is absent,
        empty, blank, nil or of a complex type without a text value.
    """
    name = FIELD_NAMES[field]
    value = getattr(header, name)
    if header.extras is None:
        if value is None:
            return None
        if value.__class__ is str or isinstance(value, XmlEnum):
            stripped: str | None = value.strip() or None
            return str(value) if stripped and field in VERBATIM else stripped
    leaf = header.extras.leaves.get((name, 0)) if header.extras else None
    if value is None:
        text = _unreadable(header, field)
    elif isinstance(value, Nil):
        return None
    elif leaf is not None and leaf.value == value:
        text = leaf.text
    elif isinstance(value, XmlObject):
        inner = getattr(value, "value", None)
        text = None if inner is None else str(inner)
    else:
        text = _formatted(header, name, value)
    if not text or not text.strip():
        return None
    return text if field in VERBATIM else text.strip()


def header_texts(header: XmlObject, fields: Iterable[str] = FIELD_NAMES) -> dict[str, str]:
    """Maps XML names of header fields to their texts, as `header_text` returns them. Omits fields without a text."""
    plain = header.extras is None
    texts: dict[str, str] = {}
    for field in fields:
        value = getattr(header, FIELD_NAMES[field])
        if plain and value is None:
            continue
        if plain and (value.__class__ is str or isinstance(value, XmlEnum)) and field not in VERBATIM:
            text: str | None = value.strip()
        else:
            text = header_text(header, field)
        if text:
            texts[field] = text
    return texts


def _formatted(header: XmlObject, name: str, value: object) -> str | None:
    """The text of a value that Python code has set; None if the field is of a complex type.

    If the value does not fit the type, returns it as plain text; the binding refuses it later.
    """
    simple = header.__xml__.field(name).simple()
    try:
        return simple.format(value) if simple is not None else None
    except (TypeError, ValueError):
        return f"{value:#x}" if isinstance(value, int) else str(value)  # str() fails past 4300 digits


def _unreadable(header: XmlObject, field: str) -> str | None:
    """The text of a field whose content does not fit its type. The binding keeps such a field as an XML element."""
    for raw in header.unknown_elements():
        if raw.tag.rpartition("}")[2] == field:
            return raw.text
    return None


def correlation_id(header: XmlObject | None) -> str | None:
    """The correlationId exactly as received; None if it is absent, empty or blank (R3b)."""
    return header_text(header, "correlationId") if header is not None else None


def missing_fields(header: Header) -> Iterator[str]:
    """Yield the XML names of the fields that the dialect of a header requires and the header lacks."""
    for local in dialect_of(header).required if type(header) is not Header else ():
        if header_text(header, local) is None:
            yield local
