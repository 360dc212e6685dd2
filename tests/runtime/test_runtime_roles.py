"""The runtime with requests and with notifications."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mtosi_jms as mtosi
from mtosi_jms.jms import JmsMessage, Topic
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules, answering, events
from mtosi_jms.service import RequestContext
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import connect_privately

from ..waiting import until

NAMES = {"jms/OS": "queue:OS", "jms/Ems": "queue:EMS", "jms/Topic": "topic:T"}


class Ems(ManagedElementRetrieval.Supplier):
    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[ManagedElementType]:
        for number in range(7):
            yield ManagedElementType(name=name(f"MD=EMS/ME={number}"))


@contextmanager
def answered(rules: RuntimeRules) -> Iterator[tuple[ConsumerRuntime, ManagedElementRetrieval]]:
    with connect_privately(NAMES) as connection:
        supplier = mtosi.Supplier(connection, "jms/Ems", services=[Ems()])
        with (
            ConsumerRuntime(connection, supplier.destination, answering(supplier), rules=rules) as runtime,
            mtosi.Requestor(connection, sender_uri="jms/OS") as requestor,
        ):
            yield runtime, ManagedElementRetrieval(requestor, "jms/Ems")


def test_a_supplier_answers_in_the_runtime() -> None:
    with answered(RuntimeRules(concurrency=3)) as (runtime, retrieval):
        calls = [retrieval.get_all_managed_elements.batches(batch_size=3) for _ in range(6)]
        assert [[len(batch.me_list.me) for batch in call] for call in calls] == [[3, 3, 1]] * 6
    assert (runtime.health.handled, runtime.health.failures) == (6, 0)


def test_each_event_is_handled_and_a_message_that_cannot_be_read_is_parked(desk: Any) -> None:
    topic, seen = Topic("T"), []

    def on_event(event: Any, envelope: Any) -> None:
        seen.append((type(event).__name__, envelope.header.msg_name))

    connection = desk.connect()
    rules = RuntimeRules(attempts=2, retry=Backoff(0.0, 0.0, 0.0))
    with ConsumerRuntime(connection, topic, events(on_event), rules=rules) as runtime:
        publisher = mtosi.Publisher(connection, {"Inventory": topic}, sender_uri="jms/Ems")
        publisher.publish(ResourceObjectCreation(), category="Inventory")
        connection.session().send(topic, JmsMessage(body=b"<torn"))
        publisher.publish(ResourceObjectCreation(), category="Inventory")
        until(lambda: (runtime.health.handled, runtime.health.parked) == (2, 1))
    assert seen == [("ResourceObjectCreation", "notify")] * 2
    [parked] = desk.session.browse(connection.dead_letter)
    assert parked.body == b"<torn"
    assert parked.properties["MTOSIX_parkedReason"] == "MalformedXmlError"
    connection.close()
