"""What stands around header and body in the envelopes of a peer, remembered from one envelope to the next.

A peer writes the same beginning again and again: declaration, namespaces, the tags down to the header. Once such a
beginning was read from a tree and nothing was odd about it, envelopes that begin with the same text are read without a
tree: header and body by the patterns of their classes, the tags between and behind them by the name. A match proves
that the document is well-formed; whatever does not match is read from the tree, as before.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from mtosi_jms.namespaces import clark
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import ClassTable, Limits, find_element
from mtosi_jms.xmlbind.columns import SMALLEST, Recipe, Scanner, content_of, plain_octets, plain_text, scanners

MOST_REMEMBERED: Final = 128
_LONGEST: Final = 8192
_LAST_TAG: Final = "header>"
_BEGINNING = re.compile(
    r"(?:<\?xml [^<>?]*\?>)?[ \t\n]*<((?:[^\s<>/:]+:)?)Envelope(?:[ \t\n][^<>]*)?(?<!/)>[ \t\n]*"
    r"<\1Header>[ \t\n]*<((?:[^\s<>/:]+:)?)header>"
)
_BLANK: Final = "[ \t\n]*"


class Parts(NamedTuple):
    """What an envelope holds.

    Attributes:
        header: the MTOSI header.
        body: the object of the body's element.
        version: SOAP version.
    """

    header: Header
    body: Any
    version: str


class Frame:
    """One beginning of envelopes.

    Args:
        soap: prefix of the SOAP elements with its colon, or empty.
        hdr: prefix of the MTOSI header, in the same way.
        names: the namespaces in scope, by prefix.
        version: SOAP version.
    """

    __slots__ = ("_between", "_between_octets", "_bodies", "_end", "_header", "_names", "version")

    def __init__(self, soap: str, hdr: str, names: dict[str | None, str], version: str) -> None:
        self._names = names
        self.version = version
        self._header = scanners.of(Header.__xml__, names)
        soap, hdr = re.escape(soap), re.escape(hdr)
        self._between = re.compile(f"</{hdr}header>{_BLANK}</{soap}Header>{_BLANK}<{soap}Body>{_BLANK}<([^\\s<>/!?]+)>")
        self._between_octets = re.compile(self._between.pattern.encode())
        self._end = re.compile(f">{_BLANK}</{soap}Body>{_BLANK}</{soap}Envelope>{_BLANK}")
        self._bodies: dict[ClassTable, Recipe[Scanner]] = {}

    def read(self, text: str, start: int, package: str | None, *, octets: bool) -> Parts | None:
        """The parts of an envelope; None where it has to be read from a tree.

        Args:
            text: an envelope with this beginning.
            start: where the beginning ends.
            package: generated package whose classes come before those of all others.
            octets: whether the octets of the text stand as characters.
        """
        between = self._between.search(text, start)
        if between is None:
            return None
        name = between[1]
        end = text.rfind(f"</{name}", between.end())
        if end < 0 or self._end.fullmatch(text, end + 2 + len(name)) is None:
            return None
        recipe = self._body(name, package)
        if recipe is None or not recipe.is_able:
            return None
        header = content_of(
            self._header, text[start : between.start()], 0, between.start() - start, len(text), octets=octets
        )
        if header is None:
            return None
        body = content_of(recipe, text, between.end(), end, octets=octets)
        return None if body is None else Parts(header, body, self.version)

    def rewritten(self, data: bytes, start: int, header: bytes, local: str) -> bytes | None:
        """See `rewritten`; None where prefixes mean other things in the envelope than in the header.

        Args:
            start: where the beginning ends.
        """
        between = self._between_octets.search(data, start)
        if between is None or None in self._names:
            return None
        name = between[1]
        new = name.rpartition(b":")[0] + name.rpartition(b":")[1] + local.encode() if local else name
        opened, closed = data.rindex(b"<", 0, start), data.index(b">", between.start()) + 1
        end = data.rindex(b"</" + name, between.end()) + 2
        view = memoryview(data)
        after = view[closed : between.start(1)], new, view[between.end(1) : end], new, view[end + len(name) :]
        return b"".join((view[:opened], header, *after))

    def _body(self, name: str, package: str | None) -> Recipe[Scanner] | None:
        prefix, colon, local = name.rpartition(":")
        namespace = self._names.get(prefix or None)
        if colon and not (prefix and namespace):
            return None
        found = find_element(clark(namespace or "", local), package)
        if found is None:
            return None
        recipe = self._bodies.get(found.__xml__)
        if recipe is None:
            recipe = self._bodies[found.__xml__] = scanners.of(found.__xml__, self._names)
        return recipe


remembered: dict[str, Frame] = {}


def read_framed(data: bytes, package: str | None, limits: Limits) -> Parts | None:
    """The parts of an envelope whose beginning is known, and that leaves nothing to report.

    Args:
        data: the envelope, in UTF-8.
        package: generated package whose classes come before those of all others.
        limits: bounds on it.

    Returns:
        None where it has to be read from a tree.
    """
    start = data.find(_LAST_TAG.encode(), 0, _LONGEST) + len(_LAST_TAG)
    if start < len(_LAST_TAG):
        return None
    try:
        beginning = data[:start].decode()
    except UnicodeDecodeError:
        return None
    frame = remembered.get(beginning)
    if frame is None:
        return None
    if len(data) >= SMALLEST:
        text, octets = plain_octets(data, limits)
    else:
        text, octets = plain_text(data, limits), False
    return frame.read(text, start if octets else len(beginning), package, octets=octets) if text is not None else None


def rewritten(data: bytes, version: str, header: bytes, local: str) -> bytes | None:
    """An envelope that `read_framed` has read with another header, and all else as it came.

    Args:
        data: the envelope.
        version: SOAP version that it is to have.
        header: the header's element, with every namespace that it needs.
        local: another local name for the element in the body; empty: its own.

    Returns:
        None where it has to be written anew.
    """
    start = data.find(_LAST_TAG.encode(), 0, _LONGEST) + len(_LAST_TAG)
    frame = remembered.get(data[:start].decode())
    return None if frame is None or frame.version != version else frame.rewritten(data, start, header, local)


def remember(data: bytes, names: dict[str | None, str], version: str, limits: Limits) -> None:
    """Remember the beginning of an envelope that was read, with nothing odd about it and the header before all else.

    Args:
        data: the envelope.
        names: the namespaces that its root has in scope, by prefix.
        version: SOAP version.
        limits: bounds on it.
    """
    text = plain_text(data[:_LONGEST], limits)
    found = _BEGINNING.match(text) if text is not None else None
    if text is None or found is None or found.end() != text.index(_LAST_TAG) + len(_LAST_TAG):
        return
    if len(remembered) >= MOST_REMEMBERED:
        remembered.clear()
    remembered[found.group()] = Frame(found[1], found[2], names, version)
