"""`mtosi-jms request --show summary`: what a response lists is told, of whatever kind it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.cli._contents import listed_in
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nra.alm import AlarmType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.rtm.alarm_retrieval import AlarmRetrieval

Capture = pytest.CaptureFixture[str]


class Alarms(AlarmRetrieval.Supplier):
    """Three alarms, the last one without the name of its object."""

    def get_active_alarms(self, request: Any, context: mtosi.RequestContext) -> Iterator[AlarmType]:
        cause = ProbableCauseType(probable_cause=ProbableCauseEnumType.LOS)
        for number in (1, 2):
            yield AlarmType(object_name=name(f"MD=EMS1/ME=NE-{number}"), probable_cause=cause)
        yield AlarmType(probable_cause=cause)


def test_alarms_are_counted_and_named(capsys: Capture) -> None:
    with (
        mtosi.connect("memory:items") as connection,
        mtosi.Supplier(connection, "queue:EMS", services=[Alarms()]),
    ):
        words = ["request", "getActiveAlarms", "--url", "memory:items", "--to", "queue:EMS", "--timeout", "20"]
        assert main([*words, "--batch-size", "2"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "batch 1: getActiveAlarmsResponse: 2 alarm: MD=EMS1/ME=NE-1, MD=EMS1/ME=NE-2",
            "batch 2, the last: getActiveAlarmsResponse: 1 alarm: LOS",
        ]
        assert main([*words, "--json"]) == 0
        (group,) = json.loads(capsys.readouterr().out)["objects"]
        assert (group["type"], group["count"]) == ("alarm", 3)


NAMED = "<r><rdn><type>MD</type><value>{}</value></rdn></r>"


@pytest.mark.parametrize(
    ("response", "depth", "found"),
    [
        ("<a/>", 0, []),
        ("<a><count>5</count></a>", 0, [("count", 1, ["5"])]),
        ("<a><x>1</x><x>2</x><vendorExtensions><x>3</x></vendorExtensions></a>", 1, [("x", 2, ["1", "2"])]),
        ("<a><l><x><id>7</id><to>8</to></x></l></a>", 2, [("x", 1, ["7"])]),
        ("<a><l><x><to>8</to><id>7</id></x><x><to>9</to><id>6</id></x></l></a>", 0, [("x", 2, ["7", "6"])]),
        (f"<a>{NAMED.format(1)}{NAMED.format(2)}</a>", 0, [("r", 2, ["MD=1", "MD=2"])]),
        (f"<a>{NAMED.format(1)}</a>", 1, [("r", 1, ["MD=1"])]),
        ("<a><x><name><rdn><type>MD</type><value>3</value></rdn></name><k/></x><y/></a>", 0,
         [("x", 1, ["MD=3"]), ("y", 1, [])]),
    ],
)  # fmt: skip
def test_items_of_any_kind(response: str, depth: int, found: list[tuple[str, int, list[str]]]) -> None:
    element = etree.fromstring(response)
    assert [(one.type, one.count, one.names) for one in listed_in(element, depth, 3)] == found
    assert element.getparent() is None
