"""The simple types of generated classes: built-in types, types with facets, unions, lists and enumerations.

Each type has three methods. `exact` is the fast path: it reads valid text in the form that we would write. `lenient`
reads any text that has a value, and says what is wrong with it. `format` writes a value and is strict.
"""

from __future__ import annotations

import copy
import datetime as dt
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any, Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import XSD, split_clark
from mtosi_jms.xmlbind import _lexical as lexical
from mtosi_jms.xmlbind._registry import resolve_class
from mtosi_jms.xmlbind._values import XmlEnum

compiled: Final = cache(re.compile)
"""Compiles a pattern when a text is first checked: those of names in XML take 40 ms."""


@dataclass(frozen=True, slots=True)
class Facets:
    """Bounds of a restricted simple type; None means no bound.

    Attributes:
        patterns: Python regular expressions; the whole text must match each of them.
        min_length, max_length: number of characters, octets or list items.
        above, below: exclusive bounds.
        digits, fraction: most digits in total, and after the point.
        values: allowed texts, for an enumeration without a class of its own.
        allowed: the values of these texts, which other texts may have, too.
    """

    patterns: tuple[str, ...] = ()
    min_length: int | None = None
    max_length: int | None = None
    minimum: Any = None
    maximum: Any = None
    above: Any = None
    below: Any = None
    digits: int | None = None
    fraction: int | None = None
    values: frozenset[str] | None = None
    allowed: tuple[Any, ...] = ()

    def problem(self, value: Any, text: str) -> str | None:
        """Return which facet a value violates; None if none."""
        if self.values is not None and text not in self.values and not self._is_allowed(value):
            return "not one of the values listed"
        if any(not compiled(pattern).fullmatch(text) for pattern in self.patterns):
            return "does not match the pattern"
        return self._length_problem(value) or self._bound_problem(value) or self._digit_problem(value)

    def _is_allowed(self, value: Any) -> bool:
        return not isinstance(value, str) and any(same(value, other) for other in self.allowed)

    def _length_problem(self, value: Any) -> str | None:
        if self.min_length is not None and len(value) < self.min_length:
            return f"shorter than {self.min_length}"
        if self.max_length is not None and len(value) > self.max_length:
            return f"longer than {self.max_length}"
        return None

    def _bound_problem(self, value: Any) -> str | None:
        if isinstance(value, str):
            value = lexical.Moment(value) if any(getattr(self, name) is not None for name in _BOUNDS) else value
        try:
            if self.minimum is not None and not value >= self.minimum:
                return f"less than {self.minimum}"
            if self.maximum is not None and not value <= self.maximum:
                return f"more than {self.maximum}"
            if self.above is not None and not value > self.above:
                return f"not above {self.above}"
            if self.below is not None and not value < self.below:
                return f"not below {self.below}"
        except TypeError:
            return self._zone_problem(value)
        return None

    def _zone_problem(self, value: Any) -> str | None:
        """Return which bound a time violates, if only one of the two has a time zone."""
        if not isinstance(value, (dt.datetime, dt.time)):
            return "not comparable with its bound"
        return self.on_time_line(lambda bound: bound.isoformat())._bound_problem(value.isoformat())

    def on_time_line(self, text: Callable[[Any], str]) -> Facets:
        """Return the facets with their bounds as `Moment`, by their texts in a form of XML Schema."""
        bounds = {name: bound for name in _BOUNDS if (bound := getattr(self, name)) is not None}
        times: dict[str, Any] = {name: lexical.Moment(text(bound)) for name, bound in bounds.items()}
        return replace(self, **times)

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
    """Return the number of digits before and after the point, without zeros at either end."""
    plain = format(number.copy_abs(), "f") if number.is_finite() else ""
    before, _, after = plain.partition(".")
    return len(before.lstrip("0")), len(after.rstrip("0"))


