"""Processes and connections that end, stand still or are cut: nothing hangs, and nothing is lost."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bridge import LOSS_CLEARED, LOSS_OCCURRED
from mtosi_jms.bridge.corba import Orb, OrbOptions
from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.broker import BrokerProcess, free_ports, start_channel_process
from mtosi_jms.errors import ConfigError
from mtosi_jms.transport import Backoff

from ..waiting import until
from .bridges import MANY, PULL, PUSH, World, event, number, to_channel, to_jms

EXITS = """\
import sys
from mtosi_jms.bridge.corba import Orb
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.errors import IllegalStateError
import threading

orb = Orb()
channel = orb.channel(sys.argv[1])
begun = threading.Event()
def consumer(events):
    begun.set()
    if sys.argv[2] == "within":
        threading.Event().wait()
source = channel.event_source()
source.connect(consumer)
sink = channel.event_sink()
sink.connect()
def push():
    try:
        while True:
            sink.push([StructuredEvent()] * 5)
    except IllegalStateError:  # the process ends
        pass
threading.Thread(target=push, daemon=True).start()
begun.wait()
"""

PULLS = """\
import sys
from mtosi_jms.bridge.corba import Orb
from mtosi_jms.bridge.endpoints import FlowStyle

with Orb() as orb:
    source = orb.channel(sys.argv[1]).event_source(FlowStyle.PULL)
    source.connect()
    try:
        print("ready", flush=True)
        source.pull()
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("where", [pytest.param("between", marks=pytest.mark.endurance), "within"])
def test_a_process_may_end_while_events_come(jacorb_address: str, where: str) -> None:
    command = [sys.executable, "-c", EXITS, jacorb_address, where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ctrl_c_ends_a_pull(jacorb_address: str) -> None:
    command = [sys.executable, "-c", PULLS, jacorb_address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "interrupted\n", "")


@pytest.fixture
def port() -> int:
    """Where the service listens."""
    return free_ports(1)[0]


@pytest.fixture
def way(make_proxy: Callable[..., Any], jacorb_jars: list[Path], port: int) -> Any:
    """The way to the service: its references lead here."""
    return make_proxy(port, listen_in=False)


@pytest.fixture
def service(way: Any, port: int, tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {"jacorb.ior_proxy_host": "127.0.0.1", "jacorb.ior_proxy_port": way.port}
    process = start_channel_process(tmp_path / "service", port, settings=settings)
    yield process
    process.kill()


@pytest.fixture
def patient(jacorb_jars: list[Path]) -> Iterator[Any]:
    """An ORB that does not wait long."""
    with Orb(OrbOptions(call_timeout=1.0, connect_timeout=1.0)) as made:
        yield made


def address(port: int) -> str:
    return f"corbaloc::127.0.0.1:{port}/NotificationService"


@pytest.fixture
def world(patient: Any, service: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[World]:
    channel = patient.channel(address(service.endpoints.ports["giop"]))
    made = World(request.node.name, channel, watch=0.2, pacing=0.2, backoff=Backoff(0.05, 0.2, 0.0))
    yield made
    made.close()


def test_a_channel_that_stands_still_loses_nothing(world: World, orb: Any, service: BrokerProcess) -> None:
    pushing = orb.channel(world.channel.name).event_sink(grouping=Grouping.SEQUENCE_EVENT)
    pushing.connect()
    world.bridge(to_jms(PUSH, MANY))
    for count in range(2):
        pushing.push([event(n) for n in range(count * 100, count * 100 + 100)])
        service.pause()
        until(lambda: world.losses.count(LOSS_OCCURRED) > count)  # noqa: B023 - it is called in the loop alone
        service.resume()
        until(lambda: world.losses.count(LOSS_CLEARED) > count)  # noqa: B023
    pushing.push([event(200)])
    assert world.numbers(201) == list(range(201))


@pytest.mark.parametrize("how", ["cut", pytest.param("stalled", marks=pytest.mark.endurance)])
def test_messages_go_on_over_bad_connections(world: World, orb: Any, way: Any, how: str) -> None:
    """Something may come twice: what was pushed when the answer was lost."""
    taken: list[int] = []  # the channel calls here by another way
    there = orb.channel(address(way.port)).event_source(PUSH)
    there.connect(lambda events: taken.extend(map(number, events)))
    world.bridge(to_channel(PULL))
    for count in range(4):
        world.send(*range(count * 50, count * 50 + 50))
        until(lambda: count * 50 + 10 in taken)  # noqa: B023 - it is called in the loop alone
        if how == "cut":
            way.cut()
        else:
            way.stall(to_client=True)
            until(lambda: world.losses.count(LOSS_OCCURRED) > count)  # noqa: B023
            way.flow()
            until(lambda: world.losses.count(LOSS_CLEARED) > count)  # noqa: B023
    until(lambda: 199 in taken)
    assert list(dict.fromkeys(taken)) == list(range(200))


class Taken:
    """What a consumer was given, and what it was told."""

    def __init__(self) -> None:
        self.numbers: list[Any] = []
        self.lost: list[str] = []
        self.batches = 0

    def __call__(self, events: Any) -> None:
        self.batches += 1
        self.numbers += map(number, events)


def push(orb: Any, address: str, numbers: range) -> None:
    channel = orb.channel(address)
    sink = channel.event_sink(grouping=Grouping.SEQUENCE_EVENT)
    sink.connect()
    sink.push([event(n) for n in numbers])
    channel.close()


def connected(orb: Any, address: str, grouping: Grouping = Grouping.SEQUENCE_EVENT, constraint: str = "") -> Taken:
    taken = Taken()
    source = orb.channel(address).event_source(FlowStyle.PUSH, grouping, constraint=constraint)
    source.connect(taken, taken.lost.append)
    return taken


@pytest.mark.parametrize("grouping", list(Grouping))
def test_the_next_orb_gets_what_the_channel_kept(
    orb: Any, jacorb_address: str, tmp_path: Path, grouping: Grouping
) -> None:
    options = OrbOptions(keep=tmp_path / "state" / "kept.json")
    with Orb(options) as first:
        taken = connected(first, jacorb_address, grouping, "$n > 2")
        push(orb, jacorb_address, range(5))
        until(lambda: taken.numbers == [3, 4])
        first.leave()
    push(orb, jacorb_address, range(10))
    with Orb(options) as second:
        taken = connected(second, jacorb_address, grouping, "$n > 2")
        push(orb, jacorb_address, range(10, 12))
        until(lambda: len(taken.numbers) >= 9)
        assert (taken.numbers, taken.lost) == (list(range(3, 12)), [])


def test_a_connection_that_was_ended_is_not_kept(orb: Any, jacorb_address: str, tmp_path: Path) -> None:
    """Without `leave` it is ended in order, and the next one is new; one that has gone without that is told."""
    keep, copy = tmp_path / "kept.json", tmp_path / "copy.json"
    with Orb(OrbOptions(keep=keep)) as first:
        connected(first, jacorb_address)
        shutil.copy(keep, copy)
    push(orb, jacorb_address, range(3))
    with Orb(OrbOptions(keep=keep)) as second:
        taken = connected(second, jacorb_address)
        push(orb, jacorb_address, range(3, 5))
        until(lambda: len(taken.numbers) >= 2)
        assert (taken.numbers, taken.lost) == ([3, 4], [])
    with Orb(OrbOptions(keep=copy)) as third:
        taken = connected(third, jacorb_address)
        assert len(taken.lost) == 1
        assert "has not kept the connection of an earlier process" in taken.lost[0]


def test_one_process_at_a_time(orb: Any, tmp_path: Path) -> None:
    options = OrbOptions(keep=tmp_path / "kept.json")
    with Orb(options), pytest.raises(ConfigError, match="another process has these connections"):
        Orb(options)
    with Orb(options):
        pass


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "a", "port": 1, "proxies": {"a": {}}}'])
def test_a_file_that_cannot_be_read(orb: Any, tmp_path: Path, text: str) -> None:
    keep = tmp_path / "kept.json"
    keep.write_text(text)
    for _ in range(2):  # it is not locked either
        with pytest.raises(ConfigError, match=r"kept\.json cannot be read .*: remove it"):
            Orb(OrbOptions(keep=keep))
    with pytest.raises(ConfigError, match="File exists"):
        Orb(OrbOptions(keep=keep / "there.json"))
