"""What the tests of exchanges share: a small EMS, its elements, and threads that are waited for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import MtosiFault
from mtosi_jms.jms import JmsMessage
from mtosi_jms.service import RequestContext
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import Step
from mtosi_jms.transport import Connection

from ..waiting import PATIENCE, threads_end

_numbers = itertools.count()
NE1, NE7 = name("MD=EMS1/ME=NE-1"), name("MD=EMS1/ME=NE-7")


class SmallEms(ManagedElementRetrieval.Supplier):
    """Knows NE-1 to NE-n; asked for all it yields them.

    Attributes:
        contexts: of all requests, in order; emptied by the test that wants nothing kept.
    """

    def __init__(self, elements: int = 5) -> None:
        self.elements = elements
        self.contexts: list[RequestContext] = []

    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[ManagedElementType]:
        self.contexts.append(context)
        for number in range(1, self.elements + 1):
            yield ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}"), location=f"Hall {number}")

    def get_managed_element(self, request: Any, context: RequestContext) -> mer.GetManagedElementResponse:
        self.contexts.append(context)
        wanted = str(request.me_ref)
        if wanted not in {f"MD=EMS1/ME=NE-{number}" for number in range(1, self.elements + 1)}:
            raise EntityNotFoundFault(f"there is no {wanted}")
        return mer.GetManagedElementResponse(me=ManagedElementType(name=request.me_ref, location="Hall 1"))


class Gate:
    """An interceptor that holds messages which are about to be sent, until it is opened.

    Nothing is sent soon (`Session.send_soon`) before a message has been held.

    Attributes:
        held: set when a message is about to be sent.
        is_open: whether messages pass.
    """

    def __init__(self) -> None:
        self.held = threading.Event()
        self.is_open = threading.Event()

    def __call__(self, step: Step) -> Any:
        if step.action == "send_soon" and not self.held.is_set():
            return None
        if step.action == "send":
            self.held.set()
            assert self.is_open.wait(PATIENCE)
        return step.proceed()

    def shut(self) -> None:
        """Hold messages again."""
        self.is_open.clear()
        self.held.clear()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.is_open.set()


class FaultyEms(ManagedElementRetrieval.Supplier):
    """Does what it is told, whatever it is asked."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def get_managed_element(self, request: Any, context: RequestContext) -> Any:
        return self.act()

    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Any:
        return self.act()


def numbers(response: Any) -> list[int]:
    """The numbers of the elements in a response."""
    found = response.me_list.me if response.me_list is not None else []
    return [int(me.name.rdn[-1].value.removeprefix("NE-")) for me in found]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """Every thread of a test ends with it."""
    with threads_end():
        yield


def with_bodies(change: Callable[[bytes], bytes]) -> Callable[[list[JmsMessage]], list[JmsMessage]]:
    """For `exchange(tamper=...)`: replies whose bodies are changed."""
    return lambda replies: [replace(one, body=change(one.body)) for one in replies]


def fault_of(action: Callable[[], Any]) -> MtosiFault:
    """The fault that an action raises."""
    with pytest.raises(MtosiFault) as caught:
        action()
    return caught.value


@pytest.fixture(
    params=[
        "memory",
        pytest.param("activemq", marks=pytest.mark.broker),
        pytest.param("artemis", marks=[pytest.mark.broker, pytest.mark.endurance]),
    ]
)
def anywhere(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection to the embedded provider, and to each broker."""
    url = f"memory:anywhere-{next(_numbers)}"
    if request.param != "memory":
        url = request.getfixturevalue(request.param).endpoints.url("stomp")
    with mtosi.connect(url) as made:
        yield made


@pytest.fixture
def unused() -> str:
    """A name for a destination that no other test uses: brokers outlive tests."""
    return f"exchange.{next(_numbers)}"


@pytest.fixture(scope="module")
def stubs(release1: Any) -> Any:
    """The types of a package made of MTOSI 1.1, see `release1`."""
    return release1
