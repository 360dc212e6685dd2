"""The least instance of a generated class: what its schema requires, and no more."""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable
from typing import Any

from mtosi_jms.service import OperationInfo, RequestContext, SupplierBase
from mtosi_jms.xmlbind import ClassTable, EnumType, Field, RawXml, SimpleType, UnionType, XmlObject

TEXTS = ("a", "1", "0", "true", "1.5", "2026-01-01T00:00:00Z", "2026-01-01", "12:00:00", "P1D", "AAAA", "urn:a", "A=1")
RAW = RawXml(b"<any/>")


Got = queue.SimpleQueue[tuple[str, str, Any]]
"""What handlers got: service, operation, request."""


class Echo:
    """A supplier of all operations of a service, which answers each with its least response.

    Args:
        stub: the generated service.
        got: where what its handlers get is put; none: a queue of its own.

    Attributes:
        info: the service.
        got: what its handlers got.
        supplier: the supplier.
    """

    def __init__(self, stub: Any, got: Got | None = None) -> None:
        self.info = stub.__service__
        self.got = queue.SimpleQueue() if got is None else got
        methods = {one.python_name: self._handler(one) for one in self.info.operations}
        self.supplier: SupplierBase = type("Echo", (stub.Supplier,), methods)()

    def request(self, operation: OperationInfo) -> Any:
        """The least request of an operation."""
        return least(self.info.load(operation.request))

    def response(self, operation: OperationInfo) -> Any:
        """The least response; None if there is none."""
        return least(self.info.load(operation.response)) if operation.response else None

    def _handler(self, operation: OperationInfo) -> Callable[..., Any]:
        def handle(supplier: Any, request: Any, context: RequestContext) -> Any:
            self.got.put((self.info.name, operation.name, request))
            return self.response(operation)

        return handle


class NoInstance(Exception):
    """A class that contains itself, or one for which nothing here is an instance."""


def least(cls: type[XmlObject]) -> Any:
    """The least instance of a class."""
    return _object(cls.__xml__, ())


def _object(table: ClassTable, around: tuple[ClassTable, ...]) -> Any:
    if table in around:
        raise NoInstance(f"{table} contains itself")
    if table.abstract:
        table = _concrete(table)
    fields = {field.name: field for field in table.fields}
    counts = _counts(table, fields, (*around, table))
    values: dict[str, Any] = {}
    for name, field in fields.items():
        held = [
            _value(field, (*around, table))
            for _ in range(counts.get(name, field.min if not _modelled(table, name) else 0))
        ]
        if held:
            values[name] = held if field.many else held[0]
    return table.cls(**values)


def _modelled(table: ClassTable, name: str) -> bool:
    return table.grammar is not None and name in table.grammar.names


def _counts(table: ClassTable, fields: dict[str, Field], around: tuple[ClassTable, ...]) -> Counter[str]:
    """How often each field of the content model stands in the least instance."""
    return _of_item(table.model, fields, around) if table.model is not None else Counter()


def _of_item(item: Any, fields: dict[str, Field], around: tuple[ClassTable, ...]) -> Counter[str]:
    if isinstance(item, str):
        return Counter({item: max(fields[item].min, 0)})
    if len(item) == 3:
        return Counter({item[0]: item[1]})
    kind, minimum, _, items = item
    if not minimum:
        return Counter()
    if kind == "choice":
        found = [_of_alternative(one, fields, around) for one in items]
        possible = [one for one in found if one is not None]
        if not possible:
            raise NoInstance("no alternative")
        once = min(possible, key=lambda one: one.total())
    else:
        once = sum((_of_item(one, fields, around) for one in items), Counter())
    return Counter({name: count * minimum for name, count in once.items()})


def _of_alternative(item: Any, fields: dict[str, Field], around: tuple[ClassTable, ...]) -> Counter[str] | None:
    counts = Counter({item: 1}) if isinstance(item, str) else _of_item(item, fields, around)
    try:
        for name in counts:
            _value(fields[name], around)
    except NoInstance:
        return None
    return counts


def _value(field: Field, around: tuple[ClassTable, ...]) -> Any:
    if field.kind in ("any", "mixed"):
        return RAW
    simple = field.simple()
    if simple is not None:
        for text in (*_listed(simple), *TEXTS, simple.default):
            try:
                value, problem = simple.lenient(text)
            except ValueError:
                continue
            if problem is None:
                return value
        raise NoInstance(f"no value of {field.name}")
    if not isinstance(field.type, str):
        return RawXml(f"<{field.local} xmlns='{field.namespace}'/>".encode())
    tables = [table for table in (field.table(), *field.member_tables()) if not table.abstract] or [
        _concrete(field.table())
    ]
    problems: list[str] = []
    for table in tables:
        try:
            return _object(table, around)
        except NoInstance as error:
            problems.append(str(error))
    raise NoInstance("; ".join(problems))


def _listed(simple: SimpleType) -> list[str]:
    """The values that an enumeration lists, or the first members of a union."""
    if isinstance(simple, UnionType):
        return [text for member in simple.members for text in _listed(member)]
    return list(simple.known) if isinstance(simple, EnumType) else []


def _concrete(table: ClassTable) -> ClassTable:
    """A class that may stand for an abstract one."""
    for cls in table.cls.__subclasses__():
        if not cls.__xml__.abstract:
            return cls.__xml__
        try:
            return _concrete(cls.__xml__)
        except NoInstance:
            continue
    raise NoInstance(f"{table} is abstract")
