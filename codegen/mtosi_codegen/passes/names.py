"""Python names for classes, enumeration members, fields and operations: readable, stable, unique without counters.

Within a module types are named before elements; an element whose class name is taken gets the suffix `Element`. Within
a class the fields of the base are named first. A name that still collides is spelled as in XML. If that is taken too or
is not an identifier, the codes of its signs are used (`text.fallbacks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mtosi_codegen.model import ClassDef, EnumClass, FaultDef, Field, Model, Service, TypeModule
from mtosi_codegen.passes.modules import split_namespace
from mtosi_codegen.text import camel, constant, escaped, fallbacks, snake
from mtosi_jms.xmlbind import DistinguishedNameMixin, XmlObject

RESERVED_FIELDS: Final = frozenset({"mro", "self"}) | frozenset(
    name for base in (XmlObject, DistinguishedNameMixin) for name in dir(base) if not name.startswith("_")
)
SHADOWED: Final = frozenset({"bool", "bytes", "field", "float", "int", "list", "str"})
"""Python's names that annotations and defaults of fields use."""

# Names that generated modules use. A schema may define both `Str` and `str`, and only one of them becomes `Str`.
# # The `__eq__` of a dataclass returns its module's NotImplemented: a class of that name would make all objects equal.
RESERVED_CLASSES: Final = SHADOWED | {
    "TYPE_CHECKING", "Any", "Iterable", "NotImplemented", "annotations", "dataclass", "name",
}  # fmt: skip
RESERVED_MEMBERS: Final = frozenset({"name", "value", "mro", "is_known"}) | frozenset(
    attribute for attribute in dir(str) if not attribute.startswith("_")
)
RESERVED_OPERATIONS: Final = frozenset(
    {"aio", "caller", "destination", "not_implemented", "handler", "info", "Supplier", "close"}
)
_KINDS: Final = {"type": 0, "element": 2, "anonymous": 3}


def run(model: Model) -> None:
    """Name everything."""
    for module in model.modules:
        _name_classes(module)
        for enum in module.enums:
            _name_members(enum)
    named: set[ClassDef] = set()
    for cls in model.classes:
        for ancestor in reversed(list(cls.lineage())):
            if ancestor not in named:
                named.add(ancestor)
                _name_fields(ancestor)
    for service in model.services:
        _name_operations(service)
        name = camel(service.name)
        service.class_name = f"{name}Service" if name in RESERVED_CLASSES else name


def _first_free(candidates: Iterable[str], taken: set[str]) -> str:
    name = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(name)
    return name


def _name_classes(module: TypeModule) -> None:
    taken = set(RESERVED_CLASSES)
    entries: list[ClassDef | EnumClass] = [*module.classes, *module.enums]
    for entry in sorted(entries, key=_rank):
        entry.name = _first_free(_class_names(entry), taken)
    for fault in sorted(module.faults, key=lambda fault: fault.element):
        fault.name = _first_free(_fault_names(fault), taken)


def _rank(entry: ClassDef | EnumClass) -> tuple[int, bool, tuple[str, ...]]:
    """The order of naming: types, elements, anonymous types; within each, names that are in CamelCase already."""
    named = _KINDS[entry.kind] if isinstance(entry, ClassDef) else 0 if entry.type_name else 3
    return named, camel(*entry.path) != entry.path[-1], entry.path


def _fault_names(fault: FaultDef) -> Iterator[str]:
    return fallbacks(fault.element + "Fault", camel(fault.element, "Fault"), camel(fault.element, "FaultError"))


def _class_names(entry: ClassDef | EnumClass) -> Iterator[str]:
    path = entry.path
    if isinstance(entry, ClassDef) and entry.kind == "element":
        return fallbacks(path[-1] + "Element", camel(path[-1]), camel(path[-1], "Element"))
    if len(path) > 1:
        return fallbacks("_".join(path), camel(*path), "_".join(camel(step) for step in path))
    return fallbacks(path[-1], camel(path[-1]))


def _name_members(enum: EnumClass) -> None:
    taken = set(RESERVED_MEMBERS)
    exact = {value for value, _ in enum.values if constant(value) == value}
    for value, _ in sorted(enum.values, key=lambda pair: (pair[0] not in exact, not pair[0].isalnum(), pair[0])):
        plain = constant(value)
        enum.members[value] = _first_free(fallbacks(value, plain, f"{plain}_", escaped(value)), taken)


def _name_fields(cls: ClassDef) -> None:
    taken = set(RESERVED_FIELDS) | {field.name for field in cls.inherited()}
    for field in cls.fields:
        if field.overrides is not None:
            field.name = field.overrides.name
    order = {"text": 0, "mixed": 0, "element": 1, "attribute": 2, "any": 3}
    fresh = [field for field in cls.fields if field.overrides is None]
    ranked = sorted(enumerate(fresh), key=lambda pair: (order[pair[1].kind], _foreign(cls, pair[1]), pair[0]))
    for _, field in ranked:
        field.name = _first_free(_field_names(field, foreign=_foreign(cls, field)), taken)


def _foreign(cls: ClassDef, field: Field) -> bool:
    return field.kind == "element" and field.xml.namespace not in {cls.namespace, ""}


def _field_names(field: Field, *, foreign: bool) -> Iterator[str]:
    if field.kind == "text":
        return fallbacks("value", "value", "text_value")
    if field.kind == "mixed":
        return fallbacks("content", "content", "mixed_content")
    if field.kind == "any":
        return fallbacks("any_" + field.namespaces, "any_", f"any_{snake(field.namespaces)}")
    plain = snake(field.xml.local)
    if field.kind == "attribute":
        return fallbacks(field.xml.local, plain, f"{plain}_attribute")
    if plain in RESERVED_FIELDS:
        return fallbacks(field.xml.local, f"{plain}_")
    return fallbacks(field.xml.local, plain, *([f"{_space(field)}_{plain}"] if foreign else []))


def _space(field: Field) -> str:
    """A short word for the namespace of a field: its module's name, or the folder's if the module is just `types`."""
    folder, module = split_namespace(field.xml.namespace)
    return folder if module == "types" else module


def _name_operations(service: Service) -> None:
    taken = set(RESERVED_OPERATIONS)
    for operation in service.operations:
        plain = snake(operation.name)
        operation.python_name = _first_free(fallbacks(operation.name, plain, f"{plain}_"), taken)
