"""The one hardened XML parser: no DTD, no entities, no network, bounded depth and size.

A document that is not well-formed or ends early is always an error; the parser recovers no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import DAMAGED, damages, decompress, open_file
from mtosi_jms.errors import ConfigError, ForbiddenXmlError, MalformedXmlError
from mtosi_jms.xmlbind._encodings import codec_named, declared_name, in_utf8

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


@dataclass(frozen=True, slots=True)
class XmlLimits:
    """Bounds on untrusted XML.

    Attributes:
        max_bytes: largest size of a document in bytes.
        max_depth: deepest nesting of elements. The bound of libxml2, 256, applies as well.
        max_nodes: most elements and attributes of a document, counted together, or of one object where a document is
            read object by object. Each costs a hundred octets and more, however short its tag is.
        max_attributes: most attributes of one element; the time to read them grows with the square of their number.
        max_namespaces: most namespace declarations in the scope of one element: its own and those of its ancestors.
            Each name may have to be looked up among them. A program that declares all namespaces of MTOSI has 200. The
            number in a whole document is not limited, because some programs declare the same few on each object.
        huge: lift the bounds of libxml2 on text length (10 MB) and depth; `max_depth` still applies.
    """

    max_bytes: int = BOUNDS.xml_bytes
    max_depth: int = BOUNDS.xml_depth
    max_nodes: int = BOUNDS.xml_nodes
    max_attributes: int = BOUNDS.xml_attributes
    max_namespaces: int = BOUNDS.xml_namespaces
    huge: bool = False


DEFAULT_LIMITS: Final = XmlLimits()

_DEPTH_BY_PATH: Final = 250
_DEPTH = re.compile(r"depth", re.IGNORECASE)
_TOO_BIG = re.compile(r"too (?:big|long|large)|limit exceeded|huge|amplification|entity reference loop", re.IGNORECASE)
_ADVICE = re.compile(r",? ?(?:use|try|see) (?:XML_PARSE_HUGE(?: option)?|xmlCtxt\w+)")
"""Advice of libxml2 for programmers, which users cannot follow."""
_ODD_PREFIX = re.compile(r"xmlns:([^\s:]+): '.*' is not a valid URI\Z", re.DOTALL)
_DECLARATION = re.compile(r"^\ufeff?<\?xml\s[^>]*\?>")
_ASCII_BASED = re.compile(r"utf-?8|(?:us-)?ascii|iso-?8859|latin|windows-", re.IGNORECASE)
"""Encodings in which the octets of ASCII characters are those of ASCII; for others the tree has to be checked."""
_EBCDIC: Final = "<?xm".encode("cp037")
_SHORTEST_ELEMENT: Final = len("<a/>")


# Do not set `collect_ids=False`: libxml2 would then load the external subset of a DTD, that is, files that a document
# names.
HARDENED: Final[dict[str, bool]] = {
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "dtd_validation": False,
    "attribute_defaults": False,
    "remove_comments": True,
    "remove_pis": True,
    "recover": False,
}
"""The settings of all parsers of untrusted documents."""


def make_parser(limits: XmlLimits = DEFAULT_LIMITS) -> etree.XMLParser:
    """Return a new lxml parser with the hardened settings; it leaves out comments and processing instructions."""
    return etree.XMLParser(huge_tree=limits.huge, **HARDENED)


def make_pull_parser(limits: XmlLimits = DEFAULT_LIMITS) -> etree.XMLPullParser:
    """Return a pull parser with the same settings, for a document in pieces; it gives element and namespace events."""
    events = ("start-ns", "start", "end", "end-ns")
    return etree.XMLPullParser(events=events, huge_tree=limits.huge, **HARDENED)


def read_document(path: str | Path, *, limits: XmlLimits = DEFAULT_LIMITS) -> bytes:
    """Return the bytes of a file; gzip and Zstandard are decompressed whatever the name is.

    Args:
        limits: at most one byte more than they allow is read. This is enough to recognize a file that is too large, and
            it also stops at devices without end.

    Raises:
        MalformedXmlError: damaged compressed data.
        MissingExtraError: the file is Zstandard, and this Python lacks the library.
        OSError: the file cannot be read.
    """
    with open_file(path) as stream:
        try:
            return decompress(stream).read(limits.max_bytes + 1)
        except damages() as error:
            raise MalformedXmlError(f"{DAMAGED}: {error}", source=str(path)) from None


def parse_xml(
    data: bytes | str,
    *,
    source: str | None = None,
    limits: XmlLimits = DEFAULT_LIMITS,
    odd_prefixes: list[str] | None = None,
    schema: bool = False,
) -> etree._Element:
    """Parse one document and return its root.

    Args:
        data: the document; an encoding declaration in text is ignored.
        odd_prefixes: if given, unused prefixes may be declared for names that are not URIs (C09). They are added to
            this list, and the tree does not have them. Without the list, the error of libxml2 is raised.
        schema: permit the document type declarations of schemas, as `plain_doctype` reads them.

    Raises:
        MalformedXmlError: not well-formed, empty, or ending early; the error has the line.
        ForbiddenXmlError: a document type declaration, or more size, depth, elements, attributes or namespace
            declarations than `limits` allow.
    """
    raw = to_bytes(data)
    if len(raw) > limits.max_bytes:
        raise ForbiddenXmlError(f"larger than {limits.max_bytes} bytes", source=source)
    if not raw or raw.isspace():
        raise MalformedXmlError("empty document", source=source, line=1)
    given = raw
    if schema:
        raw = plain_doctype(raw, source)
    else:
        refuse_doctype(raw, source)
    refuse_nodes(raw, limits.max_nodes, source)
    parser = make_parser(limits)
    try:
        root = etree.fromstring(raw, parser)
    except etree.XMLSyntaxError as error:
        log = list(parser.error_log)
        passed = _without_odd_prefixes(raw, log, limits) if odd_prefixes is not None else None
        if passed is None or odd_prefixes is None:
            raise syntax_error(error, source, log) from None
        root, prefixes = passed
        odd_prefixes += prefixes
    except (ValueError, LookupError, UnicodeError) as error:
        raise MalformedXmlError(str(error), source=source, line=1) from None
    refuse_dtd(root, source, plain=raw is not given)
    _refuse_depth(root, limits, source)
    # Counting in the octets is fast. Only the few documents with many equals signs need a check of the tree.
    is_ascii_based = _ASCII_BASED.match(root.getroottree().docinfo.encoding or "") is not None
    signs = raw.count(b"=")
    if not is_ascii_based or signs > limits.max_attributes:
        _refuse_crowds(root, limits, source)
    if not is_ascii_based or (signs > limits.max_namespaces and raw.count(b"xmlns") > limits.max_namespaces):
        _refuse_declarations(root, limits, source)
    return root


def refuse_nodes(raw: bytes, most: int, source: str | None = None) -> None:
    """Refuse a document with more elements and attributes than allowed, before it becomes a tree.

    The octets say for nearly every document that it has fewer. Only for others, such as those with many equals signs in
    texts, a parser counts, which keeps nothing.

    Args:
        most: how many elements and attributes are allowed, together.

    Raises:
        ForbiddenXmlError: there are more, with the line of the first one too many; or they cannot be counted, as the
            document is large, and not well-formed or in an encoding that is not known.
    """
    if len(raw) <= _SHORTEST_ELEMENT * most:
        return
    document = in_utf8(raw)
    is_wide = b"\0" in document[:_SHORTEST_ELEMENT] or document.startswith(_EBCDIC)
    if is_wide or codec_named(declared_name(document) or "utf-8") != "utf-8":
        raise ForbiddenXmlError("too large for an encoding in which elements cannot be counted", source=source)
    if document.count(b"<") - document.count(b"</") + document.count(b"=") <= most:
        return
    counted = 0

    def count(_: str, attributes: list[str]) -> None:
        nonlocal counted
        counted += 1 + len(attributes) // 2  # names and values
        if counted > most:
            raise too_many(most, source, parser.CurrentLineNumber)

    parser = expat.ParserCreate()
    parser.ordered_attributes = parser.specified_attributes = True
    parser.StartElementHandler = count
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        text = f"what looks like more than {most} elements and attributes is not well-formed"
        text = f"{text}: {expat.ErrorString(error.code)}"
        raise ForbiddenXmlError(text, source=source, line=error.lineno) from None


def _without_odd_prefixes(
    raw: bytes, log: list[etree._LogEntry], limits: XmlLimits
) -> tuple[etree._Element, list[str]] | None:
    """Return the tree of a document whose only fault are unused prefixes for names that are not URIs, and the prefixes.

    Figure 12 writes xmlns:schemaLocation for xsi:schemaLocation. Such a document is well-formed XML, and libxml2 makes
    its whole tree in recovery mode. If either log has another entry, something else is wrong, and the result is None. A
    prefix that is used comes first in `log` then, because it is the fault.
    """
    matches = [_ODD_PREFIX.match(entry.message or "") for entry in log]
    if not matches or None in matches:
        return None
    parser = etree.XMLParser(huge_tree=limits.huge, **{**HARDENED, "recover": True})
    root = etree.fromstring(raw, parser)
    if any(entry.type != etree.ErrorTypes.WAR_NS_URI for entry in parser.error_log):
        return None
    prefixes = list(dict.fromkeys(match[1] for match in matches if match))
    etree.cleanup_namespaces(root, keep_ns_prefixes=sorted(_declared_prefixes(root) - {"", *prefixes}))
    used = _declared_prefixes(root) & set(prefixes)
    log.sort(key=lambda entry: not used & set(_ODD_PREFIX.findall(entry.message)))
    return None if used else (root, prefixes)


def _declared_prefixes(root: etree._Element) -> set[str]:
    return {prefix for _, (prefix, _) in etree.iterwalk(root, events=("start-ns",))}


def to_bytes(data: bytes | bytearray | memoryview | str) -> bytes:
    """Return a document as bytes: text becomes UTF-8, and its XML declaration, which may name another encoding, is cut.
    Raises ConfigError: `data` is neither of them."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if not isinstance(data, str):
        raise ConfigError(f"a document is bytes or text, not {type(data).__name__}")
    text = _DECLARATION.sub(lambda found: "\n" * found.group().count("\n"), data, count=1)
    return text.encode("utf-8", "surrogatepass")


