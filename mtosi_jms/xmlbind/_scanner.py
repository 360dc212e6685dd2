"""Reads objects from the text of a document, by the patterns of shapes."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Final

from mtosi_jms.xmlbind._fast import Odd
from mtosi_jms.xmlbind._pieces import OCTETS, Islands, Piece
from mtosi_jms.xmlbind._plan import Slot
from mtosi_jms.xmlbind._proofs import Fill, filler, proof_of
from mtosi_jms.xmlbind._scanplan import BLANK, Child, Layout, Shape, Steps, Unable
from mtosi_jms.xmlbind._unread import may_be_unread, unread

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


LARGE: Final = 16_384
"""Characters from which the objects of a list may be unread."""
WORTH_SHELLS = 1_000
"""Objects of a list after which it is worth another pattern."""


class Scanner:
    """Reads the elements of one layout from text.

    Args:
        layout: what they look like.
        islands: reads the elements that no pattern describes.
    """

    __slots__ = ("_cls", "_shape", "_shells", "_steps", "_taken", "_whole", "takes_octets")

    def __init__(self, layout: Layout, islands: Islands) -> None:
        self._cls: Any = layout.table.cls
        self._shape = layout if isinstance(layout, Shape) else None
        self._whole = Piece(self._shape, self._cls, islands) if self._shape is not None else None
        self._shells: Shells | None = None
        self._taken = 0
        self._steps: list[Piece | tuple[Slot, Scanner]] = []
        self.takes_octets = self._shape is None or self._shape.pattern.isascii()
        for step in layout.steps if isinstance(layout, Steps) else ():
            if isinstance(step, Child):
                inner = Scanner(step.layout, islands)
                self._steps.append((step.slot, inner))
                self.takes_octets &= inner.takes_octets
            else:
                self._steps.append(Piece(step, dict, islands))
                self.takes_octets &= step.pattern.isascii()

    def read(self, text: str, at: int, care: int) -> tuple[Any, int] | None:
        """The object that stands at a position, and where it ends; None where none begins there.

        Args:
            text: the document.
            at: where the object begins.
            care: what there is in the document: REFERENCES, OCTETS, both or 0.

        Raises:
            NOT_PLAIN: it has to be read from the tree.
        """
        if self._whole is not None:
            return self._whole.take(text, at, care)
        values: dict[str, Any] = {}
        for number, step in enumerate(self._steps):
            if isinstance(step, Piece):
                taken = step.take(text, at, care)
                if taken is None and number:
                    raise Odd
                if taken is None:
                    return None
                values |= taken[0]
                at = taken[1]
            else:
                at = step[1]._add(values, step[0], text, at, care)
        return self._cls(**values), at

    def read_all(self, text: str, at: int, care: int) -> tuple[list[Any], int]:
        """The objects that stand at a position one after the other, and where the last ends; as `read`.

        Those of large documents may be unread.
        """
        if self._whole is not None:
            if len(text) >= LARGE and (shells := self._made_shells(text, care)) is not None:
                return shells.take_all(text, at, care)
            found, at = self._whole.take_all(text, at, care)
            self._taken += len(found)
            return found, at
        found = []
        while (taken := self.read(text, at, care)) is not None:
            found.append(taken[0])
            at = taken[1]
        return found, at

    def _made_shells(self, text: str, care: int) -> Shells | None:
        """What makes unread objects, made once there were objects enough to be worth it."""
        if self._shells is None and self._shape is not None and self._whole is not None and self._taken >= WORTH_SHELLS:
            try:
                self._shells = Shells(self._shape, self._whole)
            except Unable:
                self._shape = None
        return self._shells if care & OCTETS or text.isascii() else None

    def _add(self, values: dict[str, Any], slot: Slot, text: str, at: int, care: int) -> int:
        """Read the elements of a field; the position behind them."""
        if slot.many:
            found, end = self.read_all(text, at, care)
        else:
            taken = self.read(text, at, care)
            found, end = ([], at) if taken is None else ([taken[0]], taken[1])
        if found:
            values[slot.name] = found if slot.many else found[0]
        elif slot.field.min:
            raise Odd
        return end
