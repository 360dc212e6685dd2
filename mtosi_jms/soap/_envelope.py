"""SOAP envelopes with an MTOSI header: built in SOAP 1.1, read in 1.1 and 1.2 (C52).

The layers to the right treat the envelope as opaque (P37): they get its bytes, and the header's values separately.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from lxml import etree

from mtosi_jms.errors import ConfigError, EncodeError, EnvelopeError, MtosiFault, SoapJmsFault
from mtosi_jms.header import BY_TAG
from mtosi_jms.masking import shown_in_part
from mtosi_jms.namespaces import SOAP11, SOAP12, clark, split_clark
from mtosi_jms.soap._faults import amended, exception_for, has_header, soap_prefix, write_fault
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import (
    DECLARATION,
    Issues,
    Names,
    RawXml,
    Writer,
    XmlObject,
    XmlWarning,
    decode_root,
    encode,
    to_element,
)

VERSIONS: Final = {SOAP11: "1.1", SOAP12: "1.2"}
"""Versions of SOAP by namespace."""
_NAMESPACES: Final = {version: namespace for namespace, version in VERSIONS.items()}
_DECLARED: Final = {namespace: frozenset({namespace}) for namespace in VERSIONS}


def start_tag(version: str, names: Names, attributes: str = "") -> str:
    """Return the start tag of an envelope. Its attributes are XML text, a blank before each."""
    soap, namespace = soap_prefix(version), _NAMESPACES[version]
    return f'<{soap}:Envelope xmlns:{soap}="{namespace}"{names.declarations(_DECLARED[namespace])}{attributes}>'


class Origin(NamedTuple):
    """What an envelope was read from, and how.

    Attributes:
        wire: the document that was read; it tells its encoding itself.
        package: generated package whose classes came before those of all others.
        header_at: index of the MTOSI header among the blocks of the SOAP header; None if it was in a fault.
        cuts: where header and name of the body's element can be replaced, see `Enveloped`; None if the whole envelope
            must be encoded again.
        vendors: Clark name of a vendor's header element with which it was read; empty: none.
    """

    again: Callable[[], Envelope]
    wire: bytes
    package: str | None
    header_at: int | None
    version: str
    cuts: tuple[int, int, int, int, int] | None = None
    vendors: str = ""


@dataclass(slots=True, repr=False)
class Envelope:
    """One message: header, body, and the document that it was read from.

    Attributes:
        header: the MTOSI header object; for a fault the one inside its detail (C17) or None.
        body: the object of the body's element; `RawXml` if no registered package knows it; for a fault the operation's
            exception; None for an empty body, and for a fault without detail.
        fault: the typed fault, None for other messages.
        warnings: what did not fit the schemas or the rules.
        blocks: other header blocks of the SOAP header, as they came.
        more: further elements of the body, as they came.
        attributes: attributes of the SOAP elements by their local names (`Envelope`, `Header`, `Body`), Clark name to
            text.
        version: SOAP version, `1.1` or `1.2`.
        origin: where it was read from; None where it was made.
    """

    header: Header | None = None
    body: Any = None
    fault: MtosiFault | None = None
    warnings: list[XmlWarning] = field(default_factory=list)
    blocks: list[RawXml] = field(default_factory=list)
    more: list[RawXml] = field(default_factory=list)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    version: str = "1.1"
    source: str | None = None
    origin: Origin | None = field(default=None, repr=False, compare=False)

    __repr__ = shown_in_part

    @property
    def is_bare(self) -> bool:
        """Whether it was made from only a header and a body."""
        beside = self.fault or self.origin or self.blocks or self.more or self.attributes
        return not beside

    def to_bytes(self) -> bytes:
        """Encode the envelope. If nothing was changed since it was read, return the document that was read. Raises
        EncodeError: header or body cannot become valid XML."""
        origin = self.origin
        if origin is None:
            return self.encode()
        again = origin.again()
        if self.content() == again.content():
            return origin.wire
        written = self.encode()
        return origin.wire if written == again.encode() else written  # content with NaN is never equal to itself

    def passed_on(self, tag: str = "") -> bytes:
        """Encode the envelope when only the header was changed. If possible, copy the rest as received, which saves
        time for large envelopes; otherwise encode everything again.

        Args:
            tag: Clark name for the element in the body; empty: its present name.

        Raises:
            EncodeError: header or body cannot become valid XML.
        """
        origin = self.origin
        if self.fault is not None:
            return self.to_bytes()
        own = tag_of(self.body)
        if origin is not None and origin.cuts is not None and self.header is not None:
            space, local = split_clark(tag or own)
            if space == split_clark(own)[0] and self.version == origin.version:
                header = encode(self.header)[len(DECLARATION) :]
                return _replaced(origin.wire, origin.cuts, header, local if tag else "")
        if tag not in ("", own):
            return replace(self, body=renamed(self.body, tag)).encode()
        return self.encode()

    def content(self) -> tuple[object, ...]:
        """Return the content of the envelope for comparison, without its origin and its warnings."""
        words: tuple[Any, ...] = ()
        if (fault := self.fault) is not None:
            words = (fault.kind, fault.reason, fault.fault_code, fault.fault_string, fault.detail, fault.raw)
        return self.header, self.body, words, self.blocks, self.more, self.attributes, self.version

    def encode(self) -> bytes:
        """Encode the whole envelope, in schema order. Raises EncodeError: header or body cannot become valid XML."""
        self._check()
        writer = Writer()
        soap = soap_prefix(self.version)
        blocks: list[Any] = list(self.blocks)
        if self.header is not None and not self._header_in_detail():
            at = self.origin.header_at if self.origin is not None else 0
            blocks.insert(at or 0, self.header)
        if blocks or "Header" in self.attributes:
            writer.parts.append(f"<{soap}:Header{self._attributes(writer, 'Header')}>")
            for block in blocks:
                writer.root(block)
            writer.parts.append(f"</{soap}:Header>")
        writer.parts.append(f"<{soap}:Body{self._attributes(writer, 'Body')}>")
        self._write_body(writer)
        writer.parts.append(f"</{soap}:Body>")
        head = start_tag(self.version, writer.names, self._attributes(writer, "Envelope"))
        writer.parts.insert(0, DECLARATION + head.encode())
        writer.parts.append(f"</{soap}:Envelope>")
        return writer.content()

    def _check(self) -> None:
        if self.version not in tuple(_NAMESPACES):
            raise EncodeError(f"SOAP has no version {self.version!r:.20}", "version")
        if self.fault is not None and not isinstance(self.fault, MtosiFault):
            raise EncodeError(f"MtosiFault is needed, not {type(self.fault).__name__}", "fault")
        if not isinstance(self.attributes, Mapping):
            raise EncodeError(f"a mapping is needed, not {type(self.attributes).__name__}", "attributes")
        for name in ("blocks", "more"):
            if not isinstance(getattr(self, name), (list, tuple)):
                raise EncodeError("a list is needed", name)

    def _attributes(self, writer: Writer, element: str) -> str:
        attributes = self.attributes.get(element)
        return writer.attributes(attributes) if attributes else ""

    def _header_in_detail(self) -> bool:
        """Whether the header is in the detail of the fault, and is written there."""
        if self.fault is None:
            return False
        if self.origin is not None and self.fault.raw is not None:
            return self.origin.header_at is None
        return has_header(self.body)

    def _write_body(self, writer: Writer) -> None:
        fault = self.fault
        if fault is None:
            if self.body is not None:
                writer.root(self.body)
        else:
            same = fault.raw is not None and split_clark(RawXml(fault.raw).tag)[0] == _NAMESPACES[self.version]
            package, vendors = (self.origin.package, self.origin.vendors) if self.origin is not None else (None, "")
            raw = amended(fault.raw, fault, self.body, self.header, package, vendors) if same and fault.raw else None
            if raw is not None:
                writer.parts.append(raw.decode("utf-8"))
            else:
                write_fault(writer, fault, self.body, self.version)
        for element in self.more:
            writer.root(element)

    @classmethod
    def for_fault(
        cls,
        fault: MtosiFault,
        exception: type[XmlObject],
        header: Header,
        *,
        in_soap_header: bool = False,
        version: str = "1.1",
    ) -> Envelope:
        """Make the envelope of a supplier's fault.

        Args:
            exception: class of the operation's exception element.
            header: header of the reply: msgType ERROR, activityStatus FAILURE, with the correlationId (C17).
            in_soap_header: send the header in the SOAP header too.
            version: SOAP version, that of the request (C52).
        """
        body = exception_for(fault, exception, header)
        made = MtosiFault(fault.reason, kind=fault.kind, fault_code=fault.fault_code, fault_string=fault.fault_string)
        in_detail = has_header(body)  # otherwise `encode` writes it to the SOAP header anyway
        blocks = [RawXml.from_element(to_element(header))] if in_soap_header and in_detail else []
        return cls(header=header, body=body, fault=made, blocks=blocks, version=version)

    @classmethod
    def bare_fault(cls, fault: MtosiFault, header: Header, *, version: str = "1.1") -> Envelope:
        """Make the envelope of a fault without detail, for a request that names no operation. The header is in the SOAP
        header, so that the requestor can match the reply. Arguments as for `for_fault`."""
        kind = SoapJmsFault if isinstance(fault, SoapJmsFault) else MtosiFault
        made = kind(fault.reason, fault_code=fault.fault_code, fault_string=fault.fault_string)
        return cls(header=header, fault=made, version=version)


def _replaced(wire: bytes, cuts: tuple[int, int, int, int, int], header: bytes, local: str) -> bytes:
    """Return a received envelope with another header, and with another local name of the body's element unless `local`
    is empty."""
    begin, end, start, stop, last = cuts
    name = wire[start:stop]
    prefix, colon, _ = name.rpartition(b":")
    new = prefix + colon + local.encode() if local else name
    view = memoryview(wire)
    return b"".join((view[:begin], header, view[end:start], new, view[stop:last], new, view[last + len(name) :]))


def tag_of(body: object) -> str:
    """Return the Clark name of a body's element; empty if there is none."""
    return body.tag if isinstance(body, RawXml) else str(body.__xml__.tag) if isinstance(body, XmlObject) else ""


def renamed(body: object, tag: str) -> object:
    """Return the same content in another element; a body that is not an element is returned unchanged."""
    if not isinstance(body, RawXml | XmlObject):
        return body
    element = to_element(body)
    element.tag = tag
    return RawXml.from_element(element)


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