def _refuse_depth(root: etree._Element, limits: XmlLimits, source: str | None) -> None:
    depth, level = limits.max_depth, 0
    if depth <= _DEPTH_BY_PATH:  # ten times as fast as walking
        for deep in _found(root, "/*" * (depth + 1), source):
            raise too_deep(limits, source, deep.sourceline)
        return
    for event, element in etree.iterwalk(root, events=("start", "end")):
        level += 1 if event == "start" else -1
        if level > depth:
            raise too_deep(limits, source, element.sourceline)


def _refuse_crowds(root: etree._Element, limits: XmlLimits, source: str | None) -> None:
    crowded = _found(root, f"(//*[@*[{limits.max_attributes + 1}]])[1]", source)
    if crowded:
        message = f"more than {limits.max_attributes} attributes in one element"
        raise ForbiddenXmlError(message, source=source, line=crowded[0].sourceline)


def _refuse_declarations(root: etree._Element, limits: XmlLimits, source: str | None) -> None:
    declared = Declared(limits, source)
    for event, found in etree.iterwalk(root, events=("start-ns", "end-ns", "start")):
        declared.note(event, found)


class Declared:
    __slots__ = ("_limits", "_number", "_source")

    def __init__(self, limits: XmlLimits, source: str | None) -> None:
        self._limits = limits
        self._source = source
        self._number = 0

    def note(self, event: str, element: Any) -> None:
        """Take an event: start-ns, end-ns, or the start of the element with the declarations."""
        if event == "start-ns":
            self._number += 1
        elif event == "end-ns":
            self._number -= 1
        elif self._number > self._limits.max_namespaces:
            message = f"more than {self._limits.max_namespaces} namespace declarations in scope"
            raise ForbiddenXmlError(message, source=self._source, line=element.sourceline)


