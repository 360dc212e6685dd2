"""The registry of generated packages: it finds the class of an element or a type, and imports only needed modules.

Packages register when they are imported. A package that registered later takes precedence. The shipped profiles come
last and are loaded at the first look-up, so a user's package wins if both define a namespace.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any, Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import PREFIXES, XSI, clark, split_clark

# Given by name: this layer imports no stubs, and before they are generated for the first time there are none.
_PROFILES: Final = ("mtosi_jms.stubs11", "mtosi_jms.stubs")

_packages: dict[str, Mapping[str, str]] = {}
_elements: dict[tuple[str, str | None], Any] = {}
_prefixes: dict[str, str] = dict(PREFIXES)
_taken: set[str] = set(PREFIXES.values())
_lock = threading.Lock()


def register_package(root: str, modules: Mapping[str, str]) -> None:
    """Register a generated package."""
    global _packages, _elements
    with _lock:  # new dictionaries: readers in other threads walk over the old ones
        known = {**_packages, root: dict(modules)}
        order = [*_PROFILES, *(name for name in known if name not in (*_PROFILES, root)), root]
        _packages = {name: known[name] for name in order if name in known}
        _elements = {}


def registered_packages() -> tuple[str, ...]:
    """Return the registered packages, in the order of precedence."""
    for profile in _PROFILES:
        if profile not in _packages and importlib.util.find_spec(profile) is not None:
            importlib.import_module(profile)
    return tuple(reversed(_packages))


def modules_of(root: str) -> Mapping[str, str]:
    """Return the module paths of a registered package by target namespace; empty if the package is unknown."""
    return dict(_packages.get(root, {})) if root in registered_packages() else {}


def find_class(tag: Any, table: str, root: str | None) -> Any:
    """Return the class of a Clark name from `__elements__`, `__types__` or `__simple__` of a module; None if no package
    has it."""
    if not isinstance(tag, str):
        raise ConfigError(f"a Clark name is text, not {type(tag).__name__}")
    namespace, local = split_clark(tag)
    packages = registered_packages()
    for package in (root, *packages) if root and packages[:1] != (root,) else packages:
        module = module_of(namespace, package)
        if module is not None and local in (names := getattr(module, table, {})):
            return getattr(module, names[local]) if isinstance(names[local], str) else (names[local], package)
    return None


def find_element_class(tag: str, root: str | None) -> Any:
    """Return what `find_class` does for a global element. What was found is kept: each document asks."""
    known = _elements  # another dictionary takes its place where a package registers meanwhile
    try:
        found = known.get((tag, root))
    except TypeError:  # it is no text
        found = None
    if found is None and (found := find_class(tag, "__elements__", root)) is not None:
        known[tag, root] = found
    return found


def import_package(name: str) -> ModuleType:
    """Import a generated package, which registers it, or a module of one.

        name: its dotted name.

    Raises:
        ConfigError: it cannot be imported; where Python does not find it, the text says what to do.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, TypeError, ValueError) as error:  # a relative name is a TypeError, an empty one a ValueError
        lost = isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]
        hint = "; put the folder that contains it on PYTHONPATH, such as PYTHONPATH=src" if lost else ""
        raise ConfigError(f"stubs package {name!r} cannot be imported: {error}{hint}") from error


def module_of(namespace: str, root: str) -> ModuleType | None:
    """Return the module of a namespace in a package; None if the package has none. Raises ConfigError: the module
    cannot be imported, because the package is damaged."""
    path = _packages.get(root, {}).get(namespace)
    if path is None:
        return None
    name = f"{root}.{path}"
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", True):
        return module
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"generated module {name} cannot be loaded: {error}") from error


def prefix_for(namespace: str, preferred: str = "") -> str:
    """Return the prefix with which this process writes a namespace: the preferred one if free, or with a number."""
    prefix = _prefixes.get(namespace)
    if prefix is not None:
        return prefix
    with _lock:
        if namespace in _prefixes:  # another thread was first
            return _prefixes[namespace]
        base = preferred or "ns"
        number = 1
        prefix = base if preferred and base not in _taken else ""
        while not prefix or prefix in _taken:
            number += 1
            prefix = f"{base}{number}"
        _taken.add(prefix)
        _prefixes[namespace] = prefix
        return prefix


def known_prefix(namespace: str) -> str | None:
    return _prefixes.get(namespace)


def qualified(namespace: str, local: str) -> str:
    """Return a name with its prefix, `prefix:local`; without a namespace, the local name."""
    return f"{prefix_for(namespace)}:{local}" if namespace else local


XSI_NIL = clark(XSI, "nil")
XSI_TYPE = clark(XSI, "type")


@cache
def resolve_class(path: str, root: str) -> Any:
    """Return the class that a path names. Raises ConfigError: there is no such class, because the generated package is
    damaged or incomplete."""
    module_path, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(f"{root}.{module_path}"), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"generated class {path!r} of package {root!r} cannot be loaded: {error}") from error
