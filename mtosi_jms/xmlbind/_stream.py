"""Decode the objects of chosen classes from an XML document of any size, one at a time, without loading it whole."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from lxml import etree

from mtosi_jms.compression import DAMAGED, damages, decompress
from mtosi_jms.errors import ConfigError, MalformedXmlError
from mtosi_jms.xmlbind._issues import Once, XmlWarning
from mtosi_jms.xmlbind._native import native_stream
from mtosi_jms.xmlbind._objects import XmlObject
from mtosi_jms.xmlbind._parser import DEFAULT_LIMITS, XmlLimits, make_pull_parser, refuse_doctype, syntax_error
from mtosi_jms.xmlbind._table import ClassTable
from mtosi_jms.xmlbind._walker import Placed, Walker, declared

T = TypeVar("T", bound=XmlObject)

Source = str | Path | IO[bytes] | bytes

_CHUNK: Final = 1 << 16
_ENOUGH_TO_TELL: Final = 64  # bytes that are enough to detect the encoding
_MOST_PENDING: Final = 1 << 20
"""If no object ends within this number of octets, the native core leaves the document to the walker."""
_CLOSED: Final = b"<document/>"
"""The parser gets this instead of a document whose root has ended."""


def iter_decode(
    source: Source,
    cls: type[T] | tuple[type[T], ...],
    *,
    warnings: list[XmlWarning] | None = None,
    strict: bool = False,
    limits: XmlLimits = DEFAULT_LIMITS,
) -> Iterator[T]:
    """Decode all objects of one or more classes from a document, at any depth, one at a time.

        for port in iter_decode("inventory.xml.gz", PhysicalTerminationPointType):
            print(port.name, port.direction)

    A tuple of classes yields the objects that each class alone would yield. An object that is an instance of two of the
    classes comes once. Objects come in the order of their end tags: an inner object comes first, then the outer object,
    which contains the inner one too. An object inside an object of the same class does not come separately.

    Memory use depends on the largest object, not on the document. Elements outside the chosen objects are dropped and
    cause no warnings.

    The iterator skips nil objects (`xsi:nil`).

    Args:
        source: a file name, an open binary file, or the document as bytes. A file name may refer to a gzip or Zstandard
            file, whatever its suffix is.
        cls: class of the objects, or a tuple of classes; includes derived classes.
        warnings: list that receives the deviations from the schema, each one once.
        strict: raise the first warning as an error instead.
        limits: maximum depth and text length. The size of the document has no limit, but an element must begin or end
            within 32 MiB, unless the limits are `huge`.

    Raises:
        MalformedXmlError, ForbiddenXmlError: the parser found an error; the objects before it were already yielded.
        DecodeError: in strict mode, the document deviates from the schema.
        ConfigError: the file was opened in text mode, `source` has the wrong type or is not a valid file name, or
            `cls` contains no generated class.
        MissingExtraError: the file is Zstandard, and this Python lacks the library.
        OSError: the file cannot be read.
    """
    return _read_objects(source, cls, warnings, strict, limits, placed=False)


def iter_placed(
    source: Source,
    cls: type[T] | tuple[type[T], ...],
    *,
    warnings: list[XmlWarning] | None = None,
    strict: bool = False,
    limits: XmlLimits = DEFAULT_LIMITS,
) -> Iterator[Placed[T]]:
    """Like `iter_decode`, but yield each object together with the elements that enclose it.

        for found in iter_placed("inventory.xml.gz", ConnectionTerminationPointType):
            port = found.around(PhysicalTerminationPointInventoryType)
            element = found.around(ManagedElementInventoryType)
            print(element.me_nm, port.ptp_nm, found.value.direction)

    An enclosing element has its XML attributes and some of its children. It has a child if all of this is true:

    - The child comes before the object.
    - The schema allows the child at most once.
    - The child has one of the classes in `cls`, or it is not a list and cannot contain objects of these classes.
    - The child has at most 10,000 elements.

    In the inventory layout, these children are the short name (`me_nm`) and the attributes (`me_attrs`). Memory use
    therefore does not grow with the number of objects, even if one list contains all of them.

    Enclosing elements cause warnings too: for unknown XML attributes, for unknown or repeated children (once per child
    name), and for deviations inside the children above. They come with the next object inside the element. Only the
    decoded objects are checked for the order of children, missing children and stray text.

    Arguments and errors: see `iter_decode`. Strict mode also raises the warnings about enclosing elements.
    """
    return _read_objects(source, cls, warnings, strict, limits, placed=True)


def _read_objects(
    source: Source,
    cls: Any,
    warnings: list[XmlWarning] | None,
    strict: bool,
    limits: XmlLimits,
    *,
    placed: bool,
) -> Iterator[Any]:
    classes = cls if isinstance(cls, tuple) else (cls,)
    if not classes or not all(isinstance(each, type) and issubclass(each, XmlObject) for each in classes):
        raise ConfigError("iter_decode takes a generated class, or a tuple of them")
    issues = Once(strict=strict, found=warnings if warnings is not None else [], source=_name(source))
    classes = tuple(dict.fromkeys(classes))
    walker = Walker(make_pull_parser(limits), classes, issues, limits, placed=placed)
    stream = None
    if len(classes) == 1 and not placed:  # an object of a single class is not searched for others
        stream = native_stream(lambda above, tag: _lookup(above, tag, classes), limits)
    return _walk(source, walker, stream)


def _lookup(above: ClassTable | None, tag: str, classes: tuple[type[XmlObject], ...]) -> tuple[ClassTable | None, bool]:
    """Return the table of the class of an element, by its parent or its name, and whether it is an object to yield."""
    table = declared(above, tag).table
    return table, table is not None and issubclass(table.cls, classes)


def _name(source: Any) -> str | None:
    if isinstance(source, str | Path):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else None


def _open(source: Source) -> Any:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return io.BytesIO(source)
    if isinstance(source, str | Path):
        try:
            return Path(source).open("rb")
        except ValueError as error:
            raise ConfigError(f"{str(source)!r:.60} is not a file name: {error}") from None
    if not hasattr(source, "read"):
        raise ConfigError(f"a file name, an open file or bytes are needed, not {type(source).__name__}")
    return contextlib.nullcontext(source)


def _walk(source: Source, walker: Walker, stream: Any) -> Iterator[Any]:
    parser, name = walker.parser, _name(source)
    with _open(source) as file:
        try:
            chunks = _chunks(decompress(file) if isinstance(source, str | Path) else file, name)
            if stream is not None:
                rest = yield from _natively(stream, chunks, walker)
                if rest is None:
                    return
                chunks = chain(rest, chunks)
            for chunk in chunks:
                yield from walker.feed(chunk)
            parser.close()
        except etree.XMLSyntaxError as error:
            yield from walker.found()  # objects that ended before the syntax error
            raise syntax_error(error, name) from None
        except damages() as error:
            line = walker.line if stream is None or walker.line is not None else stream.open()[1]
            raise MalformedXmlError(f"{DAMAGED}: {error}", source=name, line=line) from None
        yield from walker.found()


def _natively(stream: Any, chunks: Iterator[bytes], walker: Walker) -> Generator[Any, None, tuple[bytes, ...] | None]:
    """Yield the objects that the native core makes.

    Returns:
        None at the end of the document. Otherwise the octets with which the walker continues, before all other chunks;
        the walker then already knows the open elements around them.
    """
    pending = b""
    taken = 0
    for chunk in chain(chunks, (None,)):
        pending += chunk or b""
        while True:
            result = stream.feed(pending, chunk is None)
            if result is None or (result[0] == 0 and len(pending) > _MOST_PENDING):
                return _handed_over(stream, pending, walker, taken)
            done, found, ended = result
            for item in found:
                value = walker.again(*item) if type(item) is tuple else item
                if value is not None:
                    yield value
            pending = pending[done:]
            taken += done
            if ended and chunk is None:
                return None
            if chunk is not None:
                break
    return None


def _handed_over(stream: Any, pending: bytes, walker: Walker, taken: int) -> tuple[bytes, ...]:
    """Move the walker to the place where the native core stopped, on the same line of the document."""
    if not taken:
        return (pending,)
    above, line = stream.open()
    head = b""
    at = 1
    for start_tag, begins, _, _ in above:
        head += b"\n" * (begins - at) + start_tag
        at = begins + start_tag.count(b"\n")
    walker.parser.feed(head or _CLOSED)
    walker.go_on([(path, counts) for _, _, path, counts in above])
    return b"\n" * (line - at), pending


def _chunks(stream: IO[bytes], source: str | None) -> Iterator[bytes]:
    """Read the document in chunks. The first chunk is long enough to detect the encoding, and has no DOCTYPE."""
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
