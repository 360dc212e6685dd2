"""The dispatcher: one request envelope in, its reply envelopes out (R3, R4, R5, P31, P33, C16). It uses neither
sessions nor JMS: the JMS supplier sends its replies, and an HTTP endpoint or a test can do the same."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import logging
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import DEFAULT_PROFILE
from mtosi_jms.binding.soap_jms import action_of
from mtosi_jms.binding.table2 import MAX_INTEGER
from mtosi_jms.bulk import BulkFile, BulkTerms, Compression, Folders, Packing, new_file
from mtosi_jms.errors import ConfigError, FileLocationError, MtosiFault, ProtocolError
from mtosi_jms.exchange.messages import in_package, moment, whole_number
from mtosi_jms.jms import JmsMessage
from mtosi_jms.patterns import Batch, BatchPosition, CommunicationPattern, cut_batches, parse_pattern
from mtosi_jms.service import OperationInfo, RequestContext, ServiceInfo, SupplierBase
from mtosi_jms.service.registry import chosen, is_own, names_another
from mtosi_jms.soap import (
    FIELD_NAMES,
    Envelope,
    Header,
    correlation_id,
    header_text,
    header_texts,
    like,
    missing_fields,
    must_understand_fault,
    names_of,
    not_understood,
    not_understood_blocks,
    stubs_header,
    tag_of,
    typed_blocks,
)
from mtosi_jms.stubs.fmw.hdr import (
    ActivityStatusEnumType,
    ActivityStatusType,
    CommunicationPatternType,
    CommunicationStyleType,
    CompressionEnumType,
    CompressionTypeType,
    MessageTypeType,
    PackingEnumType,
    PackingTypeType,
)
from mtosi_jms.telemetry import of_message
from mtosi_jms.xmlbind import RawXml, XmlObject

log = logging.getLogger(__package__)

FailureHook = Callable[[BaseException], object]
"""Called with each failure that is not reported to a requestor."""

NO_REQUEST: Final = ("RESPONSE", "ERROR")
_Served: TypeAlias = tuple[SupplierBase, OperationInfo]
_ECHOED: Final = (
    "activityName",
    "communicationPattern",
    "communicationStyle",
    "correlationId",
    "failureReplytoURI",
    "replyToURI",
    "senderURI",
)
"""The fields of a request that its reply's header depends on."""
_PATTERNS: Final = {pattern: CommunicationPatternType(pattern.value) for pattern in CommunicationPattern}


class ReplyAddress(Protocol):
    def admit(self) -> None:
        """Called before the handler runs, if its operation has a response. Raises Abandoned: the response could not
        reach anybody."""
        ...

    def complete(self, header: Header) -> None:
        """Called with the header of each reply before the reply is made. It may fill in fields."""
        ...


class Abandoned(Exception):
    """Ends a request without a reply. Handlers and senders may raise it; the dispatcher does not catch it."""


class Failures:
    """Reports failures that no requestor learns of, to the log and to the hook, whose exceptions are logged."""

    def __init__(self, hook: FailureHook | None) -> None:
        self._hook = hook

    def report(
        self, what: str, error: BaseException, *, message: JmsMessage | None = None, trace: bool = False
    ) -> None:
        """Report a failure. `message`: the request, if it came by JMS. `trace`: log the traceback too."""
        about = f", message {message.message_id}" if message is not None else ""
        facts = of_message(message) if message is not None else None
        log.error(
            "%s%s: %s: %s", what, about, type(error).__name__, error, exc_info=error if trace else None, extra=facts
        )
        if self._hook is None:
            return
        try:
            self._hook(error)
        except Exception:
            log.exception("on_error failed")


