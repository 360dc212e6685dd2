"""Turns simple types into values: built-in types with facets, lists, unions, a class for each enumeration of texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from mtosi_codegen.model import (
    RAW,
    Builtin,
    EnumClass,
    EnumValue,
    FacetValue,
    ListValue,
    Model,
    ObjectValue,
    RawValue,
    UnionValue,
    Value,
)
from mtosi_codegen.undefined import undefined
from mtosi_codegen.xsd.model import LENGTHS, RANGES, ComplexType, Given, Place, QName, SimpleType
from mtosi_codegen.xsd.soap_encoding import ENCODINGS, in_schema, is_array
from mtosi_jms import xmlbind
from mtosi_jms.errors import MissingExtraError
from mtosi_jms.namespaces import XSD, clark
from mtosi_jms.xmlbind import SimpleType as SimpleTypeAtRunTime

STRING: Final = Builtin("string")
ANY_SIMPLE: Final = Builtin("anySimpleType")

TEXTS: Final = frozenset(
    {
        "string", "normalizedString", "token", "language", "NMTOKEN", "Name", "NCName", "ID", "IDREF", "ENTITY",
        "anyURI", "QName", "NOTATION", "anySimpleType",
    }
)  # fmt: skip
INTEGERS: Final = frozenset(
    {
        "integer", "nonPositiveInteger", "negativeInteger", "nonNegativeInteger", "positiveInteger", "long", "int",
        "short", "byte", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
    }
)  # fmt: skip
_OTHERS: Final = frozenset(
    {
        "boolean", "decimal", "float", "double", "dateTime", "date", "time", "duration", "gYear", "gYearMonth",
        "gMonth", "gMonthDay", "gDay", "base64Binary", "hexBinary", "NMTOKENS", "IDREFS", "ENTITIES",
    }
)  # fmt: skip
_MEASURED: Final = TEXTS - {"QName", "NOTATION"} | {"base64Binary", "hexBinary", "NMTOKENS", "IDREFS", "ENTITIES"}
_ALIASES: Final = {
    "anyAtomicType": "anySimpleType",
    "dateTimeStamp": "dateTime",
    "dayTimeDuration": "duration",
    "yearMonthDuration": "duration",
}
_LAST_LETTERS: Final = "\ufdf0-\ufffd"
"""The end of the character classes for `\\i` and `\\c` in translated patterns; XML has more letters after it."""
MAX_BASES: Final = 50
_BOUNDED: Final[dict[str, SimpleTypeAtRunTime]] = {
    "decimal": xmlbind.DECIMAL,
    "float": xmlbind.FLOAT,
    "double": xmlbind.DOUBLE,
    "dateTime": xmlbind.DATE_TIME,
    "date": xmlbind.DATE,
    "time": xmlbind.TIME,
    "duration": xmlbind.DURATION,
    "gYear": xmlbind.G_YEAR,
    "gYearMonth": xmlbind.G_YEAR_MONTH,
    "gMonth": xmlbind.G_MONTH,
    "gMonthDay": xmlbind.G_MONTH_DAY,
    "gDay": xmlbind.G_DAY,
}
_ORDERED: Final = INTEGERS | _BOUNDED.keys()


def run(model: Model) -> None:
    """Find the value of every named simple type, so that each enumeration has its class."""
    values = Values(model)
    for name, component in model.schema.types.items():
        if isinstance(component, SimpleType):
            values.named(name, component.place)


class Values:
    """Looks up types; each simple type is turned into a value once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._open: list[QName] = []

    def of(
        self, type_: QName | SimpleType | ComplexType | None, place: Place, namespace: str, path: tuple[str, ...]
    ) -> Value:
        """The value of a type.

        Args:
            type_: its name or definition; None for anyType.
            namespace, path: the source of the name for an anonymous enumeration.
        """
        if type_ is None:
            return RAW
        if isinstance(type_, ComplexType):
            return ObjectValue(self._model.anonymous[type_])
        if isinstance(type_, SimpleType):
            return self._simple(type_, namespace, path)
        return self.named(type_, place)

    def named(self, name: QName, place: Place) -> Value:
        """The value of a named type. An undefined type is reported and becomes raw XML."""
        if name.namespace == XSD:
            return self._builtin(name, place)
        component = self._model.schema.types.get(name)
        if component is None and name.namespace in ENCODINGS:
            return RAW if is_array(name) else self._builtin(in_schema(name), place)
        if isinstance(component, ComplexType):
            return ObjectValue(self._model.types[name])
        if component is None or name in self._open:
            message = "type " + (f"{name} is defined by itself" if component else undefined(name, self._model.schema))
            rule = "cycle" if component else "type-unresolved"
            self._model.findings.add(rule, *place, message, "typed as raw XML")
            return RAW
        if name not in self._model.values and len(self._open) >= MAX_BASES:
            message = f"type {name} is the last of more than {MAX_BASES} simple types, each made of the next"
            self._model.findings.add("too-large", *component.place, message, "typed as text")
            return ANY_SIMPLE
        if name not in self._model.values:
            self._open.append(name)
            self._model.values[name] = self._simple(component, name.namespace, (name.local,))
            self._open.pop()
        return self._model.values[name]

    def text(self, type_: QName | SimpleType | None, place: Place, namespace: str, path: tuple[str, ...]) -> Value:
        """The value of an attribute or simple content: never an object; text if the type is unknown."""
        value = ANY_SIMPLE if type_ is None else self.of(type_, place, namespace, path)
        return ANY_SIMPLE if value is RAW or isinstance(value, ObjectValue) else value

    def _builtin(self, name: QName, place: Place) -> Value:
        local = _ALIASES.get(name.local, name.local)
        if local in TEXTS or local in INTEGERS or local in _OTHERS:
            return Builtin(local)
        if local != "anyType":
            self._model.findings.add("type-unresolved", *place, f"XML Schema has no type {local!r}", "typed as raw XML")
        return RAW

    def _simple(self, component: SimpleType, namespace: str, path: tuple[str, ...]) -> Value:
        known = self._model.values.get(component)
        if known is None:
            known = self._model.values[component] = self._fresh(component, namespace, path)
        return known

    def _fresh(self, component: SimpleType, namespace: str, path: tuple[str, ...]) -> Value:
        if component.members:
            members = (self.text(member, component.place, namespace, path) for member in component.members)
            return UnionValue(tuple(dict.fromkeys(_flat(members))))
        if component.item is not None:
            item = self.text(component.item, component.place, namespace, path)
            if any(isinstance(member, ListValue) for member in _flat([item])):
                self._model.findings.add("xsd-unsupported", *component.place, "a list of lists", "a list of texts")
                item = ANY_SIMPLE
            return ListValue(item)
        base = self.text(component.base, component.place, namespace, (*path, "Base"))
        if component.enumeration is not None and is_text(base) and not is_qualified(base):
            return EnumValue(self._enum(component, component.enumeration, namespace, path))
        return self._restricted(base, component)

    def _enum(
        self, component: SimpleType, values: tuple[tuple[str, str], ...], namespace: str, path: tuple[str, ...]
    ) -> EnumClass:
        type_name = component.name.local if component.name else ""
        enum = EnumClass(namespace, path, type_name, values, component.place, component.doc)
        self._model.enums.append(enum)
        return enum

    def _restricted(self, base: Value, component: SimpleType) -> Value:
        facets: dict[str, tuple[str, ...]] = {}
        kind = builtin_of(base)
        for name, texts in component.facets.items():
            if name != "pattern" and not _is_sound(name, texts[-1].strip(), kind):
                message = f"{name} {texts[-1]!r} is not a value that the type can have"
                self._model.findings.add("xsd-unsupported", *component.place, message, "not checked")
            elif name == "pattern":
                facets["patterns"] = self._patterns(texts, component)
            elif name in LENGTHS and (kind in _MEASURED or isinstance(base, ListValue)):
                facets.update(dict.fromkeys(LENGTHS[name], texts[-1:]))
            elif name in RANGES and kind in _ORDERED:
                facets[RANGES[name]] = texts[-1:]
        if component.enumeration is not None:
            facets["values"] = tuple(value for value, _ in component.enumeration)
            if is_qualified(base):
                facets["values"] = tuple(_clark(value, component) for value in facets["values"])
        base = _with_white_space(base, component.facets.get("whiteSpace", ("",))[-1])
        return _merged(base, {name: texts for name, texts in facets.items() if texts})

    def _patterns(self, texts: tuple[str, ...], component: SimpleType) -> tuple[str, ...]:
        """One Python pattern for the patterns of one derivation step; it matches if any of them matches. Raises
        MissingExtraError: the library that translates XSD's regular expressions is not installed."""
        try:
            from elementpath.regex import RegexError, translate_pattern
        except ModuleNotFoundError as error:
            raise MissingExtraError("elementpath", "codegen") from error
        translated: list[str] = []
        for text in texts:
            try:
                pattern = translate_pattern(
                    _classed(text), back_references=False, lazy_quantifiers=False, anchors=False
                )
                re.compile(pattern)
            except (RegexError, re.error, OverflowError, RecursionError) as error:
                message = f"pattern {text!r}: {error}"
                self._model.findings.add("pattern-unsupported", *component.place, message, "not checked")
                return ()
            translated.append(_bare(pattern).replace(_LAST_LETTERS, f"{_LAST_LETTERS}\U00010000-\U000effff"))
        return (translated[0],) if len(translated) == 1 else ("|".join(f"(?:{text})" for text in translated),)


