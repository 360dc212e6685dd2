"""Valid texts of simple types: the shortest, and others in turn."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from xmlschema.validators import XsdList, XsdSimpleType, XsdUnion
from xmlschema.validators.facets import XsdEnumerationFacets, XsdPatternFacets

from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import XSD

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


_TRIES: Final = 40
_MOST_TRIED: Final = 400
_LONGEST: Final = 64
# By primitive type, the simplest first; other lexical forms of a value are included.
_SAMPLES: Final = {
    "boolean": ("true", "false", "1", "0"),
    "decimal": ("1", "0", "-1.5", "12345.678", "0.001", "100", "+7"),
    "float": ("1.0", "0.0", "-2.5E10", "INF", "NaN", "1"),
    "double": ("1.0", "0.0", "-2.5E300", "-INF", "NaN", "1"),
    "duration": ("P1D", "PT0S", "P1Y2M3DT4H5M6.7S", "-P3M"),
    "dateTime": (
        "2024-02-29T12:30:45Z", "1999-12-31T23:59:59.999+05:30", "2024-01-01T00:00:00", "2030-06-15T08:00:00.5-08:00"
    ),
    "time": ("12:30:45Z", "00:00:00", "23:59:59.123+01:00"),
    "date": ("2024-02-29", "1999-12-31Z", "2030-06-15-08:00"),
    "gYearMonth": ("2024-02", "1999-12Z"),
    "gYear": ("2024", "1999Z"),
    "gMonthDay": ("--02-29", "--12-31Z"),
    "gDay": ("---29", "---01Z"),
    "gMonth": ("--02", "--12Z"),
    "hexBinary": ("", "0A", "DEADBEEF"),
    "base64Binary": ("", "TVRPU0k=", "AAEC"),
    "anyURI": ("", "urn:example:a", "http://example.com/b?c=d&e=f"),
    "QName": ("name", "other.name"),
    "NOTATION": ("name",),
    "string": ("", "text", "Zürich & <more> text", "a  b", "中文", "x" * 32),
}  # fmt: skip
_WORDS: Final = ("text", "a", "en", "word-2", "en-GB", "Zuerich", "x1")


class Texts:
    """The texts of simple types; those of each type are found once."""

    def __init__(self) -> None:
        self._known: dict[XsdSimpleType, list[str]] = {}

    def of(self, xsd_type: XsdSimpleType) -> list[str]:
        """Some texts of a type, the simplest first. Raises SchemaError: none was found."""
        if xsd_type not in self._known:
            tried = itertools.islice(self._candidates(xsd_type), _MOST_TRIED)
            self._known[xsd_type] = [text for text in dict.fromkeys(tried) if xsd_type.is_valid(text)]
        found = self._known[xsd_type]
        if not found:
            raise SchemaError(f"no value is found for the type {xsd_type.name or xsd_type.base_type}")
        return found

    def _candidates(self, xsd_type: XsdSimpleType) -> Iterator[str]:
        enumeration = xsd_type.get_facet(f"{{{XSD}}}enumeration")
        variety = _variety(xsd_type)
        if isinstance(enumeration, XsdEnumerationFacets):
            yield from (element.get("value", "") for element in enumeration)
            return
        if isinstance(variety, XsdUnion):
            for member in variety.member_types:
                yield from self._candidates(member)
            return
        if isinstance(variety, XsdList):
            yield from self._lists(xsd_type, variety.item_type)
            return
        for pattern in _patterns(xsd_type):
            rng = random.Random(pattern)  # the same texts in any order of types
            yield from (matching_text(pattern, rng) for _ in range(_TRIES))
        yield from self._of_primitive(xsd_type)

    def _lists(self, xsd_type: XsdSimpleType, item: XsdSimpleType) -> Iterator[str]:
        known = [text for text in dict.fromkeys(self._candidates(item)) if text and item.is_valid(text)]
        if not known:
            return
        low, high = _lengths(xsd_type)
        for length in range(low, min(high, low + 4) + 1):
            yield " ".join(itertools.islice(itertools.cycle(known), length))

    def _of_primitive(self, xsd_type: XsdSimpleType) -> Iterator[str]:
        primitive = getattr(xsd_type, "primitive_type", None)
        name = (primitive.local_name if primitive is not None else None) or "string"
        yield from _bounds(xsd_type, name)
        samples = _SAMPLES.get(name, _SAMPLES["string"])
        if name in ("string", "anyURI"):
            low, high = _lengths(xsd_type)
            longest = min(high, max(low, _LONGEST))
            yield from (text for text in samples if low <= len(text) <= high)
            yield from (word for word in _WORDS if low <= len(word) <= high)
            yield "x" * low
            yield "y" * longest
        elif name in ("hexBinary", "base64Binary"):
            low, high = _lengths(xsd_type)
            yield from samples
            yield "00" * low
            yield "AAAA" * (low // 3) + ("", "AA==", "AAA=")[low % 3]
        else:
            yield from samples


def _variety(xsd_type: XsdSimpleType) -> XsdSimpleType:
    """The list or union that a type restricts; the type itself if it restricts neither."""
    found = xsd_type
    while not isinstance(found, (XsdList, XsdUnion)):
        if not isinstance(found.base_type, XsdSimpleType):
            return xsd_type
        found = found.base_type
    return found


def _patterns(xsd_type: XsdSimpleType) -> list[str]:
    """The patterns of the nearest derivation step that has any; patterns of other steps are left to the check."""
    facet = xsd_type.get_facet(f"{{{XSD}}}pattern")
    return facet.regexps if isinstance(facet, XsdPatternFacets) else []


def _lengths(xsd_type: XsdSimpleType) -> tuple[int, int]:
    return xsd_type.min_length or 0, xsd_type.max_length if xsd_type.max_length is not None else 1 << 20


def _bounds(xsd_type: XsdSimpleType, name: str) -> Iterator[str]:
    """Values at and around the bounds of an ordered type."""
    low, high = xsd_type.min_value, xsd_type.max_value
    if name in ("decimal", "float", "double"):
        for bound, step in ((low, 1), (high, -1)):
            if isinstance(bound, (int, float, Decimal)):
                yield from (str(bound), str(bound + step))
    else:
        yield from (str(bound) for bound in (low, high) if bound is not None)
