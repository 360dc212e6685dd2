"""What XSD and WSDL files say on the wire, as plain values that compare: no annotations, prefixes or file names.

Content models are reduced to what a document shows: an anonymous simple type without facets is its base, a group that
holds one group alone is that group, and a restriction of a choice is the choice that it leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from lxml import etree

XSD: Final = "http://www.w3.org/2001/XMLSchema"
WSDL: Final = "http://schemas.xmlsoap.org/wsdl/"
SOAP: Final = "http://schemas.xmlsoap.org/wsdl/soap/"
GROUPS: Final = ("sequence", "choice", "all")


class Child(NamedTuple):
    """An element in a content model; `kind` is a type's Clark name or the description of an anonymous type."""

    name: str
    kind: object
    least: int
    most: int | None
    nillable: bool
    default: str | None


class Wildcard(NamedTuple):
    namespace: str
    process: str
    least: int
    most: int | None


class Group(NamedTuple):
    model: str
    least: int
    most: int | None
    members: tuple[object, ...]


class Complex(NamedTuple):
    base: str | None
    abstract: bool
    final: str | None
    mixed: bool
    attributes: frozenset[tuple[str, object, str, str | None]]
    content: Group | None


class Simple(NamedTuple):
    base: object
    values: frozenset[str]
    facets: frozenset[tuple[str, str]]


class Root(NamedTuple):
    """A global element."""

    kind: object
    nillable: bool
    abstract: bool
    substitutes: str | None


@dataclass
class Structure:
    """The global elements and types of many files, by Clark name."""

    elements: dict[str, Root] = field(default_factory=dict)
    types: dict[str, Complex | Simple] = field(default_factory=dict)


def read_structure(files: Iterable[Path]) -> Structure:
    found = Structure()
    for file in files:
        root = etree.parse(file, etree.XMLParser(remove_comments=True)).getroot()
        space = root.get("targetNamespace", "")
        for child in root:
            name = f"{{{space}}}{child.get('name')}"
            match local(child):
                case "element":
                    found.elements[name] = _root(child, space)
                case "complexType":
                    found.types[name] = _complex(child, space)
                case "simpleType":
                    found.types[name] = _simple(child, space)
    return found


def local(node: etree._Element) -> str:
    return str(etree.QName(node).localname)


def clark(node: etree._Element, text: str | None) -> str | None:
    """A QName in an attribute of that node as a Clark name."""
    if text is None:
        return None
    prefix, _, name = text.strip().rpartition(":")
    return f"{{{node.nsmap.get(prefix or None)}}}{name}"


def _inner(node: etree._Element, *names: str) -> etree._Element | None:
    return next((child for child in node if local(child) in names), None)


def _occurs(node: etree._Element) -> tuple[int, int | None]:
    most = node.get("maxOccurs", "1")
    return int(node.get("minOccurs", "1")), None if most == "unbounded" else int(most)


def _kind(node: etree._Element, space: str) -> object:
    """The type of an element or attribute declaration."""
    named = clark(node, node.get("type"))
    if named is not None:
        return named
    if (inner := _inner(node, "complexType")) is not None:
        return _complex(inner, space)
    if (inner := _inner(node, "simpleType")) is not None:
        simple = _simple(inner, space)
        return simple if simple.values or simple.facets else simple.base
    return f"{{{XSD}}}anyType"


def _root(node: etree._Element, space: str) -> Root:
    return Root(
        _kind(node, space),
        node.get("nillable") == "true",
        node.get("abstract") == "true",
        clark(node, node.get("substitutionGroup")),
    )


def _simple(node: etree._Element, space: str) -> Simple:
    restriction = _inner(node, "restriction")
    if restriction is None:  # a union or a list: the profile has none, so that nothing of it equals this
        return Simple("union or list", frozenset(), frozenset())
    facets = [(local(child), child.get("value", "")) for child in restriction if local(child) != "annotation"]
    values = frozenset(value for name, value in facets if name == "enumeration")
    rest = frozenset((name, value) for name, value in facets if name != "enumeration")
    return Simple(clark(restriction, restriction.get("base")), values, rest)


def _complex(node: etree._Element, space: str) -> Complex:
    abstract, mixed = node.get("abstract") == "true", node.get("mixed") == "true"
    holder, base = node, None
    wrapper = _inner(node, "complexContent", "simpleContent")
    if wrapper is not None:
        derived = _inner(wrapper, "extension", "restriction")
        if derived is None:
            raise AssertionError(f"{node.get('name')}: no derivation")
        holder = derived
        base = clark(derived, derived.get("base")) if local(derived) == "extension" else None
    attributes = frozenset(
        (child.get("name", ""), _kind(child, space), child.get("use", "optional"), child.get("default"))
        for child in holder
        if local(child) == "attribute"
    )
    group = _inner(holder, *GROUPS)
    content = None if group is None else _group(group, space)
    return Complex(
        base, abstract, node.get("final"), mixed, attributes, content if content and content.members else None
    )


