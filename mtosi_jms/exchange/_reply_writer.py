"""The replies to one request: their headers, what they hold, and where they go (R3c, R5, R16d, C16, C17)."""

from __future__ import annotations

import dataclasses
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from mtosi_jms.errors import (
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    MtosiError,
    MtosiFault,
    ProtocolError,
    ResourceLimitError,
    TransportError,
)
from mtosi_jms.exchange.messages import moment, stamped, whole_number
from mtosi_jms.jms import RUN_ID, BindingProfile, Destination, JmsMessage, NamingContext, Properties
from mtosi_jms.jms.binding import to_jms
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.table2 import MAX_INTEGER
from mtosi_jms.jms.templates import HeaderForms, fits
from mtosi_jms.patterns import (
    Batch,
    BatchPosition,
    CommunicationPattern,
    JmsEcho,
    ReplyIds,
    ReplyRoute,
    RouteSource,
    parse_pattern,
    reply_ids,
    reply_route,
)
from mtosi_jms.service import OperationInfo, ServiceInfo, SupplierBase
from mtosi_jms.soap import Envelope, Header, correlation_id, header_text
from mtosi_jms.stubs.fmw.hdr import (
    ActivityStatusEnumType,
    ActivityStatusType,
    CommunicationPatternType,
    CommunicationStyleType,
    MessageTypeType,
)
from mtosi_jms.transport import AsyncSender, SendWindow
from mtosi_jms.xmlbind import RawXml, XmlObject

log = logging.getLogger(__name__)

ReplyPolicy: TypeAlias = Callable[[Destination], bool]
"""Says whether replies may be sent to a destination."""

_PATTERNS: Final = {pattern: CommunicationPatternType(pattern.value) for pattern in CommunicationPattern}
_UNREAD: Final = Header()
"""For a request that is not read yet."""


class WithheldError(Exception):
    """No reply can reach the requestor: nothing more is to be done for this request but to report it."""

    def __init__(self, what: str, error: MtosiError) -> None:
        self.what = what
        self.error = error
        super().__init__(what)


class ProviderError(Exception):
    """The provider failed while a reply was sent, or the session was closed: no failure of the handler."""

    def __init__(self, error: TransportError | IllegalStateError) -> None:
        self.error = error
        super().__init__(str(error))


