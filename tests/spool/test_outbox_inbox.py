"""Outbox and inbox: what is stored, sent again, recognised, handed out once, in doubt; their folders, locks, bounds."""

from __future__ import annotations

import inspect
import re
import stat
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mtosi_jms import errors
from mtosi_jms.errors import (
    ConfigError,
    InvalidDestinationError,
    SpoolError,
    SpoolFullError,
    SpoolInUseError,
    TransportError,
    UnknownOutcomeError,
)
from mtosi_jms.jms import DeliveryMode, Destination, JmsMessage, Queue, TemporaryQueue, Topic
from mtosi_jms.jms.message import Long
from mtosi_jms.spool import Inbox, InboxEntry, Outbox, OutboxPump, OutgoingJournal
from mtosi_jms.spool._outbox import Sender
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport import Backoff, Connection, connect

from ..waiting import background

WORK = Queue("WORK")
ID = "MTOSIX_messageId"


def text(number: int, **fields: Any) -> JmsMessage:
    return JmsMessage(body=b"<n>%d</n>" % number, **fields)


def marked(number: int) -> JmsMessage:
    return text(number, properties={ID: f"id-{number}"}, destination=WORK)


class Wire:
    """A session that notes what is sent, and fails when it is told to."""

    def __init__(self) -> None:
        self.sent: list[JmsMessage] = []
        self.failures: list[Exception | None] = []
        self.refused: set[bytes] = set()

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.sent]

    @property
    def ids(self) -> list[Any]:
        return [message.properties[ID] for message in self.sent]

    def send(self, destination: Any, message: JmsMessage) -> JmsMessage:
        if message.body in self.refused:
            raise InvalidDestinationError(f"{destination}: it is gone")
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, UnknownOutcomeError) or failure is None:
            self.sent.append(message)
        if failure is not None:
            raise failure
        return replace(message, destination=destination, message_id=f"ID:{len(self.sent)}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journals" / "one"


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def outbox(folder: Path) -> Iterator[Outbox]:
    with Outbox(folder) as made:
        yield made


@pytest.fixture
def inbox(folder: Path) -> Iterator[Inbox]:
    with Inbox(folder) as made:
        yield made


def handed_out(inbox: Inbox) -> list[bytes]:
    """Takes, hands out and is done with everything."""
    found = []
    while (entry := inbox.take()) is not None:
        inbox.hand(entry.key)
        found.append(entry.message.body)
        inbox.done(entry.key)
    return found


class Refilled(Outbox):
    """Gets more messages in the moment in which the last of the first ones is gone."""

    def __init__(self, folder: Path, more: list[JmsMessage], after: int) -> None:
        self._count = 0
        self._more, self._after = more, after
        super().__init__(folder)

    @property
    def sent(self) -> int:  # type: ignore[override]
        return self._count

    @sent.setter
    def sent(self, value: int) -> None:
        self._count = value
        if value == self._after:
            for message in self._more:
                self.put(message, WORK)


class TestOutbox:
    @pytest.mark.parametrize("stays", [(), (b"<n>2</n>",)], ids=["all sent", "one left behind"])
    def test_what_comes_while_all_is_sent_keeps_its_order(
        self, folder: Path, wire: Wire, stays: tuple[bytes, ...]
    ) -> None:
        """Numbers begin anew then, and the next look must not go on behind the last one."""
        wire.refused.update(stays)
        first, more = [marked(number) for number in (1, 2, 3)], [marked(number) for number in range(4, 9)]
        with Refilled(folder, more, after=3 - len(stays)) as outbox:
            for message in first:
                outbox.put(message, Queue(f"Q{number}") if (number := message.body[3:4].decode()) == "2" else WORK)
            outbox.resend(wire)
            assert wire.bodies == [m.body for m in (*first, *more) if m.body not in stays]
            assert len(outbox) == len(stays)

    def test_a_confirmed_message_is_removed(self, outbox: Outbox, wire: Wire) -> None:
        sent = outbox.send(wire, WORK, text(1))
        assert (len(outbox), sent.destination, sent.message_id) == (0, WORK, "ID:1")
        assert sent.delivery_mode is DeliveryMode.PERSISTENT
        assert outbox.resend(wire) == 0
        assert wire.bodies == [b"<n>1</n>"]

    def test_after_an_unknown_outcome_messages_are_sent_again_with_their_ids_and_in_order(
        self, outbox: Outbox, wire: Wire
    ) -> None:
        wire.failures = [UnknownOutcomeError("lost")]
        with pytest.raises(UnknownOutcomeError):
            outbox.send(wire, WORK, text(1))
        assert len(outbox) == 1
        outbox.send(wire, WORK, text(2))
        assert wire.bodies == [b"<n>1</n>", b"<n>1</n>", b"<n>2</n>"]
        assert wire.ids[0] == wire.ids[1] != wire.ids[2]
        assert (outbox.resent, len(outbox)) == (1, 0)

    def test_messages_sent_while_the_provider_is_lost_are_kept(self, outbox: Outbox, wire: Wire) -> None:
        wire.failures = [TransportError("not reached")] * 3
        for number in range(3):
            with pytest.raises(TransportError):
                outbox.send(wire, WORK, text(number))
        assert outbox.resend(wire) == 3
        assert wire.bodies == [b"<n>%d</n>" % number for number in range(3)]

    def test_the_next_process_sends_stored_messages(self, folder: Path, wire: Wire) -> None:
        full = text(
            7,
            properties={"s": "ü", "i": 5, "l": Long(6), "b": True, "d": 0.5},
            reply_to=Queue("BACK"),
            priority=7,
            correlation_id="c",
            jms_type="t",
        )
        with Outbox(folder) as first:
            stored = first.put(full, Topic("NEWS"))
        with Outbox(folder) as second:
            assert second.unconfirmed() == [stored]
            assert second.resend(wire) == 1
        (sent,) = wire.sent
        assert sent == replace(
            full,
            destination=Topic("NEWS"),
            delivery_mode=DeliveryMode.PERSISTENT,
            properties={**full.properties, ID: stored.properties[ID]},
        )
        assert type(sent.properties["l"]) is Long
        with Outbox(folder) as third:
            assert len(third) == 0

    def test_an_id_of_the_caller_is_kept_and_stored_once(self, outbox: Outbox) -> None:
        assert outbox.put(marked(1), WORK).properties[ID] == "id-1"
        assert outbox.put(marked(1), WORK).properties[ID] == "id-1", "who was interrupted may put it once more"
        assert len(outbox) == 1
        with pytest.raises(ConfigError, match="id-1"):
            outbox.put(replace(marked(1), body=b"<other/>"), WORK)
        with pytest.raises(ConfigError, match="id-1"):
            outbox.put(marked(1), Queue("OTHER"))

    def test_temporary_destinations_are_refused(self, outbox: Outbox, wire: Wire) -> None:
        with pytest.raises(ConfigError, match="temporary"):
            outbox.send(wire, TemporaryQueue("T"), text(1))
        assert len(outbox) == 0

    def test_a_message_that_cannot_be_sent_raises_and_is_not_kept(self, outbox: Outbox, wire: Wire) -> None:
        wire.refused = {b"<n>1</n>"}
        with pytest.raises(InvalidDestinationError):
            outbox.send(wire, WORK, text(1))
        assert len(outbox) == 0

    def test_withdrawn_and_confirmed_by_hand(self, outbox: Outbox, wire: Wire) -> None:
        one, two = outbox.put(text(1), WORK), outbox.put(text(2), WORK)
        outbox.withdraw(one)
        outbox.confirm(two)
        outbox.confirm(two)
        assert outbox.resend(wire) == 0

    def test_time_to_live_counts_while_stored(self, folder: Path, wire: Wire) -> None:
        clock = ManualClock(1_000)
        with Outbox(folder, clock=clock) as outbox:
            outbox.put(text(1, time_to_live_ms=5_000), WORK)
            outbox.put(text(2, time_to_live_ms=50_000), WORK)
            clock.advance(10)
            outbox.resend(wire)
            assert [message.time_to_live_ms for message in wire.sent] == [40_000]
            assert (outbox.expired, len(outbox)) == (1, 0)

    @pytest.mark.parametrize(
        ("limit", "told"), [({"limit_bytes": 4_000}, "4,000 bytes"), ({"limit_messages": 1}, "1 m")]
    )
    def test_limits(self, folder: Path, limit: dict[str, int], told: str) -> None:
        with Outbox(folder, **limit) as outbox:
            first = outbox.put(JmsMessage(body=b"x" * 2_500), WORK)
            with pytest.raises(SpoolFullError, match=told) as caught:
                outbox.put(JmsMessage(body=b"x" * 2_500), WORK)
            assert caught.value.path == str(folder)
            outbox.confirm(first)
            outbox.put(JmsMessage(body=b"x" * 2_500), WORK)

    def test_threads_share_an_outbox(self, outbox: Outbox) -> None:
        wires = [Wire() for _ in range(4)]
        gate = threading.Barrier(4)

        def send(number: int) -> None:
            gate.wait(30)
            for count in range(25):
                outbox.send(wires[number], WORK, text(number * 100 + count))

        for future in [background(lambda number=number: send(number)) for number in range(4)]:
            future.result(60)
        bodies = [body for one in wires for body in one.bodies]
        assert len(bodies) == len(set(bodies)) == 100
        assert len(outbox) == 0


class TestInbox:
    def test_each_once(self, inbox: Inbox) -> None:
        assert inbox.land(marked(1))
        assert not inbox.land(marked(1))
        assert inbox.land(marked(2))
        assert handed_out(inbox) == [b"<n>1</n>", b"<n>2</n>"]
        assert not inbox.land(replace(marked(1), redelivered=True, message_id="ID:another"))
        assert (inbox.duplicates, inbox.handed, len(inbox), inbox.take()) == (2, 2, 0, None)

    def test_without_an_own_id_a_redelivery_is_recognised(self, inbox: Inbox) -> None:
        one = text(1, message_id="ID:7", timestamp_ms=5)
        assert inbox.land(one)
        assert not inbox.land(one.again())
        assert inbox.land(replace(one, timestamp_ms=6)), "a broker that counts from 1 again is not the same one"
        assert inbox.land(replace(one, body=b"<other/>"))

    def test_without_any_id_every_message_is_new(self, inbox: Inbox) -> None:
        assert inbox.land(text(1))
        assert inbox.land(text(1))

    def test_the_next_process(self, folder: Path) -> None:
        """What landed is handed out, what was handed out is in doubt, what is done with is known."""
        with Inbox(folder) as first:
            for number in range(4):
                first.land(marked(number))
            done, doubtful, taken = first.take(), first.take(), first.take()
            assert done is not None
            assert doubtful is not None
            assert taken is not None
            first.hand(done.key)
            first.done(done.key)
            first.hand(doubtful.key)
        told: list[InboxEntry] = []
        with Inbox(folder, on_doubt=told.append) as second:
            assert [entry.message.body for entry in second.in_doubt] == [b"<n>1</n>"]
            assert told == second.in_doubt
            assert handed_out(second) == [b"<n>2</n>", b"<n>3</n>"]
            assert not second.land(marked(0))
            assert not second.land(marked(1))
        with Inbox(folder) as third:
            assert [entry.message for entry in third.in_doubt] == [marked(1)]

    @pytest.mark.parametrize("again", [False, True])
    def test_the_application_settles_a_doubt(self, folder: Path, again: bool) -> None:
        with Inbox(folder) as first:
            first.land(marked(1))
            entry = first.take()
            assert entry is not None
            first.hand(entry.key)
        with Inbox(folder) as second:
            (entry,) = second.in_doubt
            (second.release if again else second.done)(entry.key)
            assert second.in_doubt == []
        with Inbox(folder) as third:
            assert third.in_doubt == []
            assert handed_out(third) == ([b"<n>1</n>"] if again else [])
            assert not third.land(marked(1))

    def test_a_released_message_takes_its_old_place(self, inbox: Inbox) -> None:
        for number in range(5):
            inbox.land(marked(number))
        taken = [inbox.take() for _ in range(4)]
        for entry in taken[1:]:
            assert entry is not None
            inbox.release(entry.key)
            inbox.release(entry.key)
        assert handed_out(inbox) == [b"<n>%d</n>" % number for number in range(1, 5)]

    def test_a_doubt_in_the_same_process(self, folder: Path) -> None:
        told: list[InboxEntry] = []
        with Inbox(folder, on_doubt=told.append) as inbox:
            inbox.land(marked(1))
            entry = inbox.take()
            assert entry is not None
            inbox.mark_in_doubt(entry.key)
            assert inbox.in_doubt == [], "it was not handed out"
            inbox.hand(entry.key)
            inbox.mark_in_doubt(entry.key)
            inbox.mark_in_doubt(entry.key)
            assert told == inbox.in_doubt == [entry]

    def test_a_failing_hook_has_no_effect(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        with Inbox(folder) as first:
            first.land(marked(1))
            entry = first.take()
            assert entry is not None
            first.hand(entry.key)

        def on_doubt(entry: InboxEntry) -> None:
            raise LookupError("hook")

        with Inbox(folder, on_doubt=on_doubt) as second:
            assert len(second.in_doubt) == 1
        assert "on_doubt failed" in caplog.text

    def test_the_window_of_ids(self, folder: Path) -> None:
        """As many ids as asked for outlive their messages and the process."""
        with Inbox(folder, window=20) as first:
            for number in range(60):
                first.land(marked(number))
                handed_out(first)
        with Inbox(folder, window=20) as second:
            known = [number for number in reversed(range(60)) if not second.land(marked(number))]
            assert known == list(reversed(range(40, 60)))


class TestFolder:
    @pytest.mark.parametrize("kind", [Outbox, Inbox])
    def test_the_folder_is_its_owners_alone(self, folder: Path, kind: Any) -> None:
        with kind(folder):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            files = list(folder.iterdir())
            assert len(files) > 3
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    @pytest.mark.parametrize("kind", [Outbox, Inbox])
    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o755, 0o701])
    def test_a_folder_that_others_may_enter_is_refused(self, folder: Path, kind: Any, mode: int) -> None:
        folder.mkdir(parents=True)
        folder.chmod(mode)
        with pytest.raises(SpoolError, match=f"mode {mode:04o}"):
            kind(folder)
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize("kind", [Outbox, Inbox])
    @pytest.mark.parametrize("name", ["messages.db", "messages.db-wal", "lock", "reserve", "0000000001.journal", "any"])
    @pytest.mark.parametrize("target", ["file", "nothing", "folder"])
    def test_symbolic_links_are_refused(self, tmp_path: Path, folder: Path, kind: Any, name: str, target: str) -> None:
        (tmp_path / "file").write_bytes(b"precious")
        (tmp_path / "folder").mkdir()
        folder.mkdir(parents=True, mode=0o700)
        (folder / name).symlink_to(tmp_path / target)
        with pytest.raises(SpoolError, match=name):
            kind(folder)
        assert (tmp_path / "file").read_bytes() == b"precious"
        assert not (tmp_path / "nothing").exists()

    def test_a_second_outbox_of_a_folder_is_refused(self, folder: Path) -> None:
        with Outbox(folder):
            with pytest.raises(SpoolInUseError) as caught:
                Outbox(folder)
            assert caught.value.path == str(folder)
        Outbox(folder).close()

    @pytest.mark.parametrize(("first", "second"), [(Outbox, Inbox), (Inbox, Outbox)])
    def test_an_outbox_is_no_inbox(self, folder: Path, first: Any, second: Any) -> None:
        first(folder).close()
        with pytest.raises(SpoolError, match=f"holds no {second.__name__.lower()}"):
            second(folder)
        first(folder).close()

    def test_failures_are_spool_errors(self, tmp_path: Path, folder: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(SpoolError) as caught:
            Inbox(tmp_path / "file")
        assert caught.value.path.startswith(str(tmp_path / "file"))
        outbox = Outbox(folder)
        outbox.close()
        outbox.close()
        with pytest.raises(SpoolError, match="closed"):
            outbox.put(text(1), WORK)

    def test_an_unclosed_box_warns(self, folder: Path) -> None:
        outbox: Outbox | None = Outbox(folder)
        assert outbox is not None
        with pytest.warns(ResourceWarning, match="outbox was not closed"):
            outbox = None
        Outbox(folder).close()


class InboxMachine(RuleBasedStateMachine):
    """Against a model: whatever is done, and however often it is opened again, each message has one state."""

    @initialize(where=st.just(None))
    def begin(self, where: None) -> None:
        memory = Path("/dev/shm")  # nothing is synced there, which hundreds of folders would wait for
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.model: dict[str, str] = {}
        self.taken: set[str] = set()
        self.count = 0
        self.open()

    def open(self) -> None:
        self.inbox = Inbox(f"{self.folder.name}/inbox", window=1_000)

    @rule()
    def land(self) -> None:
        self.count += 1
        assert self.inbox.land(marked(self.count))
        self.model[f"id-{self.count}"] = "landed"

    @precondition(lambda self: self.count)
    @rule(data=st.data())
    def land_again(self, data: st.DataObject) -> None:
        assert not self.inbox.land(marked(data.draw(st.integers(1, self.count))))

    @rule()
    def take(self) -> None:
        entry = self.inbox.take()
        waiting = [key for key, state in self.model.items() if state == "landed" and key not in self.taken]
        assert (entry is None) == (not waiting)
        if entry is not None:
            assert entry.key in waiting
            self.taken.add(entry.key)

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), how=st.sampled_from(["hand", "done", "release"]))
    def settle(self, data: st.DataObject, how: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.taken)))
        if how == "hand":
            self.inbox.hand(key)
            self.model[key] = "handed"
            return
        getattr(self.inbox, how)(key)
        self.model[key] = "done" if how == "done" else "landed"
        self.taken.discard(key)

    @rule()
    def crash(self) -> None:
        self.inbox.close()
        self.taken.clear()
        self.open()
        assert {entry.key for entry in self.inbox.in_doubt} == self.of("handed")
        self.taken |= self.of("handed")

    def of(self, state: str) -> set[str]:
        return {key for key, known in self.model.items() if known == state}

    @invariant()
    def what_is_open(self) -> None:
        assert len(self.inbox) == len(self.of("landed")) + len(self.of("handed"))

    def teardown(self) -> None:
        self.inbox.close()
        self.folder.cleanup()


