"""Simple types as the tables of generated classes name them: a base, its facets, unions, lists and enumerations.

Each type offers three things: `exact` (the fast path: valid text in the very form that we would write), `lenient`
(anything a value can be made of, and what is wrong with it) and `format` (strict, for emission).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.xmlbind import lexical
from mtosi_jms.xmlbind.refs import resolve_class
from mtosi_jms.xmlbind.values import XmlEnum

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

_ZONE = r"(?:Z|[+-]\d\d:\d\d)?"
_BLANKS = re.compile(r"[\t\n\r ]+")


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
        number = Decimal(value).normalize().as_tuple()
        exponent = number.exponent if isinstance(number.exponent, int) else 0
        after = max(0, -exponent)
        if self.digits is not None and max(len(number.digits) + max(0, exponent), after) > self.digits:
            return f"more than {self.digits} digits"
        if self.fraction is not None and after > self.fraction:
            return f"more than {self.fraction} digits after the point"
        return None


class SimpleType:
    """One simple type of a schema.

    Attributes:
        name: XSD name for messages.
        plain: whether any text is a value of itself, so that no conversion is needed.
        arrow: kind of value for columnar users: string, boolean, integer, long, decimal, double, timestamp, date,
            binary or list.
        known: texts whose exact value is known beforehand, for the fast path.
    """

    __slots__ = ("_format", "_parse", "arrow", "collapse", "facets", "known", "name", "plain")

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        format_: Callable[[Any], str],
        *,
        arrow: str = "string",
        collapse: bool = True,
        facets: Facets | None = None,
    ) -> None:
        self.name = name
        self._parse = parse
        self._format = format_
        self.arrow = arrow
        self.collapse = collapse
        self.facets = facets
        self.known: dict[str | None, Any] = {}
        self.plain = parse is lexical.parse_string and not collapse and facets is None

    def exact(self, text: str) -> Any:
        """The value of text that is valid and written as we would write it.

        Raises:
            ValueError: it is not; `lenient` may still make something of it.
        """
        value = self._parse(text)
        if self.format(value) != text or (self.collapse and _BLANKS.sub(" ", text).strip(" ") != text):
            raise ValueError("not the form that we write")
        return value

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """The value of any text that holds one, and what is wrong with it, None if nothing.

        Raises:
            ValueError: no value can be made of it.
        """
        collapsed = _BLANKS.sub(" ", text).strip(" ") if self.collapse else text
        value = self._parse(collapsed)
        return value, self.facets.problem(value, collapsed) if self.facets else None

    def format(self, value: Any) -> str:
        """The text of a value.

        Raises:
            TypeError: a value of another type.
            ValueError: outside the facets.
        """
        text = self._format(value)
        if self.facets and (problem := self.facets.problem(value, text)):
            raise ValueError(problem)
        return text

    def bind(self, root: str) -> None:
        """Tell the type which package the paths in it are relative to."""

    def restrict(self, name: str, facets: Facets) -> SimpleType:
        """This type with more facets."""
        return SimpleType(
            name,
            self._parse,
            self._format,
            arrow=self.arrow,
            collapse=self.collapse,
            facets=_merge(self.facets, facets),
        )


def _merge(old: Facets | None, new: Facets) -> Facets:
    if old is None:
        return new
    merged = {name: getattr(new, name) for name in Facets.__slots__ if getattr(new, name) is not None}
    kept = {name: getattr(old, name) for name in Facets.__slots__}
    return Facets(**{**kept, **merged, "patterns": old.patterns + new.patterns})


class DateTimeType(SimpleType):
    """xsd:dateTime; the forms of the field that are not XML Schema's are read with a warning (C03)."""

    __slots__ = ()

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """As for every simple type, with the forms of `parse_loose_date_time` besides."""
        try:
            return super().lenient(text)
        except ValueError:
            return lexical.parse_loose_date_time(text.strip()), "not an xsd:dateTime"


class EnumType(SimpleType):
    """An enumeration; the class is found when the field that has it is first used."""

    __slots__ = ("_cls", "_path", "_root")

    def __init__(self, path: str) -> None:
        super().__init__(path.rpartition(":")[2], self._member, self._text, collapse=False)
        self.plain = False
        self._path = path
        self._cls: type[XmlEnum] | None = None

    def bind(self, root: str) -> None:
        """Find the class."""
        if self._cls is None:
            self._cls = resolve_class(self._path, root)
            self.known = {str(member._value_): member for member in self._cls}

    @property
    def cls(self) -> type[XmlEnum]:
        """The enumeration class.

        Raises:
            ConfigError: the type was never bound to its package.
        """
        if self._cls is None:
            raise ConfigError(f"enumeration {self._path} is not bound to a package")
        return self._cls

    def exact(self, text: str) -> Any:
        """The member of a listed value."""
        try:
            return self.known[text]
        except KeyError:
            raise ValueError("not one of the values listed") from None

    def lenient(self, text: str) -> tuple[Any, str | None]:
        """A listed value with blanks around it is that value; any other text is a member that is not registered."""
        member = self.known.get(text.strip())
        if member is not None:
            return member, None if text in self.known else "blanks around an enumeration value"
        return self.cls(text), f"{text[:60]!r} is not one of the values listed"

    def _member(self, text: str) -> Any:
        return self.cls(text)

    def _text(self, value: Any) -> str:
        if isinstance(value, self.cls) or (isinstance(value, str) and value in self.known):
            return str(value)
        raise ValueError(f"{value!r} is no member of {self.cls.__name__}")


