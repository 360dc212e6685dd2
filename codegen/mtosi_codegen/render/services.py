"""The text of a service module: the client class with a callable for each operation, and the supplier's base class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mtosi_codegen.model import ClassDef, Field, ObjectValue, Operation, Service
from mtosi_codegen.render.layout import (
    INDENT,
    WIDTH,
    Brackets,
    Expression,
    docstring,
    flat,
    lines,
    string,
    tuple_of,
)
from mtosi_codegen.render.types import import_line
from mtosi_codegen.render.values import Names, path_of
from mtosi_codegen.text import camel
from mtosi_jms.errors import SchemaError

_OWN_PARAMETERS: Final = frozenset({"self", "request", "options", "timeout", "batch_size"})
_OPTIONS: Final = "_s.CallOptions.of(options, timeout)"
_LIST_DEPTH: Final = 3
_BATCH: Final = 500
"""Objects in a batch, where `objects` is not told another number."""
_ITERATOR: Final = "Deprecated over JMS: an iterator stays open at the supplier. Ask for batches instead (C41)."


def service_module(service: Service, banner: str) -> str:
    """The text of the module of a service."""
    return "\n".join([banner, *_ServiceFile(service).text()]) + "\n"


def batch_path(cls: ClassDef | None) -> tuple[Field, ...]:
    """The fields from a response down to the list that batches cut; empty where there is no such list.

    Each level has one element field only (vendor extensions aside), the last one is a list of objects.
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


