"""An exception between any two lines of the spool's code, and forks: what was stored is sent with its own content.

Each test runs a story once to note the lines of `mtosi_jms.spool` that it runs, or of what reads and hands out events,
then once for each of them with a KeyboardInterrupt there, as Ctrl-C or another signal handler raises it. All lines are
taken, not a sample.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest

import mtosi_jms.jms
import mtosi_jms.notifications
import mtosi_jms.soap
import mtosi_jms.spool
from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.spool import Inbox, Outbox
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.testing import connect_privately

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

WORK = Queue("WORK")
ID = "MTOSIX_messageId"
SPOOL = str(Path(mtosi_jms.spool.__file__).parent)
READING = tuple(str(Path(one.__file__).parent) for one in (mtosi_jms.notifications, mtosi_jms.jms, mtosi_jms.soap))


def marked(key: str) -> JmsMessage:
    return JmsMessage(body=f"<order>{key}</order>".encode() * 3, properties={ID: key})


def is_whole(message: JmsMessage) -> bool:
    return message.body == marked(str(message.properties[ID])).body


class Wire:
    def __init__(self) -> None:
        self.sent: list[JmsMessage] = []

    def send(self, destination: Any, message: JmsMessage) -> JmsMessage:
        self.sent.append(message)
        return message

    @property
    def keys(self) -> Counter[str]:
        return Counter(str(message.properties[ID]) for message in self.sent)


class Down:
    def send(self, destination: Any, message: JmsMessage) -> JmsMessage:
        raise TransportError("not reached")


class Interrupting:
    """Notes the lines that are run in its block; raises at one of them.

    Args:
        at: which one, counted from 0 over the whole block; None: none.
        folders: whose lines.
    """

    def __init__(self, at: int | None = None, folders: str | tuple[str, ...] = SPOOL) -> None:
        self._at = at
        self._folders = folders
        self.lines: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self._folders) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self.lines) - 1 == self._at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._line


def every_line(
    story: Callable[[Interrupting], None], times: int | None = None, folders: str | tuple[str, ...] = SPOOL
) -> None:
    """Runs a story without an exception, then with one at each line that it runs.

    Args:
        story: what is run.
        times: a line that is run more often is interrupted so many times from the first on, and the last time; None:
            every time.
        folders: whose lines.
    """
    counting = Interrupting(None, folders)
    story(counting)
    assert len(counting.lines) > 20
    places: dict[tuple[str, int], list[int]] = {}
    for place, line in enumerate(counting.lines):
        places.setdefault(line, []).append(place)
    for of_line in places.values():
        for place in of_line if times is None else dict.fromkeys([*of_line[:times], of_line[-1]]):
            story(Interrupting(place, folders))


LENGTHS = [pytest.param(0, id="short"), pytest.param(None, id="long", marks=pytest.mark.endurance)]
"""How often a line is interrupted: the last time that it is run, or each time."""


@pytest.mark.parametrize("times", LENGTHS)
def test_outbox(folders: Callable[[], Path], times: int | None) -> None:
    def story(interrupting: Interrupting) -> None:
        folder, wire, reported = folders(), Wire(), []
        with Outbox(folder) as outbox:
            outbox.put(marked("before"), WORK)
            with suppress(KeyboardInterrupt), interrupting:
                for key, session in ("1", wire), ("2", Down()), ("3", wire):
                    with suppress(TransportError):
                        outbox.send(session, WORK, marked(key))
                    reported.append(key)
                outbox.put(marked("4"), WORK)
                reported.append("4")
                reported.remove("4")
                outbox.withdraw(marked("4"))
                outbox.resend(wire)
            outbox.send(wire, WORK, marked("after"))
            assert not set(reported) - set(wire.keys), "the next call works, and sends all that was stored"
            assert len(outbox) == 0
        with Outbox(folder) as outbox:
            assert outbox.resend(wire) == 0
        assert wire.keys["before"] >= 1
        assert wire.keys["after"] == 1
        assert all(times <= 2 for times in wire.keys.values())
        assert sum(times == 2 for times in wire.keys.values()) <= 1, "one may have been sent and not yet confirmed"
        assert all(is_whole(message) for message in wire.sent)

    every_line(story, times)


@pytest.mark.parametrize("times", LENGTHS)
def test_inbox(folders: Callable[[], Path], times: int | None) -> None:
    def story(interrupting: Interrupting) -> None:
        folder, landed, handed, told = folders(), ["before"], Counter[str](), []
        with Inbox(folder) as inbox:
            inbox.land(marked("before"))
            with suppress(KeyboardInterrupt), interrupting:
                for key in "123":
                    inbox.land(marked(key))
                    landed.append(key)
                    entry = inbox.take()
                    assert entry is not None
                    assert is_whole(entry.message)
                    inbox.hand(entry.key)
                    handed[entry.key] += 1
                    if key == "2":
                        handed[entry.key] -= 1
                        inbox.retry(entry.key)
                        inbox.release(entry.key)
                    else:
                        inbox.done(entry.key)
            inbox.land(marked("after"))
            landed.append("after")
        with Inbox(folder, on_doubt=lambda entry: told.append(entry.key)) as inbox:
            while (entry := inbox.take()) is not None:
                assert is_whole(entry.message)
                inbox.hand(entry.key)
                handed[entry.key] += 1
                inbox.done(entry.key)
            assert not any(inbox.land(marked(key)) for key in landed)
        assert not [key for key in landed if not handed[key] and key not in told]
        assert max(handed.values()) == 1

    every_line(story, times)


def test_an_interrupted_take_costs_the_process_nothing(folders: Callable[[], Path]) -> None:
    """Whoever goes on with the same inbox gets each message once: none is left with nobody until the next start."""

    def story(interrupting: Interrupting) -> None:
        with Inbox(folders()) as inbox:
            for key in "12":
                inbox.land(marked(key))
            taken = []
            with suppress(KeyboardInterrupt), interrupting:
                taken += [inbox.take()]
            while (entry := inbox.take()) is not None:
                taken.append(entry)
            assert sorted(entry.key for entry in taken if entry is not None) == ["1", "2"]

    every_line(story)


@pytest.mark.obligation("NOT1")
@pytest.mark.parametrize("times", LENGTHS)
def test_a_subscriber_with_an_inbox(folders: Callable[[], Path], times: int | None) -> None:
    """Interrupted while it reads or hands out a message of two events, and used again: each event is handed out or in
    doubt."""

    def story(interrupting: Interrupting) -> None:
        with connect_privately() as connection, Inbox(folders()) as inbox:
            with Publisher(connection, {"Inventory": WORK}, sender_uri="queue:EMS") as publisher:
                for batch in ("12", "34", "56"):
                    publisher.publish_all(ResourceObjectCreation(notification_id=one) for one in batch)
            subscriber = Subscriber(connection, WORK, timeout=0, inbox=inbox)
            handed = [number(next(subscriber)) for _ in "12"]
            with suppress(KeyboardInterrupt), interrupting:
                handed += [number(next(subscriber))]
                handed += [number(next(subscriber))]
            handed += map(number, subscriber)
            subscriber.close()
            doubtful = b"".join(one.message.body for one in inbox.in_doubt)
            assert {*handed, *re.findall("notificationId>(.)<", doubtful.decode())} == set("123456")
            assert len(handed) == len(set(handed))
            assert len(inbox) == len(inbox.in_doubt)

    every_line(story, times, READING)


def number(received: Any) -> str:
    return str(received.event.notification_id)


@pytest.mark.parametrize("kind", [Outbox, Inbox])
@pytest.mark.parametrize("times", LENGTHS)
def test_opening_and_closing(folders: Callable[[], Path], kind: Any, times: int | None) -> None:
    folder = folders()

    def story(interrupting: Interrupting) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(KeyboardInterrupt), interrupting:
            kind(folder).close()
            kind(folder).close()
        with kind(folder) as again:
            again.put(marked("a"), WORK) if kind is Outbox else again.land(marked("a"))
            assert len(again) == 1

    every_line(story, times)


def fork(child: Callable[[], object]) -> int:
    """Runs something in a forked process; its exit code: 0, or 3 for an IllegalStateError."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            child()
            code = 0
        except IllegalStateError:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class TestForks:
    @pytest.mark.parametrize(
        "use",
        [
            lambda box: box.put(marked("child"), WORK),
            lambda box: box.send(Wire(), WORK, marked("child")),
            lambda box: box.resend(Wire()),
            lambda box: box.confirm(marked("a")),
            lambda box: box.withdraw(marked("a")),
            lambda box: box.unconfirmed(),
            len,
        ],
    )
    def test_a_child_cannot_use_its_parents_outbox(self, tmp_path: Path, use: Any) -> None:
        wire = Wire()
        with Outbox(tmp_path / "outbox") as outbox:
            outbox.put(marked("a"), WORK)
            assert fork(lambda: use(outbox)) == 3
            outbox.send(wire, WORK, marked("b"))
        assert all(is_whole(message) for message in wire.sent)
        assert list(wire.keys) == ["a", "b"]

    @pytest.mark.parametrize(
        "use", [lambda box: box.land(marked("child")), lambda box: box.take(), lambda box: box.done("a"), len]
    )
    def test_a_child_cannot_use_its_parents_inbox(self, tmp_path: Path, use: Any) -> None:
        with Inbox(tmp_path / "inbox") as inbox:
            inbox.land(marked("a"))
            assert fork(lambda: use(inbox)) == 3
            entry = inbox.take()
            assert entry is not None
            assert entry.message == marked("a")

    def test_a_child_that_closes_it_or_ends_leaves_it_to_its_parent(self, tmp_path: Path) -> None:
        with Outbox(tmp_path / "outbox") as outbox:
            assert fork(outbox.close) == 0
            assert fork(lambda: None) == 0
            outbox.put(marked("a"), WORK)
        with Outbox(tmp_path / "outbox") as outbox:
            assert [str(one.properties[ID]) for one in outbox.unconfirmed()] == ["a"]

    def test_a_fork_beside_threads_that_store(self, tmp_path: Path) -> None:
        over = threading.Event()
        stored: list[str] = []

        def store(outbox: Outbox) -> None:
            while not over.is_set():
                key = str(len(stored))
                outbox.put(marked(key), WORK)
                stored.append(key)

        with Outbox(tmp_path / "outbox") as outbox:
            thread = threading.Thread(target=store, args=(outbox,))
            thread.start()
            codes = {fork(lambda: outbox.put(marked("child"), WORK)) for _ in range(20)}
            over.set()
            thread.join(60)
        assert codes == {3}
        with Outbox(tmp_path / "outbox") as outbox:
            assert [str(one.properties[ID]) for one in outbox.unconfirmed()] == stored

    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_processes_share_an_inbox(self, tmp_path: Path, method: str) -> None:
        """Also with a parent that has it open, whatever way they are made: each message is handed out once."""
        with Inbox(tmp_path / "inbox") as inbox:
            for number in range(40):
                inbox.land(marked(str(number)))
            context = multiprocessing.get_context(method)
            results: Any = context.SimpleQueue()
            children = [context.Process(target=hand_out, args=(tmp_path / "inbox", results)) for _ in range(2)]
            for child in children:
                child.start()
            mine = hand_out_from(inbox)
            theirs = [results.get() for _ in children]
            for child in children:
                child.join(60)
            assert [child.exitcode for child in children] == [0, 0]
            everything = Counter(mine) + Counter(theirs[0]) + Counter(theirs[1])
            assert everything == Counter(map(str, range(40)))
            assert (len(inbox), inbox.in_doubt) == (0, [])


def hand_out_from(inbox: Inbox) -> list[str]:
    found = []
    while (entry := inbox.take()) is not None:
        inbox.hand(entry.key)
        assert is_whole(entry.message)
        found.append(entry.key)
        inbox.done(entry.key)
    return found


def hand_out(folder: Path, results: Any) -> None:
    with Inbox(folder) as inbox:
        results.put(hand_out_from(inbox))
