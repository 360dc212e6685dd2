"""What a caller gets: the response of a reply, an error, or an iterator over several responses."""

from __future__ import annotations

import dataclasses
import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import IllegalStateError, IncompleteBatchError, MtosiError, MtosiFault, ProtocolError
from mtosi_jms.exchange._pending import PendingExchange
from mtosi_jms.exchange._receiver import Receiver
from mtosi_jms.exchange.messages import in_package
from mtosi_jms.patterns import BatchAssembler, BatchCounts, Place, Standing, read_place, standing_of
from mtosi_jms.service import Call, OperationInfo, objects_in
from mtosi_jms.soap import (
    Envelope,
    Header,
    correlation_id,
    header_text,
    header_texts,
    names_of,
    require_understood,
    tag_of,
)
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType
from mtosi_jms.xmlbind import XmlObject

_PLACE = ("batchSequenceNumber", "batchSequenceEndOfReply")
"""Without the pattern: a reply to an iterator's request names that of the call, whether or not more follow."""
_LEAST = 0.001
"""Seconds, where the time of a call is over: the next request finds that out."""


class Iteration:
    """Where an answer by iterator stands, the way of MTOSI 1.x in the RPC style: the reply has the first batch and an
    iteratorReferenceURI; each request of the operation `...Iterator` with it gets the next one, until there is no
    reference, or an end. `next`: the request for the next batch, if there is one."""

    def __init__(self, call: Call, batch_size: int) -> None:
        self.next: Call | None = None
        self.is_used = False
        self._call = call
        self._size = batch_size
        self._operation = _iterator_of(call)
        self._reference: str | None = None
        self._number: int | None = None
        self._count = 0

    def note(self, envelope: Envelope, response: XmlObject, left: float | None) -> None:
        """Note a reply, and decide on `next`. `left`: seconds left for the whole call. Raises IncompleteBatchError:
        batches are missing; ProtocolError: a batch comes again, or there is neither an object nor an end."""
        header, self.next = envelope.header, None
        if header is None:
            return
        reference = header_text(header, "iteratorReferenceURI")
        if self._operation is None:
            self._check_whole(header, reference)
            return
        place = read_place(header_texts(header, _PLACE))
        number, end = place.number, place.end
        if not self.is_used and (reference is None or end):
            return
        self._check(number, correlation_id(header) or "")
        is_first, self.is_used = not self.is_used, True
        self._count += 1
        if end or (end is None and reference is None):
            return
        if number is None and not is_first and not objects_in(response, self._call.operation.batch_path):
            raise ProtocolError("the iterator gives no objects, and no end", correlation_id(header) or "")
        self._number = number
        self._reference = reference or self._reference
        self.next = self._request(self._operation, left)

    def _check_whole(self, header: Header, reference: str | None) -> None:
        """Refuse a reply whose rest only an iterator gives, where no operation asks for it."""
        place = read_place(header_texts(header, Place.FIELDS))
        if reference is not None and standing_of(place.number, place.end) is Standing.UNPLACED:
            reason = "the rest comes by iterator, and the service has no operation for it"
            raise IncompleteBatchError(correlation_id(header) or "", (), end_seen=False, reason=reason)

    def _check(self, number: int | None, identifier: str) -> None:
        last = self._count if self._number is None else self._number
        if number is None or not self._count or number == last + 1 or (self._number is None and number <= last):
            return
        if number <= last:
            raise ProtocolError(f"the iterator gave batch {number} after batch {last}", identifier)
        missing = range(last + 1, number)
        raise IncompleteBatchError(identifier, missing, end_seen=False, reason=f"the iterator gave batch {number}")

    def _request(self, operation: OperationInfo, left: float | None) -> Call:
        call = self._call
        header: dict[str, Any] = {
            **call.options.header,
            "communication_pattern": CommunicationPatternType.MultipleBatchResponse,
            "requested_batch_size": self._size,
            "iterator_reference_uri": self._reference,
        }
        options = dataclasses.replace(call.options, correlation_id=None, header=header)
        if left is not None:
            options = dataclasses.replace(options, timeout=max(left, _LEAST))
        cls = call.service.load(operation.request)
        request = call.request if type(call.request) is cls else cls()
        return call._replace(operation=operation, request=request, options=options)


def _iterator_of(call: Call) -> OperationInfo | None:
    wanted = call.operation
    found = call.service.by_name.get(f"{wanted.name}Iterator") if call.service.root else None
    same = found is not None and (found.response, found.batch_path) == (wanted.response, wanted.batch_path)
    return found if same else None


log = logging.getLogger(__package__)

Answer: TypeAlias = tuple[Envelope, float | None]
"""The one reply to a request, and the seconds that are left for the whole call; None: no limit."""


