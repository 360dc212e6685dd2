"""The consumer runtime: has messages of one destination handled, in parallel where order allows, and loses none.

from mtosi_jms.runtime import ConsumerRuntime, RuntimeRules, answering

supplier = mtosi.Supplier(connection, "jms/EmsOS", services=[Ems()])
runtime = ConsumerRuntime(connection, supplier.destination, answering(supplier), rules=RuntimeRules(concurrency=8))
runtime.run()                 # until SIGTERM, or `drain` from another thread
"""

from __future__ import annotations

from mtosi_jms.runtime._consumer import ConsumerRuntime
from mtosi_jms.runtime._handlers import Handler, HandlingContext, RuntimeRules, answering, events
from mtosi_jms.runtime._health import Health, State
from mtosi_jms.transport import Backoff

__all__ = [
    "Backoff",
    "ConsumerRuntime",
    "Handler",
    "HandlingContext",
    "Health",
    "RuntimeRules",
    "State",
    "answering",
    "events",
]