class Dispatcher:
    """Answers request envelopes by calling the given services; threads may share it.

    Args:
        services, profile, eager, bulk_folders, on_error: as for `Supplier`.
        sender_uri: senderURI in the headers of replies.
        understands: header blocks that the handlers understand, as Clark names or classes of elements. A request with
            another block that must be understood is refused; the blocks that the WSDL declares for its operation are
            understood.

    Raises:
        ConfigError: two services have one operation with the same request element, or an item is not an instance of a
            service.
    """

    def __init__(
        self,
        services: Sequence[SupplierBase],
        profile: BindingProfile = DEFAULT_PROFILE,
        *,
        sender_uri: str = "",
        eager: bool = False,
        bulk_folders: Folders = (),
        on_error: FailureHook | None = None,
        understands: Collection[str | type[XmlObject]] = (),
    ) -> None:
        self.profile = profile
        self.eager = eager
        self._sender_uri = sender_uri
        self.bulk_folders = (bulk_folders,) if isinstance(bulk_folders, str | Path) else tuple(bulk_folders)
        self._operations = _operations_by_tag(services)
        self.package = services[0].__service__.root if services else None
        self.failures = Failures(on_error)
        self.understands = names_of(understands)

    def over(self, change: Callable[[SupplierBase], SupplierBase]) -> Dispatcher:
        other = copy.copy(self)
        other._operations = {
            tag: tuple((change(one), operation) for one, operation in served)
            for tag, served in self._operations.items()
        }
        return other

    def operation_of(self, envelope: Envelope, message: JmsMessage | None = None) -> str:
        """Return the name of the operation that a request asks for; empty if no service here has it."""
        found = self._served(envelope, message, "")
        return found[0][1].name if len(found) == 1 else ""

    def _served(self, envelope: Envelope, message: JmsMessage | None, action: str) -> Sequence[_Served]:
        """Return what serves a request: one operation, or none or several if it cannot be served."""
        tag = tag_of(envelope.body)
        found = self._operations.get(tag, ())
        if not found or (len(found) == 1 and is_own(tag, found[0][1])):
            return found
        action = action or (action_of(message) if message else "")
        if len(found) == 1 and names_another(found[0][1], envelope.header, action):
            return ()
        return chosen(found, itemgetter(1), envelope.header, action)

    def _not_understood(self, envelope: Envelope, found: Sequence[_Served]) -> list[str]:
        declared = [supplier.__service__.header_tags(operation) for supplier, operation in found]
        return not_understood(envelope, self.understands.union(*declared))

    def _unserved(self, envelope: Envelope, found: Sequence[_Served]) -> str:
        local = tag_of(envelope.body).rpartition("}")[2]
        shared = self._operations.get(tag_of(envelope.body))
        if shared is None:
            return f"no operation here takes {local or 'an empty body'}"
        names = " and ".join(sorted({operation.name for _, operation in found or shared}))
        which = "say which in activityName" if found else "activityName, msgName and SOAP action name different ones"
        return f"{local} is the request of {names}: {which}"

    @property
    def header(self) -> type[Header]:
        """The class of headers of the release that is served, for answers to what cannot be read."""
        return stubs_header(self.package or "", "", self.profile.header)

    def refuse_asynchronous(self) -> None:
        """Check that no handler needs an event loop. Raises ConfigError: a handler is asynchronous."""
        for supplier, operation in itertools.chain.from_iterable(self._operations.values()):
            handler = supplier.handler(operation)
            if inspect.iscoroutinefunction(handler) or inspect.isasyncgenfunction(handler):
                raise ConfigError(f"the handler of {operation.name} is asynchronous: serve it by `supplier.aio`")

    def dispatch(
        self,
        envelope: Envelope,
        *,
        message: JmsMessage | None = None,
        address: ReplyAddress | None = None,
        action: str = "",
    ) -> Generator[Envelope, None, None]:
        """Answer one request. The handler runs while the replies are iterated; closing the iterator ends it.

        If a reply cannot be sent, throw the error into the iterator: a fault replaces the reply, as in `send_all`.

        Args:
            message: the JMS message of the request, for handlers; None if the request did not come by JMS.
            address: decides whether a response has a receiver, and completes the headers of replies.
            action: the SOAP action sent with the request; empty: that of `message`.

        Yields:
            The replies in order: responses, and a fault at the end if something failed (C59). Nothing for a one-way
            operation, and nothing for an envelope that is not a request.

        Raises:
            Abandoned: the handler or `address` raised it; there is no reply.
        """
        request = envelope.header or Header()
        if _is_reply(envelope):  # answering an answer might never end
            what = f"a message of type {header_text(request, 'msgType') or 'ERROR'} came where requests are expected"
            error = ProtocolError(what, correlation_id(request) or "")
            self.failures.report("a message that is not a request", error, message=message)
            return
        found = self._served(envelope, message, action)
        blocks = typed_blocks(envelope, found[0][0].__service__.root if found else None) if envelope.blocks else ()
        if envelope.warnings:
            identifier = correlation_id(request) or "none"
            text = "a request with %d warnings, correlation id %s, the first: %s"
            log.warning(text, len(envelope.warnings), identifier, envelope.warnings[0])
        lost = self._not_understood(envelope, found) if blocks else []
        if lost or len(found) != 1:
            why = must_understand_fault(lost) if lost else self._unserved(envelope, found)
            what = why.reason if isinstance(why, MtosiFault) else why
            self.failures.report(
                "a request is refused", ProtocolError(what, correlation_id(request) or ""), message=message
            )
            if header_text(request, "msgType") != "NOTIFICATION":
                for reply in self.refuse(why, request, envelope.version, address):
                    reply.blocks += not_understood_blocks(lost) if envelope.version == "1.2" else ()
                    yield reply
            return
        supplier, operation = found[0]
        call = _Call(self, supplier, operation, request, envelope.version, address, blocks)
        if address is not None and operation.mep != "one-way":
            address.admit()
        yield from call.replies(in_package(envelope, supplier.__service__.root).body, message)

    def refuse(
        self,
        why: str | MtosiFault,
        request: Header | None = None,
        version: str = "1.1",
        address: ReplyAddress | None = None,
    ) -> Generator[Envelope, None, None]:
        """Yield the reply to a request that is refused: a bare SOAP fault with the fault code Client, in the request's
        SOAP version (C52). `address` completes its header, as in `dispatch`."""
        try:
            header = self._header(request or self.header(), None, "", address, failed=True)
            fault = MtosiFault(why, fault_code="Client") if isinstance(why, str) else why
            yield _in_version(Envelope.bare_fault(fault, header), version)
        except Abandoned:
            raise
        except Exception as error:  # noqa: BLE001 - a request that cannot be refused must not end a thread
            self.failures.report("a refusal cannot be sent", error)

    def _header(
        self,
        request: Header,
        operation: OperationInfo | None,
        msg_name: str,
        address: ReplyAddress | None,
        *,
        failed: bool,
    ) -> Header:
        """Return the header of a reply (R3c, R5, C16, C17). activityName is the request's if the operation is not
        known."""
        said = header_texts(request, _ECHOED)
        pattern, _ = parse_pattern(said.get("communicationPattern"))
        style = CommunicationStyleType
        status = ActivityStatusEnumType.FAILURE if failed else ActivityStatusEnumType.SUCCESS
        wanted = said.get("failureReplytoURI") if failed else None
        header = like(request)(
            activity_name=operation.name if operation else said.get("activityName"),
            msg_name=msg_name or None,
            msg_type=MessageTypeType.ERROR if failed else MessageTypeType.RESPONSE,
            activity_status=ActivityStatusType(value=status),
            sender_uri=self._sender_uri or None,
            destination_uri=wanted or said.get("replyToURI") or said.get("senderURI"),
            correlation_id=said.get("correlationId"),
            communication_pattern=_PATTERNS[pattern],
            communication_style=style.RPC if said.get("communicationStyle") == "RPC" else style.MSG,
            timestamp=moment(),
        )
        if address is not None:
            address.complete(header)
        if failed:  # a request that names nothing is answered all the same: required fields are there, and empty
            for name in missing_fields(header):
                setattr(header, FIELD_NAMES[name], "")
        return header


