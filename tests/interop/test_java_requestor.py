"""A requestor in Java alone, and our Supplier: one answer, batches, faults; how it pairs; and what if it dies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.jms import Queue
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.transport import Connection

from ..waiting import background
from .conftest import Side
from .peer import PATIENCE, Peer

pytestmark = pytest.mark.broker
WAIT = str(int(PATIENCE * 1000))


class Ems(ManagedElementRetrieval.Supplier):
    """Five elements; of the operation for all of them a test may hold the middle."""

    def __init__(self, elements: int = 5) -> None:
        self.elements = elements
        self.under_way = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
        for number in range(1, self.elements + 1):
            yield ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}"))
            if number > self.elements // 2:
                self.under_way.set()
                self.go_on.wait(PATIENCE)

    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        if str(request.me_ref) != "MD=EMS1/ME=NE-3":
            raise EntityNotFoundFault("there is nobody \U0001f600")
        return mer.GetManagedElementResponse(me=ManagedElementType(name=request.me_ref))


def request_for(body: Any, identifier: str, *, batch_size: int | None = None) -> bytes:
    """A request's envelope, as a Java program would have it from its own tools."""
    pattern = CommunicationPatternType.MultipleBatchResponse if batch_size else CommunicationPatternType.SimpleResponse
    header = Header(
        activity_name="x",
        msg_type=MessageTypeType.REQUEST,
        sender_uri="jms/JavaOS",
        correlation_id=identifier,
        communication_pattern=pattern,
        communication_style=CommunicationStyleType.MSG,
        requested_batch_size=batch_size,
    )
    return Envelope(header=header, body=body).to_bytes()


def asked(peer: Peer, queue: Queue, request: bytes, pairing: str = "all") -> list[list[str]]:
    """What the Java requestor tells of the replies."""
    return [line[1:] for line in peer.ask("request", queue.name, peer.file(request), pairing, WAIT)]


BATCHES = [
    ["RESPONSE", "getAllManagedElementsResponse", "java-1", "1", "false", "NE-1 NE-2", ""],
    ["RESPONSE", "getAllManagedElementsResponse", "java-1", "2", "false", "NE-3 NE-4", ""],
    ["RESPONSE", "getAllManagedElementsResponse", "java-1", "3", "true", "NE-5", ""],
]


@pytest.mark.obligation("P5", "R4b", "R15b")
def test_an_answer_five_elements_in_batches_of_two_and_a_fault(
    peer: Peer, connection: Connection, queue: Queue
) -> None:
    with mtosi.Supplier(connection, queue, [Ems()]):
        every = request_for(mer.GetAllManagedElementsRequest(), "java-1", batch_size=2)
        assert asked(peer, queue, every) == BATCHES
        one = request_for(mer.GetManagedElementRequest(me_ref=name("MD=EMS1/ME=NE-3")), "java-2")
        assert asked(peer, queue, one) == [["RESPONSE", "getManagedElementResponse", "java-2", "", "", "NE-3", ""]]
        nobody = request_for(mer.GetManagedElementRequest(me_ref=name("MD=EMS1/ME=NE-9")), "java-3")
        assert asked(peer, queue, nobody) == [["ERROR", "Fault", "java-3", "", "", "", "there is nobody \U0001f600"]]


@pytest.mark.obligation("O13c")
@pytest.mark.parametrize(
    "side", ["openwire-activemq", pytest.param("openwire-artemis", marks=pytest.mark.endurance)], indirect=True
)
def test_a_requestor_that_pairs_by_message_id(peer: Peer, connection: Connection, queue: Queue) -> None:
    """Ids of Artemis' own client do not get as far as STOMP: docs/java.md has the way round, which is tested below."""
    with mtosi.Supplier(connection, queue, [Ems()]):
        every = request_for(mer.GetAllManagedElementsRequest(), "java-1", batch_size=2)
        assert asked(peer, queue, every, "message-id") == BATCHES


@pytest.mark.obligation("C62")
def test_a_requestor_that_pairs_by_a_correlation_id_of_its_own(
    peer: Peer, connection: Connection, queue: Queue
) -> None:
    profile = BindingProfile(jms_echo="correlation-id-first")
    with mtosi.Supplier(connection, queue, [Ems()], profile=profile):
        every = request_for(mer.GetAllManagedElementsRequest(), "java-1", batch_size=2)
        assert asked(peer, queue, every, "correlation-id") == BATCHES


def test_a_requestor_that_dies_in_the_middle_of_a_long_reply(side: Side, connection: Connection, queue: Queue) -> None:
    ems = Ems(elements=400)
    ems.go_on.clear()
    every = request_for(mer.GetAllManagedElementsRequest(), "java-1", batch_size=1)
    with mtosi.Supplier(connection, queue, [ems]) as supplier:
        dying = side.start()
        background(lambda: asked(dying, queue, every))
        assert ems.under_way.wait(PATIENCE)
        dying.kill()
        ems.go_on.set()
        one = request_for(mer.GetManagedElementRequest(me_ref=name("MD=EMS1/ME=NE-3")), "java-2")
        assert [line[2] for line in asked(side.peer, queue, one)] == ["java-2"]
        assert supplier.is_running
