"""Receiving for many callers over one session: who waits pumps, and gives the others what is theirs (R3e, R3f).

Each message is landed, if there is a landing, then acknowledged, then read and matched. What cannot be read is matched
by JMSCorrelationID and raised where its caller waits, or goes to the orphan hook; it is never dropped.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from types import TracebackType
from typing import Any, Protocol, Self

from mtosi_jms.errors import ExchangeError, IllegalStateError, MtosiError, MtosiFault, XmlError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.jms.binding import from_jms
from mtosi_jms.patterns import (
    Complete,
    Exchange,
    Fail,
    Fault,
    Flag,
    Matched,
    PendingExchanges,
    Release,
    Reply,
    ReplyType,
)
from mtosi_jms.patterns import Orphan as LateReply
from mtosi_jms.patterns.correlation import OrphanReply
from mtosi_jms.soap import Envelope, correlation_id
from mtosi_jms.transport import Consumer, Session
from mtosi_jms.xmlbind import XmlWarning

log = logging.getLogger(__name__)

Orphans = Callable[[OrphanReply[Any]], object]
_POLL = 0.05
"""Seconds between looks at each destination, where replies come in on several."""


class Landing(Protocol):
    """Where received messages are kept before they are acknowledged; `mtosi_jms.spool.Spool` is one."""

    def land(self, message: JmsMessage) -> Any:
        """Write a message durably; it is safe when this returns."""
        ...

    def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None:
        """The message was acknowledged."""
        ...


class Ticket:
    """One exchange and the replies that were received for it and not yet taken.

    Attributes:
        exchange: the state machine.
        correlation_id: the request's correlationId.
        package: package whose classes the replies are read with.
        warnings: what was irregular in the replies.
    """

    def __init__(self, exchange: Exchange[Any], pump: ReplyPump, package: str) -> None:
        self.exchange = exchange
        self.correlation_id = exchange.correlation_id
        self.package = package
        self.inbox: deque[Any] = deque()
        self.warnings: list[XmlWarning] = []
        self._pump = pump

    def replies(self, pump: ReplyPump) -> Iterator[Envelope]:
        """The envelopes in order; raises when the exchange ends badly."""
        while True:
            action = pump.wait(self)
            if isinstance(action, Release):
                if isinstance(action.payload, Envelope):
                    yield action.payload
                    continue
                raise action.payload
            if isinstance(action, Fault):
                raise _raised(action.payload)
            if isinstance(action, Fail):
                raise action.error
            return

    def close(self) -> None:
        """Give the exchange up if it has not ended."""
        self.exchange.abandon()
        self._pump.close_ticket(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _raised(payload: Any) -> MtosiError:
    if isinstance(payload, Envelope):
        return payload.fault or MtosiFault("the reply has msgType ERROR and no fault", header=payload.header)
    if isinstance(payload, MtosiError):
        return payload
    return ExchangeError(f"unexpected reply: {type(payload).__name__}")


class ReplyPump:
    """Receives from the reply destinations of one requestor, by whichever caller waits.

    Args:
        session: for receiving alone, CLIENT acknowledgement.
        destinations: where replies come in.
        pending: the exchanges that wait.
        landing: keeps each message before it is acknowledged; None: nothing is kept.
        clock: seconds, not running backwards.
        strict: what is read must fit the schema.
    """

    def __init__(
        self,
        session: Session,
        destinations: Sequence[Destination],
        pending: PendingExchanges[Ticket, Any],
        *,
        landing: Landing | None,
        clock: Callable[[], float],
        strict: bool,
    ) -> None:
        self._session = session
        self._consumers = [session.consumer(destination) for destination in destinations]
        self._pending = pending
        self._landing = landing
        self._clock = clock
        self._strict = strict
        self._changed = threading.Condition()
        self._pumping = False
        self._closed = False

    @property
    def orphans(self) -> int:
        """How many replies belonged to no exchange."""
        return sum(self._pending.orphans.values())

    def open(self, ticket: Ticket) -> None:
        """Enter an exchange before its request is sent.

        Raises:
            ConfigError: its correlationId is in use.
        """
        with self._changed:
            self._pending.open(ticket.correlation_id, ticket)

    def sent(self, ticket: Ticket, message_id: str | None) -> None:
        """The request of an exchange was sent."""
        with self._changed:
            self._give(self._pending.sent(ticket.correlation_id, message_id))

    def close_ticket(self, ticket: Ticket) -> None:
        """Forget an exchange that has ended or was given up."""
        with self._changed:
            self._give(self._pending.close(ticket.correlation_id))

    def wait(self, ticket: Ticket) -> Any:
        """The next action of an exchange, pumping if nobody else does.

        Raises:
            IllegalStateError: the requestor was closed meanwhile.
            TransportError: the provider failed.
        """
        resume = getattr(ticket.exchange, "resume", None)
        if resume is not None and not ticket.inbox:
            resume(self._clock())  # the time that the caller took for the last batch is not the peer's
        while True:
            with self._changed:
                action = self._next(ticket)
                if action is not None:
                    return action
                if self._pumping:
                    self._changed.wait(self._patience(ticket))
                    continue
                self._pumping = True
            try:
                self._pump_once(self._patience(ticket))
            finally:
                with self._changed:
                    self._pumping = False
                    self._changed.notify_all()

    def _next(self, ticket: Ticket) -> Any:
        if not ticket.inbox:
            self._act(ticket, ticket.exchange.tick(self._clock()))
        if ticket.inbox:
            return ticket.inbox.popleft()
        if self._closed:
            raise IllegalStateError("the requestor is closed")
        if ticket.exchange.finished:
            return Complete()
        return None

    def _patience(self, ticket: Ticket) -> float | None:
        deadline = ticket.exchange.deadline
        return None if deadline is None else max(0.0, deadline[0] - self._clock())

    def _pump_once(self, patience: float | None) -> None:
        """Receive one message, at most, within the time that the pumping caller has."""
        for consumer in self._consumers:
            if self._receive(consumer, 0):
                return
        if len(self._consumers) == 1:
            self._receive(self._consumers[0], patience)
        else:
            self._receive(self._consumers[0], _POLL if patience is None else min(patience, _POLL))

    def _receive(self, consumer: Consumer, timeout: float | None) -> bool:
        delivery = consumer.receive(timeout)
        if delivery is None:
            return False
        message = delivery.message
        landed = self._landing.land(message) if self._landing is not None else None
        delivery.acknowledge()
        reply = self._read(message)
        if self._landing is not None:
            self._landing.acknowledged(landed, correlation_id=reply.correlation_id, batch_number=reply.batch_number)
        with self._changed:
            found = self._pending.match(reply)
            if isinstance(found, Matched):
                self._give([found])
        return True

    def _read(self, message: JmsMessage) -> Reply[Any]:
        """What correlation and the patterns need of a message; in place of an unreadable envelope the error."""
        try:
            envelope = from_jms(message, strict=self._strict)
        except XmlError as error:
            log.warning("a reply that cannot be read, JMSCorrelationID %s: %s", message.correlation_id, error)
            return Reply(payload=error, jms_correlation_id=message.correlation_id, message_type=ReplyType.ERROR)
        header = envelope.header
        if envelope.warnings:
            log.info("reply with %d warnings, the first: %s", len(envelope.warnings), envelope.warnings[0])
        failed = envelope.fault is not None or (header is not None and header.msg_type == "ERROR")
        return Reply(
            payload=envelope,
            correlation_id=correlation_id(header),
            jms_correlation_id=message.correlation_id,
            message_type=ReplyType.ERROR if failed else ReplyType.RESPONSE,
            batch_number=header.batch_sequence_number if header is not None else None,
            end_of_reply=header.batch_sequence_end_of_reply if header is not None else None,
            body_digest=blake2b(message.body, digest_size=16).digest(),
            has_body=envelope.body is not None or envelope.fault is not None,
        )

    def _give(self, matched: Sequence[Matched[Ticket, Any]]) -> None:
        for found in matched:
            if found.irregular:
                found.exchange.warnings.append(
                    XmlWarning("R3c", "the reply does not carry the request's correlationId")
                )
            self._act(found.exchange, found.exchange.exchange.receive(found.reply, self._clock()))
        if matched:
            self._changed.notify_all()

    def _act(self, ticket: Ticket, actions: Sequence[Any]) -> None:
        for action in actions:
            if isinstance(action, Release | Fault | Fail | Complete):
                ticket.inbox.append(action)
            elif isinstance(action, LateReply):
                self._pending.orphan(action.reply)
            elif isinstance(action, Flag):
                ticket.warnings.append(XmlWarning(action.rule, action.reason))
            else:
                what = type(action).__name__.lower()
                number = action.reply.batch_number
                ticket.warnings.append(XmlWarning("P32", f"{what} reply, batch {number}: not handed out"))
                log.warning("%s reply for correlationId %s, batch %s", what, ticket.correlation_id, number)

    def close(self) -> None:
        """End the session; callers that wait get an IllegalStateError."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._session.close()
