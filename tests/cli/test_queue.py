"""`mtosi-jms queue` over the embedded provider: nothing is lost, whatever happens in the middle."""

from __future__ import annotations

import dataclasses
import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.cli.queues import operate
from mtosi_jms.cli.running import Stop
from mtosi_jms.jms import DeliveryMode, Destination, JmsMessage, Queue, TemporaryQueue
from mtosi_jms.jms.message import Long, MessageType
from mtosi_jms.runtime.queues import as_moved
from mtosi_jms.spool import entries
from mtosi_jms.testing import InterceptedConnection, Step
from mtosi_jms.transport import Connection

Capture = pytest.CaptureFixture[str]
Run = Callable[..., tuple[int, str, str]]

PATIENCE = 60
HERE, THERE = Queue("HERE"), Queue("THERE")
MESSAGES = [
    JmsMessage(
        body="<first>é</first>".encode(),
        properties={"MTOSI_msgName": "first", "n": 1, "l": Long(2), "b": True, "d": 0.5, "MTOSIX_messageId": "uuid-1"},
        delivery_mode=DeliveryMode.PERSISTENT,
        priority=4,
        time_to_live_ms=3_600_000,
        correlation_id="ID:of-a-request",
        jms_type="T",
        reply_to=TemporaryQueue("waits", "ID:another"),
    ),
    JmsMessage(
        body=b"\xffno XML at all",
        message_type=MessageType.BYTES,
        properties={"n": 2, "JMSXGroupID": "g", "JMSXGroupSeq": 1, "password": "hunter2"},
        reply_to=Queue("REPLIES"),
    ),
    JmsMessage(body=b"<third/>", properties={"n": 3}),
]
KEPT = ("body", "message_type", "properties", "delivery_mode", "priority", "correlation_id", "jms_type", "reply_to")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "mtosi-jms" / "queue"


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    with mtosi.connect(url) as connection:
        connection.start()
        yield connection


@pytest.fixture
def three(connection: Connection) -> list[JmsMessage]:
    """Three messages at HERE, as they wait there."""
    return filled(connection, MESSAGES)


@pytest.fixture
def run(url: str, capsys: Capture) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main(["queue", *words, "--url", url])
        return code, *capsys.readouterr()

    return call


def filled(connection: Connection, messages: list[JmsMessage]) -> list[JmsMessage]:
    with connection.session() as session:
        for message in messages:
            session.send(HERE, message)
        return session.browse(HERE)


def numbered(count: int) -> list[JmsMessage]:
    return [JmsMessage(body=b"<n>%d</n>" % number) for number in range(count)]


def waiting(connection: Connection, place: Destination) -> list[JmsMessage]:
    with connection.session() as session:
        return session.browse(place)


def bodies(connection: Connection, place: Destination) -> list[bytes]:
    return [message.body for message in waiting(connection, place)]


def kept(message: JmsMessage) -> dict[str, Any]:
    return {name: getattr(message, name) for name in KEPT}


def recorded(folder: Path) -> list[JmsMessage]:
    return [entry.message() for entry in entries(folder, strict=True)] if folder.is_dir() else []


