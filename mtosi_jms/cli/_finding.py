"""Operations by the names that a user types: `getManagedElement`, `ManagedElementRetrieval.get_managed_element`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import TMF854
from mtosi_jms.service import OperationInfo, ServiceInfo
from mtosi_jms.service.registry import services_of
from mtosi_jms.xmlbind import modules_of, registered_packages

_NEAR = 3
_SHIPPED_1X = "mtosi_jms.stubs11"


def find_operation(text: str, release: str = "2.0") -> tuple[ServiceInfo, OperationInfo]:
    """The operation that a name stands for.

    The first package of stubs that has the operation counts; the shipped stubs come last.

    Args:
        text: the operation's WSDL or Python name, behind the service's name and a dot where several services have it.
        release: 1.1: only packages of MTOSI 1.x count; 2.0: all but the shipped one of 1.1.

    Raises:
        ConfigError: an unknown operation, with the names that resemble it, or several services of a package have it.
    """
    service_name, _, name = text.rpartition(".")
    packages = _packages(release)
    for package in packages:
        found = [
            (service, operation)
            for service, operation in _operations(package)
            if name in (operation.name, operation.python_name) and service_name in ("", service.name)
        ]
        if len(found) > 1:
            several = " or ".join(f"{service.name}.{operation.name}" for service, operation in found)
            raise ConfigError(f"several services have {text!r}; give {several}")
        if found:
            return found[0]
    told = "" if release == "2.0" else f" in the stubs of MTOSI {release}"
    raise ConfigError(f"there is no operation {text!r}{told}{_hint(packages, service_name, name)}")


def _packages(release: str) -> list[str]:
    if release == "2.0":
        return [package for package in registered_packages() if package != _SHIPPED_1X]
    return [package for package in registered_packages() if TMF854 in modules_of(package)]


def _operations(package: str) -> Iterator[tuple[ServiceInfo, OperationInfo]]:
    for service in services_of(package):
        for operation in service.operations:
            yield service, operation


def _hint(packages: list[str], service_name: str, name: str) -> str:
    known = [found for package in packages for found in _operations(package)]
    by_text: dict[str, str] = {}
    for service, operation in known:
        for spelled in (operation.name, operation.python_name):
            for text in (spelled, f"{service.name}.{spelled}"):
                by_text.setdefault(text.lower(), f"{service.name}.{operation.name}")
    close: list[str] = []
    if service_name:
        close = difflib.get_close_matches(f"{service_name}.{name}".lower(), by_text, n=2 * _NEAR)
    close = close or difflib.get_close_matches(name.lower(), by_text, n=2 * _NEAR)  # the service may be misspelt
    near = list(dict.fromkeys(by_text[one] for one in close))[:_NEAR]
    if near:
        return f"; did you mean {', '.join(near)}?"
    return f"; the services are {', '.join(sorted({service.name for service, _ in known}))}"
