"""Sources of answers for HTTP clients: a supplier reached by a requestor, or services in this process; and open
iterators: the replies to one request that wait for a client to fetch them."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections import deque
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Protocol

from mtosi_jms.errors import MtosiFault
from mtosi_jms.exchange import Dispatcher, Requestor
from mtosi_jms.namespaces import NOTMSG, clark, split_clark
from mtosi_jms.notifications import Publisher, events_in
from mtosi_jms.service import Address, Call, CallOptions, OperationInfo, ServiceInfo
from mtosi_jms.soap import (
    FIELD_NAMES,
    Envelope,
    Header,
    blocks_in,
    header_text,
    missing_fields,
    must_understand_fault,
    not_understood,
    parse,
    stubs_header,
    tag_of,
)
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType
from mtosi_jms.xmlbind import RawXml, XmlObject

Replies = AsyncGenerator[Envelope, None]
"""The replies to one request in order; a fault, or a raised error, ends them."""

_LOOK: Final = 0.5
"""Seconds between two searches for idle iterators."""


class Store:
    """Keeps replies as octets: in memory while they fit, then in files. `memory`: octets of memory for all replies
    together. `folder`: folder for the files; None: the system's folder for temporary files. A file is deleted with its
    reply."""

    def __init__(self, memory: int, folder: Path | None = None) -> None:
        self._left = memory
        self._folder = folder

    def put(self, data: bytes) -> bytes | Path:
        """Keeps a reply; returns the key for `take` and `drop`."""
        if len(data) <= self._left:
            self._left -= len(data)
            return data
        with tempfile.NamedTemporaryFile(prefix="mtosi-reply-", dir=self._folder, delete=False) as file:
            file.write(data)
        return Path(file.name)

    def take(self, kept: bytes | Path) -> bytes:
        """Returns a reply and forgets it."""
        data = kept if isinstance(kept, bytes) else kept.read_bytes()
        self.drop(kept)
        return data

    def drop(self, kept: bytes | Path) -> None:
        if isinstance(kept, bytes):
            self._left += len(kept)
        else:
            kept.unlink(missing_ok=True)


async def read_ahead(replies: Replies, store: Store) -> Replies:
    """Returns the same replies, which are received and stored even before somebody asks for them.

    So they do not stay at the provider, nor in the memory of the requestor that receives them.
    """
    kept: deque[bytes | Path] = deque()
    arrived = asyncio.Event()
    reading = asyncio.ensure_future(_read_all(replies, store, kept, arrived))
    reading.add_done_callback(lambda _: arrived.set())
    try:
        while True:
            await arrived.wait()
            if kept:
                yield parse(store.take(kept.popleft()))
            elif reading.done():
                break
            else:
                arrived.clear()
        reading.result()
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await reading
        for one in kept:
            store.drop(one)


async def _read_all(replies: Replies, store: Store, kept: deque[bytes | Path], arrived: asyncio.Event) -> None:
    try:
        async for envelope in replies:
            kept.append(store.put(envelope.passed_on()))
            arrived.set()
    finally:
        await replies.aclose()


class _Open:
    __slots__ = ("last_used", "owner", "replies", "turn")

    def __init__(self, replies: Replies, owner: str, now: float) -> None:
        self.replies = replies
        self.owner = owner
        self.last_used = now
        self.turn = asyncio.Lock()


class Iterators:
    """The open iterators, for the tasks of one event loop. `most`: most iterators that may be open. `lifetime`: seconds
    without a request after which an iterator is closed."""

    def __init__(self, most: int, lifetime: float) -> None:
        self._most = most
        self._lifetime = lifetime
        self._open: dict[str, _Open] = {}
        self._reserved = 0
        self._watch: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def reserve(self) -> None:
        """Reserves a place for a request that may need an iterator; `release` gives it back. Raises MtosiFault: too
        many iterators are open."""
        if len(self._open) + self._reserved >= self._most:
            raise MtosiFault(f"{self._most} iterators are open", kind="tooManyOpenIterators")
        self._reserved += 1

    def release(self) -> None:
        self._reserved -= 1

    def open(self, replies: Replies, owner: str) -> str:
        """Opens an iterator for the remaining replies to a request; returns its name, which nobody can guess. `owner`:
        the only client that may use it."""
        name = secrets.token_urlsafe(18)
        self._open[name] = _Open(replies, owner, time.monotonic())
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._close_idle())
        return name

    async def next(self, name: str, owner: str) -> Envelope | None:
        """Returns the next reply; None if there are no more, and then closes the iterator. Raises MtosiFault: there is
        no such iterator, or another client opened it; MtosiError: the replies ended with this error; the iterator is
        closed."""
        found = self._open.get(name)
        if found is None or found.owner != owner:
            raise MtosiFault(
                "no such iterator: it is closed, it has expired, or another client opened it", kind="invalidInput"
            )
        async with found.turn:
            found.last_used = time.monotonic()
            try:
                envelope = await anext(found.replies, None)
            except BaseException:  # a cancellation too: the reply is lost with the client that asked for it
                await self.close(name)
                raise
            found.last_used = time.monotonic()
        if envelope is None:
            await self.close(name)
        return envelope

    async def close(self, name: str) -> None:
        found = self._open.pop(name, None)
        if found is not None:
            await found.replies.aclose()

    async def close_all(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        for name in list(self._open):
            await self.close(name)

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(min(_LOOK, self._lifetime))
            now = time.monotonic()
            idle = [
                name
                for name, one in self._open.items()
                if not one.turn.locked() and now - one.last_used > self._lifetime
            ]
            for name in idle:
                await self.close(name)


_NOTIFY: Final = clark(NOTMSG, "notify")
_ANY: Final = ServiceInfo(name="any", namespace="", root="")
_OWN: Final = frozenset({
    "sender_uri", "destination_uri", "reply_to_uri", "failure_replyto_uri", "originator_uri", "correlation_id",
    "communication_pattern", "communication_style", "requested_batch_size", "batch_sequence_number",
    "batch_sequence_end_of_reply", "iterator_reference_uri",
})  # fmt: skip
"""Header fields that the gateway, not the client, sets in a request over JMS."""
_CLIENT_FIELDS: Final = tuple(field.name for field in fields(Header) if field.name not in _OWN)
_FILLED: Final = frozenset({"activity_name", "msg_name", "msg_type", "timestamp"})
"""Header fields that the gateway fills if the client left them out."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as an HTTP client sent it.

    Attributes:
        operation: name of the operation; empty if nothing says which of several with one request element.
        action: the SOAP action sent with it; empty if there was none.
        timeout: seconds for which the client waits for the first response; None: no limit.
    """

    envelope: Envelope
    operation: str
    action: str = ""
    timeout: float | None = None

    @property
    def header(self) -> Header:
        """Its MTOSI header; an empty one if it has none."""
        return header_of(self.envelope)

    @property
    def is_one_way(self) -> bool:
        """Whether it gets no answer: the header says so, or it is a `notify`."""
        kind, pattern = header_text(self.header, "msgType"), self.header.communication_pattern
        is_notification = kind == "NOTIFICATION" or pattern is CommunicationPatternType.Notification
        return is_notification or tag_of(self.envelope.body) == _NOTIFY

    @property
    def batch_size(self) -> int | None:
        """Objects in a partial response, 0 for any number; None if the client wants one response."""
        if self.header.communication_pattern is not CommunicationPatternType.MultipleBatchResponse:
            return None
        size = self.header.requested_batch_size
        return size if isinstance(size, int) and size > 0 else 0


def header_of(envelope: Envelope, chosen: str = "") -> Header:
    """The MTOSI header of a request; an empty one, of the release of its body, if it has none. `chosen`: the profile's
    `header`."""
    return envelope.header or stubs_header("", split_clark(tag_of(envelope.body))[0], chosen)()


def fill_required(header: Header, **known: object) -> None:
    """Fill the fields that the release of a header requires and nobody gave: with what is known, else with nothing."""
    for name in map(FIELD_NAMES.__getitem__, missing_fields(header)):
        setattr(header, name, known.get(name) or "")


def check_understood(request: Request, understands: frozenset[str]) -> None:
    """Check the header blocks of a request that the gateway answers itself. Raises MtosiFault: one must be understood
    and is not."""
    if request.envelope.blocks and (lost := not_understood(request.envelope, understands)):
        raise must_understand_fault(lost)


class Source(Protocol):
    """What answers requests. Its `understands`, if it has one, names the header blocks that it understands; its
    `header`, if it has one, is the class of header with which a request is answered that cannot be read."""

    def replies(self, request: Request) -> Replies:
        """The replies to a request; none to a one-way request. The request is sent when the first reply is requested.

        Raises, during iteration:
            MtosiError: the answer is missing or incomplete.
        """
        ...


class ByRequestor:
    """Forwards requests over JMS, in MSG style, with the requestor's correlationId and reply address.

    Args:
        store: keeps partial responses until they are fetched.
        timeout: seconds for a call with one answer, and between partial responses; None: the requestor's time-out.
        publisher: publishes the events of a `notify`; None: a `notify` goes to `destination`.
    """

    understands: frozenset[str] = frozenset()

    def __init__(
        self,
        requestor: Requestor,
        destination: Address,
        store: Store,
        timeout: float | None = None,
        *,
        publisher: Publisher | None = None,
    ) -> None:
        self.header = stubs_header("", "", requestor.profile.header)
        self._requestor = requestor
        self._destination = destination
        self._store = store
        self._timeout = timeout
        self._publisher = publisher

    def replies(self, request: Request) -> Replies:
        body = request.envelope.body
        if self._publisher is not None and isinstance(body, XmlObject) and tag_of(body) == _NOTIFY:
            check_understood(request, self.understands)
            return _published(self._publisher, body)
        if request.batch_size is None:
            return self._one(request)
        return read_ahead(self._several(request), self._store)

    async def _one(self, request: Request) -> AsyncGenerator[Envelope, None]:
        envelopes: list[Envelope] = []
        try:
            await self._requestor.aio.call(self._call(request, envelopes))
        except MtosiFault:
            if not envelopes:
                raise
        for envelope in envelopes:
            yield envelope

    async def _several(self, request: Request) -> AsyncGenerator[Envelope, None]:
        envelopes: list[Envelope] = []
        batches = self._requestor.aio.call_batches(self._call(request, envelopes), request.batch_size or 0)
        async with batches:
            while True:
                try:
                    await anext(batches, None)
                except MtosiFault:
                    if not envelopes:
                        raise
                if not envelopes:
                    return
                envelope = envelopes.pop()
                yield envelope
                if envelope.fault is not None:
                    return

    def _call(self, request: Request, envelopes: list[Envelope]) -> Call:
        body = request.envelope.body
        operation = OperationInfo(
            name=request.operation,
            python_name=request.operation,
            mep="one-way" if request.is_one_way else "request-response",
            soap_action=request.action,
        )
        first = self._requestor.timeouts.first_reply
        waits = [one for one in (self._timeout or first, request.timeout) if one is not None]
        several = request.batch_size is not None and not request.is_one_way
        options = CallOptions(
            timeout=None if several else min(waits, default=None),
            time_to_live=min([*waits, *([] if first is None else [first])], default=None) if several else None,
            gap_timeout=self._timeout,
            on_request=lambda made: _over_jms(made, request),
            on_reply=envelopes.append,
        )
        seed = body if isinstance(body, XmlObject | RawXml) else RawXml(b"<none/>")
        return Call(_ANY, operation, self._destination, seed, options)


async def _published(publisher: Publisher, message: XmlObject) -> AsyncGenerator[Envelope, None]:
    await asyncio.to_thread(publisher.publish_all, events_in(message))
    nothing: tuple[Envelope, ...] = ()
    for envelope in nothing:
        yield envelope


def _over_jms(made: Envelope, request: Request) -> Envelope:
    """The request for JMS: the client's request with the requestor's addresses, correlationId and style."""
    header, client_header = made.header or Header(), request.header
    for name in _CLIENT_FIELDS:
        value = getattr(client_header, name)
        if value is not None or name not in _FILLED:
            setattr(header, name, value)
    header.originator_uri = client_header.originator_uri or client_header.sender_uri
    given = request.envelope
    return Envelope(header=header, body=given.body, blocks=blocks_in(given, "1.1"), more=given.more)


class ByDispatcher:
    """Answers requests with services in this process. `threads`: how many methods of the services may run at the same
    time."""

    def __init__(self, dispatcher: Dispatcher, threads: int = 64) -> None:
        self._dispatcher = dispatcher
        self.understands, self.header = dispatcher.understands, dispatcher.header
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="mtosi-http")

    async def replies(self, request: Request) -> AsyncGenerator[Envelope, None]:
        loop = asyncio.get_running_loop()
        made = self._dispatcher.dispatch(request.envelope, action=request.action)
        step: Future[Envelope | None] = Future()
        try:
            while True:
                step = self._threads.submit(next, made, None)
                envelope = await asyncio.wrap_future(step, loop=loop)
                if envelope is None:
                    return
                yield envelope
        finally:  # a running method is not interrupted; its generator is closed after it
            self._threads.submit(_close, made, step)


def _close(made: Generator[Envelope, None, None], step: Future[Envelope | None]) -> None:
    wait([step])
    made.close()
