"""The MTOSI header as the binding sees it: which value a field has, in which spelling.

The header itself is the generated class of the header schema. Here stand the rules that go beyond the schema: an empty
element counts as absent, values count without the white space around them, except correlationId, which is stored and
compared as it came (R3c).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import Nil, XmlEnum, XmlObject

FIELD_NAMES: Final[dict[str, str]] = {field.local: field.name for field in Header.__xml__.fields if field.local}
"""Python names of the header fields by XML name, in the order of the schema."""

VERBATIM: Final = frozenset({"correlationId"})


def header_text(header: XmlObject, field: str) -> str | None:
    """The text of a simple header field as the document has it, without white space around it.

    Args:
        header: the header object.
        field: XML name of the field.

    Returns:
        None where the field is absent, empty, nil or not simple. For correlationId the text as it came, with blanks.
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
    """The texts of those simple header fields that have one, by XML name; each as `header_text` tells it.

    Args:
        header: the header object.
        fields: XML names of those that will be asked for.
    """
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
    """The text of a value that was set; one that its type cannot have as it is, for the binding to refuse."""
    simple = header.__xml__.field(name).simple()
    try:
        return simple.format(value) if simple is not None else None
    except (TypeError, ValueError):
        return f"{value:#x}" if isinstance(value, int) else str(value)  # Python writes no decimals past 4300 digits


def _unreadable(header: XmlObject, field: str) -> str | None:
    """The text of a field whose content does not fit its type; it was kept as XML."""
    for raw in header.unknown_elements():
        if raw.tag.rpartition("}")[2] == field:
            return raw.text
    return None


def correlation_id(header: XmlObject | None) -> str | None:
    """The correlationId as it came; None where it is absent or empty (R3b)."""
    return header_text(header, "correlationId") if header is not None else None