class _ServiceFile:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._names = Names(service.module)
        self._classes = _class_names([operation.python_name for operation in service.operations])

    def text(self) -> Iterator[str]:
        """All lines after the banner."""
        service = self._service
        body = [*self._operations(), "", "", *self._view_class(), "", "", *self._service_class()]
        yield from docstring(f"Service {service.name} of {service.namespace}.")
        yield from self._imports("Any" in re.findall(r"\w+", "\n".join(body)))
        yield ""
        yield from lines(self._info(), prefix="_INFO = ")
        yield from body

    def _imports(self, needs_any: bool) -> Iterator[str]:
        names = self._names
        modules = sorted(names.typing, key=lambda module: module.path)
        guarded = sorted(names.standard)
        ours = ["from mtosi_jms import xmlbind as _x"] if names.library else []
        ours += [import_line(names.home, module.path) for module in modules]
        yield from (
            "",
            "from __future__ import annotations",
            "",
            "from typing import TYPE_CHECKING" + ", Any" * needs_any,
        )
        yield from ("", "from mtosi_jms import service as _s", "from mtosi_jms.service import aio as _a")
        if guarded or ours:
            yield from ("", "if TYPE_CHECKING:", *(INDENT + line for line in guarded))
            yield from ([""] if guarded and ours else [])
            yield from (INDENT + line for line in ours)

    def _info(self) -> Brackets:
        service = self._service
        operations = [self._operation_info(operation) for operation in service.operations]
        items: list[Expression] = [
            f"name={string(service.name)}",
            f"namespace={string(service.namespace)}",
            f"port_type={string(service.port_type)}",
            f"address={string(service.address)}",
            'root=__name__.rsplit(".", 2)[0]',
            tuple_of(operations, head="operations=", spread=True),
        ]
        return Brackets("_s.ServiceInfo(", tuple(items), spread=True)

    def _operation_info(self, operation: Operation) -> Brackets:
        pairs = [
            ("name", operation.name),
            ("python_name", operation.python_name),
            ("mep", operation.mep),
            ("request", path_of(_request(operation))),
            ("response", path_of(operation.response_class) if operation.response_class else ""),
            ("fault", path_of(operation.fault_class) if operation.fault_class else ""),
            ("request_message", operation.request_message),
            ("response_message", operation.response_message),
            ("fault_message", operation.fault_message),
        ]
        items: list[Expression] = [f"{name}={string(value)}" for name, value in pairs if value]
        path = batch_path(operation.response_class)
        if path:
            items.append(tuple_of([string(field.name) for field in path], head="batch_path="))
        return Brackets("_s.OperationInfo(", tuple(items), spread=True)

    # The client

    def _class_name(self, operation: Operation) -> str:
        return self._classes[operation.python_name]

    def _message(self, cls: ClassDef | None) -> str:
        if cls is None:
            return "None"
        return self._names.local(cls.module, cls.name)

    def _operations(self) -> Iterator[str]:
        for operation in self._service.operations:
            request, response = self._message(operation.request_class), self._message(operation.response_class)
            yield from ("", "", *self._class_line(operation, request, response))
            yield from docstring(f"Operation {operation.name}.", INDENT)
            yield from ("", *self._call(operation, request, response))
            if operation.response_class is not None:  # the pattern is a choice of each call (O8)
                yield from ("", *self._batched(operation, request, response))
            if batch_path(operation.response_class):
                yield from ("", *self._listed(operation, request))

    def _class_line(self, operation: Operation, request: str, response: str) -> Iterator[str]:
        base = Brackets("_s.BoundOperation[", (string(request), string(response)), "]")
        yield from lines(Brackets(f"class {self._class_name(operation)}(", (base,), ")"), suffix=":", comma=False)

    def _parameters(self, operation: Operation) -> list[tuple[str, str, Field]]:
        """Keyword, parameter name and field for each field of the request."""
        fields = _request(operation).all_fields()
        taken = {field.name for field in fields} | _OWN_PARAMETERS
        found: list[tuple[str, str, Field]] = []
        for field in fields:
            name = field.name
            while name in _OWN_PARAMETERS or (name != field.name and name in taken):
                name += "_"
            found.append((field.name, name, field))
        return found

    def _signature(self, name: str, operation: Operation, request: str, result: str, *own: str) -> Iterator[str]:
        parameters = [
            f"{name}: {self._names.field(field)}{' | str' * _is_name(field)} | None = None"
            for _, name, field in self._parameters(operation)
        ]
        items = (
            "self", f"request: {request} | None = None", "/", "*", *own, *parameters,
            "options: _s.CallOptions | None = None", "timeout: float | None = None",
        )  # fmt: skip
        yield from lines(Brackets(f"def {name}(", items), suffix=f" -> {result}:", indent=INDENT)

    def _call(self, operation: Operation, request: str, response: str) -> Iterator[str]:
        yield from self._signature("__call__", operation, request, response)
        doc = operation.doc or _request(operation).doc or f"Call {operation.name}."
        if operation.name.endswith("Iterator"):
            doc = f"{doc}\n\n{_ITERATOR}"
        documented = ((name, field.doc) for _, name, field in self._parameters(operation))
        yield from docstring(doc, INDENT * 2, documented, "Args")
        given = [f"{keyword}={name}" for keyword, name, _ in self._parameters(operation)]
        call = Brackets("self.invoke(", ("request", _OPTIONS, *given))
        yield from lines(call, prefix="return ", indent=INDENT * 2)

    def _batched(self, operation: Operation, request: str, response: str) -> Iterator[str]:
        yield from self._signature("batches", operation, request, f"_s.Batches[{response}]", "batch_size: int")
        yield from docstring(
            "The same as several responses, in order, each with `batch_size` objects at most.", INDENT * 2
        )
        given = [f"{keyword}={name}" for keyword, name, _ in self._parameters(operation)]
        call = Brackets("self.invoke_batches(", ("request", "batch_size", _OPTIONS, *given))
        yield from lines(call, prefix="return ", indent=INDENT * 2)

    def _listed(self, operation: Operation, request: str) -> Iterator[str]:
        item = flat(self._names.annotation(batch_path(operation.response_class)[-1].type))
        yield from self._signature("objects", operation, request, f"_s.Objects[{item}]", f"batch_size: int = {_BATCH}")
        yield from docstring(
            "The objects of all responses, one by one; complete, or an error at the end. The supplier sends them in "
            "batches of `batch_size` at most.",
            INDENT * 2,
        )
        given = [f"{keyword}={name}" for keyword, name, _ in self._parameters(operation)]
        call = Brackets("self.invoke_objects(", ("request", "batch_size", _OPTIONS, *given))
        yield from lines(call, prefix="return ", indent=INDENT * 2)

    def _view_class(self) -> Iterator[str]:
        yield "class _Aio(_a.AsyncView):"
        yield from docstring("The same operations, to be awaited.", INDENT)
        yield from ("", f"{INDENT}__service__ = _INFO")
        for operation in self._service.operations:
            name = self._class_name(operation)
            signatures = [f"{name}.__call__"]
            if operation.response_class is not None:
                signatures.append(f"{name}.batches")
            if batch_path(operation.response_class):
                signatures.append(f"{name}.objects")
            call = Brackets("_a.operation(", tuple(signatures))
            yield from lines(call, prefix=f"{operation.python_name} = ", indent=INDENT)

    def _service_class(self) -> Iterator[str]:
        service = self._service
        yield f"class {service.class_name}(_s.Service):"
        operations = ((operation.python_name, _first_sentence(operation)) for operation in service.operations)
        yield from docstring(service.doc or f"The interface {service.name}.", INDENT, operations)
        yield from ("", f"{INDENT}__service__ = _INFO", "")
        yield f"{INDENT}def __init__(self, caller: _s.Caller, destination: _s.Address) -> None:"
        yield f"{INDENT * 2}super().__init__(caller, destination)"
        for index, operation in enumerate(service.operations):
            call = Brackets(f"{self._class_name(operation)}(", ("self", str(index)))
            yield from lines(call, prefix=f"self.{operation.python_name} = ", indent=INDENT * 2)
        yield f"{INDENT * 2}self.aio = _Aio(self)"
        yield from ("", f"{INDENT}class Supplier(_s.SupplierBase):")
        yield from docstring(f"Base of suppliers of {service.name}: override what is offered.", INDENT * 2)
        yield from ("", f"{INDENT * 2}__service__ = _INFO")
        for operation in service.operations:
            yield from ("", *self._handler(operation))

    def _handler(self, operation: Operation) -> Iterator[str]:
        response = self._message(operation.response_class)
        result: Expression = "_a.Done"
        path = batch_path(operation.response_class)
        if operation.response_class is not None:
            item = self._names.annotation(path[-1].type) if path else response
            result = Brackets("_a.Answer[", (item, response), "]")
        parameters = ("self", f"request: {self._message(operation.request_class)}", "context: _s.RequestContext")
        yield from _with_result(Brackets(f"def {operation.python_name}(", parameters), result, INDENT * 2)
        yielded = "objects that are yielded go out in batches" if path else "each response that is yielded is a batch"
        doc = f"Answer {operation.name}" + (f"; {yielded}." if operation.response_class is not None else ".")
        yield from docstring(doc, INDENT * 3)
        yield f"{INDENT * 3}raise self.not_implemented({string(operation.name)})"