def same(one: Any, other: Any) -> bool:
    """Whether two values of a type are equal in XML Schema, where NaN equals itself."""
    return bool(one == other) or (one != one and other != other)


def merged(old: Facets | None, new: Facets) -> Facets:
    """Return the facets of a derived type: its own bounds override those of the base, and all patterns apply."""
    if old is None:
        return new
    bounds = {name: getattr(new, name) for name in Facets.__slots__ if getattr(new, name) not in (None, ())}
    kept = {name: getattr(old, name) for name in Facets.__slots__}
    return Facets(**{**kept, **bounds, "patterns": old.patterns + new.patterns})


__all__ = [
    "ANY_SIMPLE",
    "ANY_URI",
    "BASE64",
    "BOOLEAN",
    "BYTE",
    "DATE",
    "DATE_TIME",
    "DECIMAL",
    "DOUBLE",
    "DURATION",
    "ENTITIES",
    "ENTITY",
    "FLOAT",
    "G_DAY",
    "G_MONTH",
    "G_MONTH_DAY",
    "G_YEAR",
    "G_YEAR_MONTH",
    "HEX",
    "ID",
    "IDREF",
    "IDREFS",
    "INT",
    "INTEGER",
    "ITU_TIME",
    "LANGUAGE",
    "LONG",
    "NAME",
    "NCNAME",
    "NEGATIVE_INTEGER",
    "NMTOKEN",
    "NMTOKENS",
    "NON_NEGATIVE_INTEGER",
    "NON_POSITIVE_INTEGER",
    "NORMALIZED",
    "NOTATION",
    "POSITIVE_INTEGER",
    "QNAME",
    "SHORT",
    "STRING",
    "TIME",
    "TOKEN",
    "UNSIGNED_BYTE",
    "UNSIGNED_INT",
    "UNSIGNED_LONG",
    "UNSIGNED_SHORT",
]

_ZONE = r"(?:Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_YEAR = r"-?(?!0000)(?:[1-9][0-9]{4,}|[0-9]{4})"
_MONTH = "(?:0[1-9]|1[0-2])"
_DAY = "(?:0[1-9]|[12][0-9]|3[01])"
_MONTH_DAY = f"(?!02-3|(?:04|06|09|11)-31){_MONTH}-{_DAY}"
_BOUNDS: Final = ("minimum", "maximum", "above", "below")
_LARGE: Final = 10**18
_BLANKS = re.compile(r"[\t\n\r ]+")


