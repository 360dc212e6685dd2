"""Digests of files and of SOAP bodies, which tell whether two messages have the same content.

The digest of a body covers names, attributes and text. It does not depend on prefixes, the order of attributes,
encoding, comments and white space between elements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from lxml import etree

from mtosi_jms.namespaces import XSI, clark
from mtosi_jms.tables.envelope import soap_namespace
from mtosi_jms.tables.files import CHUNK, opened, read_whole
from mtosi_jms.xmlbind import HARDENED, Scopes, attributes_of, parse_xml, syntax_error

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
    """Return the digest of the tokens below the SOAP body."""
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
