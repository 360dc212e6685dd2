"""Gives operations the classes of their messages; an operation whose element is undefined is left out.

If a message names an undefined element, and an element with a similar name exists that no message names, that element
is used.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final

from mtosi_codegen.model import ClassDef, FaultDef, Field, Model, ModelGroup, ModelItem, ObjectValue, Operation, Service
from mtosi_codegen.undefined import undefined
from mtosi_codegen.xsd.model import QName

_CLOSE: Final = 0.75
_ROLES: Final = ("request", "response", "exception", "fault")


def run(model: Model) -> None:
    """Link operations to classes."""
    linker = _Linker(model)
    for service in model.services:
        service.operations = [operation for operation in service.operations if linker.link(service, operation)]
        _report_shared(service, model)


def _report_shared(service: Service, model: Model) -> None:
    """Report operations of a service that have one request element."""
    by_request: dict[QName, list[Operation]] = {}
    for operation in service.operations:
        by_request.setdefault(operation.request, []).append(operation)
    for element, sharing in by_request.items():
        if len(sharing) > 1:
            names = ", ".join(sorted(operation.name for operation in sharing))
            message = f"operations {names} of {service.name} have one request element, {element}"
            repair = "activityName, msgName or the SOAP action must say which is called"
            model.findings.add("operation-shared", *sharing[0].place, message, repair)


class _Linker:
    def __init__(self, model: Model) -> None:
        self._model = model
        operations = [operation for service in model.services for operation in service.operations]
        self._claimed = {name for operation in operations for name in (operation.request, operation.response)}
        self._claimed |= {name for operation in operations for name in operation.fault_elements}

    def link(self, service: Service, operation: Operation) -> bool:
        """Give an operation its classes; return whether it can be generated."""
        request = self._element(operation, operation.request)
        response = self._element(operation, operation.response) if operation.response else None
        if request is None or (response is None and operation.response is not None):
            service.failed.append(operation.name)
            return False
        operation.request, operation.request_class = request.xml, request
        if response is not None:
            operation.response, operation.response_class = response.xml, response
        known = self._model.elements
        operation.header_classes = [known[name] for name in operation.headers if name in known]
        operation.fault_elements = tuple(
            fault.xml
            for fault in (self._element(operation, name, fault=True) for name in operation.fault_elements)
            if fault is not None
        )
        operation.fault = operation.fault_elements[0] if operation.fault_elements else None
        operation.fault_class = self._model.elements[operation.fault] if operation.fault else None
        return True

    def _element(self, operation: Operation, name: QName, *, fault: bool = False) -> ClassDef | None:
        found = self._model.elements.get(name)
        if found is not None:
            return found
        near = self._near(name)
        message = f"operation {operation.name!r}: element {undefined(name, self._model.schema)}"
        lost = "left out; such a fault stays XML" if fault else "not generated: operation left out"
        rule = "fault-undefined" if fault else "element-unresolved"
        self._model.findings.add(rule, *operation.place, message, f"{near} is used" if near else lost)
        return self._model.elements[near] if near else None

    def _near(self, name: QName) -> QName | None:
        """The unclaimed element with the same role in a message and the most similar name."""
        role = next((role for role in _ROLES if name.local.lower().endswith(role)), "")
        ranked = [
            (key.namespace == name.namespace, _likeness(name.local, key.local), key)
            for key in self._model.elements
            if key not in self._claimed and key.local.lower().endswith(role)
        ]
        same_space, likeness, best = max(ranked, default=(False, 0.0, name))
        return best if likeness >= (_CLOSE if same_space else 1.0) else None


def _likeness(one: str, other: str) -> float:
    one, other = one.casefold(), other.casefold()
    return 1.0 if one == other else SequenceMatcher(None, one, other, autojunk=False).ratio()


def faults(model: Model) -> None:
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
