"""Connections cut or standing still, a full store, handlers that are slow or fail, a reply that outlives a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import TransportError, UnknownOutcomeError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules, answering
from mtosi_jms.spool import Inbox, Outbox
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType

pytestmark = pytest.mark.broker

ID = "MTOSIX_messageId"
PATIENCE = 60.0
SOON = Backoff(0.1, 1.0, 0.1)


def text(number: int, **fields: Any) -> JmsMessage:
    return JmsMessage(body=b"<n>%d</n>" % number, **fields)


def surely(outbox: Outbox, session: Any) -> None:
    """What an application does with an outbox: it sends what is left until nothing is."""
    for _ in range(20):
        try:
            outbox.resend(session)
        except TransportError:
            continue
        if not len(outbox):
            return
    pytest.fail("20 connections were lost")


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    with Outbox(tmp_path / "outbox") as made:
        yield made


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    with Inbox(tmp_path / "inbox") as made:
        yield made


class Receiving:
    """Has a queue's messages handled by way of an inbox, and notes them."""

    def __init__(self, connect: Callable[[], Any], queue: Queue, inbox: Inbox, act: Callable[[bytes], None]) -> None:
        self.bodies: list[bytes] = []
        self._changed = threading.Condition()
        self._act = act
        self.runtime = ConsumerRuntime(
            connect,
            queue,
            self._handle,
            inbox=inbox,
            parking=Queue(f"{queue.name}.parked"),
            rules=RuntimeRules(retry=SOON, reconnect=SOON),
        )

    def until(self, count: int) -> list[bytes]:
        """Returns, in order of their names, what was handled, once so many were; and no more come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(set(self.bodies)) >= count, PATIENCE), self.bodies
            return sorted(self.bodies)

    def _handle(self, message: JmsMessage, context: Any) -> None:
        self._act(message.body)
        with self._changed:
            self.bodies.append(message.body)
            self._changed.notify_all()


@pytest.fixture
def receiving(inbox: Inbox) -> Iterator[Callable[..., Receiving]]:
    made: list[Receiving] = []

    def start(connect: Callable[[], Any], queue: Queue, act: Callable[[bytes], None] = lambda body: None) -> Receiving:
        made.append(Receiving(connect, queue, inbox, act))
        made[-1].runtime.start()
        return made[-1]

    yield start
    for one in made:
        one.runtime.drain(5.0)


class TestUnknownOutcome:
    """The error has what is needed to send again, and the copy is recognised."""

    def test_a_transaction(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        session = by_proxy().session(transacted=True)
        for number in (1, 2):
            session.send(queue, text(number, delivery_mode=DeliveryMode.PERSISTENT, properties={ID: f"id-{number}"}))
        proxy.cut_at_answer(b"RECEIPT", once_sent=b"COMMIT")
        with pytest.raises(UnknownOutcomeError) as caught:
            session.commit()
        assert [found.properties[ID] for found in caught.value.messages] == ["id-1", "id-2"]
        assert {found.destination for found in caught.value.messages} == {queue}

    def test_an_asynchronous_send(self, by_proxy: Any, proxy: Any, queue: Queue) -> None:
        session = by_proxy().session()
        proxy.stall(to_client=True)
        future = session.send_async(queue, text(1, delivery_mode=DeliveryMode.PERSISTENT, properties={ID: "one"}))
        proxy.cut()
        with pytest.raises(UnknownOutcomeError) as caught:
            future.result(PATIENCE)
        proxy.flow()
        (found,) = caught.value.messages
        assert (found.destination, found.properties[ID]) == (queue, "one")

    @pytest.mark.parametrize("how", ["cut", "stalled"])
    def test_the_outbox_sends_again_and_the_inbox_drops_the_copy(
        self, by_proxy: Any, proxy: Any, queue: Queue, outbox: Outbox, inbox: Inbox, receiving: Any, how: str
    ) -> None:
        session = by_proxy(send_timeout=1.0).session()
        if how == "cut":
            proxy.cut_at_answer(b"RECEIPT")
        else:
            proxy.stall(to_client=True)
        with pytest.raises(UnknownOutcomeError):
            outbox.send(session, queue, text(1))
        proxy.flow()
        surely(outbox, session)
        outbox.send(by_proxy().session(), queue, text(2))
        received = receiving(by_proxy, queue)
        assert received.until(2) == [b"<n>1</n>", b"<n>2</n>"]
        assert inbox.duplicates >= 1
        assert (outbox.resent >= 1, inbox.in_doubt) == (True, [])


class TestHandlers:
    def test_cut_off_while_a_handler_works(
        self, by_proxy: Any, proxy: Any, queue: Queue, outbox: Outbox, inbox: Inbox, receiving: Any
    ) -> None:
        """The message is the inbox's by then: the handler goes on, and nobody else gets it."""
        begun, go_on = threading.Event(), threading.Event()

        def slowly(body: bytes) -> None:
            if body == b"<n>0</n>":
                begun.set()
                assert go_on.wait(PATIENCE)

        session = by_proxy().session()
        for number in range(3):
            outbox.send(session, queue, text(number))
        received = receiving(by_proxy, queue, slowly)
        assert begun.wait(PATIENCE)
        proxy.cut()
        outbox.put(text(3), queue)
        surely(outbox, session)
        go_on.set()
        assert received.until(4) == [b"<n>%d</n>" % number for number in range(4)]

    def test_one_that_fails_at_first(
        self, by_proxy: Any, queue: Queue, outbox: Outbox, inbox: Inbox, receiving: Any
    ) -> None:
        attempts: list[bytes] = []

        def failing(body: bytes) -> None:
            attempts.append(body)
            if attempts.count(body) < 3:
                raise LookupError("not yet")

        session = by_proxy().session()
        for number in range(3):
            outbox.send(session, queue, text(number))
        received = receiving(by_proxy, queue, failing)
        assert received.until(3) == [b"<n>%d</n>" % number for number in range(3)]
        assert len(attempts) == 9


