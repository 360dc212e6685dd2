"""The requestor: sends requests and hands out replies, one or many, to any number of threads (R3, R4, R6).

It has no thread of its own: see the receiver. For callers on event loops there is `Requestor.aio`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.body_check import Validate, body_check
from mtosi_jms.binding.mapping import DEFAULT_PROFILE
from mtosi_jms.bulk import BulkReply, BulkTerms
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, HeaderError
from mtosi_jms.exchange._pending import PreparedRequest
from mtosi_jms.exchange._receiver import Orphans, Receiver
from mtosi_jms.exchange._request_writer import SIMPLE, RequestWriter, batch_pattern, bulk_pattern
from mtosi_jms.exchange._result import Answer, Batches, bulk_reply, decode_response, only_reply
from mtosi_jms.exchange.arguments import check_connection
from mtosi_jms.jms import Destination
from mtosi_jms.jms.ids import random_id
from mtosi_jms.masking import shown_half_made, without_login
from mtosi_jms.patterns import BatchRules, OnConflict, Strategy, Timeouts
from mtosi_jms.service import Call, check_seconds
from mtosi_jms.soap import Envelope
from mtosi_jms.spool import Landing, OutgoingJournal, watch_outbox
from mtosi_jms.transport import Connection, close_aside, is_open
from mtosi_jms.xmlbind import RawXml, XmlObject

if TYPE_CHECKING:
    from mtosi_jms.exchange._aio_requestor import AsyncRequestor


_STRATEGIES: Final = {"both": Strategy.BOTH, "xml": Strategy.XML, "jms": Strategy.MESSAGE_ID}


class Requestor(Closeable):
    """A requestor OS on one connection; threads may share it.

    Args:
        connection: an open connection; the requestor starts it and does not close it.
        sender_uri: the OS's logical name, the header's senderURI. By R16 it also names the destination of replies.
        reply_to: name of another destination for replies, the header's replyToURI.
        failure_reply_to: name of a destination for failures, the header's failureReplytoURI (P29). The requestor
            receives from it too.
        temporary_reply: receive replies on a temporary queue of the connection instead (R2b, R2e, C15).
        timeouts: time-outs of exchanges; a call may set its own. Time counts only while a caller waits.
        landing: stores each received message durably before it is acknowledged.
        on_orphan: called with each reply that belongs to no exchange, by a thread of its own.
        expect_ack: take a reply without body and batch fields as an acknowledgement, not as the answer (C61).
        persistent: whether the provider must store requests, unless the call or its address says. None: as the profile
            says (O6).
        on_conflict: what happens if a batch number comes again with other content, unless the call says: "error" ends
            the iteration with a ProtocolError, "keep_first" goes on with the first content (P32).
        outbox: stores each request of a one-way operation before it is sent PERSISTENT, until the provider has
            confirmed it. Other requests are not stored: the answer confirms them, and a caller without one asks again.
        validate: whether bodies must fit the schemas (001-S12), see `mtosi_jms.binding.body_check.Validate`.
        linger: seconds that the threads which send and receive for coroutines stay without work.

    Raises:
        ConfigError: both `reply_to` and `temporary_reply` are given, `on_conflict` is unknown, or `sender_uri` is a
            topic and neither of the two is given.
        HeaderError: `sender_uri` is empty.
        NamingError: a reply destination cannot be resolved.
        TransportError: the provider failed.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        sender_uri: str,
        reply_to: str | None = None,
        failure_reply_to: str | None = None,
        temporary_reply: bool = False,
        profile: BindingProfile = DEFAULT_PROFILE,
        timeouts: Timeouts | None = None,
        landing: Landing | None = None,
        on_orphan: Orphans | None = None,
        expect_ack: bool = False,
        persistent: bool | None = None,
        on_conflict: OnConflict = "error",
        outbox: OutgoingJournal | None = None,
        new_id: Callable[[], str] = random_id,
        clock: Callable[[], float] = time.monotonic,
        validate: Validate = "ignore",
        linger: float = 5.0,
    ) -> None:
        check_connection("Requestor", connection)
        check_seconds("linger", linger, zero=True)
        if not sender_uri or not sender_uri.strip():
            raise HeaderError("senderURI", "a requestor needs a logical name")
        if temporary_reply and reply_to:
            raise ConfigError("give reply_to or temporary_reply, not both")
        self.connection = connection
        self.sender_uri = sender_uri
        self.profile = profile
        self.timeouts = timeouts or Timeouts()
        self._making = threading.Lock()
        self._aio: AsyncRequestor | None = None
        names = connection.names
        named = [] if temporary_reply else [names.lookup(reply_to or sender_uri)]
        if named and not reply_to and named[0].is_topic:
            what = "where its replies would arrive: give the name of a queue, or reply_to, or temporary_reply=True"
            raise ConfigError(f"sender_uri: {without_login(sender_uri)} is a topic, {what}")
        failures = [names.lookup(failure_reply_to)] if failure_reply_to else []
        temporary: Destination | None = None
        self._session, receiving = connection.session(), connection.session()
        try:
            if temporary_reply:
                temporary = receiving.temporary_queue()
                named = [temporary]
            replies = [*dict.fromkeys(named + failures)]
            self._receiver = Receiver(
                session=receiving,
                destinations=replies,
                strategy=_STRATEGIES[profile.correlation],
                landing=landing,
                on_orphan=on_orphan,
                clock=clock,
                strict=profile.validation == "strict",
                vendors=profile.header,
                check=body_check(validate),
                linger=linger,
                telemetry=connection.telemetry,
            )
            self._writer = RequestWriter(
                connection=connection,
                session=self._session,
                receiver=self._receiver,
                replies=replies,
                temporary=temporary,
                sender_uri=sender_uri,
                reply_to_uri=names.uri_of(reply_to) if reply_to else None,
                failure_reply_to_uri=names.uri_of(failure_reply_to) if failure_reply_to else None,
                profile=profile,
                timeouts=self.timeouts,
                rules=BatchRules(on_conflict=on_conflict, expect_ack=expect_ack),
                persistent=persistent,
                outbox=outbox,
                new_id=new_id,
                clock=clock,
            )
            watch_outbox(connection.telemetry, outbox)
            connection.start()
        except BaseException:
            self._session.close()
            receiving.close()
            raise

    @shown_half_made
    def __repr__(self) -> str:
        state = "closed" if self._session.is_closed else f"{self.pending} pending"
        return f"<Requestor {without_login(self.sender_uri)}, {state}>"

    @property
    def orphans(self) -> int:
        return self._receiver.orphans

    @property
    def pending(self) -> int:
        return self._receiver.pending

    @property
    def waiting(self) -> int:
        """How many callers, threads and coroutines, wait for a reply now."""
        return self._receiver.waiting

    @property
    def aio(self) -> AsyncRequestor:
        """The same requestor for coroutines; blocking callers and any number of event loops may share it."""
        if self._aio is not None:
            return self._aio
        from mtosi_jms.exchange._aio_requestor import AsyncRequestor  # programs without coroutines do not load asyncio

        with self._making:
            if self._aio is None:
                self._aio = AsyncRequestor(self._receiver, self._writer, self.close)
            return self._aio

    def call(self, call: Call) -> XmlObject | RawXml | None:
        """Carry out one call in the pattern SimpleResponse; see `mtosi_jms.service.Caller`.

        Raises:
            MtosiFault: the supplier answered with a fault.
            ReplyTimeoutError: no answer came in time; whether the supplier got the request is unknown.
            ProtocolError: the answer is not the operation's response.
            XmlError: the answer cannot be read.
            HeaderError, NamingError, EncodeError: the request is not valid; nothing was sent.
            TransportError: the provider failed.
            IllegalStateError: the requestor is closed.
        """
        if call.operation.mep == "one-way":
            self._writer.send_one_way(call)
            return None
        return decode_response(self._only_reply(self._writer.prepare(call, SIMPLE)), call)

    def call_bulk(self, call: Call, terms: BulkTerms) -> BulkReply[XmlObject]:
        """Carry out one call in the pattern BulkResponse: one reply, the data in a file (C18). Experimental. Raises
        what `call` raises, and ConfigError for a one-way operation."""
        envelope = self._only_reply(self._writer.prepare(call, bulk_pattern(call.operation, terms)))
        return bulk_reply(envelope, decode_response(envelope, call), terms)

    def _only_reply(self, prepared: PreparedRequest) -> Envelope:
        pending = self._writer.send(prepared)
        try:
            envelope = self._receiver.next(pending)
        finally:
            self._receiver.close_exchange(pending)
        return only_reply(envelope, pending)

    def call_batches(self, call: Call, batch_size: int) -> Batches:
        """Carry out one call in the pattern MultipleBatchResponse; the request is sent before this returns.

        Raises:
            HeaderError, NamingError, EncodeError: the request is not valid; nothing was sent.
            TransportError: the provider failed.
        """
        pattern = batch_pattern(call.operation, batch_size)
        pending = self._writer.send(self._writer.prepare(call, pattern))
        return Batches(self._receiver, pending, call, batch_size, self._next_of_iterator)

    def _next_of_iterator(self, call: Call) -> Answer:
        prepared = self._writer.prepare(call, SIMPLE, of_iterator=True)
        return self._only_reply(prepared), self._receiver.time_left(prepared.pending)

    def __del__(self) -> None:
        if is_open(getattr(self, "_session", None)):  # the receiver may be in use, and closes itself
            close_aside(self._session.close)

    def close(self) -> None:
        """Close the sessions. Callers that wait get an IllegalStateError. The connection stays open."""
        self._receiver.close()
        self._session.close()
        with self._making:
            if self._aio is not None:
                self._aio.stop_sending()
