"""The supplier: answers requests from one destination with the services it is given (R3, R4, R5, R16d, C16, C17).

A handler gets the request object and yields objects, or returns a response; batches are cut and sent while it runs,
and nothing of a request is kept after its last reply (P33). A request is acknowledged after its last reply was sent.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from mtosi_jms.errors import (
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    MtosiError,
    MtosiFault,
    TransportError,
    XmlError,
)
from mtosi_jms.jms import BindingProfile, Destination, JmsMessage
from mtosi_jms.jms.binding import DEFAULT_PROFILE, from_jms, to_jms
from mtosi_jms.patterns import (
    Batch,
    BatchPosition,
    CommunicationPattern,
    cut_batches,
    parse_pattern,
    reply_ids,
    reply_route,
)
from mtosi_jms.requestor import stamped
from mtosi_jms.service import OperationInfo, RequestContext, ServiceInfo, SupplierBase
from mtosi_jms.soap import Envelope, Header, header_text
from mtosi_jms.stubs.fmw.hdr import (
    ActivityStatusEnumType,
    ActivityStatusType,
    CommunicationPatternType,
    CommunicationStyleType,
    MessageTypeType,
)
from mtosi_jms.transport import Connection, Session
from mtosi_jms.xmlbind import RawXml, XmlObject

log = logging.getLogger(__name__)

ReplyPolicy = Callable[[Destination], bool]


class Supplier:
    """A supplier OS on one destination of one connection.

    Args:
        connection: an open connection; the supplier starts it and does not close it.
        destination: name of an administered destination, or the destination (R2a).
        services: instances of generated supplier classes; one destination may serve any number (O9).
        sender_uri: the header's senderURI of replies; the destination's name unless given.
        profile: the switches of the binding.
        reply_policy: says where replies may be sent. Unless given: with a naming context, to the destinations that
            it knows and to temporary ones; without one, to any queue of the connection.
        on_error: called with each failure that no requestor hears of.

    Raises:
        ConfigError: a temporary destination, or two services with the same request element.
        NamingError: the destination cannot be resolved.
    """

    def __init__(
        self,
        connection: Connection,
        destination: str | Destination,
        services: Sequence[SupplierBase],
        *,
        sender_uri: str | None = None,
        profile: BindingProfile = DEFAULT_PROFILE,
        reply_policy: ReplyPolicy | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> None:
        self.connection = connection
        self.destination = connection.names.lookup(destination)
        if self.destination.is_temporary:
            raise ConfigError("a supplier is served from an administered destination (R2a)")
        self.sender_uri = sender_uri or (destination if isinstance(destination, str) else destination.name)
        self.profile = profile
        self._reply_policy = reply_policy or self._known_or_own
        self._on_error = on_error
        self._operations = _operations(services)
        self._sessions: set[Session] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def _known_or_own(self, destination: Destination) -> bool:
        names = self.connection.names
        return destination.is_temporary or not names.names() or names.knows(destination)

    def run(self) -> None:
        """Answer requests until `stop`; several threads may run one supplier.

        Raises:
            TransportError: the provider failed.
        """
        session = self.connection.session()
        with self._lock:
            if self._stopped.is_set():
                session.close()
                return
            self._sessions.add(session)
        try:
            consumer = session.consumer(self.destination)
            self.connection.start()
            while not self._stopped.is_set():
                delivery = consumer.receive()
                if delivery is None:
                    break
                self._answer(delivery.message, session)
                delivery.acknowledge()
        except IllegalStateError:
            if not self._stopped.is_set():
                raise
        finally:
            with self._lock:
                self._sessions.discard(session)
            session.close()

    def start(self, threads: int = 1) -> Self:
        """Run in background threads; leaving the `with` block, or `stop`, ends them."""
        for number in range(threads):
            threading.Thread(target=self._run_logged, name=f"supplier-{number + 1}", daemon=True).start()
        return self

    def _run_logged(self) -> None:
        try:
            self.run()
        except MtosiError as error:
            self._failed("the supplier ends", error)

    def stop(self) -> None:
        """End all runs; a request that is being answered is delivered again to whoever comes next."""
        self._stopped.set()
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _failed(self, what: str, error: Exception) -> None:
        log.error("%s: %s", what, error)
        if self._on_error is not None:
            self._on_error(error)

    def _answer(self, message: JmsMessage, session: Session) -> None:
        """Answer one request; whatever is wrong with it is answered too, or reported."""
        reply = _Reply(self, session, message)
        try:
            envelope = from_jms(message, strict=self.profile.validation == "strict")
        except XmlError as error:
            self._failed("a request that cannot be read", error)
            reply.fault(MtosiFault(f"the request cannot be read: {error.message}", fault_code="Client"), None, None)
            return
        reply.request = envelope.header or Header()
        found = self._operations.get(_tag_of(envelope.body))
        if found is None:
            name = _tag_of(envelope.body).rpartition("}")[2] or "an empty body"
            reply.fault(MtosiFault(f"no operation here takes {name}", fault_code="Client"), None, None)
            return
        supplier, operation = found
        try:
            self._dispatch(supplier, operation, envelope.body, reply)
        except TransportError:
            raise
        except MtosiFault as fault:
            reply.fault(fault, operation, supplier.__service__)
        except Exception as error:
            log.exception("the handler of %s failed", operation.name)
            self._failed(f"the handler of {operation.name} failed", error)
            failure = MtosiFault(f"{operation.name} failed with {type(error).__name__}", kind="internalError")
            reply.fault(failure, operation, supplier.__service__)

    def _dispatch(self, supplier: SupplierBase, operation: OperationInfo, body: Any, reply: _Reply) -> None:
        pattern, flag = parse_pattern(header_text(reply.request, "communicationPattern"))
        if flag is not None:
            log.info("%s: %s", flag.rule, flag.reason)
        batches = pattern is CommunicationPattern.MULTIPLE_BATCH_RESPONSE
        size = (reply.request.requested_batch_size or 0) if batches else 0
        context = RequestContext(operation=operation, header=reply.request, message=reply.message, batch_size=size)
        result = supplier.handler(operation)(body, context)
        if operation.mep == "one-way":
            if isinstance(result, Iterator):
                for _ in result:
                    pass
            return
        maker = _ResponseMaker(supplier.__service__, operation)
        objects = [result] if maker.is_response(result) else result
        if not isinstance(objects, Iterable):
            raise ConfigError(f"the handler of {operation.name} returned {type(result).__name__}, no response")
        for batch in cut_batches(objects, size, first=self.profile.first_batch_sent, whole=maker.is_response):
            reply.response(maker.response(batch), operation, batch.position if batches else None, context)


def _operations(services: Sequence[SupplierBase]) -> dict[str, tuple[SupplierBase, OperationInfo]]:
    found: dict[str, tuple[SupplierBase, OperationInfo]] = {}
    for supplier in services:
        for tag, operation in supplier.__service__.by_request_tag.items():
            if tag in found:
                raise ConfigError(f"two services on one destination take {tag}")
            found[tag] = supplier, operation
    return found


def _tag_of(body: Any) -> str:
    if isinstance(body, RawXml):
        return body.tag
    return str(body.__xml__.tag) if isinstance(body, XmlObject) else ""


class _ResponseMaker:
    """Puts the objects of a batch into the operation's response."""

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
        if not path:
            if not batch.objects:
                return self._cls()
            raise ConfigError(f"{self._operation.name}: the handler must yield {self._cls.__name__}")
        return _nested(self._cls, path, batch.objects)


