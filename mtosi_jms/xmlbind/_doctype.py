"""Document type declarations: refused in documents, read without what they bring in schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ForbiddenXmlError

_MARK: Final = b"\xef\xbb\xbf"
_PROLOG = re.compile(rb"\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*)*(<!DOCTYPE)?", re.DOTALL)
_QUOTED = rb"""(?:"[^"]*"|'[^']*')"""
_ASIDE = rb"<!--.*?-->|<\?.*?\?>"
_DOCTYPE = re.compile(
    rb"<!DOCTYPE\s+([^\s\[>\"']+)(?:\s+|%b)*+(?:(?:SYSTEM|PUBLIC)(?:\s+|%b)*+)?(?:\[((?:%b|%b|%b)*+)\]\s*)?>"
    % (_QUOTED, _QUOTED, _ASIDE, _QUOTED, rb"[^\]\"'<]|<(?!!--|\?)"),
    re.DOTALL,
)
_DECLARED_THERE = re.compile(
    rb"\s+|%b|<!(ATTLIST|ELEMENT|NOTATION|ENTITY)\s(?:%b|[^>\"'])*+>" % (_ASIDE, _QUOTED), re.DOTALL
)
_HARMLESS = re.compile(rb"""<!ENTITY\s+(?:%\s+)?([^\s%]+)\s+(?:"[^"&%]*"|'[^'&%]*')\s*>""")
_REFERENCE = re.compile(rb"&([^\s;#&<]+);")
_MOST_DEFAULTS: Final = BOUNDS.xml_defaults
"""Most octets of attribute lists, counted once for each tag: a default would be written at each element."""


def refuse_doctype(head: bytes, source: str | None = None) -> None:
    """Refuse a document type declaration before any parser sees it. Raises ForbiddenXmlError: there is a document type
    declaration."""
    if _is_wide(head):
        head = _wide_to_ascii(head)
    at = _doctype_at(head)
    if at is not None:
        raise _dtd(source, head.count(b"\n", 0, at) + 1)


def refuse_dtd(element: etree._Element, source: str | None = None, *, plain: bool = False) -> None:
    """Refuse a document in which the parser found a document type declaration, but if `plain` for what `plain_doctype`
    leaves."""
    docinfo = element.getroottree().docinfo
    dtd = docinfo.internalDTD
    if plain and dtd is not None and not docinfo.system_url and next(iter(dtd.iterentities()), None) is None:
        return
    if dtd is not None or docinfo.doctype:
        raise _dtd(source, 1)


def plain_doctype(data: bytes, source: str | None = None) -> bytes:
    """Return a schema without its document type declaration, but for the attributes that it declares.

    Schemas of the W3C and others have one. What it names elsewhere is not read, and no entity is expanded: one that is
    declared must be plain text and may not be used. Lines stay where they are.

    Returns:
        The document; `data` itself if it has no such declaration.

    Raises:
        ForbiddenXmlError: a declaration with entities that are used, of other files or made of others, or that cannot
            be read.
    """
    if _is_wide(data):
        if _doctype_at(_wide_to_ascii(data)) is None:
            return data
        try:
            narrow = data.decode("utf-16").encode()
        except UnicodeError:
            narrow = b""
        if _doctype_at(narrow) is None:
            raise _dtd(source, 1, "cannot be read")
        return plain_doctype(narrow, source).decode().encode("utf-16")
    at = _doctype_at(data)
    if at is None:
        return data
    line = data.count(b"\n", 0, at) + 1
    found = _DOCTYPE.match(data, at)
    if found is None:
        raise _dtd(source, line, "cannot be read")
    kept = b"".join(_attribute_lists(found[2] or b"", data, source, line))
    if len(kept) * data.count(b"<") > _MOST_DEFAULTS:
        raise _dtd(source, line, "has attribute lists too large for its document")
    before = b"\n" * (found[0].count(b"\n") - kept.count(b"\n"))
    declared = b"<!DOCTYPE %b %b[%b]>" % (found[1], before, kept) if kept.strip() else before + kept
    return data[:at] + declared + data[found.end() :]


def _attribute_lists(subset: bytes, data: bytes, source: str | None, line: int) -> Iterator[bytes]:
    """Yield the declarations of attributes in an internal subset, and the line breaks of all others."""
    used = set(_REFERENCE.findall(data)) if b"<!ENTITY" in subset else set()
    place = 0
    while place < len(subset):
        declaration = _DECLARED_THERE.match(subset, place)
        if declaration is None:
            raise _dtd(source, line, "uses parameter entities, or cannot be read")
        text, kind, place = declaration[0], declaration[1], declaration.end()
        if kind == b"ENTITY":
            name = _HARMLESS.fullmatch(text)
            if name is None:
                raise _dtd(source, line, "has an entity of another file, or one made of entities")
            if name[1] in used:
                raise _dtd(source, line, f"has an entity that is used, {name[1].decode(errors='replace')}")
        yield text if kind == b"ATTLIST" else b"\n" * text.count(b"\n")


def _dtd(source: str | None, line: int, why: str = "is not allowed") -> ForbiddenXmlError:
    return ForbiddenXmlError(f"a document type declaration (DTD) {why}", source=source, line=line)


def _is_wide(head: bytes) -> bool:
    return head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:4]


def _doctype_at(data: bytes) -> int | None:
    match = _PROLOG.match(data, len(_MARK) if data.startswith(_MARK) else 0)
    return match.start(1) if match is not None and match.group(1) else None


def _wide_to_ascii(head: bytes) -> bytes:
    """Return the ASCII part of UTF-16 or UTF-32 text, which is enough to find a declaration in the prolog."""
    return head.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff").replace(b"\0", b"")
