"""Operations get the classes of their messages; an operation whose element nothing defines is left out."""

from __future__ import annotations

from mtosi_codegen.model import ClassDef, Model
from mtosi_codegen.wsdl.model import Operation, Service
from mtosi_codegen.xsd.model import QName


def run(model: Model) -> None:
    """Link operations to classes."""
    for service in model.services:
        service.operations = [operation for operation in service.operations if _linked(model, service, operation)]


def _linked(model: Model, service: Service, operation: Operation) -> bool:
    operation.request_class = _element(model, service, operation, operation.request)
    if operation.request_class is None:
        return False
    if operation.response is not None:
        operation.response_class = _element(model, service, operation, operation.response)
        if operation.response_class is None:
            return False
    if operation.fault is not None:
        operation.fault_class = model.elements.get(operation.fault)
        if operation.fault_class is None:
            message = f"element {operation.fault} of the fault of {operation.name!r} is not defined"
            repair = "left out; such a fault stays XML"
            model.findings.add("fault-undefined", *service.place, message, repair)
            operation.fault = None
    return True


def _element(model: Model, service: Service, operation: Operation, name: QName) -> ClassDef | None:
    found = model.elements.get(name)
    if found is None:
        near = [key for key in model.elements if key.local.casefold() == name.local.casefold()]
        message = f"element {name} of operation {operation.name!r} is not defined"
        if near:
            best = min(near, key=lambda key: (key.namespace != name.namespace, key.local != name.local, key))
            model.findings.add("element-unresolved", *service.place, message, f"{best} is used")
            return model.elements[best]
        model.findings.add("element-unresolved", *service.place, message, "not generated: operation left out")
        service.failed.append(operation.name)
    return found
