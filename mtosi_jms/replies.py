"""Receiving for many callers over one session: who waits pumps, and gives the others what is theirs (R3e, R3f).

One caller at a time has the pump; when it has got what it waited for it hands the pump to another that waits. Each
message is landed, if there is a landing, then acknowledged, then read and matched. What cannot be read is matched by
JMSCorrelationID and raised where its caller waits, or goes to the orphan hook; it is never dropped.

An exchange's clocks run while its caller waits: the time that the caller takes for what it was given is not the peer's.
And they are looked at only when nothing more is there to be received.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from mtosi_jms.errors import ExchangeError, IllegalStateError, MtosiError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.messages import have_again, read_reply, warn
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
)
from mtosi_jms.patterns import Orphan as LateReply
from mtosi_jms.patterns.correlation import OrphanReply, Strategy
from mtosi_jms.soap import Envelope
from mtosi_jms.transport import Delivery, Session

log = logging.getLogger(__name__)

Orphans = Callable[[OrphanReply[Any]], object]
_FIRST_LOOK: Final = 0.001
_LAST_LOOK: Final = 0.05
"""Seconds between looks at each destination, where replies come in on several; they grow while nothing comes."""


class Landing(Protocol):
    """Where received messages are kept before they are acknowledged; `mtosi_jms.DurableLanding` is one."""

    def land(self, message: JmsMessage) -> Any:
        """Write a message durably; it is safe when this returns. What it raises goes to whoever waits, and the
        message is not acknowledged."""
        ...

    def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None:
        """The message was acknowledged."""
        ...


class Ticket:
    """One exchange, and what was received for it and not yet taken.

    Attributes:
        exchange: the state machine.
        package: package whose classes the replies are read with.
        inbox: actions for its caller.
        held: envelopes that had arrived when the exchange ended badly, and never had their turn, by batch number.
        wake: notified when there is something for its caller to do.
    """

    def __init__(self, exchange: Exchange[Any], package: str, lock: threading.Lock, now: float) -> None:
        self.exchange = exchange
        self.package = package
        self.inbox: deque[Any] = deque()
        self.held: Mapping[int, Any] = {}
        self.wake = threading.Condition(lock)
        self._left: float | None = now
        self._away = 0.0

    @property
    def correlation_id(self) -> str:
        """The request's correlationId."""
        return self.exchange.correlation_id

    def enter(self, now: float) -> None:
        """Its caller waits from now on."""
        if self._left is not None:
            self._away += now - self._left
        self._left = None

    def leave(self, now: float) -> None:
        """Its caller has other things to do from now on."""
        self._left = now

    def time(self, now: float) -> float:
        """The exchange's own time."""
        return (now if self._left is None else self._left) - self._away

    def patience(self, now: float) -> float | None:
        """Seconds until one of its clocks runs out; None: never."""
        deadline = self.exchange.deadline
        return None if deadline is None else max(0.0, deadline[0] - self.time(now))