@dataclass(slots=True)
class _Call:
    """One request for one operation. `blocks`: its header blocks beside the MTOSI header."""

    dispatcher: Dispatcher
    supplier: SupplierBase
    operation: OperationInfo
    request: Header
    version: str
    address: ReplyAddress | None
    blocks: tuple[XmlObject | RawXml, ...]
    is_closed: bool = False

    def replies(self, body: Any, message: JmsMessage | None) -> Generator[Envelope, None, None]:
        operation, failures = self.operation, self.dispatcher.failures
        try:
            yield from self._answer(body, message)
            return
        except Abandoned:
            raise
        except MtosiFault as error:
            fault = error
            if operation.mep == "one-way":
                failures.report(f"{operation.name} is refused", error, message=message)
        except BaseException as error:
            signalled = not isinstance(error, Exception) and threading.current_thread() is threading.main_thread()
            if self.is_closed or signalled:
                raise
            failures.report(f"the handler of {operation.name} failed", error, message=message, trace=True)
            fault = self._internal_error(error)
        if operation.mep != "one-way":
            yield from self._faults(fault)

    def _answer(self, body: Any, message: JmsMessage | None) -> Generator[Envelope, None, None]:
        operation, request = self.operation, self.request
        pattern, flag = parse_pattern(header_text(request, "communicationPattern"))
        if flag is not None and request != type(request)():  # a request without a header was warned of above
            log.warning("%s: %s", flag.rule, flag.reason)
        batches = pattern is CommunicationPattern.MULTIPLE_BATCH_RESPONSE
        size = max(whole_number(request.requested_batch_size) or 0, 0) if batches else 0
        bulk = None
        if pattern is CommunicationPattern.BULK_RESPONSE and operation.mep != "one-way":
            bulk = BulkSupplier(self.supplier.__service__, operation, request, self.dispatcher.bulk_folders)
            size = bulk.terms.batch_size or 0
        context = RequestContext(
            operation=operation,
            header=request,
            message=message,
            batch_size=size,
            bulk=bulk.terms if bulk else None,
            header_blocks=self.blocks,
        )
        result = self.supplier.handler(operation)(body, context)
        if operation.mep == "one-way":
            for _ in result if isinstance(result, Iterator) else ():
                pass
            return
        maker = ResponseMaker(self.supplier.__service__, operation)
        if maker.is_response(result) and not batches and bulk is None:
            yield from self._given(self._response(result, None, context.reply_fields))
            return
        objects = [result] if maker.is_response(result) else result
        if not isinstance(objects, Iterable):
            raise ConfigError(f"the handler of {operation.name} returned {type(result).__name__}, no response")
        first = self.dispatcher.profile.first_batch_sent
        try:
            if bulk is not None:
                answer = maker.response(Batch([], BatchPosition(first, True)))
                bulk.write(cut_batches(objects, size, first=first, whole=maker.is_response), maker, self._document)
                yield from self._given(self._response(answer, None, {**bulk.header_fields, **context.reply_fields}))
                return
            eager = self.dispatcher.eager
            for batch in cut_batches(objects, size, first=first, eager=eager, whole=maker.is_response):
                position = batch.position if batches else None
                yield from self._given(self._response(maker.response(batch), position, context.reply_fields))
        finally:
            close = getattr(objects, "close", None)
            if close is not None:  # run the `finally` blocks of a handler that was not exhausted
                close()

    def _given(self, reply: Envelope) -> Generator[Envelope, None, None]:
        """Yield a reply, and note if the iterator is closed meanwhile. A handler may raise GeneratorExit too."""
        try:
            yield reply
        except GeneratorExit:
            self.is_closed = True
            raise

    def _response_header(self) -> Header:
        operation = self.operation
        name = operation.response_message or f"{operation.name}Response"
        return self.dispatcher._header(self.request, operation, name, self.address, failed=False)

    def _response(self, body: Any, position: BatchPosition | None, fields: Mapping[str, Any]) -> Envelope:
        header = self._response_header()
        if position is not None:
            header.communication_pattern = CommunicationPatternType.MultipleBatchResponse
            self._number(header, position)
        if fields:
            header = dataclasses.replace(header, **fields)
        return Envelope(header=header, body=body, version=self.version)

    def _document(self, body: Any, position: BatchPosition) -> bytes:
        """Encode one response as a document for the file of a BulkResponse: an envelope with its batch number (C18)."""
        header = self._response_header()
        self._number(header, position)
        return Envelope(header=header, body=body, version=self.version).to_bytes()

    def _number(self, header: Header, position: BatchPosition) -> None:
        size = whole_number(self.request.requested_batch_size)
        # The size is echoed only if it can be a property (C25): otherwise the whole reply could not be sent.
        header.requested_batch_size = size if size is None or 0 <= size <= MAX_INTEGER else None
        header.batch_sequence_number = position.number
        header.batch_sequence_end_of_reply = position.end_of_reply

    def _faults(self, fault: MtosiFault) -> Generator[Envelope, None, None]:
        """Yield the fault; if it cannot be sent, yield another one that says less."""
        problem: Exception = fault
        attempts = ((fault, True), (None, True), (None, False))
        for one, known in attempts:
            try:
                yield self._fault(one or self._internal_error(problem), known=known)
            except Abandoned:
                raise
            except Exception as error:  # noqa: BLE001 - the requestor must not be left without any answer
                self.dispatcher.failures.report(f"a fault of {self.operation.name} cannot be sent", error)
                problem = error
            else:
                return

    def _fault(self, fault: MtosiFault, *, known: bool) -> Envelope:
        """Return a fault: with the operation's exception if `known` and if it declares one, else a bare SOAP fault."""
        operation = self.operation if known else None
        name = operation.fault_message if operation else ""
        header = self.dispatcher._header(self.request, operation, name, self.address, failed=True)
        if operation is None or not operation.fault:
            return _in_version(Envelope.bare_fault(fault, header), self.version)
        in_header = self.dispatcher.profile.fault_in_header
        exception = self.supplier.__service__.load(operation.fault)
        return _in_version(Envelope.for_fault(fault, exception, header, in_soap_header=in_header), self.version)

    def _internal_error(self, error: BaseException) -> MtosiFault:
        """Return the fault for a handler that failed. It names the exception's class, but not its text."""
        return MtosiFault(f"{self.operation.name} failed with {type(error).__name__}", kind="internalError")


