"""When two messages say the same: digests of files and of SOAP bodies.

The digest of a body covers names, attributes and text, and nothing of how they are written: prefixes, the order of
attributes, encoding, comments and white space between elements do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from lxml import etree

from mtosi_jms.namespaces import XSI, clark
from mtosi_jms.spark._envelope import soap_body
from mtosi_jms.spark._landed import CHUNK, feed_target, opened, read_whole
from mtosi_jms.xmlbind import Scopes, attributes_of, parse_xml

_XSI_TYPE: Final = clark(XSI, "type")


def file_digest(path: str) -> str:
    """SHA-256 of the decompressed bytes of a file: the cheap proof that two files are the same."""
    digest = hashlib.sha256()
    with opened(path) as stream:
        while data := stream.read(CHUNK):
            digest.update(data)
    return digest.hexdigest()


def body_digest(path: str, whole_file_bytes: int) -> str:
    """SHA-256 of what the body of an envelope says, however it is written.

    Equal for other prefixes, attribute order, encoding, comments, and white space between elements.

    Raises:
        XmlError: the file is not well-formed.
        SpoolError: the file cannot be read.
    """
    with opened(path) as stream:
        data = read_whole(stream, whole_file_bytes)
    if data is not None:
        return tree_digest(parse_xml(data, source=path))
    return str(feed_target(path, _BodyTarget()))


def tree_digest(root: etree._Element) -> str:
    """`body_digest` of a parsed envelope.

    Raises:
        EnvelopeError: the root is no SOAP envelope.
    """
    writer = _TokenWriter()
    body = soap_body(root)
    if body is not None:
        scopes = Scopes()
        for child in body:
            _walk(child, writer.add, scopes)
    return writer.digest()


def _walk(element: etree._Element, add: Callable[[str], None], scopes: Scopes) -> None:
    add("<" + str(element.tag))
    if element.keys():
        for name, value in sorted(attributes_of(element)):
            add(f"@{name}={_qualified(value, scopes.of(element).find) if name == _XSI_TYPE else value}")
    text = str(element.text or "")
    if not len(element):
        if text:
            add("#" + text)
    else:
        if text and not text.isspace():
            add("#" + text)
        for child in element:
            _walk(child, add, scopes)
            tail = str(child.tail or "")
            if tail and not tail.isspace():
                add("#" + tail)
    add(">")


def _qualified(text: str, find: Callable[[str], str | None]) -> str:
    prefix, _, local = text.strip().rpartition(":")
    return clark(find(prefix) or "", local)


class _TokenWriter:
    """Hashes tokens; NUL, which XML cannot hold, parts them."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._tokens: list[str] = []

    def add(self, token: str) -> None:
        self._tokens.append(token)
        if len(self._tokens) > 4096:
            self._flush()

    def _flush(self) -> None:
        self._digest.update(("\0".join(self._tokens) + "\0").encode())
        self._tokens.clear()

    def digest(self) -> str:
        if self._tokens:
            self._flush()
        return self._digest.hexdigest()


class _BodyTarget:
    """`_walk` for a document that is too large to hold: the same tokens, from parser events."""

    def __init__(self) -> None:
        self._writer = _TokenWriter()
        self._path: list[str] = []
        self._text: list[str] = []
        self._leaf = False
        self._spaces: dict[str, list[str]] = {}
        self._opened: list[int] = []

    def start_ns(self, prefix: str | None, uri: str) -> None:
        self._spaces.setdefault(prefix or "", []).append(uri)

    def end_ns(self, prefix: str | None) -> None:
        self._spaces[prefix or ""].pop()

    def _space(self, prefix: str) -> str | None:
        spaces = self._spaces.get(prefix)
        return spaces[-1] if spaces else None

    def start(self, tag: str, attributes: Any) -> None:
        self._text_ends(leaf=False)
        if self._inside():
            self._writer.add("<" + tag)
            for name, value in sorted((str(name), str(value)) for name, value in attributes.items()):
                shown = _qualified(value, self._space) if name == _XSI_TYPE else value
                self._writer.add(f"@{name}={shown}")
        self._path.append(tag)
        self._leaf = True

    def end(self, tag: str) -> None:
        self._text_ends(leaf=self._leaf)
        self._path.pop()
        if self._inside():
            self._writer.add(">")
        self._leaf = False

    def data(self, text: str) -> None:
        self._text.append(text)

    def close(self) -> str:
        return self._writer.digest()

    def _inside(self) -> bool:
        return len(self._path) >= 2 and self._path[1].endswith("}Body")

    def _text_ends(self, *, leaf: bool) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text and len(self._path) > 2 and self._inside() and (leaf or not text.isspace()):
            self._writer.add("#" + text)
