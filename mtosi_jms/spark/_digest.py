"""When two messages say the same: digests of files and of SOAP bodies.

The digest of a body covers names, attributes and text, and nothing of how they are written: prefixes, the order of
attributes, encoding, comments and white space between elements do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from lxml import etree

from mtosi_jms.namespaces import XSI, clark
from mtosi_jms.spark._envelope import soap_namespace
from mtosi_jms.spark._files import CHUNK, opened, read_whole
from mtosi_jms.xmlbind.parser import HARDENED, parse_xml, syntax_error
from mtosi_jms.xmlbind.scopes import Scopes, attributes_of

_XSI_TYPE: Final = clark(XSI, "type")
_EVENTS: Final = ("start", "end")
_MANY: Final = 4096


def file_digest(path: str) -> str:
    """SHA-256 of the decompressed bytes of a file: the cheap proof that two files are the same."""
    digest = hashlib.sha256()
    with opened(path) as stream:
        while data := stream.read(CHUNK):
            digest.update(data)
    return digest.hexdigest()


def body_digest(path: str, whole_file_bytes: int) -> str:
    """SHA-256 of what the body of an envelope says, however it is written.

    Raises:
        XmlError: the file is not well-formed, or no SOAP envelope.
        SpoolError: the file cannot be read.
    """
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
    """`body_digest` of a parsed envelope.

    Raises:
        EnvelopeError: the root is no SOAP envelope.
    """
    return _digest(etree.iterwalk(root, events=_EVENTS), forget=False)


def _digest(events: Iterable[tuple[str, etree._Element]], *, forget: bool) -> str:
    """The digest of the tokens below the SOAP body.

    Args:
        events: starts and ends of all elements of an envelope.
        forget: whether to take elements out of the tree as soon as they are done.
    """
    hashing, scopes = _Tokens(), Scopes()
    body, inside, depth = "", False, 0
    for event, element in events:
        depth += 1 if event == "start" else 0
        if depth == 1:
            body = body or clark(soap_namespace(element), "Body")
        elif depth == 2:
            inside = element.tag == body
        elif inside and event == "start":
            before = element.getprevious()
            if depth > 3:
                hashing.between(element.getparent().text if before is None else before.tail)
            if forget and before is not None:
                element.getparent().remove(before)
            hashing.start(element, scopes)
        elif inside:
            if len(element):
                hashing.between(element[-1].tail)
            elif element.text:
                hashing.add("#" + element.text)
            hashing.add(">")
            if forget:
                element.clear(keep_tail=True)
        depth -= 1 if event == "end" else 0
    return hashing.digest()


class _Tokens:
    """Hashes tokens; NUL, which XML cannot hold, parts them."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._tokens: list[str] = []

    def start(self, element: etree._Element, scopes: Scopes) -> None:
        """Add the name and the attributes of an element, the prefix of xsi:type resolved."""
        self.add("<" + str(element.tag))
        for name, value in sorted(attributes_of(element)) if element.keys() else ():
            if name == _XSI_TYPE:
                prefix, _, local = value.strip().rpartition(":")
                value = clark(scopes.of(element).find(prefix) or "", local)
            self.add(f"@{name}={value}")

    def between(self, text: str | None) -> None:
        """Add text between elements, unless it is white space."""
        if text and not text.isspace():
            self.add("#" + text)

    def add(self, token: str) -> None:
        """Add a token."""
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
