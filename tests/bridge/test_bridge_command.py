"""`mtosi-jms bridge` between JacORB's notification service and a real broker, and what docs/bridge.md says."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any as Anything

import pytest

from mtosi_jms.bridge.admin import CONSISTENCY
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.filters import to_etcl
from mtosi_jms.broker import BrokerProcess, start_channel_process
from mtosi_jms.cli import main
from mtosi_jms.jms import DUPLICATE_ID, JmsMessage, Queue
from mtosi_jms.jms.selector import parse as parse_selector
from mtosi_jms.notifications import event_name, events_in
from mtosi_jms.soap import parse
from mtosi_jms.transport import connect

from ..processes import Program, command
from . import mtnm_events as m
from .bridges import SOON, address
from .ems import PASSWORD, USER, Ems, with_orb


def alarm(number: int) -> StructuredEvent:
    where = m.name(f"EMS=Vendor/1|ManagedElement=NE-{number}")
    return m.alarm(notificationId=str(number), objectName=where, perceivedSeverity="PS_MAJOR")


def push(orb: Anything, address: str, *events: StructuredEvent) -> None:
    channel = orb.channel(address)
    sink = channel.event_sink()
    sink.connect()
    sink.push(events)
    channel.close()


def notified(message: JmsMessage) -> Sequence[Anything]:
    """The events of a notification."""
    body: Anything = parse(message.body).body
    return events_in(body)


def received(url: str, name: str, count: int) -> list[JmsMessage]:
    with connect(url) as connection:
        connection.start()
        consumer = connection.session().consumer(Queue(name))
        found = []
        for _ in range(count):
            delivery = consumer.receive(SOON)
            assert delivery is not None, f"{len(found)} of {count} came"
            delivery.acknowledge()
            found.append(delivery.message)
        return found


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.obligation("000-B18", "000-X20")
def test_alarms_of_an_ems_reach_a_broker_over_a_restart(
    orb: Anything, service: BrokerProcess, artemis: BrokerProcess, commands: list[Program], tmp_path: Path
) -> None:
    there, name, url = address(service), f"bridge.{os.getpid()}", artemis.endpoints.url("stomp")
    words = ("--from", there, "--to", f"queue:{name}", "--url", url, "--mapping", "mtnm", "--json")
    commands.append(command("bridge", *words))
    commands[0].await_line("ready")
    push(orb, there, *map(alarm, range(10)))
    found = received(url, name, 10)
    assert [f"NE-{number}" in one.body.decode() for number, one in enumerate(found)] == [True] * 10
    assert {one.properties["MTOSI_perceivedSeverity"] for one in found} == {"MAJOR"}
    service.kill()
    commands[0].await_line("EventLossOccurred")
    again = start_channel_process(tmp_path / "again", service.endpoints.ports["giop"])
    try:
        commands[0].await_line("EventLossCleared")
        push(orb, there, *map(alarm, range(10, 15)))
        assert len({one.properties.get(DUPLICATE_ID, one.message_id) for one in received(url, name, 5)}) == 5
        told = json.loads(commands[0].end())
    finally:
        again.kill()
    assert told == {"forwarded": 15, "left_out": 0, "losses": 1}


@pytest.mark.broker
@pytest.mark.slow
def test_an_element_manager_that_asks_for_a_login(
    orb: Anything,
    ems_command: list[str],
    channel_ior: Path,
    jacorb_address: str,
    artemis: BrokerProcess,
    commands: list[Program],
    tmp_path: Path,
) -> None:
    """Login, alarms, a loss that it tells, its end and a login again; subscribers are told of each loss."""
    name, url, file = f"ems.{os.getpid()}", artemis.endpoints.url("stomp"), tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    ior = tmp_path / "ems.ior"
    words = ("--from", str(ior), "--login", USER, "--password-file", str(file), "--to", f"queue:{name}")
    with Ems(ems_command, ior, channel_ior) as ems:
        commands.append(command("bridge", *words, "--url", url, "--mapping", "mtnm", "--json"))
        commands[0].await_line("ready")
        push(orb, jacorb_address, alarm(0))
        ems.do("lose 20140725140203.0+0800 4711")
        commands[0].await_line("EventLossOccurred: the element manager lost events")
        ems.do("clear 20140725150000.0Z")
        ems.do("end")
        ems.await_line("logged in", 2)
        commands[0].await_line("EventLossCleared: the element manager ended the session")
        push(orb, jacorb_address, alarm(1))
        found = received(url, name, 6)
        told = json.loads(commands[0].end())
        ems.await_line("ended")
    events = [event for one in found for event in notified(one)]
    losses = [event for event in events if event_name(event) != "AlarmInformation"]
    assert len(events) - len(losses) == 2
    assert [event_name(event) for event in losses] == ["EventLossOccurred", "EventLossCleared"] * 2
    assert losses[0].first_event_lost_notification_id == "4711"
    assert losses[0].start_time.isoformat() == "2014-07-25T14:02:03+08:00"
    assert told == {"forwarded": 2, "left_out": 0, "losses": 2}
    assert PASSWORD not in "".join(commands[0].told)


@pytest.mark.slow
def test_a_login_that_is_refused(
    ems_command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], jacorb_jars: list[Path]
) -> None:
    file, ior = tmp_path / "password", tmp_path / "ems.ior"
    file.write_text("wrong-word\n")
    words = ["--from", str(ior), "--login", USER, "--password-file", str(file), "--to", "queue:a", "--url", "memory:"]
    with Ems(ems_command, ior, None):
        assert main(["bridge", *words]) == 1
    said = capsys.readouterr().err
    assert "getEmsSession is refused to 'nms'" in said
    assert "wrong-word" not in said


def alarms() -> list[JmsMessage]:
    severities = ("MAJOR", "MINOR", "WARNING", "CRITICAL")
    made = [
        JmsMessage(body=f"<alarm>{n}</alarm>".encode(), properties={"n": n, "severity": severities[n % 4]})
        for n in range(60)
    ]
    return [*made, JmsMessage(body=b"<end/>", properties={"n": 60, "severity": "MAJOR", "last": True})]


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.obligation("003-4")
@pytest.mark.parametrize(
    ("sink", "by_java", "filter_"),
    [
        pytest.param("queue", False, "severity IN ('MAJOR', 'CRITICAL')", marks=pytest.mark.endurance, id="stomp"),
        pytest.param("topic", True, "severity <> 'WARNING' AND (n BETWEEN 10 AND 40 OR last)", id="jvm"),
    ],
)
def test_messages_reach_a_java_consumer_by_its_filter(
    jacorb_address: str,
    jacorb_jars: list[Path],
    java: Anything,
    java_url: Anything,
    artemis: BrokerProcess,
    commands: list[Program],
    tmp_path: Path,
    sink: str,
    by_java: bool,
    filter_: str,
) -> None:
    """From a queue and from a topic; STOMP's properties are texts, a Java client's have their types."""
    endpoints, name = artemis.endpoints, f"{sink}:consumer.{os.getpid()}"
    login = {"MTOSI_JMS_USER": endpoints.user, "MTOSI_JMS_PASSWORD": endpoints.password}
    url = java_url("artemis", endpoints) if by_java else endpoints.url("stomp")
    words = ("--from", name, "--to", jacorb_address, "--url", url, "--json")
    commands.append(command("bridge", *words, environment=login))
    commands[-1].await_line("ready:")
    program = java.compiled(Path(__file__).with_name("ChannelConsumer.java"), jacorb_jars)
    program = [*with_orb(program), jacorb_address, to_etcl(parse_selector(filter_))]
    commands.append(Program(program, cwd=tmp_path))
    assert commands[-1].line() == "ready"
    sent = alarms()
    with connect(url, user=endpoints.user, password=endpoints.password) as connection:
        session = connection.session()
        for message in sent:
            session.send(name, message)
    wanted = [one for one in sent if parse_selector(filter_).accepts(one)]
    told = [
        f"%TextMessage n={one.properties['n']} severity={one.properties['severity']} {one.body.decode()}"
        for one in wanted
    ]
    told[-1] = told[-1].replace(" <end/>", " last=true <end/>")
    assert commands[-1].lines(len(told)) == told
    assert commands[-1].process.wait(SOON) == 0
    assert 10 < len(told) < len(sent)
    assert json.loads(commands[0].end()) == {"forwarded": len(sent), "left_out": 0, "losses": 0}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--from", "queue:a", "--to", "queue:b"], "one of --from and --to is a channel"),
        (["--from", "corbaloc::h:1/x", "--to", "corbaname::h:1#x"], "one of --from and --to is a channel"),
        (["--from", "queue:a", "--to", "corbaloc::h:1/x", "--mapping", "mtnm"], "--mapping mtnm goes from a channel"),
        (["--from", "corbaloc::h:1/x", "--to", "queue:a", "--selector", "a ="], "selector"),
        (["--to", "queue:a"], "--from"),
        (["--from", "corbaloc::h:1/x", "--to", "queue:a", "--ems", "a"], "--ems goes with --login"),
        (["--from", "corbaloc::h:1/x", "--to", "queue:a", "--login", "a"], "--login goes with --password-file"),
        (["--from", "queue:a", "--to", "corbaloc::h:1/x", "--login", "a"], "--login goes with --from"),
    ],
)
def test_wrong_usage(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bridge", *words, "--url", "memory:"]) == 2
    assert text in capsys.readouterr().err


PAGE = (Path(__file__).parents[2] / "docs" / "bridge.md").read_text(encoding="utf-8")
FIRST, SECOND = re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
(ALARM,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def words_of(block: str, command: str) -> list[str]:
    """The words of the one line of a block with a command."""
    (line,) = re.findall(rf"^\$ mtosi-jms ({command} .*)$", block.replace("\\\n", ""), re.MULTILINE)
    return shlex.split(line.rstrip(" &"))


def replaced(words: list[str], **others: object) -> list[str]:
    """The words with other values of options."""
    return [
        str(others.get(before.lstrip("-").replace("-", "_"), word))
        for before, word in zip(["", *words], words)  # noqa: B905
    ]


def test_ten_lines() -> None:
    assert len(FIRST.splitlines()) == 10


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.endurance
def test_from_an_element_manager_to_a_table(
    naming: int,
    ems_command: list[str],
    channel_ior: Path,
    artemis: BrokerProcess,
    commands: list[Program],
    in_session: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first lines, and then the second ones with the same subscriber; the table is of what both have landed."""
    landing, alarm = tmp_path / "landing", tmp_path / "alarm.json"
    monkeypatch.setenv("MTOSI_JMS_URL", artemis.endpoints.url("stomp"))
    topic, password = f"topic:FAULT.{os.getpid()}", tmp_path / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    bridge = words_of(FIRST, "bridge")
    service = f"corbaloc::127.0.0.1:{naming}/NameService"
    with Ems(ems_command, tmp_path / "ems.ior", channel_ior, (bridge[bridge.index("--ems") + 1], service)):
        commands.append(command(*replaced(words_of(FIRST, "subscribe"), topic=topic, landing=landing)))
        commands[0].await_line("ready")
        here = {
            "listen_host": "127.0.0.1",
            "from": f"corbaname::127.0.0.1:{naming}",
            "password_file": password,
            "to": topic,
        }
        publish = words_of(SECOND, "channel publish")
        second = replaced(words_of(SECOND, "bridge"), **{"from": channel_ior}, to=topic)
        for number, words in (("4711", replaced(bridge, **here)), ("4712", second)):
            commands.append(command(*words, "--json"))
            commands[-1].await_line("ready")
            alarm.write_text(ALARM.replace("4711", number), encoding="utf-8")
            assert main([*publish[:2], str(alarm), *replaced(publish[3:], at=channel_ior)]) == 0
            assert commands[0].process.stdout is not None
            assert f"NE-1 MAJOR {number}" in commands[0].process.stdout.readline()
            assert json.loads(commands[-1].end()) == {"forwarded": 1, "left_out": 0, "losses": 0}
        commands[0].end()
    words = words_of(FIRST, "alarms")
    capsys.readouterr()
    assert main([words[0], str(landing), *replaced(words[2:], out=tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["severities"] == {"MAJOR": 2}


@pytest.mark.obligation("000-B6")
def test_the_matrix_of_what_is_supported() -> None:
    told = {
        (f"{source} to {sink}", one, other)
        for source, sink, ones, others in re.findall(
            r"^\| (channel|JMS) \| (channel|JMS) \| ([A-Z or]+) \| ([A-Z or]+) \|$", PAGE, re.MULTILINE
        )
        for one in ones.split(" or ")
        for other in others.split(" or ")
    }
    assert told == {(way, one.value, other.value) for (way, one, other), there in CONSISTENCY.items() if there}
