"""Dead letters: why they are there, those of one reason redriven, moved or withdrawn, and that taken back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.console import DeadLetters, LetterBox
from mtosi_jms.jms import Queue
from mtosi_jms.spool import SpoolFolder, entries
from mtosi_jms.testing import InterceptedConnection, Step
from mtosi_jms.transport import Connection

from ..waiting import until

FORM_KEY = re.compile(r'name="form_key" value="([^"]+)"')
_numbers = itertools.count(1)


def plain(page: str) -> str:
    """The text of a page."""
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))


class Broker:
    """A provider with a queue of 250 dead letters: 200 of a timeout, 49 of a fault, and one that tells nothing."""

    def __init__(self, make: Any) -> None:
        url = f"memory:letters-{next(_numbers)}"
        self.connect: Callable[[], Connection] = lambda: mtosi.connect(url)
        self.connection = self.connect()
        self.box = LetterBox()
        with self.connection.session() as session:
            for number in range(250):
                told = {
                    "MTOSIX_parkedReason": "TimeoutError" if number < 200 else "EntityNotFoundFault",
                    "MTOSIX_originalDestination": f"queue:EMS.{number % 2}",
                }
                session.send(Queue("DLQ"), make("REQUEST", f"c-{number}", properties=told if number < 249 else {}))
        self.look()

    def look(self) -> None:
        with self.connection.session() as session:
            self.box.read(session.headers(Queue("DLQ")))

    def count(self, name: str) -> int:
        with self.connection.session() as session:
            return session.count(Queue(name))

    @property
    def letters(self) -> DeadLetters:
        return DeadLetters(name="queue:DLQ", box=self.box, connect=self.connect, changed=self.look)


@pytest.fixture
def broker(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Broker(make)
    with made.connection:
        yield made


class Desk:
    """A visitor who may act."""

    def __init__(self, browser: Any, path: str) -> None:
        self.browser = browser
        self.path = path

    @cached_property
    def key(self) -> str:
        return FORM_KEY.findall(self.browser.get(self.path).text)[0]

    def post(self, path: str, **fields: Any) -> Any:
        return self.browser.post(path, data={"form_key": self.key, **fields})

    def choose(self, **fields: Any) -> tuple[str, str]:
        """What the confirmation says, and its ticket."""
        answer = self.post(self.path, **fields)
        assert answer.status_code == 303, answer.text
        page = self.browser.get(answer.headers["location"]).text
        return page, answer.headers["location"].partition("ticket=")[2]

    def confirm(self, ticket: str, to: str = "") -> Any:
        answer = self.post("/dead-letters", do="confirm", ticket=ticket, to=to)
        self.done()
        return answer

    def done(self) -> str:
        until(lambda: 'value="stop"' not in self.browser.get("/dead-letters").text)
        return plain(self.browser.get("/dead-letters").text)


@pytest.fixture
def desk(visit: Any, broker: Broker) -> Desk:
    return Desk(visit(dead_letters=[broker.letters], allow_actions=True), "/dead-letters/queue/0")


def test_reasons_and_filters(desk: Desk) -> None:
    told = desk.done()
    assert "250 dead letters" in told
    assert "TimeoutError 200 EntityNotFoundFault 49 not told 1" in told
    for query, number in (
        ("", "1 to 100 of 250 letters"),
        ("?page=3", "201 to 250 of 250"),
        ("?reason=EntityNotFoundFault", "49 letters"),
        ("?kind=request&text=C-24", "11 letters"),
        ("?since=2001-01-01T00:00&text=ems.1&reason=TimeoutError", "100 letters"),
        ("?until=2001-01-01T00:00", "No dead letter matches"),
        ("?since=soon", "is no time"),
    ):
        assert number in desk.browser.get(desk.path + query).text, query


def test_those_of_one_reason_are_redriven_and_put_back(desk: Desk, broker: Broker) -> None:
    page, ticket = desk.choose(action="redrive", all="1", reason="TimeoutError")
    assert "Redrive 200 dead letters?" in page
    assert page.count("<dt>100 to</dt>") == 2
    assert broker.count("EMS.0") == 0, "nothing was confirmed"
    desk.confirm(ticket)
    assert (broker.count("EMS.0"), broker.count("EMS.1"), broker.count("DLQ")) == (100, 100, 50)
    assert "200 of 200 redriven from queue:DLQ" in desk.done()
    assert desk.confirm(ticket).status_code == 409, "once"
    with broker.connection.session() as session, session.consumer(Queue("EMS.1")) as consumer:
        broker.connection.start()
        taken = consumer.receive(60)
        assert taken is not None
        taken.acknowledge()
    desk.post("/dead-letters", do="undo", job="1")
    assert "199 of 200 put back" in desk.done()
    assert "1 not there any more" in desk.done()
    assert (broker.count("EMS.0"), broker.count("EMS.1"), broker.count("DLQ")) == (0, 0, 249)
    assert "TimeoutError 199" in desk.done(), "they tell their reason as before"
    assert desk.post("/dead-letters", do="undo", job="1").status_code == 409


def test_some_are_moved_and_others_withdrawn_and_put_back(desk: Desk, broker: Broker) -> None:
    last = broker.box.found().letters[-1].key
    page, ticket = desk.choose(action="redrive", key=last)
    assert "they do not tell where they came from" in page
    desk.confirm(ticket)
    assert "0 of 1 redriven" in desk.done()
    _, ticket = desk.choose(action="move", key=[one.key for one in broker.box.found().letters[-2:]])
    assert desk.confirm(ticket, "queue:DLQ").status_code == 409, "they are there already"
    desk.confirm(ticket, " queue:ASIDE ")
    assert (broker.count("ASIDE"), broker.count("DLQ")) == (2, 248)
    _, ticket = desk.choose(action="withdraw", all="1", reason="EntityNotFoundFault")
    desk.confirm(ticket)
    assert broker.count("DLQ") == 200
    assert "48 of 48 withdrawn" in desk.done()
    desk.post("/dead-letters", do="undo", job="3")
    assert "48 of 48 put back" in desk.done()
    assert broker.count("DLQ") == 248


def test_one_letter_is_read_and_downloaded(desk: Desk, broker: Broker) -> None:
    path = f"{desk.path}/message?key={broker.box.found().letters[7].key}"
    page = desk.browser.get(path).text
    assert "MTOSIX_parkedReason" in page
    assert "Redrive…" in page
    file = desk.browser.get(f"{path}&download=json")
    assert file.json()["envelope"]["Envelope"]["Header"]["header"]["correlationId"] == "c-7"
    assert file.headers["content-disposition"] == 'attachment; filename="c-7.json"'
    assert desk.browser.get(f"{desk.path}/message?key=nobody").status_code == 404


def test_forms_that_say_nothing_sensible(desk: Desk, broker: Broker) -> None:
    for fields, status in (
        ({"action": "explode", "all": "1"}, 400),
        ({"all": "1"}, 400),
        ({"action": "redrive"}, 409),
        ({"action": "redrive", "key": "nobody"}, 409),
    ):
        answer = desk.post(desk.path, **fields)
        assert answer.status_code == status
        assert status == 400 or f'<a href="{desk.path}">' in answer.text, "the way back"
    for fields, status in (({"do": "explode"}, 400), ({"do": "undo", "job": "7"}, 409), ({"do": "confirm"}, 400)):
        assert desk.post("/dead-letters", **fields).status_code == status
    assert desk.post("/dead-letters/queue/7", action="redrive", all="1").status_code == 404
    assert broker.count("DLQ") == 250


def test_those_of_an_outbox(outbox: Path, visit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    desk = Desk(visit(spools=[outbox], allow_actions=True), "/dead-letters/spool/0")
    assert "no permission" in desk.browser.get(desk.path).text
    assert "queue:EMS" in desk.browser.get(f"{desk.path}/message?key=dead-1").text
    assert desk.post(desk.path, action="move", key="dead-1").status_code == 400
    _, redriving = desk.choose(action="redrive", key="dead-1")
    page, withdrawing = desk.choose(action="withdraw", all="1")
    assert "there is no undo" in page
    desk.confirm(redriving)
    with SpoolFolder(outbox) as folder:
        assert [one.state for one in folder.messages()] == ["waits"]
    assert "Nothing is dead" in desk.done()
    assert "1 of 1 redriven" in desk.done()
    desk.confirm(withdrawing)
    assert "1 of 1 withdrawn" in desk.done()
    assert "For an outbox or inbox there is none" in desk.done()
    assert 'value="undo"' not in desk.browser.get("/dead-letters").text
    (record,) = (tmp_path / "state" / "mtosi-jms" / "queue").iterdir()
    assert [one.message().body for one in entries(record)] == [b"<a/>"]


def test_what_the_broker_does_not_hand_out_is_said_to_be_there(visit: Any, broker: Broker) -> None:
    last = [broker.box.found().letters[at].key for at in (0, 7)]

    def hand_out(step: Step) -> Any:
        delivery = step.proceed()
        return None if step.action == "receive" and delivery and delivery.message.message_id == last[1] else delivery

    letters = replace(broker.letters, connect=lambda: InterceptedConnection(broker.connect(), hand_out))
    desk = Desk(visit(dead_letters=[letters], allow_actions=True), "/dead-letters/queue/0")
    _, ticket = desk.choose(action="redrive", key=last)
    desk.confirm(ticket)
    assert "1 of 2 redriven" in desk.done()
    assert "1 there, but not handed out" in desk.done()
