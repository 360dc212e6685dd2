"""`mtosi-jms publish` and `mtosi-jms subscribe` over the embedded provider."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.cli._subscribe import subscribe
from mtosi_jms.cli.running import Stop
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue, Topic
from mtosi_jms.namespaces import NOTMSG
from mtosi_jms.simulator import Network
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.spool import entries
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, MessageTypeType
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest
from mtosi_jms.xmlbind import encode

Capture = pytest.CaptureFixture[str]
EVENTS = list(Network(elements=5).events(6))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Six events: two alone, two as notify bodies, two in envelopes."""
    found = []
    for place, event in enumerate(EVENTS):
        body: Any = event if place < 2 else Notify(topic="T", message=NotifyMessage(common_event_information=[event]))
        if place >= 4:
            header = Header(
                activity_name="notify",
                msg_name="notify",
                msg_type=MessageTypeType.NOTIFICATION,
                sender_uri="urn:its-sender",
                communication_pattern=CommunicationPatternType.Notification,
            )
            data = Envelope(header=header, body=body).to_bytes()
        else:
            data = encode(body)
        path = tmp_path / f"{place}.xml"
        path.write_bytes(data)
        found.append(str(path))
    return found


@pytest.fixture
def heard(url: str, capsys: Capture) -> Callable[..., list[Any]]:
    """What `subscribe` prints of the durable subscription `d`, which is there from the beginning."""
    base = ["subscribe", "--url", url, "--topic", "topic:T", "--durable", "d", "--timeout", "0"]
    assert main(base) == 0
    assert capsys.readouterr() == ("", "ready: topic:T (topic:T)\n")

    def hear(*words: str) -> list[Any]:
        capsys.readouterr()
        assert main([*base, "--json", *words]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return hear


Heard = Callable[..., list[Any]]


def test_events_in_any_form(url: str, files: list[str], heard: Heard, capsys: Capture) -> None:
    assert main(["publish", *files, "--url", url, "--topic", "topic:T"]) == 0
    out, err = capsys.readouterr()
    assert (len(out.splitlines()), err) == (6, "")
    assert out.splitlines()[0].startswith(f"sent: {files[0]}: ")
    assert "MTOSI_EventType=" in out
    events = heard()
    assert [event["notification_id"] for event in events] == [event.notification_id for event in EVENTS]
    assert [event["sender"] for event in events] == ["mtosi-jms"] * 4 + ["urn:its-sender"] * 2
    assert all(event["event"] == event["properties"]["MTOSI_EventType"] for event in events)


def test_events_of_mtosi_1x(url: str, heard: Heard, tmp_path: Path) -> None:
    """An event alone and a notify body: a header of 1.x, and the words of 2.x."""
    event = (
        "<Alarm{}><eventInfo><notificationId>n</notificationId><objectName><meNm>7</meNm></objectName>"
        "<objectType>OT_MANAGED_ELEMENT</objectType></eventInfo><perceivedSeverity>PS_MAJOR</perceivedSeverity></Alarm>"
    )
    space = ' xmlns="tmf854.v1"'
    body = f"<notify{space}><topic>T</topic><message>{event.format('')}</message></notify>"
    for number, text in enumerate((event.format(space), body)):
        (tmp_path / f"{number}.xml").write_text(text)
    assert main(["publish", str(tmp_path), "--url", url, "--topic", "topic:T"]) == 0
    events = heard("--landing", str(tmp_path / "landing"))
    told = ("event", "object_type", "object_name", "perceived_severity", "notification_id")
    assert [[event[name] for name in told] for event in events] == [
        ["AlarmInformation", "ME", "ME=7", "MAJOR", "n"]
    ] * 2
    assert [event["properties"]["MTOSI_perceivedSeverity"] for event in events] == ["MAJOR"] * 2
    landed = [path.read_bytes() for path in (tmp_path / "landing").rglob("*.xml")]
    assert [b"<tmf854:header" in body or b'header xmlns="tmf854.v1"' in body for body in landed] == [True] * 2


def test_an_envelope_goes_out_as_it_is(url: str, files: list[str]) -> None:
    with mtosi.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(Topic("T"))
        connection.start()
        assert main(["publish", files[5], "--url", url, "--topic", "topic:T"]) == 0
        delivery = consumer.receive(60)
        assert delivery is not None
        assert delivery.message.body == Path(files[5]).read_bytes()
        assert main(["publish", files[5], "--url", url, "--topic", "topic:T", "--new-header", "--sender", "me"]) == 0
        delivery = consumer.receive(60)
        assert delivery is not None
        header = parse(delivery.message.body).header
        assert header is not None
        assert (header.sender_uri, header.destination_uri) == ("me", "topic:T")


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ([], {"EventType", "objectType", "perceivedSeverity"}),
        (["--filter", "objectName,EventType"], {"objectName", "EventType"}),
        (["--filter", "none"], set()),
    ],
)
def test_which_attributes_become_properties(
    url: str, files: list[str], heard: Heard, choice: list[str], names: set[str]
) -> None:
    assert main(["publish", *files, "--url", url, "--topic", "topic:T", *choice]) == 0
    seen = {name.removeprefix("MTOSI_") for event in heard() for name in event["properties"]}
    assert seen & {"EventType", "objectType", "perceivedSeverity", "objectName", "osTime"} == names


