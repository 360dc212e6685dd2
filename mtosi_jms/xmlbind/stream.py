"""Objects of one class out of a document of any size, in constant memory."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from lxml import etree

from mtosi_jms.errors import ConfigError, MalformedXmlError
from mtosi_jms.namespaces import SOAP11, SOAP12, split_clark
from mtosi_jms.xmlbind.decoder import Reader, decode_root
from mtosi_jms.xmlbind.issues import Issues, XmlWarning
from mtosi_jms.xmlbind.parser import (
    DEFAULT_LIMITS,
    Limits,
    make_pull_parser,
    refuse_doctype,
    refuse_dtd,
    syntax_error,
    too_deep,
)
from mtosi_jms.xmlbind.plan import OBJECT, plan_of
from mtosi_jms.xmlbind.registry import XSI_TYPE, find_element
from mtosi_jms.xmlbind.table import ClassTable
from mtosi_jms.xmlbind.values import XmlObject

T = TypeVar("T", bound=XmlObject)

_CHUNK: Final = 1 << 16
_ENOUGH_TO_TELL: Final = 64  # bytes from which the parser can tell the encoding
_WRAPPERS = {f"{{{space}}}{name}" for space in (SOAP11, SOAP12) for name in ("Envelope", "Body")}


def iter_decode(
    source: str | Path | IO[bytes] | bytes,
    cls: type[T],
    *,
    warnings: list[XmlWarning] | None = None,
    strict: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[T]:
    """Decode the objects of one class, wherever they stand in a document, one at a time.

    Args:
        source: a file name (`.gz` is unpacked), an open binary file, or the document itself.
        cls: class of the objects; objects of derived classes count.
        warnings: takes what did not fit the schema.
        strict: raise the first warning instead.
        limits: bounds on depth and text length; the size of the document is not bounded.

    Objects that are nil are passed over: they have no value of their class.

    Raises:
        MalformedXmlError, ForbiddenXmlError: when the parser meets the fault; objects before it were yielded.
        DecodeError: in strict mode.
        ConfigError: the file was opened as text.
        OSError: the file cannot be read.
    """
    issues = Issues(strict=strict, found=warnings if warnings is not None else [], source=_name(source))
    with _open(source) as stream:
        yield from _walk(stream, cls, issues, limits)


def _name(source: Any) -> str | None:
    if isinstance(source, str | Path):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else None


def _open(source: str | Path | IO[bytes] | bytes) -> Any:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return io.BytesIO(source)
    if not isinstance(source, str | Path):
        return contextlib.nullcontext(source)
    return gzip.open(source, "rb") if str(source).endswith(".gz") else Path(source).open("rb")


def _walk(stream: IO[bytes], cls: type[T], issues: Issues, limits: Limits) -> Iterator[T]:
    parser = make_pull_parser(limits)
    events = _Events(parser, cls, issues, limits)
    try:
        for chunk in _chunks(stream, issues.source):
            parser.feed(chunk)
            yield from events.objects()
        parser.close()
    except etree.XMLSyntaxError as error:
        yield from events.objects()  # what the parser had seen before it
        raise syntax_error(error, issues.source) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise MalformedXmlError(f"damaged gzip file: {error}", source=issues.source, line=events.line) from None
    yield from events.objects()


def _chunks(stream: IO[bytes], source: str | None) -> Iterator[bytes]:
    """The document in pieces, the first of which tells the encoding."""
    first = b""
    while len(first) < _ENOUGH_TO_TELL and (more := _read(stream)):
        first += more
    if not first:
        raise MalformedXmlError("empty document", source=source, line=1)
    refuse_doctype(first, source)
    yield first
    while chunk := _read(stream):
        yield chunk


def _read(stream: IO[bytes]) -> bytes:
    chunk = stream.read(_CHUNK)
    if not isinstance(chunk, (bytes, bytearray)):
        raise ConfigError("a file of text: open it in binary mode")
    return bytes(chunk)


class _Events:
    """Follows the parser down and up: knows the class of each open element, and gives out what is asked for.

    Attributes:
        line: the last line that an element began on.
    """

    def __init__(self, parser: Any, cls: type[XmlObject], issues: Issues, limits: Limits) -> None:
        self._parser = parser
        self._cls = cls
        self._issues = issues
        self._limits = limits
        self._tables: list[ClassTable | None] = []
        self._steps: list[str] = []
        self._counts: list[dict[str, int]] = [{}]
        self._inside = 0  # depth below the object that is being read, itself included
        self.line: int | None = None

    def objects(self) -> Iterator[Any]:
        """The objects that became whole since the last call."""
        for event, element in self._parser.read_events():
            if event == "start":
                self._start(element)
            elif self._inside > 1:
                self._inside -= 1
            else:
                table = self._tables.pop()
                if self._inside and table is not None:
                    yield from self._object(element, table)
                self._inside = 0
                self._counts.pop()
                self._steps.pop()
                _forget(element)

    def _object(self, element: etree._Element, table: ClassTable) -> Iterator[Any]:
        self._issues.start_at(element, "/" + "/".join(self._steps))
        value = decode_root(element, table.cls, self._issues)
        if isinstance(value, self._cls):
            yield value

    def _start(self, element: etree._Element) -> None:
        if len(self._tables) + max(self._inside - 1, 0) >= self._limits.max_depth:
            raise too_deep(self._limits, self._issues.source, element.sourceline)
        if self._inside:
            self._inside += 1
            return
        if not self._tables:
            refuse_dtd(element, self._issues.source)
        self.line = element.sourceline
        tag = str(element.tag)
        table = None if tag in _WRAPPERS else self._table(element, tag)
        self._tables.append(table)
        self._inside = int(table is not None and issubclass(table.cls, self._cls))
        count = self._counts[-1].get(tag, 0) + 1
        self._counts[-1][tag] = count
        self._counts.append({})
        local = split_clark(tag)[1]
        self._steps.append(local if count == 1 else f"{local}[{count}]")

    def _table(self, element: etree._Element, tag: str) -> ClassTable | None:
        parent = self._tables[-1] if self._tables else None
        slot = plan_of(parent).slots.get(tag) if parent is not None else None
        if slot is not None and slot.kind == OBJECT:
            return self._typed(element, slot.target)
        found = find_element(tag, parent.module.root if parent is not None else None)
        return self._typed(element, found.__xml__) if found is not None else None

    def _typed(self, element: etree._Element, table: ClassTable) -> ClassTable:
        """The table that an xsi:type names, else the declared one."""
        text = element.get(XSI_TYPE)
        derived = Reader(Issues()).derived(element, text, table) if text is not None else None
        return derived or table


def _forget(element: etree._Element) -> None:
    """Let go of an element that was read, and of those before it, so that memory does not grow with the document."""
    element.clear(keep_tail=False)
    parent = element.getparent()
    while parent is not None and (before := element.getprevious()) is not None:
        parent.remove(before)