class ReplyPump:
    """Receives from the reply destinations of one requestor, by whichever caller waits.

    Args:
        session: for receiving alone, CLIENT acknowledgement.
        destinations: where replies come in.
        strategy: what replies are matched by.
        landing: keeps each message before it is acknowledged; None: nothing is kept.
        on_orphan: called with each reply that belongs to no exchange, by a caller that waits and outside all locks.
        clock: seconds, not running backwards.
        strict: what is read must fit the schema.
    """

    def __init__(
        self,
        session: Session,
        destinations: Sequence[Destination],
        *,
        strategy: Strategy,
        landing: Landing | None,
        on_orphan: Orphans | None,
        clock: Callable[[], float],
        strict: bool,
    ) -> None:
        self._session = session
        self._consumers = [session.consumer(destination) for destination in destinations]
        self._strays: deque[OrphanReply[Any]] = deque()
        self._pending: PendingExchanges[Ticket, Any] = PendingExchanges(strategy, on_orphan=self._strays.append)
        self._landing = landing
        self._on_orphan = on_orphan
        self._clock = clock
        self._strict = strict
        self._lock = threading.Lock()
        self._waiting: dict[Ticket, None] = {}
        self._pumper: Ticket | None = None
        self._dry = False
        self._closed = False
        self._dropped: deque[Ticket] = deque()
        self._package: str | None = None
        self._look = _FIRST_LOOK

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

    def open(self, exchange: Exchange[Any], package: str, now: float) -> Ticket:
        """Enter an exchange before its request is sent.

        Args:
            exchange: the state machine, begun `now`.
            package: package whose classes the replies are read with.
            now: by the pump's clock.

        Raises:
            ConfigError: its correlationId is in use.
        """
        ticket = Ticket(exchange, package, self._lock, now)
        with self._lock:
            self._forget_dropped()
            self._pending.open(ticket.correlation_id, ticket)
            self._package = package
        return ticket

    def sent(self, ticket: Ticket, message_id: str | None) -> None:
        """The request of an exchange was sent."""
        with self._lock:
            self._give(self._pending.sent(ticket.correlation_id, message_id))
        self._tell_orphans()

    def close_ticket(self, ticket: Ticket) -> None:
        """Forget an exchange that has ended, or give it up; a thread that waits for it gets the end, at the latest
        when its time runs out."""
        with self._lock:
            self._forget(ticket)
        self._tell_orphans()

    def drop(self, ticket: Ticket) -> None:
        """An exchange that nobody can ask for any more: forgotten at the next occasion. Takes no lock, so that the
        garbage collector may call it anywhere."""
        self._dropped.append(ticket)

    def next(self, ticket: Ticket) -> Envelope | None:
        """The next reply of an exchange when its turn has come, a fault included; None at the end.

        Waits for it, pumping if nobody else does.

        Raises:
            ExchangeError: the exchange ended badly.
            XmlError: the reply cannot be read.
            IllegalStateError: the requestor is closed, or another thread waits for the same exchange.
            TransportError: the provider failed.
            Exception: what the landing raised.
        """
        self._enter(ticket)
        try:
            while True:
                with self._lock:
                    action = self._turn(ticket)
                if action is not None:
                    return _reply_of(action)
                self._pump(ticket)
                self._tell_orphans(ticket)
        finally:
            self._leave(ticket)
            self._tell_orphans()

    def close(self) -> None:
        """End the session; callers that wait get an IllegalStateError."""
        with self._lock:
            self._closed = True
            for ticket in self._waiting:
                ticket.wake.notify()
        self._session.close()

    def _enter(self, ticket: Ticket) -> None:
        with self._lock:
            self._forget_dropped()
            if ticket in self._waiting:
                raise IllegalStateError("another thread waits for the replies of this request")
            self._waiting[ticket] = None
            ticket.enter(self._clock())

    def _leave(self, ticket: Ticket) -> None:
        with self._lock:
            del self._waiting[ticket]
            ticket.leave(self._clock())
            self._step_down(ticket)

    def _step_down(self, ticket: Ticket) -> None:
        """Wake another caller if the pump is free now; also one that only passes on what it was woken for."""
        if self._pumper is ticket:
            self._pumper = None
        if self._pumper is None:
            for other in self._waiting:
                if other is not ticket:
                    other.wake.notify()
                    return

    def _turn(self, ticket: Ticket) -> Any:
        """What there is for a caller; None: the pump is its own now."""
        while True:
            if ticket.inbox:
                return ticket.inbox.popleft()
            if ticket.exchange.finished:
                return Complete()
            if self._closed:
                raise IllegalStateError("the requestor is closed")
            if self._pumper in (None, ticket):
                self._pumper = ticket
                return None
            patience = ticket.patience(self._clock())
            if patience == 0 and self._dry:
                self._tick(ticket)
            else:
                ticket.wake.wait(patience or None)  # with no time left: until the one who pumps finds nothing more

    def _pump(self, ticket: Ticket) -> None:
        """Receive one message, or wait until there is one or this caller's time has run out."""
        delivery = self._ready() or self._await(ticket)
        if delivery is not None:
            self._look = _FIRST_LOOK
            self._handle(delivery)

    def _ready(self) -> Delivery | None:
        for consumer in self._consumers:
            delivery = consumer.receive(0)
            if delivery is not None:
                return delivery
        return None

    def _await(self, ticket: Ticket) -> Delivery | None:
        with self._lock:
            for waiting in self._waiting:
                self._tick(waiting)
            if ticket.inbox or self._closed:
                return None
            patience = ticket.patience(self._clock())
            self._dry = True
        if len(self._consumers) > 1:
            patience = self._look if patience is None else min(patience, self._look)
            self._look = min(2 * self._look, _LAST_LOOK)
        try:
            return self._consumers[0].receive(patience)
        finally:
            with self._lock:
                self._dry = False

    def _tick(self, ticket: Ticket) -> None:
        self._act(ticket, ticket.exchange.tick(ticket.time(self._clock())), None)

    def _handle(self, delivery: Delivery) -> None:
        message = delivery.message
        try:
            landed = self._landing.land(message) if self._landing is not None else None
            delivery.acknowledge()
        except BaseException:
            have_again(self._session)
            raise
        reply = read_reply(message, strict=self._strict, package=self._package)
        try:
            if self._landing is not None:
                self._landing.acknowledged(landed, correlation_id=reply.correlation_id, batch_number=reply.batch_number)
        finally:
            with self._lock:
                found = self._pending.match(reply)
                if isinstance(found, Matched):
                    self._give([found])

    def _give(self, matched: Sequence[Matched[Ticket, Any]]) -> None:
        now = self._clock()
        for found in matched:
            if found.irregular:
                warn(found.reply.payload, "R3c", "the reply does not carry the request's correlationId")
            ticket = found.exchange
            self._act(ticket, ticket.exchange.receive(found.reply, ticket.time(now)), found.reply)

    def _act(self, ticket: Ticket, actions: Sequence[Any], reply: Reply[Any] | None) -> None:
        for action in actions:
            if isinstance(action, Release | Fault | Fail | Complete):
                ticket.inbox.append(action)
                ticket.held = getattr(action, "held", ticket.held)
                ticket.wake.notify()
            elif isinstance(action, LateReply):
                self._pending.orphan(action.reply)
            elif isinstance(action, Flag):
                warn(reply.payload if reply else None, action.rule, action.reason)
            else:
                what = type(action).__name__.lower()
                number = action.reply.batch_number
                log.warning("%s reply for correlationId %s, batch %s", what, ticket.correlation_id, number)

    def _forget(self, ticket: Ticket) -> None:
        ticket.exchange.abandon()
        ticket.inbox.clear()
        ticket.wake.notify()
        self._give(self._pending.close(ticket.correlation_id))

    def _forget_dropped(self) -> None:
        while self._dropped:
            self._forget(self._dropped.popleft())

    def _tell_orphans(self, ticket: Ticket | None = None) -> None:
        """Give orphans to the hook, outside the lock and without the pump: it may make calls of its own."""
        if not self._strays:
            return
        with self._lock:
            strays = list(self._strays)
            self._strays.clear()
            if ticket is not None:
                self._step_down(ticket)
        for stray in strays:
            if self._on_orphan is None:
                log.warning("an orphan, correlationId %s: %s", stray.reply.correlation_id, stray.reason)
                continue
            try:
                self._on_orphan(stray)
            except Exception:
                log.exception("the orphan hook failed")


def _reply_of(action: Any) -> Envelope | None:
    """The envelope of an action; raises what is none."""
    if isinstance(action, Complete):
        return None
    if isinstance(action, Fail):
        raise action.error
    payload = action.payload
    if isinstance(payload, Envelope):
        return payload
    raise payload if isinstance(payload, MtosiError) else ExchangeError(f"unexpected reply: {type(payload).__name__}")
