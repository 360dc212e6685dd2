"""Large plain documents read from their text, without a tree: several times as fast.

The content of one element, a batch of an inventory say, is cut out of the document. What is left is parsed as any
document is, and tells the namespaces; what was cut out has to match the patterns of its class from end to end. A
match proves that it is well-formed: nothing but the tags that the schema foresees, balanced, without attributes,
comments or sections, and text between them. In all other cases, and for every error and warning, the document is read
from the tree that the parser makes of it, from the beginning.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Generic, TypeAlias, TypeVar

from lxml import etree

from mtosi_jms.errors import ForbiddenXmlError, MalformedXmlError
from mtosi_jms.xmlbind._fast import NOT_PLAIN
from mtosi_jms.xmlbind._parser import Limits, parse_xml
from mtosi_jms.xmlbind._pieces import OCTETS, REFERENCES, Islands, real
from mtosi_jms.xmlbind._scanner import Scanner
from mtosi_jms.xmlbind._scanplan import Layout, ScanCompiler, Unable
from mtosi_jms.xmlbind._table import ClassTable

T = TypeVar("T")
V = TypeVar("V")
Make: TypeAlias = Callable[[Layout, Islands], T]

SMALLEST: Final = 16_384
"""Bytes from which reading from text can be worth its preparations."""

_WORTH_COMPILING: Final = 131_072
_TRIFLE: Final = 1024
"""What a document counts for besides its own length: of short ones there are many."""
_LONGEST_TEXT: Final = 10_000_000
_DEPTH_OF_PATTERNS: Final = 150
_CROWD_OF_ISLANDS: Final = 700
_MOST_DECLARED: Final = 2000
"""Namespaces that the beginning of an envelope, and an island in it, may declare: bounded by their length."""
_PIECE: Final = 4096
_LONGEST_CHARACTER: Final = 4
_MOST_RECIPES: Final = 64
_PATIENCE: Final = 16
_RETRY: Final = 8

_CONTROLS: Final = bytes(code for code in range(32) if code not in (9, 10))
"""Characters that are forbidden in XML, and the carriage return, which a parser turns into a line feed."""
_START_TAG: Final = r"<(?![!?/])[^<>]*(?<!/)>"
_DECLARATION: Final = r"(?:<\?xml (?:[^<>?]*)\?>)?[ \t\n]*"
_ROOT = re.compile(_DECLARATION + _START_TAG)
_ENCODING = re.compile(r"<\?xml[ \t\n][^<>?]*encoding\s*=\s*[\"'](?!utf-8[\"'])", re.IGNORECASE)
_BODY = re.compile(r"<((?:[^\s<>/:]+:)?Body)(?:\s[^<>]*)?(?<!/)>[ \t\n]*" + _START_TAG)
_BODIES = re.compile(r"<(?:[^\s<>/:]+:)?Body[\s/>]")
_PREDEFINED: Final = ("amp;", "lt;", "gt;", "quot;", "apos;")
_REFERENCE = re.compile("&(?!(?:amp|lt|gt|quot|apos);)")
_FEW_REFERENCES: Final = 512
_EMPTY_TAG = re.compile(r"<([^<>\"'/\s!?]+)[ \t]*/>")


class Cut:
    """A document without the content of one element.

    Attributes:
        shell: what is left, a document of its own.
        content: what was cut out.
        octets: whether the octets of the content stand as characters.
        line: the line that it begins on.
    """

    __slots__ = ("content", "line", "octets", "shell")

    def __init__(self, text: str, start: int, end: int, octets: bool = False) -> None:
        self.shell = (text[:start] + text[end:]).encode("latin-1" if octets else "utf-8")
        self.octets = octets
        self.content = text[start:end]
        self.line = text.count("\n", 0, start) + 1

    def read(self, element: etree._Element, table: ClassTable) -> Any:
        """The object of the element whose content was cut out; None where it has to be read from the tree.

        Args:
            element: the element, in the tree of the shell.
            table: the table of its class.
        """
        if not is_shell(element):
            return None
        return content_of(scanners.of(table, element.nsmap), self.content, 0, len(self.content), octets=self.octets)


def content_of(
    recipe: Recipe[Scanner], text: str, start: int, end: int, weight: int = 0, *, octets: bool = False
) -> Any:
    """The object whose element has a content; None where it has to be read from the tree.

    Args:
        recipe: of its class and the namespaces in scope, from `scanners`.
        text: text of a document that is plain.
        start: where the content begins.
        end: where it ends.
        weight: characters that reading it spares a parser besides.
        octets: whether the octets of the text stand as characters.
    """
    scanner = recipe.get(text, start, end, weight)
    if scanner is None:
        return None
    if octets and not scanner.takes_octets:
        text, octets = real(text[start:end]), False
        start, end = 0, len(text)
    return recipe.note(matched(scanner.read, text, start, end, octets=octets))


def is_shell(element: etree._Element) -> bool:
    """Whether an element has neither attributes nor any content."""
    return not len(element) and not element.text and not element.keys()


def cut_root(data: bytes, limits: Limits) -> Cut | None:
    """A document cut inside its root; None where it has to be read from the tree.

    Args:
        data: the document.
        limits: bounds on it; what exceeds them is left to the tree, which reports it.
    """
    text, octets = plain_octets(data, limits) if len(data) >= SMALLEST else (None, False)
    start = _ROOT.match(text) if text is not None else None
    return _cut(text, start.end(), text.rfind("</"), octets) if text is not None and start is not None else None


def cut_body(data: bytes, limits: Limits, *, octets: bool = False) -> Cut | None:
    """An envelope cut inside the first element of its body; None where it has to be read from the tree.

    Args:
        data: the envelope.
        limits: as for `cut_root`.
        octets: whether the octets of the content may stand as characters, which is read sooner.
    """
    if len(data) < SMALLEST:
        return None
    text, octets = plain_octets(data, limits) if octets else (plain_text(data, limits), False)
    start = _BODY.search(text) if text is not None else None
    if text is None or start is None:
        return None
    cut = _cut(text, start.end(), text.rfind("</", 0, max(text.rfind(f"</{start.group(1)}"), 0)), octets)
    # With a single element of that name, of any namespace, it is the one that the parser will find.
    return cut if cut is not None and len(_BODIES.findall(cut.shell.decode())) == 1 else None


def read_root(data: bytes, cls: Any, find: Any, limits: Limits) -> Any:
    """The object of a document; None where it has to be read from the tree.

    Args:
        data: the document.
        cls: its class; None to find it by the element's name.
        find: gives the class of a Clark name, or None.
        limits: bounds on the document.
    """
    cut = cut_root(data, limits)
    root = parsed_shell(cut, limits) if cut is not None else None
    if cut is None or root is None:
        return None
    cls = cls or find(str(root.tag))
    return cut.read(root, cls.__xml__) if cls is not None else None


def parsed_shell(cut: Cut, limits: Limits) -> etree._Element | None:
    """The root of a shell; None where it is no document that may be read, for the whole one to be reported."""
    try:
        return parse_xml(cut.shell, limits=replace(limits, max_namespaces=limits.max_namespaces - _CROWD_OF_ISLANDS))
    except (MalformedXmlError, ForbiddenXmlError):
        return None


def plain_text(data: bytes, limits: Limits) -> str | None:
    """The text of a document that can be read without a parser as to its size, encoding and characters, else None.

    Args:
        data: the document.
        limits: bounds on it.
    """
    if not _is_within(data, limits):
        return None
    if len(data.translate(None, _CONTROLS)) != len(data):
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    forbidden = "\ufffe" in text or "\uffff" in text or ("]" in text and "]]>" in text)
    return None if forbidden or _ENCODING.match(text) else text


def plain_octets(data: bytes, limits: Limits) -> tuple[str | None, bool]:
    """As `plain_text`, of a large document: its octets as characters, which takes a quarter of the time.

    Args:
        data: the document.
        limits: bounds on it.

    Returns:
        The text, and whether there is any octet in it that is no character itself.
    """
    if not _is_within(data, limits):
        return None, False
    if any(map(data.__contains__, _CONTROLS)):  # in a large document they are sooner looked for one by one
        return None, False
    text = data.decode("latin-1")
    if ("]" in text and "]]>" in text) or _ENCODING.match(text):
        return None, False
    if text.isascii():
        return text, False
    return (text, True) if _is_unicode(data) else (None, False)


def _is_within(data: bytes, limits: Limits) -> bool:
    """Whether a document keeps to limits if it is read without a tree."""
    roomy = limits.max_depth >= _DEPTH_OF_PATTERNS and limits.max_attributes >= _CROWD_OF_ISLANDS
    return roomy and limits.max_namespaces >= _MOST_DECLARED and len(data) <= limits.max_bytes


def _is_unicode(data: bytes) -> bool:
    """Whether octets are UTF-8 for characters of XML: piece by piece, which is sooner done than as a whole."""
    at, size = 0, len(data)
    while at < size:
        end = at + _PIECE
        while end < size and end > at + _PIECE - _LONGEST_CHARACTER and data[end] & 0xC0 == 0x80:
            end -= 1
        try:
            text = data[at:end].decode()
        except UnicodeDecodeError:
            return False
        if "\ufffe" in text or "\uffff" in text:
            return False
        at = end
    return True


def _cut(text: str, start: int, end: int, octets: bool) -> Cut | None:
    if end < start:
        return None
    # In a comment, an instruction or a section the places found would mean nothing. The content cannot hold one.
    aside = any("<!" in part for part in (text[:start], text[end:])) or text.find("<?", 1, start) >= 0
    return None if aside or "<?" in text[end:] else Cut(text, start, end, octets)


def matched(
    read: Callable[[str, int, int], tuple[T, int] | None], text: str, start: int, end: int, *, octets: bool = False
) -> T | None:
    """What a reader makes of a content from end to end; None where it has to be read from the tree.

    Args:
        read: takes the text, where to begin, and what there is to take care of, see `Piece.take`; gives what it made
            and where that ends, None or NOT_PLAIN where it can make nothing.
        text: a text with the content in it.
        start: where the content begins.
        end: where it ends.
        octets: whether the octets of the text stand as characters.
    """
    size = end - start
    refers = text.find("&", start, end) >= 0
    if _has_long_text(text) or (
        refers and _refers_oddly(text, start, end)
    ):  # a reader may pass over texts that it needs not
        return None
    # The objects of a large document are all young, and alive: a collector that looks for cycles among them time and
    # again, and at last among all there is, takes a quarter of the time and finds nothing.
    paused = size >= SMALLEST and gc.isenabled()
    if paused:
        gc.disable()
    try:
        care = (refers and REFERENCES) | (octets and OCTETS)
        value = _whole(read, text, start, end, care)
        if value is None and text.find("/>", start, end) >= 0:
            text = _EMPTY_TAG.sub(r"<\1></\1>", text[start:end])
            return _whole(read, text, 0, len(text), care)
        return value
    finally:
        if paused:
            gc.enable()


def _has_long_text(text: str) -> bool:
    """Whether so much stands between two marks that libxml2 refuses it. Few places of a long document are looked at."""
    at = 0
    while at + _LONGEST_TEXT <= len(text):
        mark = text.rfind("<", at, at + _LONGEST_TEXT)
        if mark < 0:
            return True
        at = mark + 1
    return False


def _refers_oddly(text: str, start: int, end: int) -> bool:
    """Whether there is a reference that is not predefined; few are sooner looked at one by one."""
    at = text.find("&", start, end)
    for _ in range(_FEW_REFERENCES):
        if at < 0:
            return False
        if not text.startswith(_PREDEFINED, at + 1, end):
            return True
        at = text.find("&", at + 1, end)
    return at >= 0 and _REFERENCE.search(text, at, end) is not None


def _whole(
    read: Callable[[str, int, int], tuple[T, int] | None], text: str, start: int, end: int, care: int
) -> T | None:
    try:
        made = read(text, start, care)
    except NOT_PLAIN:
        return None
    return made[0] if made is not None and made[1] == end else None


class Recipe(Generic[T]):
    """What reads the contents of one class under one way to name the namespaces."""

    __slots__ = ("_compiled", "_failures", "_made", "_make", "_names", "_seen", "_table")

    def __init__(self, make: Make[T], table: ClassTable, names: dict[str | None, str]) -> None:
        self._make = make
        self._table = table
        self._names = names
        self._seen = 0
        self._compiled = False
        self._made: T | None = None
        self._failures = 0

    @property
    def is_able(self) -> bool:
        """Whether there is a reader, or may be one yet."""
        return self._made is not None or not self._compiled

    def get(self, text: str, start: int, end: int, weight: int = 0) -> T | None:
        """The reader, made once there was text enough to be worth it; None where the tree is better.

        Args:
            text: a text with a content that is to be read.
            start: where the content begins.
            end: where it ends.
            weight: what counts as text besides.
        """
        if self._failures >= _PATIENCE and self._failures % _RETRY:
            self._failures += 1
            return None
        self._seen += end - start + weight + _TRIFLE
        if not self._compiled and self._seen >= _WORTH_COMPILING:
            self._compiled = True
            try:
                compiler = ScanCompiler(self._names, text[start:end])
                self._made = self._make(compiler.content(self._table), Islands(self._names))
            except Unable:
                pass
        return self._made

    def note(self, value: V | None) -> V | None:
        """Remember whether a content could be read; the value itself."""
        self._failures = self._failures + 1 if value is None else 0
        return value


class Recipes(Generic[T]):
    """Readers by class and namespaces, up to a bound.

    Args:
        make: makes one for a layout; `Unable` where it cannot.
    """

    def __init__(self, make: Make[T]) -> None:
        self._make = make
        self._found: dict[tuple[ClassTable, frozenset[tuple[str | None, str]]], Recipe[T]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def of(self, table: ClassTable, names: dict[str | None, str]) -> Recipe[T]:
        """The recipe of a class, under the namespaces in scope."""
        key = (table, frozenset(names.items()))
        recipe = self._found.get(key)
        if recipe is None:
            if len(self._found) >= _MOST_RECIPES:
                self._found.clear()
            recipe = self._found[key] = Recipe(self._make, table, names)
        return recipe


scanners = Recipes(Scanner)
"""What reads whole objects."""
