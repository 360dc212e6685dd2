"""Compares simple types of stubs with those of xmlschema: the built-in type, facets, values, items, members."""

from __future__ import annotations

import random
from collections.abc import Hashable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from xmlschema.validators import XsdFacet, XsdList, XsdSimpleType, XsdUnion
from xmlschema.validators.facets import XsdEnumerationFacets, XsdPatternFacets

from mtosi_codegen.passes.values import INTEGERS, TEXTS
from mtosi_codegen.proof.values import matching_text
from mtosi_codegen.render.values import constant_of
from mtosi_codegen.xsd.model import LENGTHS, RANGES
from mtosi_jms import xmlbind
from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import XSD, split_clark
from mtosi_jms.xmlbind import EnumType, ListType, SimpleType, UnionType

_ALIASES: Final = {"anyAtomicType": "anySimpleType", "dateTimeStamp": "dateTime", "dayTimeDuration": "duration"}
_ORDERED: Final = INTEGERS | {"decimal", "float", "double", "dateTime", "date", "time"}
_COMPARED: Final = (*LENGTHS["length"], *RANGES.values(), "values")
_QUALIFIED: Final = ("QName", "NOTATION")
_PROBES: Final = 20

# A type in comparable form: its kind, its content (name of a built-in type, values, item or members), its facets.
Shape: TypeAlias = tuple[str, Any, tuple[tuple[str, Hashable], ...]]


class SimpleTypes:
    """Compares simple types, each once."""

    def __init__(self) -> None:
        self._shapes: dict[XsdSimpleType, Shape] = {}
        self._checked: dict[tuple[XsdSimpleType, int], list[str]] = {}
        self._kept: list[SimpleType] = []

    def problems(self, wanted: XsdSimpleType, found: SimpleType) -> list[str]:
        """The differences between the schema's type and the stub's type; the latter must be bound to its package."""
        key = wanted, id(found)
        if key not in self._checked:
            self._kept.append(found)  # so no other object gets its id
            self._checked[key] = list(self._compare(wanted, found))
        return self._checked[key]

    def shape(self, wanted: XsdSimpleType) -> Shape:
        """The shape that the stub of a type should have."""
        if wanted not in self._shapes:
            self._shapes[wanted] = self._shape(wanted)
        return self._shapes[wanted]

    def _compare(self, wanted: XsdSimpleType, found: SimpleType) -> list[str]:
        expected, actual = self.shape(wanted), shape_of(found)
        problems = []
        if expected != actual:
            problems.append(f"schema says {_shown(expected)}, stub says {_shown(actual)}")
        for pattern in _own_patterns(wanted):
            try:
                texts = {matching_text(pattern, random.Random(number)) for number in range(_PROBES)}
            except SchemaError:
                continue
            refused = [text for text in sorted(texts) if wanted.is_valid(text) and _refuses(found, text)]
            if refused:
                problems.append(f"schema takes {refused[0]!r} by its pattern, stub does not")
        return problems

    def _shape(self, wanted: XsdSimpleType) -> Shape:
        namespace, local = split_clark(wanted.name or "")
        if namespace == XSD:
            return shape_of(_constant(_ALIASES.get(local, local)))
        if isinstance(wanted, XsdUnion):
            # xmlschema has the members of its own first; in XML Schema those of memberTypes, which have names, are.
            members = sorted(wanted.member_types, key=lambda member: member.name is None)
            return "union", _flat([self.shape(member) for member in members]), ()
        if isinstance(wanted, XsdList):
            return "list", self.shape(wanted.item_type), ()
        base = wanted.base_type
        return self._restricted(
            self.shape(base) if isinstance(base, XsdSimpleType) else ("simple", "anySimpleType", ()), wanted
        )

    def _restricted(self, base: Shape, wanted: XsdSimpleType) -> Shape:
        kind, inner, known = base
        facets = dict(known)
        own = {split_clark(name or "")[1]: facet for name, facet in wanted.facets.items()}
        enumeration = own.pop("enumeration", None)
        listed = enumeration if isinstance(enumeration, XsdEnumerationFacets) else ()
        values = tuple(element.get("value", "") for element in listed)
        name = str(inner) if kind == "simple" else ""
        if values and _is_text(base) and name not in _QUALIFIED:
            return "enum", frozenset(values), ()
        if kind in ("union", "enum"):
            return base
        for facet, component in own.items():
            text = component.elem.get("value", "").strip() if isinstance(component, XsdFacet) else ""
            if facet in LENGTHS and (name in TEXTS or kind == "list" or name.endswith("Binary")):
                facets.update(dict.fromkeys(LENGTHS[facet], int(text)))
            elif facet in RANGES and name in _ORDERED:
                facets[RANGES[facet]] = int(text) if facet.endswith("Digits") else _number(text, name)
            elif facet == "whiteSpace" and name == "string" and text in ("collapse", "replace"):
                inner = "token" if text == "collapse" else "normalizedString"
        if values and name not in _QUALIFIED:
            facets["values"] = frozenset(values)
        return kind, inner, tuple(sorted(facets.items()))