def too_deep(limits: XmlLimits, source: str | None, line: int | None) -> ForbiddenXmlError:
    return ForbiddenXmlError(f"nested deeper than {limits.max_depth} elements", source=source, line=line)


def too_many(most: int, source: str | None, line: int | None) -> ForbiddenXmlError:
    return ForbiddenXmlError(f"more than {most} elements and attributes", source=source, line=line)


def _found(root: etree._Element, path: str, source: str | None) -> list[Any]:
    """What a path finds. Raises ForbiddenXmlError: more elements than libxml2 can look at, ten million."""
    try:
        found: list[Any] = root.xpath(path)
    except etree.XPathError:
        raise ForbiddenXmlError("more than ten million elements", source=source) from None
    return found


def syntax_error(
    error: etree.XMLSyntaxError, source: str | None, log: Iterable[etree._LogEntry] = ()
) -> MalformedXmlError | ForbiddenXmlError:
    """Return our error for a syntax error of lxml, with its line. Of what the parser logged, a prefix for what is not a
    URI, which may be passed over, is named last."""
    message = (error.msg or str(error)).strip()
    line = error.lineno
    errors = [entry for entry in log if entry.level >= etree.ErrorLevels.ERROR]
    errors.sort(key=lambda entry: _ODD_PREFIX.match(entry.message) is not None)
    if errors:
        message, line = errors[0].message, errors[0].line
    if not line and (logged := error.error_log.last_error) is not None:  # a fed parser's log says more than its error
        message, line = logged.message, logged.line
    message = re.sub(r", line \d+, column \d+.*$", "", message, flags=re.DOTALL)
    message = _ADVICE.sub("", message.replace("\n", " ")).strip(" ;")
    if error.filename and source is None and not str(error.filename).startswith("<"):
        source = str(error.filename)
    line = line or 1
    if _DEPTH.search(message):
        return ForbiddenXmlError(f"nested too deep: {message}", source=source, line=line)
    if _TOO_BIG.search(message):
        return ForbiddenXmlError(message, source=source, line=line)
    return MalformedXmlError(message, source=source, line=line)