class Sender(AsyncSender, Protocol):
    """What sends replies: a session."""

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """See `Session.send`."""
        ...

    def send_soon(self, destination: Destination, message: JmsMessage, *, can_wait: bool) -> JmsMessage | None:
        """See `Session.send_soon`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRules:
    """What holds for all replies of a supplier.

    Attributes:
        sender_uri: the header's senderURI.
        profile: the switches of the binding.
        names: resolves failureReplytoURI.
        policy: says where replies may be sent; None: with a naming context, to the destinations that it knows and to
            temporary ones; without one, to any queue.
        send_window: how many partial responses to a request may be unconfirmed by the provider.
        together: whether a reply that the provider does not confirm may be sent with others (`Session.send_soon`). That
            is safe where the request is acknowledged behind it, on the same way.
        echo: what goes into JMSCorrelationID, after the profile.
        forms: the headers of its responses.

    Raises:
        ConfigError: a window below 1.
    """

    sender_uri: str
    profile: BindingProfile
    names: NamingContext
    policy: ReplyPolicy | None
    send_window: int
    together: bool
    echo: JmsEcho = field(init=False)
    forms: HeaderForms = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "echo", JmsEcho(self.profile.jms_echo))
        object.__setattr__(self, "forms", HeaderForms(self.profile))
        if self.send_window < 1:
            raise ConfigError(f"send_window {self.send_window}: 1 or more is wanted, or no partial response goes out")

    def allows(self, destination: Destination) -> bool:
        """Whether a reply may be sent there; where the policy fails it may not.

        A name that brokers read as more than one destination may stand in our naming context; from a peer it is
        refused, whatever the policy says: that would judge another destination than the broker serves.
        """
        if self.policy is None:
            if self.names.knows(destination):
                return True
            open_to_all = not destination.is_topic and not self.names.names()
            return destination.is_plain and (destination.is_temporary or open_to_all)
        if not destination.is_plain and not self.names.knows(destination):
            return False
        try:
            return self.policy(destination)
        except Exception:
            log.exception("the reply policy failed: no reply to %s", destination)
            return False


class Replies:
    """Sends the replies to one request.

    Args:
        rules: what holds for all replies.
        session: sends them.
        message: the request.

    Attributes:
        request: the request's header, an empty one as long as it is not known.
        version: the SOAP version to answer in, the request's (C52).
    """

    def __init__(self, rules: ReplyRules, session: Sender, message: JmsMessage) -> None:
        self._rules = rules
        self._session = session
        self._window: SendWindow | None = None
        self._message = message
        self._run = ""
        self.request = _UNREAD
        self.version = "1.1"

    def settle(self) -> None:
        """Return when the provider has confirmed every partial response that was sent.

        Raises:
            WithheldError, ProviderError: one of them failed.
        """
        if self._window is None:
            return
        try:
            self._window.settle()
        except (TransportError, IllegalStateError) as error:
            raise _told_apart(error) from error

    def admit(self) -> None:
        """Look before anything is done for the request whether it can and may be answered.

        Raises:
            WithheldError: it has no JMSReplyTo, or replies to that are not allowed.
        """
        if self._message.reply_to is None:
            what = "it has no JMSReplyTo, so that nobody would get the response"
            raise WithheldError("a request is not carried out", ProtocolError(what, correlation_id(self.request) or ""))
        self._allowed(self._message.reply_to)

    def response(
        self, body: Any, operation: OperationInfo, position: BatchPosition | None, fields: Mapping[str, Any]
    ) -> None:
        """Send one response, partial or whole; a partial one is not waited for, as long as the window has room.

        Args:
            body: the response object.
            operation: what was asked for.
            position: its place among several, None for the one response of SimpleResponse.
            fields: header fields that the handler adds, by Python name.

        Raises:
            WithheldError, ProviderError: it cannot be sent, or a partial one before it failed.
            HeaderError, EncodeError: it must not be sent as it is.
        """
        route = self._route(is_error=False)
        formed = self._formed(body, operation, route) if position is None and not fields else None
        if formed is not None:
            self._transmit(formed, route, partial=False)
            return
        header = self._response_header(operation, route)
        if position is not None:
            header.communication_pattern = CommunicationPatternType.MultipleBatchResponse
            self._number(header, position)
        if fields:
            header = dataclasses.replace(header, **fields)
        self._send(Envelope(header=header, body=body), route, partial=position is not None)

    def _formed(self, body: Any, operation: OperationInfo, route: ReplyRoute[Destination]) -> JmsMessage | None:
        """A response whose header differs from others in correlationId and time alone; None for any other."""
        ids = self._ids()
        identifier = ids.correlation_id or ids.jms_correlation_id or ""
        if not isinstance(body, XmlObject) or not fits(identifier):
            return None
        request = self.request
        told = ("replyToURI", "senderURI", "communicationPattern", "communicationStyle")
        form = self._rules.forms.get(
            (operation.name, operation.response_message, self.version, *(header_text(request, one) for one in told)),
            lambda: self._response_header(operation, route),
            self.version,
        )
        if form is None:
            return None
        return form.message(body, identifier, moment(), names=self._rules.names, correlation_id=self._echo())

    def _ids(self) -> ReplyIds:
        return reply_ids(correlation_id(self.request), self._message.message_id, self._message.correlation_id)

    def _echo(self) -> str | None:
        """JMSCorrelationID of the replies."""
        message = self._message
        return reply_ids(None, message.message_id, message.correlation_id, echo=self._rules.echo).jms_correlation_id

    def document(self, body: Any, operation: OperationInfo, position: BatchPosition) -> bytes:
        """One response as a document of the file of a BulkResponse: an envelope that says which batch it is (C18).

        Raises:
            HeaderError, EncodeError: it cannot become valid XML.
        """
        header = self._response_header(operation, self._route(is_error=False))
        self._number(header, position)
        return Envelope(header=header, body=body, version=self.version).to_bytes()

    def _response_header(self, operation: OperationInfo, route: ReplyRoute[Destination]) -> Header:
        header = self._header(operation, operation.response_message or f"{operation.name}Response", route)
        header.msg_type = MessageTypeType.RESPONSE
        header.activity_status = ActivityStatusType(value=ActivityStatusEnumType.SUCCESS)
        return header

    def _number(self, header: Header, position: BatchPosition) -> None:
        size = whole_number(self.request.requested_batch_size)
        # Echoing it is a courtesy: what cannot become a property (C25) must not cost the requestor the answer.
        header.requested_batch_size = size if size is None or 0 <= size <= MAX_INTEGER else None
        header.batch_sequence_number = position.number
        header.batch_sequence_end_of_reply = position.end_of_reply

    def fault(self, fault: MtosiFault, operation: OperationInfo | None, service: ServiceInfo | None) -> None:
        """Send a fault: with the operation's exception where there is one, a bare SOAP fault otherwise.

        Raises:
            As `response`.
        """
        route = self._route(is_error=True)
        header = self._header(operation, operation.fault_message if operation else "", route)
        header.msg_type = MessageTypeType.ERROR
        header.activity_status = ActivityStatusType(value=ActivityStatusEnumType.FAILURE)
        if operation is None or service is None or not operation.fault:
            self._send(Envelope.bare_fault(fault, header), route)
            return
        in_header = self._rules.profile.fault_in_header
        exception = service.load(operation.fault)
        self._send(Envelope.for_fault(fault, exception, header, in_soap_header=in_header), route)

    def _header(self, operation: OperationInfo | None, msg_name: str, route: ReplyRoute[Destination]) -> Header:
        request = self.request
        ids = self._ids()
        pattern, _ = parse_pattern(header_text(request, "communicationPattern"))
        style = CommunicationStyleType
        wanted = "failureReplytoURI" if route.source is RouteSource.FAILURE_REPLY_TO else "replyToURI"
        return Header(
            activity_name=operation.name if operation else header_text(request, "activityName"),
            msg_name=msg_name or None,
            sender_uri=self._rules.sender_uri,
            destination_uri=header_text(request, wanted) or header_text(request, "senderURI"),
            # Where a request has none there is nothing to copy; its message id is what such a peer pairs by.
            correlation_id=ids.correlation_id or ids.jms_correlation_id,
            communication_pattern=_PATTERNS[pattern],
            communication_style=style.RPC if header_text(request, "communicationStyle") == "RPC" else style.MSG,
            timestamp=moment(),
        )

    def _route(self, *, is_error: bool) -> ReplyRoute[Destination]:
        route = reply_route(
            is_error=is_error,
            reply_to=self._message.reply_to,
            failure_reply_to_uri=header_text(self.request, "failureReplytoURI") if is_error else None,
            resolve=self._allowed_name,
        )
        if route.destination is None:
            raise WithheldError("a reply has nowhere to go", ConfigError(route.warning or "no reply address"))
        if route.warning:
            log.warning("%s", route.warning)
        if route.source is RouteSource.REPLY_TO:
            self._allowed(route.destination)
        return route

    def _allowed(self, destination: Destination | None) -> None:
        if destination is not None and not self._rules.allows(destination):
            error = InvalidDestinationError(f"replies to {destination} are not allowed here")
            raise WithheldError("a reply is withheld", error)

    def _allowed_name(self, name: str) -> Destination:
        destination = self._rules.names.lookup(name)
        if not self._rules.allows(destination):
            raise InvalidDestinationError(f"replies to {destination} are not allowed here")
        return destination

    def _send(self, envelope: Envelope, route: ReplyRoute[Destination], *, partial: bool = False) -> None:
        envelope.version = self.version
        message = to_jms(
            envelope.header or Header(),
            envelope,
            self._rules.profile,
            names=self._rules.names,
            correlation_id=self._echo(),
        )
        self._transmit(message, route, partial=partial)

    def _transmit(self, message: JmsMessage, route: ReplyRoute[Destination], *, partial: bool) -> None:
        if route.destination is None:
            return
        message = stamped(message, None, None)
        if partial:
            self._run = self._run or random_id()
            properties = Properties.trusted({**message.properties, RUN_ID: self._run})
            message = dataclasses.replace(message, properties=properties)
        try:
            if partial:
                if self._window is None:
                    self._window = SendWindow(self._session, self._rules.send_window)
                self._window.send(route.destination, message)
            else:
                if self._window is not None:
                    self._window.settle()
                together = self._rules.together and self._session.send_soon(route.destination, message, can_wait=True)
                if not together:
                    self._session.send(route.destination, message)
        except (TransportError, IllegalStateError) as error:
            raise _told_apart(error) from error


def _told_apart(error: TransportError | IllegalStateError) -> WithheldError | ProviderError:
    """Says of what went wrong with a send whether the requestor is to blame, or the provider."""
    if isinstance(error, InvalidDestinationError):
        return WithheldError("the requestor is gone", error)
    if isinstance(error, ResourceLimitError):
        return WithheldError("the requestor's destination is full", error)
    return ProviderError(error)


class ResponseMaker:
    """Puts the objects of a batch into an operation's response.

    Args:
        service: the interface of the operation.
        operation: the operation.
    """

    def __init__(self, service: ServiceInfo, operation: OperationInfo) -> None:
        self._operation = operation
        self._cls = service.load(operation.response)

    def is_response(self, item: object) -> bool:
        """Whether a handler's object is a whole response."""
        return isinstance(item, self._cls)

    def response(self, batch: Batch[Any]) -> Any:
        """The response with the objects of a batch.

        Raises:
            ConfigError: the response has no list of objects to put them into.
        """
        if len(batch.objects) == 1 and self.is_response(batch.objects[0]):
            return batch.objects[0]
        path = self._operation.batch_path
        if not path and not batch.objects:
            return self._cls()
        if not path:
            raise ConfigError(f"{self._operation.name}: the handler must yield {self._cls.__name__}")
        return _nested(self._cls, path, batch.objects)


