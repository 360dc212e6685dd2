"""A role that runs in the main thread on an embedded provider, for tests that send signals: ROLE, and what is in hand.

Its handler says `begun`; `willing` ones return when the role was told to end, `stubborn` ones never do by themselves.
`told` is said when that has come.
At the end it says how many requests were answered, and how many are to be delivered again.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

from mtosi_jms.exchange import Requestor, Supplier, signals
from mtosi_jms.exchange.signals import aside, on_signals
from mtosi_jms.jms import NamingContext
from mtosi_jms.runtime import ConsumerRuntime, answering
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import NAMES, REQUESTOR, SUPPLIER
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

ROLE, HAND = sys.argv[1:]
told = threading.Event()


def tell() -> None:
    if not told.is_set():
        told.set()
        print("told", flush=True)


class Ems(ManagedElementRetrieval.Supplier):
    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        print("begun", flush=True)
        while not (told.wait(0.01) and HAND == "willing"):
            pass
        return mer.GetManagedElementResponse()


class AsyncEms(ManagedElementRetrieval.Supplier):
    async def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:  # type: ignore[override]
        print("begun", flush=True)
        while not (told.is_set() and HAND == "willing"):
            await asyncio.sleep(0.01)
        return mer.GetManagedElementResponse()


def main() -> None:
    provider, names = MemoryProvider(), NamingContext(NAMES)
    with MemoryConnection(provider, names) as mine, MemoryConnection(provider, names) as other:
        supplier = Supplier(mine, SUPPLIER, [AsyncEms() if ROLE == "aio" else Ems()])
        with Requestor(other, sender_uri=REQUESTOR) as requestor:
            if HAND != "idle":
                ManagedElementRetrieval(requestor, SUPPLIER).get_managed_element.batches(batch_size=1)
            with aside(lambda again: tell()) as act, on_signals(act):
                if HAND == "idle":
                    threading.Thread(target=begin, daemon=True).start()
                run(supplier, mine)
            print(provider.depth(names.lookup(REQUESTOR)), provider.depth(names.lookup(SUPPLIER)), flush=True)


def begin() -> None:
    """Say `begun` once the role hears signals too."""
    while len(signals._listeners) < 2:
        told.wait(0.01)
    print("begun", flush=True)


def run(supplier: Supplier, connection: MemoryConnection) -> None:
    if ROLE == "supplier":
        supplier.run()
    elif ROLE == "aio":
        asyncio.run(supplier.aio.serve(limit=2))
    else:
        runtime = ConsumerRuntime(connection, SUPPLIER, answering(supplier), parking="jms/FailureOS")
        runtime.run()


main()
