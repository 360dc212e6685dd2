"""One call of zeep's over JMS: zeep makes and reads the body, the requestor does all else.

The requestor makes the header and asks for the envelope (`on_request`). It gets what zeep made of the arguments, with
that header in it, when zeep's plugins and security have had their say: they see what is sent, and what they change is
sent. Of each reply (`on_reply`) zeep gets the envelope as it came.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any, Protocol

import requests
from lxml import etree
from zeep import Plugin, Settings, plugins, wsa
from zeep.exceptions import Error as ZeepError
from zeep.loader import parse_xml
from zeep.wsdl.bindings.soap import SoapBinding, SoapOperation
from zeep.wsdl.utils import etree_to_string

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, IncompleteBatchError, MtosiFault
from mtosi_jms.exchange import Requestor
from mtosi_jms.integrations._zeep.faults import as_zeep
from mtosi_jms.integrations._zeep.headers import blocks_of, merged_header
from mtosi_jms.service import Address, Call, CallOptions, OperationInfo, ServiceInfo, check_count
from mtosi_jms.service import Batches as Replies
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.xmlbind import RawXml, XmlObject, to_element


class JmsClient(Protocol):
    """What a call needs of a client."""

    requestor: Requestor
    call_options: CallOptions
    settings: Settings
    plugins: list[Plugin]
    wsse: Any
    transport: Any


class JmsCall:
    """One call. `options`: of the binding: `address`, and `destination` where that is not text. `args`, `kwargs`: as
    zeep's callers give them, with `_soapheaders`, and `_options` for what this call sets. Raises ConfigError: something
    else than CallOptions in `_options`, a header that the operation does not have, or an operation without a request;
    zeep.exceptions.ValidationError, TypeError: arguments that do not fit the operation."""

    def __init__(
        self,
        client: JmsClient,
        binding: SoapBinding,
        options: Mapping[str, Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._client = client
        self._operation: SoapOperation = binding.get(name)
        if self._operation.input is None:
            raise ConfigError(f"{name}: there is no request; it is the supplier who begins")
        self._binding_options = {"address": options["address"]}
        given = dict(kwargs)
        set_options = given.pop("_options", None)
        self._header, others = blocks_of(self._operation, given.pop("_soapheaders", None))
        made = self._operation.create(*args, **given, **({"_soapheaders": others} if others else {}))
        binding._set_http_headers(made, self._operation)
        self._message: etree._Element = made.content
        self._http_headers: dict[str, str] = made.headers
        self._reply: etree._Element | None = None
        self._wire = b""
        destination: Address = options.get("destination", options["address"])
        info = _operation_info(self._operation)
        qname: etree.QName = binding.name
        service = ServiceInfo(
            name=qname.localname, namespace=qname.namespace or "", root="", transport=str(binding.transport)
        )
        self.call = Call(service, info, destination, self._seed(), self._options(set_options))

    def response(self) -> Any:
        """Make the call, and give what zeep makes of the answer; None of a one-way operation. Raises SoapFault: the
        supplier answered with a fault; ReplyTimeoutError: no answer in time; MtosiError: see `Requestor.call`."""
        raw = bool(self._client.settings.raw_response)
        try:
            self._client.requestor.call(self.call)
        except MtosiFault as fault:
            if not raw or self._reply is None:
                raise as_zeep(fault) from fault
            return self._raw(500)
        return self.read() if self._reply is not None else None

    def batches(self, batch_size: int) -> Batches:
        """Send the request, and give what zeep makes of each response. Raises MtosiError: see
        `Requestor.call_batches`."""
        check_count("batch_size", batch_size)
        return Batches(self, self._client.requestor.call_batches(self.call, batch_size))

    def read(self) -> Any:
        """What zeep makes of the reply that came last."""
        return self._raw(200) if self._client.settings.raw_response else self._operation.process_reply(self._reply)

    def value_of(self, held: object) -> Any:
        """What zeep makes of a response that never had its turn; as it is where zeep makes nothing of it."""
        if isinstance(held, RawXml | XmlObject):
            soap = self._operation.nsmap["soap-env"]
            envelope = etree.Element(f"{{{soap}}}Envelope")
            body = etree.SubElement(envelope, f"{{{soap}}}Body")
            body.append(held.element() if isinstance(held, RawXml) else to_element(held))
            with contextlib.suppress(ZeepError):
                return self._operation.process_reply(envelope)
        return held

    def _seed(self) -> RawXml:
        """The request as the requestor sees it before `on_request`."""
        body = self._message.find("soap-env:Body", namespaces=self._operation.nsmap)
        first = next(iter(body), None) if body is not None else None
        return RawXml.from_element(self._message if first is None else first)

    def _options(self, given: object) -> CallOptions:
        if given is not None and not isinstance(given, CallOptions):
            raise ConfigError(f"_options: give CallOptions(...), not {type(given).__name__}")
        options = self._client.call_options if given is None else given
        timeout = self._client.transport.operation_timeout if options.timeout is None else options.timeout
        self._caller_options = options
        return replace(options, timeout=timeout, on_request=self._request, on_reply=self._take_reply)

    def _request(self, envelope: Envelope) -> Envelope:
        """The envelope to send: the requestor's header in what zeep made, and what plugins made of that."""
        client, operation = self._client, self._operation
        root = self._message
        soap = operation.nsmap["soap-env"]
        place = root.find(f"{{{soap}}}Header")
        if place is None:
            place = etree.Element(f"{{{soap}}}Header")
            root.insert(0, place)
        if envelope.header is not None:
            place.insert(0, merged_header(operation, envelope.header, self._header))
        headers, options = self._http_headers, self._binding_options
        if operation.abstract.wsa_action:
            root, headers = wsa.WsAddressingPlugin().egress(root, headers, operation, options)
        root, headers = plugins.apply_egress(client, root, headers, operation, options)
        for security in _listed(client.wsse):
            root, headers = security.apply(root, headers)
        sent = parse(etree_to_string(root))
        return sent if self._caller_options.on_request is None else self._caller_options.on_request(sent)

    def _take_reply(self, envelope: Envelope) -> None:
        """Take the envelope of a reply, as plugins leave it."""
        client = self._client
        if self._caller_options.on_reply is not None:
            self._caller_options.on_reply(envelope)
        self._wire = envelope.origin.wire if envelope.origin is not None else envelope.to_bytes()
        root = parse_xml(self._wire, client.transport, settings=client.settings)
        if client.settings.raw_response:
            self._reply = root
            return
        for security in _listed(client.wsse):
            security.verify(root)
        headers = {"Content-Type": self._http_headers["Content-Type"]}
        self._reply, _ = plugins.apply_ingress(client, root, headers, self._operation)

    def _raw(self, status: int) -> requests.Response:
        """A reply as `raw_response` has it: the bytes as they came, with the status that HTTP would have."""
        response = requests.Response()
        response.status_code = status
        response.headers["Content-Type"] = self._http_headers["Content-Type"]
        response.encoding = "utf-8"
        response.raw = BytesIO(self._wire)
        return response


