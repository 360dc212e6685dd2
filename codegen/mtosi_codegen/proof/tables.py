"""Compares generated classes with the components of xmlschema: fields, order, types, occurrence, attributes."""

from __future__ import annotations

import builtins
import dataclasses
import datetime as dt
import decimal
import inspect
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from xmlschema.validators import XsdAnyElement, XsdComplexType, XsdElement, XsdGroup, XsdSimpleType

from mtosi_codegen.passes.values import INTEGERS
from mtosi_codegen.proof import languages
from mtosi_codegen.proof.languages import Expression
from mtosi_codegen.proof.oracle import ANY_TYPE, Oracle, XsdType
from mtosi_codegen.proof.simple import SimpleTypes
from mtosi_codegen.proof.stubs import Stubs
from mtosi_jms.errors import MtosiError
from mtosi_jms.namespaces import XSD, split_clark
from mtosi_jms.xmlbind import (
    RAW,
    ClassTable,
    Duration,
    EnumType,
    Field,
    ListType,
    Nil,
    RawXml,
    SimpleType,
    UnionType,
    XmlEnum,
    XmlObject,
)

_GROUPS: Final = ("seq", "choice", "all")
_PYTHON: Final[dict[str, type]] = {
    "boolean": bool, "decimal": decimal.Decimal, "float": float, "double": float, "dateTime": dt.datetime,
    "date": dt.date, "time": dt.time, "duration": Duration, "base64Binary": bytes, "hexBinary": bytes,
    **dict.fromkeys(INTEGERS, int),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A difference between stubs and schemas.

    Attributes:
        path: message or element, and the path below it.
    """

    path: str
    schema: str
    stub: str

    def __str__(self) -> str:
        return f"{self.path}: schema: {self.schema}; stub: {self.stub}"


class Tables:
    """Compares the classes of one package with a model, each pair of type and class once.

    Attributes:
        types: number of types that were compared.
    """

    def __init__(self, oracle: Oracle, stubs: Stubs) -> None:
        self._oracle = oracle
        self._stubs = stubs
        self._simple = SimpleTypes()
        self._met: set[tuple[object, type]] = set()
        self._classes: set[type] = set()
        self._queue: list[tuple[XsdType, ClassTable, str]] = []
        self.differences: list[Difference] = []
        self.types = 0

    def check(self, declaration: XsdElement, table: ClassTable, path: str) -> None:
        """Compare a global element with its class, and everything that it may contain."""
        self._element(declaration, table, path)
        self._run()

    def check_rest(self) -> None:
        """Compare all global elements and types of the package that were not reached from a message."""
        maps = self._oracle.maps
        for name, cls in self._stubs.listed("__elements__"):
            element = maps.elements.get(name)
            if element is not None and issubclass(cls, XmlObject):
                self._element(element, cls.__xml__, f"/{split_clark(name)[1]}")
        for name, cls in self._stubs.listed("__types__"):
            xsd_type, path = maps.types.get(name), f"type {split_clark(name)[1]}"
            if isinstance(xsd_type, XsdSimpleType) and issubclass(cls, XmlEnum):
                values = self._simple.shape(xsd_type)[1]
                if values != {str(member) for member in cls}:
                    self._report(path, f"values {sorted(values)}", f"values {sorted(str(member) for member in cls)}")
            elif isinstance(xsd_type, XsdComplexType) and issubclass(cls, XmlObject):
                self._later(xsd_type, cls.__xml__, path)
        for name, element in maps.elements.items():
            if element.schema.target_namespace and self._stubs.find(name, "__elements__") is None:
                self._missing(name, "element")
        self._run()

    def _missing(self, name: str, kind: str) -> None:
        namespace, local = split_clark(name)
        if namespace in self._namespaces:
            self._report(f"/{local}", f"{kind} {name}", "no class")

    def _run(self) -> None:
        while self._queue:
            xsd_type, other, place = self._queue.pop()
            try:
                self._type(xsd_type, other, place)
            except (MtosiError, AttributeError, TypeError, NameError, KeyError, LookupError) as error:
                self._report(place, "a type", f"a class that cannot be used: {type(error).__name__}: {error}")

    def _report(self, path: str, schema: object, stub: object) -> None:
        self.differences.append(Difference(path, str(schema), str(stub)))

    def _expect(self, path: str, what: str, schema: object, stub: object) -> None:
        if schema != stub:
            self._report(path, f"{what} {schema}", f"{what} {stub}")

    # Elements and types

    def _element(self, declaration: XsdElement, table: ClassTable, path: str) -> None:
        self._expect(path, "element", declaration.name, table.tag)
        of_abstract_type = isinstance(declaration.type, XsdComplexType) and declaration.type.abstract
        self._expect(path, "abstract", declaration.abstract or of_abstract_type, table.abstract)
        head = declaration.substitution_group
        if (head is not None) != (table.substitutes is not None):
            self._report(path, f"substitutes for {head}", f"substitutes for {table.substitutes}")
        self._later(declaration.type, table, path)

    def _later(self, xsd_type: XsdType, table: ClassTable, path: str) -> None:
        key = (xsd_type, table.cls)
        if key not in self._met:
            self._met.add(key)
            self._queue.append((xsd_type, table, path))

    def _type(self, xsd_type: XsdType, table: ClassTable, path: str) -> None:
        self.types += 1
        self._class(table, path)
        if xsd_type.name == ANY_TYPE:
            return
        if isinstance(xsd_type, XsdSimpleType):
            self._text(xsd_type, table, path)
            return
        if xsd_type.name:
            self._expect(path, "type", xsd_type.name, table.declared.type_qname)
            self._expect(path, "abstract type", xsd_type.abstract, table.declared.abstract)
            for derived in self._oracle.derived(xsd_type):
                cls = self._stubs.find(str(derived.name), "__types__")
                if cls is None:
                    self._report(path, f"derived type {derived.name}", "no such class")
                else:
                    self._later(derived, cls.__xml__, f"{path}({derived.local_name})")
        self._attributes(xsd_type, table, path)
        if isinstance(xsd_type.content, XsdSimpleType):
            self._text(xsd_type.content, table, path)
            return
        mixed = any(field.kind == "mixed" and not table.drops(field) for field in table.fields)
        self._expect(path, "mixed", bool(xsd_type.mixed), mixed)
        if not mixed:
            self._content(xsd_type.content, table, path)

    def _text(self, simple: XsdSimpleType, table: ClassTable, path: str) -> None:
        field = next((field for field in table.fields if field.kind == "text"), None)
        if field is None:
            self._report(path, f"text of type {simple.name}", "no text")
        else:
            self._simple_type(simple, field, path)

    def _simple_type(self, simple: XsdSimpleType | None, field: Field, path: str) -> None:
        found = field.simple()
        if found is None or simple is None:
            self._report(path, "a simple type", f"type {field.type}")
            return
        for problem in self._simple.problems(simple, found):
            schema, _, stub = problem.partition(", stub ")
            self._report(path, schema.removeprefix("schema says "), stub.removeprefix("says "))

    def _attributes(self, xsd_type: XsdComplexType, table: ClassTable, path: str) -> None:
        wanted = {name: one for name, one in xsd_type.attributes.items() if name and one.use != "prohibited"}
        found = {field.tag: field for field in table.fields if field.kind == "attribute" and field.max != 0}
        for name in sorted({*wanted, *found}):
            place = f"{path}/@{split_clark(name)[1]}"
            if name not in wanted or name not in found:
                self._report(
                    place, "an attribute" if name in wanted else "none", "an attribute" if name in found else "none"
                )
                continue
            self._expect(place, "required", wanted[name].use == "required", bool(found[name].min))
            self._simple_type(wanted[name].type, found[name], place)
        self._expect(path, "any attribute", self._takes_any_attribute(xsd_type), bool(table.attribute_wildcards))

    def _takes_any_attribute(self, xsd_type: XsdComplexType) -> bool:
        """Whether a type has an attribute wildcard. xmlschema gives a restriction its base's; XML Schema does not."""
        restriction = next(xsd_type.elem.iter(f"{{{XSD}}}restriction"), None)
        if xsd_type.derivation != "restriction" or restriction is None:
            return None in xsd_type.attributes
        if restriction.find(f"{{{XSD}}}anyAttribute") is not None:
            return True
        references = (group.get("ref", "") for group in restriction.iterfind(f"{{{XSD}}}attributeGroup"))
        names = (xsd_type.schema.resolve_qname(reference) for reference in references)
        return any(None in self._oracle.maps.attribute_groups[name] for name in names)

    # Content

    def _content(self, group: XsdGroup, table: ClassTable, path: str) -> None:
        particles: dict[object, XsdElement | XsdAnyElement] = {}
        wanted = _of_schema(group, particles)
        fields = {_key(field): field for field in table.fields if field.kind in ("element", "any")}
        found = _of_table(table)
        for key in particles.keys() - fields.keys():
            self._report(f"{path}/{_short(key)}", _occurs(*languages.occurrences(wanted, key)), "no such field")
        own = [_key(field) for field in table.own if field.kind in ("element", "any")]
        ordered = [key for key in particles if key in own]
        if ordered != [key for key in own if key in particles]:
            self._report(path, f"order {' '.join(map(_short, ordered))}", f"order {' '.join(map(_short, own))}")
        allowed = languages.firsts(languages.choice(languages.symbol(key) for key in particles))
        for key in fields.keys() - allowed:
            if languages.occurrences(found, key) != (0, 0):
                self._report(
                    f"{path}/{_short(key)}", "nothing of that name", _occurs(*languages.occurrences(found, key))
                )
        for key in sorted(particles.keys() & fields.keys(), key=str):
            self._field(particles[key], fields[key], f"{path}/{_short(key)}")
            counts, actual = languages.occurrences(wanted, key), languages.occurrences(found, key)
            self._expect(f"{path}/{_short(key)}", "occurs", _occurs(*counts), _occurs(*actual))
            kept = fields[key].min, fields[key].max
            if not any(one.restricts for one in _lineage(table)):
                self._expect(f"{path}/{_short(key)}", "field occurs", _occurs(*counts), _occurs(*kept))
        if particles.keys() == fields.keys() or any(one.restricts for one in _lineage(table)):
            self._order(wanted, found, path)

    def _order(self, wanted: Expression, found: Expression, path: str) -> None:
        differing = languages.difference(wanted, found)
        if differing is not None:
            word, allowed = differing
            shown = " ".join(_short(key) for key in word) or "nothing"
            verbs = ("allows", "does not allow")
            self._report(path, f"{verbs[not allowed]} {shown}", f"{verbs[allowed]} {shown}")

    def _field(self, particle: XsdElement | XsdAnyElement, field: Field, path: str) -> None:
        if isinstance(particle, XsdAnyElement):
            self._expect(path, "process", particle.process_contents, field.process)
            return
        self._expect(path, "nillable", bool(particle.nillable), field.nillable)
        members = [one for one in self._oracle.substitutes(particle) if not one.abstract]
        tags = sorted(str(table.tag) for table in field.member_tables())
        if [one.name for one in members] != tags or field.head != bool(self._oracle.substitutes(particle)):
            missing = sorted({one.name for one in members} ^ set(tags))
            self._report(path, f"{len(members)} elements may stand for it", f"{len(tags)}; differing: {missing[:3]}")
        for one, table in zip(members, field.member_tables(), strict=False):
            if one.name == table.tag:
                self._element(one, table, f"{path}({one.local_name})")
        self._field_type(particle, field, path)

    def _field_type(self, particle: XsdElement, field: Field, path: str) -> None:
        xsd_type = particle.type
        if isinstance(field.type, SimpleType) and isinstance(xsd_type, XsdSimpleType):
            self._simple_type(xsd_type, field, path)
        elif isinstance(field.type, str):
            table = field.table()
            if particle.ref is not None:
                self._element(particle.ref, table, path)
            elif table.element is not None:
                self._report(path, f"type {xsd_type.name}", f"element {table.tag}")
            else:
                self._later(xsd_type, table, path)
        elif (field.type is RAW) != (xsd_type.name == ANY_TYPE):
            self._report(path, f"type {xsd_type.name or 'without a name'}", f"type {field.type}")

    # The classes themselves

    def _class(self, table: ClassTable, path: str) -> None:
        """Check that the attributes of a class are those of its table."""
        cls = table.cls
        if cls in self._classes:
            return
        self._classes.add(cls)
        if table.base is not None:
            self._class(table.base, path)
        annotations = inspect.get_annotations(cls)
        own = [field for field in table.own if field.max != 0]  # the class has no attribute for a prohibited one
        self._expect(path, f"fields of {cls.__name__}", [field.name for field in own], list(annotations))
        scope = {**vars(sys.modules[cls.__module__]), **self._modules}
        made = {field.name: field for field in dataclasses.fields(cls)}
        for field in own:
            if field.name not in annotations:
                continue
            place, text = f"{path} ({cls.__name__}.{field.name})", str(annotations[field.name])
            wanted = _annotation(field)
            if eval(text, scope) != wanted:  # noqa: S307 - the stub's own annotation, which its import ran already
                self._report(place, f"annotation {_type_name(wanted)}", f"annotation {text}")
            default = made[field.name]
            required = default.default is dataclasses.MISSING and default.default_factory is dataclasses.MISSING
            self._expect(place, "required", bool(field.min) and not field.many and field.kind != "mixed", required)

    @cached_property
    def _modules(self) -> dict[str, Any]:
        """The names that annotations refer to and that only type checkers import."""
        found: dict[str, Any] = {"_b": builtins, "_dt": dt, "_decimal": decimal}
        return found | {"_" + path.replace(".", "_"): module for _, path, module in self._stubs.modules()}

    @cached_property
    def _namespaces(self) -> set[str]:
        return {namespace for namespace, _, _ in self._stubs.modules()}


def _lineage(table: ClassTable) -> Iterator[ClassTable]:
    one: ClassTable | None = table
    while one is not None:
        yield one
        one = one.base


def _key(field: Field) -> object:
    """The key that distinguishes a field or particle from the others of its type."""
    if field.kind != "any":
        return field.tag
    target = field.owner.namespace if field.owner is not None else ""
    words = (field.ns or "##any").split()
    if words == ["##other"]:
        return "any", f"##other than {target}"
    return "any", " ".join(sorted({"##targetNamespace": target, "##local": ""}.get(word, word) for word in words))


def _key_of(particle: XsdElement | XsdAnyElement) -> object:
    if isinstance(particle, XsdElement):
        return particle.name
    if "##other" in particle.namespace:
        return "any", f"##other than {particle.target_namespace}"
    return "any", " ".join(sorted(particle.namespace))


def _short(key: object) -> str:
    return f"any[{key[1]}]" if isinstance(key, tuple) else split_clark(str(key))[1]


def _occurs(low: int, high: int | None) -> str:
    return f"{low}..{'unbounded' if high is None else high}"


def _of_schema(
    particle: XsdElement | XsdAnyElement | XsdGroup, found: dict[object, XsdElement | XsdAnyElement]
) -> Expression:
    """The language of a content model of xmlschema; its elements and wildcards are collected."""
    if particle.max_occurs == 0:
        return languages.EMPTY
    if not isinstance(particle, XsdGroup):
        key = _key_of(particle)
        found.setdefault(key, particle)
        inner = languages.symbol(key)
    else:
        items = [_of_schema(item, found) for item in particle if item.max_occurs != 0]
        inner = _group(particle.model, items)
    return languages.repeated(inner, particle.min_occurs, particle.max_occurs)


def _group(kind: str, items: Sequence[Expression]) -> Expression:
    if kind == "choice":
        return languages.choice(items) if items else languages.EMPTY
    return languages.interleaved(items) if kind == "all" else languages.sequence(items)


def _of_table(table: ClassTable) -> Expression:
    """The language of a class."""
    fields = {field.name: field for field in table.fields if field.kind in ("element", "any")}
    if table.model is None:
        return languages.sequence(_occurring(field, field.min, field.max) for field in fields.values())
    return _of_item(table.model, fields, "")


def _occurring(field: Field, low: int, high: int | None) -> Expression:
    return languages.repeated(languages.symbol(_key(field)), low, high)


def _of_item(item: Any, fields: dict[str, Field], within: str) -> Expression:
    if isinstance(item, str):
        field = fields[item]
        return _occurring(field, *((1, 1) if within == "choice" else (field.min, field.max)))
    if item[0] not in _GROUPS or len(item) != 4:
        return _occurring(fields[item[0]], item[1], item[2])
    kind, low, high, items = item
    return languages.repeated(_group(kind, [_of_item(one, fields, kind) for one in items]), low, high)


def _annotation(field: Field) -> Any:
    """The annotation that a field should have."""
    if field.kind == "any":
        return list[XmlObject | RawXml]
    if field.kind == "mixed":
        return list[str | XmlObject | RawXml]
    found: Any = RawXml
    if isinstance(field.type, str):
        table = field.table()
        found = next((one.cls for one in _lineage(table) if one.element is None and one.type_name), table.cls)
    elif isinstance(field.type, SimpleType):
        simple = field.simple()
        found = _python(simple) if simple is not None else found
    if field.nillable:
        found |= Nil
    if field.many:
        return list[found]
    return found if field.min else found | None


def _python(simple: SimpleType) -> Any:
    simple = getattr(simple, "inner", simple)  # the type in a declaration with a default or fixed value
    if isinstance(simple, EnumType):
        return simple.cls
    if isinstance(simple, ListType):
        return list[_python(simple.item)]  # type: ignore[misc]
    if isinstance(simple, UnionType):
        found = _python(simple.members[0])
        for member in simple.members[1:]:
            found |= _python(member)
        return found
    return _PYTHON.get(simple.name, str)


def _type_name(wanted: Any) -> str:
    return getattr(wanted, "__name__", str(wanted)) if isinstance(wanted, type) else str(wanted)
