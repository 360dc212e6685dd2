"""Objects of one class out of a document of any size, in constant memory."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from lxml import etree

from mtosi_jms.errors import MalformedXmlError
from mtosi_jms.namespaces import SOAP11, SOAP12
from mtosi_jms.xmlbind.decoder import decode_root
from mtosi_jms.xmlbind.issues import Issues, XmlWarning
from mtosi_jms.xmlbind.parser import DEFAULT_LIMITS, Limits, refuse_doctype, syntax_error
from mtosi_jms.xmlbind.plan import OBJECT, plan_of
from mtosi_jms.xmlbind.registry import find_element
from mtosi_jms.xmlbind.table import ClassTable
from mtosi_jms.xmlbind.values import XmlObject

T = TypeVar("T", bound=XmlObject)

_CHUNK = 1 << 16
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

    Raises:
        MalformedXmlError, ForbiddenXmlError: when the parser meets the fault; objects before it were yielded.
        DecodeError: in strict mode.
        OSError: the file cannot be read.
    """
    issues = Issues(strict=strict, found=warnings if warnings is not None else [], source=_name(source))
    with _open(source) as stream:
        yield from _walk(stream, cls, issues, limits)


def _name(source: Any) -> str | None:
    return str(source) if isinstance(source, str | Path) else getattr(source, "name", None)


def _open(source: str | Path | IO[bytes] | bytes) -> Any:
    import contextlib
    import io

    if isinstance(source, bytes):
        return io.BytesIO(source)
    if not isinstance(source, str | Path):
        return contextlib.nullcontext(source)
    return gzip.open(source, "rb") if str(source).endswith(".gz") else Path(source).open("rb")


def _walk(stream: IO[bytes], cls: type[T], issues: Issues, limits: Limits) -> Iterator[T]:
    parser = etree.XMLPullParser(
        events=("start", "end"),
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=limits.huge,
    )
    finder = _Finder(cls)
    first = True
    try:
        while chunk := stream.read(_CHUNK):
            if first:
                refuse_doctype(chunk, issues.source)
                first = False
            parser.feed(chunk)
            yield from _events(parser, finder, issues)
        if first:
            raise MalformedXmlError("empty document", source=issues.source, line=1)
        parser.close()
        yield from _events(parser, finder, issues)
    except etree.XMLSyntaxError as error:
        raise syntax_error(error, issues.source) from None
    except (EOFError, gzip.BadGzipFile) as error:
        raise MalformedXmlError(f"damaged gzip file: {error}", source=issues.source) from None


def _events(parser: Any, finder: _Finder, issues: Issues) -> Iterator[Any]:
    for event, element in parser.read_events():
        if event == "start":
            finder.start(element)
            continue
        table = finder.end()
        if table is not None:
            yield decode_root(element, table.cls, issues)
        if not finder.inside:
            element.clear(keep_tail=False)
            while (before := element.getprevious()) is not None:
                element.getparent().remove(before)


class _Finder:
    """Knows, while the parser goes down and up, which table each element has and which of them are asked for."""

    def __init__(self, cls: type[XmlObject]) -> None:
        self._cls = cls
        self._tables: list[ClassTable | None] = []
        self._hits = 0

    @property
    def inside(self) -> bool:
        """Whether the element that just ended lies in an object that is still being read."""
        return self._hits > 0

    def start(self, element: etree._Element) -> None:
        """An element begins."""
        table = None if element.tag in _WRAPPERS else self._table(element)
        self._tables.append(table)
        if table is not None and issubclass(table.cls, self._cls):
            self._hits += 1

    def end(self) -> ClassTable | None:
        """An element ends: its table if it is an object asked for that lies in no other."""
        table = self._tables.pop()
        if table is None or not issubclass(table.cls, self._cls):
            return None
        self._hits -= 1
        return table if self._hits == 0 else None

    def _table(self, element: etree._Element) -> ClassTable | None:
        parent = self._tables[-1] if self._tables else None
        if parent is not None:
            slot = plan_of(parent).slots.get(str(element.tag))
            if slot is not None and slot.kind == OBJECT:
                target: ClassTable = slot.target
                return target
        found = find_element(str(element.tag), parent.module.root if parent is not None else None)
        return found.__xml__ if found is not None else None