class UnionType(SimpleType):
    """A union: the first member type whose lexical space holds the text."""

    __slots__ = ("members",)

    def bind(self, root: str) -> None:
        """Bind the members."""
        for member in self.members:
            member.bind(root)

    def __init__(self, members: tuple[SimpleType, ...]) -> None:
        kinds = {member.arrow for member in members}
        super().__init__(
            "union", self._first, self._written, arrow=kinds.pop() if len(kinds) == 1 else "string", collapse=False
        )
        self.plain = False
        self.members = members

    def _first(self, text: str) -> Any:
        for member in self.members:
            try:
                value, problem = member.lenient(text)
            except ValueError:
                continue
            if problem is None:
                return value
        raise ValueError("fits none of the types of the union")

    def _written(self, value: Any) -> str:
        for member in self.members:
            try:
                return member.format(value)
            except (TypeError, ValueError):
                continue
        raise ValueError(f"{value!r} fits none of the types of the union")


class ListType(SimpleType):
    """A list of one simple type, separated by blanks."""

    __slots__ = ("item",)

    def bind(self, root: str) -> None:
        """Bind the item type."""
        self.item.bind(root)

    def __init__(self, item: SimpleType, facets: Facets | None = None) -> None:
        super().__init__(f"list of {item.name}", self._items, self._joined, arrow="list", facets=facets)
        self.item = item

    def _items(self, text: str) -> list[Any]:
        return [self.item.lenient(part)[0] for part in text.split()]

    def _joined(self, value: Any) -> str:
        if isinstance(value, str):
            raise TypeError("a list is needed, not str")
        return " ".join(self.item.format(part) for part in value)

    def restrict(self, name: str, facets: Facets) -> SimpleType:
        """This list with more facets."""
        return ListType(self.item, _merge(self.facets, facets))


def _integer(name: str, minimum: int | None = None, maximum: int | None = None) -> SimpleType:
    facets = Facets(minimum=minimum, maximum=maximum) if minimum is not None or maximum is not None else None
    arrow = "integer" if maximum is not None and maximum < 2**31 and (minimum or 0) >= -(2**31) else "long"
    if maximum is None or maximum > 2**63 - 1 or minimum is None:
        arrow = "decimal"
    return SimpleType(name, lexical.parse_integer, lexical.format_integer, arrow=arrow, facets=facets)


def _text(name: str, *, collapse: bool = True) -> SimpleType:
    return SimpleType(name, lexical.parse_string, lexical.format_string, collapse=collapse)


STRING: Final = _text("string", collapse=False)
NORMALIZED: Final = _text("normalizedString", collapse=False)
TOKEN: Final = _text("token")
LANGUAGE: Final = _text("language")
NMTOKEN: Final = _text("NMTOKEN")
NAME: Final = _text("Name")
NCNAME: Final = _text("NCName")
ID: Final = _text("ID")
IDREF: Final = _text("IDREF")
ENTITY: Final = _text("ENTITY")
ANY_URI: Final = _text("anyURI")
QNAME: Final = _text("QName")
NOTATION: Final = _text("NOTATION")
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
DATE_TIME: Final = DateTimeType("dateTime", lexical.parse_date_time, lexical.format_date_time, arrow="timestamp")
DATE: Final = SimpleType("date", lexical.parse_date, lexical.format_date, arrow="date")
TIME: Final = SimpleType("time", lexical.parse_time, lexical.format_time, arrow="string")
DURATION: Final = SimpleType("duration", lexical.parse_duration, lexical.format_duration, arrow="string")
G_YEAR: Final = _text("gYear").restrict("gYear", Facets(patterns=(re.compile(rf"-?\d{{4,}}{_ZONE}"),)))
G_YEAR_MONTH: Final = _text("gYearMonth").restrict(
    "gYearMonth", Facets(patterns=(re.compile(rf"-?\d{{4,}}-\d\d{_ZONE}"),))
)
G_MONTH: Final = _text("gMonth").restrict("gMonth", Facets(patterns=(re.compile(rf"--\d\d{_ZONE}"),)))
G_MONTH_DAY: Final = _text("gMonthDay").restrict("gMonthDay", Facets(patterns=(re.compile(rf"--\d\d-\d\d{_ZONE}"),)))
G_DAY: Final = _text("gDay").restrict("gDay", Facets(patterns=(re.compile(rf"---\d\d{_ZONE}"),)))
BASE64: Final = SimpleType("base64Binary", lexical.parse_base64, lexical.format_base64, arrow="binary")
NMTOKENS: Final = ListType(NMTOKEN)
IDREFS: Final = ListType(IDREF)
ENTITIES: Final = ListType(ENTITY)
HEX: Final = SimpleType("hexBinary", lexical.parse_hex, lexical.format_hex, arrow="binary")
