"""SOAP envelopes with an MTOSI header: built in SOAP 1.1, read in 1.1 and 1.2 (C52).

The envelope is opaque to the layers to the right (P37): they get bytes, and the header's values beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import EnvelopeError, MtosiFault
from mtosi_jms.namespaces import HDR, SOAP11, SOAP12, clark, split_clark
from mtosi_jms.soap.faults import amended, header_of, read_fault, soap_prefix, write_fault
from mtosi_jms.soap.kinds import exception_for
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import (
    DEFAULT_LIMITS,
    Issues,
    Limits,
    Nil,
    RawXml,
    Writer,
    XmlObject,
    XmlWarning,
    find_element,
    parse_xml,
    to_element,
)
from mtosi_jms.xmlbind.decoder import decode_root
from mtosi_jms.xmlbind.encoder import DECLARATION
from mtosi_jms.xmlbind.fast import Odd
from mtosi_jms.xmlbind.parser import to_bytes
from mtosi_jms.xmlbind.scan import Cut, cut_body, parsed_shell

_HEADER_TAG: Final = clark(HDR, "header")
_VERSIONS: Final = {SOAP11: "1.1", SOAP12: "1.2"}
_NAMESPACES: Final = {version: namespace for namespace, version in _VERSIONS.items()}


@dataclass(frozen=True, slots=True)
class _Read:
    """What an envelope was read from, and how.

    Attributes:
        data: the document.
        wire: the same as the bytes that came over the wire.
        header_at: how many other blocks stood before the header in the SOAP header; None where it stood in a fault.
    """

    data: bytes | str
    wire: bytes
    package: str | None
    limits: Limits
    header_at: int | None = None


@dataclass(slots=True)
class Envelope:
    """One message: header, body, and how it came.

    Attributes:
        header: the MTOSI header object; for a fault the one inside its detail (C17). None where there is none.
        body: the object of the body's element; `RawXml` where no registered package knows it; for a fault the
            operation's exception; None for an empty body, and a fault without detail.
        fault: the typed fault, None for other messages.
        warnings: what did not fit the schemas or the rules.
        blocks: other header blocks of the SOAP header, as they came.
        more: further elements of the body, as they came.
        attributes: attributes of the SOAP elements by their local names (`Envelope`, `Header`, `Body`), Clark name to
            text.
        version: SOAP version, `1.1` or `1.2`.
        source: name of the document, for messages.
    """

    header: Header | None = None
    body: Any = None
    fault: MtosiFault | None = None
    warnings: list[XmlWarning] = field(default_factory=list)
    blocks: list[RawXml] = field(default_factory=list)
    more: list[RawXml] = field(default_factory=list)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    version: str = "1.1"
    source: str | None = None
    _read: _Read | None = field(default=None, repr=False, compare=False)

    def to_bytes(self) -> bytes:
        """The envelope as a document: the very bytes that were read while nothing was touched, written anew
        otherwise.

        Raises:
            EncodeError: header or body cannot become valid XML.
        """
        read = self._read
        if read is None:
            return self.encode()
        again = parse(read.data, package=read.package, limits=read.limits)
        if self._state() == again._state():
            return read.wire
        written = self.encode()
        return read.wire if written == again.encode() else written  # NaN equals nothing, itself included

    def _state(self) -> tuple[Any, ...]:
        words: tuple[Any, ...] = ()
        if (fault := self.fault) is not None:
            words = (fault.kind, fault.reason, fault.fault_code, fault.fault_string, fault.detail, fault.raw)
        return self.header, self.body, words, self.blocks, self.more, self.attributes, self.version

    def came_as(self, wire: bytes) -> None:
        """Tell an envelope that was read what bytes it came as, where they are not those of the document.

        Args:
            wire: what `to_bytes` gives back while nothing is touched.
        """
        if self._read is not None:
            read = self._read
            self._read = _Read(read.data, wire, read.package, read.limits, read.header_at)

    def encode(self) -> bytes:
        """The envelope written anew, in schema order.

        Raises:
            EncodeError: header or body cannot become valid XML.
        """
        writer = Writer()
        soap = soap_prefix(self.version)
        blocks: list[Any] = list(self.blocks)
        if self.header is not None and not self._header_in_detail():
            at = self._read.header_at if self._read is not None else 0
            blocks.insert(at or 0, self.header)
        if blocks or "Header" in self.attributes:
            writer.parts.append(f"<{soap}:Header{self._attributes(writer, 'Header')}>")
            for block in blocks:
                writer.root(block)
            writer.parts.append(f"</{soap}:Header>")
        writer.parts.append(f"<{soap}:Body{self._attributes(writer, 'Body')}>")
        self._write_body(writer)
        writer.parts.append(f"</{soap}:Body>")
        attributes = self._attributes(writer, "Envelope")
        content = writer.content()
        namespace = _NAMESPACES[self.version]
        names = f' xmlns:{soap}="{namespace}"{writer.declarations(frozenset({namespace}))}'
        head = f"<{soap}:Envelope{names}{attributes}>"
        return b"".join((DECLARATION, head.encode(), content, f"</{soap}:Envelope>".encode()))

    def _attributes(self, writer: Writer, element: str) -> str:
        return writer.attributes(self.attributes.get(element, {}))

    def _header_in_detail(self) -> bool:
        """Whether the header stands in the detail of the fault, so that it is written there."""
        if self.fault is None:
            return False
        if self._read is not None and self.fault.raw is not None:
            return self._read.header_at is None
        return header_of(self.body) is not None

    def _write_body(self, writer: Writer) -> None:
        fault = self.fault
        if fault is None:
            if self.body is not None:
                writer.root(self.body)
        else:
            same = fault.raw is not None and split_clark(RawXml(fault.raw).tag)[0] == _NAMESPACES[self.version]
            package = self._read.package if self._read is not None else None
            raw = amended(fault.raw, fault, self.body, self.header, package) if same and fault.raw else None
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
        """The envelope of a fault that a supplier answers with.

        Args:
            fault: what the handler raised.
            exception: class of the operation's exception element.
            header: header of the reply: msgType ERROR, activityStatus FAILURE, with the correlationId (C17).
            in_soap_header: send the header in the SOAP header too.
            version: SOAP version, that of the request (C52).
        """
        body = exception_for(fault, exception, header)
        made = MtosiFault(fault.reason, kind=fault.kind, fault_code=fault.fault_code, fault_string=fault.fault_string)
        told_inside = header_of(body) is not None  # else it goes to the SOAP header anyway
        blocks = [RawXml.from_element(to_element(header))] if in_soap_header and told_inside else []
        return cls(header=header, body=body, fault=made, blocks=blocks, version=version)

    @classmethod
    def bare_fault(cls, fault: MtosiFault, header: Header, *, version: str = "1.1") -> Envelope:
        """The envelope of a fault without detail: for a request that names no operation. The header stands in the
        SOAP header, so that the requestor can tell what is answered; arguments as `for_fault`."""
        made = MtosiFault(fault.reason, fault_code=fault.fault_code, fault_string=fault.fault_string)
        return cls(header=header, fault=made, version=version)


def parse(
    data: bytes | str,
    *,
    source: str | None = None,
    strict: bool = False,
    package: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Envelope:
    """Read an envelope.

    Args:
        data: the document; bytes in any encoding that XML declares, or text.
        source: name of the document for errors and warnings.
        strict: raise the first warning as an error.
        package: generated package whose classes come before those of all others.
        limits: bounds on size and depth.

    Returns:
        The envelope; what did not fit stands in its `warnings`.

    Raises:
        MalformedXmlError, ForbiddenXmlError: not XML that may be read.
        EnvelopeError: no SOAP envelope, or one without a body.
        DecodeError: in strict mode.
    """
    data = data if isinstance(data, str) else bytes(data)
    wire = data if isinstance(data, bytes) else to_bytes(data)
    reader: _Reader | None = _ShellReader.of(wire, package, limits)
    if reader is None:
        odd: list[str] = []
        root = parse_xml(data, source=source, limits=limits, odd_prefixes=odd)
        reader = _Reader(root, Issues(strict=strict, source=source), package)
        for prefix in odd:
            reader._issues.add("C09", f"the prefix {prefix}, which nothing uses, stands for what is no URI", root)
        reader.read()
    envelope = reader.envelope
    envelope._read = _Read(data, wire, package, limits, reader.header_at)
    envelope.source = source
    return envelope


def read(path: str | Path, *, strict: bool = False, limits: Limits = DEFAULT_LIMITS) -> Envelope:
    """Read an envelope from a file; as `parse`, and OSError where the file cannot be read."""
    return parse(Path(path).read_bytes(), source=str(path), strict=strict, limits=limits)


class _Reader:
    """Takes one envelope apart.

    Attributes:
        envelope: what was found.
        header_at: how many other blocks stood before the header in the SOAP header; None where it stood in a fault.
    """

    def __init__(self, root: etree._Element, issues: Issues, package: str | None) -> None:
        self.header_at: int | None = None
        self._header: etree._Element | None = None
        self._root = root
        self._issues = issues
        self._package = package
        self._namespace, local = split_clark(str(root.tag))
        if local != "Envelope" or self._namespace not in _VERSIONS:
            space = f" of namespace {self._namespace!r}" if local == "Envelope" else ""
            message = f"not a SOAP envelope: the root element is {local}{space}"
            raise EnvelopeError(message, source=issues.source, line=root.sourceline)
        self.envelope = Envelope(version=_VERSIONS[self._namespace], warnings=issues.found)

    def read(self) -> None:
        """Fill the envelope.

        Raises:
            EnvelopeError: it has no body.
        """
        self._attributes(self._root)
        parts: dict[str, etree._Element] = {}
        for child in self._root:
            namespace, local = split_clark(str(child.tag))
            if namespace == self._namespace and local in ("Header", "Body") and local not in parts:
                parts[local] = child
            else:
                self._issues.add("P36", f"{local} beside Header and Body is left out", child)
        body = parts.get("Body")
        if body is None:
            message = "a SOAP envelope without a Body"
            raise EnvelopeError(message, source=self._issues.source, line=self._root.sourceline)
        if "Header" in parts:
            self._read_header(parts["Header"])
        self._read_body(body)
        if self.envelope.header is None:
            self._issues.add("no-header", "there is no MTOSI header", self._root)

    def _attributes(self, element: etree._Element) -> None:
        if element.items():
            attributes = {str(name): str(text) for name, text in element.items()}
            self.envelope.attributes[split_clark(str(element.tag))[1]] = attributes
        texts = [element.text, *(child.tail for child in element)]
        if any(text and not text.isspace() for text in texts):
            self._issues.add("stray-text", "text between elements is left out", element)

    def _read_header(self, element: etree._Element) -> None:
        self._attributes(element)
        envelope = self.envelope
        for block in element:
            if block.tag == _HEADER_TAG and envelope.header is None:
                header = decode_root(block, Header, self._issues)
                if isinstance(header, Header):
                    envelope.header = header
                    self.header_at = len(envelope.blocks)
                    self._header = block
                    continue
            elif block.tag == _HEADER_TAG:
                self._issues.add("P36", "more than one MTOSI header: the first counts", block)
            envelope.blocks.append(RawXml.from_element(block))

    def _read_body(self, body: etree._Element) -> None:
        self._attributes(body)
        children = list(body)
        if not children:
            self._issues.add("empty-body", "the SOAP body is empty", body)
            return
        for extra in children[1:]:
            name = split_clark(str(extra.tag))[1]
            self._issues.add("P36", f"a second element in the body, {name}, is kept as XML", extra)
            self.envelope.more.append(RawXml.from_element(extra))
        if children[0].tag == clark(self._namespace, "Fault"):
            self._read_fault(children[0])
            return
        value = decode_root(children[0], None, self._issues, self._package)
        self.envelope.body = RawXml.from_element(children[0]) if isinstance(value, Nil) else value

    def _read_fault(self, element: etree._Element) -> None:
        envelope = self.envelope
        fault, envelope.body = read_fault(element, self._issues, self._package)
        envelope.fault = fault
        if fault.header is None:
            fault.header = envelope.header
            return
        if self._header is not None and self.header_at is not None:  # the one in the detail counts (C17)
            envelope.blocks.insert(self.header_at, RawXml.from_element(self._header))
        envelope.header = fault.header
        self.header_at = None


class _ShellReader(_Reader):
    """Takes a large plain envelope apart: the object in its body comes from the text, the rest from a tree."""

    _cut: Cut

    @classmethod
    def of(cls, data: bytes, package: str | None, limits: Limits) -> _ShellReader | None:
        """The reader of an envelope that leaves nothing to report; None where the whole of it needs a tree."""
        cut = cut_body(data, limits)
        root = parsed_shell(cut, limits) if cut is not None else None
        if cut is None or root is None:
            return None
        issues = Issues()
        try:
            reader = cls(root, issues, package)
            reader._cut = cut
            reader.read()
        except (Odd, EnvelopeError):
            return None
        return None if issues.found else reader

    def _read_body(self, body: etree._Element) -> None:
        self._attributes(body)
        found = find_element(str(body[0].tag), self._package) if len(body) == 1 else None
        if found is None or self._issues.found or self.envelope.header is None:
            raise Odd
        self.envelope.body = self._cut.read(body[0], found.__xml__)
        if self.envelope.body is None:
            raise Odd
