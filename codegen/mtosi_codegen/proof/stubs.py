"""Imports a generated package from disk under a name of its own, so no installed package is imported instead."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from mtosi_codegen.proof.messages import Message
from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import clark, split_clark
from mtosi_jms.service import ServiceInfo
from mtosi_jms.xmlbind import XmlEnum, XmlObject, module_of, modules_of


class Stubs:
    """The classes of a package.

    Args:
        name: name under which it is imported; no other module may have it.

    Attributes:
        name: as given.

    Raises:
        Exception: whatever importing a damaged package raises.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None:
            raise ConfigError(f"{folder}: no Python package")
        package = importlib.util.module_from_spec(spec)
        sys.modules[name] = package
        spec.loader.exec_module(package)
        self._services: dict[tuple[str, str], ServiceInfo] = {}
        for path in package.__services__:
            module, _, cls = path.partition(":")
            info: ServiceInfo = getattr(importlib.import_module(f"{name}.{module}"), cls).__service__
            self._services[info.name, info.namespace] = info

    def modules(self) -> Iterator[tuple[str, str, ModuleType]]:
        """Target namespace, path and module of all types."""
        for namespace, path in sorted(modules_of(self.name).items()):
            yield namespace, path, importlib.import_module(f"{self.name}.{path}")

    def listed(self, kind: str) -> Iterator[tuple[str, type[XmlObject | XmlEnum]]]:
        """Clark name and class of everything in `__elements__` or `__types__`."""
        for namespace, _, module in self.modules():
            for local, cls in getattr(module, kind).items():
                yield clark(namespace, local), getattr(module, cls)

    def find(self, name: str, kind: str) -> type[XmlObject] | None:
        """The class of a Clark name in `__elements__` or `__types__`; None if there is none."""
        namespace, local = split_clark(name)
        module = module_of(namespace, self.name)
        found = getattr(module, kind, {}).get(local) if module is not None else None
        cls: type[XmlObject] | None = getattr(module, found, None) if found is not None else None
        return cls

    def class_of(self, message: Message) -> type[XmlObject] | str:
        """The class that an operation has for a message; if there is none, a text that says what is wrong."""
        info = self._services.get((message.service, message.namespace))
        operations = [one for one in info.operations if one.name == message.operation] if info is not None else []
        if info is None or not operations:
            return f"no such {'service' if info is None else 'operation'}"
        cls = None
        for operation in operations:  # several if the operation is overloaded
            try:
                path = getattr(operation, message.role)
                cls = info.load(path) if path else None
            except Exception as error:  # noqa: BLE001 - a module is imported on first use, and may be damaged
                return f"{type(error).__name__}: {error}"
            if cls is not None and cls.__xml__.tag == message.element:
                return cls
        if message.role == "fault":  # a stub names only the first of several faults
            cls = self.find(message.element, "__elements__")
            return cls if cls is not None else "no class"
        return f"element {cls.__xml__.tag}" if cls is not None else f"no {message.role}"