def only(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


class TestLooking:
    def test_browsing_consumes_nothing(self, run: Run, connection: Connection, three: list[JmsMessage]) -> None:
        first, again = run("browse", "queue:HERE", "--json"), run("browse", "queue:HERE", "--json")
        assert first == again
        code, out, err = first
        assert (code, err) == (0, "note: 3 messages at queue:HERE\n")
        told = [json.loads(line) for line in out.splitlines()]
        assert [one["message_id"] for one in told] == [message.message_id for message in three]
        assert [one["bytes"] for one in told] == [len(message.body) for message in three]
        assert told[0]["properties"] == dict(three[0].properties)
        assert (told[0]["MTOSIX_messageId"], told[0]["reply_to"]) == ("uuid-1", str(three[0].reply_to))
        assert told[0]["expires"] > told[0]["timestamp"]
        assert told[1]["expires"] is None
        assert waiting(connection, HERE) == three

    def test_people_get_a_table_and_no_secret(self, run: Run, three: list[JmsMessage]) -> None:
        code, out, _ = run("browse", "queue:HERE", "--limit", "2")
        assert code == 0
        heading, first, second = out.splitlines()
        assert heading.split()[:3] == ["sent", "message", "prio"]
        assert "first" in first
        assert str(three[1].message_id) in second
        assert "hunter2" not in out + run("browse", "queue:HERE", "--json")[1]

    @pytest.mark.parametrize(
        ("words", "count"),
        [((), 3), (("--selector", "n >= 2"), 2), (("--limit", "1"), 1), (("--selector", "n = 9"), 0)],
    )
    def test_counting(self, run: Run, three: list[JmsMessage], words: tuple[str, ...], count: int) -> None:
        assert run("count", "queue:HERE", *words) == (0, f"{count}\n", "")
        document = json.loads(run("count", "queue:HERE", *words, "--json")[1])
        assert (document["queue"], document["count"]) == ("queue:HERE", count)

    @pytest.mark.parametrize("words", [("copy", "--to", "queue:THERE"), ("move", "--to", "queue:THERE"), ("purge",)])
    def test_a_dry_run_changes_nothing(
        self, run: Run, connection: Connection, three: list[JmsMessage], state: Path, words: tuple[str, ...]
    ) -> None:
        code, out, err = run(words[0], "queue:HERE", *words[1:], "--dry-run", "--selector", "n > 1", "--json")
        assert (code, len(out.splitlines())) == (0, 2)
        assert err.startswith("note: 2 messages would be ")
        assert waiting(connection, HERE) == three
        assert bodies(connection, THERE) == []
        assert not state.exists()


class TestMoving:
    def test_a_message_arrives_as_it_was(
        self, run: Run, connection: Connection, three: list[JmsMessage], state: Path
    ) -> None:
        code, out, _ = run("move", "queue:HERE", "--to", "queue:THERE")
        assert (code, out) == (0, f"3 messages moved from queue:HERE to queue:THERE; the record is {only(state)}\n")
        moved = waiting(connection, THERE)
        assert list(map(kept, moved)) == list(map(kept, three))
        assert abs(moved[0].expiration_ms - three[0].expiration_ms) < 600_000, "its life did not begin anew"
        assert [message.expiration_ms for message in moved[1:]] == [0, 0]
        assert bodies(connection, HERE) == []
        assert list(map(kept, recorded(only(state)))) == list(map(kept, three))
        assert stat.S_IMODE(only(state).stat().st_mode) == 0o700

    def test_selector_and_limit_leave_the_others_in_their_order(
        self, run: Run, connection: Connection, three: list[JmsMessage], tmp_path: Path
    ) -> None:
        words = ("--selector", "n <> 2", "--limit", "1", "--record", str(tmp_path / "kept"), "--json")
        code, out, _ = run("move", "queue:HERE", "--to", "queue:THERE", *words)
        (line,) = map(json.loads, out.splitlines())
        assert (code, line["message_id"]) == (0, three[0].message_id)
        assert Path(line["record"]).read_bytes() == three[0].body
        assert bodies(connection, THERE) == [three[0].body]
        assert bodies(connection, HERE) == [message.body for message in three[1:]]

    def test_what_was_purged_can_be_sent_again(
        self, run: Run, url: str, connection: Connection, three: list[JmsMessage], state: Path
    ) -> None:
        assert run("purge", "queue:HERE")[0] == 0
        assert bodies(connection, HERE) == []
        assert main(["replay", str(only(state)), "--url", url, "--to", "queue:HERE"]) == 0
        assert bodies(connection, HERE) == [message.body for message in three]

    def test_copying_leaves_all_as_it_is(
        self, run: Run, connection: Connection, three: list[JmsMessage], state: Path, tmp_path: Path
    ) -> None:
        assert run("copy", "queue:HERE", "--to", "queue:THERE")[:2] == (
            0,
            "3 messages copied from queue:HERE to queue:THERE\n",
        )
        assert waiting(connection, HERE) == three
        assert list(map(kept, waiting(connection, THERE))) == list(map(kept, three))
        assert not state.exists(), "nothing left its place"
        assert run("copy", "queue:HERE", "--to", "queue:THERE", "--record", str(tmp_path / "kept"))[0] == 0
        assert len(recorded(tmp_path / "kept")) == 3

    def test_an_empty_queue_is_no_fault_and_leaves_no_record(self, run: Run, state: Path) -> None:
        told = "0 messages moved from queue:HERE to queue:THERE\n"
        assert run("move", "queue:HERE", "--to", "queue:THERE") == (0, told, "")
        assert not state.exists()

    def test_what_comes_back_is_not_moved_again_and_again(
        self, run: Run, connection: Connection, background: Any
    ) -> None:
        """Somebody fails on what arrives, and it comes back to the queue that is emptied."""
        filled(connection, numbered(150))

        def sends_back() -> None:
            with connection.session() as session, session.consumer(THERE) as consumer:
                for _ in range(150):
                    delivery = consumer.receive(PATIENCE)
                    assert delivery is not None
                    session.send(HERE, delivery.message)
                    delivery.acknowledge()

        back = background(sends_back)
        code, out, _ = run("move", "queue:HERE", "--to", "queue:THERE", "--wait", "30")
        back.result(PATIENCE)
        assert (code, out.split()[0]) == (0, "150")
        assert len(bodies(connection, HERE)) == 150


DONE = {"copy": "copied", "move": "moved", "purge": "purged"}


class Interrupted(Exception):
    """Stands for whatever may be raised between two lines."""


class At(Stop):
    """A stop that is set, or raises, when it is looked at for the nth time."""

    def __init__(self, look: int, error: type[BaseException] | None = None) -> None:
        super().__init__()
        self.left, self._error = look, error

    def is_set(self) -> bool:
        self.left -= 1
        if self.left <= 0 and self._error is not None:
            raise self._error
        return self.left <= 0


class TestInTheMiddle:
    """Wherever it ends: each message is at one place, in order, and all that left are in the record."""

    @pytest.mark.parametrize("action", ["move", "purge", "copy"])
    @pytest.mark.parametrize("error", [None, KeyboardInterrupt, Interrupted])
    def test_nothing_is_lost_wherever_it_ends(
        self,
        url: str,
        connection: Connection,
        parsed: Any,
        tmp_path: Path,
        capsys: Capture,
        monkeypatch: pytest.MonkeyPatch,
        action: str,
        error: Any,
    ) -> None:
        target = () if action == "purge" else ("--to", "queue:THERE")
        messages = numbered(7)
        whole = [message.body for message in messages]
        told = []
        for look in range(1, 20):
            filled(connection, messages)
            record = tmp_path / f"record-{look}"
            args = parsed("queue", action, "queue:HERE", *target, "--record", str(record), "--url", url)
            with mtosi.connect(url) as own, At(look, error) as stop:
                try:
                    assert operate(own, args, stop, batch=3) in (0, 130)
                except (KeyboardInterrupt, Interrupted):
                    pass
                else:
                    assert stop.left > 0 or error is None
            left, arrived = bodies(connection, HERE), bodies(connection, THERE)
            kept = [message.body for message in recorded(record)]
            assert whole[: len(kept)] == kept
            if action == "copy":
                assert left == whole
                assert arrived == whole[: len(arrived)]
            else:
                gone = len(whole) - len(left)
                assert left == whole[gone:]
                assert arrived == ([] if action == "purge" else whole[:gone])
                assert len(kept) >= gone
            out, err = capsys.readouterr()
            done = len(whole) - len(left) if action == "purge" else len(arrived)
            assert f"{done} {'message' if done == 1 else 'messages'} {DONE[action]}" in out + err
            told.append(done)
            with connection.session() as session:
                for place in (HERE, THERE):
                    with session.consumer(place) as consumer:
                        while (delivery := consumer.receive(0)) is not None:
                            delivery.acknowledge()
        assert {3, 6, 7} <= set(told), "it ended after each batch"

    def test_a_full_destination_keeps_what_it_has_no_room_for(self, url: str, run: Run, state: Path) -> None:
        with mtosi.connect(url, capacity=250, send_timeout=0.0) as connection:
            with connection.session() as session:
                for _ in range(100):
                    session.send(THERE, JmsMessage(body=b"<before/>"))
            filled(connection, numbered(250))
            code, out, err = run("move", "queue:HERE", "--to", "queue:THERE")
            assert (code, out) == (1, "")
            first, second = err.splitlines()
            assert first.startswith("error: 100 messages moved from queue:HERE to queue:THERE; the other messages are")
            assert str(only(state)) in first
            assert "full" in second
            assert len(bodies(connection, THERE)) == 200
            assert bodies(connection, HERE) == [message.body for message in numbered(250)[100:]]

    def test_what_cannot_be_recorded_stays(
        self, run: Run, connection: Connection, three: list[JmsMessage], tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("in the way")
        code, _, err = run("purge", "queue:HERE", "--record", str(tmp_path / "file" / "record"))
        assert code == 1
        assert str(tmp_path / "file") in err
        assert [message.body for message in three] == bodies(connection, HERE)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("browse", "topic:EVENTS"), 1, "a topic cannot"),
        (("purge", "topic:EVENTS"), 1, "a topic keeps no messages"),
        (("move", "queue:HERE", "--to", "topic:EVENTS"), 1, "a topic keeps no messages"),
        (("copy", "queue:HERE", "--to", "queue:HERE"), 1, "give another queue"),
        (("browse", "jms/Nowhere"), 1, "jms/Nowhere"),
        (("move", "queue:HERE", "--to", "jms/Nowhere"), 1, "jms/Nowhere"),
        (("move", "queue:HERE"), 2, "move needs --to"),
        (("copy", "queue:HERE"), 2, "copy needs --to"),
        (("purge", "queue:HERE", "--to", "queue:THERE"), 2, "purge takes no --to"),
        (("count", "queue:HERE", "--selector", "n ="), 2, "selector: "),
        (("browse", "queue:HERE", "--by", "reason"), 2, "--by is for count"),
        (("move", "queue:HERE", "--to", "queue:THERE", "--limit", "0"), 2, "at least 1"),
        (("drain", "queue:HERE"), 2, "drain"),
    ],
)
def test_what_is_refused(
    run: Run, connection: Connection, three: list[JmsMessage], words: tuple[str, ...], code: int, said: str
) -> None:
    returned, out, err = run(*words)
    assert (returned, out) == (code, "")
    assert said in err
    assert "Traceback" not in err
    assert waiting(connection, HERE) == three


