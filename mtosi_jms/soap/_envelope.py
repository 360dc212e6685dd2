"""SOAP envelopes with an MTOSI header: built in SOAP 1.1, read in 1.1 and 1.2 (C52).

The layers to the right treat the envelope as opaque (P37): they get its bytes, and the header's values separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from mtosi_jms.errors import EncodeError, MtosiFault, SoapJmsFault
from mtosi_jms.masking import shown_in_part
from mtosi_jms.namespaces import SOAP11, SOAP12, split_clark
from mtosi_jms.soap._faults import amended, has_header, soap_prefix, write_fault
from mtosi_jms.soap._kinds import exception_for
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import DECLARATION, Names, RawXml, Writer, XmlObject, XmlWarning, encode, to_element

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