class SimpleType:
    """A simple type of a schema.

    Attributes:
        plain: whether every text is its own value, so that no conversion is needed.
        arrow: kind of value in columns: string, boolean, integer, long, decimal, double, timestamp, date, binary or
            list.
        collapse: whether white space around the text is removed, and runs of it inside become one blank.
        known: values of known texts, for the fast path.
    """

    __slots__ = ("_format", "_parse", "_quick", "arrow", "collapse", "facets", "known", "name", "parts", "plain")

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        format_: Callable[[Any], str],
        *,
        arrow: str = "string",
        collapse: bool = True,
        facets: Facets | None = None,
        quick: Callable[[str], Any] | None = None,
    ) -> None:
        """Make a type. These arguments are not attributes:

        Args:
            parse: makes a value from text, after the treatment of white space.
            format_: makes text from a value.
            quick: like `parse`, but only has to be right for text in the form of `format_`: `exact` writes the value
                again and compares the texts.
        """
        self.name = name
        self._parse = parse
        self._quick = quick or parse
        self._format = format_
        self.arrow = arrow
        self.collapse = collapse
        self.facets = facets
        self.known: dict[str | None, Any] = {}
        self.parts: tuple[SimpleType, ...] = ()
        self.plain = parse is lexical.parse_string and not collapse and facets is None

    def exact(self, text: str) -> Any:
        """Return the value of valid text in the form that we would write. Raises ValueError: other text; `lenient` may
        still find a value."""
        value = self._quick(text)
        if self.format(value) != text or (self.collapse and _collapsed(text) != text):
            raise ValueError("not the form that we write")
        return value

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """Return the value of a text, and what is wrong with it; None if nothing. Raises ValueError: the text has no
        value."""
        text = _collapsed(text) if self.collapse else text
        value = self._parse(text)
        return value, self.facets.problem(value, text) if self.facets else None

    def format(self, value: Any) -> str:
        """The text of a value. Raises TypeError: a value of another type; ValueError: outside the facets."""
        return self._within(value, self._format(value))

    def _within(self, value: Any, text: str) -> str:
        if self.facets and (problem := self.facets.problem(value, text)):
            raise ValueError(problem)
        return text

    def to_plain(self, value: Any) -> Any:
        """Return a value for JSON: itself, or its text. Facets are not checked. Raises TypeError, ValueError: a value
        of another type."""
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
            return value
        return self._format(value)

    def from_plain(self, plain: Any) -> Any:
        """Return the value from which `to_plain` made this. Raises TypeError, ValueError: it is not such a value."""
        if not isinstance(plain, str):
            self._format(plain)
            return plain
        return plain if self._parse is lexical.parse_string else self.lenient(plain)[0]

    @property
    def canonical(self) -> tuple[str, int, int] | None:
        """The conversion that the native core can do itself, for text in the form that we would write.

        It is `date`, `dateTime`, or `integer` with its bounds; None for other types.
        """
        if self._quick in (dt.date.fromisoformat, dt.datetime.fromisoformat) and self.facets is None:
            return ("date" if self._quick == dt.date.fromisoformat else "dateTime"), 0, 0
        facets = self.facets or Facets()
        if self._parse is not lexical.parse_integer or replace(facets, minimum=None, maximum=None) != Facets():
            return None
        least, most = facets.minimum, facets.maximum
        return (
            "integer",
            max(-_LARGE, -_LARGE if least is None else least),
            min(_LARGE, _LARGE if most is None else most),
        )

    @property
    def qualified(self) -> bool:
        """Whether the values are qualified names, or lists of them, so that reading needs the namespaces in scope."""
        return False

    @property
    def default(self) -> str:
        """The text that an empty element means: an empty text, unless its declaration has a default."""
        return ""

    def breach(self, value: Any, text: str) -> str | None:
        """Return which facet a value and its text violate; None if none."""
        return self.facets.problem(value, text) if self.facets else None

    def bind(self, root: str) -> None:
        """Set the package to which paths in the type, and in the types that it is made of, are relative."""
        for part in self.parts:
            part.bind(root)

    def restrict(self, name: str, facets: Facets) -> SimpleType:
        """Return this type with more facets."""
        derived = copy.copy(self)
        derived.name = name
        derived.facets = merged(self.facets, replace(facets, allowed=self._values_of(facets.values or ())))
        derived.plain = False
        derived.known = {}
        return derived

    def _values_of(self, texts: Iterable[str]) -> tuple[Any, ...]:
        values: list[Any] = []
        for text in texts:
            with suppress(ValueError):
                values.append(self.lenient(text)[0])
        return tuple(values)


def _collapsed(text: str) -> str:
    return _BLANKS.sub(" ", text).strip(" ")


class DateTimeType(SimpleType):
    """xsd:dateTime; other forms that real systems send are read with a warning (C03)."""

    __slots__ = ()

    def lenient(self, text: str) -> tuple[Any, str | None]:
        try:
            return super().lenient(text)
        except ValueError:
            return lexical.parse_loose_date_time(text.strip()), "not an xsd:dateTime"


class ItuTimeType(DateTimeType):
    """The time of ITU-T X.721 in MTOSI 1.x; an xsd:dateTime and other forms are read with a warning (C03)."""

    __slots__ = ()

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """As for every simple type, and also with the forms of xsd:dateTime and of `parse_loose_date_time`."""
        try:
            return SimpleType.lenient(self, text)
        except ValueError:
            return DATE_TIME.lenient(text)[0], "not a time of the form yyyymmddhhmmss.s"


