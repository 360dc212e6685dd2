"""Facets: the bounds that a restricted simple type sets to its values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Facets:
    """Bounds of a restricted simple type; None means no bound.

    Attributes:
        patterns: Python regular expressions; the text must match all of them whole.
        min_length, max_length: characters, octets or list items.
        minimum, maximum: inclusive bounds.
        above, below: exclusive bounds.
        digits, fraction: most digits in all, most digits after the point.
        values: allowed texts where an enumeration has no class of its own.
    """

    patterns: tuple[re.Pattern[str], ...] = ()
    min_length: int | None = None
    max_length: int | None = None
    minimum: Any = None
    maximum: Any = None
    above: Any = None
    below: Any = None
    digits: int | None = None
    fraction: int | None = None
    values: frozenset[str] | None = None

    def problem(self, value: Any, text: str) -> str | None:
        """What the facets object to, None if nothing."""
        if self.values is not None and text not in self.values:
            return "not one of the values listed"
        if any(not pattern.fullmatch(text) for pattern in self.patterns):
            return "does not match the pattern"
        return self._length_problem(value) or self._bound_problem(value) or self._digit_problem(value)

    def _length_problem(self, value: Any) -> str | None:
        if self.min_length is not None and len(value) < self.min_length:
            return f"shorter than {self.min_length}"
        if self.max_length is not None and len(value) > self.max_length:
            return f"longer than {self.max_length}"
        return None

    def _bound_problem(self, value: Any) -> str | None:
        try:
            if self.minimum is not None and value < self.minimum:
                return f"less than {self.minimum}"
            if self.maximum is not None and value > self.maximum:
                return f"more than {self.maximum}"
            if self.above is not None and value <= self.above:
                return f"not above {self.above}"
            if self.below is not None and value >= self.below:
                return f"not below {self.below}"
        except TypeError:
            return "not comparable with its bound"
        return None

    def _digit_problem(self, value: Any) -> str | None:
        if self.digits is None and self.fraction is None:
            return None
        before, after = _digits(Decimal(value))
        if self.digits is not None and before + after > self.digits:
            return f"more than {self.digits} digits"
        if self.fraction is not None and after > self.fraction:
            return f"more than {self.fraction} digits after the point"
        return None


def _digits(number: Decimal) -> tuple[int, int]:
    """How many digits a number needs before and after the point, without zeros at either end."""
    plain = format(number.copy_abs(), "f") if number.is_finite() else ""
    before, _, after = plain.partition(".")
    return len(before.lstrip("0")), len(after.rstrip("0"))


def merged(old: Facets | None, new: Facets) -> Facets:
    """The facets of a type and of one derived from it: the newer bound counts, all patterns hold."""
    if old is None:
        return new
    bounds = {name: getattr(new, name) for name in Facets.__slots__ if getattr(new, name) is not None}
    kept = {name: getattr(old, name) for name in Facets.__slots__}
    return Facets(**{**kept, **bounds, "patterns": old.patterns + new.patterns})
