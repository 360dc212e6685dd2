"""Doubles for tests of code that talks MTOSI over JMS: public, and used by the SDK's own tests in place of patching.

`exchange` joins a requestor and a supplier in memory, with the replies tampered with if wanted, `notifications` a
publisher and subscribers; `ScriptedSupplier` answers what it is told; `gap`, `duplicate`, `reorder`, `delay`, `late`
and `truncate` are the faults; `ManualClock` is the time; `InterceptedConnection` holds up or fails what a session does;
`Recorder` takes what would be sent; `MemoryChannel` is an event channel of the Notification Service. Networks and their
events are made by `mtosi_jms.simulator`. pytest has fixtures of these by itself, see `mtosi_jms.testing.fixtures`:

    from mtosi_jms.testing import exchange, gap

    def test_a_lost_batch_is_noticed():
        with exchange([Ems()], tamper=lambda replies: gap(replies, at=1), timeouts=Timeouts(gap=0.05)) as pair:
            retrieval = pair.stub(ManagedElementRetrieval)
            with pytest.raises(IncompleteBatchError):
                list(retrieval.get_all_managed_elements.batches(batch_size=2))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtosi_jms.registry import names_from

if TYPE_CHECKING:
    from mtosi_jms.testing._channel import MemoryChannel, MemorySink, MemorySource
    from mtosi_jms.testing._clock import ManualClock, Timer
    from mtosi_jms.testing._faults import Chosen, Late, delay, duplicate, gap, late, reorder, truncate
    from mtosi_jms.testing._interception import Action, InterceptedConnection, Interceptor, Step
    from mtosi_jms.testing._pair import (
        NAMES,
        PUBLISHER,
        REQUESTOR,
        SUPPLIER,
        TOPIC_NAMES,
        TOPICS,
        Asked,
        Notifications,
        Outgoing,
        Pair,
        Recorder,
        Script,
        ScriptedSupplier,
        Tamper,
        connect_privately,
        exchange,
        notifications,
    )

__all__ = [
    "NAMES",
    "PUBLISHER",
    "REQUESTOR",
    "SUPPLIER",
    "TOPICS",
    "TOPIC_NAMES",
    "Action",
    "Asked",
    "Chosen",
    "InterceptedConnection",
    "Interceptor",
    "Late",
    "ManualClock",
    "MemoryChannel",
    "MemorySink",
    "MemorySource",
    "Notifications",
    "Outgoing",
    "Pair",
    "Recorder",
    "Script",
    "ScriptedSupplier",
    "Step",
    "Tamper",
    "Timer",
    "connect_privately",
    "delay",
    "duplicate",
    "exchange",
    "gap",
    "late",
    "notifications",
    "reorder",
    "truncate",
]

# Imported when they are first asked for: pytest imports this package wherever it is installed.
__getattr__ = names_from(__name__, __all__, "_channel", "_faults", "_clock", "_interception", "_pair")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