def _class_names(operations: list[str]) -> dict[str, str]:
    """A class name for each operation; `get1` and `get_1` differ as methods, but not in CamelCase."""
    found: dict[str, str] = {}
    taken = {"_INFO", "_Aio"}
    for operation in operations:
        name = f"_{camel(operation)}{'_' * operation.endswith('_')}"
        found[operation] = f"{name}_{operation}" if name in taken else name
        taken.add(name)
    return found


def _is_name(field: Field) -> bool:
    """Whether a field holds a distinguished name, for which its text form may be given."""
    return (
        not field.many and isinstance(field.type, ObjectValue) and any(base.mixin for base in field.type.cls.lineage())
    )


def _request(operation: Operation) -> ClassDef:
    """The class of the request; an operation without one is never rendered."""
    if operation.request_class is None:
        raise SchemaError(f"operation {operation.name!r} has no request class")
    return operation.request_class


def _with_result(signature: Brackets, result: Expression, indent: str) -> Iterator[str]:
    """A signature with what it returns."""
    *head, last = lines(signature, suffix=f" -> {flat(result)}:", indent=indent)
    if len(last) <= WIDTH:
        yield from (*head, last)
        return
    yield f"{indent}{signature.head}"
    arguments = f"{indent}{INDENT}{', '.join(map(flat, signature.items))}"
    yield from (
        [arguments] if len(arguments) <= WIDTH else (f"{indent}{INDENT}{flat(item)}," for item in signature.items)
    )
    yield from lines(result, prefix=") -> ", suffix=":", indent=indent)


def _first_sentence(operation: Operation) -> str:
    doc = operation.doc or _request(operation).doc
    return flat(doc.split("\n\n")[0])
