"""One of the processes of the soak: a supplier, a requestor, or a publisher with its subscribers.

Usage: soaking_process.py ROLE URL PACE. It prints `ready` after its first exchange, ends at the first line of standard
input, and prints a JSON object: what became of its exchanges, and what of the SDK was left when all was closed.
MTOSI_SOAK_CENSUS, in seconds, has it print to standard error which types of objects have become more since the last
time, and where what was made since the first time was made.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

from mtosi_jms import Publisher, Requestor, Subscriber, Supplier, connect
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import ExchangeError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import DeliveryMode, Topic
from mtosi_jms.notifications import Loss
from mtosi_jms.service import CallOptions
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.transport import PROVIDERS

NAMES = {"jms/SoakOS": "queue:SOAK.OS", "jms/SoakEms": "queue:SOAK.EMS"}
TOPIC = Topic("SOAK.FAULTS")
NETWORK = Network(elements=40)
BATCH = 5
ATTEMPTS = 30
OURS = (
    "mtosi_jms.transport.",
    "mtosi_jms.exchange._requestor",
    "mtosi_jms.exchange._supplier",
    "mtosi_jms.exchange._receiver",
    "mtosi_jms.exchange._pending",
)
Figures = dict[str, Any]


def ask(url: str, pace: float, stopped: threading.Event) -> Figures:
    """Two threads, one for each pattern; what fails is asked for again, until it is answered."""
    counts: Counter[str] = Counter()
    options = CallOptions(timeout=5)
    begun = threading.Barrier(3)

    def one() -> None:
        wanted = NETWORK.element_name(counts["begun"] % NETWORK.elements)
        if retrieval.get_managed_element(me_ref=wanted, options=options).me.name != wanted:
            counts["wrong"] += 1

    def many() -> None:
        batches = retrieval.get_all_managed_elements.batches(batch_size=BATCH, options=options)
        elements = [element.name for batch in batches for element in batch.me_list.me]
        if elements != [NETWORK.element_name(index) for index in range(NETWORK.elements)]:
            counts["wrong"] += 1

    def go_on(exchange: Callable[[], None]) -> None:
        surely(exchange, counts)
        begun.wait()
        while not stopped.wait(pace):
            counts["begun"] += 1
            counts["done" if surely(exchange, counts) else "lost"] += 1

    with connect(url, names=NAMES) as connection, Requestor(connection, sender_uri="jms/SoakOS") as requestor:
        retrieval = ManagedElementRetrieval(requestor, "jms/SoakEms")
        threads = [threading.Thread(target=go_on, args=(exchange,)) for exchange in (one, many)]
        for thread in threads:
            thread.start()
        begun.wait()
        ready()
        for thread in threads:
            thread.join()
        counts["orphans"] = requestor.orphans
        counts["pending"] = requestor.pending
    return dict(counts)


def surely(action: Callable[[], object], counts: Counter[str]) -> bool:
    """Does it until it is done; counts what went wrong."""
    for _ in range(ATTEMPTS):
        try:
            action()
        except UnknownOutcomeError:
            counts["unknown"] += 1
        except TransportError:
            counts["interrupted"] += 1
        except ExchangeError:
            counts["timed out"] += 1
        else:
            return True
        counts["resent"] += 1
    return False


def answer(url: str, pace: float, stopped: threading.Event) -> Figures:
    """Two threads answer; a supplier that a lost connection has ended is started again."""
    counts: Counter[str] = Counter()
    with connect(url, names=NAMES) as connection:
        while not stopped.is_set():
            counts["started"] += 1
            with Supplier(connection, "jms/SoakEms", [ManagedElementEms(NETWORK)]).start(2) as supplier:
                if counts["started"] == 1:
                    ready()
                while supplier.is_running and not stopped.wait(0.2):
                    pass
    return dict(counts)


def ready() -> None:
    print("ready", flush=True)


class Heard:
    """Which of the numbered events a subscriber got; what it keeps does not grow."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.last = -1
        self._told = False

    def on_loss(self, loss: Loss) -> None:
        self._told = True
        self.counts["losses told"] += not loss.over

    def take(self, number: int) -> None:
        self.counts["events"] += 1
        missed = max(number - self.last - 1, 0)
        self.counts["missed"] += missed
        if missed and not self._told:
            self.counts["missed untold"] += missed
        self.counts["again"] += number <= self.last
        self.last = max(self.last, number)
        self._told = False


