"""Reads WSDL documents into definitions: messages, port types, bindings and ports. References stay unresolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import Document, is_jms_port
from mtosi_codegen.qnames import QNameReader
from mtosi_codegen.wsdl.model import (
    Binding,
    BoundHeader,
    BoundMessage,
    BoundOperation,
    Definitions,
    Message,
    OtherBinding,
    Part,
    Port,
    PortOperation,
    PortType,
    Setting,
)
from mtosi_codegen.xsd.model import Place, QName
from mtosi_codegen.xsd.read import plain
from mtosi_jms.namespaces import TRANSPORT_JMS_W3C, WSDL, WSDL_SOAP11, WSDL_SOAP12

_SOAP: Final = (WSDL_SOAP11, WSDL_SOAP12)
_MIME: Final = "http://schemas.xmlsoap.org/wsdl/mime/"
_HTTP: Final = "http://schemas.xmlsoap.org/wsdl/http/"


def read_definitions(documents: Iterable[Document], findings: Findings) -> Definitions:
    """Return the definitions of several documents; of two definitions with one name the first is used.

    Args:
        documents: the WSDL and the documents that it reaches, the WSDL first.
    """
    found = Definitions()
    for document in documents:
        if document.kind == "wsdl":
            WsdlReader(document, findings).read(found)
    return found


class WsdlReader:
    """Reads one WSDL document; wrong spellings are repaired and reported."""

    def __init__(self, document: Document, findings: Findings) -> None:
        self._document = document
        self._findings = findings
        self._namespace = document.namespace
        aliases = {wrong: right for wrong, right in document.aliases.items() if wrong != document.namespace}
        self._names = QNameReader(document.name, findings, aliases=aliases)

    def read(self, found: Definitions) -> None:
        """Add the document's definitions to those found before."""
        found.aliases[self._document.name] = self._document.aliases
        for element in self._children(self._document.root, "message"):
            message = Message(self._own_name(element), self._place(element), tuple(self._parts(element)))
            known = found.messages.setdefault(message.name, message)
            self._check_again("message", known, message, [_parts_of(one) for one in (known, message)])
        for element in self._children(self._document.root, "portType"):
            operations = tuple(self._port_operation(child) for child in self._children(element, "operation"))
            port_type = PortType(self._own_name(element), self._place(element), operations, self._doc(element))
            first = found.port_types.setdefault(port_type.name, port_type)
            self._check_again("port type", first, port_type, [_operations_of(one) for one in (first, port_type)])
        for element in self._children(self._document.root, "binding"):
            soap = self._soap(element, "binding")
            if soap is not None:
                found.bindings.append(self._binding(element, soap))
            else:
                type_ = self._names.qname(element, "type")
                other = OtherBinding(self._own_name(element), type_, _kind_of(element), self._place(element))
                found.others.append(other)
        for service, port in self._port_elements():
            address = self._soap(port, "address")
            location = (address.get("location") or "").strip() if address is not None else ""
            binding, name = self._names.qname(port, "binding"), self._names.name(service)
            settings = (*self._settings(service), *self._settings(port))
            found.ports.append(Port(binding, location, name, is_jms_port(port), settings))

    def _check_again(
        self, what: str, known: Message | PortType, again: Message | PortType, contents: Sequence[object]
    ) -> None:
        """Report a second definition of a name that differs from the first."""
        if known is not again and contents[0] != contents[1]:
            place = f"{known.place.file}:{known.place.line}"
            message = f"{what} {known.name} is defined again, and differently, after {place}"
            self._findings.add("definition-conflict", *again.place, message, f"the definition at {place} counts")

    def ports_of(self, binding: QName) -> Iterator[tuple[etree._Element, etree._Element | None]]:
        """The ports of a binding in this document, each with its SOAP address or None."""
        for _, port in self._port_elements():
            if self._names.qname(port, "binding") == binding:
                yield port, self._soap(port, "address")

    def _port_elements(self) -> Iterator[tuple[etree._Element, etree._Element]]:
        for service in self._children(self._document.root, "service"):
            yield from ((service, port) for port in self._children(service, "port"))

    def _children(self, element: etree._Element, name: str) -> Iterator[etree._Element]:
        yield from element.iterchildren(f"{{{WSDL}}}{name}")

    def _soap(self, element: etree._Element, name: str) -> etree._Element | None:
        return next(iter(self._all_soap(element, name)), None)

    def _all_soap(self, element: etree._Element, name: str) -> list[etree._Element]:
        return list(element.iterchildren(*(f"{{{soap}}}{name}" for soap in _SOAP)))

    def _place(self, element: etree._Element) -> Place:
        return Place(self._document.name, element.sourceline or 0)

    def _own_name(self, element: etree._Element) -> QName:
        return QName(self._namespace, self._names.name(element))

    def _doc(self, element: etree._Element) -> str:
        return "\n\n".join(text for child in self._children(element, "documentation") for text in plain(child))

    def _parts(self, message: etree._Element) -> Iterator[Part]:
        for part in self._children(message, "part"):
            element = self._names.qname(part, "element") if part.get("element") else None
            type_ = self._names.qname(part, "type") if part.get("type") else None
            yield Part(self._names.name(part), element, type_, self._place(part))

    def _message_of(self, operation: etree._Element, direction: str) -> QName | None:
        child = next(self._children(operation, direction), None)
        return self._names.qname(child, "message") if child is not None else None

    def _labels(self, operation: etree._Element) -> tuple[str, str]:
        """The names of an operation's input and output; empty where none is given."""
        inputs, outputs = (next(self._children(operation, direction), None) for direction in ("input", "output"))
        return (
            self._names.name(inputs) if inputs is not None else "",
            self._names.name(outputs) if outputs is not None else "",
        )

    def _port_operation(self, element: etree._Element) -> PortOperation:
        faults = tuple(
            (self._names.name(fault), self._names.qname(fault, "message")) for fault in self._children(element, "fault")
        )
        first = next(element.iterchildren(f"{{{WSDL}}}input", f"{{{WSDL}}}output"), None)
        return PortOperation(
            self._names.name(element),
            self._place(element),
            self._message_of(element, "input"),
            self._message_of(element, "output"),
            faults,
            self._doc(element),
            answers_first=first is not None and first.tag == f"{{{WSDL}}}output",
            labels=self._labels(element),
        )

    def _binding(self, element: etree._Element, soap: etree._Element) -> Binding:
        return Binding(
            self._own_name(element),
            self._names.qname(element, "type"),
            (soap.get("transport") or "").strip(),
            (soap.get("style") or "document").strip(),
            self._place(element),
            tuple(self._bound_operation(child) for child in self._children(element, "operation")),
            "1.2" if soap.tag == f"{{{WSDL_SOAP12}}}binding" else "1.1",
            tuple(self._settings(element)),
        )

    def _settings(self, element: etree._Element) -> Iterator[Setting]:
        """The elements of W3C's SOAP over JMS in an element, and those that stand too deep in it."""
        first: dict[str, str] = {}
        for child in element.iterdescendants(f"{{{TRANSPORT_JMS_W3C}}}*"):
            parent, name, value = child.getparent(), etree.QName(child).localname, "".join(child.itertext()).strip()
            fault = ""
            if parent is not None and parent is not element:
                if etree.QName(parent).localname == "port":
                    continue
                fault = f"it does not belong into {etree.QName(parent).localname}"
            elif first.setdefault(name, value) != value:
                fault = "another value stands before it"
            yield Setting(name, value, self._place(child), fault)

    def _bound_operation(self, element: etree._Element) -> BoundOperation:
        soap = self._soap(element, "operation")
        return BoundOperation(
            self._names.name(element),
            self._place(element),
            (soap.get("soapAction") or "") if soap is not None else "",
            (soap.get("style") or "").strip() if soap is not None else "",
            self._bound_message(element, "input"),
            self._bound_message(element, "output"),
            dict(self._fault_spaces(element)),
            self._labels(element),
        )

    def _fault_spaces(self, operation: etree._Element) -> Iterator[tuple[str, str]]:
        for fault in self._children(operation, "fault"):
            soap = self._soap(fault, "fault")
            if soap is not None:
                yield self._names.name(fault), (soap.get("namespace") or "").strip()

    def _bound_message(self, operation: etree._Element, direction: str) -> BoundMessage:
        child = next(self._children(operation, direction), None)
        if child is None:
            return BoundMessage()
        parts = list(child.iterfind(f"{{{_MIME}}}multipartRelated/{{{_MIME}}}part"))
        holders = [child, *parts]
        body = next((body for holder in holders if (body := self._soap(holder, "body")) is not None), None)
        contents = (content for part in parts for content in part.iterchildren(f"{{{_MIME}}}content"))
        attachments = tuple((content.get("part") or "").strip() for content in contents)
        headers = tuple(header for holder in holders for header in self._headers(holder))
        if body is None:
            return BoundMessage(None, headers, attachments)
        named = body.get("parts")
        return BoundMessage(
            tuple(named.split()) if named is not None else None,
            headers,
            attachments,
            (body.get("namespace") or "").strip(),
            encoded=(body.get("use") or "").strip() == "encoded",
        )

    def _headers(self, element: etree._Element) -> Iterator[BoundHeader]:
        for header in self._all_soap(element, "header"):
            yield self._header(header)
            yield from (self._header(fault, fault=True) for fault in self._all_soap(header, "headerfault"))

    def _header(self, element: etree._Element, *, fault: bool = False) -> BoundHeader:
        message, part = self._names.qname(element, "message"), (element.get("part") or "").strip()
        return BoundHeader(message, part, (element.get("namespace") or "").strip(), self._place(element), fault)


def _kind_of(binding: etree._Element) -> str:
    """What a binding other than SOAP is, in words."""
    marks = [child for child in binding.iterchildren("*") if not str(child.tag).startswith(f"{{{WSDL}}}")]
    if not marks:
        return "says nothing of how messages travel"
    namespace = str(etree.QName(marks[0]).namespace)
    if namespace == _HTTP:
        return f"is for HTTP {(marks[0].get('verb') or '').strip()}".rstrip()
    return f"is of {namespace}, not of SOAP"


def _parts_of(message: Message) -> list[object]:
    return [(part.name, part.element, part.type) for part in message.parts]


def _operations_of(port_type: PortType) -> list[object]:
    return [(one.name, one.input, one.output, one.faults, one.answers_first) for one in port_type.operations]
