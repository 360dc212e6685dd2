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
from mtosi_jms.soap.faults import exception_for, fault_of
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import (
    DEFAULT_LIMITS,
    Issues,
    Limits,
    RawXml,
    Writer,
    XmlObject,
    XmlWarning,
    parse_xml,
)
from mtosi_jms.xmlbind.decoder import decode_root
from mtosi_jms.xmlbind.encoder import DECLARATION
from mtosi_jms.xmlbind.writeplan import escape_text

_HEADER_TAG: Final = clark(HDR, "header")
_VERSIONS: Final = {SOAP11: "1.1", SOAP12: "1.2"}
_FAULTS: Final = {
    "1.1": ("<faultcode>", "</faultcode><faultstring>", "</faultstring>"),
    "1.2": (
        "<soap:Code><soap:Value>",
        '</soap:Value></soap:Code><soap:Reason><soap:Text xml:lang="en">',
        "</soap:Text></soap:Reason>",
    ),
}
"""What stands before the code, between code and words, and after the words of a fault, by SOAP version."""


@dataclass(slots=True)
class Envelope:
    """One message: header, body, and how it came.

    Attributes:
        header: the MTOSI header object; for a fault the one inside its detail (C17). None where there is none.
        body: the object of the body's element; `RawXml` where no registered package knows it; for a fault the
            operation's exception object; None for an empty body.
        fault: the typed fault, None for other messages.
        warnings: what did not fit the schemas or the rules.
        blocks: other header blocks of the SOAP header, as they came.
        version: SOAP version, `1.1` or `1.2`.
        source: name of the document, for messages.
    """

    header: Header | None = None
    body: Any = None
    fault: MtosiFault | None = None
    warnings: list[XmlWarning] = field(default_factory=list)
    blocks: list[RawXml] = field(default_factory=list)
    version: str = "1.1"
    source: str | None = None
    _bytes: bytes | None = field(default=None, repr=False)

    def to_bytes(self) -> bytes:
        """The envelope as a UTF-8 document: the very bytes that were read while nothing was touched, written anew
        otherwise.

        Raises:
            EncodeError: header or body cannot become valid XML.
        """
        if self._bytes is not None and self._untouched():
            return self._bytes
        return self.encode()

    def _untouched(self) -> bool:
        """Whether header, body and blocks still are what the bytes say."""
        if self._bytes is None:
            return False
        again = parse(self._bytes)
        return (again.header, again.body, again.blocks) == (self.header, self.body, self.blocks)

    def encode(self) -> bytes:
        """The envelope written anew, in schema order.

        Raises:
            EncodeError: header or body cannot become valid XML.
        """
        namespace = SOAP12 if self.version == "1.2" else SOAP11
        writer = Writer()
        blocks = [*([] if self.header is None or self.fault is not None else [self.header]), *self.blocks]
        writer.parts.append("<soap:Header>" if blocks else "")
        for block in blocks:
            writer.root(block)
        writer.parts.append("</soap:Header><soap:Body>" if blocks else "<soap:Body>")
        if self.fault is not None:
            self._write_fault(writer)
        elif self.body is not None:
            writer.root(self.body)
        writer.parts.append("</soap:Body>")
        text = writer.text()
        names = writer.declarations(frozenset({SOAP11, SOAP12}))
        return f'{DECLARATION}<soap:Envelope xmlns:soap="{namespace}"{names}>{text}</soap:Envelope>'.encode()

    def _write_fault(self, writer: Writer) -> None:
        fault = self.fault
        if fault is None:
            return
        if fault.raw is not None:
            writer.parts.append(fault.raw.decode("utf-8"))
            return
        code = fault.fault_code or "Server"
        words = escape_text(fault.fault_string or fault.reason or fault.kind)
        if self.version == "1.2":
            code = {"Server": "Receiver", "Client": "Sender"}.get(code, code)
        code = escape_text(code if ":" in code else f"soap:{code}")
        before, between, after = _FAULTS[self.version]
        writer.parts.append(f"<soap:Fault>{before}{code}{between}{words}{after}")
        if self.body is not None:
            detail = "soap:Detail" if self.version == "1.2" else "detail"
            writer.parts.append(f"<{detail}>")
            writer.root(self.body)
            writer.parts.append(f"</{detail}>")
        writer.parts.append("</soap:Fault>")

    @classmethod
    def for_fault(
        cls, fault: MtosiFault, exception: type[XmlObject], header: Header, *, in_soap_header: bool = False
    ) -> Envelope:
        """The envelope of a fault that a supplier answers with.

        Args:
            fault: what the handler raised.
            exception: class of the operation's exception element.
            header: header of the reply: msgType ERROR, activityStatus FAILURE, with the correlationId (C17).
            in_soap_header: send the header in the SOAP header too.
        """
        body = exception_for(fault, exception, header)
        made = MtosiFault(fault.reason, kind=fault.kind, fault_code=fault.fault_code, fault_string=fault.fault_string)
        blocks = [RawXml.from_element(_element_of(header))] if in_soap_header else []
        return cls(header=header, body=body, fault=made, blocks=blocks)

    @classmethod
    def bare_fault(cls, fault: MtosiFault, header: Header) -> Envelope:
        """The envelope of a fault without detail: for a request that names no operation. The header stands in the
        SOAP header, so that the requestor can tell what is answered."""
        made = MtosiFault(fault.reason, fault_code=fault.fault_code, fault_string=fault.fault_string)
        return cls(header=header, fault=made, blocks=[RawXml.from_element(_element_of(header))])


