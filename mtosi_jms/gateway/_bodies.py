"""Bodies over HTTP: how much of one is taken, its compression, and the check against the schemas."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping
from typing import Final

from mtosi_jms.jms.body_check import BodyCheck

log = logging.getLogger(__package__)

OF_REQUEST: Final = "Request"
"""Suffix of the name of a request's element."""


class Refused(Exception):
    """A request that is answered with a status, without a fault; or an answer that would be, were it a request.

    Attributes:
        status: the status.
        headers: headers of the answer.
    """

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.headers = dict(headers or {})


def _unreadable(why: str) -> Refused:
    return Refused(415, why, {"Accept-Encoding": "gzip"})


class Body:
    """Collects a body, unpacked, and takes no more than is allowed, whatever the body unpacks to.

    Args:
        encoding: Content-Encoding; empty, `identity` or `gzip`.
        most_bytes: most octets of the unpacked body.
        most_elements: most elements of its XML.

    Raises:
        Refused: another encoding (415).
    """

    def __init__(self, encoding: str, most_bytes: int, most_elements: int) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise _unreadable("the content encoding must be gzip, or none")
        self._unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding.endswith("gzip") else None
        self._most_bytes = most_bytes
        self._most_elements = most_elements
        self._parts: list[bytes] = []
        self.size = 0
        """Octets so far."""

    def add(self, part: bytes) -> None:
        """Takes the next part of the body, as it came.

        Raises:
            Refused: the body is larger than allowed (413), the compressed data is damaged, or something comes after its
                end (415).
        """
        if self._unpacking is not None:
            if self._unpacking.eof and part:
                raise _unreadable("there is more after the end of the compressed data")
            try:
                part = self._unpacking.decompress(part, self._most_bytes - self.size + 1)
            except zlib.error:
                raise _unreadable("the compressed data is damaged") from None
            if self._unpacking.unused_data:
                raise _unreadable("there is more after the end of the compressed data")
        self.size += len(part)
        if self.size > self._most_bytes:
            self._parts.clear()
            raise Refused(413, f"more than {self._most_bytes} bytes")
        self._parts.append(part)

    def whole(self) -> bytes:
        """The body, at its end.

        Raises:
            Refused: it holds more elements than allowed (413), or the compressed data has no end (415). Elements are
                counted before anybody parses them: each costs a hundred times as much memory as its tags.
        """
        if self._unpacking is not None and not self._unpacking.eof:
            raise _unreadable("the compressed data has no end")
        data = b"".join(self._parts)
        self._parts.clear()
        # An element has one tag or two; attributes count too, since each is an object of its size.
        if data.count(b"<") > 2 * self._most_elements or data.count(b"=") > 2 * self._most_elements:
            raise Refused(413, f"more than {self._most_elements} elements")
        return data


def judge(check: BodyCheck | None, data: bytes, what: str) -> None:
    """Check the body of an envelope against the schemas; log what is only a warning.

    Args:
        check: the check; None for no check.
        data: the envelope.
        what: what the envelope is, for the log.

    Raises:
        DecodeError: the body is not valid, and `check` requires that it is.
    """
    if check is not None and (warnings := check.check(data)):
        log.warning("%s with %d warnings, the first: %s", what, len(warnings), warnings[0])