def _nested(cls: type[XmlObject], path: Sequence[str], objects: list[Any]) -> XmlObject:
    name, *rest = path
    value = _nested(cls.__xml__.field(name).table().cls, rest, objects) if rest else objects
    return cls(**{name: value})  # type: ignore[arg-type]


class _Reply:
    """Sends the replies to one request."""

    def __init__(self, supplier: Supplier, session: Session, message: JmsMessage) -> None:
        self.supplier = supplier
        self.session = session
        self.message = message
        self.request = Header()

    def response(
        self, body: Any, operation: OperationInfo, position: BatchPosition | None, context: RequestContext
    ) -> None:
        """Send one response, partial or whole."""
        header = self._header(operation, operation.response_message or f"{operation.name}Response")
        header.msg_type = MessageTypeType.RESPONSE
        header.activity_status = ActivityStatusType(value=ActivityStatusEnumType.SUCCESS)
        if position is not None:
            header.communication_pattern = CommunicationPatternType.MultipleBatchResponse
            header.requested_batch_size = self.request.requested_batch_size
            header.batch_sequence_number = position.number
            header.batch_sequence_end_of_reply = position.end_of_reply
        if context.reply_fields:
            header = dataclasses.replace(header, **context.reply_fields)
        self._send(Envelope(header=header, body=body), is_error=False)

    def fault(self, fault: MtosiFault, operation: OperationInfo | None, service: ServiceInfo | None) -> None:
        """Send a fault: with the operation's exception where there is one, a bare SOAP fault otherwise."""
        header = self._header(operation, operation.fault_message if operation else "")
        header.msg_type = MessageTypeType.ERROR
        header.activity_status = ActivityStatusType(value=ActivityStatusEnumType.FAILURE)
        if operation is None or service is None or not operation.fault:
            log.warning("a request is refused: %s", fault.reason)
            self._send(Envelope.bare_fault(fault, header), is_error=True)
            return
        exception = service.load(operation.fault)
        in_header = self.supplier.profile.fault_in_header
        self._send(Envelope.for_fault(fault, exception, header, in_soap_header=in_header), is_error=True)

    def _header(self, operation: OperationInfo | None, msg_name: str) -> Header:
        ids = reply_ids(self.request.correlation_id, self.message.message_id, self.message.correlation_id)
        name = operation.name if operation else header_text(self.request, "activityName")
        pattern, _ = parse_pattern(header_text(self.request, "communicationPattern"))
        return Header(
            activity_name=name,
            msg_name=msg_name or None,
            sender_uri=self.supplier.sender_uri,
            destination_uri=header_text(self.request, "replyToURI") or header_text(self.request, "senderURI"),
            correlation_id=ids.correlation_id,
            communication_pattern=CommunicationPatternType(str(pattern)),
            communication_style=CommunicationStyleType.MSG,
            timestamp=dt.datetime.now(dt.UTC).replace(microsecond=0),
        )

    def _send(self, envelope: Envelope, *, is_error: bool) -> None:
        route = reply_route(
            is_error=is_error,
            reply_to=self.message.reply_to,
            failure_reply_to_uri=header_text(self.request, "failureReplytoURI"),
            resolve=self._allowed_name,
        )
        if route.warning:
            log.warning("%s", route.warning)
        if route.destination is None:
            self.supplier._failed("a reply has nowhere to go", ConfigError(route.warning or "no reply address"))
            return
        if not self.supplier._reply_policy(route.destination):
            error = InvalidDestinationError(f"replies to {route.destination} are not allowed here")
            self.supplier._failed("a reply is withheld", error)
            return
        message = to_jms(
            envelope.header or Header(), envelope, self.supplier.profile, names=self.supplier.connection.names
        )
        ids = reply_ids(None, self.message.message_id, self.message.correlation_id)
        message = dataclasses.replace(message, correlation_id=ids.jms_correlation_id)
        try:
            self.session.send(route.destination, stamped(message, None, None))
        except InvalidDestinationError as error:
            self.supplier._failed("the requestor is gone", error)

    def _allowed_name(self, name: str) -> Destination:
        destination = self.supplier.connection.names.lookup(name)
        if not self.supplier._reply_policy(destination):
            raise InvalidDestinationError(f"replies to {destination} are not allowed here")
        return destination
