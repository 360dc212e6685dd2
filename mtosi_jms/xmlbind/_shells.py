"""Unread objects of the lists in large plain documents: what their texts are is settled, their values are made later.

An object is unread only where a pattern proves that all its values can be made, so that nothing is left to report. Each
keeps its own text, and nothing of the document besides.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Final

from mtosi_jms.xmlbind._fillcode import Fill, filler
from mtosi_jms.xmlbind._proofs import proof_of
from mtosi_jms.xmlbind._unread import may_be_unread, unread
from mtosi_jms.xmlbind.pieces import Piece
from mtosi_jms.xmlbind.scanplan import BLANK, Shape, Unable

_PATIENCE: Final = 16


class Shells:
    """Takes objects of one shape that stand one after the other.

    Args:
        shape: what they look like.
        piece: makes those at once that are not proven.

    Raises:
        Unable: the objects cannot be unread.
    """

    __slots__ = ("_cls", "_compact", "_piece", "_spaced")

    def __init__(self, shape: Shape, piece: Piece) -> None:
        self._cls: Any = shape.table.cls
        if proof_of(shape, "") is None or not may_be_unread(self._cls):
            raise Unable
        self._piece = piece
        self._compact = _Kind(shape, "")
        self._spaced = _Kind(shape, BLANK)

    def take_all(self, text: str, at: int, care: int) -> tuple[list[Any], int]:
        """What stands at a position one after the other, and where the last ends; as `Piece.take_all`."""
        taken: list[Any] = []
        odd = 0
        kind = self._compact
        while True:
            sources, at = kind.take_all(text, at)
            if sources:
                taken += unread(self._cls, kind.fill, sources)
            elif kind is self._compact:
                kind = self._spaced
                continue
            other = self._piece.take(text, at, care)
            if other is None:
                return taken, at
            taken.append(other[0])
            at = other[1]
            odd += 1
            if odd > _PATIENCE and 2 * odd > len(taken):
                more, at = self._piece.take_all(text, at, care)
                return taken + more, at


class _Kind:
    """Objects with the same text between their tags.

    Attributes:
        fill: makes the values of one of its text.
    """

    def __init__(self, shape: Shape, blank: str) -> None:
        self._shape = shape
        self._blank = blank

    @cached_property
    def fill(self) -> Fill:
        return filler(self._shape, self._blank)

    @cached_property
    def _scanner(self) -> Any:
        pattern: Any = re.compile(f"{proof_of(self._shape, self._blank)}{BLANK}")
        return pattern.scanner

    def take_all(self, text: str, at: int) -> tuple[list[str], int]:
        """The texts of the objects that stand at a position one after the other, and where the last ends.

        Between one object and the next there may be blanks in any case.
        """
        found = list(iter(self._scanner(text, at).match, None))  # each begins where the one before it ends
        return list(map(re.Match.group, found)), found[-1].end() if found else at