class BatchCall:
    """The responses of one MultipleBatchResponse call, for a thread or a coroutine. The exchange is given up when
    nobody refers to this object any more."""

    def __init__(self, receiver: Receiver, call: Call, batch_size: int) -> None:
        self._receiver = receiver
        self._call = call
        self._iteration = Iteration(call, batch_size)
        self._exchange: PendingExchange | None = None
        self._end: weakref.finalize[..., Any] | None = None
        self._turn = threading.Lock()

    def _opened(self, pending: PendingExchange) -> None:
        self._exchange = pending
        self._end = weakref.finalize(self, self._receiver.drop, pending)  # the garbage collector's thread: no lock
        self._end.atexit = False  # the exchange ends with the process

    @contextmanager
    def _closed_by_errors(self) -> Iterator[None]:
        """Give up the exchange at any error, and add to an IncompleteBatchError what had arrived out of turn.

        A second caller is refused without that: else the first one would see the end and take the sequence for
        complete."""
        if not self._turn.acquire(blocking=False):
            raise IllegalStateError("another caller waits for the replies of this request")
        try:
            yield
        except IncompleteBatchError as error:
            self._give_up()
            self._iteration.next = None
            error.batches = dict(self.held)
            raise
        except BaseException:
            self._give_up()
            self._iteration.next = None
            raise
        finally:
            self._turn.release()

    def _decode_response(self, envelope: Envelope, left: float | None) -> XmlObject:
        """Return the response of a reply. If it is the first of an iterator, the exchange is over: no more are sent.
        `left`: seconds that are left for the whole call; None: no limit."""
        response = decode_response(envelope, self._call)
        is_first = not self._iteration.is_used
        self._iteration.note(envelope, response, left)
        if is_first and self._iteration.is_used:
            BatchCall._give_up(self)
        return response

    @property
    def correlation_id(self) -> str:
        return self._exchange.correlation_id if self._exchange is not None else ""

    @property
    def held(self) -> Mapping[int, Any]:
        """The responses that had arrived out of turn when the exchange failed, by batch number; or envelopes, if not
        valid."""
        held = self._exchange.held if self._exchange is not None else {}
        return {number: self._held(envelope) for number, envelope in held.items()}

    def _held(self, envelope: Envelope) -> Any:
        try:
            return response_of(in_package(envelope, self._call.service.root), self._call)
        except MtosiError:
            return envelope

    @property
    def counts(self) -> BatchCounts:
        """How many replies came so far, and of each kind: released, duplicates, conflicts, strays."""
        exchange = self._exchange.state if self._exchange is not None else None
        return exchange.counts if isinstance(exchange, BatchAssembler) else BatchCounts()

    def close(self) -> None:
        self._give_up()
        self._iteration.next = None
        self._receiver.sweep()

    def _give_up(self) -> None:
        """Give up the exchange without taking a lock, because the garbage collector may end a coroutine anywhere."""
        if self._end is not None and self._end.detach() is not None and self._exchange is not None:
            self._receiver.drop(self._exchange)


class Batches(BatchCall, Iterator[XmlObject], Closeable):
    """The responses of one MultipleBatchResponse call: in order, each once, as soon as order allows.

    Iteration raises `MtosiFault` when the turn of the fault has come (C59), `IncompleteBatchError` with the missing
    numbers (P32), `ReplyTimeoutError`, or the `XmlError` of a reply that cannot be read. Only one thread at a time may
    iterate. The exchange is given up when nobody refers to this object any more.
    """

    def __init__(
        self, receiver: Receiver, pending: PendingExchange, call: Call, batch_size: int, ask: Callable[[Call], Answer]
    ) -> None:
        super().__init__(receiver, call, batch_size)
        self._opened(pending)
        self._pending = pending
        self._ask = ask

    def __next__(self) -> XmlObject:
        with self._closed_by_errors():
            if self._iteration.is_used:
                envelope, left = (None, None) if self._iteration.next is None else self._ask(self._iteration.next)
            else:
                envelope = self._receiver.next(self._pending)
                left = self._receiver.time_left(self._pending)
            if envelope is not None:
                return self._decode_response(envelope, left)
        self.close()
        raise StopIteration


def only_reply(envelope: Envelope | None, pending: PendingExchange) -> Envelope:
    if envelope is None:
        raise ProtocolError("the exchange ended without an answer", pending.correlation_id)
    return envelope


def decode_response(envelope: Envelope, call: Call) -> XmlObject:
    """Return the response object of a reply. The call's `on_reply` hook sees the envelope first."""
    envelope = in_package(envelope, call.service.root)
    if call.options.on_reply is not None:
        call.options.on_reply(envelope)
    elif envelope.warnings:
        count, first = len(envelope.warnings), envelope.warnings[0]
        identifier = (correlation_id(envelope.header) if envelope.header is not None else None) or "none"
        text = "a reply of %s with %d warnings, correlation id %s, the first: %s"
        log.warning(text, call.operation.name, count, identifier, first)
    return response_of(envelope, call)


def response_of(envelope: Envelope, call: Call) -> XmlObject:
    """Return the response object of a reply. Raises MtosiFault: the reply is a fault; EnvelopeError: a header block
    must be understood and is not; a caller without classes judges that itself; ProtocolError: the body is not the
    operation's response."""
    header = envelope.header
    if envelope.fault is not None:
        raise envelope.fault
    if envelope.blocks and call.service.root:
        declared = call.service.header_tags(call.operation)
        require_understood(envelope, names_of(call.options.understands) | declared)
    if header is not None and header_text(header, "msgType") == "ERROR":
        raise MtosiFault("the reply has msgType ERROR and no fault", detail=envelope.body, header=header)
    response: Any = envelope.body
    if call.service.root:
        cls = call.service.load(call.operation.response)
        fits, expected, got = isinstance(response, cls), cls.__name__, type(response).__name__
    else:
        expected, got = call.operation.response, tag_of(response)
        fits = expected in ("", got)
    if fits:
        found: XmlObject = response
        return found
    got = "an empty body" if response is None else got
    raise ProtocolError(f"{call.operation.name}: expected {expected}, got {got}", correlation_id(header) or "")


def bulk_reply(envelope: Envelope, response: XmlObject, terms: BulkTerms) -> BulkReply[XmlObject]:
    """Return the reply of a BulkResponse exchange. For fields that its header lacks, take the values of the request."""
    header = envelope.header or Header()
    return BulkReply(
        response=response,
        envelope=envelope,
        file_location_uri=header_text(header, "fileLocationURI") or terms.file_location_uri,
        compression=header_text(header, "compressionType") or terms.compression,
        packing=header_text(header, "packingType") or terms.packing,
    )
