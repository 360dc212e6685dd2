"""Receiving for many callers over one session: who waits pumps, and gives the others what is theirs (R3e, R3f).

One caller at a time has the pump; when it has got what it waited for, and what is there for the others, it hands the
pump to another that waits. So nothing is taken from the provider before somebody wants it, and a failure surfaces where
somebody waits.

Callers on event loops cannot pump: a loop must not block. A thread pumps for them, one for all and of whatever loop,
from the first that listens until there was none for a while; blocking callers get theirs from it meanwhile.

An exchange's clocks run while its caller waits: the time that the caller takes for what it was given is not the peer's.
And they are looked at only when nothing more is there to be received.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.exchange._incoming import Incoming, Orphans
from mtosi_jms.exchange._pending import Broken, Ticket, reply_of
from mtosi_jms.jms import Destination
from mtosi_jms.patterns import Complete, Strategy
from mtosi_jms.soap import Envelope
from mtosi_jms.spool.journal import Landing
from mtosi_jms.transport import Delivery, Session, dropped, is_open

log = logging.getLogger(__name__)

_FIRST_LOOK: Final = 0.001
_LAST_LOOK: Final = 0.05
"""Seconds between looks at each destination, where replies come in on several; they grow while nothing comes."""
_SPELL: Final = 0.005
"""Seconds that one who pumps goes on for others, with whom its own reply may be waiting."""
_STAY: Final = 5.0
"""Seconds that the receiving thread goes on when no asynchronous caller listens any more."""

_Pumper: TypeAlias = Ticket | threading.Condition
"""Who has the pump, or may have it: a blocking caller, or the receiving thread by what wakes it."""


class _Bed:
    """Where one caller sleeps until it is woken; for the one who wakes, the pump's lock is held."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def sleep(self, seconds: float | None) -> None:
        """Sleeps, not at all where it was woken before."""
        self._lock.acquire(timeout=-1 if seconds is None else min(seconds, threading.TIMEOUT_MAX))

    def wake(self) -> None:
        """Wakes it, or has it not fall asleep."""
        if self._lock.locked():
            self._lock.release()


