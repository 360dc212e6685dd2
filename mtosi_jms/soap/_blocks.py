"""Header blocks beside the MTOSI header: which of them the receiver must understand (SOAP 1.1, 4.2; 1.2, 5.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from lxml import etree

from mtosi_jms.errors import ConfigError, EnvelopeError, MtosiFault
from mtosi_jms.header import BY_TAG
from mtosi_jms.namespaces import SOAP11, SOAP12, clark, split_clark
from mtosi_jms.soap._envelope import VERSIONS, Envelope
from mtosi_jms.xmlbind import Issues, RawXml, XmlObject, decode_root, to_element

_MARKS: Final = {"1.1": clark(SOAP11, "mustUnderstand"), "1.2": clark(SOAP12, "mustUnderstand")}
_ROLES: Final = {"1.1": clark(SOAP11, "actor"), "1.2": clark(SOAP12, "role")}
_OURS: Final = frozenset({
    "", "http://schemas.xmlsoap.org/soap/actor/next", f"{SOAP12}/role/next", f"{SOAP12}/role/ultimateReceiver",
})  # fmt: skip


def names_of(understands: Iterable[str | type[XmlObject]]) -> frozenset[str]:
    """Return the Clark names of header blocks that an application understands. Raises ConfigError: something else."""
    if isinstance(understands, str) or not isinstance(understands, Iterable):
        raise ConfigError(f"understands: give a list of elements, not {understands!r:.80}")
    found = set()
    for one in understands:
        tag = one if isinstance(one, str) else getattr(getattr(one, "__xml__", None), "tag", None)
        if not isinstance(tag, str) or not tag:
            raise ConfigError(f"understands: give '{{namespace}}name' or the class of an element, not {one!r:.80}")
        found.add(tag)
    return frozenset(found)


def not_understood(envelope: Envelope, understood: Collection[str]) -> list[str]:
    """Return the Clark names of the header blocks that must be understood here and are not.

    Any value of mustUnderstand but 0 and false counts as 1. A block for the actor or role of others is not meant.

    Args:
        understood: Clark names of the blocks that are understood; the MTOSI header always is.
    """
    found = []
    for block in envelope.blocks:
        element = _element(block)
        tag, version = str(element.tag), envelope.version
        must = str(element.get(_MARKS[version], "0")).strip() not in ("0", "false")
        ours = (element.get(_ROLES[version]) or "").strip() in _OURS
        if must and ours and tag not in BY_TAG and tag not in understood:
            found.append(tag)
    return found


def require_understood(envelope: Envelope, understood: Collection[str]) -> None:
    """Check that every header block of a received reply or notification that must be understood is. Raises
    EnvelopeError: one is not."""
    if envelope.blocks and (names := not_understood(envelope, understood)):
        raise EnvelopeError(f"{_said(names)}: mustUnderstand is set", source=envelope.source)


def must_understand_fault(names: list[str]) -> MtosiFault:
    """Return the fault for a request with header blocks that are not understood."""
    return MtosiFault(_said(names), fault_code="MustUnderstand")


def not_understood_blocks(names: list[str]) -> list[RawXml]:
    """Return the header blocks NotUnderstood that a fault of SOAP 1.2 has (SOAP 1.2, 5.4.8)."""
    made = []
    for name in names:
        space, local = split_clark(name)
        names_used = {"soap12": SOAP12} | ({"of": space} if space else {})
        element = etree.Element(clark(SOAP12, "NotUnderstood"), nsmap=names_used)
        element.set("qname", f"of:{local}" if space else local)
        made.append(RawXml.from_element(element))
    return made


def typed_blocks(envelope: Envelope, package: str | None) -> tuple[XmlObject | RawXml, ...]:
    """Return the header blocks beside the MTOSI header, as objects where a class is known."""
    issues = Issues(found=envelope.warnings, source=envelope.source)
    found: list[XmlObject | RawXml] = []
    for block in envelope.blocks:
        element = _element(block)
        for name in [name for name in element.attrib if split_clark(name)[0] in VERSIONS]:
            del element.attrib[name]  # they are SOAP's, not the element's
        made = decode_root(element, None, issues, package)
        found.append(made if isinstance(made, XmlObject) else block)
    return tuple(found)


def blocks_in(envelope: Envelope, version: str) -> list[RawXml]:
    """Return the header blocks for an envelope of another version, with its names for SOAP's attributes."""
    if version == envelope.version:
        return envelope.blocks
    names = {_MARKS[envelope.version]: _MARKS[version], _ROLES[envelope.version]: _ROLES[version]}
    made = []
    for block in envelope.blocks:
        element = _element(block)
        for old, new in names.items():
            if (value := element.attrib.pop(old, None)) is not None:
                element.set(new, _VALUES[version].get(value.strip(), value))
        made.append(RawXml.from_element(element))
    return made


_NEXT_11, _NEXT_12 = "http://schemas.xmlsoap.org/soap/actor/next", f"{SOAP12}/role/next"
_VALUES: Final = {
    "1.1": {"true": "1", "false": "0", _NEXT_12: _NEXT_11, f"{SOAP12}/role/ultimateReceiver": ""},
    "1.2": {_NEXT_11: _NEXT_12},
}


def _element(block: object) -> etree._Element:
    return block.element() if isinstance(block, RawXml) else to_element(block)


def _said(names: list[str]) -> str:
    return f"header blocks that are not understood: {', '.join(names)}"
