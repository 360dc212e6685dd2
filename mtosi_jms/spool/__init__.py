"""Storage for messages: the landing, and outbox and inbox for exactly-once delivery. See docs/design/spool.md.

The landing (`DurableLanding`, `Spool`) writes each received message to two files before it is acknowledged. `Outbox`
and `Inbox` each keep a SQLite database. A sender stores a message before it sends it. A receiver stores a message
before it acknowledges it, and hands it out once.
"""

from __future__ import annotations

from mtosi_jms.spool._inbox import (
    CONFLICT,
    Inbox,
    InboxDelivery,
    InboxEntry,
    InboxReceiver,
    IncomingJournal,
    begin,
    give_back,
    handed_out,
    has_waited,
    mark_in_doubt,
    park,
    retry,
    watch_inbox,
)
from mtosi_jms.spool._landing import (
    AckLog,
    Acknowledgement,
    DurableLanding,
    Landing,
    Leftover,
    Listing,
    Spool,
    SpoolEntry,
    entries,
    open_entry,
    read_acknowledgements,
    scan,
)
from mtosi_jms.spool._outbox import Outbox, OutboxPump, OutgoingJournal, watch_outbox
from mtosi_jms.spool._rescue import SpoolFolder, Verification, verify_folder
from mtosi_jms.spool._store import DeadMessage, StoredMessage

__all__ = [
    "CONFLICT",
    "AckLog",
    "Acknowledgement",
    "DeadMessage",
    "DurableLanding",
    "Inbox",
    "InboxDelivery",
    "InboxEntry",
    "InboxReceiver",
    "IncomingJournal",
    "Landing",
    "Leftover",
    "Listing",
    "Outbox",
    "OutboxPump",
    "OutgoingJournal",
    "Spool",
    "SpoolEntry",
    "SpoolFolder",
    "StoredMessage",
    "Verification",
    "begin",
    "entries",
    "give_back",
    "handed_out",
    "has_waited",
    "mark_in_doubt",
    "open_entry",
    "park",
    "read_acknowledgements",
    "retry",
    "scan",
    "verify_folder",
    "watch_inbox",
    "watch_outbox",
]