class PartType(SimpleType):
    """A part of a date, such as xsd:gYear: a text whose bounds are compared as times."""

    __slots__ = ()

    def restrict(self, name: str, facets: Facets) -> SimpleType:
        return super().restrict(name, facets.on_time_line(str))


class QNameType(SimpleType):
    """xsd:QName: the value is the Clark name, which the decoder makes from the text and the namespaces in scope."""

    __slots__ = ()

    @property
    def qualified(self) -> bool:
        return True

    def breach(self, value: Any, text: str) -> str | None:
        """As for every simple type, but `values` has Clark names."""
        if self.facets is None:
            return None
        if self.facets.values is not None and value not in self.facets.values:
            return "not one of the values listed"
        return replace(self.facets, values=None).problem(value, text)

    def exact(self, text: str) -> Any:
        raise ValueError("a qualified name needs the namespaces in scope")


class EnumType(SimpleType):
    """An enumeration; the class is found when the field that has it is first used."""

    __slots__ = ("_cls", "_path")

    def __init__(self, path: str) -> None:
        super().__init__(path.rpartition(":")[2], str, str, collapse=False)
        self._path = path
        self._cls: type[XmlEnum] | None = None

    def bind(self, root: str) -> None:
        if self._cls is None:
            cls = resolve_class(self._path, root)
            members = {str(member._value_): member for member in cls}
            self.known = {text: member for text, member in members.items() if not self._breach(text)}
            self._cls = cls  # must be last: another thread may check it while the line above runs

    @property
    def cls(self) -> type[XmlEnum]:
        """The enumeration class. Raises ConfigError: the type was never bound to its package."""
        if self._cls is None:
            raise ConfigError(f"enumeration {self._path} is not bound to a package")
        return self._cls

    def exact(self, text: str) -> Any:
        """Return the member of a listed value."""
        if text not in self.known:
            raise ValueError("not one of the values listed")
        return self.known[text]

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """Return the member of a text: a listed value, also with blanks around it, otherwise an unregistered member."""
        member = self.known.get(text.strip())
        if member is not None:
            return member, None if text in self.known else "blanks around an enumeration value"
        return self.cls(text), self._breach(text) or f"{text[:60]!r} is not one of the values listed"

    def from_plain(self, plain: Any) -> Any:
        """Return the member of a text, registered or not."""
        if not isinstance(plain, str):
            raise TypeError(f"text is needed, not {type(plain).__name__}")
        return self.cls(plain)

    def _breach(self, text: str) -> str | None:
        return self.facets.problem(text, text) if self.facets else None

    def restrict(self, name: str, facets: Facets) -> SimpleType:
        """Return this enumeration with fewer values."""
        derived = EnumType(self._path)
        derived.name = name
        derived.facets = merged(self.facets, facets)
        return derived

    def format(self, value: Any) -> str:
        """Return the text of a member, registered or not, or of a listed value that is given as text."""
        if isinstance(value, self.cls) or (isinstance(value, str) and value in self.known):
            text = str(value)
            if problem := self._breach(text):
                raise ValueError(problem)
            return text
        raise ValueError(f"{value!r} is not a member of {self.cls.__name__}")


