"""Operations by the names that a user types: `getManagedElement`, `ManagedElementRetrieval.get_managed_element`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from mtosi_jms.errors import ConfigError
from mtosi_jms.service import OperationInfo, ServiceInfo
from mtosi_jms.service.registry import services_of
from mtosi_jms.xmlbind import registered_packages

_NEAR = 3


def find_operation(text: str) -> tuple[ServiceInfo, OperationInfo]:
    """The operation that a name stands for.

    Packages of stubs are asked in their order, and the first one that has the operation counts: the shipped stubs
    come last.

    Args:
        text: the operation's WSDL or Python name, behind the service's name and a dot where several services have it.

    Raises:
        ConfigError: there is none, with the names that resemble it, or several services of a package have it.
    """
    service_name, _, name = text.rpartition(".")
    for package in registered_packages():
        found = [
            (service, operation)
            for service, operation in _operations(package)
            if name in (operation.name, operation.python_name) and service_name in ("", service.name)
        ]
        if len(found) > 1:
            several = " or ".join(f"{service.name}.{operation.name}" for service, operation in found)
            raise ConfigError(f"{text!r} is not one operation alone; say {several}")
        if found:
            return found[0]
    raise ConfigError(f"there is no operation {text!r}{_hint(service_name, name)}")


def _operations(package: str) -> Iterator[tuple[ServiceInfo, OperationInfo]]:
    for service in services_of(package):
        for operation in service.operations:
            yield service, operation


def _hint(service_name: str, name: str) -> str:
    known = {
        f"{service.name}.{operation.name}": (service, operation)
        for package in registered_packages()
        for service, operation in _operations(package)
    }
    by_text: dict[str, str] = {}
    for full, (service, operation) in known.items():
        for spelled in (operation.name, operation.python_name):
            if service_name in ("", service.name):
                by_text.setdefault(spelled.lower(), full)
            by_text.setdefault(f"{service.name}.{spelled}".lower(), full)
    wanted = f"{service_name}.{name}".lower() if service_name else name.lower()
    close = difflib.get_close_matches(wanted, by_text, n=2 * _NEAR)
    if not close and service_name:  # the service may be the misspelt one
        close = difflib.get_close_matches(name.lower(), by_text, n=2 * _NEAR)
    near = list(dict.fromkeys(by_text[one] for one in close))[:_NEAR]
    if near:
        return f"; did you mean {', '.join(near)}?"
    return f"; the services are {', '.join(sorted({service.name for service, _ in known.values()}))}"