def _is_sound(name: str, text: str, kind: str) -> bool:
    """Whether the text of a length facet is a number, and that of a bound is a value of the bounded type."""
    if name not in RANGES and name not in LENGTHS:
        return True
    if name not in RANGES or name.endswith("Digits"):
        return re.fullmatch(r"\+?[0-9]{1,9}", text) is not None
    if kind in INTEGERS:
        return re.fullmatch(r"[+-]?[0-9]{1,400}", text) is not None
    try:
        _BOUNDED.get(kind, xmlbind.STRING).lenient(text)
    except ValueError:
        return False
    return True


def _classed(pattern: str) -> str:
    r"""The pattern with `\w` and `\s` put into classes: outside a class they would be translated as Python's own."""
    depth = 0

    def classed(match: re.Match[str]) -> str:
        nonlocal depth
        found = match[0]
        depth += {"[": 1, "]": -1}.get(found, 0)
        return f"[{found}]" if not depth and found in (r"\w", r"\W", r"\s", r"\S") else found

    return re.sub(r"\\.|[\[\]]", classed, pattern, flags=re.DOTALL)


def _bare(pattern: str) -> str:
    """The pattern without the anchors, which a full match does not need."""
    start, end = "^(?:", r")$(?!\n\Z)"
    return pattern[len(start) : -len(end)] if pattern.startswith(start) and pattern.endswith(end) else pattern


