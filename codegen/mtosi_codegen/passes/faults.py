"""Faults: an exception class for each kind that the fault elements of the services can hold."""

from __future__ import annotations

from mtosi_codegen.model import ClassDef, FaultDef, Model, ObjectValue


def run(model: Model) -> None:
    """Find the alternatives of every fault element; a fault element without alternatives is a kind itself."""
    found: dict[tuple[str, str], FaultDef] = {}
    for service in model.services:
        for operation in service.operations:
            for name in operation.fault_elements:
                cls = model.elements.get(name)
                if cls is not None:
                    for fault in _kinds(cls):
                        found.setdefault((fault.namespace, fault.element), fault)
    model.faults = [found[key] for key in sorted(found)]


def _kinds(cls: ClassDef) -> list[FaultDef]:
    choice = _effective_kind(cls) == "choice"
    fields = [field for field in cls.all_fields() if field.kind == "element" and isinstance(field.type, ObjectValue)]
    if not choice and not (len(fields) == 1 and len(cls.all_fields()) == 1):
        return [FaultDef(cls.namespace, cls.xml.local, cls, cls.doc)]
    kinds: list[FaultDef] = []
    for field in fields:
        if isinstance(field.type, ObjectValue):
            namespace = field.xml.namespace if field.reference else cls.namespace
            kinds.append(FaultDef(namespace, field.xml.local, field.type.cls, field.doc or field.type.cls.doc))
    return kinds


def _effective_kind(cls: ClassDef) -> str:
    model = next((ancestor.model for ancestor in cls.lineage() if ancestor.model is not None), None)
    return model.kind if model is not None else ""
