"""zeep's calls over JMS, and over HTTP: zeep makes and reads the body, the requestor does all else.

The requestor makes the header and asks for the envelope (`on_request`). It gets what zeep made of the arguments, with
that header in it, when zeep's plugins and security have had their say: they see what is sent, and what they change is
sent. Of each reply (`on_reply`) zeep gets the envelope as it came.

zeep refuses bindings whose transport is not HTTP. It asks its transport object for `binding_classes`, though, and takes
these in place of its own: so nothing of zeep's is patched.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any, Final

import requests
from lxml import etree
from zeep import plugins, wsa
from zeep.exceptions import Error as ZeepError
from zeep.exceptions import Fault
from zeep.loader import parse_xml as read_by_zeep
from zeep.wsdl.bindings.soap import Soap11Binding, Soap12Binding, SoapBinding, SoapOperation
from zeep.wsdl.utils import etree_to_string
from zeep.xsd import CompoundValue

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, IncompleteBatchError, MtosiFault, ReplyTimeoutError, TransportError
from mtosi_jms.exchange.messages import moment
from mtosi_jms.header import BY_TAG
from mtosi_jms.jms.ids import random_id
from mtosi_jms.masking import without_login
from mtosi_jms.namespaces import SOAP12, clark, split_clark
from mtosi_jms.service import Address, Call, CallOptions, OperationInfo, ServiceInfo, check_count
from mtosi_jms.service import Batches as Replies
from mtosi_jms.soap import FIELD_NAMES, Envelope, Header, converted, header_class, parse
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.xmlbind import RawXml, XmlObject, parse_xml, to_element

_ORDER: Final = {name: place for place, name in enumerate(FIELD_NAMES)}
OWN: Final = frozenset({
    "batchSequenceEndOfReply", "batchSequenceNumber", "communicationPattern", "communicationStyle", "destinationURI",
    "failureReplytoURI", "msgType", "replyToURI", "requestedBatchSize", "senderURI",
})  # fmt: skip
"""Fields that are the requestor's, whatever a caller gives."""


def blocks_of(operation: SoapOperation, given: object) -> tuple[etree._Element | None, list[etree._Element]]:
    """What a caller gives in `_soapheaders`, as zeep takes it: the MTOSI header, complete or not, and other blocks."""
    declared = dict(operation.input.header.type.elements) if operation.input and operation.input.header else {}
    blocks: list[etree._Element] = []
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name not in declared:
                known = ", ".join(declared) or "none"
                raise ConfigError(f"_soapheaders: {operation.name} has no header {name!r}; there are {known}")
            if value is not None:
                blocks.append(_block(declared[name], value))
    elif isinstance(given, list | tuple):
        blocks = [_element(value) for value in given]
    elif given is not None:
        raise ConfigError(f"_soapheaders: give a dict or a list, not {type(given).__name__}")
    mtosi_header = next((block for block in blocks if block.tag in BY_TAG), None)
    return mtosi_header, [block for block in blocks if block is not mtosi_header]


def declared_header(operation: SoapOperation) -> str | None:
    """The Clark name of the MTOSI header that the WSDL has in the requests of an operation; None if it has none."""
    if operation.input is None or operation.input.header is None:
        return None
    tags = (str(element.qname.text) for _, element in operation.input.header.type.elements)
    return next((tag for tag in tags if tag in BY_TAG), None)


def merged_header(operation: SoapOperation, header: Header, given: etree._Element | None) -> etree._Element:
    """The MTOSI header with what a caller gives, in the order of the schema: of the dialect that the caller gives, else
    of the one that the WSDL declares."""
    tag = str(given.tag) if given is not None else declared_header(operation)
    made = to_element(header if tag is None else converted(header, header_class(BY_TAG[tag])))
    if given is None:
        return made
    fields = {split_clark(str(child.tag))[1]: child for child in made}
    for child in given.iterchildren("*"):
        name = split_clark(str(child.tag))[1]
        if name not in OWN:
            fields[name] = copy.deepcopy(child)
    for name, value in given.items():
        made.set(name, value)
    made[:] = sorted(fields.values(), key=lambda child: _ORDER.get(split_clark(str(child.tag))[1], len(_ORDER)))
    return made


def _element(value: object) -> etree._Element:
    if isinstance(value, etree._Element):
        return copy.deepcopy(value)
    element = getattr(value, "_xsd_elm", None)
    if not isinstance(value, CompoundValue) or element is None:
        raise ConfigError(f"_soapheaders: give elements of the WSDL or of lxml, not {type(value).__name__}")
    return _block(element, value)


def _block(element: Any, value: Any) -> etree._Element:
    """A header block as XML; the MTOSI header without what it would need to be complete."""
    holder = etree.Element("block")
    if element.qname.text not in BY_TAG:
        element.render(holder, value)
    else:
        made = value if isinstance(value, CompoundValue) else element(**value)
        node = etree.SubElement(holder, element.qname.text)
        for name, part in element.type.elements:
            if made[name] is not None:
                part.render(node, made[name])
        for name, attribute in element.type.attributes:
            if made[name] is not None:
                attribute.render(node, made[name])
    block = holder[0]
    holder.remove(block)
    return block


