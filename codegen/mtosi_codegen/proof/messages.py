"""The messages to prove: those of the operations, by their elements."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mtosi_codegen.model import Operation, Service
from mtosi_jms.errors import SchemaError

Role = Literal["request", "response", "fault"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of an operation.

    Attributes:
        service: name of the interface.
        namespace: that of its binding.
        operation: name of the operation.
        role: `request`, `response` or `fault`.
        element: Clark name of its element.
    """

    service: str
    namespace: str
    operation: str
    role: Role
    element: str

    @property
    def path(self) -> str:
        """The name of the message in reports."""
        return f"{self.service}.{self.operation} {self.role}"


def messages_of(services: Iterable[Service], wanted: Sequence[str] | None = None) -> list[Message]:
    """The messages of operations, in the order of services.

    Args:
        wanted: names of operations, as `Service.operation` or `operation`; None for all.

    Raises:
        SchemaError: there is no such operation; the message names similar ones.
    """
    found: list[Message] = []
    names: set[str] = set()
    for service in services:
        for operation in service.operations:
            known = {operation.name, f"{service.name}.{operation.name}"}
            names |= known
            if wanted is None or known & set(wanted):
                found += _messages(service, operation)
    for name in wanted or ():
        if name not in names:
            near = difflib.get_close_matches(name, sorted(names), 3)
            raise SchemaError(f"no operation {name!r}" + (f"; did you mean {', '.join(near)}?" if near else ""))
    return found


def _messages(service: Service, operation: Operation) -> list[Message]:
    roles: list[tuple[Role, str]] = [("request", str(operation.request))]
    roles += [("response", str(operation.response))] if operation.response is not None else []
    roles += [("fault", str(element)) for element in operation.fault_elements]
    return [Message(service.name, service.namespace, operation.name, role, element) for role, element in roles]