def send_all(replies: Generator[Envelope, None, None], send: Callable[[Envelope], object]) -> None:
    """Send the replies of `Dispatcher.dispatch`. A fault replaces a reply that cannot be sent.

    Raises Abandoned: `send` or a handler raised it, to end the request."""
    try:
        reply = next(replies, None)
        while reply is not None:
            try:
                send(reply)
            except Abandoned:
                raise
            except Exception as error:  # noqa: BLE001 - the dispatcher answers with a fault
                reply = _thrown(replies, error)
            else:
                reply = next(replies, None)
    finally:
        replies.close()


def _thrown(replies: Generator[Envelope, None, None], error: Exception) -> Envelope | None:
    try:
        return replies.throw(error)
    except StopIteration:
        return None


def _is_reply(envelope: Envelope) -> bool:
    return envelope.fault is not None or (
        envelope.header is not None and header_text(envelope.header, "msgType") in NO_REQUEST
    )


def _in_version(envelope: Envelope, version: str) -> Envelope:
    envelope.version = version
    return envelope


def _operations_by_tag(services: Sequence[SupplierBase]) -> dict[str, tuple[_Served, ...]]:
    found: dict[str, tuple[_Served, ...]] = {}
    if not isinstance(services, Sequence):
        raise ConfigError(f"services: give a list of them, not {type(services).__name__}")
    for supplier in services:
        if not isinstance(supplier, SupplierBase):
            raise ConfigError(_not_a_service(supplier))
        for tag, operations in supplier.__service__.by_request_tag.items():
            known = found.get(tag, ())
            names = {operation.name for _, operation in known}
            if any(operation.name in names for operation in operations):
                raise ConfigError(f"two services on one destination take {tag}")
            found[tag] = (*known, *((supplier, operation) for operation in operations))
    return found


