"""What the provider refuses, what was parked, what conflicts, limits, and full disks."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import (
    AuthenticationError,
    ConfigError,
    InvalidDestinationError,
    LoginRefusedError,
    MessageRefusedError,
    MtosiError,
    ProtocolError,
    ResourceLimitError,
    SpoolFullError,
    TransportError,
    UnknownOutcomeError,
)
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules
from mtosi_jms.spool import Inbox, InboxEntry, Outbox
from mtosi_jms.testing import ManualClock, connect_privately

ID = "MTOSIX_messageId"
A, B, FORBIDDEN = Queue("A"), Queue("B"), Queue("FORBIDDEN")
WORK, PARKED = Queue("WORK"), Queue("PARKED")
PATIENCE = 30.0


def marked(key: str, body: bytes = b"") -> JmsMessage:
    return JmsMessage(body=body or f"<order>{key}</order>".encode(), properties={ID: key})


class Wire:
    """A provider that refuses what goes to FORBIDDEN, and everything while it is told to."""

    def __init__(self, refuses: type[MtosiError] = AuthenticationError) -> None:
        self.sent: list[str] = []
        self.refuses = refuses
        self.fails: MtosiError | None = None

    def send(self, destination: Any, message: JmsMessage) -> JmsMessage:
        if self.fails is not None:
            raise self.fails
        if destination == FORBIDDEN:
            raise self.refuses("not that one")
        self.sent.append(str(message.properties[ID]))
        return message


class TestRefused:
    @pytest.mark.parametrize("refuses", [AuthenticationError, MessageRefusedError, InvalidDestinationError])
    def test_a_refused_message_delays_no_other_and_is_dead_in_the_end(
        self, tmp_path: Path, refuses: type[MtosiError]
    ) -> None:
        told: list[tuple[bytes, type[Exception]]] = []
        clock, wire = ManualClock(1_000), Wire(refuses)
        with Outbox(
            tmp_path / "outbox", on_refused=lambda message, error: told.append((message.body, type(error))), clock=clock
        ) as outbox:
            for key, queue in ("1", A), ("2", FORBIDDEN), ("3", A), ("4", FORBIDDEN), ("5", B):
                outbox.put(marked(key), queue)
            attempts = 0
            while not outbox.dead:
                outbox.resend(wire)
                attempts += 1
                assert wire.sent == ["1", "3", "5"]
                clock.advance(60)
            assert attempts == 5
            assert [(one.key, one.message.body) for one in outbox.dead if one.message] == [("2", marked("2").body)]
            assert refuses.__name__ in outbox.dead[0].reason
            assert told == [(marked("2").body, refuses)]
            assert len(outbox) == 1, "the one behind it waits for its own attempts"
            outbox.redrive("2")
            assert outbox.dead == []

    def test_messages_of_one_destination_keep_their_order(self, tmp_path: Path) -> None:
        clock, wire = ManualClock(1_000), Wire()
        with Outbox(tmp_path / "outbox", clock=clock) as outbox:
            with pytest.raises(AuthenticationError):
                outbox.send(wire, FORBIDDEN, marked("1"))
            with pytest.raises(TransportError, match="waits behind"):
                outbox.send(wire, FORBIDDEN, marked("2"))
            outbox.send(wire, A, marked("3"))
            clock.advance(60)
            allowed = Wire()
            allowed.send = lambda destination, message: allowed.sent.append(str(message.properties[ID])) or message  # type: ignore[method-assign]
            assert outbox.resend(allowed) == 2
            assert allowed.sent == ["1", "2"]

    def test_the_next_process_starts_with_a_refused_message_at_the_head(self, tmp_path: Path) -> None:
        with Outbox(tmp_path / "outbox") as outbox:
            outbox.put(marked("1"), FORBIDDEN)
            outbox.put(marked("2"), A)
        wire = Wire()
        with Outbox(tmp_path / "outbox") as outbox:
            assert outbox.resend(wire) == 1
            assert (wire.sent, len(outbox)) == (["2"], 1)
        with Outbox(tmp_path / "outbox") as outbox:
            assert outbox.resend(wire) == 0, "attempts and the wait before the next one are kept"

    @pytest.mark.parametrize(
        "error",
        [
            LoginRefusedError("password is invalid"),
            ResourceLimitError("full"),
            TransportError("not reached"),
            UnknownOutcomeError("lost"),
        ],
    )
    def test_other_errors_leave_the_message_waiting(self, tmp_path: Path, error: MtosiError) -> None:
        clock, wire = ManualClock(1_000), Wire()
        wire.fails = error
        with Outbox(tmp_path / "outbox", clock=clock) as outbox:
            outbox.put(marked("1"), A)
            for _ in range(20):
                with pytest.raises(type(error)):
                    outbox.resend(wire)
                clock.advance(60)
            wire.fails = None
            assert (outbox.resend(wire), outbox.dead) == (1, [])

    def test_a_message_that_cannot_be_encoded_is_dead_at_once(self, tmp_path: Path) -> None:
        with Outbox(tmp_path / "outbox", on_refused=lambda message, error: 1 / 0) as outbox:
            outbox.put(marked("1"), FORBIDDEN)
            outbox.send(Wire(ConfigError), A, marked("2"))
            assert ([one.key for one in outbox.dead], len(outbox)) == (["1"], 0)
            with pytest.raises(ConfigError, match="stored"):
                outbox.put(marked("1"), FORBIDDEN)
            outbox.withdraw(marked("1"))
            assert outbox.dead == []


class Handled:
    """Has a queue handled by way of an inbox."""

    def __init__(self, connection: Any, inbox: Inbox, fails: set[bytes] | None = None, *, attempts: int = 1) -> None:
        self.bodies: list[bytes] = []
        self.errors: list[BaseException] = []
        self._fails = fails or set()
        self._changed = threading.Condition()
        self.runtime = ConsumerRuntime(
            connection,
            WORK,
            self._handle,
            parking=PARKED,
            inbox=inbox,
            rules=RuntimeRules(attempts=attempts, retry=Backoff(0, 0, 0), reconnect=Backoff(0.01, 0.01, 0)),
            on_error=lambda error, message: self.errors.append(error),
        )

    def _handle(self, message: JmsMessage, context: Any) -> None:
        if message.body in self._fails:
            raise LookupError("the data base is down")
        with self._changed:
            self.bodies.append(message.body)
            self._changed.notify_all()

    def until(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.bodies) >= count, PATIENCE)


@pytest.fixture
def connection() -> Iterator[Any]:
    with connect_privately({}) as made:
        made.start()
        yield made


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    with Inbox(tmp_path / "inbox") as made:
        yield made


def receive(session: Any, queue: Queue) -> JmsMessage:
    with session.consumer(queue) as consumer:
        delivery = consumer.receive(PATIENCE)
        assert delivery is not None
        delivery.acknowledge()
        message: JmsMessage = delivery.message
        return message


class TestRedrive:
    @pytest.mark.parametrize("has_id", [True, False])
    def test_a_parked_message_that_is_moved_back_is_handled(self, connection: Any, inbox: Inbox, has_id: bool) -> None:
        session = connection.session()
        order = marked("1") if has_id else JmsMessage(body=b"<order>1</order>")
        session.send(WORK, order)
        with Handled(connection, inbox, {order.body}).runtime:
            parked = receive(session, PARKED)
        assert len(inbox) == 0
        session.send(WORK, parked)
        again = Handled(connection, inbox)
        with again.runtime:
            again.until(1)
        assert again.bodies == [order.body]
        if has_id:
            assert not inbox.land(parked), "done with now"

    def test_a_conflict_is_parked_and_reported(self, connection: Any, inbox: Inbox) -> None:
        session = connection.session()
        for body in b"<one/>", b"<two/>":
            session.send(WORK, marked("1", body))
        handled = Handled(connection, inbox)
        with handled.runtime:
            parked = receive(session, PARKED)
            handled.until(1)
        assert (handled.bodies, parked.body) == ([b"<one/>"], b"<two/>")
        assert [type(error) for error in handled.errors] == [ProtocolError]
        assert (len(inbox), handled.runtime.health.parked) == (0, 1)
        session.send(WORK, parked)
        again = Handled(connection, inbox)
        with again.runtime:
            again.until(1)
        assert again.bodies == [b"<two/>"], "whoever moves it back wants it handled"

    def test_without_a_runtime_a_conflict_is_kept_as_dead(self, connection: Any, inbox: Inbox) -> None:
        session = connection.session()
        body = session.send(WORK, marked("1", b"<x/>")).body
        session.send(WORK, marked("1", b"<y/>"))
        with mtosi.Subscriber(connection, WORK, timeout=0, inbox=inbox, on_error=lambda error: None) as subscriber:
            list(subscriber)
        assert [one.message.body for one in inbox.dead if one.message is not None] == [b"<y/>"]
        assert body == b"<x/>"

    def test_a_handler_that_failed_before_the_process_ended_is_tried_again(self, tmp_path: Path) -> None:
        told: list[InboxEntry] = []
        with Inbox(tmp_path / "inbox") as first:
            first.land(marked("1"))
            entry = first.take()
            assert entry is not None
            first.hand(entry.key)
            first.retry(entry.key)
            assert first.take() is None, "it stays with who has it"
        with Inbox(tmp_path / "inbox", on_doubt=told.append) as second:
            assert second.take() == entry
        assert told == []


class TestLimits:
    @pytest.mark.parametrize("limit", [{"limit_messages": 2}, {"limit_bytes": 700}])
    def test_a_full_inbox_acknowledges_nothing(self, connection: Any, tmp_path: Path, limit: dict[str, int]) -> None:
        session = connection.session()
        for number in range(4):
            session.send(WORK, marked(str(number)))
        with Inbox(tmp_path / "inbox", **limit) as inbox:
            subscriber = mtosi.Subscriber(connection, WORK, timeout=0, inbox=inbox, on_error=lambda error: None)
            held = [inbox.land(marked(key)) for key in "xy"]
            entries = [inbox.take() for _ in held]
            with pytest.raises(SpoolFullError):
                next(subscriber)
            for entry in entries:
                assert entry is not None
                inbox.done(entry.key)
            list(subscriber)
            subscriber.close()
            assert inbox.handed == 4


@pytest.fixture
def small_disk() -> Iterator[Callable[[int], Path]]:
    """Makes file systems of so many KiB."""
    made: list[str] = []

    def make(kibibytes: int) -> Path:
        folder = tempfile.mkdtemp()
        command = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", folder]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a small file system")
        made.append(folder)
        return Path(folder)

    yield make
    for folder in made:
        subprocess.run(["umount", folder], check=True)
        Path(folder).rmdir()


class TestFullDisk:
    """Of one that only this program fills, and one that others fill to the last byte."""

    @pytest.mark.parametrize(
        "kibibytes", [1_024, *(pytest.param(one, marks=pytest.mark.endurance) for one in (2_048, 6_000))]
    )
    @pytest.mark.parametrize("size", [10, 1_000, 30_000])
    @pytest.mark.parametrize("others", [False, True])
    def test_an_outbox_drains(self, small_disk: Callable[[int], Path], kibibytes: int, size: int, others: bool) -> None:
        disk, wire, stored = small_disk(kibibytes), Wire(), 0
        with Outbox(disk / "outbox") as outbox:
            try:
                for stored in itertools.count():
                    outbox.put(marked(str(stored), b"z" * size), A)
            except SpoolFullError as error:
                told = str(error)
            assert "free some" in told
            if others:
                fill(disk)
            assert stored > 10 or size > 1_000
            assert outbox.resend(wire) == stored
            assert (len(outbox), wire.sent) == (0, [str(number) for number in range(stored)])
        with Outbox(disk / "outbox") as outbox:
            assert outbox.resend(wire) == 0
            (disk / "of others").unlink(missing_ok=True)
            outbox.put(marked("new"), A)

    def test_the_reserve_is_written_where_posix_fallocate_is_missing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(os, "posix_fallocate")
        with Outbox(tmp_path / "outbox"):
            assert (tmp_path / "outbox" / "reserve").stat().st_blocks * 512 >= 1024 * 1024

    @pytest.mark.parametrize("others", [False, True])
    def test_an_inbox_drains(self, small_disk: Callable[[int], Path], others: bool) -> None:
        disk, landed, handed = small_disk(2_048), 0, []
        with Inbox(disk / "inbox") as inbox:
            with suppress(SpoolFullError):
                for landed in itertools.count():
                    inbox.land(marked(str(landed), b"z" * 1_000))
            if others:
                fill(disk)
        with Inbox(disk / "inbox") as inbox:
            while (entry := inbox.take()) is not None:
                inbox.hand(entry.key)
                handed.append(entry.key)
                inbox.done(entry.key)
        assert handed == [str(number) for number in range(landed)]

    def test_the_runtime_waits_until_there_is_room(
        self, small_disk: Callable[[int], Path], connection: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        disk, session = small_disk(2_048), connection.session()
        with Inbox(disk / "inbox") as inbox:
            fill(disk)
            handled = Handled(connection, inbox)
            with handled.runtime:
                for number in range(3):
                    session.send(WORK, marked(str(number)))
                told = threading.Event()
                logging.getLogger("mtosi_jms.runtime").addFilter(
                    seen := lambda record: told.set() if "no room" in record.getMessage() else True  # type: ignore[func-returns-value]
                )
                assert told.wait(PATIENCE)
                logging.getLogger("mtosi_jms.runtime").removeFilter(seen)
                assert handled.bodies == []
                (disk / "of others").unlink()
                handled.until(3)
            assert len(handled.bodies) == 3


@pytest.mark.parametrize("what", ["done", "park", "retry"])
def test_a_note_without_room_is_made_later(
    connection: Any, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Even the reserve may be gone: the runtime waits, and goes on with the next message."""
    real, refused = getattr(inbox, what), []

    def cramped(key: str) -> None:
        if not refused:
            refused.append(key)
            raise SpoolFullError("inbox", "no room")
        real(key)

    monkeypatch.setattr(inbox, what, cramped)
    session = connection.session()
    session.send(WORK, marked("1", b"<fails/>" if what != "done" else b"<works/>"))
    session.send(WORK, marked("2"))
    handled = Handled(connection, inbox, {b"<fails/>"}, attempts=2 if what == "retry" else 1)
    with handled.runtime:
        handled.until(2 if what == "done" else 1)
        if what != "done":
            assert receive(session, PARKED).body == b"<fails/>"
    assert (refused, len(inbox), inbox.in_doubt) == (["1"], 0, [])


def fill(disk: Path) -> None:
    """Leaves no byte on a disk."""
    with (disk / "of others").open("wb", buffering=0) as file:
        for size in 4096, 1:
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