SMALL_STORE = """
<persistenceAdapter>
<kahaDB directory="{folder}" journalMaxFileLength="512kb" checkpointInterval="200" cleanupInterval="200"/>
</persistenceAdapter>
<systemUsage><systemUsage>
<memoryUsage><memoryUsage limit="64 mb"/></memoryUsage>
<storeUsage><storeUsage limit="3 mb"/></storeUsage>
<tempUsage><tempUsage limit="1 mb"/></tempUsage>
</systemUsage></systemUsage>
"""


def test_a_full_store_loses_nothing(
    start_broker: Any, open_stomp: Any, tmp_path: Path, outbox: Outbox, inbox: Inbox, receiving: Any
) -> None:
    """ActiveMQ says nothing then, with healthy heart-beats; the sender is told, and goes on when there is room."""
    settings = SMALL_STORE.format(folder=tmp_path / "store")
    broker = start_broker("activemq", tmp_path / "broker", protocols=["stomp"], settings=settings)
    url, queue = broker.endpoints.url("stomp"), Queue("full.store")
    session = open_stomp(url, send_timeout=2.5).session()
    stored = 0

    def fill() -> None:
        nonlocal stored
        for _ in range(200):
            stored += 1
            outbox.send(session, queue, JmsMessage(body=b"%d %s" % (stored, b"x" * 100_000)))

    with pytest.raises(TransportError):
        fill()
    assert stored > 5
    assert len(outbox) == 1
    received = receiving(lambda: mtosi.connect(url), queue)
    surely(outbox, session)
    bodies = received.until(stored)
    assert len(bodies) == stored
    assert sorted(int(body.split()[0]) for body in bodies) == list(range(1, stored + 1))


class Ems(ManagedElementRetrieval.Supplier):
    """Gives the second half of its elements when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.half, self.go_on = threading.Event(), threading.Event()

    def get_all_managed_elements(self, request: Any, context: Any) -> Any:
        self.asked += 1
        for number in range(60):
            if number == 31:
                self.half.set()
                assert self.go_on.wait(PATIENCE)
            yield ManagedElementType(name=name(f"MD=EMS1/ME={number}"))


def test_a_long_reply_outlives_the_broker(own_broker: Any, inbox: Inbox) -> None:
    """Half of the batches come before the broker is killed, the others after it is back.

    The request is handed once; again where the broker died before it had confirmed the last of the batches.
    """
    broker = own_broker()
    url, names = broker.endpoints.url("stomp"), {"jms/EmsOS": "queue:EMS", "jms/OS": "queue:OS"}
    ems, profile = Ems(), BindingProfile(delivery_mode=DeliveryMode.PERSISTENT)
    with mtosi.connect(url, names=names, connect_timeout=5) as ours, mtosi.connect(url, names=names) as theirs:
        supplier = mtosi.Supplier(theirs, "jms/EmsOS", services=[ems], profile=profile)
        rules = RuntimeRules(retry=SOON, reconnect=SOON)
        runtime = ConsumerRuntime(
            theirs, supplier.destination, answering(supplier), inbox=inbox, parking=Queue("P"), rules=rules
        )
        with runtime, mtosi.Requestor(ours, sender_uri="jms/OS", profile=profile) as requestor:
            call = ManagedElementRetrieval(requestor, "jms/EmsOS").get_all_managed_elements
            batches = iter(call.batches(batch_size=5))
            found = [next(batches) for _ in range(6)]
            assert ems.half.wait(PATIENCE)
            broker.kill()
            own_broker()
            ems.go_on.set()
            found += batches
            sizes = [len(batch.me_list.me) for batch in found]
            runtime.drain(PATIENCE)
    assert sizes == [5] * 12
    names_found = {str(me.name) for batch in found for me in batch.me_list.me}
    assert len(names_found) == 60
    assert (inbox.handed, len(inbox)) in ((1, 0), (2, 0))
