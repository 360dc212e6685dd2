"""Modules: one for each target namespace with definitions, one for each service.

`http://www.tmforum.org/mtop/<ddp>/xsd/<short>/v1` is `<ddp>.<short>`, another version is a suffix; any other namespace
is its host reversed and its path: `http://www.acme.com/inv/2` is `com_acme.inv_2`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from mtosi_codegen.model import Model, TypeModule
from mtosi_codegen.text import escaped, snake
from mtosi_codegen.wsdl.model import Service

_MTOP: Final = re.compile(r"^http://www\.tmforum\.org/mtop/([^/]+)/(?:xsd|wsdl)/([^/]+)/v(\d+(?:[-.]\d+)*)/?$")
_LOCAL: Final = ("local", "types")


def run(model: Model) -> None:
    """Make the modules and put classes, enumerations and faults into them; each service gets its module's path."""
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
    model.modules = sorted(by_space.values(), key=lambda module: module.path)
    _service_paths(model.services, {module.path for module in model.modules})


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
    parts = urlsplit(namespace)
    path = [step for step in re.split(r"[/:#?]+", f"{parts.path}/{parts.query}/{parts.fragment}") if step]
    if parts.netloc:
        host = parts.hostname or parts.netloc
        folder = "_".join(reversed(host.removeprefix("www.").split(".")))
    else:
        folder = "_".join([parts.scheme or "ns", *path[:1]])
        path = path[1:]
    return snake(folder), snake("_".join(path)) if path else _LOCAL[1]


def _type_paths(namespaces: set[str]) -> dict[str, str]:
    """A path for each namespace; those that would share one are spelled out in full."""
    wanted = {namespace: ".".join(split_namespace(namespace)) for namespace in namespaces}
    taken: dict[str, list[str]] = {}
    for namespace, path in sorted(wanted.items()):
        taken.setdefault(path, []).append(namespace)
    for path, sharers in taken.items():
        folder = path.partition(".")[0]
        for namespace in sharers if len(sharers) > 1 else ():
            wanted[namespace] = f"{folder}.{escaped(namespace)}"
    return wanted


def _service_paths(services: list[Service], taken: set[str]) -> None:
    """Paths for the service modules; a name that is taken already gets a suffix that says why."""
    ordered = sorted(services, key=lambda service: ("jms" not in service.transport.casefold(), service.wsdl))
    for service in ordered:
        folder = split_namespace(service.namespace)[0]
        kind = "jms" if "jms" in service.transport.casefold() else "http"
        stem = service.wsdl.rpartition("/")[2].rpartition(".")[0]
        names = (service.name, f"{service.name}_service", f"{service.name}_{kind}", stem, service.wsdl)
        paths = (f"{folder}.{snake(name)}" for name in (*names, f"{service.wsdl}_{service.place.line}"))
        service.module = next(path for path in paths if path not in taken)
        taken.add(service.module)
