"""Requestors and suppliers, in threads and on event loops. The dispatcher between them handles envelopes, also without
JMS."""

from __future__ import annotations

from mtosi_jms.exchange._dispatcher import Abandoned, Dispatcher, FailureHook, ReplyAddress, send_all
from mtosi_jms.exchange._receiver import Orphans
from mtosi_jms.exchange._reply_writer import ReplyPolicy
from mtosi_jms.exchange._requestor import Requestor
from mtosi_jms.exchange._supplier import Supplier

__all__ = [
    "Abandoned",
    "Dispatcher",
    "FailureHook",
    "Orphans",
    "ReplyAddress",
    "ReplyPolicy",
    "Requestor",
    "Supplier",
    "send_all",
]
