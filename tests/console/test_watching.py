"""Where a console of its own sees messages, and that it takes none."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.console import Bounds, BrokerWatch, LandingWatch, LetterBox, Traffic
from mtosi_jms.errors import ConfigError, SpoolError, TransportError
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.spool import DurableLanding
from mtosi_jms.testing import InterceptedConnection
from mtosi_jms.transport import Connection

from ..waiting import PATIENCE, until

SOON = 0.02
_numbers = itertools.count(1)


@pytest.fixture
def connect() -> Callable[[], Connection]:
    url = f"memory:console-{next(_numbers)}"
    return lambda: mtosi.connect(url)


@pytest.fixture
def sending(connect: Callable[[], Connection]) -> Iterator[Connection]:
    with connect() as connection:
        yield connection


def send(connection: Connection, destination: Any, *messages: JmsMessage) -> None:
    with connection.session() as session:
        for message in messages:
            session.send(destination, message)


def test_topics_and_queues(connect: Any, sending: Connection, traffic: Traffic, make: Any) -> None:
    with BrokerWatch(connect, ["topic:T", "queue:Q"], traffic, interval=SOON):
        until(lambda: "queue:Q" in {place.name for place, _, _ in traffic.places()})
        send(sending, Topic("T"), make("NOTIFICATION"))
        send(sending, Queue("Q"), make(batch=1), make(batch=3, last=True))
        until(lambda: traffic.overview().seen == 3)
        until(lambda: {place.name: place.depth for place, _, _ in traffic.places()} == {"topic:T": None, "queue:Q": 2})
        (found,) = traffic.exchanges()
        assert (found.state, found.missing, found.unseen) == ("ended", 0, 1), "a consumer may have taken it"
    with sending.session() as session:
        assert len(session.browse(Queue("Q"))) == 2, "they are still there"


def test_a_topic_has_no_dead_letters(connect: Any, traffic: Traffic) -> None:
    with pytest.raises(ConfigError, match="keeps no messages"):
        BrokerWatch(connect, [], traffic, dead_letters={"topic:T": LetterBox()})


def test_a_queue_larger_than_the_backlog_leaves_nothing_out(connect: Any, sending: Connection, make: Any) -> None:
    traffic = Traffic(Bounds(backlog=2))
    box = LetterBox(most=3)
    send(sending, Queue("Q"), *(make(batch=number) for number in range(1, 8)))
    send(sending, Queue("DLQ"), *(make("REQUEST", f"d-{number}") for number in range(5)))
    with BrokerWatch(connect, ["queue:Q"], traffic, dead_letters={"queue:DLQ": box}, interval=SOON):
        until(lambda: box.found().total == 5)
    assert [one.correlation_id for one in box.found().letters] == ["d-0", "d-1", "d-2"]
    assert (traffic.overview().left_out, traffic.overview().seen) == (0, 7), "dead letters are no traffic"


def test_a_provider_that_does_not_list_all_dead_letters(make: Any) -> None:
    def first() -> Iterator[JmsMessage]:
        yield make("REQUEST", "d-1")
        raise TransportError("it lists no more")

    box = LetterBox()
    assert box.read(first(), count=lambda: 1_000) == 1_000
    found = box.found()
    assert ([one.correlation_id for one in found.letters], found.total) == (["d-1"], 1_000)
    assert "no more" in found.problem

    def lost() -> int:
        raise TransportError("it is lost")

    with pytest.raises(TransportError, match="is lost"):
        box.read(first(), count=lost)
    assert box.found() == found, "what was known is shown"


def test_what_left_memory_is_read_from_its_file(tmp_path: Path, make: Any) -> None:
    traffic = Traffic(Bounds(octets=3_000))
    with DurableLanding(tmp_path) as landing:
        for number in range(1, 11):
            landing.land(make(batch=number, body="<a>" + "x" * 300 + "</a>"))
    with LandingWatch(tmp_path, traffic, interval=SOON):
        until(lambda: traffic.overview().seen == 10)
    first = traffic.messages()[-1]
    assert not first.has_body
    again = traffic.message(first.number)
    assert again is not None
    assert again.has_body


def test_a_provider_that_is_lost_is_tried_again(
    connect: Any, sending: Connection, traffic: Traffic, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Connection] = []

    def counting() -> Connection:
        made.append(connect())
        return made[-1]

    monkeypatch.setattr("mtosi_jms.console._watching._AGAIN", SOON)
    with BrokerWatch(counting, ["queue:Q"], traffic, interval=SOON):
        until(traffic.places)
        made[0].close()
        until(lambda: len(made) == 2)
        send(sending, Queue("Q"), make())
        until(lambda: traffic.overview().seen == 1)
        until(lambda: not traffic.overview().troubles)


def test_what_no_provider_should_answer_is_told_and_tried_again(
    connect: Any, traffic: Traffic, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(InterceptedConnection):
        is_odd = False

        @property
        def is_up(self) -> bool:
            if self.is_odd:
                raise ValueError("no number: {}")
            return True

    monkeypatch.setattr("mtosi_jms.console._watching._AGAIN", SOON)
    with BrokerWatch(lambda: Odd(connect()), ["queue:Q"], traffic, interval=SOON):
        until(traffic.places)
        Odd.is_odd = True
        until(lambda: "ValueError: no number: {}; it is tried again" in str(traffic.overview().troubles))
        Odd.is_odd = False
        until(lambda: not traffic.overview().troubles)
    assert "the console could not look" in caplog.text


@pytest.mark.obligation("CON6")
@pytest.mark.parametrize("name", ["topic:T", "queue:Q"])
def test_a_lost_provider_is_told_while_its_connection_is_made_again(connect: Any, traffic: Traffic, name: str) -> None:
    class Lossy(InterceptedConnection):
        there = True

        @property
        def is_up(self) -> bool:
            return self.there

    connection = Lossy(connect())
    with BrokerWatch(lambda: connection, [name], traffic, interval=3_600):
        until(lambda: traffic.overview().troubles == {})
        connection.there = False
        until(traffic_is_troubled := lambda: bool(traffic.overview().troubles))
        connection.there = True
        until(lambda: not traffic_is_troubled())


def test_a_provider_that_cannot_be_reached_is_an_error_at_the_beginning(traffic: Traffic) -> None:
    def refused() -> Connection:
        raise TransportError("nobody listens")

    with pytest.raises(TransportError):
        BrokerWatch(refused, ["topic:T"], traffic)


def test_a_landing_old_and_new(tmp_path: Path, traffic: Traffic, make: Any) -> None:
    with DurableLanding(tmp_path / "landing") as landing:
        landing.land(make(batch=1))
        landing.land(make(batch=2))
        with LandingWatch(tmp_path / "landing", traffic, interval=SOON):
            until(lambda: traffic.overview().seen == 2)
            landing.land(make(batch=5, last=True))
            until(lambda: traffic.overview().seen == 3)
    (found,) = traffic.exchanges()
    assert (found.state, found.gaps, found.sources) == ("incomplete", "3–4", {"landing landing"})


def test_a_landing_that_goes_away_says_so(tmp_path: Path, traffic: Traffic) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    with LandingWatch(folder, traffic, interval=SOON):
        folder.rmdir()
        until(lambda: traffic.overview().troubles)
        folder.mkdir()
        until(lambda: not traffic.overview().troubles)
    with pytest.raises(SpoolError):
        LandingWatch(tmp_path / "never", traffic)


@pytest.mark.broker
def test_on_a_real_broker(activemq: Any, traffic: Traffic, make: Any) -> None:
    url = activemq.endpoints.url("stomp")
    names = [f"topic:console-{time.time_ns()}", f"queue:console-{time.time_ns()}"]
    with mtosi.connect(url) as connection, BrokerWatch(lambda: mtosi.connect(url), names, traffic, interval=SOON):
        topic, queue = map(connection.names.lookup, names)
        until(lambda: names[1] in {place.name for place, _, _ in traffic.places()})
        until(lambda: send(connection, topic, make("NOTIFICATION")) or traffic.notified())  # type: ignore[func-returns-value]
        send(connection, queue, make(batch=1), make(batch=2, last=True))
        until(lambda: any(one.state == "complete" or one.batches == 2 for one in traffic.exchanges()))
        until(lambda: {place.name: place.depth for place, _, _ in traffic.places()}[names[1]] == 2)
        connection.start()
        with connection.session() as session, session.consumer(queue) as consumer:
            for _ in range(2):
                delivery = consumer.receive(PATIENCE)
                assert delivery is not None
                delivery.acknowledge()
        until(lambda: {place.name: place.depth for place, _, _ in traffic.places()}[names[1]] == 0)


@pytest.mark.obligation("OPS2")
@pytest.mark.parametrize("bounds", [Bounds(octets=100), Bounds(backlog=1), Bounds(messages=1)], ids=str)
def test_a_landing_is_read_whole_however_small_the_memory(tmp_path: Path, make: Any, bounds: Bounds) -> None:
    traffic = Traffic(bounds)
    with DurableLanding(tmp_path / "landing") as landing:
        for number in (1, 2, 6, 7):
            landing.land(make(batch=number, last=number == 7, body=f"<r>{'x' * 500}</r>"))
    with LandingWatch(tmp_path / "landing", traffic, interval=SOON):
        until(lambda: traffic.overview().seen == 4)
    overview = traffic.overview()
    assert (overview.left_out, overview.missing) == (0, 3)
    traffic.interrupted()  # what another source may have missed does not concern a landing
    (found,) = traffic.exchanges()
    assert found.gaps == "3–5"
