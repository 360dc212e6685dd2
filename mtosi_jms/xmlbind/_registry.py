"""Generated packages by namespace: from an element's or a type's QName to its class, importing only what is asked for.

Packages register when they are imported. A package that was registered later comes first; the shipped profile comes
last and is loaded at the first look-up, so a user's own package wins where both define a namespace.
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

# By name: this layer imports no stubs, and while they are generated for the first time there are none.
_PROFILE: Final = "mtosi_jms.stubs"

_packages: dict[str, Mapping[str, str]] = {}
_prefixes: dict[str, str] = dict(PREFIXES)
_taken: set[str] = set(PREFIXES.values())
_lock = threading.Lock()


def register_package(root: str, modules: Mapping[str, str]) -> None:
    """Make a generated package known.

    Args:
        root: dotted name of the package.
        modules: target namespace to module path below the root.
    """
    global _packages
    with _lock:  # a new dictionary: readers in other threads walk over the old one
        others = {name: known for name, known in _packages.items() if name != root}
        added = {root: dict(modules)}
        _packages = {**added, **others} if root == _PROFILE else {**others, **added}


def registered_packages() -> tuple[str, ...]:
    """The packages known, the one asked first first."""
    if _PROFILE not in _packages and importlib.util.find_spec(_PROFILE) is not None:
        importlib.import_module(_PROFILE)
    return tuple(reversed(_packages))


def modules_of(root: str) -> Mapping[str, str]:
    """The modules of a registered package, target namespace to module path below the root; empty if it is not known."""
    return dict(_packages.get(root, {})) if root in registered_packages() else {}


def find_class(tag: Any, table: str, root: str | None) -> Any:
    """The class of a Clark name, None if no registered package has it.

    Args:
        tag: the name.
        table: what a module lists it in: `__elements__` or `__types__`, or `__simple__` where it has that.
        root: a package to ask before all others.
    """
    if not isinstance(tag, str):
        raise ConfigError(f"a Clark name is text, not {type(tag).__name__}")
    namespace, local = split_clark(tag)
    packages = registered_packages()
    for package in (root, *packages) if root and packages[:1] != (root,) else packages:
        module = module_of(namespace, package)
        if module is not None and local in (names := getattr(module, table, {})):
            return getattr(module, names[local]) if isinstance(names[local], str) else (names[local], package)
    return None


def module_of(namespace: str, root: str) -> ModuleType | None:
    """The module of a namespace in one package, None if the package has none.

    Raises:
        ConfigError: the module cannot be imported; the package is damaged.
    """
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


def prefix_for(namespace: str, wish: str = "") -> str:
    """The prefix that this process writes a namespace with: the wish if it is free, else the wish with a number."""
    prefix = _prefixes.get(namespace)
    if prefix is not None:
        return prefix
    with _lock:
        if namespace in _prefixes:  # another thread was first
            return _prefixes[namespace]
        base = wish or "ns"
        number = 1
        prefix = base if wish and base not in _taken else ""
        while not prefix or prefix in _taken:
            number += 1
            prefix = f"{base}{number}"
        _taken.add(prefix)
        _prefixes[namespace] = prefix
        return prefix


def known_prefix(namespace: str) -> str | None:
    """The prefix that this process writes a namespace with, None for one that no schema brought."""
    return _prefixes.get(namespace)


def qualified(namespace: str, local: str) -> str:
    """A name as it is written, `prefix:local`; the bare local name where there is no namespace."""
    return f"{prefix_for(namespace)}:{local}" if namespace else local


XSI_NIL = clark(XSI, "nil")
XSI_TYPE = clark(XSI, "type")


@cache
def resolve_class(path: str, root: str) -> Any:
    """The class that a path names.

    Args:
        path: `module:Class`, relative to the root package.
        root: dotted name of the package that paths are relative to.

    Raises:
        ConfigError: there is no such class; the generated package is damaged or incomplete.
    """
    module_path, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(f"{root}.{module_path}"), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"generated class {path!r} of package {root!r} cannot be loaded: {error}") from error
