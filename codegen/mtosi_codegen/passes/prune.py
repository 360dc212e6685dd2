"""With `--operations`, keeps only what the chosen operations need: their messages and all types that these can hold."""

from __future__ import annotations

from collections.abc import Iterator

from mtosi_codegen.model import (
    ClassDef,
    EnumClass,
    EnumValue,
    FacetValue,
    ListValue,
    Model,
    ObjectValue,
    UnionValue,
    Value,
)


def run(model: Model) -> None:
    """Drop classes and enumerations that no operation needs. Does nothing unless operations were chosen."""
    if not model.only_operations:
        return
    derived: dict[ClassDef, list[ClassDef]] = {}
    for cls in model.classes:
        if cls.base is not None:
            derived.setdefault(cls.base, []).append(cls)
    needed: dict[ClassDef, None] = {}
    enums: dict[EnumClass, None] = {}
    queue = [*_messages(model), *(cls for cls in model.elements.values() if cls.xml.local == "header")]
    queue += [fault.detail for fault in model.faults]
    while queue:
        cls = queue.pop()
        if cls in needed:
            continue
        needed[cls] = None
        queue.extend(inner for inner in derived.get(cls, ()) if inner.kind == "type")
        queue.extend([cls.base] if cls.base else [])
        queue.extend([cls.substitutes] if cls.substitutes else [])
        for field in cls.fields:
            queue.extend(field.members)
            _visit(field.type, queue, enums)
    model.classes = [cls for cls in model.classes if cls in needed]
    model.enums = [enum for enum in model.enums if enum in enums]


def _messages(model: Model) -> Iterator[ClassDef]:
    for service in model.services:
        for operation in service.operations:
            messages = (operation.request_class, operation.response_class, operation.fault_class)
            yield from (cls for cls in messages if cls is not None)
            yield from operation.header_classes
            yield from (model.elements[name] for name in operation.fault_elements if name in model.elements)


def _visit(value: Value, queue: list[ClassDef], enums: dict[EnumClass, None]) -> None:
    """Add the class of a type to the queue, or its enumerations to `enums`."""
    match value:
        case ObjectValue(cls):
            queue.append(cls)
        case EnumValue(enum):
            enums[enum] = None
        case ListValue(inner) | FacetValue(inner, _):
            _visit(inner, queue, enums)
        case UnionValue(members):
            for member in members:
                _visit(member, queue, enums)
        case _:
            return
