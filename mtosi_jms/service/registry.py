"""The registry of services and operations: the services of a package, and the operations that use an element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Final, Literal, TypeVar

from mtosi_jms.namespaces import TMF854, clark
from mtosi_jms.service import OperationInfo, ServiceInfo
from mtosi_jms.soap import Header, header_text
from mtosi_jms.xmlbind import find_element, import_package, registered_packages

__all__ = ["Role", "Usage", "chosen", "find_operations", "is_own", "names_another", "services_of"]

T = TypeVar("T")
Role = Literal["request", "response", "fault"]
_RELEASE1: Final = clark(TMF854, "")
_ROLES: tuple[Role, ...] = ("request", "response", "fault")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The use of an element by an operation: as its request, its response or its fault."""

    service: ServiceInfo
    operation: OperationInfo
    role: Role


def services_of(package: str) -> tuple[ServiceInfo, ...]:
    """Import a generated package and return its service interfaces. Raises ConfigError: it cannot be imported."""
    places = [path.split(":") for path in getattr(import_package(package), "__services__", {})]
    return tuple(getattr(import_package(f"{package}.{module}"), name).__service__ for module, name in places)


@lru_cache(maxsize=16)
def _usages(package: str) -> Mapping[str, tuple[Usage, ...]]:
    found: dict[str, tuple[Usage, ...]] = {}
    for service in services_of(package):
        for operation in service.operations:
            for role in _ROLES:
                if path := getattr(operation, role):
                    usage = Usage(service=service, operation=operation, role=role)
                    found[path] = (*found.get(path, ()), usage)
    return found


def chosen(
    found: Sequence[T],
    of: Callable[[T], OperationInfo],
    header: Header | None,
    action: str = "",
    role: Role = "request",
) -> list[T]:
    """Return which of several operations with one element a message is for.

    Each of activityName, msgName and SOAP action rules out the operations that it does not name. One that names none of
    them says nothing.

    Args:
        found: the operations, or what belongs to them.
        of: returns the operation of an item.
        action: the SOAP action sent with it; empty if there was none.
        role: what the element is to the operations.

    Returns:
        One item if the message names one; several if it names none; none if it names different ones.
    """
    left = list(found)
    if len(left) < 2:
        return left
    activity, message = (header_text(header or Header(), name) or "" for name in ("activityName", "msgName"))
    suffix = "Exception" if role == "fault" else role.capitalize()
    for text, names in (
        (activity, lambda one: (one.name,)),
        (message, lambda one: (getattr(one, f"{role}_message") or f"{one.name}{suffix}",)),
        (action.strip().strip('"'), lambda one: (one.soap_action, one.name)),
    ):
        named = [one for one in found if text and text in names(of(one))]
        left = [one for one in left if one in named] if named else left
    return left


def is_own(tag: str, operation: OperationInfo) -> bool:
    """Whether a request element is of this operation alone. MTOSI 1.x shares the elements that are not named for their
    operation (`getMeIterator`), also among services."""
    return not tag.startswith(_RELEASE1) or tag == _RELEASE1 + operation.name


def names_another(operation: OperationInfo, header: Header | None, action: str = "") -> bool:
    """Whether a request names operations, but neither this one nor the one whose iterator it is."""
    texts = [header_text(header or Header(), name) or "" for name in ("activityName", "msgName")]
    given = {text for text in (*texts, action.strip().strip('"')) if text}
    own = {operation.name, operation.request_message, operation.soap_action, operation.name.removesuffix("Iterator")}
    return bool(given) and given.isdisjoint(own)


def find_operations(tag: str, header: Header | None = None, action: str = "") -> tuple[Usage, ...]:
    """Return the operations that have an element as request, response or fault.

    There are several if services share the element, as the notification services do, or if operations share it and
    nothing else tells which is meant. If several packages use it, only the operations of the package that was
    registered last are returned. Empty if no registered service uses it.

    Args:
        tag: Clark name of the element.
        header, action: of its message, see `chosen`.
    """
    usages = _usages_of(tag)
    found: list[Usage] = []
    for role in _ROLES:
        group = [one for one in usages if one.role == role]
        found += chosen(group, attrgetter("operation"), header, action, role) or group
    return tuple(found)


def _usages_of(tag: str) -> tuple[Usage, ...]:
    for package in registered_packages():
        cls = find_element(tag, package)
        if cls is not None and cls.__module__.startswith(f"{package}."):
            path = f"{cls.__module__.removeprefix(package + '.')}:{cls.__name__}"
            if usages := _usages(package).get(path):
                return usages
    return ()