def _flat(members: Iterable[Value]) -> Iterator[Value]:
    """The members of a union, with member unions replaced by their members: nesting may double at each level."""
    for member in members:
        if isinstance(member, UnionValue):
            yield from member.members
        else:
            yield member


def _merged(base: Value, facets: dict[str, tuple[str, ...]]) -> Value:
    if not facets:
        return base
    if isinstance(base, FacetValue):
        inherited = dict(base.facets)
        patterns = (*inherited.get("patterns", ()), *facets.get("patterns", ()))
        facets = {**inherited, **facets, **({"patterns": patterns} if patterns else {})}
        base = base.base
    return FacetValue(base, tuple(sorted(facets.items())))


def _with_white_space(base: Value, mode: str) -> Value:
    if base == STRING and mode == "collapse":
        return Builtin("token")
    return Builtin("normalizedString") if base == STRING and mode == "replace" else base


def given(value: Value, declared: Given | None, *, attribute: bool = False) -> Value:
    """A value with the default or fixed value of its declaration.

    Args:
        declared: the default or fixed value; None if the declaration has neither.
        attribute: whether it is the value of an attribute, which is never empty, so its default has no effect.
    """
    simple = not isinstance(value, (ObjectValue, RawValue)) and not is_qualified(value)
    if declared is None or not simple or (attribute and declared.kind == "default"):
        return value
    both = declared.kind == "fixed" and not attribute
    kinds = ("default", "fixed") if both else (declared.kind,)
    return FacetValue(value, tuple((kind, (declared.text,)) for kind in kinds))


def builtin_of(value: Value) -> str:
    """The built-in type at the bottom of a value; empty for lists, unions, objects and raw XML."""
    if isinstance(value, FacetValue):
        return builtin_of(value.base)
    if isinstance(value, EnumValue):
        return "string"
    return value.name if isinstance(value, Builtin) else ""


def is_qualified(value: Value) -> bool:
    """Whether the values of a type are qualified names."""
    return builtin_of(value) in ("QName", "NOTATION")


def _clark(text: str, component: SimpleType) -> str:
    """The Clark name of a qualified name that is a value of an enumeration."""
    prefix, _, local = text.strip().rpartition(":")
    return clark(component.scope.get(prefix or None, ""), local)


def is_text(value: Value) -> bool:
    """Whether every value of a type is text in Python."""
    if isinstance(value, UnionValue):
        return all(is_text(member) for member in value.members)
    return builtin_of(value) in TEXTS
