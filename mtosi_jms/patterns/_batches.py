"""MultipleBatchResponse: one request, many replies, in any order (R4, R5, R6, P32, C23, C24, C58-C61).

Batches are released in order, each once, as soon as order allows; the exchange is complete when everything from the
first number to the one with the end-of-reply mark was released. A reply is turned into an event, the next state is
looked up in `TABLE`, and the actions say what the caller has to do. docs/patterns.md says what is read leniently, and
what never: where there is no reading under which "complete" would be true. `strict` makes each of the lenient ones a
ProtocolError."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, Literal, TypeAlias

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError, IncompleteBatchError, ProtocolError, ReplyTimeoutError
from mtosi_jms.patterns._model import (
    Action,
    Actions,
    Clock,
    Complete,
    Conflict,
    Duplicate,
    Fail,
    Fault,
    Flag,
    Orphan,
    P,
    Release,
    Reply,
    ReplyType,
    Standing,
    Stray,
    Timeouts,
    earliest,
    rounded,
    standing_of,
)
from mtosi_jms.patterns._sequence import BatchSequence, Known
from mtosi_jms.patterns._simple import is_acknowledgement


class BatchState(StrEnum):
    """Where a MultipleBatchResponse exchange stands."""

    WAITING = "waiting"
    ACKNOWLEDGED = "acknowledged"
    RECEIVING = "receiving"
    CLOSING = "closing"
    COMPLETE = "complete"
    FAULTED = "faulted"
    UNANSWERED = "unanswered"
    INCOMPLETE = "incomplete"
    BROKEN = "broken"
    ABANDONED = "abandoned"


class BatchEvent(StrEnum):
    """What can happen to a MultipleBatchResponse exchange."""

    ACK = "acknowledgement"
    LONE = "lone reply"
    BATCH = "batch"
    LAST = "batch with the end mark"
    WHOLE = "nothing missing"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    STRAY = "stray"
    UNPLACED = "reply without a place"
    BREACH = "breach"
    ERROR = "error"
    TIMEOUT = "time-out"
    EXHAUSTED = "no more replies"
    ABANDON = "caller gave up"


FINAL: Final = frozenset(
    {
        BatchState.COMPLETE,
        BatchState.FAULTED,
        BatchState.UNANSWERED,
        BatchState.INCOMPLETE,
        BatchState.BROKEN,
        BatchState.ABANDONED,
    }
)

_ALWAYS: Final = {
    BatchEvent.UNPLACED: BatchState.INCOMPLETE,
    BatchEvent.BREACH: BatchState.BROKEN,
    BatchEvent.ERROR: BatchState.FAULTED,
    BatchEvent.ABANDON: BatchState.ABANDONED,
}
_BEFORE: Final = {
    **_ALWAYS,
    BatchEvent.ACK: BatchState.ACKNOWLEDGED,
    BatchEvent.LONE: BatchState.COMPLETE,
    BatchEvent.BATCH: BatchState.RECEIVING,
    BatchEvent.LAST: BatchState.CLOSING,
    BatchEvent.TIMEOUT: BatchState.UNANSWERED,
    BatchEvent.EXHAUSTED: BatchState.UNANSWERED,
}
_STARTED: Final = {**_ALWAYS, BatchEvent.TIMEOUT: BatchState.INCOMPLETE, BatchEvent.EXHAUSTED: BatchState.INCOMPLETE}
_UNCHANGED: Final = (BatchEvent.ACK, BatchEvent.DUPLICATE, BatchEvent.CONFLICT, BatchEvent.STRAY)

TABLE: Final[dict[BatchState, dict[BatchEvent, BatchState]]] = {
    BatchState.WAITING: {**_BEFORE, BatchEvent.STRAY: BatchState.WAITING},
    BatchState.ACKNOWLEDGED: {**_BEFORE},
    BatchState.RECEIVING: {
        **_STARTED,
        BatchEvent.BATCH: BatchState.RECEIVING,
        BatchEvent.LAST: BatchState.CLOSING,
        **dict.fromkeys(_UNCHANGED, BatchState.RECEIVING),
    },
    BatchState.CLOSING: {
        **_STARTED,
        BatchEvent.BATCH: BatchState.CLOSING,
        BatchEvent.WHOLE: BatchState.COMPLETE,
        **dict.fromkeys(_UNCHANGED, BatchState.CLOSING),
    },
    **{state: dict.fromkeys(BatchEvent, state) for state in BatchState if state in FINAL},
}
"""{state: {event: next state}}. A pair that is not here cannot occur (nothing is a duplicate before the first batch;
what has no content is an acknowledgement where those are expected).
LAST leads to CLOSING even when nothing is missing; WHOLE then completes it at once. A final state is never left, and
what comes there is an orphan."""

OnConflict: TypeAlias = Literal["error", "keep_first"]
_REFUSED: Final = (BatchEvent.STRAY, BatchEvent.UNPLACED, BatchEvent.BREACH, BatchEvent.CONFLICT)
_COUNTS_FROM_ZERO: Final = "this supplier counts from 0, since a batch 0 of it was seen or first_batch says so"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRules:
    """How the replies of one exchange are read; docs/patterns.md has each rule. Raises ConfigError: a value out of its
    range.

    `first`: number of the peer's first batch, or "auto" (C23): 0 if a 0 comes before the 1, or if a 0 of this supplier
    was seen in any exchange before, else 1; for a peer whose 0 may come last set 0. `strict`: what would be flagged,
    stray or in conflict is a ProtocolError. `window`: how far ahead of its turn a number may be, whatever a peer sends.
    `remember`: for how many of the batches last released a digest is kept, at eight bytes each; an older duplicate is
    dropped without a look. `strict_size`: largest number of objects in a reply; None: any is legal (C24)."""

    first: Literal["auto", 0, 1] = "auto"
    strict: bool = False
    on_conflict: OnConflict = "error"
    expect_ack: bool = False
    window: int = BOUNDS.batch_window
    remember: int = BOUNDS.batch_digests
    strict_size: int | None = None

    def __post_init__(self) -> None:
        if self.first not in ("auto", 0, 1):
            raise ConfigError(f"first batch must be auto, 0 or 1, not {self.first!r}")
        if self.on_conflict not in ("error", "keep_first"):
            raise ConfigError(f"on_conflict must be 'error' or 'keep_first', not {self.on_conflict!r}")
        if self.window < 1 or self.remember < 0:
            raise ConfigError("window must be at least 1 and remember at least 0")


@dataclass(slots=True)
class BatchCounts:
    """What came in one exchange: replies by what became of them."""

    replies: int = 0
    released: int = 0
    duplicates: int = 0
    conflicts: int = 0
    strays: int = 0


class BatchAssembler(Generic[P]):
    """One MultipleBatchResponse exchange, from the moment before its request is sent. `from_zero`: the suppliers of
    which a batch 0 was seen, shared by all exchanges of a requestor (C23)."""

    __slots__ = (
        "_from_zero",
        "_progress",
        "_sent",
        "_sequence",
        "_started",
        "correlation_id",
        "counts",
        "rules",
        "state",
        "supplier",
        "timeouts",
    )

    def __init__(
        self,
        correlation_id: str,
        *,
        started: float,
        timeouts: Timeouts | None = None,
        rules: BatchRules | None = None,
        supplier: str = "",
        from_zero: set[str] | None = None,
    ) -> None:
        self.correlation_id = correlation_id
        self.timeouts = timeouts or Timeouts()
        self.rules = rules or BatchRules()
        self.state = BatchState.WAITING
        self.counts = BatchCounts()
        self.supplier = supplier
        self._from_zero = set() if from_zero is None else from_zero
        first = self.rules.first
        self._sequence: BatchSequence[P] = BatchSequence(None if first == "auto" else first, self.rules.remember)
        self._started = self._sent = self._progress = started

    @property
    def finished(self) -> bool:
        return self.state in FINAL

    @property
    def end(self) -> int | None:
        """Number of the last batch, None as long as its end mark has not come."""
        return self._sequence.end

    @property
    def held(self) -> int:
        """How many batches wait for their turn."""
        return len(self._sequence.held)

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers known to be missing now, or if all came but of two runs, those that the latest has not sent.
        Empty once the exchange has ended: the error has them."""
        return () if self.finished else tuple(self._missing())

    @property
    def deadline(self) -> tuple[float, Clock] | None:
        if self.finished:
            return None
        total = (self._started, self.timeouts.total, Clock.TOTAL)
        if self.state is BatchState.WAITING:
            return earliest(total, (self._sent, self.timeouts.first_reply, Clock.FIRST_REPLY))
        grace = self._progress if self._sequence.only_zero_missing() else None
        gap = (self._progress, self.timeouts.gap, Clock.GAP)
        return earliest(total, gap, (grace, self.timeouts.grace, Clock.GRACE))

    def sent(self, now: float) -> None:
        self._sent = now

    def receive(self, reply: Reply[P], now: float) -> Actions[P]:
        """A reply that correlation gave to this exchange.

        Every reply is used before the clocks are looked at, so none that arrived is lost to a time-out; but replies
        that keep coming do not stop the `total` clock.

        Returns:
            What to do, in this order: Flags, Releases, then what ended the exchange if it has ended. At most one of
            Duplicate, Conflict, Stray and Orphan, and then no Release.
        """
        self.counts.replies += 1
        late = self.finished
        if reply.batch_number == 0 and self.rules.first == "auto":
            self._from_zero.add(self.supplier)
        self._learn_first()
        event, note = self._event_of(reply)
        self._move(event)
        if late:
            return (Orphan(reply),)
        confirmed = event is BatchEvent.DUPLICATE and self._confirms(reply)
        if confirmed or event in (BatchEvent.BATCH, BatchEvent.LAST, BatchEvent.ACK):
            self._progress = now
        actions: list[Action[P]] = [note] if note and event not in _REFUSED else []
        actions += self._act(event, reply, note)
        return (*actions, *self.tick(now))

    def tick(self, now: float) -> Actions[P]:
        """End the exchange if a clock has run out by `now`: a Fail with ReplyTimeoutError (no batch came) or
        IncompleteBatchError."""
        due = self.deadline
        if due is None or now < due[0]:
            return ()
        self._learn_first()
        self._move(BatchEvent.TIMEOUT)
        return self._give_up(due[1], now)

    def exhaust(self) -> Actions[P]:
        """No reply can come any more (connection lost, folder read to its end): a Fail, unless it has ended."""
        late = self.finished
        self._learn_first()
        self._move(BatchEvent.EXHAUSTED)
        return () if late else self._give_up(None, 0.0)

    def abandon(self) -> None:
        """The caller gave up: what was held is forgotten, replies that still come are orphans."""
        self._move(BatchEvent.ABANDON)
        self._sequence.take_held()

    def _learn_first(self) -> None:
        """Count from 0 if a 0 of this supplier was seen, here or in another exchange, and batch 1 was not released."""
        if self._sequence.base is None and self.supplier in self._from_zero:
            self._sequence.base = 0

    def _move(self, event: BatchEvent) -> None:
        self.state = TABLE[self.state][event]

    def _event_of(self, reply: Reply[P]) -> tuple[BatchEvent, Flag | None]:
        if reply.message_type is ReplyType.ERROR:
            return BatchEvent.ERROR, None
        if self.rules.expect_ack and is_acknowledgement(reply):
            return BatchEvent.ACK, None
        event, note = self._place_of(reply)
        if note and self.rules.strict and event is not BatchEvent.CONFLICT:
            return BatchEvent.BREACH, note
        return event, note

    def _place_of(self, reply: Reply[P]) -> tuple[BatchEvent, Flag | None]:
        number, sequence = reply.batch_number, self._sequence
        if reply.contradiction:
            return BatchEvent.BREACH, Flag("R5b", reply.contradiction)
        standing = standing_of(number, reply.end_of_reply)
        if number is None:
            return self._unnumbered(reply, standing)
        if number < (1 if self.rules.first == 1 else 0):
            return BatchEvent.BREACH, Flag("C23", f"batch number {number} is below the first: see first_batch")
        known = sequence.known(number, reply.end_of_reply, reply.body_digest)
        if known is Known.OTHER:
            return BatchEvent.CONFLICT, Flag("P32", f"batch {number} came twice, and not the same")
        if known is not Known.NEW:
            return BatchEvent.DUPLICATE, None
        if breach := self._breach(number, reply, standing):
            return BatchEvent.BREACH, breach
        if reply.end_of_reply is None:
            return BatchEvent.BATCH, Flag("R5a", f"batch {number} has no end-of-reply mark; taken for not the last")
        return (BatchEvent.LAST if standing is Standing.LAST else BatchEvent.BATCH), None

    def _unnumbered(self, reply: Reply[P], standing: Standing) -> tuple[BatchEvent, Flag]:
        if self._sequence.started or (standing is Standing.UNPLACED and not reply.by_iterator):
            event = BatchEvent.UNPLACED if reply.has_body else BatchEvent.STRAY
            return event, Flag("R5a", "a reply that is one of several has no batch number that can be read")
        if breach := self._oversize(reply):
            return BatchEvent.BREACH, breach
        return BatchEvent.LONE, Flag("C58", "a reply without batch number is taken for the whole answer")

    def _breach(self, number: int, reply: Reply[P], standing: Standing) -> Flag | None:
        """Why a new batch cannot belong to the sequence that came so far; None: it can."""
        sequence, is_last = self._sequence, standing is Standing.LAST
        if number == 0 and sequence.base == 1:
            return Flag("C23", "batch 0 came after batch 1 was released; the peer counts from 0: set first_batch to 0")
        if sequence.end is not None and is_last:
            return Flag("R5", f"two ends of the reply, batch {sequence.end} and batch {number}")
        if sequence.end is not None and number > sequence.end:
            return Flag("R5", f"batch {number} lies beyond the end of the reply, batch {sequence.end}")
        if is_last and number < sequence.highest:
            return Flag("R5", f"batch {sequence.highest} lies beyond the end of the reply, batch {number}")
        if number >= sequence.next + self.rules.window:
            return Flag("P32", f"batch {number} is {self.rules.window} or more ahead of the next, {sequence.next}")
        return self._oversize(reply)

    def _oversize(self, reply: Reply[P]) -> Flag | None:
        limit, size = self.rules.strict_size, reply.object_count
        if limit is None or size is None or size <= limit:
            return None
        return Flag("C24", f"a reply of {size} objects, more than the {limit} allowed")

    def _act(self, event: BatchEvent, reply: Reply[P], note: Flag | None) -> Actions[P]:
        match event:
            case BatchEvent.BATCH | BatchEvent.LAST if reply.batch_number is not None:
                return self._take(reply.batch_number, reply, event is BatchEvent.LAST)
            case BatchEvent.LONE:
                self.counts.released += 1
                return (Release(reply.payload), Complete())
            case BatchEvent.DUPLICATE:
                self.counts.duplicates += 1
                return (Duplicate(reply), *self._completed())
            case BatchEvent.CONFLICT:
                self.counts.conflicts += 1
                if self._keeps_first and not self.rules.strict:
                    return (Conflict(reply),)
                advice = "the supplier has answered twice, from data that changed; ask again, or see on_conflict"
                return (Conflict(reply), self._broken(f"{note.reason if note else ''}: {advice} [P32]"))
            case BatchEvent.ERROR:
                return (Fault(reply.payload, self._sequence.take_held()),)
            case BatchEvent.ACK:
                return ()
        rule, reason = (note.rule, note.reason) if note else ("", "")
        self.counts.strays += 1
        stray = Stray(reply, rule, reason)
        if event is BatchEvent.STRAY:
            return (stray,)
        if event is BatchEvent.UNPLACED:
            return (stray, self._incomplete(f"{reason} [{rule}]"))
        return (stray, self._broken(f"{reason} [{rule}]"))

    def _take(self, number: int, reply: Reply[P], end: bool) -> Actions[P]:
        sequence = self._sequence
        sequence.add(number, end, reply.payload, reply.body_digest, reply.run)
        turn: list[Action[P]] = [Release(payload, number) for number, payload in sequence.release()]
        self.counts.released += len(turn)
        return (*turn, *self._completed())

    @property
    def _keeps_first(self) -> bool:
        return self.rules.on_conflict == "keep_first"

    def _confirms(self, reply: Reply[P]) -> bool:
        """Whether a duplicate proves that its run of the supplier has sent this batch too."""
        number, sequence = reply.batch_number, self._sequence
        if number is None or sequence.known(number, reply.end_of_reply, reply.body_digest) is not Known.SAME:
            return False
        return sequence.runs.confirm(number, reply.run)

    def _completed(self) -> Actions[P]:
        """The end, when everything was handed out and is what one run of the supplier has sent."""
        sequence = self._sequence
        if not sequence.whole or not (self._keeps_first or sequence.runs.is_whole(sequence.released)):
            return ()
        if sequence.base == 1 and self.rules.first == "auto" and self.supplier in self._from_zero:
            self._move(BatchEvent.EXHAUSTED)
            return (self._incomplete(_COUNTS_FROM_ZERO, missing=[0]),)
        self._move(BatchEvent.WHOLE)
        sequence.take_held()
        return (Complete(),)

    def _incomplete(self, reason: str, clock: str = "", missing: Sequence[int] | None = None) -> Fail[P]:
        missing = self._missing() if missing is None else missing
        held, end_seen = self._sequence.take_held(), self._sequence.end is not None
        error = IncompleteBatchError(
            self.correlation_id, missing, end_seen=end_seen, batches=held, clock=clock, reason=reason
        )
        return Fail(error, held)

    def _broken(self, reason: str) -> Fail[P]:
        self._move(BatchEvent.BREACH)
        return Fail(ProtocolError(reason, self.correlation_id), self._sequence.take_held())

    def _missing(self) -> list[int]:
        sequence = self._sequence
        return sequence.missing() or sequence.runs.lacking(range(sequence.next - sequence.released, sequence.next))

    def _give_up(self, due: Clock | None, now: float) -> Actions[P]:
        clock = due or ""
        counts = self.counts
        if self.state is BatchState.UNANSWERED:
            silent = "the source of replies ended without a reply"
            if due is not None:
                silent = f"no reply within {self.timeouts.of(due)} s, {due} clock"
            received = f"replies without content and place: {counts.strays}" if counts.strays else "nothing came"
            if counts.replies > counts.strays:
                received = "an acknowledgement came, and no answer"
            return (Fail(ReplyTimeoutError(f"{silent}; {received}", self.correlation_id, clock=clock)),)
        sequence = self._sequence
        within = "" if due is None else f" within {rounded(now - self._started)} s"
        received = f"{counts.released + len(sequence.held)} batches came{within}"
        if sequence.whole:
            received += ", of two answers of the supplier, neither of them whole"
        elif sequence.base == 0 and not sequence.released:
            received += f"; {_COUNTS_FROM_ZERO}"
        return (self._incomplete(received, clock),)