def test_names_of_the_naming_context(run: Run, connection: Connection, three: list[JmsMessage], tmp_path: Path) -> None:
    names = tmp_path / "jndi.properties"
    names.write_text("queue.jms/Here = HERE\nqueue.jms/There = THERE\n")
    assert run("move", "jms/Here", "--to", "jms/There", "--names", str(names))[0] == 0
    assert bodies(connection, THERE) == [message.body for message in three]


def test_a_message_that_has_nearly_expired_keeps_what_is_left(connection: Connection) -> None:
    message = dataclasses.replace(MESSAGES[0], expiration_ms=1)
    assert as_moved(message).time_to_live_ms == 1, "0 would be for ever"


@pytest.mark.parametrize(
    ("words", "back", "code"),
    [
        ((), [b"a", b"b"], 1),
        (("--limit", "1"), [b"a"], 0),
        (("--reason", "ValueError"), [b"b"], 0),
        (("--reason", "it's none", "--selector", "n = 1 OR n = 2"), [], 0),
        (("--dry-run",), [], 0),
    ],
)
def test_redrive_sends_each_message_to_where_it_came_from(
    run: Run, connection: Connection, words: tuple[str, ...], back: list[bytes], code: int
) -> None:
    reasons = {b"a": "MessageRefusedError", b"b": "ValueError"}
    parked = [
        JmsMessage(
            body=body,
            properties={
                "n": 1,
                "MTOSIX_originalDestination": "queue:THERE",
                "MTOSIX_parkedReason": reason,
                "JMS_MTOSIX_deadLetterReason": "ValueError",  # the first that is there counts
            },
        )
        for body, reason in reasons.items()
    ]
    filled(connection, [*parked, JmsMessage(body=b"from nowhere")])
    assert "MessageRefusedError  queue:THERE" in run("browse", "queue:HERE")[1]
    told, out, _ = run("count", "queue:HERE", "--by", "reason")
    assert out == "messages  reason\n1         MessageRefusedError\n1         ValueError\n1         not told\n"
    found = json.loads(run("count", "queue:HERE", "--by", "n", "--json", "--reason", "ValueError")[1])
    assert (found["count"], found["by"], found["counts"]) == (1, "n", [{"value": "1", "count": 1}])
    told, _, err = run("redrive", "queue:HERE", *words)
    assert told == code, err
    there = waiting(connection, THERE)
    assert [(message.body, message.properties) for message in there] == [(body, {"n": 1}) for body in back]
    assert len(waiting(connection, HERE)) == 3 - len(back)
    assert ("without an original destination" in err) is bool(code)


def test_messages_that_match_and_do_not_come_are_told(connection: Connection, parsed: Any, capsys: Capture) -> None:
    """A broker may count what it does not hand out within the time."""
    parked = {"MTOSIX_originalDestination": "queue:THERE"}
    filled(connection, [JmsMessage(body=body, properties=parked) for body in (b"a", b"b", b"c")])
    received = iter(range(3))

    def late(step: Step) -> Any:
        return step.proceed() if step.action != "receive" or next(received, 3) < 2 else None

    args = parsed("queue", "redrive", "queue:HERE", "--url", "memory:", "--wait", "0")
    with Stop() as stop:
        assert operate(InterceptedConnection(connection, late), args, stop) == 1
    assert "error: 1 message that match" in capsys.readouterr().err


def test_a_long_queue_has_one_heading_in_a_pipe_and_its_limit_looks_a_little_further(
    run: Run, connection: Connection
) -> None:
    filled(connection, numbered(1_600))
    out = run("browse", "queue:HERE")[1].splitlines()
    assert (len(out), sum(line.startswith("sent") for line in out)) == (1_601, 1)
    assert run("browse", "queue:HERE", "--limit", "1")[2] == "note: 1 of more than 1,001 messages at queue:HERE\n"
