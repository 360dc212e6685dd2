"""The durable landing: each received message on disk, and synced, before it is acknowledged.

A message is two files: `<name>.json`, its JMS headers and typed properties, and `<name>.xml`, its body byte for byte.
Names sort by arrival. The rename that gives the body its name is the commit point: before it there is nothing, after it
there is everything. A crash between it and the acknowledgement makes the provider deliver the message again: a
duplicate that the reader removes, never a loss.

For what is to be delivered once there are two databases: `Outbox` for senders, `Inbox` for receivers.
"""

from __future__ import annotations

from mtosi_jms.spool._acklog import AckLog, Acknowledgement, read_acknowledgements
from mtosi_jms.spool._entry import SpoolEntry
from mtosi_jms.spool._inbox import Inbox
from mtosi_jms.spool._inspection import SpoolFolder
from mtosi_jms.spool._landing import DurableLanding
from mtosi_jms.spool._outbox import Outbox
from mtosi_jms.spool._reader import Leftover, Listing, entries, open_entry, scan
from mtosi_jms.spool._rescue import Verification, verify_folder
from mtosi_jms.spool._store import DeadMessage, StoredMessage
from mtosi_jms.spool._writer import Spool
from mtosi_jms.spool.journal import InboxEntry

__all__ = [
    "AckLog",
    "Acknowledgement",
    "DeadMessage",
    "DurableLanding",
    "Inbox",
    "InboxEntry",
    "Leftover",
    "Listing",
    "Outbox",
    "Spool",
    "SpoolEntry",
    "SpoolFolder",
    "StoredMessage",
    "Verification",
    "entries",
    "open_entry",
    "read_acknowledgements",
    "scan",
    "verify_folder",
]
