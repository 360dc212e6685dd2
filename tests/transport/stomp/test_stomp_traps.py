"""What a client of STOMP falls into on real brokers, one test each; docs/stomp.md names them."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

import pytest

from mtosi_jms.errors import ResourceLimitError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue, Topic
from mtosi_jms.transport import AckMode
from mtosi_jms.transport.stomp import _wire as wire

from .conftest import take
from .proxy import Proxy

pytestmark = pytest.mark.broker
PATIENCE = 60.0
PERSISTENT = DeliveryMode.PERSISTENT


def test_small_frames_are_not_held_back(broker: Any, open_stomp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without TCP_NODELAY a reply and an acknowledgement cost 41 ms."""
    made: list[socket.socket] = []
    create = socket.create_connection

    def remembered(*arguments: Any, **options: Any) -> socket.socket:
        made.append(create(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(wire.socket, "create_connection", remembered)
    open_stomp(broker.endpoints.url("stomp"))
    assert [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0 for one in made] == [True]


def test_a_listener_may_wait_for_the_broker(broker: Any, open_stomp: Any, queue: Queue) -> None:
    """It sends with a receipt, acknowledges, makes a consumer, while more comes in: the thread that reads goes on."""
    connection = open_stomp(broker.endpoints.url("stomp"), send_timeout=PATIENCE)
    answers = Queue(f"{queue.name}.answers")
    replies = connection.session().consumer(answers)
    session, done, heard = connection.session(), threading.Event(), []

    def on_message(delivery: Any) -> None:
        session.send(answers, JmsMessage(body=delivery.message.body, delivery_mode=PERSISTENT))
        session.consumer(Queue(f"{queue.name}.other")).close()
        delivery.acknowledge()
        heard.append(delivery.message.body)
        if len(heard) == 30:
            done.set()

    sender = connection.session()
    for number in range(30):
        sender.send(queue, JmsMessage(body=b"%d" % number))
    session.consumer(queue).listen(on_message)
    assert done.wait(PATIENCE)
    assert [take(replies) for _ in range(30)] == heard == [b"%d" % number for number in range(30)]


def test_nothing_is_refused_by_nack(by_proxy: Any, proxy: Any, queue: Queue) -> None:
    """ActiveMQ takes NACK for "dead", Artemis for "done": what is wanted again is not told to the broker."""
    connection = by_proxy()
    session = connection.session()
    session.send(queue, JmsMessage(body=b"1", delivery_mode=PERSISTENT))
    consumer = session.consumer(queue)
    assert consumer.receive(PATIENCE).message.body == b"1"
    session.recover()
    assert consumer.receive(PATIENCE).message.redelivered
    session.close()
    listening, again = connection.session(), threading.Event()

    def on_message(delivery: Any) -> None:
        if not again.is_set():
            again.set()
            raise RuntimeError("not now")
        delivery.acknowledge()
        done.set()

    done = threading.Event()
    listening.consumer(queue).listen(on_message, lambda error, delivery: None)
    assert done.wait(PATIENCE)
    connection.close()
    assert b"SUBSCRIBE" in proxy.sent
    assert b"NACK" not in proxy.sent


@pytest.mark.parametrize("name", ["queue/x", "/queue/x", "/topic/x", "topic://x", "temp-queue/x", "größe"])
def test_a_name_is_never_read_as_an_address(broker: Any, open_stomp: Any, queue: Queue, name: str) -> None:
    """A mistyped prefix is accepted in silence: so each name goes below the prefix of its kind."""
    session = open_stomp(broker.endpoints.url("stomp")).session()
    there = Queue(f"{name}.{queue.name}")
    session.send(there, JmsMessage(body=b"here", delivery_mode=PERSISTENT, reply_to=there))
    delivery = session.consumer(there).receive(PATIENCE)
    assert (delivery.message.body, delivery.message.reply_to) == (b"here", there)
    delivery.acknowledge()


@pytest.mark.parametrize("kind", [Queue, Topic])
def test_a_destination_that_nobody_made(broker: Any, open_stomp: Any, queue: Queue, kind: Any) -> None:
    """The broker makes it when it is first read or sent to."""
    session = open_stomp(broker.endpoints.url("stomp")).session()
    there = kind(f"{queue.name}.new")
    consumer = session.consumer(there)
    session.send(there, JmsMessage(body=b"1"))
    assert take(consumer) == b"1"


def test_a_reply_that_comes_before_its_consumer(broker: Any, open_stomp: Any, queue: Queue) -> None:
    """A temporary queue that nobody reads loses what is sent to it: it is read from the moment that it is made."""
    url = broker.endpoints.url("stomp")
    requestor = open_stomp(url).session()
    temporary = requestor.temporary_queue()
    requestor.send(queue, JmsMessage(body=b"<ask/>", delivery_mode=PERSISTENT, reply_to=temporary))
    supplier = open_stomp(url).session()
    question = supplier.consumer(queue).receive(PATIENCE)
    supplier.send(question.message.reply_to, JmsMessage(body=b"<answer/>"))  # confirmed: it has arrived
    question.acknowledge()
    assert take(requestor.consumer(temporary)) == b"<answer/>"


def store_of_a_megabyte(attributes: str = "") -> str:
    """ActiveMQ's limit."""
    limit = '<storeUsage><storeUsage limit="1 mb"/></storeUsage>'
    return f"<systemUsage><systemUsage{attributes}>{limit}</systemUsage></systemUsage>"


ADDRESS_OF_20_KB = "<max-size-bytes>20000</max-size-bytes><address-full-policy>FAIL</address-full-policy>"


class TestFull:
    """A broker without room: a send ends all the same, and what else is done goes on."""

    def send_on(self, session: Any, queue: Queue) -> None:
        for _ in range(200):
            properties = {"MTOSI_security": "t0p"}
            session.send(queue, JmsMessage(body=b"x" * 20_000, delivery_mode=PERSISTENT, properties=properties))

    @pytest.mark.endurance
    def test_one_that_says_nothing(self, start_broker: Any, open_stomp: Any, queue: Queue) -> None:
        """ActiveMQ holds the sender up, and its heart-beats look healthy."""
        broker = start_broker("activemq", protocols=["stomp"], settings=store_of_a_megabyte())
        session = open_stomp(broker.endpoints.url("stomp"), send_timeout=2.0).session()
        with pytest.raises(UnknownOutcomeError, match="no receipt within"):
            self.send_on(session, queue)

    @pytest.mark.parametrize(
        ("kind", "settings", "error"),
        [
            ("activemq", store_of_a_megabyte(' sendFailIfNoSpace="true"'), ResourceLimitError),
            ("artemis", ADDRESS_OF_20_KB, TransportError),  # it does not say why
        ],
        ids=["activemq", "artemis"],
    )
    def test_one_that_refuses(
        self, start_broker: Any, open_stomp: Any, queue: Queue, kind: str, settings: str, error: type[Exception]
    ) -> None:
        broker = start_broker(kind, protocols=["stomp"], settings=settings)
        connection = open_stomp(broker.endpoints.url("stomp"), send_timeout=PATIENCE)
        with pytest.raises(error) as caught:
            self.send_on(connection.session(), queue)
        assert "t0p" not in str(caught.value)
        other = connection.session()
        temporary = other.temporary_queue()
        consumer = other.consumer(temporary)
        other.send(temporary, JmsMessage(body=b"small"))
        assert take(consumer) == b"small"


def test_artemis_refuses_headers_beyond_its_journal(artemis: Any, open_stomp: Any, queue: Queue) -> None:
    """An ERROR frame, which ends the connection: the sender hears of it, and the next send goes over a new one."""
    session = open_stomp(artemis.endpoints.url("stomp"), send_timeout=PATIENCE).session()
    with pytest.raises(TransportError) as caught:
        session.send(queue, JmsMessage(body=b"<b/>", properties={"p": "x" * 300_000}, delivery_mode=PERSISTENT))
    assert "xxx" not in str(caught.value)
    for _ in range(5):
        with contextlib.suppress(UnknownOutcomeError):  # it went out before the end of the connection was noticed
            session.send(queue, JmsMessage(body=b"after", delivery_mode=PERSISTENT))
            break
    assert take(session.consumer(queue)) == b"after"


def test_a_transaction_is_seen_whole(broker: Any, open_stomp: Any, queue: Queue) -> None:
    """A receipt inside a transaction comes before its commit: nothing of it is there until COMMIT is confirmed."""
    connection = open_stomp(broker.endpoints.url("stomp"), send_timeout=PATIENCE)
    session, consumer = connection.session(transacted=True), connection.session(AckMode.AUTO).consumer(queue)
    for number in range(300):
        session.send(queue, JmsMessage(body=b"%d" % number, delivery_mode=PERSISTENT))
    plain = connection.session()
    plain.send(queue, JmsMessage(body=b"plain", delivery_mode=PERSISTENT))  # confirmed, and all before it was not sent
    assert take(consumer) == b"plain"
    session.commit()
    assert [take(consumer) for _ in range(300)] == [b"%d" % number for number in range(300)]


def test_an_answer_of_the_management_does_not_stay(
    artemis: Any, open_stomp: Any, queue: Queue, request: pytest.FixtureRequest
) -> None:
    """Artemis keeps an answer, with its queue, that is not acknowledged before the subscription ends."""
    proxy = Proxy(artemis.endpoints.ports["stomp"])
    request.addfinalizer(proxy.close)
    user, password = artemis.endpoints.user, artemis.endpoints.password
    session = open_stomp(f"stomp://127.0.0.1:{proxy.port}", user=user, password=password).session()
    for _ in range(3):
        session.send(queue, JmsMessage(body=b"<a/>"))
    assert len(list(session.headers(queue))) == 3
    frames = [frame.split(b"\n", 1)[0] for frame in bytes(proxy.sent).replace(b"\0\n", b"\0").split(b"\0")]
    asked, acknowledged = proxy.sent.count(b"_AMQ_OperationName"), frames.count(b"ACK")
    assert asked > 3
    assert acknowledged == asked
    assert frames.index(b"UNSUBSCRIBE") > max(at for at, command in enumerate(frames) if command == b"ACK")
