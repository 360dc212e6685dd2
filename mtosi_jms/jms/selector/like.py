"""Patterns of LIKE, matched without going back: the time is bounded by length of text times length of pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mtosi_jms.errors import SelectorError

Segment: TypeAlias = tuple[str | None, ...]
"""What stands between two `%`: characters, and None where any one will do."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern: `%` stands for any text, also none, `_` for one character, both for themselves behind the escape.

    Attributes:
        text: the pattern as written.
        escape: one character, None where there is none.
        position: of the literal in the selector, for errors.
        escape_position: the same of the literal behind ESCAPE.

    Raises:
        SelectorError: an escape that is not one character, or that stands before something else than `%`, `_` or
            itself, which SQL does not allow.
    """

    text: str
    escape: str | None = None
    position: int = 0
    escape_position: int = 0

    def __post_init__(self) -> None:
        if self.escape is not None and len(self.escape) != 1:
            raise SelectorError("the text behind ESCAPE is one character", self.escape_position)
        self.segments()

    def segments(self) -> tuple[Segment, ...]:
        """The pattern cut at each `%`: one segment more than there are of them."""
        done: list[Segment] = []
        segment: list[str | None] = []
        characters = iter(self.text)
        for character in characters:
            if character == self.escape:
                escaped = next(characters, "")
                if escaped not in {"%", "_", self.escape}:
                    raise SelectorError("the escape character stands before %, _ or itself only", self.position)
                segment.append(escaped)
            elif character == "%":
                done.append(tuple(segment))
                segment = []
            else:
                segment.append(None if character == "_" else character)
        return (*done, tuple(segment))

    def matcher(self) -> Callable[[str], bool]:
        """A function that tells whether a text matches."""
        first, *rest = self.segments()
        if not rest:
            return _whole(first)
        *middle, last = rest
        if not any(middle) and None not in (*first, *last):
            return _ends(_text(first), _text(last))
        return _gaps(first, [part for part in middle if part], last)


def escaped(text: str, escape: str) -> str:
    """The text as a pattern that only it matches."""
    for special in (escape, "%", "_"):
        text = text.replace(special, escape + special)
    return text


def _text(segment: Segment) -> str:
    return "".join(character or "" for character in segment)


def _regex(segment: Segment) -> re.Pattern[str]:
    """All texts that match have the same length, so that there is nothing to try twice."""
    return re.compile("".join("." if one is None else re.escape(one) for one in segment), re.DOTALL)


def _whole(segment: Segment) -> Callable[[str], bool]:
    if None not in segment:
        return _text(segment).__eq__
    full = _regex(segment).fullmatch
    return lambda text: full(text) is not None


def _ends(head: str, tail: str) -> Callable[[str], bool]:
    if not tail:
        return lambda text: text.startswith(head)
    least = len(head) + len(tail)
    return lambda text: len(text) >= least and text.startswith(head) and text.endswith(tail)


def _gaps(first: Segment, middle: list[Segment], last: Segment) -> Callable[[str], bool]:
    """Each segment in the middle is taken where it first fits: no later place would leave more for the others."""
    head, tail, searches = _regex(first).match, _regex(last).fullmatch, [_regex(part).search for part in middle]
    width, least = len(last), len(first) + len(last)

    def matches(text: str) -> bool:
        if len(text) < least or head(text) is None:
            return False
        stop = len(text) - width
        if tail(text, stop) is None:
            return False
        start = len(first)
        for search in searches:
            found = search(text, start, stop)
            if found is None:
                return False
            start = found.end()
        return True

    return matches
