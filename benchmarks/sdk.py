"""The roles of an exchange as users of this SDK write them; `transport` leaves out SOAP and XML."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from typing import Any

from messaging import WANTED, Ems
from network import managed_element, managed_elements, read_leaves

import mtosi_jms as mtosi
from mtosi_jms.jms import DeliveryMode, JmsMessage
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.transport import AckMode, Connection, Delivery

IN_FLIGHT = 100
SECONDS = 60


def connect(plan: dict[str, Any]) -> Connection:
    """A connection to the broker of a plan."""
    names = {"jms/InventoryOS": f"queue:{plan['replies_name']}", "jms/EmsOS": f"queue:{plan['queue_name']}"}
    url = plan["jvm"] if "jvm" in plan["mode"].split() else f"stomp://127.0.0.1:{plan['port']}"
    return mtosi.connect(url, user=plan["user"], password=plan["password"], names=names, connect_timeout=60)


class Asker:
    """A hundred callers on one requestor: threads, or tasks of one event loop."""

    def __init__(self, plan: dict[str, Any]) -> None:
        requestor = mtosi.Requestor(connect(plan), sender_uri="jms/InventoryOS")
        self.service = ManagedElementRetrieval(requestor, "jms/EmsOS")
        self.work = self._tasks if "asyncio" in plan["mode"].split() else self._threads

    def run(self, amount: int) -> int:
        """Make this number of exchanges."""
        return sum(self.work(amount // IN_FLIGHT))

    def _threads(self, calls: int) -> list[int]:
        done: list[int] = []

        def work() -> None:
            for _ in range(calls):
                _check(self.service.get_managed_element(me_ref=WANTED))
            done.append(calls)

        workers = [threading.Thread(target=work) for _ in range(IN_FLIGHT)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return done

    def _tasks(self, calls: int) -> list[int]:
        async def work() -> int:
            for _ in range(calls):
                _check(await self.service.aio.get_managed_element(me_ref=WANTED))
            return calls

        async def all_of_them() -> list[int]:
            return await asyncio.gather(*[work() for _ in range(IN_FLIGHT)])

        return asyncio.run(all_of_them())


class BatchAsker(Asker):
    """One request after another, each with several answers; it reads every leaf, or only takes the batches."""

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan)
        self.size = plan["batch"]
        self.read: Callable[[Any], Any] = _read_all if plan["mode"] == "leaves" else _check_batch

    def run(self, amount: int) -> int:
        """Make this number of exchanges."""
        batches = 0
        for _ in range(amount):
            for batch in self.service.get_all_managed_elements.batches(batch_size=self.size):
                self.read(batch)
                batches += 1
        return batches


class Answerer:
    """A supplier with objects that were made beforehand."""

    def __init__(self, plan: dict[str, Any]) -> None:
        ems = Ems(list(managed_elements(1, plan["batch"] * plan["batches"])) or [managed_element(7)])
        self.supplier = mtosi.Supplier(connect(plan), "jms/EmsOS", services=[ems]).start()

    def run(self, amount: int) -> int:
        """Do nothing: it answers by itself."""
        return amount


def _check(response: Any) -> None:
    if response.me is None:
        raise RuntimeError("an answer without its managed element")


def _check_batch(response: Any) -> None:
    if not response.me_list.me:
        raise RuntimeError("a batch without managed elements")


def _read_all(response: Any) -> None:
    for me in response.me_list.me:
        read_leaves(me)


class Transport:
    """One connection with one session, and messages that were made beforehand."""

    def __init__(self, plan: dict[str, Any], **session: Any) -> None:
        self.plan = plan
        self.connection = connect(plan)
        self.connection.start()
        self.session = self.connection.session(**(session or {"ack_mode": AckMode.AUTO}))
        self.queue, self.replies = mtosi.Queue(plan["queue_name"]), mtosi.Queue(plan["replies_name"])
        self.over = threading.Event()

    def run(self, amount: int) -> int:
        """Do the work that this role begins."""
        return amount

    def finish(self) -> None:
        """Wait until the work that has begun is done."""
        if not self.over.wait(SECONDS):
            raise RuntimeError("no answer")
        self.over.clear()


class TransportAsker(Transport):
    """Keeps requests in flight; each answer triggers the next request."""

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan)
        request = plan["request"]
        self.message = JmsMessage(
            body=request["body"].encode(), properties=request["properties"], reply_to=self.replies
        )
        self.numbers = itertools.count()
        self.came = self.left = self.wanted = 0
        self.sending = self.connection.session()
        self.session.consumer(self.replies).listen(self.on_message)

    def run(self, amount: int) -> int:
        """Make this number of exchanges."""
        self.came, self.wanted = 0, amount
        first = min(IN_FLIGHT, amount)
        self.left = amount - first
        for _ in range(first):
            self.ask(self.sending)
        self.finish()
        return amount

    def ask(self, session: Any) -> None:
        """Send one request."""
        session.send(self.queue, _with_id(self.message, f"t-{next(self.numbers)}"))

    def on_message(self, delivery: Delivery) -> None:
        """Handle an answer."""
        self.came += 1
        if self.left:
            self.left -= 1
            self.ask(self.session)
        elif self.came == self.wanted:
            self.over.set()


class TransportBatchAsker(TransportAsker):
    """One request after another, each with several answers."""

    def run(self, amount: int) -> int:
        """Make this number of exchanges."""
        for _ in range(amount):
            self.came, self.wanted = 0, len(self.plan["answers"])
            self.ask(self.sending)
            self.finish()
        return amount * self.wanted


class TransportAnswerer(Transport):
    """Answers each request with answers that were made beforehand."""

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan)
        self.answers = [
            JmsMessage(body=answer["body"].encode(), properties=answer["properties"]) for answer in plan["answers"]
        ]
        self.session.consumer(self.queue).listen(self.on_message)

    def on_message(self, delivery: Delivery) -> None:
        """Handle a request."""
        for answer in self.answers:
            self.session.send(self.replies, _with_id(answer, delivery.message.correlation_id))


def _with_id(message: JmsMessage, identifier: str | None) -> JmsMessage:
    import dataclasses

    return dataclasses.replace(message, correlation_id=identifier)


class Source(Transport):
    """Sends persistent messages in transactions, one after the other."""

    def __init__(self, plan: dict[str, Any]) -> None:
        super().__init__(plan, transacted=True)
        message = plan["message"]
        self.message = JmsMessage(
            body=message["body"].encode(), properties=message["properties"], delivery_mode=DeliveryMode.PERSISTENT
        )

    def run(self, amount: int) -> int:
        """Send this number of messages."""
        size = self.plan["transaction"]
        for _ in range(amount // size):
            for _ in range(size):
                self.session.send(self.queue, self.message)
            self.session.commit()
        return amount


class Sink(Transport):
    """Receives the messages, in transactions if acknowledgements take part in the transactions of the broker."""

    def __init__(self, plan: dict[str, Any]) -> None:
        transacted = plan["transacted_receive"] or "jvm" in plan["mode"].split()
        super().__init__(plan, **({"transacted": True} if transacted else {"ack_mode": AckMode.CLIENT}))
        self.consumer = self.session.consumer(self.queue)

    def run(self, amount: int) -> int:
        """Receive this number of messages."""
        size, transacted = self.plan["transaction"], self.session.transacted
        for number in range(1, amount + 1):
            delivery = self.consumer.receive(SECONDS)
            if delivery is None:
                raise RuntimeError("no message")
            if not transacted:
                delivery.acknowledge()
            elif number % size == 0:
                self.session.commit()
        return amount


ROLES: dict[tuple[str, bool], tuple[Any, Any]] = {
    ("request", False): (Asker, Answerer),
    ("request", True): (TransportAsker, TransportAnswerer),
    ("batches", False): (BatchAsker, Answerer),
    ("batches", True): (TransportBatchAsker, TransportAnswerer),
    ("stream", True): (Source, Sink),
}
"""The roles by scenario and whether only the transport is used: the one that begins, and the one that answers."""


def role(plan: dict[str, Any], scenario: str, answers: bool) -> Any:
    """One side of an exchange."""
    return ROLES[scenario, "transport" in plan["mode"].split()][answers](plan)
