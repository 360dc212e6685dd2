"""The values for the templates of services: plain values, names and expressions in Python's spelling, no layout.

docs/templates.md lists them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from mtosi_codegen.model import ClassDef, Field, ObjectValue, Operation, Service
from mtosi_codegen.render.values import Names, path_of
from mtosi_codegen.text import camel
from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import TRANSPORT_JMS_W3C

_OWN_PARAMETERS: Final = frozenset({"self", "request", "options", "timeout", "batch_size"})
_LIST_DEPTH: Final = 3
_ITERATOR: Final = "Deprecated over JMS: an iterator stays open at the supplier. Ask for batches instead (C41)."


class ServiceView:
    """The file of a service."""

    def __init__(self, service: Service) -> None:
        self._names = Names(service.module)
        self.name = service.name
        self.class_name = service.class_name
        self.namespace = service.namespace
        self.port_type = service.port_type
        self.address = service.address
        self.transport = service.transport if service.transport == TRANSPORT_JMS_W3C else ""
        self.soap_version = service.soap_version if service.soap_version != "1.1" else ""
        self.delivery = list(service.delivery.items())
        self.doc = service.doc or f"The interface {service.name}."
        classes = _class_names([operation.python_name for operation in service.operations])
        self.operations = [self._operation(operation, classes) for operation in service.operations]
        self.standard = sorted(self._names.standard)
        library = ["from mtosi_jms import xmlbind as _x"] if self._names.library else []
        self.imports = library + self._names.imports(self._names.typing)

    def _operation(self, operation: Operation, classes: dict[str, str]) -> SimpleNamespace:
        request = operation.request_class
        if request is None:
            raise SchemaError(f"operation {operation.name!r} has no request class")
        path = batch_path(operation.response_class)
        response = self._message(operation.response_class)
        doc = operation.doc or request.doc
        parts = [doc or f"Call {operation.name}."]
        if operation.name.endswith("Iterator"):
            parts.append(_ITERATOR)
        if operation.fault_kinds:
            parts.append(f"Faults: {', '.join(operation.fault_kinds)}.")
        return SimpleNamespace(
            name=operation.name,
            python_name=operation.python_name,
            class_name=classes[operation.python_name],
            doc="\n\n".join(parts),
            summary=doc.split("\n\n")[0],
            about=_about(operation),
            batch_path=[field.name for field in path],
            request=self._message(request),
            response=response,
            item=self._names.annotation(path[-1].type) if path else response,
            one_way=operation.response_class is None,
            parameters=self._parameters(request),
        )

    def _message(self, cls: ClassDef | None) -> str:
        return "None" if cls is None else self._names.local(cls.module, cls.name)

    def _parameters(self, request: ClassDef) -> list[SimpleNamespace]:
        fields = request.all_fields()
        taken = {field.name for field in fields} | _OWN_PARAMETERS
        found = []
        for field in fields:
            name = field.name
            while name in _OWN_PARAMETERS or (name != field.name and name in taken):
                name += "_"
            annotation = self._names.field(field) + " | str" * _is_name(field)
            found.append(SimpleNamespace(name=name, field=field.name, annotation=annotation, doc=field.doc))
        return found


def batch_path(cls: ClassDef | None) -> tuple[Field, ...]:
    """The fields that lead from a response to the list that batches divide; empty if there is no such list.

    Each level has only one element field besides vendor extensions; the last field is a list of objects.
    """
    path: list[Field] = []
    while cls is not None and len(path) < _LIST_DEPTH and not any(base.mixin for base in cls.lineage()):
        fields = [field for field in cls.all_fields() if field.kind in {"element", "any"}]
        fields = [field for field in fields if field.xml.local != "vendorExtensions"]
        if len(fields) != 1 or not isinstance(fields[0].type, ObjectValue):
            return ()
        path.append(fields[0])
        if fields[0].many:
            return tuple(path)
        cls = fields[0].type.cls
    return ()


def _about(operation: Operation) -> dict[str, object]:
    roles = ("request", "response", "fault")
    classes = {role: getattr(operation, f"{role}_class") for role in roles}
    about: dict[str, object] = {name: getattr(operation, name) for name in ("name", "python_name", "mep")}
    about |= {role: path_of(cls) for role, cls in classes.items() if cls is not None}
    about |= {f"{role}_message": getattr(operation, f"{role}_message") for role in roles}
    about["headers"] = [path_of(cls) for cls in operation.header_classes]
    about["soap_action"] = operation.action
    return {name: value for name, value in about.items() if value}


def _class_names(operations: list[str]) -> dict[str, str]:
    """A unique class name for each operation: `get1` and `get_1` differ as methods, but not in CamelCase."""
    found: dict[str, str] = {}
    taken = {"_INFO", "_Aio"}
    for operation in operations:
        name = f"_{camel(operation)}{'_' * operation.endswith('_')}"
        found[operation] = f"{name}_{operation}" if name in taken else name
        taken.add(name)
    return found


def _is_name(field: Field) -> bool:
    """Whether a field holds a distinguished name, which callers may also pass as text."""
    return (
        not field.many and isinstance(field.type, ObjectValue) and any(base.mixin for base in field.type.cls.lineage())
    )
