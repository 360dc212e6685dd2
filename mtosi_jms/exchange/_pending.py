"""What a requestor keeps of one exchange while its replies come, whoever waits for them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mtosi_jms.errors import ExchangeError, IllegalStateError, IncompleteBatchError, MtosiError, ReplyTimeoutError
from mtosi_jms.exchange.reporting import Asked, report
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.patterns import Clock, Complete, Exchange, Fail, Fault, Release
from mtosi_jms.soap import Envelope
from mtosi_jms.telemetry import Count, Publication, Role, Telemetry

log = logging.getLogger(__package__)

_UNCONSUMED: Final = 1.0
"""Seconds after which a caller is told that nobody consumes the destination of its request."""


class RequestInfo(NamedTuple):
    """What a request asks for, and whom, as its time-out tells it.

    Attributes:
        operation: its name.
        destination: where the request goes.
        replies: where replies come in.
        consumers: how many consumers a destination has; None: the provider does not tell.
        soap_jms: whether it follows W3C's SOAP over JMS, so that the reply need not have an MTOSI header.
    """

    operation: str
    destination: Destination
    replies: Sequence[Destination]
    consumers: Callable[[Destination], int | None] | None
    soap_jms: bool = False

    def __str__(self) -> str:
        return f"{self.operation} to {self.destination}"

    def advice(self) -> str:
        """What to look at when no reply comes."""
        if self.is_unconsumed():
            return f"nobody consumes {self.destination}: is the supplier running, and is this its destination?"
        replies = " and ".join(map(str, self.replies))
        if self.consumers is None:
            return f"does a supplier consume {self.destination}, and may it reply to {replies}? Its log tells"
        return f"look at the log of who consumes it, and whether it may reply to {replies}"

    def is_unconsumed(self) -> bool:
        """Whether surely nobody consumes the destination now."""
        return self.consumers is not None and self.consumers(self.destination) == 0


@dataclass(frozen=True, slots=True)
class ReceiveFailed:
    """Receiving failed, and this caller is the one who is told."""

    error: Exception


class PendingExchange:
    """One exchange, and what was received for it and not yet taken.

    Attributes:
        state: the state machine.
        asked: what its request asks for.
        package: package whose classes the replies are read with.
        inbox: actions for its caller.
        awaits_id: whether the message id of its request is to be told.
        held: envelopes that had arrived when the exchange ended badly, and never had their turn, by batch number.
        closed: it was given up, or its end was seen.
        publication: the sending of its request, for a telemetry.
        is_heard: whether a telemetry or the log is told of its end.
    """

    def __init__(
        self,
        exchange: Exchange[Any],
        asked: RequestInfo,
        package: str,
        now: float,
        *,
        awaits_id: bool,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.state = exchange
        self.asked = asked
        self.package = package
        self.awaits_id = awaits_id
        self.inbox: deque[Any] = deque()
        self.held: Mapping[int, Any] = {}
        self.closed = False
        self.publication: Publication | None = None
        self.is_heard = telemetry is not None or log.isEnabledFor(logging.INFO)
        self._telemetry = telemetry
        self._batches = 0
        self._is_reported = False
        self._wake: Callable[[], object] | None = None
        self._left: float | None = None  # its caller waits from the beginning: for the request to be sent
        self._away = 0.0
        self._began = now
        self._look: float | None = None if asked.consumers is None else now + _UNCONSUMED
        if telemetry is not None:
            telemetry.began(Role.REQUESTOR)

    @property
    def correlation_id(self) -> str:
        """The request's correlationId."""
        return self.state.correlation_id

    def enter(self, now: float, wake: Callable[[], object]) -> None:
        """Its caller waits for a reply from now on.

        Args:
            now: by the requestor's clock.
            wake: called by any thread when there is something for the caller to do.

        Raises:
            IllegalStateError: another one waits already.
        """
        if self._left is None:
            raise IllegalStateError("another caller waits for the replies of this request")
        self._away += now - self._left
        self._left = None
        self._wake = wake

    def leave(self, now: float) -> None:
        """Its caller has other things to do from now on."""
        self._left = now
        self._wake = None

    def wake(self) -> None:
        """Wake its caller, if it waits."""
        if self._wake is not None:
            self._wake()

    def time(self, now: float) -> float:
        """The exchange's own time."""
        return (now if self._left is None else self._left) - self._away

    def patience(self, now: float) -> float | None:
        """Seconds until one of its clocks runs out, or `look` has something to do; None: never."""
        deadline = self.state.deadline
        due = [one for one in (deadline and deadline[0], self._look) if one is not None]
        return max(0.0, min(due) - self.time(now)) if due else None

    def time_left(self, now: float) -> float | None:
        """Seconds of the whole exchange that are left, for the request to be sent; None: any number."""
        total = self.state.limits.total
        return None if total is None else max(0.0, self._began + total - self.time(now))

    def sent(self, now: float) -> None:
        """The request was sent; its caller has other things to do until it waits for a reply."""
        self.state.sent(self.time(now))
        self.leave(now)

    def note(self, action: Any, now: float) -> None:
        """Report what its caller is told, when that is the last."""
        if isinstance(action, Release):
            self._batches += 1
        elif isinstance(action, Fault):
            self.report("fault" if isinstance(action.payload, Envelope) else type(action.payload).__name__, now)
        elif isinstance(action, Fail):
            error = action.error
            if self._telemetry is not None and isinstance(error, IncompleteBatchError):
                self._telemetry.count(Count.GAPS, self.asked.destination, len(error.missing))
            self.report(type(error).__name__, now, error)
        else:
            self.report("answered", now)

    def report(self, outcome: str, now: float, error: BaseException | None = None) -> None:
        """The exchange is over: the log and the telemetry are told, once."""
        if self._is_reported or not self.is_heard:
            return
        self._is_reported = True
        if self.publication is not None:
            self.publication.end(error=error)
        report(
            log,
            Role.REQUESTOR,
            self._telemetry,
            Asked(self.asked.operation, self.asked.destination),
            self.correlation_id,
            outcome=outcome,
            seconds=now - self._began,
            batches=self._batches,
            error=error,
        )

    def look(self, now: float) -> bool:
        """Tell, once and after a second, where nobody consumes the destination of the request; whether it was time."""
        if self._look is None or self.time(now) < self._look:
            return False
        self._look = None
        if self.asked.is_unconsumed():
            log.warning("%s: nobody consumes the destination, a second after the request was sent", self.asked)
        return True

    def late(self, became: str) -> ReplyTimeoutError:
        """The error of a request whose time was over before it was sent, and what became of it."""
        within = self.state.limits.of(Clock.TOTAL)
        return ReplyTimeoutError(
            f"no reply within {within} s, {Clock.TOTAL} clock; {became}",
            self.correlation_id,
            clock=Clock.TOTAL,
            asked=str(self.asked),
            advice=self.asked.advice() if self.asked.is_unconsumed() else "is the provider up, and has it room?",
        )

    def told(self, error: Exception) -> Exception:
        """What ended the exchange, with what was asked, and what to look at where no reply came in time."""
        if isinstance(error, IncompleteBatchError):
            return IncompleteBatchError(
                error.correlation_id,
                error.missing,
                end_seen=error.end_seen,
                batches=error.batches,
                clock=error.clock,
                reason=error.reason,
                asked=str(self.asked),
                advice="look at the supplier's log, and whether the provider lost or expired its replies",
            )
        if isinstance(error, ReplyTimeoutError):
            asked, advice = str(self.asked), error.advice or self.asked.advice()
            return ReplyTimeoutError(error.reason, error.correlation_id, clock=error.clock, asked=asked, advice=advice)
        return error


class PreparedRequest(NamedTuple):
    """An exchange whose request is made, and is to be sent."""

    pending: PendingExchange
    destination: Destination
    message: JmsMessage


def reply_of(action: Any, pending: PendingExchange) -> Envelope | None:
    """The envelope of an action that is meant for a caller, None at the end of the exchange; raises what is none."""
    if isinstance(action, Complete):
        return None
    if isinstance(action, (Fail, ReceiveFailed)):
        raise pending.told(action.error)
    payload = action.payload
    if isinstance(payload, Envelope):
        return payload
    raise payload if isinstance(payload, MtosiError) else ExchangeError(f"unexpected reply: {type(payload).__name__}")
