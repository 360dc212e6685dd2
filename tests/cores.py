"""Compares both XML cores in one process, and changes documents at random."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

import pytest

from mtosi_jms import xmlbind
from mtosi_jms.errors import MtosiError
from mtosi_jms.xmlbind import DEFAULT_LIMITS, XmlLimits
from mtosi_jms.xmlbind import _native as native

PIECES: Final = (
    b"", b" ", b"\n", b"\r\n", b"\r", b"\t", b"<", b">", b"/", b"&", b"&amp;", b"&lt;", b"&#10;", b"&#x41;", b"&#0;",
    b"&#xD800;", b"&#xFFFE;", b"&nope;", b"&#1114112;", b"]]>", b"]]", b"<!-- c -->", b"<!-- -- -->", b"<!--->",
    b"<!-- a --->", b"<?p i?>", b"<?p?>", b"<?xml i?>", b"<?p:q i?>", b"<?p", b"<![CDATA[x<y]]>", b"<![CDATA[]]>",
    b"<![CDATA[ \n ]]>", b"<![CDATA[", b"<a/>", b"<a></a>", b"<a>", b"</a>", b"<!DOCTYPE a>", b"<!", b"\0", b"\x01",
    b"\x7f", b"\xff", b"\xc3\xa9", b"\xe2\x80\xa8", b"\xef\xbf\xbe", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80",
    b"\xed\xa0\x80", b"\xc0\x80", b" a='1'", b" a='1' a='2'", b" a = \"1\"", b" xmlns=''", b" xmlns='urn:other'",
    b" xmlns:c='urn:test:constructs'", b" xmlns:d='urn:test:constructs'", b" xmlns:e=''", b" xmlns:xml='urn:x'",
    b" xmlns:xmlns='urn:x'", b" xmlns:f='relative'", b" xmlns:g='urn:a b'", b" xmlns:h='http://h:80/'",
    b" xmlns:i='http://[::1'", b" c:a='1'", b" d:a='1'", b" z:a='1'", b" xml:lang='en'", b" xml:space='x'",
    b" xml:id='1'", b" xmlns:x='http://www.w3.org/2001/XMLSchema-instance'", b" x:nil='true'", b" x:nil='1'",
    b" xsi:nil='true'", b" xsi:nil='false'", b" xsi:type='c:CircleType'", b" xsi:type='nope'",
    b" xsi:schemaLocation='a b'", b" a='&lt;'", b" a='<'", b" a='\n'", b"0", b"-1", b"true", b"text", b"2024-01-01",
    b"a:b", b":", b"x" * 300,
)  # fmt: skip


def described(value: Any) -> Any:
    """A value in a form that compares by type and content, with extras and NaN."""
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(described, value)]
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return (type(value).__name__, str(value), value in type(value).__members__.values())
    if isinstance(value, xmlbind.RawXml):
        return (value.tag, value.xml)
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__qualname__, {one.name: described(getattr(value, one.name)) for one in fields(value)})
    return (type(value).__name__, repr(value))


@contextmanager
def core(name: str) -> Iterator[None]:
    """Use one core while the block runs; skips where the native one is not built."""
    if name == "native":
        pytest.importorskip("mtosi_jms.xmlbind._core", reason="the native core is not built")
    before = native._CHOSEN
    native._CHOSEN = native._choose(name)
    try:
        yield
    finally:
        native._CHOSEN = before


def outcome(
    name: str, data: bytes, cls: Any = None, *, strict: bool = False, limits: XmlLimits = DEFAULT_LIMITS
) -> tuple[Any, ...]:
    """The result of a core for a document: the object, its encoding, and the warnings; or the error."""
    warnings: list[xmlbind.XmlWarning] = []
    with core(name):
        try:
            value = xmlbind.decode(data, cls, warnings=warnings, strict=strict, source="a document", limits=limits)
        except MtosiError as error:
            return "error", type(error).__name__, str(error)
        return "value", described(value), written(name, value), warnings


def written(name: str, value: Any) -> bytes | str:
    """The octets that a core writes for a value, or the error."""
    with core(name):
        try:
            return xmlbind.encode(value)
        except MtosiError as error:
            return str(error)


def difference(data: bytes, cls: Any = None, *, limits: XmlLimits = DEFAULT_LIMITS) -> str:
    """The difference between the cores; empty if there is none."""
    for strict in (False, True):
        ours, theirs = (outcome(name, data, cls, strict=strict, limits=limits) for name in ("native", "python"))
        if ours != theirs:
            return f"{data!r}\nstrict={strict}\nnative: {ours}\npython: {theirs}"
    return ""


class Pieces(io.BytesIO):
    """A document that arrives in pieces of a size."""

    size = 1 << 16

    def read(self, count: int | None = -1, /) -> bytes:
        """The next piece."""
        return super().read(self.size if count is None or count < 0 else min(self.size, count))


def iterated(name: str, data: bytes, cls: Any, size: int, *, strict: bool = False) -> tuple[Any, ...]:
    """What `iter_decode` of a core makes of a document that comes in pieces: objects, warnings, and the kind of error;
    which text libxml2 has for it depends on the pieces."""
    source, warnings, found, end = Pieces(data), list[xmlbind.XmlWarning](), list[Any](), ""
    source.size = size
    with core(name):
        try:
            found += map(described, xmlbind.iter_decode(source, cls, warnings=warnings, strict=strict))
        except MtosiError as error:
            end = type(error).__name__
    return found, warnings, end


def is_read_natively(data: bytes, cls: Any = None, *, limits: XmlLimits = DEFAULT_LIMITS) -> bool:
    """Whether the native core reads a whole document without the tree."""
    with core("native"):
        found = native.read_natively(data, cls, warnings=[], strict=False, source=None, limits=limits)
    return found is not None


def changed(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """A document with a few changes: octets flipped, cut out, doubled, put in, moved, or taken from another one."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = chance.choice(_CHANGES)(data, chance, others)
    return data


