"""JacORB's notification service for development, and channels that go away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bridge.corba import Orb, OrbOptions
from mtosi_jms.bridge.endpoints import FlowStyle
from mtosi_jms.bridge.events import Any as CorbaAny
from mtosi_jms.bridge.events import StructuredEvent, TCKind, TypeCode
from mtosi_jms.broker import BrokerProcess, find_channel, free_ports, start_channel_process, stop_channel
from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, EventError, IllegalStateError, NamingError, TransportError

from .bridges import address

Run = Callable[..., tuple[int, str, str]]
EVENT = {
    "domain_name": "telecom",
    "type_name": "Alarm",
    "filterable_data": {"number": 1, "state": {"type": "short", "value": 3}, "word": "é", "list": [1, None, True, 0.5]},
    "remainder_of_body": {"type": "properties", "value": {"raw": {"type": "octets", "value": "00ff"}}},
}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["channel", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_up_status_down(jacorb_jars: list[Path], command: Run, tmp_path: Path) -> None:
    where = ("--dir", str(tmp_path / "channel"))
    assert command("status", *where) == (1, "no notification service runs there; mtosi-jms channel up starts one\n", "")
    code, out, _ = command("up", *where, "--json")
    facts = json.loads(out)
    try:
        assert (code, facts["running"]) == (0, True)
        assert Path(facts["ior_file"]).read_text().startswith("IOR:")
        assert json.loads(command("up", *where, "--json")[1])["pid"] == facts["pid"]
        assert facts["corbaloc"] in command("status", *where)[1]
        port = facts["corbaloc"].split(":")[3].partition("/")[0]
        code, _, err = command("up", *where, "--port", str(int(port) - 1))
        assert (code, f"at port {port}" in err) == (1, True)
    finally:
        assert command("down", *where)[0] == 0
    assert "no notification service runs there" in command("down", *where)[1]
    assert json.loads(command("status", *where, "--json")[1]) == {"running": False}
    again = json.loads(command("up", *where, "--json")[1])
    assert stop_channel(tmp_path / "channel")
    assert (again["corbaloc"], again["pid"] != facts["pid"]) == (facts["corbaloc"], True)


def test_a_state_that_cannot_be_read(tmp_path: Path, command: Run) -> None:
    (tmp_path / "service.json").write_text('{"pid": 1}')
    code, _, err = command("status", "--dir", str(tmp_path))
    assert (code, "service.json cannot be read (KeyError): remove it" in err) == (1, True)
    with pytest.raises(ConfigError):
        find_channel(tmp_path)


def test_what_is_published_is_printed(jacorb_address: str, tmp_path: Path, command: Run) -> None:
    told = ["--at", jacorb_address, "--count", "2", "--timeout", "60", "--constraint", "$type_name == 'Alarm'"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "mtosi_jms", "channel", "subscribe", *told],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as subscriber:  # fmt: skip
        assert subscriber.stderr is not None
        assert subscriber.stderr.readline().startswith("ready: corbaloc:")
        file = tmp_path / "events.jsonl"
        file.write_text(f"{json.dumps(EVENT)}\n\n" + '{"type_name": "Other"}\n' + json.dumps({"type_name": "Alarm"}))
        assert command("publish", str(file), "--at", jacorb_address) == (0, "3 events sent\n", "")
        out, err = subscriber.communicate()
    assert [json.loads(line) for line in out.splitlines()] == [EVENT, {"type_name": "Alarm"}]
    assert (subscriber.returncode, err) == (0, "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: no JSON"),
        ("[]", "line 1: an event is an object"),
        ('{"name": 1}', "line 1.name: an event has domain_name"),
        ('{"type_name": 1}', "line 1.type_name: a text is needed"),
        ('{"filterable_data": {"a": 99999999999}}', "line 1.filterable_data.a: 99999999999 is out of the range"),
        ('{"filterable_data": {"a": {"type": "short", "value": "x"}}}', "filterable_data.a: 'x' is not of type short"),
        ('{"filterable_data": {"a": {"type": "no"}}}', "a value with a type has type and value"),
        ('{"filterable_data": {"a": {"type": "octets", "value": "x"}}}', "hexadecimal digits are needed"),
        ('{"filterable_data": {"a": {"type": "x", "cdr": "00"}}}', "line 1.filterable_data.a: the bytes end early"),
        ('{"filterable_data": [1]}', "pairs of name and value are needed"),
        ('{"filterable_data": 1}', "an object of names and values is needed"),
        ('{"remainder_of_body": ' + "[" * 40 + "]" * 40 + "}", "nested deeper than 32"),
    ],
)
def test_lines_that_are_no_events(command: Run, tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(line)
    code, out, err = command("publish", str(file), "--at", "corbaloc::127.0.0.1:1/x")
    assert (code, out) == (1, "")
    assert said in err


def test_without_a_service(command: Run, tmp_path: Path) -> None:
    code, _, err = command("subscribe", "--dir", str(tmp_path))
    assert (code, "mtosi-jms channel up" in err) == (1, True)


def test_a_channel_that_dies(service: BrokerProcess, jacorb_jars: list[Path], tmp_path: Path) -> None:
    with Orb(OrbOptions(call_timeout=5, connect_timeout=2)) as orb:
        channel = orb.channel(address(service))
        source, sink = channel.event_source(FlowStyle.PULL), channel.event_sink()
        source.connect()
        sink.connect()
        with pytest.raises(ConfigError, match="no channel 9, its channels are 0"):
            orb.channel(str(tmp_path / "service" / "channel.ior"), 9)
        service.kill()
        assert not channel.is_alive()
        assert not source.is_connected()
        for work in (source.pull, lambda: sink.push([StructuredEvent()]), channel.event_source, lambda: channel.qos):
            with pytest.raises(TransportError):
                work()
        source.disconnect()
    with pytest.raises(IllegalStateError):
        orb.channel(address(service))


@pytest.mark.obligation("ENC8")
@pytest.mark.parametrize("scheme", ["IOR:", "ior:", "Ior:"])
@pytest.mark.parametrize("newline", ["", "\n", "\r\n", "\n  "])
def test_a_reference_as_people_write_it(
    jacorb: BrokerProcess, orb: Any, tmp_path: Path, scheme: str, newline: str
) -> None:
    digits = jacorb.log.with_name("channel.ior").read_text().strip().partition(":")[2]
    text = scheme + newline + newline.join(digits[at : at + 64] for at in range(0, len(digits), 64)) + newline
    file = tmp_path / "wrapped.ior"
    file.write_bytes(text.encode("utf-8-sig"))
    for one in (str(file), text, f"\n{text}"):
        channel = orb.channel(one, 0)
        assert channel.is_alive()
        channel.close()


@pytest.mark.obligation("ENC8")
def test_the_scheme_of_an_address_in_other_letters(orb: Any, jacorb_address: str) -> None:
    channel = orb.channel(jacorb_address.replace("corbaloc:", "CorbaLoc:"), 0)
    assert channel.is_alive()
    channel.close()
    with pytest.raises(ConfigError, match="it has no #NAME"):
        orb.channel("CORBANAME::ems/x")


def test_a_channel_of_another_charset(jacorb_jars: list[Path], orb: Any, tmp_path: Path) -> None:
    service = start_channel_process(tmp_path, settings={"jacorb.native_char_codeset": "ISO8859_1"})
    try:
        channel = orb.channel(address(service))
        source, sink = channel.event_source(FlowStyle.PULL), channel.event_sink()
        source.connect()
        sink.connect()
        wide = CorbaAny(TypeCode.of(TCKind.wstring), "€")
        sent = StructuredEvent("é", "ÿ", "", (), (), wide)
        sink.push([sent])
        assert source.pull(timeout=30) == [sent]
        with pytest.raises(EventError, match="'€' is not a character of iso-8859-1"):
            sink.push([StructuredEvent("€")])
        channel.close()
    finally:
        service.kill()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("corbaloc:rir:/NotificationService", "'rir:' is not an address"),
        ("corbaloc::/x", "is not an address"),
        ("corbaloc::ems:99999/x", "there is no port 99999"),
        ("IOR:0", "the reference: no object reference"),
        ("IOR:00", "the reference: the reference ends early"),
        ("/no/such/file", "/no/such/file: No such file or directory"),
        ("a\0b", "null"),
    ],
)
def test_addresses_that_are_none(orb: Any, address: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        orb.channel(address)


def test_files_that_hold_no_reference(orb: Any, tmp_path: Path) -> None:
    file = tmp_path / "channel.ior"
    for text, said in (("hello", "no object reference"), ("IOR:" + "00" * 40_000, "too long")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=said):
            orb.channel(str(file))


def test_nobody_listens(orb: Any) -> None:
    with pytest.raises(TransportError):
        orb.channel(f"corbaloc::127.0.0.1:{free_ports(1)[0]}/x")


def test_what_is_neither_channel_nor_factory(orb: Any, jacorb_address: str) -> None:
    with pytest.raises(TransportError, match="OBJECT_NOT_EXIST"):
        orb.channel(jacorb_address.replace("NotificationService", "Nothing"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"listen": "0.0.0.0"}, "advertise=HOST"),
        ({"port": 70_000}, "port must be"),
        ({"call_timeout": 0}, "call_timeout must be"),
        ({"charset": "gbk"}, "charset must be one of utf-8, iso-8859-1"),
    ],
)
def test_options_at_fault(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        OrbOptions(**options)


def bound(orb: Any, name: str) -> Any:
    """The channel of a name, which its service binds after it has begun to listen."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return orb.channel(name)
        except NamingError:
            if time.monotonic() > deadline:
                raise


def test_a_name_server_finds_the_channel(naming: int, tmp_path: Path) -> None:
    where = {"ORBInitRef.NameService": f"corbaloc::127.0.0.1:{naming}/NameService"}
    service = start_channel_process(tmp_path / "service", settings=where, arguments=["-registerName", "Alarms"])
    try:
        with Orb() as orb:
            assert bound(orb, f"corbaname::127.0.0.1:{naming}#Alarms").is_alive()
            with pytest.raises(NamingError, match="does not know it"):
                orb.channel(f"corbaname::127.0.0.1:{naming}#No.Such")
            with pytest.raises(ConfigError, match="no #NAME"):
                orb.channel(f"corbaname::127.0.0.1:{naming}")
            with pytest.raises(ConfigError, match="InvalidName"):
                orb.channel(f"corbaname::127.0.0.1:{naming}#a.b.c")
    finally:
        service.kill()


def test_the_code_on_the_page_runs(
    root: Path, jacorb_address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHANNEL", jacorb_address)
    page = (root / "docs" / "corba-channels.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(block, "corba-channels.md", "exec"), {})
    assert capsys.readouterr().out == "Alarm 2 MAJOR\n"
