"""The state table of a MultipleBatchResponse exchange; `batches.py` runs it, docs/patterns.md prints it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


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
