"""The registry of services and operations: the services of a package, and the operations that use an element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from mtosi_jms.service import OperationInfo, ServiceInfo
from mtosi_jms.xmlbind import find_element, import_package, registered_packages

__all__ = ["Role", "Usage", "find_operations", "services_of"]

Role = Literal["request", "response", "fault"]
_ROLES: tuple[Role, ...] = ("request", "response", "fault")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The use of an element by an operation.

    Attributes:
        service: the service interface.
        operation: the operation of it.
        role: whether the element is its request, its response or its fault.
    """

    service: ServiceInfo
    operation: OperationInfo
    role: Role


def services_of(package: str) -> tuple[ServiceInfo, ...]:
    """Import a generated package and return its service interfaces.

    Raises:
        ConfigError: the package cannot be imported.
    """
    places = [path.split(":") for path in getattr(import_package(package), "__services__", {})]
    return tuple(getattr(import_package(f"{package}.{module}"), name).__service__ for module, name in places)


@lru_cache(maxsize=16)
def _usages(package: str) -> Mapping[str, tuple[Usage, ...]]:
    """Usages by path of the element's class, all of one package."""
    found: dict[str, tuple[Usage, ...]] = {}
    for service in services_of(package):
        for operation in service.operations:
            for role in _ROLES:
                if path := getattr(operation, role):
                    usage = Usage(service=service, operation=operation, role=role)
                    found[path] = (*found.get(path, ()), usage)
    return found


def find_operations(tag: str) -> tuple[Usage, ...]:
    """Return the operations that have an element as request, response or fault.

    There are several if services share the element, as the notification services do. If several packages use it, only
    the operations of the package that was registered last are returned. Empty if no registered service uses it.

    Args:
        tag: Clark name of the element.
    """
    for package in registered_packages():
        cls = find_element(tag, package)
        if cls is not None and cls.__module__.startswith(f"{package}."):
            path = f"{cls.__module__.removeprefix(package + '.')}:{cls.__name__}"
            if usages := _usages(package).get(path):
                return usages
    return ()
