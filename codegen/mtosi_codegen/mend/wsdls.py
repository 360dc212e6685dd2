"""Repairs WSDLs: operations get the messages, and messages the elements, that the generator chose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import Document
from mtosi_codegen.mend.folder import Folder
from mtosi_codegen.mend.xml import MendedXml, remove
from mtosi_codegen.model import Model, Operation, Service
from mtosi_codegen.wsdl.join import outer_documents
from mtosi_codegen.wsdl.model import Definitions, Message
from mtosi_codegen.wsdl.read import read_definitions
from mtosi_codegen.xsd.model import Place, QName
from mtosi_jms.namespaces import WSDL, WSDL_SOAP11, WSDL_SOAP12

_QNAMES: Final = ("message", "element", "type", "binding")
_SPACES: Final = (WSDL, WSDL_SOAP11, WSDL_SOAP12)


def mend_wsdls(folder: Folder, services: Sequence[Service], model: Model) -> None:
    """Repair all WSDLs of a folder, except their imports."""
    for xml in folder.wsdls.values():
        for element in xml.root.iter(*(f"{{{space}}}*" for space in _SPACES)):
            _mend_names(element, xml)
    for service in services:
        _Mender(folder, service, model).run()


def _mend_names(element: etree._Element, xml: MendedXml) -> None:
    for attribute in ("name", "targetNamespace", "part"):
        if (text := element.get(attribute)) is not None and text != text.strip():
            element.set(attribute, text.strip())
    for attribute in _QNAMES:
        if element.get(attribute) is not None:
            xml.set_qnames(element, attribute, xml.qnames(element, attribute))


class _Mender:
    """Repairs the WSDL definitions of one service."""

    def __init__(self, folder: Folder, service: Service, model: Model) -> None:
        self._folder = folder
        self._service = service
        self._model = model
        root = next(document for document in folder.sources.documents if document.name == service.wsdl)
        self._scope = list(folder.sources.scope(root))
        outer = outer_documents(folder.sources, root)
        self._definitions: Definitions = read_definitions((*self._scope, *outer), Findings())

    def run(self) -> None:
        """Repair the binding, the port type and its messages."""
        port_type, xml = self._find("portType", self._service.port_type)
        if port_type is None or xml is None:
            return
        for operation in self._service.operations:
            element = self._operation(port_type, operation)
            if element is not None:
                self._mend_operation(element, xml, operation)
        for element in list(_children(port_type, "operation")):
            if element.get("name") in self._service.failed:
                remove(element)
        binding, binding_xml = self._find("binding", self._service.binding)
        if binding is not None and binding_xml is not None:
            self._mend_binding(binding, binding_xml, port_type, xml)

    def _find(self, tag: str, name: str) -> tuple[etree._Element | None, MendedXml | None]:
        for document in self._scope:
            xml = self._folder.wsdls.get(document)
            for element in _children(xml.root, tag) if xml is not None else ():
                if element.get("name") == name:
                    return element, xml
        return None, None

    def _operation(self, port_type: etree._Element, operation: Operation) -> etree._Element | None:
        same = [one for one in _children(port_type, "operation") if one.get("name") == operation.name]
        exact = [one for one in same if one.sourceline == operation.place.line]
        return next(iter(exact or same), None)

    def _mend_operation(self, element: etree._Element, xml: MendedXml, operation: Operation) -> None:
        roles = (
            ("input", operation.request_message, (operation.request,)),
            ("output", operation.response_message, (operation.response,) if operation.response else ()),
            ("fault", operation.fault_message, operation.fault_elements),
        )
        for role, chosen, elements in roles:
            for child in list(_children(element, role)):
                message = self._message(child, xml, chosen)
                if message is None or not self._mend_parts(message, elements):
                    if role == "fault":
                        remove(child)
                elif xml.qnames(child, "message") != [message.name]:
                    xml.set_qnames(child, "message", [message.name])

    def _message(self, child: etree._Element, xml: MendedXml, chosen: str) -> Message | None:
        """The message of an input, output or fault: the named one, or if undefined, the generator's choice."""
        for name in xml.qnames(child, "message"):
            if name in self._definitions.messages:
                return self._definitions.messages[name]
        messages = self._definitions.messages.values()
        return next((message for message in messages if message.name.local == chosen), None)

    def _mend_parts(self, message: Message, elements: Sequence[QName]) -> bool:
        """Replace undefined elements of parts by the generator's choice; False if that is not possible."""
        unknown = [part for part in message.parts if part.element is not None and not self._defines(part.element)]
        if not unknown:
            return True
        if len(elements) != 1:
            return False
        document, definition = self._definition(message)
        for part in unknown:
            for child in _children(definition, "part"):
                if child.get("name") == part.name:
                    self._folder.wsdls[document].set_qnames(child, "element", elements)
        return True

    def _defines(self, name: QName) -> bool:
        return name in self._model.schema.elements

    def _definition(self, message: Message) -> tuple[Document, etree._Element]:
        found = self._named(message.place, "message", message.name.local)
        return next(found)

    def _named(self, place: Place, tag: str, name: str) -> Iterator[tuple[Document, etree._Element]]:
        for document, xml in self._folder.wsdls.items():
            if document.name == place.file:
                yield from ((document, one) for one in _children(xml.root, tag) if one.get("name") == name)

    def _mend_binding(
        self, binding: etree._Element, xml: MendedXml, port_type: etree._Element, port_xml: MendedXml
    ) -> None:
        home = QName((port_xml.root.get("targetNamespace") or "").strip(), self._service.port_type)
        if xml.qnames(binding, "type") != [home]:
            xml.set_qnames(binding, "type", [home])
        known = {operation.get("name"): operation for operation in _children(port_type, "operation")}
        drifted = {one.bound_name: one.name for one in self._service.operations if one.bound_name}
        for element in list(_children(binding, "operation")):
            name = drifted.get(element.get("name"), element.get("name"))
            if name not in known:
                remove(element)
                continue
            element.set("name", name)
            self._mend_faults(element, known[name])
            for role in ("input", "output"):
                self._mend_headers(element, xml, known[name], port_xml, role)

    def _mend_headers(
        self, bound: etree._Element, xml: MendedXml, operation: etree._Element, port_xml: MendedXml, role: str
    ) -> None:
        """Point headers with an undefined message to the operation's own message, if it has the part."""
        own = [message for child in _children(operation, role) for message in self._known(child, port_xml)]
        for child in _children(bound, role):
            for header in child.iterchildren(f"{{{WSDL_SOAP11}}}header", f"{{{WSDL_SOAP12}}}header"):
                parts = {part.name for message in own for part in message.parts}
                if not self._known(header, xml) and header.get("part") in parts:
                    xml.set_qnames(header, "message", [own[0].name])

    def _known(self, element: etree._Element, xml: MendedXml) -> list[Message]:
        """The defined messages that the `message` attribute of an element names."""
        messages = self._definitions.messages
        return [messages[name] for name in xml.qnames(element, "message") if name in messages]

    def _mend_faults(self, bound: etree._Element, operation: etree._Element) -> None:
        """Make the faults of a binding's operation match those of the port type's operation."""
        names = [fault.get("name") for fault in _children(operation, "fault")]
        wrong = [fault for fault in _children(bound, "fault") if fault.get("name") not in names]
        left = [name for name in names if name not in {fault.get("name") for fault in _children(bound, "fault")}]
        for fault in wrong:
            if len(wrong) == len(left) == 1 and left[0]:
                fault.set("name", left[0])
                for soap in fault.iterchildren(f"{{{WSDL_SOAP11}}}fault", f"{{{WSDL_SOAP12}}}fault"):
                    soap.set("name", left[0])
            else:
                remove(fault)


def _children(element: etree._Element, tag: str) -> Iterator[etree._Element]:
    yield from element.iterchildren(f"{{{WSDL}}}{tag}")
