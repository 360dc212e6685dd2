"""Many calls by clients that hang up, trickle, repeat and abandon: memory, threads and sockets stay what they were."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="the extra http is not installed")

import httpx

from ..processes import Program
from .gateway_kills import URI, asked

CALLS = int(os.environ.get("MTOSI_GATEWAY_CALLS", "100000"))
"""Of the long form."""
AT_ONCE = 40
SAMPLES = 60
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
SIZE = "<h:requestedBatchSize>4</h:requestedBatchSize>"
ONE = asked("getAllManagedElements")
MANY = asked("getAllManagedElements", "MultipleBatchResponse", SIZE)


class Caller:
    """Clients in one loop, each on a connection of its own that is opened again after it hung up. `port`: of the
    gateway."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.counts: Counter[str] = Counter()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def call(self, number: int) -> None:
        """One call, of a kind that its number chooses."""
        kinds = (self.plain, self.plain, self.hang_up, self.plain, self.trickle, self.repeat, self.leave, self.plain,
                 self.abandon, self.half)  # fmt: skip
        kind = kinds[number % len(kinds)]
        await kind()
        self.counts[kind.__name__] += 1

    async def plain(self) -> None:
        """A call and its whole answer."""
        status, body = await self._ask(ONE)
        assert status == 200, body
        assert body.count("NE-") >= 20

    async def hang_up(self) -> None:
        """The client goes when the first octets of the answer are there."""
        await self._send(ONE)
        assert self._reader is not None
        await self._reader.read(20)
        await self.close()

    async def leave(self) -> None:
        """The client goes before there is an answer."""
        await self._send(ONE)
        await self.close()

    async def trickle(self) -> None:
        """The body comes in small pieces."""
        status, _ = await self._ask(ONE, piece=len(ONE) // 7)
        assert status == 200

    async def half(self) -> None:
        """The client goes in the middle of its request."""
        await self._send(ONE, most=200)
        await self.close()

    async def repeat(self) -> None:
        """An iterator's responses; then its last request once more."""
        status, text = await self._ask(MANY)
        while (uri := URI.search(text)) is not None:
            more = asked(
                "getManagedElementsIterator",
                "MultipleBatchResponse",
                f"{SIZE}<h:iteratorReferenceURI>{uri[1]}</h:iteratorReferenceURI>",
            )
            status, text = await self._ask(more)
            assert status == 200, text
        status, text = await self._ask(more)
        assert status == 500
        assert "invalidInput" in text

    async def abandon(self) -> None:
        """An iterator that nobody asks for any more."""
        status, text = await self._ask(MANY)
        assert status == 200
        assert URI.search(text) is not None

    async def _send(self, text: str, *, piece: int = 0, most: int | None = None) -> None:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Type: text/xml\r\nContent-Length: {len(text)}\r\n\r\n"
        data = (head + text).encode()[:most]
        for at in range(0, len(data), piece or len(data)):
            self._writer.write(data[at : at + (piece or len(data))])
            await self._writer.drain()
            if piece:
                await asyncio.sleep(0)

    async def _ask(self, text: str, *, piece: int = 0) -> tuple[int, str]:
        await self._send(text, piece=piece)
        assert self._reader is not None
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        body = await self._reader.readexactly(int(length[1])) if length else b""
        return int(head[9:12]), body.decode()

    async def close(self) -> None:
        """Hangs up."""
        if self._writer is not None:
            self._writer.transport.abort()
            with suppress(OSError):
                await self._writer.wait_closed()
            self._writer = None


class Process(Program):
    """The gateway's. `iterator_timeout`: seconds after which it closes an iterator that nobody asks for."""

    def __init__(self, iterator_timeout: float) -> None:
        super().__init__([sys.executable, Path(__file__).with_name("load_process.py"), str(iterator_timeout)])
        self.url = self.line()
        self.port = int(self.url.rpartition(":")[2])

    def holds(self) -> dict[str, int]:
        """What it holds: by its own words, and by the system's."""
        self.say("")
        told: dict[str, int] = json.loads(self.line())
        health = httpx.get(f"{self.url}/health", trust_env=False, timeout=60).json()
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        numbers = {name: int(re.findall(rf"{name}:\s+(\d+)", status)[0]) for name in ("VmRSS", "Threads")}
        sockets = len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))
        return {**told, "iterators": health["iterators"], **numbers, "descriptors": sockets}


async def load(port: int, calls: int, sample: threading.Event) -> Counter[str]:
    """So many calls; sets the event at each sample."""
    callers = [Caller(port) for _ in range(AT_ONCE)]
    numbers = iter(range(calls))

    async def work(caller: Caller) -> None:
        for number in numbers:
            await caller.call(number)
            if number % max(calls // SAMPLES, 1) == 0:
                sample.set()
        await caller.close()

    async with asyncio.TaskGroup() as group:
        for caller in callers:
            group.create_task(work(caller))
    return sum((caller.counts for caller in callers), Counter())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell what a process holds")
@pytest.mark.parametrize(
    ("calls", "iterator_timeout"), [(500, 3.0), pytest.param(CALLS, 10.0, marks=pytest.mark.endurance)]
)
def test_what_clients_leave_behind_is_freed(calls: int, iterator_timeout: float, root: Path) -> None:
    process = Process(iterator_timeout)
    samples: list[dict[str, int]] = []
    due, over = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.is_set():
            due.wait()
            due.clear()
            samples.append(process.holds())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        counts = asyncio.run(load(process.port, calls, due))
        over.set()
        due.set()
        watcher.join()
        assert counts.total() == calls
        done = threading.Event()
        for _ in range(600):
            last = process.holds()
            if last["pending"] == last["iterators"] == last["files"] == 0:
                break
            done.wait(0.1)
        assert (last["pending"], last["iterators"], last["files"]) == (0, 0, 0)
        figures = {"calls": dict(counts), "samples": samples, "last": last}
        if calls == CALLS:
            (root / "out").mkdir(exist_ok=True)
            (root / "out" / f"gateway-load-{calls}.json").write_text(
                json.dumps(figures, indent=1) + "\n", encoding="utf-8"
            )
        assert last["descriptors"] <= samples[0]["descriptors"] + 10
        assert max(one["Threads"] for one in samples) <= 20
        if calls < 10_000:  # too few to tell what grows
            return
        third = len(samples) // 3
        early, late = samples[third : third + len(samples) // 6], samples[-len(samples) // 6 :]
        for name, slack in (("VmRSS", 1.1), ("Threads", 1.0), ("descriptors", 1.5)):
            before, after = (statistics.median(one[name] for one in some) for some in (early, late))
            assert after <= before * slack + 2, f"{name}: {before} from a third on, {after} at the end"
    finally:
        over.set()
        due.set()
        watcher.join()
        process.kill()
