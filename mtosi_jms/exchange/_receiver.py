"""The receiver: receives replies for all callers of a requestor, over one session (R3e, R3f).

One waiting caller at a time receives for all, and then hands the role on. So no reply is taken from the provider before
somebody waits for it, and an error is raised where somebody waits. Callers on event loops must not block: one thread
receives for them, while there are any.

Each message is stored in the landing, acknowledged, read and matched with its exchange: by correlationId, else by
JMSCorrelationID. Clocks run only while a caller waits. See docs/design/exchange.md."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from mtosi_jms.binding.profile import BodyCheck
from mtosi_jms.errors import IllegalStateError, MtosiError
from mtosi_jms.exchange._pending import PendingExchange, RequestInfo, reply_of
from mtosi_jms.exchange.messages import read_reply, warn
from mtosi_jms.exchange.worker import Worker
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.patterns import (
    Complete,
    Conflict,
    Duplicate,
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
    Stray,
)
from mtosi_jms.patterns import Orphan as LateReply
from mtosi_jms.soap import Envelope
from mtosi_jms.spool import Landing
from mtosi_jms.telemetry import Count, Telemetry
from mtosi_jms.transport import Delivery, Session, Wakeup, dropped, is_open, redeliver

log = logging.getLogger(__package__)

Orphans = Callable[[OrphanReply[Any]], object]
"""Called with each reply that belongs to no exchange."""

_FOR_CALLERS: Final = (Release, Fault, Fail, Complete)
"""Actions that go to the caller of an exchange."""
_FIRST_LOOK: Final = 0.001
_LAST_LOOK: Final = 0.05
"""Seconds between polls if there are several reply destinations; the pause doubles while nothing comes."""
_SPELL: Final = 0.005
"""Seconds that a caller goes on receiving for others, counted from its first message."""

_Holder: TypeAlias = PendingExchange | threading.Condition
"""Who receives for all: a blocking caller, or the receiving thread, named by the condition that wakes it."""


@dataclass(kw_only=True, eq=False, repr=False)
class Receiver:
    """Receives from the reply destinations of one requestor. `from_zero`: the destinations of requests to which a batch
    0 has come, whose suppliers count from 0 (C23)."""

    session: Session
    destinations: Sequence[Destination]
    strategy: Strategy
    landing: Landing | None
    on_orphan: Orphans | None
    clock: Callable[[], float]
    strict: bool
    vendors: str
    check: BodyCheck | None
    linger: float
    telemetry: Telemetry | None

    def __post_init__(self) -> None:
        self._orphaned: deque[OrphanReply[Any]] = deque()
        self._exchanges: PendingExchanges[PendingExchange, Any] = PendingExchanges(
            self.strategy, on_orphan=self._orphaned.append
        )
        self.from_zero: set[str] = set()
        self._lock = threading.Lock()
        self._dropped: deque[PendingExchange] = deque()
        self._package: str | None = None
        self._orphan_hook = Worker("mtosi-orphans", "the requestor", linger=0.0)
        self._consumers = [self.session.consumer(destination) for destination in self.destinations]
        self._waiting: dict[PendingExchange, None] = {}
        self._listening: OrderedDict[PendingExchange, None] = OrderedDict()
        self._overdue: dict[PendingExchange, None] = {}
        self._holder: _Holder | None = None
        self._wakeup: threading.Condition | None = None
        self._idle_since = 0.0
        self._dry = False
        self._closed = False
        self._look = _FIRST_LOOK

    @property
    def orphans(self) -> int:
        return sum(self._exchanges.orphans.values())

    @property
    def pending(self) -> int:
        with self._lock:
            self._forget_dropped()
            return len(self._exchanges)

    @property
    def waiting(self) -> int:
        with self._lock:
            self._forget_dropped()
            return len(self._waiting) + len(self._listening)

    @property
    def in_flight(self) -> int:
        """The approximate number of pending exchanges, without taking the lock."""
        return len(self._exchanges) - len(self._dropped)

    def open(
        self, exchange: Exchange[Any], request: RequestInfo, package: str, now: float, *, own_id: str | None
    ) -> PendingExchange:
        """Register an exchange before its request is sent. Its time runs until then.

        Replies are read with the classes of `package`. `own_id`: what a reply may carry as JMSCorrelationID, where the
        provider never tells the message id. Raises ConfigError: another exchange uses the same correlationId."""
        awaits_id = own_id is None
        pending = PendingExchange(exchange, request, package, now, awaits_id=awaits_id, telemetry=self.telemetry)
        with self._lock:
            self._forget_dropped()
            try:
                self._exchanges.open(
                    pending.correlation_id,
                    pending,
                    jms_ids=(own_id,) if own_id else (),
                    awaits_id=awaits_id,
                    supplier=str(request.destination),
                )
            except BaseException as error:
                pending.report(type(error).__name__, now, error)
                raise
            self._package = package
        return pending

    def sent(self, pending: PendingExchange, message_id: str | None) -> None:
        """Note that the request of an exchange was sent. Its time stops until somebody waits for a reply."""
        pending.sent(self.clock())
        if pending.publication is not None:
            pending.publication.sent(message_id)
        if not pending.awaits_id:
            return
        with self._lock:
            self._give(self._exchanges.sent(pending.state.correlation_id, message_id))
        if self._orphaned:
            self._report_orphans()

    def time_left(self, pending: PendingExchange) -> float | None:
        return pending.time_left(self.clock())

    def close_exchange(self, pending: PendingExchange) -> None:
        """Forget an exchange that has ended, or give it up. A caller that waits for it learns that at its time-out at
        the latest."""
        self.drop(pending)
        self.sweep()

    def drop(self, pending: PendingExchange) -> None:
        """Mark an exchange that nobody needs any more, to be forgotten at the next occasion. This takes no lock, so
        that the garbage collector may call it anywhere."""
        self._dropped.append(pending)

    def sweep(self) -> None:
        with self._lock:
            self._forget_dropped()
        if self._orphaned:
            self._report_orphans()

    def next(self, pending: PendingExchange) -> Envelope | None:
        """Return the next reply of an exchange when its turn has come, also a fault; None at the end.

        Raises what ended the exchange, IllegalStateError: the requestor is closed, or another caller waits;
        TransportError: the provider failed; or what the landing raised."""
        event = Wakeup()
        with self._lock:
            self._forget_dropped()
            pending.enter(self.clock(), event.set)
            self._waiting[pending] = None
        try:
            while True:
                action = self._turn(pending, event)
                if action is not None:
                    return reply_of(action, pending)
                self._receive(pending)
                if self._orphaned:
                    self._report_orphans()
        finally:
            with self._lock:
                self._waiting.pop(pending, None)
                self._leave(pending)
                self._step_down(pending)
            if self._orphaned:
                self._report_orphans()

    def listen(self, pending: PendingExchange, wake: Callable[[], object]) -> tuple[Any, float | None]:
        """Register an asynchronous caller, until it gets a reply or its exchange is dropped. `wake` is called by any
        thread, with the lock held, when the caller should call `taken`. Returns and raises as that does."""
        with self._lock:
            self._forget_dropped()
            pending.enter(self.clock(), wake)
            self._listening[pending] = None
            return self._taken(pending)

    def taken(self, pending: PendingExchange) -> tuple[Any, float | None]:
        """Return the next action for an asynchronous caller, which then no longer waits; or None and the seconds after
        which to call again, where None means to wait for `wake`. Raises IllegalStateError: the requestor is closed."""
        with self._lock:
            return self._taken(pending)

    def end_of(self, pending: PendingExchange) -> Any:
        """Return what ended an exchange; None: call `taken`. Takes no lock: nothing is added to an exchange that has
        ended."""
        return pending.inbox.popleft() if pending.state.finished and pending.inbox else None

    def __del__(self) -> None:
        if hasattr(self, "_idle_since") and is_open(self.session):
            dropped("a Requestor", self.close)

    def close(self) -> None:
        with self._lock:  # before the session: who waits shall learn that the requestor is closed
            self._closed = True
            for pending in (*self._waiting, *self._listening):
                pending.wake()
            if self._wakeup is not None:
                self._wakeup.notify()
        self.session.close()

    def _taken(self, pending: PendingExchange) -> tuple[Any, float | None]:
        action = self._at_hand(pending)
        left = None
        if action is None:
            left = self._time_left(pending)
            action = self._at_hand(pending) if left == 0 else None
        if action is not None:
            self._leave(pending)
        elif self._wakeup is None:
            woken = threading.Condition(self._lock)
            self._idle_since = time.monotonic()
            threading.Thread(target=self._receive_for_loops, args=(woken,), name="mtosi-receive", daemon=True).start()
            self._wakeup = woken
        return action, left

    def _leave(self, pending: PendingExchange) -> None:
        self._listening.pop(pending, None)
        self._overdue.pop(pending, None)
        pending.leave(self.clock())

    def _step_down(self, who: _Holder) -> None:
        """Stop receiving for all, and wake another caller if nobody receives now; so does who was woken and leaves."""
        if self._holder is who:
            self._holder = None
        if self._holder is None:
            if self._wakeup is not None and self._wakeup is not who:
                self._wakeup.notify()
                return
            for other in self._waiting:
                if other is not who:
                    other.wake()
                    return

    def _at_hand(self, pending: PendingExchange) -> Any:
        if pending.inbox:
            return pending.inbox.popleft()
        if pending.state.finished:
            return Complete()
        if self._closed:
            raise IllegalStateError("the requestor is closed")
        return None

    def _turn(self, pending: PendingExchange, event: Wakeup) -> Any:
        """Return the next action for a caller; None: the caller has to receive for all now."""
        while True:
            with self._lock:
                action = self._at_hand(pending)
                if action is not None:
                    return action
                if self._holder in (None, pending):
                    self._holder = pending
                    return None
                left = self._time_left(pending)
            event.wait(left)

    def _time_left(self, pending: PendingExchange) -> float | None:
        """Return the seconds that a caller which does not receive waits at most; None: until it is woken.

        When its time is up, its exchange ends as soon as nothing is left to receive."""
        left = pending.patience(self.clock())
        if left != 0:
            return left
        if self._dry:
            self._tick(pending)
            return left
        self._overdue[pending] = None
        return None

    def _receive_for_loops(self, woken: threading.Condition) -> None:
        """Receive for asynchronous callers, until there was none for a while. One thread at a time runs this."""
        try:
            while self._duty(woken):
                try:
                    self._receive(None)
                except Exception as error:  # noqa: BLE001 - raised where somebody waits
                    self._fail_one(error)
                self._report_orphans()
        finally:
            with self._lock:
                if self._wakeup is woken:
                    self._wakeup = None
                self._step_down(woken)

    def _duty(self, woken: threading.Condition) -> bool:
        """Return whether the thread has to receive. Waits while a blocking caller receives."""
        with self._lock:
            while True:
                self._forget_dropped()
                now = time.monotonic()
                if self._listening:
                    self._idle_since = now
                if self._closed or now - self._idle_since >= self.linger:
                    self._wakeup = None  # under the same lock: a caller that listens from now on starts another thread
                    return False
                if self._holder in (None, woken):
                    self._holder = woken
                    return True
                woken.wait(self.linger)

    def _fail_one(self, error: Exception) -> None:
        """Pass an error to the caller that has listened longest. A blocking caller that receives next gets its own."""
        with self._lock:
            self._forget_dropped()
            if self._closed:  # every caller has its error
                return
            self._idle_since = -math.inf  # the thread ends if nobody listens: then nobody needs another try
            if not self._listening:
                log.warning("receiving failed while nobody waited: %s: %s", type(error).__name__, error)
                return
            pending, _ = self._listening.popitem(last=False)
            pending.inbox.append(Fail(error))  # type: ignore[arg-type] # of the provider, say
            pending.wake()

    def _receive(self, pending: PendingExchange | None) -> None:
        """Receive until a message comes, or the time of the caller, or of the thread if None, has run out.

        Messages that are ready are received for others too, one per waiting caller, because passing the role on costs
        more. If that fails, this caller keeps its reply; the next one that receives gets the error."""
        patience = pending.patience(self.clock()) if pending is not None and self._is_alone() else 0.0
        delivery = (self._ready() if patience == 0.0 else None) or self._await(pending, patience)
        more, latest = len(self._waiting) + len(self._listening), time.monotonic() + _SPELL
        served = False
        while delivery is not None:
            self._look = _FIRST_LOOK
            try:
                self._handle(delivery)
                served = bool(pending and pending.inbox)
                more -= 1
                delivery = self._ready() if more > 0 and time.monotonic() < latest else None
            except Exception as error:
                if not served:
                    raise
                log.warning("receiving for others failed: %s: %s", type(error).__name__, error)
                return

    def _is_alone(self) -> bool:
        """Whether no message has to be looked for before the clocks: nobody else waits, whose time might be over."""
        return not self._listening and len(self._waiting) == len(self._consumers) == 1

    def _ready(self) -> Delivery | None:
        for consumer in self._consumers:
            delivery = consumer.receive(0)
            if delivery is not None:
                return delivery
        return None

    def _await(self, pending: PendingExchange | None, patience: float | None) -> Delivery | None:
        """Receive for that many seconds; 0: nothing is there, so that clocks may run out."""
        with self._lock:
            if patience == 0.0:
                for overdue in [*self._overdue, *([pending] if pending else [])]:
                    self._tick(overdue)
                self._overdue.clear()
            if self._closed or (pending and pending.inbox):
                return None
            if patience == 0.0:
                patience = pending.patience(self.clock()) if pending else self.linger
            self._dry = True
        if len(self._consumers) > 1:
            patience = self._look if patience is None else min(patience, self._look)
            self._look = min(2 * self._look, _LAST_LOOK)
        try:
            return self._consumers[0].receive(patience)
        finally:
            with self._lock:
                self._dry = False

    def _tick(self, pending: PendingExchange) -> None:
        now = self.clock()
        looked = pending.look(now)
        actions = pending.state.tick(pending.time(now))
        if actions:
            self._act(pending, actions, None)
        if actions or looked:  # after a look, the caller has another time to wait for
            pending.wake()

    def _handle(self, delivery: Delivery) -> None:
        message = delivery.message
        since_ns = time.time_ns() if self.telemetry is not None else 0
        try:
            landed = self.landing.land(message) if self.landing is not None else None
            delivery.acknowledge()
        except BaseException:  # a signal's too: what is not acknowledged has to come again
            redeliver(self.session)
            raise
        try:
            reply = self._read(message)
        except BaseException:  # raised by a signal: the reply is acknowledged, and may be for another caller
            self._match(self._read(message))
            raise
        try:
            if self.landing is not None:
                self.landing.acknowledged(landed, correlation_id=reply.correlation_id, batch_number=reply.batch_number)
        finally:
            pending = self._match(reply)
            if self.telemetry is not None:
                error = reply.payload if isinstance(reply.payload, MtosiError) else None
                request = pending.publication if pending is not None else None
                self.telemetry.receive(message, self._where(message), since_ns, request, error)

    def _where(self, message: JmsMessage) -> Destination:
        return message.destination or self._consumers[0].destination

    def _read(self, message: JmsMessage) -> Reply[Any]:
        return read_reply(message, strict=self.strict, package=self._package, check=self.check, vendors=self.vendors)

    def _match(self, reply: Reply[Any]) -> PendingExchange | None:
        with self._lock:
            self._forget_dropped()
            found = self._exchanges.match(reply)
            if isinstance(found, OrphanReply) and reply.batch_number == 0 and found.supplier:
                self.from_zero.add(found.supplier)
            if not isinstance(found, Matched):
                return None
            self._give([found])
            return found.exchange

    def _give(self, matched: Sequence[Matched[PendingExchange, Any]]) -> None:
        if not matched:
            return
        now = self.clock()
        for found in matched:
            if found.irregular and (found.reply.correlation_id or not found.exchange.request.soap_jms):
                warn(found.reply.payload, "R3c", "the reply does not carry the request's correlationId")
            pending = found.exchange
            self._act(pending, pending.state.receive(found.reply, pending.time(now)), found.reply)
            pending.wake()  # also if the caller gets nothing: its time may run out sooner now

    def _act(self, pending: PendingExchange, actions: Sequence[Any], reply: Reply[Any] | None) -> None:
        for action in actions:
            if isinstance(action, _FOR_CALLERS):
                pending.inbox.append(action)
                if pending.is_observed:
                    pending.note(action, self.clock())
                pending.held = getattr(action, "held", pending.held)
            elif isinstance(action, LateReply):
                self._exchanges.orphan(action.reply)
            elif isinstance(action, Flag):
                warn(reply.payload if reply else None, action.rule, action.reason)
            else:
                self._unwanted(pending, action)

    def _unwanted(self, pending: PendingExchange, action: Duplicate[Any] | Conflict[Any] | Stray[Any]) -> None:
        what, number = type(action).__name__.lower(), action.reply.batch_number
        facts = {"correlation_id": pending.correlation_id, "operation": pending.request.operation, "batch": number}
        log.warning(
            "%s: %s reply, correlation id %s, batch %s",
            pending.request,
            what,
            pending.correlation_id,
            number,
            extra=facts,
        )
        if self.telemetry is not None:
            kind = Count.DUPLICATES if isinstance(action, Duplicate) else Count.REJECTS
            self.telemetry.count(kind, pending.request.destination)

    def _forget(self, pending: PendingExchange) -> None:
        self._listening.pop(pending, None)
        if pending.closed:  # another exchange may have its correlationId by now
            return
        pending.closed = True
        if pending.is_observed:
            pending.report("abandoned", self.clock())
        pending.state.abandon()
        pending.inbox.clear()
        pending.wake()
        self._give(self._exchanges.close(pending.correlation_id))

    def _forget_dropped(self) -> None:
        while self._dropped:
            self._forget(self._dropped.popleft())

    def _report_orphans(self) -> None:
        """Report orphans outside the lock. The hook has a thread of its own: it may make calls, and may take long."""
        while self._orphaned:
            try:
                orphan = self._orphaned.popleft()
            except IndexError:  # another thread took it
                return
            if self.telemetry is not None:
                self.telemetry.count(Count.ORPHANS)
            if self.on_orphan is not None:
                self._orphan_hook.submit(partial(_call_hook, self.on_orphan, orphan))
                continue
            identifier = orphan.reply.correlation_id or orphan.reply.jms_correlation_id
            log.warning(
                "an orphan, correlation id %s: %s", identifier, orphan.reason, extra={"correlation_id": identifier}
            )


def _call_hook(hook: Orphans, orphan: OrphanReply[Any]) -> None:
    try:
        hook(orphan)
    except Exception:
        log.exception("the orphan hook failed")
