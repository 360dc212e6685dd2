"""WSDL definitions as they are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from mtosi_codegen.xsd.model import Place, QName


@dataclass(slots=True, eq=False)
class Part:
    """A message part: an element, or a type in the rpc style."""

    name: str
    element: QName | None
    type: QName | None
    place: Place


@dataclass(slots=True, eq=False)
class Message:
    """A message definition."""

    name: QName
    place: Place
    parts: tuple[Part, ...]


@dataclass(slots=True, eq=False)
class PortOperation:
    """An operation of a port type; faults by name."""

    name: str
    place: Place
    input: QName | None
    output: QName | None
    faults: tuple[tuple[str, QName], ...]
    doc: str = ""


@dataclass(slots=True, eq=False)
class PortType:
    """A port type."""

    name: QName
    place: Place
    operations: tuple[PortOperation, ...]
    doc: str = ""


@dataclass(slots=True, eq=False)
class BoundMessage:
    """What a binding says of an input or output: which part is the body, which are headers."""

    body_parts: tuple[str, ...] | None = None
    headers: tuple[tuple[QName, str], ...] = ()


@dataclass(slots=True, eq=False)
class BoundOperation:
    """An operation of a binding."""

    name: str
    place: Place
    action: str
    style: str
    input: BoundMessage
    output: BoundMessage


@dataclass(slots=True, eq=False)
class Binding:
    """A SOAP binding."""

    name: QName
    type: QName
    transport: str
    style: str
    place: Place
    operations: tuple[BoundOperation, ...]


@dataclass(slots=True, eq=False)
class Port:
    """A port: a binding with an address."""

    binding: QName
    address: str
    service: str


@dataclass(slots=True)
class Definitions:
    """All that a WSDL reaches, by name; first one wins. `aliases` are those of each file."""

    messages: dict[QName, Message] = field(default_factory=dict)
    port_types: dict[QName, PortType] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    aliases: dict[str, dict[str, str]] = field(default_factory=dict)
