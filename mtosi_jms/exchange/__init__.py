"""The exchange of messages: requestors and suppliers, in threads and on event loops, and the dispatcher between them.

A requestor sends requests and hands out replies. A supplier receives requests, has the dispatcher answer them with its
services, and sends the replies. The dispatcher handles only envelopes, so it also works without JMS.
"""

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
