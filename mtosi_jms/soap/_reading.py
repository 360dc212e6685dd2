"""Reads envelopes leniently: by the native core if it is available and the envelope has only a header and a body;
otherwise from the parser's tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from lxml import etree

from mtosi_jms.errors import EnvelopeError
from mtosi_jms.header import MTOSI_1X, release_of_body
from mtosi_jms.namespaces import clark, split_clark
from mtosi_jms.soap._dialects import dialect_of, header_classes, is_sound, mend, warn_of_body, warn_of_second
from mtosi_jms.soap._envelope import VERSIONS, Envelope, Origin, tag_of
from mtosi_jms.soap._faults import read_fault
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import (
    BLANKS,
    DEFAULT_LIMITS,
    Issues,
    Nil,
    RawXml,
    Scopes,
    XmlLimits,
    attributes_of,
    decode_root,
    parse_xml,
    read_document,
    to_bytes,
)
from mtosi_jms.xmlbind.columns import Enveloped, read_enveloped

_NEAR: Final = 4096
"""Octets of an envelope that name the dialect of its header."""


def parse(
    data: bytes | str,
    *,
    source: str | None = None,
    strict: bool = False,
    package: str | None = None,
    limits: XmlLimits = DEFAULT_LIMITS,
    needs_header: bool = True,
    header: str = "",
) -> Envelope:
    """Read an envelope.

    Args:
        data: the document; bytes in any encoding that XML declares, or text.
        source: name of the document for errors and warnings.
        strict: raise the first warning as an error.
        package: generated package whose classes come before those of all others.
        needs_header: whether a missing MTOSI header is a breach.
        header: Clark name of a vendor's header element, which is read beside those of MTOSI, as in a profile.

    Returns:
        The envelope; breaches are in its `warnings`.

    Raises:
        MalformedXmlError, ForbiddenXmlError: `data` is not XML, or not allowed XML.
        EnvelopeError: `data` is not a SOAP envelope, or has no body.
        DecodeError: in strict mode, the envelope has a breach.
        ConfigError: `data` is neither bytes nor text.
    """
    wire = to_bytes(data)
    data = data if isinstance(data, str) else wire
    again = partial(parse, data, package=package, limits=limits, needs_header=needs_header, header=header)
    classes = header_classes(header)
    parts = _enveloped(wire, classes, package, strict=strict, source=source, limits=limits)
    if parts is not None:
        version = VERSIONS[parts.namespace]
        origin = Origin(again, wire, package, 0, version, parts.cuts, header)
        return Envelope(parts.header, parts.body, None, parts.warnings, version=version, source=source, origin=origin)
    odd: list[str] = []
    root = parse_xml(data, source=source, limits=limits, odd_prefixes=odd)
    reader = _Reader(root, Issues(strict=strict, source=source), package, header)
    for prefix in odd:
        reader._issues.add("C09", f"the prefix {prefix}, which nothing uses, stands for what is not a URI", root)
    reader.read()
    if needs_header and reader.envelope.header is None:
        reader._issues.add("no-header", "there is no MTOSI header", root)
    envelope = reader.envelope
    envelope.origin = Origin(again, wire, package, reader.header_at, envelope.version, None, header)
    envelope.source = source
    return envelope


def _enveloped(
    wire: bytes,
    classes: Mapping[str, type[Header]],
    package: str | None,
    *,
    strict: bool,
    source: str | None,
    limits: XmlLimits,
) -> Enveloped | None:
    """Return the objects of an envelope by the native core; None if it has to be read from its tree, as an envelope has
    whose header departs from its dialect, or is of another one than its body."""
    parts = read_enveloped(wire, Header, package, strict=strict, source=source, limits=limits)  # as nearly all are
    if parts is not None:
        return None if release_of_body(parts.body.__xml__.module.namespace) == MTOSI_1X.release else parts
    start = wire[:_NEAR]
    for tag, cls in classes.items():
        namespace, local = (part.encode() for part in split_clark(tag))
        if cls is Header or namespace not in start or local not in start:
            continue
        parts = read_enveloped(wire, cls, package, strict=strict, source=source, limits=limits)
        if parts is not None:
            sound = is_sound(parts.header, dialect_of(cls)) and dialect_of(cls).is_over(tag_of(parts.body))
            return parts if sound else None
    return None


def read(path: str | Path, *, strict: bool = False, limits: XmlLimits = DEFAULT_LIMITS) -> Envelope:
    """Read an envelope from a file, which may be compressed; raises what `parse` and `read_document` raise."""
    return parse(read_document(path, limits=limits), source=str(path), strict=strict, limits=limits)


class _Reader:
    """Reads the parts of one envelope.

    Attributes:
        header_at: index of the MTOSI header among the blocks of the SOAP header; None if it was in a fault.
    """

    def __init__(self, root: etree._Element, issues: Issues, package: str | None, vendors: str) -> None:
        self._vendors = vendors
        self._classes = header_classes(vendors)
        self.header_at: int | None = None
        self._header: RawXml | None = None
        self._root = root
        self._issues = issues
        self._package = package
        self._scopes = Scopes()
        self._namespace, local = split_clark(str(root.tag))
        if local != "Envelope" or self._namespace not in VERSIONS:
            space = f" of namespace {self._namespace!r}" if local == "Envelope" else ""
            message = f"not a SOAP envelope: the root element is {local}{space}"
            raise EnvelopeError(message, source=issues.source, line=root.sourceline)
        self.envelope = Envelope(version=VERSIONS[self._namespace], warnings=issues.found)

    def read(self) -> None:
        """Fill the envelope. Raises EnvelopeError: it has no body."""
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

    def _attributes(self, element: etree._Element) -> None:
        if element.keys():
            self.envelope.attributes[split_clark(str(element.tag))[1]] = dict(attributes_of(element))
        texts = [element.text, *(child.tail for child in element)]
        if any(text and text.strip(BLANKS) for text in texts):
            self._issues.add("stray-text", "text between elements is left out", element)

    def _read_header(self, element: etree._Element) -> None:
        self._attributes(element)
        envelope = self.envelope
        for block in element:
            cls = self._classes.get(str(block.tag))
            if cls is not None and envelope.header is None:
                raw = RawXml.from_element(block)
                mend(block, dialect_of(cls), self._issues)
                header = decode_root(block, cls, self._issues, scopes=self._scopes)
                if isinstance(header, Header):
                    envelope.header = header
                    self.header_at = len(envelope.blocks)
                    self._header = raw
                    continue
            elif cls is not None:
                warn_of_second(block, self._issues)
            envelope.blocks.append(RawXml.from_element(block, self._scopes))

    def _read_body(self, body: etree._Element) -> None:
        self._attributes(body)
        children = list(body)
        if not children:
            self._issues.add("empty-body", "the SOAP body is empty", body)
            return
        for extra in children[1:]:
            name = split_clark(str(extra.tag))[1]
            self._issues.add("P36", f"a second element in the body, {name}, is kept as XML", extra)
            self.envelope.more.append(RawXml.from_element(extra, self._scopes))
        if children[0].tag == clark(self._namespace, "Fault"):
            self._read_fault(children[0])
            return
        header = self.envelope.header
        if header is not None:
            warn_of_body(children[0], dialect_of(header), self._issues)
        value = decode_root(children[0], None, self._issues, self._package, self._scopes)
        self.envelope.body = RawXml.from_element(children[0], self._scopes) if isinstance(value, Nil) else value

    def _read_fault(self, element: etree._Element) -> None:
        envelope = self.envelope
        fault, envelope.body = read_fault(element, self._issues, self._package, self._vendors)
        envelope.fault = fault
        if fault.header is None:
            fault.header = envelope.header
            return
        if self._header is not None and self.header_at is not None:  # the one in the detail counts (C17)
            envelope.blocks.insert(self.header_at, self._header)
        envelope.header = fault.header
        self.header_at = None
