"""Faults: an exception class for each kind that the fault elements of the services can hold."""

from __future__ import annotations

from mtosi_codegen.model import ClassDef, FaultDef, Field, Model, ModelGroup, ModelItem, ObjectValue


def run(model: Model) -> None:
    """Find the alternatives of every fault element. A fault element without alternatives is one kind itself."""
    operations = [operation for service in model.services for operation in service.operations]
    names = dict.fromkeys(name for operation in operations for name in operation.fault_elements)
    found: dict[tuple[str, str], FaultDef] = {}
    kinds = {name: _kinds(model.elements[name]) for name in names}
    for fault in (fault for those in kinds.values() for fault in those):
        found.setdefault((fault.namespace, fault.element), fault)
    for operation in operations:
        operation.fault_kinds = [fault.element for name in operation.fault_elements for fault in kinds[name]]
    model.faults = [found[key] for key in sorted(found)]


def _kinds(cls: ClassDef) -> list[FaultDef]:
    found = [_kind(cls, field) for field in _alternatives(cls)]
    kinds = [fault for fault in found if fault is not None]
    return kinds or [FaultDef(cls.namespace, cls.xml.local, cls, cls.doc)]


def _alternatives(cls: ClassDef) -> list[Field]:
    """The first field of each alternative of a choice, which identifies it; a single field is its own choice."""
    model = next((ancestor.model for ancestor in cls.lineage() if ancestor.model is not None), None)
    if model is None:
        fields = cls.all_fields()
        return fields if len(fields) == 1 else []
    if model.kind == "seq":  # a choice, beside vendor extensions
        inner = [item for item in model.items if isinstance(item, ModelGroup) and item.kind == "choice"]
        model = inner[0] if len(inner) == 1 else model
    if model.kind != "choice":
        return []
    return [item.field if isinstance(item, ModelItem) else next(item.fields()) for item in model.items]


def _kind(cls: ClassDef, field: Field) -> FaultDef | None:
    if field.kind != "element" or not isinstance(field.type, ObjectValue):
        return None
    namespace = field.xml.namespace if field.reference else cls.namespace
    return FaultDef(namespace, field.xml.local, field.type.cls, field.doc or field.type.cls.doc)
