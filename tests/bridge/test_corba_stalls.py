"""A channel that stands still, and connections to it that are cut: nothing is lost, and the order is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bridge import LOSS_CLEARED, LOSS_OCCURRED
from mtosi_jms.bridge.corba import Orb, OrbOptions
from mtosi_jms.bridge.endpoints import Grouping
from mtosi_jms.broker import BrokerProcess, free_ports, start_channel_process
from mtosi_jms.transport import Backoff

from ..waiting import until
from .bridges import MANY, PULL, PUSH, World, event, number, to_channel, to_jms


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
