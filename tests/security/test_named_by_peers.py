"""Destinations that a peer names: nothing goes where the policy did not mean it to, whatever a broker reads in it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import InvalidDestinationError
from mtosi_jms.jms import Destination, JmsMessage, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.transport.stomp._dialect import ActiveMQ, Artemis

PATIENCE = 30.0
VICTIM = "PRIVATE"
TRICKS: tuple[Destination, ...] = (
    Queue(f"{VICTIM},OTHER"),
    Queue(f"REPLIES,topic://{VICTIM}"),
    Queue(f"{VICTIM}?consumer.exclusive=true"),
    Queue(f"queue://{VICTIM}"),
    Queue(f"REPLIES::{VICTIM}"),
    Queue("PRIV*"),
    Queue("REPLIES.>"),
    Queue("REPLIES.#"),
    Queue("activemq.management"),
    Queue("ActiveMQ.Scheduler.Management"),
    TemporaryQueue(f"ID:vm-1,{VICTIM}"),
    TemporaryQueue(f"mtosi-jms.temporary.{'0' * 32}::{VICTIM}"),
)
_numbers = itertools.count(1)


@pytest.mark.obligation("SEC19")
@pytest.mark.parametrize("trick", TRICKS, ids=str)
@pytest.mark.parametrize("names", [None, {"jms/Replies": "queue:REPLIES"}], ids=["no names", "names"])
@pytest.mark.parametrize("policy", [None, lambda _: True], ids=["default", "any"])
def test_a_name_that_means_more_is_refused(trick: Destination, names: Any, policy: Any) -> None:
    """Even where the policy is not particular: it judges one destination, and the broker would serve others."""
    told: list[Exception] = []
    with mtosi.connect(f"memory:tricks-{next(_numbers)}", names=names) as connection:
        ems = ManagedElementEms(Network(elements=1))
        supplier = mtosi.Supplier(connection, Queue("EMS"), [ems], reply_policy=policy, on_error=told.append)
        supplier.answer(replace(a_request(), reply_to=trick), connection.session())
    assert [type(error) for error in told] == [InvalidDestinationError]


@pytest.mark.obligation("SEC19")
def test_what_our_own_configuration_names_is_our_own_business() -> None:
    odd = Queue("REPLIES,COPY")
    with mtosi.connect(f"memory:tricks-{next(_numbers)}", names={"jms/Both": odd}) as connection:
        supplier = mtosi.Supplier(connection, Queue("EMS"), [ManagedElementEms(Network(elements=1))])
        connection.start()
        session = connection.session()
        supplier.answer(replace(a_request(), reply_to=odd), session)
        assert session.consumer(odd).receive(60) is not None


@pytest.mark.parametrize(
    "name", ["EMS.OS", "replies/of-noc", "größe", "ID:host-1-2-3:1:1", "a b", "jms.queue.X", "MyActiveMQ.X"]
)
def test_usual_names_are_plain(name: str) -> None:
    assert Queue(name).is_plain


UUID = "5c354809-7c99-4da3-9f54-6508c6429acf"
OURS = "mtosi-jms.temporary." + "0a" * 16


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (f"temp-queue://{UUID}", TemporaryQueue),
        (f"temp-topic://{UUID}", TemporaryTopic),
        ("temp-queue://ID:vm-34733-1795339691204-1:1:1", TemporaryQueue),
        (f"queue://{OURS}", TemporaryQueue),
        (f"topic://{OURS}", TemporaryTopic),
        (f"temp-queue://{VICTIM}", Queue),
        (f"temp-topic://{VICTIM}", Topic),
        (f"temp-queue://{UUID}::{VICTIM}", Queue),
        (f"temp-queue://ID:x,{VICTIM}", Queue),
        (f"queue://{OURS}::{VICTIM}", Queue),
        (f"queue://mtosi-jms.temporary.{VICTIM}", Queue),
        (f"queue://{VICTIM}", Queue),
        (VICTIM, Queue),
    ],
)
@pytest.mark.obligation("SEC19")
def test_who_says_temporary_of_a_queue_of_artemis_is_not_believed(header: str, kind: type[Destination]) -> None:
    """To Artemis it is a word before a name, and any name will do; a policy lets temporary queues pass."""
    found = Artemis("2.44.0").destination(header, {})
    assert type(found) is kind


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (f"/queue/{VICTIM}", Queue),
        (f"/remote-temp-queue/{VICTIM}", TemporaryQueue),
        ("/queue/", None),
        (VICTIM, None),
        (f"queue://{VICTIM}", None),
    ],
)
def test_addresses_of_activemq(header: str, kind: type[Destination] | None) -> None:
    """Its temporary queues are a kind of their own: no name reaches a queue that is none."""
    found = ActiveMQ("5.17.2").destination(header, {})
    assert (None if found is None else type(found)) is kind


def a_request() -> JmsMessage:
    """A request that is in order, but for its reply address."""
    with mtosi.connect(f"memory:tricks-{next(_numbers)}") as connection:
        consumer = connection.session().consumer(Queue("EMS"))
        connection.start()
        with mtosi.Requestor(connection, sender_uri="jms/OS", temporary_reply=True) as requestor:
            ManagedElementRetrieval(requestor, Queue("EMS")).get_all_managed_elements.batches(batch_size=0)
            delivery = consumer.receive(PATIENCE)
    assert delivery is not None
    return replace(delivery.message, reply_to=None)


@pytest.mark.obligation("SEC19")
@pytest.mark.broker
@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_no_trick_gets_a_reply_into_a_private_queue(kind: str, request: pytest.FixtureRequest) -> None:
    """On real brokers, which read names in their own way; the last request is in order, and is answered."""
    broker = request.getfixturevalue(kind)
    base = f"security.{next(_numbers)}"
    victim, requests, replies = Queue(f"{base}.{VICTIM}"), Queue(f"{base}.EMS"), Queue(f"{base}.REPLIES")
    url = broker.endpoints.url("stomp")
    told: list[Exception] = []
    tricks: list[Destination] = [replace(one, name=one.name.replace(VICTIM, victim.name)) for one in TRICKS]
    news = Topic(f"{base}.NEWS")
    tricks += [victim, news, TemporaryQueue(victim.name), TemporaryTopic(news.name)]
    with (
        mtosi.connect(url, names={"jms/Replies": replies}) as theirs,
        mtosi.connect(url) as attacking,
        mtosi.Supplier(theirs, requests, [ManagedElementEms(Network(elements=1))], on_error=told.append),
    ):
        session, good = attacking.session(), a_request()
        private, answered = session.consumer(victim), session.consumer(replies)
        public = session.consumer(news)
        attacking.start()
        for trick in tricks:
            session.send(requests, replace(good, reply_to=trick))
        session.send(requests, replace(good, reply_to=replies))
        assert answered.receive(PATIENCE) is not None
        for place, consumer in ((victim, private), (news, public)):
            session.send(place, JmsMessage(body=b"<last/>"))
            delivery = consumer.receive(PATIENCE)
            assert delivery is not None
            assert delivery.message.body == b"<last/>"
    assert sum(isinstance(error, InvalidDestinationError) for error in told) >= len(tricks) - 2
