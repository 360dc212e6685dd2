"""Requests out of assignments on the command line."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.cli._objects import fill, plain
from mtosi_jms.errors import ConfigError
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer, rir
from mtosi_jms.stubs.nra.com import PerceivedSeverityListType, PerceivedSeverityType
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType
from mtosi_jms.stubs.rtm import ar
from mtosi_jms.xmlbind import NIL, RawXml, decode, encode

FULL = rir.GranularityType.FULL


@pytest.mark.parametrize(
    ("expected", "assignments"),
    [
        (mer.GetManagedElementRequest(), []),
        (mer.GetManagedElementRequest(me_ref=name("MD=A/ME=B%3DC")), ["meRef=MD=A/ME=B%3DC"]),
        (mer.GetManagedElementRequest(me_ref=name("MD=A")), ["me_ref.rdn.type=MD", "me_ref.rdn.value=A"]),
        (
            mer.GetAllManagedElementsPassingFilterRequest(
                filter=mer.FilterType(
                    location="Delft=x, y",
                    resource_state=ResourceStateType(value=ResourceStateEnumType.WORKING),
                )
            ),
            ["filter.location=Delft=x, y", "filter.resourceState=WORKING"],
        ),
        (
            rir.GetInventoryRequest(
                filter=rir.SimpleFilterType(base_instance=[name("MD=A"), name("MD=B")], granularity=FULL),
                diff_date_and_time=dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
            ),
            [
                "filter.baseInstance=MD=A",
                "filter.baseInstance=MD=B",
                "filter.granularity=FULL",
                "diffDateAndTime=2026-01-02T03:04:05Z",
            ],
        ),
        (
            rir.GetInventoryRequest(
                filter=rir.SimpleFilterType(
                    included_object_type=[
                        rir.SimpleFilterTypeIncludedObjectType(object_type="ME", granularity=FULL),
                        rir.SimpleFilterTypeIncludedObjectType(object_type="EQ", granularity=FULL),
                    ]
                )
            ),
            [
                "filter.includedObjectType[1].objectType=EQ",
                "filter.includedObjectType[1].granularity=FULL",
                "filter.includedObjectType.objectType=ME",
                "filter.includedObjectType[0].granularity=FULL",
            ],
        ),
        (
            ar.GetActiveAlarmsRequest(
                filter=ar.ActiveAlarmFilterType(
                    perceived_severity_list=PerceivedSeverityListType(
                        perceived_severity=[PerceivedSeverityType.MAJOR, PerceivedSeverityType.MINOR]
                    )
                )
            ),
            [
                "filter.perceivedSeverityList.perceivedSeverity=MAJOR",
                "filter.perceivedSeverityList.perceivedSeverity[1]=MINOR",
            ],
        ),
    ],
)
def test_fields_are_filled(expected: Any, assignments: list[str]) -> None:
    made = fill(type(expected), assignments)
    assert made == expected
    assert plain(decode(encode(made))) == plain(expected)


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        ("filter.granularity=SOME", "SOME"),
        ("diffDateAndTime=yesterday", "'yesterday' does not fit"),
        ("filter[1].granularity=FULL", "filter is not a list"),
        ("filter.baseInstance[99999]=MD=A", "is not a step of a path"),
        ("filter.baseInstance[1000]=MD=A", "must be at most 999"),
        ("diffDateAndTime.x=1", "diffDateAndTime has no fields"),
        ("filter..x=1", "is not a step of a path"),
        ("=1", "is not a step of a path"),
        ("filter.queryExpression=x", "no value can be given here"),
        ("nothing.at.all=1", "no field 'nothing'; there are diffDateAndTime, filter"),
    ],
)
def test_what_cannot_be_filled(assignment: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fill(rir.GetInventoryRequest, [assignment])
    assert text in str(caught.value)


PATHS = ("filter", "filter.baseInstance", "filter.baseInstance[1]", "filter.granularity", "diffDateAndTime", "x")


@given(st.lists(st.text() | st.builds("{}={}".format, st.sampled_from(PATHS), st.text()), max_size=5))
def test_any_assignments_give_a_request_or_a_config_error(assignments: list[str]) -> None:
    try:
        made = fill(rir.GetInventoryRequest, assignments)
    except ConfigError:
        return
    assert isinstance(made, rir.GetInventoryRequest)


def test_plain_values() -> None:
    request = rir.GetInventoryRequest(diff_date_and_time=dt.datetime(2026, 1, 2, tzinfo=dt.UTC))
    assert plain(request) == {"diff_date_and_time": "2026-01-02T00:00:00+00:00"}
    assert plain(NIL) is None
    assert plain([RawXml(b"<a>b</a>"), PerceivedSeverityType.MAJOR, 1.5, b"\x01", name("MD=A")]) == [
        "<a>b</a>",
        "MAJOR",
        1.5,
        "01",
        "MD=A",
    ]
    unknown = decode(encode(request).replace(b"</rir:getInventoryRequest", b"<x>1</x></rir:getInventoryRequest"))
    assert plain(unknown)["unknown_elements"] == ["<x>1</x>"]
