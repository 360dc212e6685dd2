"""The communication patterns as pure state machines: events in, actions out.

No socket, thread, clock or id generator: time and ids are arguments, and the caller does what the actions say. Each
machine has its states in a table that the code runs and docs/patterns.md prints.

* `SimpleExchange`: one request, one reply.
* `BatchAssembler`: one request, many replies in any order, handed out in order, each once.
* `PendingExchanges`: which exchange a received reply belongs to.
* `read_place`, `standing_of`: what a reply says of its place among several.
* `cut_batches`, `jms_correlation_id`, `reply_route`: what a supplier decides for its replies.
"""

from __future__ import annotations

from mtosi_jms.patterns._batch_table import BatchEvent, BatchState
from mtosi_jms.patterns._batches import BatchAssembler, BatchCounts, BatchRules, OnConflict
from mtosi_jms.patterns._correlation import (
    HeldReply,
    Match,
    Matched,
    OrphanReason,
    OrphanReply,
    PendingExchanges,
    Strategy,
)
from mtosi_jms.patterns._model import (
    Action,
    Actions,
    Clock,
    CommunicationPattern,
    Complete,
    Conflict,
    Duplicate,
    Exchange,
    Fail,
    Fault,
    Flag,
    Orphan,
    Release,
    Reply,
    ReplyType,
    Stray,
    Timeouts,
    parse_pattern,
    rounded,
)
from mtosi_jms.patterns._place import Place, Standing, read_place, standing_of
from mtosi_jms.patterns._simple import SimpleEvent, SimpleExchange, SimpleState
from mtosi_jms.patterns._supplier import (
    Batch,
    BatchPosition,
    ReplyRoute,
    RouteSource,
    cut_batches,
    jms_correlation_id,
    reply_route,
)

__all__ = [
    "Action",
    "Actions",
    "Batch",
    "BatchAssembler",
    "BatchCounts",
    "BatchEvent",
    "BatchPosition",
    "BatchRules",
    "BatchState",
    "Clock",
    "CommunicationPattern",
    "Complete",
    "Conflict",
    "Duplicate",
    "Exchange",
    "Fail",
    "Fault",
    "Flag",
    "HeldReply",
    "Match",
    "Matched",
    "OnConflict",
    "Orphan",
    "OrphanReason",
    "OrphanReply",
    "PendingExchanges",
    "Place",
    "Release",
    "Reply",
    "ReplyRoute",
    "ReplyType",
    "RouteSource",
    "SimpleEvent",
    "SimpleExchange",
    "SimpleState",
    "Standing",
    "Strategy",
    "Stray",
    "Timeouts",
    "cut_batches",
    "jms_correlation_id",
    "parse_pattern",
    "read_place",
    "reply_route",
    "rounded",
    "standing_of",
]