class UnionType(SimpleType):
    """A union: a text has the first member type whose lexical space contains it."""

    __slots__ = ("members",)

    def __init__(self, members: tuple[SimpleType, ...]) -> None:
        kinds = {member.arrow for member in members}
        arrow = kinds.pop() if len(kinds) == 1 else "string"
        super().__init__("union", str, str, arrow=arrow, collapse=False)
        self.members = self.parts = members

    def exact(self, text: str) -> Any:
        value, problem = self.lenient(text)
        if problem or self.format(value) != text:
            raise ValueError(problem or "not the form that we write")
        return value

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """Return the value in the first member type in which the text is valid, else in the first that reads it."""
        second: tuple[Any, str | None] | None = None
        for member in self.members:
            try:
                value, problem = member.lenient(text)
            except ValueError:
                continue
            if problem is None:
                return value, self.facets.problem(value, text) if self.facets else None
            second = second or (value, problem)
        if second is None:
            raise ValueError("fits none of the types of the union")
        return second

    def to_plain(self, value: Any) -> Any:
        """Return the plain value of the first member type from which the union makes the same value again."""

        def plain_in(member: SimpleType) -> Any:
            plain = member.to_plain(value)
            if self.from_plain(plain) != value:
                raise ValueError("another value")
            return plain

        return self._first(plain_in, value)

    def from_plain(self, plain: Any) -> Any:
        """Return the value of text in the union; for other plain values, that of the first type that accepts it."""
        if isinstance(plain, str):
            return self.lenient(plain)[0]
        return self._first(lambda member: member.from_plain(plain), plain)

    def format(self, value: Any) -> str:
        """Return the text of a value in the first member type that can write it."""
        return self._within(value, self._first(lambda member: member.format(value), value))

    def _first(self, act: Callable[[SimpleType], Any], value: Any) -> Any:
        for member in self.members:
            with suppress(TypeError, ValueError, ArithmeticError):
                return act(member)
        raise ValueError(f"{value!r:.60} fits none of the types of the union")


class ListType(SimpleType):
    """A list of one simple type, separated by blanks."""

    __slots__ = ("item",)

    @property
    def qualified(self) -> bool:
        """Whether the items are qualified names."""
        return self.item.qualified

    def breach(self, value: Any, text: str) -> str | None:
        """As for every simple type, but `values` is not checked for lists of qualified names."""
        if not self.qualified:
            return super().breach(value, text)
        items = (self.item.breach(*pair) for pair in zip(value, text.split(), strict=True))
        facets = replace(self.facets, values=None) if self.facets else Facets()
        return next((problem for problem in items if problem), None) or facets.problem(value, text)

    def __init__(self, item: SimpleType, facets: Facets | None = None) -> None:
        super().__init__(f"list of {item.name}", str, str, arrow="list", facets=facets)
        self.item = item
        self.parts = (item,)

    def exact(self, text: str) -> Any:
        if _collapsed(text) != text:
            raise ValueError("not the form that we write")
        values = [self.item.exact(part) for part in text.split(" ")] if text else []
        self._within(values, text)
        return values

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """Return the items, and the first problem of an item or of the list."""
        text = _collapsed(text)
        items = [self.item.lenient(part) for part in text.split(" ")] if text else []
        values = [value for value, _ in items]
        problem = next((problem for _, problem in items if problem), None)
        return values, problem or (self.facets.problem(values, text) if self.facets else None)

    def to_plain(self, value: Any) -> Any:
        """Return the items for JSON."""
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"a list is needed, not {type(value).__name__}")
        return [self.item.to_plain(part) for part in value]

    def from_plain(self, plain: Any) -> Any:
        if not isinstance(plain, (list, tuple)):
            raise TypeError(f"a list is needed, not {type(plain).__name__}")
        return [self.item.from_plain(part) for part in plain]

    def format(self, value: Any) -> str:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"a list is needed, not {type(value).__name__}")
        parts = [self.item.format(part) for part in value]
        if any(not part or _BLANKS.search(part) for part in parts):
            raise ValueError("an item of a list must neither be empty nor hold blanks")
        return self._within(value, " ".join(parts))