def _place(data: bytes, chance: random.Random) -> int:
    """A position, mostly one where markup begins or ends."""
    at = chance.randrange(len(data) + 1)
    if chance.random() < 0.7:
        found = data.find(chance.choice((b"<", b">", b" ", b"</", b"=", b'"')), at)
        at = found + chance.choice((0, 1)) if found >= 0 else at
    return at


def _flip(data: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    at = chance.randrange(len(data) or 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    start, end = sorted((_place(data, chance), _place(data, chance)))
    end = min(end, start + chance.choice((1, 5, 50, 500)))
    return data[:start] + data[end:]


def _double(data: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    start, end = sorted((_place(data, chance), _place(data, chance)))
    end = min(end, start + chance.choice((1, 20, 200, 1000)))
    return data[:end] + data[start:end] + data[end:]


def _put(data: bytes, chance: random.Random, _: list[bytes]) -> bytes:
    at = _place(data, chance)
    return data[:at] + chance.choice(PIECES) + data[at:]


def _elements(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Double, drop or empty an element, or replace it by another one."""
    start = data.find(b"<", chance.randrange(len(data) + 1))
    name = data[start + 1 :].replace(b">", b" ").replace(b"/", b" ").split(b" ", 1)[0] if start >= 0 else b""
    end = data.find(b"</" + name + b">", start) if name else -1
    if end < 0:
        return data
    end += len(name) + 3
    whole = data[start:end]
    other = chance.choice(others)
    at = other.find(b"<", chance.randrange(len(other)))
    piece = chance.choice(PIECES)
    emptied = (b"<" + name + b"/>", b"<" + name + b">" + piece + b"</" + name + b">")
    made = (
        *emptied,
        whole + whole,
        b"",
        other[at : at + chance.choice((10, 100))],
        b"<unknown/>" + whole,
        whole + piece,
    )
    return data[:start] + chance.choice(made) + data[end:]


_CHANGES: Final[tuple[Callable[[bytes, random.Random, list[bytes]], bytes], ...]] = (
    _flip, _cut, _double, _put, _put, _put, _elements, _elements, _elements,
)  # fmt: skip
