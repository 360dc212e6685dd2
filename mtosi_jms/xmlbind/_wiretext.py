"""Wire text: text escaped, looked over, and its UTF-8 held in a `str`, one character for each byte.

Most of a document is ASCII, which is its own wire text. A name with an accent does not widen the document around it,
and the whole becomes bytes at once. What is to be escaped is looked for in many values at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from mtosi_jms.xmlbind.fast import Odd
from mtosi_jms.xmlbind.simpletypes import EnumType, SimpleType
from mtosi_jms.xmlbind.values import Nil
from mtosi_jms.xmlbind.writeplan import escape_text, has_forbidden

SUSPECT: Final = bytes([*(code for code in range(32) if code not in b"\t\n"), *b"&<>\xef"])
"""What is not written as it is, or may be forbidden."""

_SHORT: Final = 1000
_MOST_KNOWN: Final = 512
_LONGEST_KNOWN: Final = 64


def wire(text: str) -> str:
    """The wire text of a text that is escaped and holds only what XML allows."""
    return text if text.isascii() else text.encode().decode("latin-1")


def mended(text: str, values: Sequence[str | None]) -> Sequence[str | None]:
    """The wire texts of values.

    Args:
        text: all of them, joined.
        values: the values; None stays None.

    Raises:
        Odd: a character that XML does not allow.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise Odd from None
    if len(data.translate(None, SUSPECT)) == len(data):
        return [value if not value or value.isascii() else value.encode().decode("latin-1") for value in values]
    if has_forbidden(data):
        raise Odd
    present = [value for value in values if value is not None]
    written = wire(escape_text("\0".join(present))).split("\0")
    if len(present) == len(values):
        return written
    again = iter(written)
    return [value if value is None else next(again) for value in values]


def element(tag: str, inner: str) -> str:
    """The element with a tag and what stands inside it, all in wire text."""
    return f"<{tag}>{inner}</{tag}>" if inner else f"<{tag}/>"


def pieces(tag: str, inner: str) -> tuple[str | bytes, ...]:
    """The pieces of an element: one text where that is quick to be looked over again, else bytes between tags.

    Args:
        tag: the tag.
        inner: what stands inside, in wire text.
    """
    if len(inner) < _SHORT and inner.isascii():
        return (element(tag, inner),)
    return f"<{tag}>", inner.encode("latin-1"), f"</{tag}>"


def joined(parts: Sequence[str | bytes]) -> bytes:
    """All pieces in UTF-8.

    Raises:
        Odd: a text among them holds a character that XML does not allow.
    """
    try:
        return _encoded("".join(parts))  # type: ignore[arg-type]
    except TypeError:  # there are bytes among them
        runs = groupby(parts, type)
        return b"".join([b"".join(run) if kind is bytes else _encoded("".join(run)) for kind, run in runs])  # type: ignore[arg-type]


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise Odd from None
    if has_forbidden(data):
        raise Odd
    return data


class Elements(dict[Any, str]):
    """Values of a simple type with the elements that hold them, in wire text; the last ones are remembered, up to a
    bound.

    Args:
        kind: the simple type; an enumeration's values are their texts, and there from the beginning.
        tag: in wire text; empty for the bare text.
    """

    def __init__(self, kind: SimpleType, tag: str) -> None:
        super().__init__()
        self._kind = kind
        self._tag = tag
        if isinstance(kind, EnumType):
            texts = [text for text in kind.known if text is not None]
            self.update(zip(texts, map(self._tagged, mended("".join(texts), texts)), strict=True))

    def of(self, value: Any) -> str:
        """The element of a value that is not remembered.

        Raises:
            Odd: it has none.
        """
        if isinstance(value, Nil):
            raise Odd
        try:
            text = self._kind.format(value)
        except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError):
            raise Odd from None
        (written,) = mended(text, (text,))
        return self._tagged(written)

    def _tagged(self, written: str | None) -> str:
        if not self._tag:
            return written or ""
        return element(self._tag, written or "")

    def __missing__(self, value: Any) -> str:
        found = self.of(self._kind.cls(value) if isinstance(self._kind, EnumType) else value)
        if len(self) < _MOST_KNOWN and len(found) <= _LONGEST_KNOWN + 2 * len(self._tag):
            self[value] = found
        return found
