"""Makes texts that match a pattern of XML Schema."""

from __future__ import annotations

import random
import re
from typing import Final

from mtosi_jms.errors import SchemaError

_POOL: Final = [chr(code) for code in range(0x20, 0x7F)] + ["ä", "Ω", "中"]
_MOST: Final = 3
_QUANTIFIER: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")


def matching_text(pattern: str, rng: random.Random) -> str:
    """One text that should match the pattern; the caller checks it. Raises SchemaError: the pattern has a character
    class without a member among the characters that are tried."""
    return _Walker(pattern, rng).branches()


class _Walker:
    def __init__(self, pattern: str, rng: random.Random) -> None:
        self._text = pattern
        self._rng = rng
        self._place = 0

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def branches(self) -> str:
        """Read alternatives up to the end or a closing bracket, and choose one."""
        found = [self._branch()]
        while self._peek() == "|":
            self._place += 1
            found.append(self._branch())
        return self._rng.choice(found)

    def _branch(self) -> str:
        pieces = []
        while self._peek() not in ("", "|", ")"):
            pieces.append(self._piece())
        return "".join(pieces)

    def _piece(self) -> str:
        start = self._place
        first = self._atom()
        low, high = self._quantifier()
        end = self._place
        texts = [first] if high else []
        for _ in range(1, self._rng.randint(low, high) if high else 0):
            self._place = start
            texts.append(self._atom())
        self._place = end
        return "".join(texts) if low or self._rng.random() < 0.5 else ""

    def _quantifier(self) -> tuple[int, int]:
        sign = self._peek()
        if sign and sign in "?*+":
            self._place += 1
            return {"?": (0, 1), "*": (0, _MOST), "+": (1, _MOST)}[sign]
        match = _QUANTIFIER.match(self._text, self._place)
        if match is None:
            return 1, 1
        self._place = match.end()
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else low + _MOST
        return low, min(high, low + _MOST)

    def _atom(self) -> str:
        sign = self._peek()
        if sign == "(":
            self._place += 1
            text = self.branches()
            self._place += 1
            return text
        start = self._place
        if sign == "[":
            self._skip_class()
        elif sign == "\\":
            self._place += 2
            if self._text[start + 1 : start + 2] in ("p", "P"):
                self._place = self._text.find("}", start) + 1 or len(self._text)
        elif sign != ".":
            self._place += 1
            return sign
        else:
            self._place += 1
        return self._one_of(self._text[start : self._place])

    def _skip_class(self) -> None:
        depth = 0
        while self._place < len(self._text):
            sign = self._peek()
            self._place += 2 if sign == "\\" else 1
            depth += {"[": 1, "]": -1}.get(sign, 0)
            if depth == 0:
                return

    def _one_of(self, atom: str) -> str:
        """A character of a class or an escape."""
        from elementpath.regex import translate_pattern

        wanted = re.compile(translate_pattern(atom, back_references=False, lazy_quantifiers=False, anchors=False))
        found = [char for char in _POOL if wanted.match(char)] or [
            chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000 and wanted.match(chr(code))
        ]
        if not found:
            raise SchemaError(f"no character is found for {atom!r} of a pattern")
        plain = [char for char in found if char.isalnum()]
        return self._rng.choice(plain or found)
