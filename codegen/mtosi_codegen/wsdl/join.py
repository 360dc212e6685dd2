"""From bindings, port types and messages to services: each operation with the elements of its messages.

Where they do not fit, the closest spelling is taken and reported; what cannot be put together is left out and
reported. Look-ups stay within the files that a WSDL reaches, so that two services may share names and namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final, Literal

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import Bindings, Document, Sources, has_ports_only, wanted_transport
from mtosi_codegen.model import Operation, Service
from mtosi_codegen.wsdl.model import (
    Binding,
    BoundMessage,
    BoundOperation,
    Definitions,
    Message,
    Part,
    PortOperation,
    PortType,
)
from mtosi_codegen.wsdl.read import read_definitions
from mtosi_codegen.xsd.model import Place, QName

_SUFFIX: Final = re.compile(r"(?:_?(?:MSG|RPC|PortType|Binding|Service|SoapJms|SoapHttp|Soap|Jms|JMS|Http|HTTP))+$")
_CLOSE: Final = 0.8


def services_of(sources: Sources, findings: Findings, bindings: Bindings = "jms") -> list[Service]:
    """One service for each wanted SOAP binding of the sources, in order of file and line."""
    found: list[Service] = []
    for root in sources.roots:
        scope = sources.scope(root)
        definitions = read_definitions(scope, findings)
        definitions.ports += read_definitions(outer_documents(sources, root), findings).ports
        for binding in definitions.bindings:
            if binding.place.file == root.name and wanted_transport(binding.transport, bindings):
                service = _Joiner(definitions, binding, findings).service()
                service.files = tuple(sorted(document.name for document in scope))
                found.append(service)
    return found


def outer_documents(sources: Sources, root: Document) -> list[Document]:
    """The WSDLs that hold no binding and import this one, near or far: its ports may stand there."""
    candidates = [document for document in sources.documents if document.kind == "wsdl"]
    return [other for other in candidates if has_ports_only(other.root) and root in sources.scope(other)]


def stripped_name(name: str) -> str:
    """An interface's name without what says how it is bound (`_MSG`, `SoapJmsBinding`, `Jms`)."""
    return _SUFFIX.sub("", name) or name


