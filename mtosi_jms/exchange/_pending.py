"""The pending exchange: what a requestor keeps of one exchange until its last reply, for threads and coroutines."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from mtosi_jms.errors import ExchangeError, IllegalStateError, IncompleteBatchError, MtosiError, ReplyTimeoutError
from mtosi_jms.exchange.sending import error_type, report
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.patterns import Clock, Complete, Exchange, Fail, Fault, Release
from mtosi_jms.soap import Envelope
from mtosi_jms.telemetry import Count, Publication, Role, Telemetry

log = logging.getLogger(__package__)

_UNCONSUMED: Final = 1.0
"""Seconds after which the log says that nobody consumes the destination of a request."""


class RequestInfo(NamedTuple):
    """The operation and the destinations of a request, for its time-out error.

    `consumers` returns how many consumers a destination has; None if the provider does not say. With `soap_jms` (W3C's
    SOAP over JMS) the reply needs no MTOSI header."""

    operation: str
    destination: Destination
    replies: Sequence[Destination]
    consumers: Callable[[Destination], int | None] | None
    soap_jms: bool = False

    def __str__(self) -> str:
        return f"{self.operation} to {self.destination}"

    def advice(self) -> str:
        if self.is_unconsumed():
            return f"nobody consumes {self.destination}: is the supplier running, and is this its destination?"
        replies = " and ".join(map(str, self.replies))
        if self.consumers is None:
            return f"does a supplier consume {self.destination}, and may it reply to {replies}? Its log tells"
        return f"look at the log of who consumes it, and whether it may reply to {replies}"

    def is_unconsumed(self) -> bool:
        return self.consumers is not None and self.consumers(self.destination) == 0


@dataclass(eq=False, repr=False)
class PendingExchange:
    """One exchange, with what was received for its caller and not taken yet (`inbox`).

    `awaits_id`: the request's message id will be known once it is sent. `held`: envelopes out of turn when the exchange
    failed, by batch number. `closed`: it was given up, or its end was seen. `is_observed`: its end is reported."""

    state: Exchange[Any]
    request: RequestInfo
    package: str
    began: float
    awaits_id: bool
    telemetry: Telemetry | None = None
    inbox: deque[Any] = field(default_factory=deque)
    held: Mapping[int, Any] = field(default_factory=dict)
    closed: bool = False
    publication: Publication | None = None
    is_observed: bool = False
    is_reported: bool = False
    batches: int = 0

    def __post_init__(self) -> None:
        self.is_observed = self.telemetry is not None or log.isEnabledFor(logging.INFO)
        self._wake: Callable[[], object] | None = None
        self._left: float | None = None  # at first the caller waits for the request to be sent
        self._away = 0.0
        self._look: float | None = None if self.request.consumers is None else self.began + _UNCONSUMED
        if self.telemetry is not None:
            self.telemetry.began(Role.REQUESTOR)

    @property
    def correlation_id(self) -> str:
        return self.state.correlation_id

    def enter(self, now: float, wake: Callable[[], object]) -> None:
        """Note that the caller waits for a reply; any thread calls `wake` when there is something for it to do. Raises
        IllegalStateError: another caller waits already."""
        if self._left is None:
            raise IllegalStateError("another caller waits for the replies of this request")
        self._away += now - self._left
        self._left = None
        self._wake = wake

    def leave(self, now: float) -> None:
        self._left = now
        self._wake = None

    def wake(self) -> None:
        if self._wake is not None:
            self._wake()

    def time(self, now: float) -> float:
        """Return the exchange's own time, in seconds: it runs only while the caller waits."""
        return (now if self._left is None else self._left) - self._away

    def patience(self, now: float) -> float | None:
        """Return the seconds until one of the clocks runs out or `look` is due; None: never."""
        deadline = self.state.deadline
        first = self._look if deadline is None else deadline[0]
        if first is None:
            return None
        if self._look is not None and self._look < first:
            first = self._look
        return max(0.0, first - self.time(now))

    def time_left(self, now: float) -> float | None:
        """Return the seconds that are left of the total time, for sending the request; None: no limit."""
        total = self.state.timeouts.total
        return None if total is None else max(0.0, self.began + total - self.time(now))

    def sent(self, now: float) -> None:
        """Note that the request was sent. The exchange's time stops until the caller waits for a reply."""
        self.state.sent(self.time(now))
        self.leave(now)

    def note(self, action: Any, now: float) -> None:
        if isinstance(action, Release):
            self.batches += 1
        elif isinstance(action, Fault):
            fault = action.payload.fault if isinstance(action.payload, Envelope) else None
            kind = (fault.kind or fault.fault_code) if fault is not None else ""
            self.report("fault" if fault is not None else type(action.payload).__name__, now, fault=kind)
        elif isinstance(action, Fail):
            error = action.error
            if self.telemetry is not None and isinstance(error, IncompleteBatchError):
                self.telemetry.count(Count.GAPS, self.request.destination, len(error.missing))
            self.report(type(error).__name__, now, error)
        else:
            self.report("answered", now)

    def report(self, outcome: str, now: float, error: BaseException | None = None, fault: str = "") -> None:
        if self.is_reported or not self.is_observed:
            return
        self.is_reported = True
        kind = error_type(outcome, fault)
        if self.publication is not None:
            self.publication.end(kind)
        report(
            log,
            Role.REQUESTOR,
            self.telemetry,
            self.request.operation,
            self.request.destination,
            self.correlation_id,
            outcome=outcome,
            seconds=now - self.began,
            batches=self.batches,
            error=error,
            error_type=kind,
        )

    def look(self, now: float) -> bool:
        """Log once, a second after the request, if nobody consumes its destination; return whether that was due."""
        if self._look is None or self.time(now) < self._look:
            return False
        self._look = None
        if self.request.is_unconsumed():
            log.warning("%s: nobody consumes the destination, a second after the request was sent", self.request)
        return True

    def late(self, became: str) -> ReplyTimeoutError:
        """Return the error for a request whose time was over before it was sent; `became` says what happened to it."""
        within = self.state.timeouts.of(Clock.TOTAL)
        return ReplyTimeoutError(
            f"no reply within {within} s, {Clock.TOTAL} clock; {became}",
            self.correlation_id,
            clock=Clock.TOTAL,
            asked=str(self.request),
            advice=self.request.advice() if self.request.is_unconsumed() else "is the provider up, and has it room?",
        )

    def explained(self, error: Exception) -> Exception:
        if isinstance(error, IncompleteBatchError):
            return IncompleteBatchError(
                error.correlation_id,
                error.missing,
                end_seen=error.end_seen,
                batches=error.batches,
                clock=error.clock,
                reason=error.reason,
                asked=str(self.request),
                advice="look at the supplier's log, and whether the provider lost or expired its replies",
            )
        if isinstance(error, ReplyTimeoutError):
            text, advice = str(self.request), error.advice or self.request.advice()
            return ReplyTimeoutError(error.reason, error.correlation_id, clock=error.clock, asked=text, advice=advice)
        return error


class PreparedRequest(NamedTuple):
    pending: PendingExchange
    destination: Destination
    message: JmsMessage


def reply_of(action: Any, pending: PendingExchange) -> Envelope | None:
    """Return the envelope of an action for a caller, None at the end of the exchange; raise an action's error."""
    if isinstance(action, Complete):
        return None
    if isinstance(action, Fail):
        raise pending.explained(action.error)
    payload = action.payload
    if isinstance(payload, Envelope):
        return payload
    raise payload if isinstance(payload, MtosiError) else ExchangeError(f"unexpected reply: {type(payload).__name__}")
