"""Modules: one for each target namespace with definitions, one for each service.

`http://www.tmforum.org/mtop/<ddp>/xsd/<short>/v1` becomes `<ddp>.<short>`; another version becomes a suffix. Any other
namespace becomes its reversed host and its path: `http://www.acme.com/inv/2` becomes `com_acme.inv_2`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

from mtosi_codegen.model import (
    EnumClass,
    EnumValue,
    FacetValue,
    ListValue,
    Model,
    RawValue,
    Service,
    TypeModule,
    UnionValue,
    Value,
)
from mtosi_codegen.text import escaped, snake
from mtosi_codegen.wsdl.join import stripped_name
from mtosi_codegen.xsd.model import QName

_MTOP: Final = re.compile(r"^http://www\.tmforum\.org/mtop/([^/]+)/(?:xsd|wsdl)/([^/]+)/v(\d+(?:[-.]\d+)*)/?$")
_LOCAL: Final = ("local", "types")
# In bytes. File systems allow 255, and suffixes may follow.
_LONGEST: Final = 200


def run(model: Model) -> None:
    """Make the modules, put classes, enumerations and faults into them, and give each service its module's path."""
    spaces = {cls.namespace for cls in model.classes} | {enum.namespace for enum in model.enums}
    spaces |= {fault.namespace for fault in model.faults}
    paths = _type_paths(spaces)
    by_space = {space: _module(model, space, paths[space]) for space in sorted(spaces)}
    for cls in model.classes:
        cls.module = by_space[cls.namespace]
        cls.module.classes.append(cls)
    for enum in model.enums:
        enum.module = by_space[enum.namespace]
        enum.module.enums.append(enum)
    for fault in model.faults:
        fault.module = by_space[fault.namespace]
        fault.module.faults.append(fault)
    kept = set(model.enums)
    for name, value in model.values.items():
        if not isinstance(name, QName) or name.namespace not in by_space or name not in model.schema.types:
            continue
        if not isinstance(value, (EnumValue, RawValue)) and kept.issuperset(_enums(value)):
            by_space[name.namespace].simple[name.local] = value
    model.modules = sorted(by_space.values(), key=lambda module: module.path)
    _service_paths(model, {module.path for module in model.modules})


def _enums(value: Value) -> Iterator[EnumClass]:
    """The enumerations in a simple type."""
    if isinstance(value, EnumValue):
        yield value.enum
    elif isinstance(value, ListValue):
        yield from _enums(value.item)
    elif isinstance(value, FacetValue):
        yield from _enums(value.base)
    elif isinstance(value, UnionValue):
        for member in value.members:
            yield from _enums(member)


def _module(model: Model, namespace: str, path: str) -> TypeModule:
    prefix = model.schema.prefixes.get(namespace) or path.rpartition(".")[2]
    return TypeModule(path, namespace, prefix, model.schema.docs.get(namespace, ""), home=path)


def split_namespace(namespace: str) -> tuple[str, str]:
    """Folder and module for a namespace."""
    known = _MTOP.match(namespace)
    if known:
        ddp, short, version = known.groups()
        suffix = "" if version == "1" else "_v" + re.sub(r"\W", "_", version)
        return snake(ddp), snake(short) + suffix
    if not namespace:
        return _LOCAL
    folder, module = _split(namespace)
    return _shortened(snake(folder)), _shortened(snake(module))


def _split(namespace: str) -> tuple[str, str]:
    try:
        parts = urlsplit(namespace)
    except ValueError:  # any text may be a namespace, even `http://[x`
        parts = SplitResult("", "", namespace, "", "")
    path = [step for step in re.split(r"[/:#?]+", f"{parts.path}/{parts.query}/{parts.fragment}") if step]
    if parts.netloc:
        host = parts.hostname or parts.netloc
        folder = "_".join(reversed(host.removeprefix("www.").split(".")))
    else:
        folder = "_".join([parts.scheme or "ns", *path[:1]])
        path = path[1:]
    return folder, "_".join(path) if path else _LOCAL[1]


def _shortened(name: str) -> str:
    """The name; if it is too long for a file name, its beginning and a hash of the whole."""
    data = name.encode()
    if len(data) <= _LONGEST:
        return name
    return f"{data[:_LONGEST].decode(errors='ignore')}_{hashlib.sha256(data).hexdigest()[:8]}"


def _type_paths(namespaces: set[str]) -> dict[str, str]:
    """A path for each namespace; namespaces that would share a path are spelled out in full."""
    wanted = {namespace: ".".join(split_namespace(namespace)) for namespace in namespaces}
    taken: dict[str, list[str]] = {}
    for namespace, path in sorted(wanted.items()):
        taken.setdefault(path, []).append(namespace)
    for path, sharers in taken.items():
        folder = path.partition(".")[0]
        for namespace in sharers if len(sharers) > 1 else ():
            wanted[namespace] = f"{folder}.{_shortened(escaped(namespace))}"
    return wanted


def _service_paths(model: Model, taken: set[str]) -> None:
    """Set names and paths of the services, JMS services first; a service whose name is taken gets another one."""
    types = frozenset(taken)
    sharing = Counter((service.wsdl, service.name) for service in model.services)
    ordered = sorted(model.services, key=lambda service: (not _is_jms(service), service.place, service.binding))
    for service in ordered:
        folder = split_namespace(service.namespace)[0]
        for name in _service_names(service, alone=sharing[service.wsdl, service.name] == 1):
            module = f"{folder}.{_shortened(snake(name))}"
            module += "_service" * (module in types)
            if module not in taken:
                break
        else:
            module = f"{folder}.{escaped(f'{service.wsdl} {service.place.line} {service.binding}').lower()}"
        if name != service.name and _is_jms(service):
            message = f"another service is named {service.name!r} too"
            model.findings.add("service-name", *service.place, message, f"service named {name!r}")
        taken.add(module)
        service.name, service.module = name, module


def _is_jms(service: Service) -> bool:
    return "jms" in service.transport.casefold() or service.address.casefold().startswith("jms:")


def _service_names(service: Service, *, alone: bool) -> Iterator[str]:
    """Names to try: its own, its own with its transport, its file's if it is alone there, its binding's."""
    stem = service.wsdl.rpartition("/")[2].rpartition(".")[0]
    yield service.name
    if service.transport and not _is_jms(service):
        yield f"{service.name}Http"
    if alone:
        yield stripped_name(stem)
    yield service.binding
    yield f"{service.binding}_{stem}"
