"""Open iterators: the replies to one request that wait for an HTTP client to fetch them."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mtosi_jms.errors import MtosiFault
from mtosi_jms.soap import Envelope, parse

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