class GivenType(SimpleType):
    """A simple type in a declaration with a default or a fixed value.

    Args:
        default: the text that an empty element means; None for an empty text.
        fixed: the text of the only allowed value; None if all values are allowed.
    """

    __slots__ = ("_default", "_fixed", "_wanted", "inner")

    def __init__(self, inner: SimpleType, default: str | None, fixed: str | None) -> None:
        super().__init__(inner.name, str, str, arrow=inner.arrow, collapse=inner.collapse, facets=Facets())
        self.inner = inner
        self.parts = (inner,)
        self._default = default
        self._fixed = fixed
        self._wanted: Any = None

    @property
    def default(self) -> str:
        return self._default or ""

    def exact(self, text: str) -> Any:
        """Return the value of valid text in the form that we would write; an empty text with a default never is."""
        if not text and self._default is not None:
            raise ValueError("the default value stands here")
        value = self.inner.exact(text)
        if problem := self._breach(value):
            raise ValueError(problem)
        return value

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """Return the value of a text, or of the default if the text is empty."""
        value, problem = self.inner.lenient(text or self._default or "")
        return value, problem or self._breach(value)

    def _breach(self, value: Any) -> str | None:
        if self._fixed is None:
            return None
        if self._wanted is None:
            self._wanted = self.inner.lenient(self._fixed)[0]
        return None if same(value, self._wanted) else f"only {self._fixed!r:.60} is allowed"

    def format(self, value: Any) -> str:
        """Return the text of a value, which must be the fixed value if there is one."""
        text = self.inner.format(value)
        if problem := self._breach(value):
            raise ValueError(problem)
        return text

    def to_plain(self, value: Any) -> Any:
        return self.inner.to_plain(value)

    def from_plain(self, plain: Any) -> Any:
        return self.inner.from_plain(plain)


def _integer(name: str, minimum: int | None = None, maximum: int | None = None) -> SimpleType:
    facets = Facets(minimum=minimum, maximum=maximum) if minimum is not None or maximum is not None else None
    arrow = "integer" if maximum is not None and maximum < 2**31 and (minimum or 0) >= -(2**31) else "long"
    if maximum is None or maximum > 2**63 - 1 or minimum is None:
        arrow = "decimal"
    return SimpleType(name, lexical.parse_integer, lexical.format_integer, arrow=arrow, facets=facets)


def _part(name: str, pattern: str) -> SimpleType:
    """Return the type of a part of a date: text that is ordered by its time."""
    return PartType(name, lexical.parse_string, lexical.format_string, facets=Facets(patterns=(pattern + _ZONE,)))


def _text(name: str, pattern: str = "", *, collapse: bool = True) -> SimpleType:
    facets = Facets(patterns=(pattern,)) if pattern else None
    return SimpleType(name, lexical.parse_string, lexical.format_string, collapse=collapse, facets=facets)


_LETTERS = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_SIGNS = rf"{_LETTERS}\-.0-9\u00b7\u0300-\u036f\u203f\u2040"
_NCNAME = f"[{_LETTERS}][{_SIGNS}]*"