class Batches(Iterator[Any], Closeable):
    """zeep's responses of one call with several replies: in order, each once, complete or an error at the end.

    Iteration raises what `mtosi_jms.service.Batches` does; a fault is zeep's, too. One that is not iterated to its end
    wants closing, best by `with`.
    """

    def __init__(self, call: JmsCall, replies: Replies[XmlObject]) -> None:
        self._call = call
        self._replies = replies

    def __next__(self) -> Any:
        try:
            next(self._replies)
        except MtosiFault as fault:
            raise as_zeep(fault) from fault
        except IncompleteBatchError as error:
            error.batches = {number: self._call.value_of(held) for number, held in error.batches.items()}
            raise
        return self._call.read()

    @property
    def correlation_id(self) -> str:
        return self._replies.correlation_id

    @property
    def held(self) -> Mapping[int, Any]:
        return {number: self._call.value_of(held) for number, held in self._replies.held.items()}

    def close(self) -> None:
        self._replies.close()


def _operation_info(operation: SoapOperation) -> OperationInfo:
    abstract = operation.abstract
    request, response = abstract.input_message, abstract.output_message
    return OperationInfo(
        name=operation.name,
        python_name=operation.name,
        mep="request-response" if response is not None else "one-way",
        response=_response_tag(operation),
        request_message=request.name.localname if request is not None else "",
        response_message=response.name.localname if response is not None else "",
        soap_action=operation.soapaction or "",
    )


def _response_tag(operation: SoapOperation) -> str:
    """The Clark name of the element that answers; empty where the WSDL names none."""
    body = operation.output.body if operation.output is not None else None
    if body is None or operation.style == "rpc":
        return ""
    parts = operation.abstract.output_message.parts.values()
    named = {part.element.qname.text for part in parts if part.element is not None}
    return body.qname.text if body.qname.text in named else ""


def _listed(wsse: Any) -> list[Any]:
    if wsse is None:
        return []
    return wsse if isinstance(wsse, list) else [wsse]
