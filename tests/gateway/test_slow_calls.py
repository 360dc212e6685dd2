"""Calls of HTTP clients are answered as their replies come (H6, S14): none waits for another, none for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.exchange import Supplier
from mtosi_jms.gateway import ByRequestor, Endpoint, HttpOptions, HttpServer, Store
from mtosi_jms.service import RequestContext
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.transport import Connection

from ..waiting import background
from .gateway_kills import NAME, asked

QUEUE = "queue:EMS.OS"
LONG = 60.0
ME = (
    "<m:meRef><n:rdn><n:type>MD</n:type><n:value>EMS1</n:value></n:rdn>"
    "<n:rdn><n:type>ME</n:type><n:value>NE-{}</n:value></n:rdn></m:meRef>"
)


class Ems(ManagedElementRetrieval.Supplier):
    """Answers what is asked for; the element 0 when it is let go."""

    def __init__(self) -> None:
        self.has_begun, self.may_go = threading.Event(), threading.Event()

    def get_managed_element(
        self, request: GetManagedElementRequest, context: RequestContext
    ) -> GetManagedElementResponse:
        wanted = request.me_ref
        if wanted is not None and str(wanted).endswith("NE-0"):
            self.has_begun.set()
            assert self.may_go.wait(LONG)
        return GetManagedElementResponse(me=ManagedElementType(name=wanted))


@pytest.fixture
def ems() -> Iterator[Ems]:
    made = Ems()
    yield made
    made.may_go.set()


@pytest.fixture
def serve(connection: Connection, ems: Ems) -> Iterator[Callable[..., str]]:
    servers: list[HttpServer] = []
    with (
        Supplier(connection, QUEUE, [ems]).start(2),
        mtosi.Requestor(connection, sender_uri="jms/Gateway", temporary_reply=True) as requestor,
    ):

        def start(**options: Any) -> str:
            endpoint = Endpoint(ByRequestor(requestor, QUEUE, Store(2**20)), HttpOptions(**options))
            servers.append(HttpServer(endpoint).start())
            return servers[-1].url

        yield start
        ems.may_go.set()
        for server in servers:
            server.stop()


def one(number: int) -> str:
    return asked("getManagedElement", what=ME.format(number))


@pytest.mark.obligation("001-S14")
def test_a_slow_call_holds_up_no_other(serve: Any, ems: Ems, client: Any) -> None:
    """Each gets the answer to its own request, whatever the order of the replies."""
    url = serve()
    slow = background(lambda: client(url).post(one(0)))
    assert ems.has_begun.wait(LONG)
    fast = [background(lambda number=number: client(url).post(one(number))) for number in range(1, 6)]
    for number, future in enumerate(fast, 1):
        assert NAME.findall(future.result(LONG).text) == [f"NE-{number}"]
    assert not slow.done()
    ems.may_go.set()
    assert NAME.findall(slow.result(LONG).text) == ["NE-0"]


@pytest.mark.obligation("001-S14")
def test_no_reply_in_time_is_504(serve: Any, ems: Ems, client: Any) -> None:
    """The late reply reaches nobody else."""
    asks = client(serve(answer_timeout=0.2))
    status, envelope = asks.ask(one(0))
    assert (status, envelope.fault.kind) == (504, "internalError")
    ems.may_go.set()
    assert NAME.findall(asks.post(one(3)).text) == ["NE-3"]
