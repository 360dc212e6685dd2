"""What both sides of HTTP share: how much of a body is taken, its compression and encoding, the check against the
schemas, and TLS certificates from files."""

from __future__ import annotations

import logging
import ssl
import zlib
from collections.abc import Mapping
from email.message import Message
from email.utils import collapse_rfc2231_value
from functools import lru_cache
from typing import Final, NamedTuple

from lxml import etree

from mtosi_jms.binding.profile import BodyCheck
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError, ForbiddenXmlError
from mtosi_jms.xmlbind import codec_named, declared_name, in_utf8, refuse_nodes, self_described

log = logging.getLogger(__package__)

OF_REQUEST: Final = "Request"
"""Suffix of the name of a request's element."""
PIECE: Final = BOUNDS.http_piece
"""Octets that a client must send or take, if there are so many, within the time that it has."""


class Refused(Exception):
    """A request that is answered with a status, without a fault; or an answer that would be, were it a request."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.headers = dict(headers or {})


def _unreadable(why: str) -> Refused:
    return Refused(415, why, {"Accept-Encoding": "gzip"})


class Body:
    """Collects a body, unpacked, and takes no more than is allowed, whatever the body unpacks to. `encoding`:
    Content-Encoding; empty, `identity` or `gzip`. `most_bytes`: most octets of the unpacked body. Raises Refused:
    another encoding (415)."""

    def __init__(self, encoding: str, most_bytes: int) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise _unreadable("the content encoding must be gzip, or none")
        self._unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding.endswith("gzip") else None
        self._most_bytes = most_bytes
        self._parts: list[bytes] = []
        self.size = 0
        """Octets so far."""

    def add(self, part: bytes) -> None:
        """Takes the next part of the body, as it came. Raises Refused: the body is larger than allowed (413), the
        compressed data is damaged, or something comes after its end (415)."""
        if self._unpacking is not None:
            if self._unpacking.eof and part:
                raise _unreadable("there is more after the end of the compressed data")
            try:
                part = self._unpacking.decompress(part, self._most_bytes - self.size + 1)
            except zlib.error:
                raise _unreadable("the compressed data is damaged") from None
            if self._unpacking.unused_data:
                raise _unreadable("there is more after the end of the compressed data")
        if self.size + len(part) > self._most_bytes:
            raise Refused(413, f"more than {self._most_bytes} bytes")
        self.size += len(part)
        self._parts.append(part)

    def whole(self) -> bytes:
        """The body, at its end. Raises Refused: the compressed data has no end (415)."""
        if self._unpacking is not None and not self._unpacking.eof:
            raise _unreadable("the compressed data has no end")
        data = b"".join(self._parts)
        self._parts.clear()
        return data


class ContentType(NamedTuple):
    """A content type and its parameters; empty where there is none."""

    media: str
    action: str
    charset: str


@lru_cache(maxsize=64)
def content_type_of(text: str) -> ContentType:
    """Return the content type in a header; an empty header means `text/plain`."""
    made = Message()
    made["Content-Type"] = text
    action, charset = (collapse_rfc2231_value(made.get_param(name, "")) for name in ("action", "charset"))
    return ContentType(made.get_content_type(), action, charset.strip())


def document_in(data: bytes, charset: str, most_elements: int, what: str) -> bytes:
    """Return the document in a body, in UTF-8; log what was wrong with what is said of its encoding. `charset`: the
    encoding that its content type gives; empty for none. `most_elements`: most elements and attributes that it may
    have. Raises Refused: nobody reads the encoding that the content type or, without one, the XML names (415), or it
    holds more elements and attributes than allowed (413)."""
    name = charset or declared_name(data)
    if name and codec_named(name) is None and (charset or not _is_known_to_libxml2(name)):
        raise Refused(415, f"the encoding {name[:40]!r} is not known")
    document, odd = self_described(data, charset)
    if odd:
        log.warning("%s: %s", what, odd)
    document = in_utf8(document)
    try:
        refuse_nodes(document, most_elements, what)
    except ForbiddenXmlError as error:
        raise Refused(413, error.message) from None
    return document


def _is_known_to_libxml2(name: str) -> bool:
    try:
        etree.XMLParser(encoding=name)
    except LookupError:
        return False
    return True


def judge(check: BodyCheck | None, data: bytes, what: str) -> None:
    """Check the body of an envelope against the schemas; log what is only a warning. Raises DecodeError: the body is
    not valid, and `check` requires that it is."""
    if check is not None and (warnings := check.check(data)):
        log.warning("%s with %d warnings, the first: %s", what, len(warnings), warnings[0])


def load_certificate(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """Loads the certificate that one side of TLS presents. `key`: file of its key; None: the key is in the
    certificate's file. Raises ConfigError: a file cannot be used, or the key needs a password, which nobody is there to
    enter."""
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        where = " and ".join(filter(None, (certificate, key)))
        raise ConfigError(f"certificate: {where}: {error.strerror or error}") from None
