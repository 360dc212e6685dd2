"""How zeep speaks: binding classes for SOAP over JMS, and for the same WSDLs over HTTP.

zeep refuses bindings whose transport is not HTTP. It asks its transport object for `binding_classes`, though, and takes
these in place of its own: so nothing of zeep's is patched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import requests
from lxml import etree
from zeep.wsdl.bindings.soap import Soap11Binding, Soap12Binding, SoapBinding, SoapOperation

from mtosi_jms.errors import ConfigError, ReplyTimeoutError, TransportError
from mtosi_jms.exchange.messages import moment
from mtosi_jms.integrations._zeep.calls import JmsCall
from mtosi_jms.integrations._zeep.faults import as_zeep
from mtosi_jms.integrations._zeep.headers import blocks_of, declared_header, merged_header
from mtosi_jms.jms.ids import random_id
from mtosi_jms.masking import without_login
from mtosi_jms.soap import Header, parse
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType

_HTTP: Final = "http://schemas.xmlsoap.org/soap/http"


class _Binding(SoapBinding):
    """A SOAP binding of any transport; `transport` is what the WSDL says. The client decides how it is spoken."""

    @classmethod
    def parse(cls, definitions: Any, xmlelement: etree._Element) -> Any:
        soap = xmlelement.find("soap:binding", namespaces=cls.nsmap)
        transport = soap.get("transport", "")
        soap.set("transport", _HTTP)
        try:
            made = super().parse(definitions, xmlelement)
        finally:
            soap.set("transport", transport)
        made.transport = transport
        return made

    def resolve(self, definitions: Any) -> None:
        """Resolve the messages. A header part with a type gets the namespace of `soap:header`, which zeep ignores."""
        messages = [one for found in self.all().values() for one in (found.input, found.output) if one is not None]
        headers = [(message, message._resolve_info["header"]) for message in messages]
        super().resolve(definitions)
        for message, declared in headers:
            blocks = message.header.type._element if message.header is not None else ()
            for block, header in zip(blocks, declared, strict=False):
                part = definitions.get("messages", header["message"].text).parts[header["part"]]
                if part.element is None and header["namespace"]:
                    block.qname = etree.QName(header["namespace"].strip(), header["part"])

    def process_service_port(self, xmlelement: etree._Element, force_https: bool = False) -> dict[str, str]:
        return super().process_service_port(xmlelement, force_https) or {"address": ""}

    def _create(self, operation: str, args: Any, kwargs: Any, client: Any = None, options: Any = None) -> Any:
        found: SoapOperation = self.get(operation)
        if client is not None and declared_header(found) is not None:
            header, others = blocks_of(found, kwargs.get("_soapheaders"))
            kwargs = {
                **kwargs,
                "_soapheaders": [merged_header(found, _header(found, client, options), header), *others],
            }
        return super()._create(operation, args, kwargs, client=client, options=options)

    def send(self, client: Any, options: Mapping[str, Any], operation: str, args: Any, kwargs: Any) -> Any:
        if client.requestor is not None:
            return JmsCall(client, self, options, operation, args, kwargs).response()
        if "_options" in kwargs:
            raise ConfigError(f"{operation}: _options are for JMS; over HTTP give transport=zeep.Transport(...)")
        try:
            return super().send(client, options, operation, args, kwargs)
        except requests.Timeout as error:
            raise ReplyTimeoutError(without_login(str(error)), asked=f"{operation} over HTTP") from None
        except requests.RequestException as error:
            raise TransportError(f"{operation} over HTTP: {without_login(str(error))}") from None

    def process_error(self, doc: etree._Element, operation: Any) -> Any:
        fault = parse(etree.tostring(doc)).fault if doc.find("{*}Body") is not None else None
        if fault is None:
            return super().process_error(doc, operation)
        raise as_zeep(fault)


class AnySoap11(_Binding, Soap11Binding):
    """SOAP 1.1 over JMS or HTTP."""


class AnySoap12(_Binding, Soap12Binding):
    """SOAP 1.2 over JMS or HTTP."""


def names_jms(binding: SoapBinding) -> bool:
    """Whether a binding's transport names JMS: MTOSI's own, W3C's SOAP/JMS, or another."""
    return "jms" in str(binding.transport).casefold()


def _header(operation: SoapOperation, client: Any, options: Mapping[str, Any] | None) -> Header:
    """The MTOSI header of a request over HTTP, and of a message that is made and not sent."""
    message = operation.abstract.input_message
    requestor = client.requestor
    address = str((options or {}).get("address") or client.destination)
    return Header(
        activity_name=operation.name,
        msg_name=message.name.localname if message is not None else operation.name,
        msg_type=MessageTypeType.REQUEST,
        sender_uri=(client.sender_uri if requestor is None else requestor.sender_uri) or None,
        destination_uri=address.partition("?")[0] if requestor is None else address,
        correlation_id=random_id(),
        communication_pattern=CommunicationPatternType.SimpleResponse,
        communication_style=CommunicationStyleType.RPC if requestor is None else CommunicationStyleType.MSG,
        timestamp=moment(),
    )