def _not_a_service(given: object) -> str:
    if isinstance(given, type) and issubclass(given, SupplierBase):
        return f"services: {given.__name__} is a class; give an instance, {given.__name__}()"
    kind = given if isinstance(given, type) else type(given)
    return f"services: {kind.__name__} is not a supplier class; derive it from the stub's Supplier"


class ResponseMaker:
    def __init__(self, service: ServiceInfo, operation: OperationInfo) -> None:
        self._operation = operation
        self._cls = service.load(operation.response)

    def is_response(self, item: object) -> bool:
        return isinstance(item, self._cls)

    def response(self, batch: Batch[Any]) -> Any:
        """Return the response with the objects of a batch. Raises ConfigError: it has no list for them."""
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


class BulkSupplier:
    """A BulkResponse request that may be carried out, with the `terms` that it asks for. Raises MtosiFault: it is
    refused, with the fitting kind if the operation declares it, else `unableToComply`; without `folders` always."""

    def __init__(self, service: ServiceInfo, operation: OperationInfo, header: Header, folders: Folders) -> None:
        self._service = service
        self._operation = operation
        if not folders:
            raise self._refused("BulkResponse is not done by this supplier", "notImplemented")
        compression = header_text(header, "compressionType") or Compression.NO_COMPRESSION
        packing = header_text(header, "packingType") or Packing.NO_PACKING
        if compression not in list(Compression):
            raise self._refused("compressionType is unknown here", "unsupportedCompressionFormat")
        if packing not in list(Packing):
            raise self._refused("packingType is unknown here", "unsupportedPackingFormat")
        uri = header_text(header, "fileLocationURI") or ""
        try:
            self._path: Path = new_file(uri, folders)
        except FileLocationError as error:
            raise self._refused(str(error), "invalidInput") from None
        size = max(whole_number(header.requested_batch_size) or 0, 0)
        self.terms = BulkTerms.of(uri, compression, packing, 0 if packing == Packing.NO_PACKING else size)

    @property
    def header_fields(self) -> Mapping[str, Any]:
        return {
            "file_location_uri": self.terms.file_location_uri,
            "compression_type": CompressionTypeType(value=CompressionEnumType(self.terms.compression)),
            "packing_type": PackingTypeType(value=PackingEnumType(self.terms.packing)),
        }

    def _refused(self, why: str, kind: str) -> MtosiFault:
        cls = self._service.load(self._operation.fault) if self._operation.fault else None
        declared = {field.local for field in cls.__xml__.fields} if cls is not None else set()
        return MtosiFault(why, kind=kind if kind in declared else "unableToComply")

    def write(
        self, batches: Iterable[Batch[Any]], maker: ResponseMaker, document: Callable[[Any, BatchPosition], bytes]
    ) -> None:
        with BulkFile(self._path, self.terms.compression, self.terms.packing) as file:
            for batch in batches:
                file.add(document(maker.response(batch), batch.position))
