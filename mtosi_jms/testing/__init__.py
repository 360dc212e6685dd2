"""Doubles for tests of code that talks MTOSI over JMS: public, and used by the SDK's own tests in place of patching.

`exchange` joins a requestor and a supplier in memory, with the replies tampered with if wanted; `ScriptedSupplier`
answers what it is told; `gap`, `duplicate`, `reorder` and `truncate` are the faults. Fixtures for pytest stand in
`mtosi_jms.testing.fixtures`:

    from mtosi_jms.testing import exchange, gap

    def test_a_lost_batch_is_noticed():
        with exchange([Ems()], tamper=lambda replies: gap(replies, at=1), limits=Limits(gap=0.05)) as pair:
            retrieval = pair.stub(ManagedElementRetrieval)
            with pytest.raises(IncompleteBatchError):
                list(retrieval.get_all_managed_elements.batches(batch_size=2))
"""

from __future__ import annotations

from mtosi_jms.testing.faults import Chosen, duplicate, gap, reorder, truncate
from mtosi_jms.testing.pair import NAMES, REQUESTOR, SUPPLIER, Pair, connect_privately, exchange
from mtosi_jms.testing.scripted import Asked, Script, ScriptedSupplier, Tamper

__all__ = [
    "NAMES",
    "REQUESTOR",
    "SUPPLIER",
    "Asked",
    "Chosen",
    "Pair",
    "Script",
    "ScriptedSupplier",
    "Tamper",
    "connect_privately",
    "duplicate",
    "exchange",
    "gap",
    "reorder",
    "truncate",
]