def test_persistent_messages_carry_an_id(url: str, files: list[str], heard: Heard, tmp_path: Path) -> None:
    assert main(["publish", *files[:2], "--url", url, "--topic", "topic:T", "--persistent", "--json"]) == 0
    ids = [event["properties"]["MTOSIX_messageId"] for event in heard("--landing", str(tmp_path / "landing"))]
    assert len(set(ids)) == 2
    landed = [entry.facts for entry in entries(tmp_path / "landing", strict=True)]
    assert {facts.delivery_mode for facts in landed if facts} == {DeliveryMode.PERSISTENT}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<a>", "get it again, complete"),
        ("<a/>", "a is neither an event nor a notify"),
        ('<me xmlns="http://www.tmforum.org/mtop/nrf/xsd/me/v1"/>', "me is neither an event"),
        (
            '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><a/></e:Body></e:Envelope>',
            "an envelope without a notify body",
        ),
        (
            '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>NOTIFY</e:Body></e:Envelope>',
            "it has no MTOSI header",
        ),
    ],
)
def test_nothing_is_sent_if_one_file_is_at_fault(
    url: str, files: list[str], heard: Heard, tmp_path: Path, capsys: Capture, text: str, reason: str
) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text(text.replace("NOTIFY", f'<notify xmlns="{NOTMSG}"/>'), encoding="utf-8")
    assert main(["publish", files[0], str(bad), "--url", url, "--topic", "topic:T"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    problems = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(problems) == 1
    assert reason in problems[0]
    assert heard() == []


def test_a_sample_that_calls_itself_a_request(url: str, shared: Path, heard: Heard, capsys: Capture) -> None:
    """TM Forum's own notification says msgType REQUEST: it is not sent as it is, but its body can be."""
    sample = shared / "samples/official-2.0/NetworkResourceFulfillment/notify-RouteChange.xml"
    words = ["--url", url, "--topic", "topic:T"]
    assert main(["publish", str(sample), *words]) == 1
    assert "not a notification, msgType in its header is REQUEST; --new-header makes it one" in capsys.readouterr().err
    assert main(["publish", str(sample), *words, "--new-header"]) == 0
    assert "RouteChange" in capsys.readouterr().out


def test_a_selector_lets_some_through(url: str, files: list[str], capsys: Capture) -> None:
    base = ["--url", url, "--topic", "topic:T"]
    durable = [
        "subscribe",
        *base,
        "--durable",
        "s",
        "--selector",
        "MTOSI_objectType = 'ME'",
        "--selector",
        "MTOSI_EventType = 'None' OR MTOSI_EventType IS NOT NULL",
        "--timeout",
        "0",
        "--json",
    ]
    assert main(durable) == 0
    assert main(["publish", *files, *base]) == 0
    capsys.readouterr()
    assert main(durable) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert 0 < len(found) < 6
    assert {event["object_type"] for event in found} == {"ME"}


def test_it_ends_after_so_many_events(url: str, files: list[str], heard: Heard) -> None:
    assert main(["publish", *files, "--url", url, "--topic", "topic:T"]) == 0
    assert len(heard("--count", "2")) == 2
    assert len(heard("--count", "4")) == 4


def test_too_few_events_in_time(url: str, capsys: Capture) -> None:
    assert main(["subscribe", "--url", url, "--topic", "queue:Q", "--count", "2", "--timeout", "0"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: 0 of 2 events arrived; then none for 0 seconds"


def test_lines_for_people(url: str, files: list[str], heard: Heard, capsys: Capture) -> None:
    assert main(["publish", files[0], "--url", url, "--topic", "topic:T"]) == 0
    capsys.readouterr()
    assert main(["subscribe", "--url", url, "--topic", "topic:T", "--durable", "d", "--count", "1"]) == 0
    event = EVENTS[0]
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("2026-01-01T00:00:00")
    assert str(event.object_name) in line  # type: ignore[attr-defined]


def test_a_message_that_cannot_be_read_is_told_and_the_next_one_shown(
    url: str, files: list[str], capsys: Capture
) -> None:
    with mtosi.connect(url) as connection, connection.session() as session:
        session.send(Queue("Q"), JmsMessage(body=b"<a>\x1b[2J"))
    assert main(["publish", files[0], "--url", url, "--topic", "queue:Q"]) == 0
    capsys.readouterr()
    assert main(["subscribe", "--url", url, "--topic", "queue:Q", "--timeout", "0"]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "error: a message that cannot be read" in err
    assert "\x1b" not in out + err


def test_a_request_that_a_queue_held_is_told(url: str, capsys: Capture) -> None:
    header = Header(
        activity_name="getManagedElement",
        msg_name="getManagedElement",
        msg_type=MessageTypeType.REQUEST,
        sender_uri="urn:its-sender",
        communication_pattern=CommunicationPatternType.SimpleResponse,
    )
    with mtosi.connect(url) as connection, connection.session() as session:
        session.send(Queue("Q"), JmsMessage(body=Envelope(header=header, body=GetManagedElementRequest()).to_bytes()))
    assert main(["subscribe", "--url", url, "--topic", "queue:Q", "--timeout", "0"]) == 1
    assert "error: no event, but a call's message was taken from queue:Q: its receiver" in capsys.readouterr().err


def test_told_to_stop_while_it_waits(url: str, parsed: Any, background: Any, capsys: Capture, tmp_path: Path) -> None:
    args = parsed("subscribe", "--url", url, "--topic", "queue:Q")
    before = threading.active_count()
    with mtosi.connect(url) as connection, Stop() as stop:
        running = background(lambda: subscribe(connection, args, stop))
        while "ready" not in capsys.readouterr().err:
            assert not running.done()
        stop.set()
        assert running.result(30) == 0
    assert threading.active_count() <= before + 1
