"""What the packages of the distribution register: commands, transports, rows of `doctor`, ways to call.

A package declares what it adds in a file `registration.toml` in its own folder: a table for each kind, with an entry by
name. So whoever uses an entry names no package, and imports what it needs when a user asks for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from types import MappingProxyType, ModuleType
from typing import Any, Final, Literal, TypeAlias

__all__ = ["Kind", "names_from", "registered", "registered_module"]

Kind: TypeAlias = Literal["commands", "transports", "doctor", "calls"]

_FILE: Final = "registration.toml"
_FIRST: Final = ("cli",)
"""Packages whose entries come before those of others, as in the list of commands."""


@cache
def registered(kind: Kind) -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of a kind by name. `module` in each is the dotted name of the module that serves it."""
    found: dict[str, Mapping[str, Any]] = {}
    for told in _told():
        found.update(told.get(kind, {}))
    return MappingProxyType(found)


def registered_module(kind: Kind, name: str) -> ModuleType:
    """Import the module of an entry.

    Raises:
        KeyError: nobody registers it.
        MissingExtraError: it lacks an optional library.
    """
    return import_module(registered(kind)[name]["module"])


def names_from(package: str, names: Collection[str], *modules: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that imports its modules when their names are first asked for.

    Args:
        package: its dotted name.
        names: those that it has from the modules.
        modules: modules below the package, which are searched in this order: those that need least come first.
    """

    def get(name: str) -> Any:
        for module in modules if name in names else ():
            found = import_module(f"{package}.{module}")
            if hasattr(found, name):
                return getattr(found, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get


@cache
def _told() -> tuple[Mapping[str, Any], ...]:
    folders = sorted(_folders(), key=lambda folder: (folder.name not in _FIRST, folder.name))
    files = (folder / _FILE for folder in folders)
    return tuple(tomllib.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file())


def _folders() -> Iterator[Traversable]:
    root = resources.files("mtosi_jms")
    for place in (root, root / "transport"):
        yield from (folder for folder in place.iterdir() if folder.is_dir())
