"""The encoding of an XML document: what its octets say, and what a content type says of them (RFC 7303)."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Final, NamedTuple

DECLARATION: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_HEAD: Final = 1024
_LONGEST: Final = 65_536
"""Octets in which an XML declaration ends; nearly all end in the first `_HEAD`."""
_DECLARED: Final = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"'>]*)["']""")
_DECLARED_IN_TEXT: Final = re.compile(r"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"'>]*)["']""")
_WITHOUT_MARK: Final = {
    b"<\0\0\0": "utf-32-le",
    b"\0\0\0<": "utf-32-be",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}
_MARKS: Final = (  # UTF-32 first: its little-endian forms begin as those of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    *_WITHOUT_MARK.items(),
)
"""Octets at the beginning of a document that leave no doubt: byte order marks, and `<` in two or four octets."""
_NAMES_OF_XML: Final = {"iso-10646-ucs-2": "utf-16", "iso-10646-ucs-4": "utf-32"}
_NOT_OF_XML: Final = frozenset({"charmap", "idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7"})
_OCTETS_OF_ASCII: Final = "<?xml"


class _Said(NamedTuple):
    """What a document says of its encoding.

    Attributes:
        is_sure: whether the first octets leave no doubt.
        is_true: whether the declaration, or its absence, names this encoding.
    """

    codec: str | None
    declared: str
    is_sure: bool
    is_true: bool


@lru_cache(maxsize=64)
def codec_named(name: str) -> str | None:
    """Return Python's name of an encoding that an XML document may have; None if there is no such encoding."""
    try:
        found = codecs.lookup(_NAMES_OF_XML.get(name.lower(), name)).name
        "<".encode(found)
    except (LookupError, ValueError):  # ValueError: a null character in the name
        return None
    return None if found in _NOT_OF_XML else "utf-8" if found == "utf-8-sig" else found


def self_described(data: bytes, charset: str = "") -> tuple[bytes, str]:
    """Return a document that tells its encoding without help, and what was wrong with what it or others said.

    A byte order mark counts first, then the content type, then the XML declaration (RFC 7303, 3.2). But where one of
    the last two says UTF-8, and the octets are, they are read so: other texts are hardly ever UTF-8 by chance.

    Args:
        charset: the encoding that its content type gives; empty for none.

    Returns:
        The same octets if they agree with what is said, else the document in UTF-8; and a text for a warning, empty if
        nothing is wrong. Octets that no named encoding reads are returned as they are: the parser has the error.
    """
    if not charset and data[:1] == b"<" and data[1:2] not in (b"?", b"\0", b""):
        return data, ""
    said = _said_of(data)
    outer = codec_named(charset) if charset else said.codec
    if said.is_true and outer is not None and said.codec is not None and _agree(outer, said.codec):
        return data, ""
    return _in_utf8(data, said, charset)


def in_utf8(data: bytes) -> bytes:
    """Return a document that tells its encoding itself in UTF-8, the same octets if they are."""
    if data[:1] == b"<" and data[1:2] not in (b"?", b"\0", b""):
        return data
    said = _said_of(data)
    return data if said.codec in ("utf-8", None) and said.is_true else _in_utf8(data, said, "")[0]


def declares_utf8(data: bytes) -> bytes:
    """Return a document of UTF-8 octets whose declaration, if it names another encoding, names UTF-8."""
    if data.startswith(DECLARATION):  # most are: the SDK's own
        return data
    found = _DECLARED.match(_head_of(data))
    if found is None or codec_named(found[1].decode("latin-1")) == "utf-8":
        return data
    return b"".join((data[: found.start(1)], b"UTF-8", data[found.end(1) :]))


def declared_name(data: bytes) -> str:
    """Return the encoding that the XML declaration of a document names; empty if it names none."""
    return _said_of(data).declared


def _said_of(data: bytes) -> _Said:
    head = _head_of(data)
    end = head.find(b"?>") if head.startswith(b"<?xml") else -1
    return _said_in(head if end < 0 else head[:end])


def _head_of(data: bytes) -> bytes:
    """Return the first octets of a document, with its whole XML declaration."""
    head = data[:_HEAD]
    return head if b">" in head else data[:_LONGEST]


@lru_cache(maxsize=64)  # nearly all documents begin with one of a few declarations
def _said_in(head: bytes) -> _Said:
    for mark, codec in _MARKS:
        if head.startswith(mark):
            match = _DECLARED_IN_TEXT.match(head.decode(codec, "ignore").removeprefix("\ufeff"))
            name = match[1] if match is not None else ""
            is_true = _agree(str(codec_named(name)), codec) if name else mark not in _WITHOUT_MARK
            return _Said(codec, name, True, is_true)
    found = _DECLARED.match(head)
    if found is None:
        return _Said("utf-8", "", False, True)
    name = found[1].decode("latin-1")
    declared = codec_named(name)
    if declared is not None and _OCTETS_OF_ASCII.encode(declared) != _OCTETS_OF_ASCII.encode():
        return _Said("utf-8", name, False, False)  # the declaration itself could not be read in what it declares
    return _Said(declared, name, False, True)


def _agree(one: str, other: str) -> bool:
    """Whether two names are of one encoding; the first may be without the byte order that the second has."""
    return one == other or (other.startswith(("utf-16", "utf-32")) and other.startswith(one))


def _in_utf8(data: bytes, said: _Said, charset: str) -> tuple[bytes, str]:
    outer = codec_named(charset) if charset else None
    wanted = [said.codec] if said.is_sure else [outer, said.codec]
    if said.declared and "utf-8" in wanted:
        wanted.insert(0, "utf-8")
    for codec in wanted:
        text = None if codec is None else _decoded(data, codec)
        if text is not None:
            break
    else:
        return data, f"the octets are not in {charset or said.declared or 'UTF-8'}"
    text = text.removeprefix("\ufeff")
    found = _DECLARED_IN_TEXT.match(text[:_LONGEST])
    if found is not None:
        text = f"{text[: found.start(1)]}UTF-8{text[found.end(1) :]}"
    says = [f"the content type says {charset[:40]}"] if charset and not _agree(str(outer), str(codec)) else []
    if said.declared and not _agree(str(codec_named(said.declared)), str(codec)):
        says.append(f"the XML declares {said.declared[:40]}")
    if not says and not said.declared and not charset:
        says.append("neither a byte order mark nor the XML says the encoding")
    return text.encode(), f"{' and '.join(says)}: read as {codec}" if says else ""


def _decoded(data: bytes, codec: str) -> str | None:
    if codec in ("utf-16", "utf-32"):  # without a mark: in the order of networks, unless the octets show the other
        codec += "-le" if data[:1] != b"\0" and data[1:2] == b"\0" else "-be"
    try:
        return data.decode(codec)
    except UnicodeError:
        return None
