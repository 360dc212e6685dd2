"""Facts about an envelope that an ingest needs before it reads objects, checks that it is well-formed, and digests.

Header fields are read as text without the white space around them; an empty element counts as absent. Only the
correlationId keeps its white space. `security` is a credential and is never read.

No function here holds more than `whole_file_bytes` of a file. Faults of a file are raised as an `XmlError` with their
line, or as a `SpoolError` if the file cannot be read.

Digests tell whether two messages have the same content. The digest of a body covers names, attributes and text. It does
not depend on prefixes, the order of attributes, encoding, comments and white space between elements.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Final

from lxml import etree

from mtosi_jms.compression import DAMAGED
from mtosi_jms.errors import EnvelopeError, ForbiddenXmlError, MalformedXmlError, MtosiError, SpoolError, XmlError
from mtosi_jms.header import BY_TAG, MTOSI_2X, SLIPS
from mtosi_jms.inventory import is_release1
from mtosi_jms.namespaces import SOAP11, SOAP12, XSI, clark, split_clark
from mtosi_jms.patterns import read_place
from mtosi_jms.soap import header_class, mend, warn_of_body, warn_of_second
from mtosi_jms.tables.files import CHUNK, Reject, opened, read_whole, unreadable
from mtosi_jms.xmlbind import (
    HARDENED,
    Issues,
    Scopes,
    XmlWarning,
    attributes_of,
    decode_root,
    parse_xml,
    refuse_doctype,
    syntax_error,
)

__all__ = [
    "FAULT",
    "NOTIFICATION",
    "RESPONSE",
    "envelope_facts",
    "reject_of",
    "soap_body",
    "verify",
]


RESPONSE: Final = "response"
REQUEST: Final = "request"
FAULT: Final = "fault"
NOTIFICATION: Final = "notification"
BULK_RESPONSE: Final = "bulk response"
"""A response that has no data but names the file with the data (C18)."""

_ENVELOPES: Final = {clark(ns, "Envelope"): ns for ns in (SOAP11, SOAP12)}
_FAULTS: Final = (clark(SOAP11, "Fault"), clark(SOAP12, "Fault"))
_HEAD: Final = 8 * 1024
_TAIL: Final = 1024
_END_TAG = re.compile(
    rb"</(?:[^\s<>/:]+:)?Envelope\s*>\s*(?:<!--(?:(?!-->).)*-->\s*|<\?(?:(?!\?>).)*\?>\s*)*", re.DOTALL
)
_PLAIN: Final = ("empty", DAMAGED, "no element")
"""The beginnings of error texts that are not about the XML itself."""
_KINDS: Final = {"REQUEST": REQUEST, "RESPONSE": RESPONSE, "ERROR": FAULT, "NOTIFICATION": NOTIFICATION}
_SUFFIXES: Final = (("Request", REQUEST), ("Response", RESPONSE), ("Exception", FAULT), ("Iterator", REQUEST))


@dataclass(frozen=True, slots=True)
class EnvelopeFacts:
    """The facts about an envelope, without its objects.

    Attributes:
        kind: response, request, fault, notification, or bulk response.
        correlation_id: as received; None if absent or empty.
        batch_number, end_of_reply: what the header says of the place, as `mtosi_jms.patterns.Place` has it.
        body_tag: Clark name of the first element of the SOAP body; empty if the body is empty.
        header: text of the header fields by XML name, without absent fields.
        release: that of its header: the version that the header names (`1.1`), otherwise `1.x` or `2.x`; None without.
        warnings: of what departs from the rules in its header.
        mark, size: of the document: as `mark_of` gives it, and its bytes, not compressed. Only `scan_head` has them.
    """

    kind: str
    correlation_id: str | None
    batch_number: int | None
    end_of_reply: bool | None
    body_tag: str
    header: Mapping[str, str]
    release: str | None = None
    warnings: Sequence[XmlWarning] = ()
    mark: str = ""
    size: int = 0


def mark_of(data: bytes) -> str:
    """Return a digest of the first 8 KiB of a document, by which a document of the same size and time is told apart."""
    return hashlib.blake2b(data[:_HEAD], digest_size=8).hexdigest()


def soap_namespace(root: etree._Element, source: str | None = None) -> str:
    """Return the SOAP namespace of an envelope (C52: 1.1 and 1.2 are read). Raises EnvelopeError: the element is not a
    SOAP envelope."""
    namespace = _ENVELOPES.get(str(root.tag))
    if namespace is None:
        raise EnvelopeError(f"not SOAP: the root element is {root.tag}", source=source, line=root.sourceline)
    return namespace


def soap_body(root: etree._Element) -> etree._Element | None:
    """Return the SOAP body of an envelope; None if there is none (yet). Raises EnvelopeError: the element is not a SOAP
    envelope."""
    return root.find(clark(soap_namespace(root), "Body"))


def envelope_facts(root: etree._Element, source: str | None = None, *, mark: str = "", size: int = 0) -> EnvelopeFacts:
    """Return the facts about an envelope. Its tree may still be incomplete after the first element of the body.
    `source`: the document, for errors. `mark`, `size`: of the document, where they are known. Raises EnvelopeError: not
    SOAP, no body, no MTOSI header, or neither header nor body says what kind of message it is."""
    namespace = soap_namespace(root, source)
    body = soap_body(root)
    if body is None:
        raise EnvelopeError("a SOAP envelope without a body", source=source, line=root.sourceline)
    first = next(iter(body), None)
    headers = [child for child in root.iterfind(f"{clark(namespace, 'Header')}/*") if child.tag in BY_TAG]
    header = headers[0] if headers else None
    is_fault = first is not None and first.tag == clark(namespace, "Fault")
    if header is None and is_fault and first is not None:
        header = next(first.iter(*BY_TAG), None)
    if header is None and not is_fault:
        raise EnvelopeError("no MTOSI header in the SOAP header", source=source, line=root.sourceline)
    fields = _texts(header)
    tag = "" if first is None else str(first.tag)
    kind = FAULT if is_fault else _kind(fields, tag)
    if kind is None:
        text = f"msgType {fields.get('msgType', '')!r} and body element {tag or 'none'}"
        reason = f"wrong kind: {text} name no request, response, fault or notification"
        raise EnvelopeError(reason, source=source, line=body.sourceline)
    # The documents in the files that a reply of BulkResponse names have a batch number or name no file.
    names_files = fields.get("communicationPattern") == "BulkResponse" and "fileLocationURI" in fields
    if kind == RESPONSE and names_files and "batchSequenceNumber" not in fields:
        kind = BULK_RESPONSE
    elif kind == RESPONSE and first is None:
        raise EnvelopeError("wrong kind: a response with an empty body", source=source, line=body.sourceline)
    place = read_place(fields)
    release, warnings = (None, ()) if header is None else _release(header, headers[1:], None if is_fault else first)
    return EnvelopeFacts(
        kind=kind,
        correlation_id=fields.get("correlationId"),
        batch_number=place.number,
        end_of_reply=place.end,
        body_tag=tag,
        header=fields,
        release=release,
        warnings=warnings,
        mark=mark,
        size=size,
    )


def _release(
    header: etree._Element, more: Sequence[etree._Element], first: etree._Element | None
) -> tuple[str, Sequence[XmlWarning]]:
    """Return the release of a header, and the warnings about it; headers of 1.x are mended."""
    dialect = BY_TAG[str(header.tag)]
    if dialect is MTOSI_2X and not more and (first is None or dialect.is_over(str(first.tag))):
        return dialect.release, ()
    issues = Issues()
    if dialect is not MTOSI_2X:
        mend(header, dialect, issues)
        decode_root(header, header_class(dialect), issues)
    for second in more:
        warn_of_second(second, issues)
    if first is not None:
        warn_of_body(first, dialect, issues)
    version = header.get(dialect.version, "").strip() if dialect.version else ""
    return version or dialect.release, issues.found


def _texts(header: etree._Element | None) -> dict[str, str]:
    fields: dict[str, str] = {}
    if header is None:
        return fields
    own, placeholders = split_clark(str(header.tag))[0], BY_TAG[str(header.tag)].placeholders
    others: dict[str, str] = {}
    for child in header:
        text = str(child.text or "")
        plain = text.strip()
        if not plain or plain in placeholders:
            continue
        namespace, local = split_clark(str(child.tag))
        if local != "security":
            found = fields if namespace == own else others
            found.setdefault(local, text if local == "correlationId" else plain)
    fields = {**others, **fields}
    for local, slips in SLIPS.items():
        if local in fields:
            fields[local] = slips.get(fields[local], fields[local])
    return fields


def _kind(fields: Mapping[str, str], tag: str) -> str | None:
    """Return the kind of a message by its msgType, otherwise by the endings of body element and msgName."""
    kind = _KINDS.get(fields.get("msgType", "").upper())
    if kind is not None:
        return kind
    local = split_clark(tag)[1]
    if local == "notify":
        return NOTIFICATION
    for name in (local, fields.get("msgName", "")):
        for suffix, found in _SUFFIXES:
            if name.endswith(suffix):
                return found
    return None


def scan_head(path: str) -> EnvelopeFacts:
    """Return the facts about an envelope from its head, and check that the file does not end early.

    Damage between head and end is not found here; `verify` finds it. Raises XmlError: head or end is not well-formed,
    the file ends early, a DTD, not SOAP, no MTOSI header, wrong kind; SpoolError: the file cannot be read.
    """
    with opened(path) as stream:
        start = stream.read(_HEAD)
        while len(start) < _HEAD and (more := stream.read(_HEAD - len(start))):
            start += more
        root, before, ended = _head(start, stream, path)
        size, is_sound = (before, True) if ended else _end(stream, before)
        facts = envelope_facts(root, path, mark=mark_of(start), size=size)
        if is_sound:
            return facts
    verify(path, CHUNK)
    return facts


def check_size(facts: EnvelopeFacts, path: str, whole_file_bytes: int) -> None:
    """Check that the objects of an envelope can be read: those of MTOSI 1.x only from a document that is held whole.
    `facts`: as `scan_head` gives them. `whole_file_bytes`: the most that is held.

    Raises ForbiddenXmlError: the document is larger than `whole_file_bytes`.
    """
    if is_release1(facts.body_tag) and facts.size > whole_file_bytes:
        reason = "a message of MTOSI 1.x is read as a whole, and is larger than wholeFileBytes"
        raise ForbiddenXmlError(f"{reason} ({whole_file_bytes})", source=path)


def _head(data: bytes, stream: IO[bytes], path: str) -> tuple[etree._Element, int, bool]:
    """Parse an envelope until the first element of the body has begun or, if it is a fault, has ended; return the root,
    how many bytes were read, and whether these are all."""
    parser = etree.XMLPullParser(events=("start", "end"), **HARDENED)
    root: etree._Element | None = None
    depth, size = 0, len(data)
    _check_start(data, path)
    while True:
        try:
            if data:
                parser.feed(data)
            else:
                parser.close()
        except etree.XMLSyntaxError as error:
            raise syntax_error(error, path) from None
        for event, element in parser.read_events():
            depth += 1 if event == "start" else -1
            if root is None:
                root = element
                soap_namespace(root, path)
            level = depth if event == "start" else depth + 1
            in_body = level == 3 and str(element.getparent().tag).endswith("}Body")
            if in_body and (element.tag in _FAULTS) == (event == "end"):
                return root, size, not data
        if not data:
            break
        data = stream.read(_HEAD)
        size += len(data)
    if root is None:
        raise MalformedXmlError("no element", source=path, line=1)
    return root, size, True


def _check_start(data: bytes, path: str) -> None:
    if not data.strip():
        raise MalformedXmlError("empty file", source=path, line=1)
    refuse_doctype(data, path)


def _end(stream: IO[bytes], before: int) -> tuple[int, bool]:
    """Return how many bytes a stream has, of which `before` were read, and whether it ends with the end tag of an
    envelope, or with comments and processing instructions after it."""
    if not isinstance(stream, io.BufferedReader):
        tail, size = b"", before
        while data := stream.read(CHUNK):
            tail = (tail + data)[-_TAIL:]
            size += len(data)
    else:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(max(0, size - _TAIL))
        tail = stream.read()
    tail = tail.replace(b"\0", b"").rstrip()
    start = tail.rfind(b"Envelope")
    open_tag = tail.rfind(b"</", 0, start) if start >= 0 else -1
    return size, open_tag >= 0 and _END_TAG.fullmatch(tail, open_tag) is not None


class _Nothing:
    def close(self) -> None:
        return None


def verify(path: str, whole_file_bytes: int) -> None:
    """Check that a file can be parsed to its end. Raises XmlError: it cannot be parsed; the error has the line;
    SpoolError: the file cannot be read."""
    data = read_whole(path, whole_file_bytes)
    if data is not None:
        parse_xml(data, source=path)
        return
    parser = etree.XMLParser(target=_Nothing(), huge_tree=False, **HARDENED)
    with opened(path) as stream:
        data = stream.read(CHUNK)
        _check_start(data, path)
        try:
            while data:
                parser.feed(data)
                data = stream.read(CHUNK)
            parser.close()
        except etree.XMLSyntaxError as error:
            raise syntax_error(error, path) from None


def reject_of(error: XmlError | SpoolError, path: str, data: bytes | None = None) -> Reject:
    """Return an error as a reject of a file, or of a message `data` that is in no file."""
    if isinstance(error, SpoolError):
        return unreadable(error, path)
    text = error.message
    if isinstance(error, MalformedXmlError) and not text.startswith(_PLAIN):
        early = _ends_early(path if data is None else data)
        text = f"ends early (truncated): {text}" if early else f"not well-formed: {text}"
    return Reject(path, error.line, text)


def _ends_early(document: str | bytes) -> bool:
    """Whether a document that is not well-formed is only cut off: all that is there is the beginning of one that is."""
    parser = etree.XMLParser(target=_Nothing(), huge_tree=False, **HARDENED)
    try:
        with opened(document) if isinstance(document, str) else io.BytesIO(document) as stream:
            while data := stream.read(CHUNK):
                parser.feed(data)
    except (etree.XMLSyntaxError, MtosiError):
        return False
    return len(parser.feed_error_log) == 0


_XSI_TYPE: Final = clark(XSI, "type")
_EVENTS: Final = ("start", "end")
_MANY: Final = 4096


def file_digest(path: str) -> str:
    """Return the SHA-256 of the decompressed bytes of a file: a cheap proof that two files are the same."""
    digest = hashlib.sha256()
    with opened(path) as stream:
        while data := stream.read(CHUNK):
            digest.update(data)
    return digest.hexdigest()


def body_digest(path: str, whole_file_bytes: int) -> str:
    """Return a SHA-256 of the content of the body of an envelope."""
    data = read_whole(path, whole_file_bytes)
    if data is not None:
        return tree_digest(parse_xml(data, source=path))
    with opened(path) as stream:
        events = etree.iterparse(stream, events=_EVENTS, huge_tree=False, **HARDENED)
        try:
            return _digest(events, forget=True)
        except etree.XMLSyntaxError as error:
            raise syntax_error(error, path) from None


def tree_digest(root: etree._Element) -> str:
    """Return the `body_digest` of a parsed envelope. Raises EnvelopeError: the root is not a SOAP envelope."""
    return _digest(etree.iterwalk(root, events=_EVENTS), forget=False)


def _digest(events: Iterable[tuple[str, etree._Element]], *, forget: bool) -> str:
    tokens = _Tokens()
    body = ""
    path: list[etree._Element] = []
    for event, element in events:
        if event == "start":
            path.append(element)
            body = body or clark(soap_namespace(element), "Body")
        if len(path) > 2 and path[1].tag == body:
            if event == "start":
                tokens.start(element, in_body=len(path) == 3, forget=forget)
            else:
                tokens.end(element, forget=forget)
        if event == "end":
            path.pop()
    return tokens.digest()


class _Tokens:
    """Hashes tokens, separated by NUL, which XML cannot contain."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._tokens: list[str] = []
        self._scopes = Scopes()

    def start(self, element: etree._Element, *, in_body: bool, forget: bool) -> None:
        """Add the text before an element (unless it is a child of the body), its name and its attributes."""
        before, parent = element.getprevious(), element.getparent()
        if not in_body and parent is not None:
            self._between(parent.text if before is None else before.tail)
        if forget and before is not None and parent is not None:
            parent.remove(before)
        self._add("<" + str(element.tag))
        for name, value in sorted(attributes_of(element)) if element.keys() else ():
            if name == _XSI_TYPE:
                prefix, _, local = value.strip().rpartition(":")
                value = clark(self._scopes.of(element).find(prefix) or "", local)
            self._add(f"@{name}={value}")

    def end(self, element: etree._Element, *, forget: bool) -> None:
        """Add the last text of an element, and its end."""
        if len(element):
            self._between(element[-1].tail)
        elif element.text:
            self._add("#" + element.text)
        self._add(">")
        if forget:
            element.clear(keep_tail=True)

    def _between(self, text: str | None) -> None:
        """Add text between elements, unless it is white space."""
        if text and not text.isspace():
            self._add("#" + text)

    def _add(self, token: str) -> None:
        self._tokens.append(token)
        if len(self._tokens) > _MANY:
            self._flush()

    def _flush(self) -> None:
        self._digest.update(("\0".join(self._tokens) + "\0").encode())
        self._tokens.clear()

    def digest(self) -> str:
        """The digest of all tokens."""
        if self._tokens:
            self._flush()
        return self._digest.hexdigest()