def _group(node: etree._Element, space: str) -> Group:
    members = tuple(_particle(child, space) for child in node if local(child) != "annotation")
    least, most = _occurs(node)
    if len(members) == 1 and isinstance(members[0], Group) and (least, most) == (1, 1):
        return members[0]
    return Group(local(node), least, most, members)


def _particle(node: etree._Element, space: str) -> object:
    least, most = _occurs(node)
    if local(node) in GROUPS:
        return _group(node, space)
    if local(node) == "any":
        return Wildcard(node.get("namespace", "##any"), node.get("processContents", "strict"), least, most)
    reference = clark(node, node.get("ref"))
    if reference is not None:
        return Child(reference, "ref", least, most, False, None)
    name = f"{{{space}}}{node.get('name', '').strip()}"
    return Child(name, _kind(node, space), least, most, node.get("nillable") == "true", node.get("default"))


def without(kind: Complex, names: set[str]) -> Complex:
    """The type without the children of those local names in its outermost group."""
    if kind.content is None:
        return kind
    kept = tuple(m for m in kind.content.members if not (isinstance(m, Child) and m.name.rpartition("}")[2] in names))
    return kind._replace(content=kind.content._replace(members=kept))


class Operation(NamedTuple):
    """One operation of a JMS binding. Messages are tuples of (part, element); `bound` is how SOAP carries them."""

    mep: str
    request: tuple[tuple[str, str | None], ...]
    response: tuple[tuple[str, str | None], ...]
    faults: frozenset[tuple[str, tuple[tuple[str, str | None], ...]]]
    bound: frozenset[tuple[str, str, str]]


class Binding(NamedTuple):
    interface: str
    transport: str
    address: str
    operations: dict[str, Operation]


def read_bindings(files: Iterable[Path]) -> dict[str, Binding]:
    """The JMS bindings of WSDL files that belong together, by the Clark name of the service."""
    roots = [etree.parse(file, etree.XMLParser(remove_comments=True)).getroot() for file in files]
    messages, interfaces, bindings = (_named(roots, name) for name in ("message", "portType", "binding"))
    found: dict[str, Binding] = {}
    for name, service in _named(roots, "service").items():
        for port in service.findall(f"{{{WSDL}}}port"):
            binding = bindings[clark(port, port.get("binding")) or ""]
            soap, address = binding.find(f"{{{SOAP}}}binding"), port.find(f"{{{SOAP}}}address")
            if soap is None or address is None or not soap.get("transport", "").endswith("/jms"):
                continue
            interface = clark(binding, binding.get("type")) or ""
            operations = dict(_operations(interfaces[interface], binding, messages))
            found[name] = Binding(interface, soap.get("transport", ""), address.get("location", ""), operations)
    return found


def _named(roots: list[etree._Element], kind: str) -> dict[str, etree._Element]:
    return {
        f"{{{root.get('targetNamespace')}}}{node.get('name')}": node
        for root in roots
        for node in root.findall(f"{{{WSDL}}}{kind}")
    }


def _operations(
    interface: etree._Element, binding: etree._Element, messages: dict[str, etree._Element]
) -> Iterator[tuple[str, Operation]]:
    def parts(node: etree._Element | None) -> tuple[tuple[str, str | None], ...]:
        if node is None:
            return ()
        message = messages[clark(node, node.get("message")) or ""]
        return tuple(
            (part.get("name", ""), clark(part, part.get("element"))) for part in message.findall(f"{{{WSDL}}}part")
        )

    bound = {node.get("name"): node for node in binding.findall(f"{{{WSDL}}}operation")}
    for node in interface.findall(f"{{{WSDL}}}operation"):
        name = node.get("name", "")
        output = node.find(f"{{{WSDL}}}output")
        faults = frozenset((fault.get("name", ""), parts(fault)) for fault in node.findall(f"{{{WSDL}}}fault"))
        mep = "one-way" if output is None else "request-response"
        yield name, Operation(mep, parts(node.find(f"{{{WSDL}}}input")), parts(output), faults, _bound(bound[name]))


def _bound(operation: etree._Element) -> frozenset[tuple[str, str, str]]:
    """(direction, SOAP element, what it carries) for each SOAP extension inside a bound operation's messages."""
    return frozenset(
        (local(side), local(soap), soap.get("part") or soap.get("parts") or soap.get("name", ""))
        for side in operation
        if etree.QName(side).namespace == WSDL
        for soap in side
        if etree.QName(soap).namespace == SOAP
    )
