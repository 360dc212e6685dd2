"""The messages to prove: those of the operations, by their elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mtosi_codegen.findings import Finding
from mtosi_codegen.model import Operation, Service
from mtosi_codegen.pipeline import names_of, require

Role = Literal["request", "response", "fault"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of an operation.

    Attributes:
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


def messages_of(
    services: Sequence[Service], wanted: Sequence[str] | None = None, findings: Sequence[Finding] = ()
) -> list[Message]:
    """The messages of operations, in the order of services.

    Args:
        wanted: names of operations, as `Service.operation` or `operation`; None for all.

    Raises:
        SchemaError: no service has one of the operations.
    """
    require(wanted or (), services, findings)
    found: list[Message] = []
    for service in services:
        for operation in service.operations:
            if wanted is None or names_of(service, operation.name) & set(wanted):
                found += _messages(service, operation)
    return found


def _messages(service: Service, operation: Operation) -> list[Message]:
    roles: list[tuple[Role, str]] = [("request", str(operation.request))]
    roles += [("response", str(operation.response))] if operation.response is not None else []
    roles += [("fault", str(element)) for element in operation.fault_elements]
    return [Message(service.name, service.namespace, operation.name, role, element) for role, element in roles]