def notify(url: str, pace: float, stopped: threading.Event) -> Figures:
    """Events with numbers; a durable subscription has all of them, another one all but those whose loss it tells."""
    ended = threading.Event()
    counts: Counter[str] = Counter()
    durable, passing = Heard(), Heard()
    profile = BindingProfile(delivery_mode=DeliveryMode.PERSISTENT)

    def listen(subscriber: Subscriber, heard: Heard) -> None:
        while not ended.is_set():
            try:
                for event, _, _ in subscriber:
                    if isinstance(event, Alarm):
                        heard.take(int(str(event.object_name).removeprefix("ME=")))
            except TransportError:
                heard.counts["interrupted"] += 1

    with (
        connect(url, client_id="soak") as connection,
        connect(url) as sending,
        Subscriber(connection, TOPIC, durable="soak", timeout=0.5, on_loss=durable.on_loss) as keeping,
        Subscriber(connection, TOPIC, timeout=0.5, on_loss=passing.on_loss) as other,
        Publisher(sending, {"Fault": TOPIC}, sender_uri="jms/SoakEms", profile=profile) as publisher,
    ):
        listeners = [threading.Thread(target=listen, args=one) for one in ((keeping, durable), (other, passing))]
        for thread in listeners:
            thread.start()
        number = 0
        while not stopped.wait(pace):
            alarm = Alarm(object_type="ME", object_name=name(f"ME={number}"))
            counts["published" if surely(lambda event=alarm: publisher.publish(event), counts) else "lost"] += 1
            if number == 0:
                ready()
            number += 1
        until = time.monotonic() + 60
        while durable.last < number - 1 and time.monotonic() < until:
            ended.wait(0.1)
        ended.set()
        for thread in listeners:
            thread.join()
        keeping.unsubscribe()
    counts["lost"] += durable.counts["missed"] + number - 1 - durable.last
    return {**counts, "durable": durable.counts, "passing": passing.counts}


def kind_of(one: object) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"


def ours() -> Counter[str]:
    """Objects of the SDK's transports and roles, by kind."""
    gc.collect()
    return Counter(kind for kind in map(kind_of, gc.get_objects()) if kind.startswith(OURS))


ATTACHED = Counter({"mtosi_jms.transport.jvm.machine._Attachment": 1})
"""The main thread's, which ends with it: over jvm: it belongs to the Java machine from its first call on."""


def left(before: Counter[str]) -> dict[str, int]:
    """Those that were not there before, after threads that were ended have had time to end."""
    until = time.monotonic() + 30
    pause = threading.Event()
    while (found := ours() - before - ATTACHED) and time.monotonic() < until:
        pause.wait(0.1)
    return dict(found)


def census(seconds: float) -> None:
    """For who looks for a leak: what there is more of, and where it was made."""
    before: Counter[str] = Counter()
    tracemalloc.start(12)
    first = tracemalloc.take_snapshot()
    pause = threading.Event()
    while not pause.wait(seconds):
        gc.collect()
        now = Counter(map(kind_of, gc.get_objects()))
        more = {kind: (count, count - before[kind]) for kind, count in now.items() if count - before[kind] > 20}
        print(os.getpid(), tracemalloc.get_traced_memory(), more, file=sys.stderr, flush=True)
        snapshot = tracemalloc.take_snapshot()
        if not before:
            first = snapshot
        for line in snapshot.compare_to(first, "lineno")[:12]:
            print("   ", line, file=sys.stderr, flush=True)
        before = now


ROLES = {"requestor": ask, "supplier": answer, "notifier": notify}


def main(role: str, url: str, pace: str) -> None:
    logging.basicConfig(level=logging.CRITICAL)
    if every := os.environ.get("MTOSI_SOAK_CENSUS"):
        threading.Thread(target=census, args=(float(every),), daemon=True).start()
    stopped = threading.Event()

    def wait() -> None:
        sys.stdin.readline()
        stopped.set()

    threading.Thread(target=wait, daemon=True).start()
    import_module(PROVIDERS[url.partition(":")[0]])
    before = ours()
    figures = ROLES[role](url, float(pace), stopped)
    print(json.dumps({**figures, "left": left(before)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
