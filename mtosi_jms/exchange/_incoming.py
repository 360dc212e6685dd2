"""What comes in for the open exchanges of a requestor: landed, acknowledged, read, matched, and given to its ticket.

Who receives, and who waits, is the business of `replies`. What is received belongs to an exchange or is an orphan; what
cannot be read is matched by JMSCorrelationID. Nothing is dropped.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from mtosi_jms.exchange._pending import Asked, Ticket
from mtosi_jms.exchange.messages import read_reply, warn
from mtosi_jms.jms import JmsMessage
from mtosi_jms.patterns import (
    Complete,
    Exchange,
    Fail,
    Fault,
    Flag,
    Matched,
    OrphanReply,
    PendingExchanges,
    Release,
    Reply,
    Strategy,
)
from mtosi_jms.patterns import Orphan as LateReply
from mtosi_jms.spool import Landing
from mtosi_jms.transport import Delivery, Session, redeliver

log = logging.getLogger(__name__)

Orphans = Callable[[OrphanReply[Any]], object]

_FOR_CALLERS: Final = (Release, Fault, Fail, Complete)
"""Actions that the caller of an exchange is told."""


class Incoming:
    """The open exchanges of one requestor.

    Args:
        session: that receives.
        strategy: what replies are matched by.
        landing: keeps each message before it is acknowledged; None: nothing is kept.
        on_orphan: called with each reply that belongs to no exchange, outside all locks.
        clock: seconds, not running backwards.
        strict: what is read must fit the schema.
    """

    def __init__(
        self,
        session: Session,
        *,
        strategy: Strategy,
        landing: Landing | None,
        on_orphan: Orphans | None,
        clock: Callable[[], float],
        strict: bool,
    ) -> None:
        self._session = session
        self._strays: deque[OrphanReply[Any]] = deque()
        self._pending: PendingExchanges[Ticket, Any] = PendingExchanges(strategy, on_orphan=self._strays.append)
        self._landing = landing
        self._on_orphan = on_orphan
        self._clock = clock
        self._strict = strict
        self._lock = threading.Lock()
        self._dropped: deque[Ticket] = deque()
        self._package: str | None = None
        self._aside = False
        self._telling = False

    @property
    def orphans(self) -> int:
        """How many replies belonged to no exchange."""
        return sum(self._pending.orphans.values())

    @property
    def pending(self) -> int:
        """How many exchanges wait for replies."""
        with self._lock:
            self._forget_dropped()
            return len(self._pending)

    @property
    def in_flight(self) -> int:
        """About as many, told without waiting for a thread that receives."""
        return len(self._pending) - len(self._dropped)

    def open(self, exchange: Exchange[Any], asked: Asked, package: str, now: float, *, own_id: str | None) -> Ticket:
        """Enter an exchange before its request is sent; its time runs until that is done.

        Args:
            exchange: the state machine, begun `now`.
            asked: what the request asks for.
            package: package whose classes the replies are read with.
            now: by the pump's clock.
            own_id: what a reply may have for JMSCorrelationID in place of the request's message id, where that will
                never be known.

        Raises:
            ConfigError: its correlationId is in use.
        """
        ticket = Ticket(exchange, asked, package, now, awaits_id=own_id is None)
        with self._lock:
            self._forget_dropped()
            self._pending.open(
                ticket.correlation_id, ticket, jms_ids=(own_id,) if own_id else (), awaits_id=ticket.awaits_id
            )
            self._package = package
        return ticket

    def sent(self, ticket: Ticket, message_id: str | None) -> None:
        """The request of an exchange was sent; its time runs again when somebody waits for a reply."""
        ticket.sent(self._clock())
        if not ticket.awaits_id:
            return
        with self._lock:
            self._give(self._pending.sent(ticket.correlation_id, message_id))
        self._tell_orphans()

    def close_ticket(self, ticket: Ticket) -> None:
        """Forget an exchange that has ended, or give it up; a caller that waits for it gets the end, at the latest
        when its time runs out."""
        self.drop(ticket)
        self.sweep()

    def drop(self, ticket: Ticket) -> None:
        """An exchange that nobody asks for any more: forgotten at the next occasion. Takes no lock, so that the
        garbage collector may call it anywhere."""
        self._dropped.append(ticket)

    def sweep(self) -> None:
        """Forget what was dropped."""
        with self._lock:
            self._forget_dropped()
        self._tell_orphans()

    def _tick(self, ticket: Ticket) -> None:
        now = self._clock()
        looked = ticket.look(now)
        actions = ticket.exchange.tick(ticket.time(now))
        if actions:
            self._act(ticket, actions, None)
        if actions or looked:  # who has looked has another time to wait for
            ticket.wake()

    def _handle(self, delivery: Delivery) -> None:
        message = delivery.message
        try:
            landed = self._landing.land(message) if self._landing is not None else None
            delivery.acknowledge()
        except BaseException:
            redeliver(self._session)
            raise
        try:
            reply = self._read(message)
        except BaseException:  # a signal's: the reply is acknowledged, and may be for another caller
            self._match(self._read(message))
            raise
        try:
            if self._landing is not None:
                self._landing.acknowledged(landed, correlation_id=reply.correlation_id, batch_number=reply.batch_number)
        finally:
            self._match(reply)

    def _read(self, message: JmsMessage) -> Reply[Any]:
        return read_reply(message, strict=self._strict, package=self._package)

    def _match(self, reply: Reply[Any]) -> None:
        with self._lock:
            self._forget_dropped()
            found = self._pending.match(reply)
            if isinstance(found, Matched):
                self._give([found])

    def _give(self, matched: Sequence[Matched[Ticket, Any]]) -> None:
        if not matched:
            return
        now = self._clock()
        for found in matched:
            if found.irregular:
                warn(found.reply.payload, "R3c", "the reply does not carry the request's correlationId")
            ticket = found.exchange
            self._act(ticket, ticket.exchange.receive(found.reply, ticket.time(now)), found.reply)
            ticket.wake()  # also where it got nothing: its time may run out sooner now

    def _act(self, ticket: Ticket, actions: Sequence[Any], reply: Reply[Any] | None) -> None:
        for action in actions:
            if isinstance(action, _FOR_CALLERS):
                ticket.inbox.append(action)
                ticket.held = getattr(action, "held", ticket.held)
            elif isinstance(action, LateReply):
                self._pending.orphan(action.reply)
            elif isinstance(action, Flag):
                warn(reply.payload if reply else None, action.rule, action.reason)
            else:
                what = type(action).__name__.lower()
                number = action.reply.batch_number
                log.warning("%s reply for correlationId %s, batch %s", what, ticket.correlation_id, number)

    def _forget(self, ticket: Ticket) -> None:
        if ticket.closed:  # another exchange may have its correlationId by now
            return
        ticket.closed = True
        ticket.exchange.abandon()
        ticket.inbox.clear()
        ticket.wake()
        self._give(self._pending.close(ticket.correlation_id))

    def _forget_dropped(self) -> None:
        while self._dropped:
            self._forget(self._dropped.popleft())

    def _tell_orphans(self) -> None:
        """Give orphans to the hook, outside the lock: it may make calls of its own, and take its time."""
        if not self._strays:
            return
        if not self._aside or self._on_orphan is None:
            with self._lock:
                strays = self._taken_strays()
            self._tell(strays)
            return
        with self._lock:
            start, self._telling = not self._telling, True
        if start:
            threading.Thread(target=self._tell_all, name="mtosi-orphans", daemon=True).start()

    def _tell_all(self) -> None:
        while True:
            with self._lock:
                strays = self._taken_strays()
                self._telling = bool(strays)
            if not strays:
                return
            self._tell(strays)

    def _taken_strays(self) -> list[OrphanReply[Any]]:
        strays = list(self._strays)
        self._strays.clear()
        return strays

    def _tell(self, strays: Sequence[OrphanReply[Any]]) -> None:
        for stray in strays:
            if self._on_orphan is None:
                log.warning("an orphan, correlationId %s: %s", stray.reply.correlation_id, stray.reason)
                continue
            try:
                self._on_orphan(stray)
            except Exception:
                log.exception("the orphan hook failed")
