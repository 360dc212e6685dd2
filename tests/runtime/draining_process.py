"""A consumer on an embedded provider, for a test that sends SIGTERM.

Its handler says `begun` and returns when the runtime drains, or, with `stubborn`, when it is cancelled.
"""

from __future__ import annotations

import sys
from typing import Any

from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.runtime import ConsumerRuntime, RuntimeRules, State
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

WORK = Queue("WORK")


def handle(message: JmsMessage, context: Any) -> None:
    print("begun", flush=True)
    until = context.cancelled.is_set if "stubborn" in sys.argv else lambda: runtime.health.state is State.DRAINING
    while not until():
        context.cancelled.wait(0.005)


provider = MemoryProvider()
rules = RuntimeRules(drain=0 if "stubborn" in sys.argv else 60)
runtime = ConsumerRuntime(lambda: MemoryConnection(provider), WORK, handle, rules=rules)


def main() -> None:
    with MemoryConnection(provider) as connection, connection.session() as session:
        for number in range(3):
            session.send(WORK, JmsMessage(body=b"%d" % number))
        runtime.run()
        left = [message.body.decode() for message in session.browse(WORK)]
        print(runtime.health.state.value, runtime.health.handled, *left, flush=True)


main()
