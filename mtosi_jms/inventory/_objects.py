"""Which classes are inventory objects, the names of object types, and the class for a name.

An object is an instance of a class that extends the common object information (`fmw/xsd/coi`). Its type has the short
name of MTOSI (ME, EQ, ...) if the class is in the namespace of that type; other types have the names of their classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import COI, clark
from mtosi_jms.xmlbind import ClassTable, XmlObject, import_package, module_of, modules_of, registered_packages

OBJECT_TYPES: Final = ("ME", "EQ", "EH", "PTP", "CTP", "FTP", "TL", "OS", "MD", "TMD", "SNC", "MLSN")
MESSAGE: Final = "MESSAGE"
"""Asks for one row for each envelope instead of each object."""
ALL: Final = "ALL"
"""Asks for objects of all types."""

SHIPPED: Final = "mtosi_jms.stubs"

_SHORT = re.compile(r"/(?:fmw|nrf)/xsd/([a-z]+)/v[\d-]+$")
_COI = re.compile(re.escape(COI.rpartition("/")[0]) + r"/v[\d-]+$")


def load_stubs(stubs: Sequence[str]) -> None:
    """Import the shipped stubs and further generated packages, which registers them. `stubs`: dotted names; they take
    precedence over the shipped stubs, the first one over all. Raises ConfigError: a package cannot be imported, or was
    not generated."""
    for name in (SHIPPED, *reversed(stubs)):
        import_package(name)
        if name not in registered_packages():
            raise ConfigError(f"{name!r} is not a package that mtosi-codegen generated")


@cache
def is_object(table: ClassTable) -> bool:
    """Whether instances of a class are inventory objects."""
    return any(
        _COI.match(parent.__xml__.module.namespace) is not None
        for parent in table.cls.__mro__[1:]
        if issubclass(parent, XmlObject) and "__xml__" in parent.__dict__
    ) and not _COI.match(table.module.namespace)


@cache
def type_class(table: ClassTable) -> ClassTable:
    """Return the named type of the class of a global element; otherwise the table itself."""
    base = table.base
    if table.element is not None and not table.own and base is not None:
        return base
    return table


@cache
def label_of(table: ClassTable) -> str:
    """Return the object type of a class: ME, EQ and so on, otherwise the name of the class."""
    for parent in table.cls.__mro__:
        held = parent.__dict__.get("__xml__")
        if isinstance(held, ClassTable) and is_object(held):
            found = _SHORT.search(held.module.namespace)
            if found and found.group(1).upper() in OBJECT_TYPES:
                return found.group(1).upper()
    return type_class(table).cls.__name__


def class_for(name: str) -> ClassTable:
    """Return the class of an object type. `name`: ME, EQ, ...; or a class of a registered package by name
    (`SubnetworkConnectionType`) or by path (`nrf.snc:SubnetworkConnectionType`). Raises ConfigError: there is no such
    class, or several modules of a package have a class of this name."""
    if name in (MESSAGE, ALL):
        raise ConfigError(f"objectType {name} has no class of its own")
    found = _short(name) if name in OBJECT_TYPES else _named(name)
    if not found:
        known = ", ".join((*OBJECT_TYPES, MESSAGE, ALL))
        raise ConfigError(f"objectType {name!r}: no such class in the stubs; use {known} or the name of a class")
    if len(found) > 1:
        paths = ", ".join(f"{table.module.name.removeprefix(table.module.root + '.')}:{name}" for table in found)
        raise ConfigError(f"objectType {name!r} is ambiguous; say which one: {paths}")
    return found[0]


def _short(name: str) -> list[ClassTable]:
    for root in registered_packages():
        for namespace in modules_of(root):
            match = _SHORT.search(namespace)
            if match and match.group(1).upper() == name:
                tables = [table for table in _tables(root, namespace) if is_object(table) and not table.abstract]
                if tables:
                    return tables[:1]
    return []


def _named(name: str) -> list[ClassTable]:
    path, _, local = name.rpartition(":")
    for root in registered_packages():
        found = [
            table
            for namespace, module in modules_of(root).items()
            if not path or path in (module, f"{root}.{module}")
            for table in _tables(root, namespace)
            if table.cls.__name__ == local
        ]
        if found:
            return found
    return []


def tables_of_namespace(namespace: str) -> list[ClassTable]:
    """Return the classes of a namespace, anonymous types included, from the first package that has the namespace."""
    for root in registered_packages():
        module = module_of(namespace, root)
        if module is not None:
            tables = (getattr(value, "__xml__", None) for value in vars(module).values() if isinstance(value, type))
            return [table for table in tables if isinstance(table, ClassTable) and table.module.namespace == namespace]
    return []


def global_elements() -> Iterator[tuple[str, ClassTable]]:
    """Yield all global elements of the registered packages: Clark name and class."""
    for root in registered_packages():
        for namespace in modules_of(root):
            for table in _tables(root, namespace):
                if table.element is not None:
                    yield clark(namespace, table.element), table


def _tables(root: str, namespace: str) -> Iterator[ClassTable]:
    """Yield the tables of the named types of a module, then those of its elements with a class of their own."""
    module = module_of(namespace, root)
    names = [*getattr(module, "__types__", {}).values(), *getattr(module, "__elements__", {}).values()]
    for name in dict.fromkeys(names):
        table = getattr(getattr(module, name), "__xml__", None)
        if isinstance(table, ClassTable):
            yield table