STRING: Final = _text("string", collapse=False)
NORMALIZED: Final = _text("normalizedString", collapse=False)
TOKEN: Final = _text("token")
LANGUAGE: Final = _text("language", "[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*")
NMTOKEN: Final = _text("NMTOKEN", f"[{_SIGNS}:]+")
NAME: Final = _text("Name", f"[{_LETTERS}:][{_SIGNS}:]*")
NCNAME: Final = _text("NCName", _NCNAME)
ID: Final = _text("ID", _NCNAME)
IDREF: Final = _text("IDREF", _NCNAME)
ENTITY: Final = _text("ENTITY", _NCNAME)
ANY_URI: Final = _text("anyURI")
_QUALIFIED = Facets(patterns=(f"(?:{_NCNAME}:)?{_NCNAME}",))
QNAME: Final = QNameType("QName", lexical.parse_string, lexical.format_string, facets=_QUALIFIED)
NOTATION: Final = QNameType("NOTATION", lexical.parse_string, lexical.format_string, facets=_QUALIFIED)
ANY_SIMPLE: Final = _text("anySimpleType", collapse=False)
BOOLEAN: Final = SimpleType("boolean", lexical.parse_boolean, lexical.format_boolean, arrow="boolean")
BOOLEAN.known = {"true": True, "false": False}
DECIMAL: Final = SimpleType("decimal", lexical.parse_decimal, lexical.format_decimal, arrow="decimal")
FLOAT: Final = SimpleType("float", lexical.parse_float, lexical.format_float, arrow="double")
DOUBLE: Final = SimpleType("double", lexical.parse_float, lexical.format_float, arrow="double")
INTEGER: Final = _integer("integer")
NON_POSITIVE_INTEGER: Final = _integer("nonPositiveInteger", None, 0)
NEGATIVE_INTEGER: Final = _integer("negativeInteger", None, -1)
NON_NEGATIVE_INTEGER: Final = _integer("nonNegativeInteger", 0)
POSITIVE_INTEGER: Final = _integer("positiveInteger", 1)
LONG: Final = _integer("long", -(2**63), 2**63 - 1)
INT: Final = _integer("int", -(2**31), 2**31 - 1)
SHORT: Final = _integer("short", -(2**15), 2**15 - 1)
BYTE: Final = _integer("byte", -128, 127)
UNSIGNED_LONG: Final = _integer("unsignedLong", 0, 2**64 - 1)
UNSIGNED_INT: Final = _integer("unsignedInt", 0, 2**32 - 1)
UNSIGNED_SHORT: Final = _integer("unsignedShort", 0, 2**16 - 1)
UNSIGNED_BYTE: Final = _integer("unsignedByte", 0, 255)
DATE_TIME: Final = DateTimeType(
    "dateTime", lexical.parse_date_time, lexical.format_date_time, arrow="timestamp", quick=dt.datetime.fromisoformat
)
ITU_TIME: Final = ItuTimeType("ITU-Time_T", lexical.parse_itu_time, lexical.format_itu_time, arrow="timestamp")
DATE: Final = SimpleType("date", lexical.parse_date, lexical.format_date, arrow="date", quick=dt.date.fromisoformat)
TIME: Final = SimpleType("time", lexical.parse_time, lexical.format_time, arrow="string")
DURATION: Final = SimpleType("duration", lexical.parse_duration, lexical.format_duration, arrow="string")
G_YEAR: Final = _part("gYear", _YEAR)
G_YEAR_MONTH: Final = _part("gYearMonth", f"{_YEAR}-{_MONTH}")
G_MONTH: Final = _part("gMonth", f"--{_MONTH}(?:--)?")
G_MONTH_DAY: Final = _part("gMonthDay", f"--{_MONTH_DAY}")
G_DAY: Final = _part("gDay", f"---{_DAY}")
BASE64: Final = SimpleType("base64Binary", lexical.parse_base64, lexical.format_base64, arrow="binary")
NMTOKENS: Final = ListType(NMTOKEN, Facets(min_length=1))
IDREFS: Final = ListType(IDREF, Facets(min_length=1))
ENTITIES: Final = ListType(ENTITY, Facets(min_length=1))
HEX: Final = SimpleType("hexBinary", lexical.parse_hex, lexical.format_hex, arrow="binary")

_BUILT_IN: Final[dict[str, SimpleType]] = {
    **{kind.name: kind for kind in map(globals().__getitem__, __all__)},
    "NMTOKENS": NMTOKENS,
    "IDREFS": IDREFS,
    "ENTITIES": ENTITIES,
}


def builtin_type(tag: str) -> SimpleType | None:
    namespace, local = split_clark(tag)
    return _BUILT_IN.get(local) if namespace == XSD else None


def simple_type(cls: Any) -> SimpleType | None:
    """Return the simple type of a generated enumeration; None for any other class."""
    if not (isinstance(cls, type) and issubclass(cls, XmlEnum)):
        return None
    return STRING.restrict(cls.__name__, Facets(values=frozenset(str(member) for member in cls)))