class _Joiner:
    def __init__(self, definitions: Definitions, binding: Binding, findings: Findings) -> None:
        self._all = definitions
        self._binding = binding
        self._findings = findings
        self._failed: list[str] = []

    def service(self) -> Service:
        binding = self._binding
        port_type = self._port_type()
        port = next((port for port in self._all.ports if port.binding == binding.name), None)
        operations: list[Operation] = []
        if not binding.operations:
            message = f"binding {binding.name.local!r} has no operations"
            self._report("no-service", binding.place, message, "not generated: nothing to call")
        if port_type is not None:
            for bound, operation in self._pairs(port_type):
                joined = self._operation(bound, operation)
                operations.extend([joined] if joined else [])
        return Service(
            self._name(port_type),
            binding.name.local,
            binding.place.file,
            binding.name.namespace,
            port_type.name.local if port_type else binding.type.local,
            binding.transport,
            port.address if port else "",
            binding.place,
            operations,
            failed=self._failed,
            doc=port_type.doc if port_type else "",
        )

    def _report(self, rule: str, place: Place, message: str, repair: str) -> None:
        self._findings.add(rule, place.file, place.line, message, repair)

    def _name(self, port_type: PortType | None) -> str:
        """The interface's name: its port type's, or its file's where the port type came out of a namesake's shadow."""
        name = stripped_name(port_type.name.local if port_type else self._binding.name.local)
        if port_type is None or port_type.place.file == self._binding.place.file:
            return name
        folder, _, file = self._binding.place.file.rpartition("/")
        stem = stripped_name(file.rpartition(".")[0] or file)
        home, _, other = port_type.place.file.rpartition("/")
        if folder == home and stem.casefold() != name.casefold() and stripped_name(other.rpartition(".")[0]) == stem:
            message = f"files are named {stem!r}, the port type is named {name!r}"
            self._report("service-name", self._binding.place, message, f"service named {stem!r}")
            return stem
        return name

    def _port_type(self) -> PortType | None:
        wanted = self._binding.type
        found = self._all.port_types.get(wanted)
        if found is None:
            same = [port_type for name, port_type in self._all.port_types.items() if name.local == wanted.local]
            same = same or list(self._all.port_types.values())[: len(self._all.port_types) == 1]
            found = same[0] if same else None
            repair = f"{found.name} is used" if found else "not generated: the service has no operations"
            message = f"port type {wanted} is not defined"
            self._report("binding-type-missing", self._binding.place, message, repair)
            if found is None:
                self._failed.extend(operation.name for operation in self._binding.operations)
        return found

    # Operations

    def _pairs(self, port_type: PortType) -> Iterator[tuple[BoundOperation, PortOperation]]:
        """Binding operations with those of the port type: by name, else by closeness."""
        left = list(port_type.operations)
        pairs: dict[BoundOperation, PortOperation] = {}
        for bound in self._binding.operations:
            same = [operation for operation in left if operation.name == bound.name]
            if same:
                pairs[bound] = same[0]
                left.remove(same[0])
        for bound in (bound for bound in self._binding.operations if bound not in pairs):
            near = [(_closeness(bound.name, operation.name), operation) for operation in left]
            best = max(near, key=lambda pair: pair[0], default=(0.0, None))
            if best[1] is None or best[0] < _CLOSE:
                message = f"operation {bound.name!r} is not in port type {port_type.name.local!r}"
                self._report("operation-undefined", bound.place, message, "not generated: no message is known")
                self._failed.append(bound.name)
                continue
            pairs[bound] = best[1]
            left.remove(best[1])
            message = f"the binding says {bound.name!r}, the port type {best[1].name!r}"
            self._report("operation-drift", bound.place, message, f"taken as one operation, {best[1].name!r}")
        for operation in left:
            message = f"operation {operation.name!r} of the port type is not in binding {self._binding.name.local!r}"
            self._report("operation-unbound", operation.place, message, "left out: nothing says how to send it")
        return ((bound, pairs[bound]) for bound in self._binding.operations if bound in pairs)

    def _operation(self, bound: BoundOperation, operation: PortOperation) -> Operation | None:
        style = bound.style or self._binding.style
        if style != "document":
            message = f"operation {operation.name!r} has style {style!r}"
            self._report("binding-style", bound.place, message, "read as document/literal")
        request = self._body(operation, operation.input, bound.input, "request")
        response = self._body(operation, operation.output, bound.output, "response") if operation.output else None
        if request is None or (operation.output is not None and response is None):
            self._failed.append(operation.name)
            return None
        faults = list(self._faults(operation))
        mep: Literal["request-response", "one-way"] = "request-response" if operation.output else "one-way"
        return Operation(
            operation.name,
            operation.place,
            mep,
            request[1],
            response[1] if response else None,
            faults[0][1] if faults else None,
            request[0].name.local,
            response[0].name.local if response else "",
            faults[0][0].name.local if faults else "",
            fault_elements=tuple(element for _, element in faults),
            bound_name=bound.name,
            action=bound.action,
            doc=operation.doc,
        )

    def _faults(self, operation: PortOperation) -> Iterator[tuple[Message, QName]]:
        for name, message_name in operation.faults:
            message = self._message(message_name, operation.place)
            elements = [part.element for part in message.parts if part.element is not None] if message else []
            if message is not None and elements:
                yield message, elements[0]
            else:
                text = f"fault {name!r} of operation {operation.name!r} has no element"
                self._report("fault-undefined", operation.place, text, "left out; such a fault stays XML")

    # Messages

    def _body(
        self, operation: PortOperation, name: QName | None, bound: BoundMessage, kind: str
    ) -> tuple[Message, QName] | None:
        message = self._message(name, operation.place) if name is not None else None
        if message is None:
            text = f"{kind} message {name or 'without a name'} of operation {operation.name!r} is not defined"
            self._report("message-undefined", operation.place, text, "not generated: operation left out")
            return None
        headers = {part for header, part in bound.headers if header.local == message.name.local}
        parts = [part for part in message.parts if part.name not in headers]
        if bound.body_parts:
            parts = [part for part in message.parts if part.name in bound.body_parts] or parts
        candidates = [part for part in parts if part.element is not None]
        chosen = candidates[0] if bound.body_parts and candidates else _body_part(candidates)
        if chosen is None and candidates:
            chosen = candidates[-1]
            text = f"{kind} message {message.name.local!r} of operation {operation.name!r} has several body parts"
            self._report("message-part", message.place, text, f"{chosen.name!r} is taken")
        if chosen is None or chosen.element is None:
            text = f"{kind} message {message.name.local!r} of operation {operation.name!r} has no body element"
            self._report("message-part", message.place, text, "not generated: operation left out")
            return None
        return message, chosen.element

    def _message(self, name: QName, place: Place) -> Message | None:
        alias = self._all.aliases.get(place.file, {}).get(name.namespace, name.namespace)
        found = self._all.messages.get(name) or self._all.messages.get(QName(alias, name.local))
        if found is not None:
            return found
        same = [message for key, message in self._all.messages.items() if key.local == name.local]
        if same:
            text = f"message {name} is not defined"
            self._report("message-namespace", place, text, f"{same[0].name} is used")
            return same[0]
        return self._nearest(name, place)

    def _nearest(self, name: QName, place: Place) -> Message | None:
        """The message that differs in case or by a letter or two."""
        near: Iterable[tuple[float, Message]] = (
            (_closeness(name.local, key.local), message) for key, message in self._all.messages.items()
        )
        best = max(near, key=lambda pair: pair[0], default=(0.0, None))
        if best[1] is None or best[0] < 0.95:
            return None
        self._report("message-undefined", place, f"message {name} is not defined", f"{best[1].name} is used")
        return best[1]


def _body_part(parts: list[Part]) -> Part | None:
    """The only part, or the only one that is called a body or is not called a header; None where none stands out."""
    if len(parts) > 1:
        bodies = [part for part in parts if "body" in part.name.casefold()]
        parts = bodies or [part for part in parts if not _calls_header(part)]
    return parts[0] if len(parts) == 1 else None


def _calls_header(part: Part) -> bool:
    names = (part.name, part.element.local if part.element is not None else "")
    return any("header" in name.casefold() for name in names)


def _closeness(one: str, other: str) -> float:
    if one.casefold() == other.casefold():
        return 1.0
    return SequenceMatcher(None, one.casefold(), other.casefold(), autojunk=False).ratio()