def _nested(cls: type[XmlObject], path: Sequence[str], objects: list[Any]) -> XmlObject:
    name, *rest = path
    value = _nested(cls.__xml__.field(name).table().cls, rest, objects) if rest else objects
    return cls(**{name: value})  # type: ignore[arg-type]


def operations_by_tag(services: Sequence[SupplierBase]) -> dict[str, tuple[SupplierBase, OperationInfo]]:
    """What each request element asks for, by its Clark name.

    Raises:
        ConfigError: two services with the same request element.
    """
    found: dict[str, tuple[SupplierBase, OperationInfo]] = {}
    for supplier in services:
        for tag, operation in supplier.__service__.by_request_tag.items():
            if tag in found:
                raise ConfigError(f"two services on one destination take {tag}")
            found[tag] = supplier, operation
    return found


def refuse_asynchronous(operations: Iterable[tuple[SupplierBase, OperationInfo]]) -> None:
    """See that no handler needs an event loop.

    Raises:
        ConfigError: one does.
    """
    for supplier, operation in operations:
        handler = supplier.handler(operation)
        if inspect.iscoroutinefunction(handler) or inspect.isasyncgenfunction(handler):
            raise ConfigError(f"the handler of {operation.name} is asynchronous: serve it by `supplier.aio`")


def internal_error(operation: OperationInfo, error: BaseException) -> MtosiFault:
    """The fault of a handler that failed: what kind of failure, but not what it says."""
    return MtosiFault(f"{operation.name} failed with {type(error).__name__}", kind="internalError")


def tag_of(body: Any) -> str:
    """The Clark name of a body's element, empty where there is none."""
    if isinstance(body, RawXml):
        return body.tag
    return str(body.__xml__.tag) if isinstance(body, XmlObject) else ""
