"""Objects of some classes out of a document of any size, in constant memory."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeVar, cast

from lxml import etree

from mtosi_jms.errors import ConfigError, MalformedXmlError
from mtosi_jms.xmlbind._issues import Once, XmlWarning
from mtosi_jms.xmlbind._parser import DEFAULT_LIMITS, Limits, make_pull_parser, refuse_doctype, syntax_error
from mtosi_jms.xmlbind._table import XmlObject
from mtosi_jms.xmlbind._walker import Placed, Walker

T = TypeVar("T", bound=XmlObject)

Source = str | Path | IO[bytes] | bytes

_CHUNK: Final = 1 << 16
_ENOUGH_TO_TELL: Final = 64  # bytes from which the parser can tell the encoding


def iter_decode(
    source: Source,
    cls: type[T] | tuple[type[T], ...],
    *,
    warnings: list[XmlWarning] | None = None,
    strict: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[T]:
    """Decode the objects of one class or several, wherever they stand in a document, one at a time.

        for port in iter_decode("inventory.xml.gz", PhysicalTerminationPointType):
            print(port.name, port.direction)

    Of several classes each gives what it would give by itself, an object of two of them once. Objects come in the order
    in which they end, so one that holds others comes after them, and whole. An object inside another one of the same
    class is a part of it and does not come by itself.

    Memory is that of the largest object; what is not asked for is not kept, and nothing is reported of it.

    Args:
        source: a file name (gzip is unpacked, whatever the name), an open binary file, or the document itself.
        cls: class of the objects, or a tuple of classes; objects of derived classes count.
        warnings: takes what did not fit the schema, each thing once.
        strict: raise the first warning instead.
        limits: bounds on depth and text length; the size of the document is not bounded.

    Objects that are nil are passed over: they have no value of their class.

    Raises:
        MalformedXmlError, ForbiddenXmlError: when the parser meets the fault; objects before it were yielded.
        DecodeError: in strict mode.
        ConfigError: the file was opened as text, `source` can be no file, or no class is given.
        OSError: the file cannot be read.
    """
    return _read_objects(source, cls, warnings, strict, limits, placed=False)


def iter_placed(
    source: Source,
    cls: type[T] | tuple[type[T], ...],
    *,
    warnings: list[XmlWarning] | None = None,
    strict: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Placed[T]]:
    """As `iter_decode`, each object together with the elements around it.

        for found in iter_placed("inventory.xml.gz", ConnectionTerminationPointType):
            port = found.around(PhysicalTerminationPointInventoryType)
            element = found.around(ManagedElementInventoryType)
            print(element.me_nm, port.ptp_nm, found.value.direction)

    Of an element around an object its attributes and those children are kept that stand before the object, may stand
    there once, are no lists, and are asked for themselves or cannot hold what is asked for: in the inventory layout the
    short name and the attributes. A part of more than 10,000 elements is left out. So memory does not grow with the
    number of objects, however many stand in one list.

    Warnings about the elements around an object come with the first object inside them: unknown attributes, unknown
    or repeated children (once for each name), and what does not fit in the parts that are kept. The order of children,
    missing ones and stray text are looked at in whole objects only.

    Args, errors: as for `iter_decode`. Strict mode raises at the warnings above too.
    """
    return _read_objects(source, cls, warnings, strict, limits, placed=True)


def _read_objects(
    source: Source,
    cls: Any,
    warnings: list[XmlWarning] | None,
    strict: bool,
    limits: Limits,
    *,
    placed: bool,
) -> Iterator[Any]:
    classes = cls if isinstance(cls, tuple) else (cls,)
    if not classes or not all(isinstance(each, type) and issubclass(each, XmlObject) for each in classes):
        raise ConfigError("iter_decode takes a generated class, or a tuple of them")
    issues = Once(strict=strict, found=warnings if warnings is not None else [], source=_name(source))
    walker = Walker(make_pull_parser(limits), tuple(dict.fromkeys(classes)), issues, limits, placed=placed)
    return _walk(source, walker)


def _name(source: Any) -> str | None:
    if isinstance(source, str | Path):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else None


def _open(source: Source) -> Any:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return io.BytesIO(source)
    if isinstance(source, str | Path):
        return _opened(source)
    if not hasattr(source, "read"):
        raise ConfigError(f"a file name, an open file or bytes are needed, not {type(source).__name__}")
    return contextlib.nullcontext(source)


@contextlib.contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below
    except ValueError as error:
        raise ConfigError(f"{str(path)!r:.60} is no file name: {error}") from None
    with file as stream:
        if str(path).endswith(".gz") or stream.peek(2).startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield cast("IO[bytes]", unpacked)
        else:
            yield stream


def _walk(source: Source, walker: Walker) -> Iterator[Any]:
    parser, name = walker.parser, _name(source)
    with _open(source) as stream:
        try:
            for chunk in _chunks(stream, name):
                parser.feed(chunk)
                yield from walker.found()
            parser.close()
        except etree.XMLSyntaxError as error:
            yield from walker.found()  # what the parser had seen before it
            raise syntax_error(error, name) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise MalformedXmlError(f"damaged gzip file: {error}", source=name, line=walker.line) from None
        yield from walker.found()


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
