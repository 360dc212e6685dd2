"""One landed file: opening it (plain, gzip, in an archive), scanning its head, proving that it is well-formed.

Nothing here holds more than `whole_file_bytes` of a file. Whatever is wrong with a file comes out as an `XmlError`
with its line, or as a `SpoolError` where it cannot be read.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast

from lxml import etree

from mtosi_jms.bulk import DEFAULT_BOUNDS, GZIP_MAGIC, BoundedStream
from mtosi_jms.errors import EnvelopeError, MalformedXmlError, MtosiError, SpoolError
from mtosi_jms.namespaces import SOAP11, SOAP12, clark
from mtosi_jms.spark._envelope import EnvelopeFacts, envelope_facts, soap_namespace
from mtosi_jms.spark._packed import SHELF, split_member
from mtosi_jms.xmlbind import HARDENED, parse_xml, refuse_doctype, syntax_error

CHUNK: Final = 64 * 1024
_HEAD: Final = 8 * 1024
_TAIL: Final = 1024
_END_TAG = re.compile(
    rb"</(?:[^\s<>/:]+:)?Envelope\s*>\s*(?:<!--(?:(?!-->).)*-->\s*|<\?(?:(?!\?>).)*\?>\s*)*", re.DOTALL
)
_FAULTS: Final = (clark(SOAP11, "Fault"), clark(SOAP12, "Fault"))


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """A landed file for reading, decompressed where it is gzip, whatever its name.

    Args:
        path: the file, or `ARCHIVE!/MEMBER`.

    Raises:
        SpoolError: it cannot be read.
        ArchiveError: the archive is damaged or unsafe, or more comes out of it than is allowed, while it is read.
        MalformedXmlError: the compressed data is damaged or ends early.
    """
    archive, member = split_member(path)
    try:
        if member:
            with SHELF.member(archive, member) as stream:
                yield stream
            return
        with Path(path).open("rb") as raw:
            magic = raw.read(2)
            raw.seek(0)
            yield _unzipped(raw, path) if magic == GZIP_MAGIC else raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise MalformedXmlError(f"damaged gzip: {error}", source=path) from None
    except MtosiError:
        raise
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error


def _unzipped(raw: IO[bytes], path: str) -> IO[bytes]:
    unpacked = cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    most = DEFAULT_BOUNDS.allowed(os.fstat(raw.fileno()).st_size)
    return cast("IO[bytes]", BoundedStream(unpacked, path, most))


def read_whole(stream: IO[bytes], limit: int) -> bytes | None:
    """All bytes of a stream, None if they are more than `limit`."""
    data = stream.read(limit + 1)
    return None if len(data) > limit else data


def scan_head(path: str) -> EnvelopeFacts:
    """The facts of an envelope, read from its head, and proof that it does not end early.

    A file that is damaged between head and end is not found here; `verify` finds it.

    Raises:
        XmlError: not well-formed as far as was looked, ends early, a DTD, no SOAP, no MTOSI header, wrong kind.
        SpoolError: the file cannot be read.
    """
    with opened(path) as stream:
        head = _Head(path)
        facts = head.read(stream)
        if head.ended or _ends_well(stream):
            return facts
    verify(path, CHUNK)
    return facts


class _Head:
    """Feeds a parser until the first element of the body has begun."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.ended = False
        self._depth = 0
        self._root: etree._Element | None = None
        self._parser = etree.XMLPullParser(events=("start", "end"), **HARDENED)

    def read(self, stream: IO[bytes]) -> EnvelopeFacts:
        first = True
        while True:
            data = stream.read(_HEAD)
            if first:
                _check_start(data, self.path)
                first = False
            self._feed(data)
            if self._far_enough() or self.ended:
                break
        if self._root is None:
            raise MalformedXmlError("no element", source=self.path, line=1)
        with named(self.path):
            return envelope_facts(self._root)

    def _feed(self, data: bytes) -> None:
        try:
            if data:
                self._parser.feed(data)
            else:
                self.ended = True
                self._parser.close()
        except etree.XMLSyntaxError as error:
            raise syntax_error(error, self.path) from None

    def _far_enough(self) -> bool:
        """Whether the first element of the body has begun, or, being a fault, has ended."""
        for event, element in self._parser.read_events():
            self._depth += 1 if event == "start" else -1
            if self._root is None:
                self._root = element
                with named(self.path):
                    soap_namespace(element)
            depth = self._depth if event == "start" else self._depth + 1
            parent = element.getparent() if depth == 3 else None
            if parent is not None and str(parent.tag).endswith("}Body"):
                is_fault = element.tag in _FAULTS
                if is_fault == (event == "end"):
                    return True
        return False


@contextmanager
def named(path: str) -> Iterator[None]:
    """Gives errors about envelopes the name of their file."""
    try:
        yield
    except EnvelopeError as error:
        if error.source is None:
            error.source = path
        raise


def _check_start(data: bytes, path: str) -> None:
    if not data.strip():
        raise MalformedXmlError("empty file", source=path, line=1)
    refuse_doctype(data, path)


def _ends_well(stream: IO[bytes]) -> bool:
    """Whether the last bytes are the end tag of an envelope, with nothing but comments behind it."""
    if not isinstance(stream, io.BufferedReader):
        tail = b""
        while data := stream.read(CHUNK):
            tail = (tail + data)[-_TAIL:]
    else:
        stream.seek(0, io.SEEK_END)
        stream.seek(max(0, stream.tell() - _TAIL))
        tail = stream.read()
    tail = tail.replace(b"\0", b"").rstrip()
    start = tail.rfind(b"Envelope")
    open_tag = tail.rfind(b"</", 0, start) if start >= 0 else -1
    return open_tag >= 0 and _END_TAG.fullmatch(tail, open_tag) is not None


class _Nothing:
    """A parser target that builds nothing."""

    def close(self) -> None:
        return None


def verify(path: str, whole_file_bytes: int) -> None:
    """Parse a file to its end for no other reason than to know that it can be parsed.

    Raises:
        XmlError: it cannot; with the line.
        SpoolError: the file cannot be read.
    """
    with opened(path) as stream:
        data = read_whole(stream, whole_file_bytes)
    if data is not None:
        parse_xml(data, source=path)
    else:
        feed_target(path, _Nothing())


def feed_target(path: str, target: Any) -> Any:
    """Feed a file of any size to a parser target, in constant memory, and return what its `close` returns.

    Raises:
        XmlError: the file is not well-formed.
        SpoolError: the file cannot be read.
    """
    parser = etree.XMLParser(target=target, huge_tree=False, **HARDENED)
    with opened(path) as stream:
        data = stream.read(CHUNK)
        _check_start(data, path)
        try:
            while data:
                parser.feed(data)
                data = stream.read(CHUNK)
            return parser.close()
        except etree.XMLSyntaxError as error:
            raise syntax_error(error, path) from None


def ends_early(document: str | bytes) -> bool:
    """Whether a document that is not well-formed has no fault but that it stops: all of it could go on.

    Args:
        document: path of the file, or the bytes.
    """
    parser = etree.XMLParser(target=_Nothing(), huge_tree=False, **HARDENED)
    try:
        with opened(document) if isinstance(document, str) else io.BytesIO(document) as stream:
            while data := stream.read(CHUNK):
                parser.feed(data)
    except (etree.XMLSyntaxError, MtosiError):
        return False
    return len(parser.feed_error_log) == 0