class ReplyPump(Incoming):
    """Receives from the reply destinations of one requestor, by whichever caller waits.

    Args:
        session: for receiving alone, CLIENT acknowledgement.
        destinations: where replies come in.
        strategy: what replies are matched by.
        landing: keeps each message before it is acknowledged; None: nothing is kept.
        on_orphan: called with each reply that belongs to no exchange, outside all locks: by a blocking caller that
            waits, or by a thread of its own once there were asynchronous ones.
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
        super().__init__(session, strategy=strategy, landing=landing, on_orphan=on_orphan, clock=clock, strict=strict)
        self._consumers = [session.consumer(destination) for destination in destinations]
        self._waiting: dict[Ticket, None] = {}
        self._listening: OrderedDict[Ticket, None] = OrderedDict()
        self._overdue: dict[Ticket, None] = {}
        self._pumper: _Pumper | None = None
        self._receiver: threading.Condition | None = None
        self._idle_since = 0.0
        self._dry = False
        self._closed = False
        self._look = _FIRST_LOOK

    def next(self, ticket: Ticket) -> Envelope | None:
        """The next reply of an exchange when its turn has come, a fault included; None at the end.

        Waits for it, pumping if nobody else does.

        Raises:
            ExchangeError: the exchange ended badly.
            XmlError: the reply cannot be read.
            IllegalStateError: the requestor is closed, or another caller waits for the same exchange.
            TransportError: the provider failed.
            Exception: what the landing raised.
        """
        bed = _Bed()
        with self._lock:
            self._forget_dropped()
            ticket.enter(self._clock(), bed.wake)
            self._waiting[ticket] = None
        try:
            while True:
                action = self._turn(ticket, bed)
                if action is not None:
                    return reply_of(action, ticket)
                self._pump(ticket)
                if self._strays:
                    with self._lock:  # whoever runs the hook cannot be woken to pump
                        del self._waiting[ticket]
                        self._step_down(ticket)
                    self._tell_orphans()
                    with self._lock:
                        self._waiting[ticket] = None
        finally:
            with self._lock:
                self._waiting.pop(ticket, None)
                self._leave(ticket)
                self._step_down(ticket)
            self._tell_orphans()

    def listen(self, ticket: Ticket, wake: Callable[[], object]) -> tuple[Any, float | None]:
        """An asynchronous caller waits for the next reply, until it is given one or its ticket is dropped.

        From now on the orphan hook is called by a thread of its own, never by one that a loop depends on.

        Args:
            ticket: of the exchange.
            wake: called by any thread, inside the pump's lock, when `taken` should be asked.

        Returns:
            As `taken`.

        Raises:
            IllegalStateError: another caller waits for the same exchange, or the requestor is closed.
        """
        with self._lock:
            self._forget_dropped()
            self._aside = True
            ticket.enter(self._clock(), wake)
            self._listening[ticket] = None
            return self._taken(ticket)

    def taken(self, ticket: Ticket) -> tuple[Any, float | None]:
        """What there is for an asynchronous caller, with which it stops waiting; it never blocks for long.

        Returns:
            An action, or None and the seconds after which to ask again at the latest; None: not before `wake`.

        Raises:
            IllegalStateError: the requestor is closed.
        """
        with self._lock:
            return self._taken(ticket)

    def end_of(self, ticket: Ticket) -> Any:
        """What ended an exchange, for an asynchronous caller that drops the ticket next; None: ask `taken`.

        It waits for no thread that receives: nothing more is put into the ticket.
        """
        return ticket.inbox.popleft() if ticket.exchange.finished and ticket.inbox else None

    def __del__(self) -> None:
        if hasattr(self, "_idle_since") and is_open(self._session):
            dropped("a Requestor", self.close)

    def close(self) -> None:
        """End the session; callers that wait get an IllegalStateError."""
        with self._lock:
            self._closed = True
            for ticket in (*self._waiting, *self._listening):
                ticket.wake()
            if self._receiver is not None:
                self._receiver.notify()
        self._session.close()

    def _taken(self, ticket: Ticket) -> tuple[Any, float | None]:
        action = self._at_hand(ticket)
        left = None
        if action is None:
            left = self._time_left(ticket)
            action = self._at_hand(ticket) if left == 0 else None
        if action is not None:
            self._leave(ticket)
        elif self._receiver is None:
            woken = threading.Condition(self._lock)
            self._idle_since = time.monotonic()
            threading.Thread(target=self._receive, args=(woken,), name="mtosi-receive", daemon=True).start()
            self._receiver = woken
        return action, left

    def _forget(self, ticket: Ticket) -> None:
        self._listening.pop(ticket, None)
        super()._forget(ticket)

    def _leave(self, ticket: Ticket) -> None:
        self._listening.pop(ticket, None)
        self._overdue.pop(ticket, None)
        ticket.leave(self._clock())

    def _step_down(self, who: _Pumper) -> None:
        """Wake another one if the pump is free now; also one that only passes on what it was woken for."""
        if self._pumper is who:
            self._pumper = None
        if self._pumper is None:
            if self._receiver is not None and self._receiver is not who:
                self._receiver.notify()
                return
            for other in self._waiting:
                if other is not who:
                    other.wake()
                    return

    def _at_hand(self, ticket: Ticket) -> Any:
        """What there is for a caller, None: nothing yet."""
        if ticket.inbox:
            return ticket.inbox.popleft()
        if ticket.exchange.finished:
            return Complete()
        if self._closed:
            raise IllegalStateError("the requestor is closed")
        return None

    def _turn(self, ticket: Ticket, bed: _Bed) -> Any:
        """What there is for a caller; None: the pump is its own now."""
        while True:
            with self._lock:
                action = self._at_hand(ticket)
                if action is not None:
                    return action
                if self._pumper in (None, ticket):
                    self._pumper = ticket
                    return None
                left = self._time_left(ticket)
            bed.sleep(left)

    def _time_left(self, ticket: Ticket) -> float | None:
        """Seconds that a caller that does not pump has to wait at most; None: until it is woken.

        When its time is up, its exchange ends now if nothing more is there to be received; otherwise as soon as the
        one who pumps finds nothing more.
        """
        left = ticket.patience(self._clock())
        if left != 0:
            return left
        if self._dry:
            self._tick(ticket)
            return left
        self._overdue[ticket] = None
        return None

    def _receive(self, woken: threading.Condition) -> None:
        """Pump for asynchronous callers, until there was none for a while; one thread at a time runs this."""
        try:
            while self._duty(woken):
                try:
                    self._pump(None)
                except Exception as error:  # noqa: BLE001 - raised where somebody waits
                    self._fail_one(error)
                self._tell_orphans()
        finally:
            with self._lock:
                if self._receiver is woken:
                    self._receiver = None
                self._step_down(woken)

    def _duty(self, woken: threading.Condition) -> bool:
        """Whether the receiving thread has to pump; waits for it where a blocking caller pumps."""
        with self._lock:
            while True:
                self._forget_dropped()
                now = time.monotonic()
                if self._listening:
                    self._idle_since = now
                if self._closed or now - self._idle_since >= _STAY:
                    self._receiver = None  # in one with the decision: who listens from now on starts another
                    return False
                if self._pumper in (None, woken):
                    self._pumper = woken
                    return True
                woken.wait(_STAY)

    def _fail_one(self, error: Exception) -> None:
        """Tell the caller that has listened longest; a blocking caller that takes the pump will see for itself."""
        with self._lock:
            self._forget_dropped()
            if self._closed:  # everybody was told
                return
            self._idle_since = -math.inf  # without any listener the thread ends: nobody wants it to try again
            if not self._listening:
                log.warning("receiving failed while nobody waited: %s", error)
                return
            ticket, _ = self._listening.popitem(last=False)
            ticket.inbox.append(Broken(error))
            ticket.wake()

    def _pump(self, ticket: Ticket | None) -> None:
        """Receive, or wait until there is something or the time has run out: this caller's, or the thread's.

        What is there already is received for the others too, for handing the pump over costs more than a message: one
        for each of them at most, since nobody is to be given what he does not wait for, and not for long. What fails
        then fails again for the next one who pumps: it must not cost a caller the reply that he has.
        """
        delivery = self._ready() or self._await(ticket)
        more, latest = len(self._waiting) + len(self._listening), time.monotonic() + _SPELL
        served = False
        while delivery is not None:
            self._look = _FIRST_LOOK
            try:
                self._handle(delivery)
                served = bool(ticket and ticket.inbox)
                more -= 1
                delivery = self._ready() if more > 0 and time.monotonic() < latest else None
            except Exception as error:
                if not served:
                    raise
                log.warning("receiving for others failed: %s", error)
                return

    def _ready(self) -> Delivery | None:
        for consumer in self._consumers:
            delivery = consumer.receive(0)
            if delivery is not None:
                return delivery
        return None

    def _await(self, ticket: Ticket | None) -> Delivery | None:
        with self._lock:
            for overdue in [*self._overdue, *([ticket] if ticket else [])]:
                self._tick(overdue)
            self._overdue.clear()
            if self._closed or (ticket and ticket.inbox):
                return None
            patience = ticket.patience(self._clock()) if ticket else _STAY
            self._dry = True
        if len(self._consumers) > 1:
            patience = self._look if patience is None else min(patience, self._look)
            self._look = min(2 * self._look, _LAST_LOOK)
        try:
            return self._consumers[0].receive(patience)
        finally:
            with self._lock:
                self._dry = False
