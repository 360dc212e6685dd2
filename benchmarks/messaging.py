"""SimpleResponse and MultipleBatchResponse over the embedded provider: two roles in one process, one GIL.

No other Python library does this, so ours is only compared with limits: the binding without messaging (envelope,
header, mapping and body, written and read), the same in two threads, and bytes through `queue.Queue` without any XML.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from measure import Comparison, Side, compare, one_core
from network import BATCH, managed_element, managed_elements, read_leaves

import mtosi_jms as mtosi
from mtosi_jms.binding.mapping import from_jms, to_jms
from mtosi_jms.binding.profile import Validate
from mtosi_jms.jms import JmsMessage
from mtosi_jms.service import RequestContext
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import (
    GetAllManagedElementsRequest,
    GetAllManagedElementsResponse,
    GetManagedElementRequest,
    GetManagedElementResponse,
)
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType

T = TypeVar("T")
NAMES = {"jms/InventoryOS": "queue:INVENTORY", "jms/EmsOS": "queue:EMS"}
BINDING = "the same XML, no messaging"
WANTED = name("MD=EMS1/ME=NE-7")


class Ems(ManagedElementRetrieval.Supplier):
    """Answers with objects that were made beforehand, so that making them is not measured."""

    def __init__(self, elements: list[ManagedElementType]) -> None:
        self._elements = elements

    def get_managed_element(
        self, request: GetManagedElementRequest, context: RequestContext
    ) -> GetManagedElementResponse:
        """Return one of the objects."""
        return GetManagedElementResponse(me=self._elements[0])

    def get_all_managed_elements(
        self, request: GetAllManagedElementsRequest, context: RequestContext
    ) -> Iterator[ManagedElementType | GetAllManagedElementsResponse]:
        """Yield all objects; the SDK makes batches from them."""
        yield from self._elements


@contextmanager
def pair(elements: list[ManagedElementType], validate: Validate = "ignore") -> Iterator[ManagedElementRetrieval]:
    """A stub whose calls a supplier in another thread answers over `memory:`."""
    with mtosi.connect(f"memory:benchmark-{validate}", names=NAMES) as connection:
        supplier = mtosi.Supplier(connection, "jms/EmsOS", services=[Ems(elements)], validate=validate)
        with supplier, mtosi.Requestor(connection, sender_uri="jms/InventoryOS", validate=validate) as requestor:
            yield ManagedElementRetrieval(requestor, "jms/EmsOS")


def request_reply(*, quick: bool) -> Comparison:
    """One call after another."""
    with one_core():
        return _calls(
            "request", "SimpleResponse over memory:, 1 in flight, on one core", 1, 20 if quick else 300, quick
        )


def request_reply_100(*, quick: bool) -> Comparison:
    """A hundred calls in flight at once, each from a thread of its own."""
    title = "SimpleResponse over memory:, 100 in flight, each from a thread of its own on one requestor"
    return _calls("request-100", title, 100, 2 if quick else 20, quick)


def _calls(short: str, title: str, threads: int, calls: int, quick: bool) -> Comparison:
    element = managed_element(7)
    with pair([element]) as service:

        def call() -> None:
            me = service.get_managed_element(me_ref=WANTED).me
            if me is None:
                raise RuntimeError("an answer without its managed element")
            read_leaves(me)

        sides = [
            Side("mtosi_jms over memory:", "ours", _in_threads(threads, calls, lambda: call)),
            Side(BINDING, "limit", _binding_alone(element, threads * calls)),
            Side("the same XML in two threads, through queue.Queue", "limit", _echo(threads, calls, *_ends(element))),
            Side("queue.Queue echo, no XML", "limit", _echo(threads, calls, bytes, bytes, bytes)),
        ]
        found = compare(short, title, "round trips", sides, rounds=3 if quick else 7)
    found.notes.append(shares(found))
    return found


def shares(found: Comparison) -> str:
    """Return a text about the time of a round trip: the share of a limit is its time divided by ours."""
    part = {line.name: line.ratio for line in found.lines}
    binding = part[BINDING]
    return f"of a round trip the binding takes {binding:.0%}; provider, threads and correlation {1 - binding:.0%}"


def _in_threads(threads: int, calls: int, caller: Callable[[], Callable[[], None]]) -> Callable[[], int]:
    """Runs `calls` calls in each of some threads; a failure in any of them fails the run."""

    def run() -> int:
        done: list[int] = []

        def work() -> None:
            call = caller()
            for _ in range(calls):
                call()
            done.append(calls)

        if threads == 1:
            work()
        else:
            workers = [threading.Thread(target=work) for _ in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        return sum(done)

    return run


def _binding_alone(element: ManagedElementType, calls: int) -> Callable[[], int]:
    """Return a run that writes and reads each envelope of a call once, in one thread."""
    response = GetManagedElementResponse(me=element)
    request_header, reply_header = header("getManagedElement", "REQUEST"), header("getManagedElement", "RESPONSE")

    def run() -> int:
        for _ in range(calls):
            received(sent(request_header, GetManagedElementRequest(me_ref=WANTED)))
            read_leaves(received(sent(reply_header, response)).body.me)
        return calls

    return run


def header(operation: str, kind: str, *, number: int | None = None, last: bool | None = None) -> Header:
    """Return a header as requestor and supplier make it; with a batch number, that of one of several responses."""
    request = kind == "REQUEST"
    return Header(
        activity_name=operation,
        msg_name=f"{operation}{'Request' if request else 'Response'}",
        msg_type=MessageTypeType(kind),
        sender_uri="jms/InventoryOS" if request else "jms/EmsOS",
        destination_uri="jms/EmsOS" if request else "jms/InventoryOS",
        correlation_id="5b0f0a3e-6a3c-4d1e-9a55-5f0c3d8e7a11",
        communication_pattern=(
            CommunicationPatternType.SimpleResponse
            if number is None
            else CommunicationPatternType.MultipleBatchResponse
        ),
        communication_style=CommunicationStyleType.MSG,
        batch_sequence_number=number,
        batch_sequence_end_of_reply=last,
    )


_CONTEXT = mtosi.NamingContext(NAMES)


def sent(head: Header, body: object) -> JmsMessage:
    """The message of a header and a body."""
    return to_jms(head, Envelope(header=head, body=body), names=_CONTEXT)


def received(message: JmsMessage) -> Envelope:
    """The envelope of a message."""
    return from_jms(message)


def _ends(element: ManagedElementType) -> tuple[Callable[..., Any], ...]:
    """Return what makes a request, what makes a reply of it, and what reads that."""
    request_header, reply_header = header("getManagedElement", "REQUEST"), header("getManagedElement", "RESPONSE")
    response = GetManagedElementResponse(me=element)

    def answer(message: JmsMessage) -> JmsMessage:
        received(message)
        return sent(reply_header, response)

    ask = partial(sent, request_header, GetManagedElementRequest(me_ref=WANTED))
    return ask, answer, lambda reply: read_leaves(received(reply).body.me)


def _echo(
    threads: int, calls: int, ask: Callable[[], T], answer: Callable[[T], T], read: Callable[[T], object]
) -> Callable[[], int]:
    """Return a run that sends something to a thread, and back; each caller has a reply queue of its own."""
    requests: queue.Queue[tuple[queue.Queue[T], T]] = queue.Queue()

    def serve() -> None:
        while True:
            answers, asked = requests.get()
            answers.put(answer(asked))

    threading.Thread(target=serve, daemon=True).start()

    def caller() -> Callable[[], None]:
        answers: queue.Queue[T] = queue.Queue()

        def call() -> None:
            requests.put((answers, ask()))
            read(answers.get())

        return call

    return _in_threads(threads, calls, caller)


def batches(*, quick: bool) -> Comparison:
    """One MultipleBatchResponse; every leaf of every object is read while batches arrive."""
    elements = list(managed_elements(1, (2 if quick else 10) * BATCH))
    cut = [
        GetAllManagedElementsResponse(me_list=ManagedElementListType(me=elements[start : start + BATCH]))
        for start in range(0, len(elements), BATCH)
    ]
    heads = [
        header("getAllManagedElements", "RESPONSE", number=number, last=number == len(cut))
        for number in range(1, len(cut) + 1)
    ]
    messages = [sent(head, response) for head, response in zip(heads, cut, strict=True)]

    def alone() -> int:
        pairs = zip(heads, cut, strict=True)
        return sum(_read(received(sent(head, response)).body) for head, response in pairs)

    with pair(elements) as service:

        def call() -> int:
            return sum(map(_read, service.get_all_managed_elements.batches(batch_size=BATCH)))

        sides = [
            Side("mtosi_jms over memory:", "ours", call),
            Side(BINDING, "limit", alone),
            Side("queue.Queue, no XML", "limit", _through_queue([message.body for message in messages])),
        ]
        return compare(
            "batches",
            f"MultipleBatchResponse over memory:, {len(cut)} batches of {BATCH}, every leaf read",
            "managed elements",
            sides,
            rounds=3 if quick else 7,
            megabytes=sum(len(message.body) for message in messages) / 1e6,
        )


def validated_request(*, quick: bool) -> Comparison:
    """The cost of validating the bodies of single calls against the schemas."""
    calls = 20 if quick else 300

    def ask(service: ManagedElementRetrieval) -> int:
        return sum(service.get_managed_element(me_ref=WANTED).me is not None for _ in range(calls))

    return _validated("validate-request", "SimpleResponse over memory:, 1 in flight", "round trips", ask, quick)


def validated_batches(*, quick: bool) -> Comparison:
    """The cost of validating batches against the schemas."""

    def ask(service: ManagedElementRetrieval) -> int:
        return sum(map(_read, service.get_all_managed_elements.batches(batch_size=BATCH)))

    return _validated("validate-batches", f"batches of {BATCH} over memory:", "managed elements", ask, quick)


def _validated(
    short: str, title: str, unit: str, ask: Callable[[ManagedElementRetrieval], int], quick: bool
) -> Comparison:
    elements = list(managed_elements(1, (1 if quick else 4) * BATCH))
    with pair(elements) as plain, pair(elements, "fail") as judging:
        sides = [
            Side("bodies judged at both ends", "ours", partial(ask, judging)),
            Side("not judged", "limit", partial(ask, plain)),
        ]
        return compare(short, f"{title}, validate='fail'", unit, sides, rounds=3 if quick else 7)


def _read(response: GetAllManagedElementsResponse) -> int:
    if response.me_list is None:
        return 0
    for me in response.me_list.me:
        read_leaves(me)
    return len(response.me_list.me)


def _through_queue(bodies: list[bytes]) -> Callable[[], int]:
    def run() -> int:
        waiting: queue.Queue[bytes] = queue.Queue()

        def send() -> None:
            for body in bodies:
                waiting.put(body)

        sender = threading.Thread(target=send)
        sender.start()
        for _ in bodies:
            waiting.get()
        sender.join()
        return len(bodies) * BATCH

    return run
