"""WSDL definitions as read from the files."""

from __future__ import annotations

from dataclasses import dataclass, field

from mtosi_codegen.xsd.model import Place, QName


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """A message part: an element, or a type in the rpc style."""

    name: str
    element: QName | None
    type: QName | None
    place: Place


@dataclass(slots=True, eq=False, repr=False)
class Message:
    """A message definition."""

    name: QName
    place: Place
    parts: tuple[Part, ...]


@dataclass(slots=True, eq=False, repr=False)
class PortOperation:
    """An operation of a port type; its faults are by name.

    Attributes:
        labels: the names of its input and output, given or by WSDL's defaults; they tell overloads apart.
        answers_first: whether its output comes before its input or has no input: the service sends the first message.
    """

    name: str
    place: Place
    input: QName | None
    output: QName | None
    faults: tuple[tuple[str, QName], ...]
    doc: str = ""
    answers_first: bool = False
    labels: tuple[str, str] = ("", "")


@dataclass(slots=True, eq=False, repr=False)
class PortType:
    """A port type."""

    name: QName
    place: Place
    operations: tuple[PortOperation, ...]
    doc: str = ""


@dataclass(slots=True, eq=False, repr=False)
class BoundHeader:
    """A message part that a binding puts into the SOAP header; `fault` marks the part of a header fault."""

    message: QName
    part: str
    namespace: str
    place: Place
    fault: bool = False


@dataclass(slots=True, eq=False, repr=False)
class BoundMessage:
    """The binding of an input or output.

    Attributes:
        body_parts: the parts in the body; None if the binding does not name them.
        headers: the parts in the SOAP header.
        attachments: the parts that travel as MIME attachments.
        namespace: namespace of the wrapper in the rpc style.
        encoded: whether the binding requires the SOAP encoding.
    """

    body_parts: tuple[str, ...] | None = None
    headers: tuple[BoundHeader, ...] = ()
    attachments: tuple[str, ...] = ()
    namespace: str = ""
    encoded: bool = False


@dataclass(slots=True, eq=False, repr=False)
class BoundOperation:
    """An operation of a binding.

    Attributes:
        fault_spaces: the namespaces of its faults by name.
        labels: the names of its input and output as given; empty where there is none.
    """

    name: str
    place: Place
    action: str
    style: str
    input: BoundMessage
    output: BoundMessage
    fault_spaces: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, str] = ("", "")


@dataclass(slots=True)
class Setting:
    """An element of W3C's SOAP over JMS, such as `soapjms:priority`; `name` is local.

    Attributes:
        fault: why it does not count; empty if it does.
    """

    name: str
    value: str
    place: Place
    fault: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Binding:
    """A SOAP binding. An empty style marks a stand-in for a port type that no SOAP binding binds.

    Attributes:
        settings: elements of W3C's SOAP over JMS in it.
    """

    name: QName
    type: QName
    transport: str
    style: str
    place: Place
    operations: tuple[BoundOperation, ...]
    version: str = "1.1"
    settings: tuple[Setting, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class OtherBinding:
    """A binding other than SOAP."""

    name: QName
    type: QName
    kind: str
    place: Place


@dataclass(slots=True, eq=False, repr=False)
class Port:
    """A port: a binding with an address.

    Attributes:
        jms: whether that is a JMS address.
        settings: elements of W3C's SOAP over JMS in its service and in it; the last of a name counts.
    """

    binding: QName
    address: str
    service: str
    jms: bool = False
    settings: tuple[Setting, ...] = ()


@dataclass(slots=True, repr=False)
class Definitions:
    """All definitions that a WSDL reaches, by name; the first of a name is used. `aliases` are by file."""

    messages: dict[QName, Message] = field(default_factory=dict)
    port_types: dict[QName, PortType] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)
    others: list[OtherBinding] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    aliases: dict[str, dict[str, str]] = field(default_factory=dict)
