"""What a requestor keeps of one exchange while its replies come, whoever waits for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mtosi_jms.errors import ExchangeError, IllegalStateError, MtosiError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.patterns import Complete, Exchange, Fail
from mtosi_jms.soap import Envelope


@dataclass(frozen=True, slots=True)
class Broken:
    """Receiving failed, and this caller is the one who is told."""

    error: Exception


class Ticket:
    """One exchange, and what was received for it and not yet taken.

    Attributes:
        exchange: the state machine.
        package: package whose classes the replies are read with.
        inbox: actions for its caller.
        awaits_id: whether the message id of its request is to be told.
        held: envelopes that had arrived when the exchange ended badly, and never had their turn, by batch number.
        closed: it was given up, or its end was seen.
    """

    def __init__(self, exchange: Exchange[Any], package: str, now: float, *, awaits_id: bool) -> None:
        self.exchange = exchange
        self.package = package
        self.awaits_id = awaits_id
        self.inbox: deque[Any] = deque()
        self.held: Mapping[int, Any] = {}
        self.closed = False
        self._wake: Callable[[], object] | None = None
        self._left: float | None = now
        self._away = 0.0

    @property
    def correlation_id(self) -> str:
        """The request's correlationId."""
        return self.exchange.correlation_id

    def enter(self, now: float, wake: Callable[[], object]) -> None:
        """Its caller waits from now on.

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
        """Seconds until one of its clocks runs out; None: never."""
        deadline = self.exchange.deadline
        return None if deadline is None else max(0.0, deadline[0] - self.time(now))


class OpenedExchange(NamedTuple):
    """An exchange whose request is made, and is to be sent."""

    ticket: Ticket
    destination: Destination
    message: JmsMessage


def reply_of(action: Any) -> Envelope | None:
    """The envelope of an action that is meant for a caller, None at the end of the exchange; raises what is none."""
    if isinstance(action, Complete):
        return None
    if isinstance(action, (Fail, Broken)):
        raise action.error
    payload = action.payload
    if isinstance(payload, Envelope):
        return payload
    raise payload if isinstance(payload, MtosiError) else ExchangeError(f"unexpected reply: {type(payload).__name__}")