class SoapFault(MtosiFault, Fault):
    """A fault as zeep has it, and as the SDK has it.

    It is an instance of the fault's own class too: `except EntityNotFoundFault` catches it where a registered package
    has that class. `kind`, `reason`, `header`, `fault_code`, `fault_string` and `raw` are those of `MtosiFault`.

    Attributes:
        fault: the fault as the requestor raises it; its `detail` is the object of the exception kind.
        code: the fault code as it was written, with its prefix.
        actor: of SOAP 1.1; None where there is none.
        subcodes: of SOAP 1.2, qualified names; None in SOAP 1.1.
        detail: the element `detail`, as zeep's faults have it; None where there is none.
    """

    def __init__(self, fault: MtosiFault) -> None:
        Exception.__init__(self, *fault.args)
        self.__dict__.update({name: value for name, value in vars(fault).items() if name != "detail"})
        self.fault = fault
        element = self._element()
        self.message = fault.fault_string
        self.code = fault.fault_code
        self.actor = None
        self.subcodes: list[etree.QName] | None = None
        if element is None:
            return
        if split_clark(str(element.tag))[0] == SOAP12:
            code = element.find(clark(SOAP12, "Code"))
            self.code = _text(code, clark(SOAP12, "Value")) or self.code
            self.subcodes = []
            while code is not None and (code := code.find(clark(SOAP12, "Subcode"))) is not None:
                prefix, _, local = (_text(code, clark(SOAP12, "Value")) or "").rpartition(":")
                namespace = code.nsmap.get(prefix or None)
                self.subcodes.extend([etree.QName(namespace, local)] if local else [])
        else:
            self.code = _text(element, "faultcode") or self.code
            self.actor = _text(element, "faultactor")

    def _element(self) -> Any:
        return parse_xml(self.fault.raw) if self.fault.raw is not None else None

    @property
    def detail(self) -> Any:
        element = self._element()
        return next(element.iterchildren("{*}detail", "{*}Detail"), None) if element is not None else None

    @detail.setter
    def detail(self, value: Any) -> None:
        raise AttributeError("detail is that of the message; change fault.detail")

    def __reduce__(self) -> tuple[Any, ...]:
        return as_zeep, (self.fault,)


def as_zeep(fault: MtosiFault) -> SoapFault:
    """A fault that the requestor raised as one that is zeep's, too."""
    own = type(fault)
    both = _CLASSES.get(own)
    if both is None:
        both = _CLASSES[own] = type(own.__name__, (SoapFault, own), {"__module__": own.__module__})
    return both(fault)


_CLASSES: Final[dict[type[MtosiFault], type[SoapFault]]] = {MtosiFault: SoapFault}
"""What a class of faults is raised as."""


def _text(element: Any, name: str) -> str | None:
    found = element.find(name) if element is not None else None
    return (found.text or "").strip() or None if found is not None else None


class JmsCall:
    """One call. `options`: of the binding: `address`, and `destination` where that is not text. `args`, `kwargs`: as
    zeep's callers give them, with `_soapheaders`, and `_options` for what this call sets."""

    def __init__(
        self,
        client: Any,
        binding: SoapBinding,
        options: Mapping[str, Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._client = client
        self._security = client.wsse if isinstance(client.wsse, list) else [client.wsse] if client.wsse else []
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
        """Make the call, and give what zeep makes of the answer; None of a one-way operation."""
        raw = bool(self._client.settings.raw_response)
        try:
            self._client.requestor.call(self.call)
        except MtosiFault as fault:
            if not raw or self._reply is None:
                raise as_zeep(fault) from fault
            return self._raw(500)
        return self.read() if self._reply is not None else None

    def batches(self, batch_size: int) -> Batches:
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
        for security in self._security:
            root, headers = security.apply(root, headers)
        sent = parse(etree_to_string(root))
        return sent if self._caller_options.on_request is None else self._caller_options.on_request(sent)

    def _take_reply(self, envelope: Envelope) -> None:
        client = self._client
        if self._caller_options.on_reply is not None:
            self._caller_options.on_reply(envelope)
        self._wire = envelope.origin.wire if envelope.origin is not None else envelope.to_bytes()
        root = read_by_zeep(self._wire, client.transport, settings=client.settings)
        if client.settings.raw_response:
            self._reply = root
            return
        for security in self._security:
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
    body = operation.output.body if operation.output is not None else None
    if body is None or operation.style == "rpc":
        return ""
    parts = operation.abstract.output_message.parts.values()
    named = {part.element.qname.text for part in parts if part.element is not None}
    return body.qname.text if body.qname.text in named else ""


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
