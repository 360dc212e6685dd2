"""Connections to JacORB's channel that outlive the ORB, by `OrbOptions.keep`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bridge.corba import Orb, OrbOptions
from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.errors import ConfigError

from ..waiting import until
from .bridges import event, number


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