TestInboxMachine = InboxMachine.TestCase
TestInboxMachine.settings = settings(stateful_step_count=40)


# The pump of an outbox: whoever has a message stores it, and a thread of the pump's own sends it.

ANSWERS = Queue("PUMPED")
AT_ONCE = Backoff(0.0, 0.0, 0.0)


class Kept:
    """A journal of somebody else's: a list."""

    def __init__(self) -> None:
        self.waiting: list[JmsMessage] = []

    def put(self, message: JmsMessage, destination: Destination) -> JmsMessage:
        self.waiting.append(message)
        return message

    def send(self, session: Sender, destination: Destination, message: JmsMessage) -> JmsMessage:
        return session.send(destination, message)

    def resend(self, session: Sender) -> int:
        sent = 0
        while self.waiting:
            session.send(ANSWERS, self.waiting[0])
            self.waiting.pop(0)
            sent += 1
        return sent


def received(provider: str, number: int) -> list[bytes]:
    with connect(provider) as connection, connection.session() as session:
        consumer = session.consumer(ANSWERS)
        connection.start()
        found = []
        for _ in range(number):
            delivery = consumer.receive(60)
            assert delivery is not None
            delivery.acknowledge()
            found.append(delivery.message.body)
        return found


@pytest.mark.parametrize("kind", ["outbox", "journal"])
def test_what_is_stored_is_sent_in_order_though_the_provider_is_lost_twice(tmp_path: Path, kind: str) -> None:
    provider = f"memory:pump-{kind}"
    lost = iter([TransportError("gone"), TransportError("gone")])

    def reach() -> Connection:
        for error in lost:
            raise error
        return connect(provider)

    def pumped(journal: OutgoingJournal) -> None:
        with OutboxPump(journal, reach, backoff=AT_ONCE) as pump:
            for number in range(3):
                journal.put(JmsMessage(body=b"<a>%d</a>" % number), ANSWERS)
                pump.wake()
            assert received(provider, 3) == [b"<a>0</a>", b"<a>1</a>", b"<a>2</a>"]

    if kind == "journal":
        pumped(Kept())
        return
    with Outbox(tmp_path) as outbox:
        pumped(outbox)
        assert len(outbox) == 0


def test_a_closed_pump_sends_nothing_and_the_outbox_keeps_its_messages(tmp_path: Path) -> None:
    with Outbox(tmp_path) as outbox:
        OutboxPump(outbox, lambda: connect("memory:pump-closed")).close()
        outbox.put(JmsMessage(body=b"<a/>"), ANSWERS)
        assert len(outbox) == 1


# docs/delivery.md: its figures are those of the code.


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "delivery.md").read_text(encoding="utf-8")


def test_the_bounds_on_the_page(page: str) -> None:
    by_default = {cls: inspect.signature(cls).parameters for cls in (Inbox, Outbox)}
    assert f"{by_default[Inbox]['window'].default:,} ids" in page
    for cls in (Inbox, Outbox):
        assert f"take {by_default[cls]['limit_bytes'].default // 2**30} GiB" in page


def test_the_errors_on_the_page(page: str) -> None:
    named = set(re.findall(r"`([A-Z]\w+Error)`", page))
    assert {"UnknownOutcomeError", "JournalDamageError", "SpoolInUseError", "SpoolFullError"} <= named
    assert [name for name in named if not hasattr(errors, name)] == []
