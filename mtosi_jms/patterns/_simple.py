"""SimpleResponse: one request, one reply (R3, C58, C61).

One RESPONSE or one ERROR ends the exchange; whatever comes later is an orphan. The machine is `TABLE`: the code below
finds the event, looks up the next state, and says what the caller has to do.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Generic

from mtosi_jms.errors import ReplyTimeoutError
from mtosi_jms.patterns._model import (
    Action,
    Actions,
    Clock,
    Complete,
    Fail,
    Fault,
    Flag,
    Orphan,
    P,
    Release,
    Reply,
    ReplyType,
    Timeouts,
    earliest,
)


class SimpleState(StrEnum):
    """Where a SimpleResponse exchange stands."""

    WAITING = "waiting"
    ACKNOWLEDGED = "acknowledged"
    ANSWERED = "answered"
    FAULTED = "faulted"
    UNANSWERED = "unanswered"
    ABANDONED = "abandoned"

    __hash__ = str.__hash__  # sooner than Enum's


class SimpleEvent(StrEnum):
    """What can happen to a SimpleResponse exchange."""

    ACK = "acknowledgement"
    RESPONSE = "response"
    ERROR = "error"
    TIMEOUT = "time-out"
    EXHAUSTED = "no more replies"
    ABANDON = "caller gave up"

    __hash__ = str.__hash__


_LIVE: Final = {
    SimpleEvent.ACK: SimpleState.ACKNOWLEDGED,
    SimpleEvent.RESPONSE: SimpleState.ANSWERED,
    SimpleEvent.ERROR: SimpleState.FAULTED,
    SimpleEvent.TIMEOUT: SimpleState.UNANSWERED,
    SimpleEvent.EXHAUSTED: SimpleState.UNANSWERED,
    SimpleEvent.ABANDON: SimpleState.ABANDONED,
}

FINAL: Final = frozenset({SimpleState.ANSWERED, SimpleState.FAULTED, SimpleState.UNANSWERED, SimpleState.ABANDONED})

TABLE: Final[dict[SimpleState, dict[SimpleEvent, SimpleState]]] = {
    state: dict.fromkeys(SimpleEvent, state) if state in FINAL else dict(_LIVE) for state in SimpleState
}
"""{state: {event: next state}}; a final state is never left, and what comes there is an orphan."""


class SimpleExchange(Generic[P]):
    """One SimpleResponse exchange, from the moment before its request is sent.

    After an acknowledgement `gap` takes the place of `first_reply`. `of_iterator`: the reply may announce further ones,
    for which there are requests of their own."""

    __slots__ = (
        "_acknowledged",
        "_of_iterator",
        "_sent",
        "_started",
        "correlation_id",
        "expect_ack",
        "state",
        "timeouts",
    )

    def __init__(
        self,
        correlation_id: str,
        *,
        started: float,
        timeouts: Timeouts | None = None,
        expect_ack: bool = False,
        of_iterator: bool = False,
    ) -> None:
        self.correlation_id = correlation_id
        self.timeouts = timeouts or Timeouts()
        self.expect_ack = expect_ack
        self._of_iterator = of_iterator
        self.state = SimpleState.WAITING
        self._started = self._sent = started
        self._acknowledged: float | None = None

    @property
    def finished(self) -> bool:
        return self.state in FINAL

    @property
    def deadline(self) -> tuple[float, Clock] | None:
        if self.state in FINAL:
            return None
        if self._acknowledged is None:
            waiting = (self._sent, self.timeouts.first_reply, Clock.FIRST_REPLY)
        else:
            waiting = (self._acknowledged, self.timeouts.gap, Clock.GAP)
        return earliest((self._started, self.timeouts.total, Clock.TOTAL), waiting)

    def sent(self, now: float) -> None:
        self._sent = now

    def receive(self, reply: Reply[P], now: float) -> Actions[P]:
        """A reply that correlation gave to this exchange; a second one, of any kind, is an orphan (C58). Returns
        Release and Complete for a response, Fault for an ERROR, Orphan after the end, Flags before them."""
        late = self.state in FINAL
        event = self._event_of(reply)
        self.state = TABLE[self.state][event]
        if late:
            return (Orphan(reply),)
        if event is SimpleEvent.ERROR:
            return (Fault(reply.payload),)
        if event is SimpleEvent.ACK:
            return self._acknowledge(now)
        actions: list[Action[P]] = []
        if reply.contradiction:
            actions.append(Flag("R5b", reply.contradiction))
        elif self._is_cut(reply) and not self._of_iterator:
            actions.append(Flag("C58", "the answer to a SimpleResponse request announces further replies"))
        return (*actions, Release(reply.payload, reply.batch_number), Complete())

    def tick(self, now: float) -> Actions[P]:
        """The time is `now`: ends the exchange with ReplyTimeoutError when a clock has run out."""
        due = self.deadline
        if due is None or now < due[0]:
            return ()
        self.state = TABLE[self.state][SimpleEvent.TIMEOUT]
        message = f"no reply within {self.timeouts.of(due[1])} s, {due[1]} clock; "
        message += "nothing came" if self._acknowledged is None else "an acknowledgement came, and no answer"
        return (Fail(ReplyTimeoutError(message, self.correlation_id, clock=due[1])),)

    def exhaust(self) -> Actions[P]:
        """No reply can come any more (connection lost, file read to its end): ReplyTimeoutError unless it has ended."""
        late = self.finished
        self.state = TABLE[self.state][SimpleEvent.EXHAUSTED]
        if late:
            return ()
        return (Fail(ReplyTimeoutError("the source of replies ended without a reply", self.correlation_id)),)

    def abandon(self) -> None:
        """The caller gave up; replies that still come are orphans."""
        self.state = TABLE[self.state][SimpleEvent.ABANDON]

    def _is_cut(self, reply: Reply[P]) -> bool:
        """Whether a reply says that it is not the whole answer."""
        return reply.end_of_reply is False or (reply.by_iterator and reply.end_of_reply is None)

    def _acknowledge(self, now: float) -> Actions[P]:
        again = self._acknowledged is not None
        self._acknowledged = now
        return (Flag("C61", "acknowledged more than once"),) if again else ()

    def _event_of(self, reply: Reply[P]) -> SimpleEvent:
        if reply.message_type is ReplyType.ERROR:
            return SimpleEvent.ERROR
        return SimpleEvent.ACK if self.expect_ack and is_acknowledgement(reply) else SimpleEvent.RESPONSE


def is_acknowledgement(reply: Reply[P]) -> bool:
    """Whether a reply is an acknowledgement: a RESPONSE without body and batch fields, or with a false `end_of_reply`
    (C61)."""
    bare = reply.batch_number is None and reply.end_of_reply is not True and not reply.has_body
    return bare and reply.message_type is ReplyType.RESPONSE