def shape_of(found: SimpleType) -> Shape:
    """The shape of a stub's type, without the facets of enumerations and unions."""
    found = getattr(found, "inner", found)  # the type in a declaration with a default or fixed value
    if isinstance(found, EnumType):
        return "enum", frozenset(str(member) for member in found.cls), ()
    if isinstance(found, UnionType):
        return "union", _flat([shape_of(member) for member in found.members]), ()
    if isinstance(found, ListType):
        return "list", shape_of(found.item), _facets_of(found)
    return "simple", found.name, _facets_of(found)


def _constant(name: str) -> SimpleType:
    constant: SimpleType = getattr(xmlbind, constant_of(name).removeprefix("_x."))
    return constant


def _facets_of(found: SimpleType) -> tuple[tuple[str, Hashable], ...]:
    facets = found.facets
    if facets is None or (not isinstance(found, ListType) and found.name in _QUALIFIED):
        return ()
    known = {name: getattr(facets, name) for name in _COMPARED}
    return tuple(sorted((name, value) for name, value in known.items() if value is not None))


def _number(text: str, name: str) -> Any:
    """A bound in the stub's form."""
    if name in INTEGERS:
        return int(text)
    if text.lstrip("+-").isdigit() and name == "decimal":
        return Decimal(text)
    return _constant(name).lenient(text)[0]


def _is_text(shape: Shape) -> bool:
    kind, inner, _ = shape
    if kind == "union":
        return all(_is_text(member) for member in inner)
    return kind == "enum" or (kind == "simple" and inner in TEXTS)


def _flat(shapes: list[Shape]) -> tuple[Shape, ...]:
    """The members of unions, each once: two texts with patterns of their own have one shape."""
    flat: list[Shape] = []
    for shape in shapes:
        flat += shape[1] if shape[0] == "union" else [shape]
    return tuple(dict.fromkeys(flat))


def _own_patterns(wanted: XsdSimpleType) -> list[str]:
    facet = wanted.facets.get(f"{{{XSD}}}pattern")
    return facet.regexps if isinstance(facet, XsdPatternFacets) else []


def _refuses(found: SimpleType, text: str) -> bool:
    try:
        return found.lenient(text)[1] is not None
    except ValueError:
        return True


def _shown(shape: Shape) -> str:
    kind, inner, facets = shape
    more = "".join(f" {name}={value}" for name, value in facets if not isinstance(value, frozenset))
    if kind == "enum":
        values = sorted(inner)
        return f"one of {', '.join(values[:8])}{' ...' if len(values) > 8 else ''} ({len(values)} values){more}"
    if kind == "union":
        return " | ".join(_shown(member) for member in inner) + more
    return (f"a list of {_shown(inner)}" if kind == "list" else str(inner)) + more