def _element_of(obj: XmlObject) -> etree._Element:
    writer = Writer()
    writer.root(obj)
    text = writer.text()
    wrapped = f"<w{writer.declarations()}>{text}</w>"
    return parse_xml(wrapped.encode("utf-8"))[0]


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
    root = parse_xml(data, source=source, limits=limits)
    issues = Issues(strict=strict, source=source)
    namespace, local = split_clark(str(root.tag))
    if local != "Envelope" or namespace not in _VERSIONS:
        raise EnvelopeError(f"not a SOAP envelope: the root element is {local}", source=source, line=root.sourceline)
    envelope = Envelope(version=_VERSIONS[namespace], warnings=issues.found, source=source)
    envelope._bytes = data if isinstance(data, bytes) else data.encode("utf-8")
    body = root.find(clark(namespace, "Body"))
    if body is None:
        raise EnvelopeError("a SOAP envelope without a Body", source=source, line=root.sourceline)
    _read_header(root.find(clark(namespace, "Header")), envelope, issues)
    _read_body(body, namespace, envelope, issues, package)
    if envelope.header is None:
        issues.add("no-header", "there is no MTOSI header", root)
    return envelope


def read(path: str | Path, *, strict: bool = False, limits: Limits = DEFAULT_LIMITS) -> Envelope:
    """Read an envelope from a file; as `parse`, and OSError where the file cannot be read."""
    return parse(Path(path).read_bytes(), source=str(path), strict=strict, limits=limits)


def _read_header(element: etree._Element | None, envelope: Envelope, issues: Issues) -> None:
    for block in element if element is not None else ():
        if block.tag != _HEADER_TAG:
            envelope.blocks.append(RawXml.from_element(block))
        elif envelope.header is None:
            envelope.header = decode_root(block, Header, issues)
        else:
            issues.add("P36", "more than one MTOSI header: the first counts", block)
            envelope.blocks.append(RawXml.from_element(block))


def _read_body(body: etree._Element, namespace: str, envelope: Envelope, issues: Issues, package: str | None) -> None:
    children = list(body)
    if not children:
        issues.add("empty-body", "the SOAP body is empty", body)
        return
    for extra in children[1:]:
        issues.add("P36", f"a second element in the body, {split_clark(str(extra.tag))[1]}, is ignored", extra)
    if children[0].tag == clark(namespace, "Fault"):
        envelope.fault = fault_of(children[0], issues, package)
        envelope.body = envelope.fault.detail
        if envelope.fault.header is not None:
            if envelope.header is not None:
                envelope.blocks.insert(0, RawXml.from_element(_element_of(envelope.header)))
            envelope.header = envelope.fault.header
        elif envelope.header is not None:
            envelope.blocks.insert(0, RawXml.from_element(_element_of(envelope.header)))
            envelope.fault.header = envelope.header
        return
    envelope.body = decode_root(children[0], None, issues, package)
