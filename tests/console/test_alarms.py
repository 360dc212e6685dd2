"""Alarms of elements, from notifications and from answers to getActiveAlarms; and the page of health."""

from __future__ import annotations

import datetime as dt
import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.console import Bounds, Tap, Traffic

NOW = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)


def hours(ago: float) -> str:
    return (NOW - dt.timedelta(hours=ago)).isoformat().replace("+00:00", "Z")


@pytest.fixture
def traffic() -> Traffic:
    return Traffic(clock=NOW.timestamp)


@pytest.fixture
def report(traffic: Traffic, event: Any, notify: Any) -> Callable[..., None]:
    """Records the reports of alarms: name, severity and hours ago each."""

    def reported(*alarms: tuple[str, str, float], cause: str = "LOS", into: Traffic = traffic) -> None:
        events = [event("alarm", name, hours(ago), severity, cause) for name, severity, ago in alarms]
        into.record(notify(*events))

    return reported


PORT = "MD=EMS1/ME=NE-7/PTP=1"


def test_an_alarm_from_its_raise_to_its_clearing(report: Any, traffic: Traffic) -> None:
    report((PORT, "MINOR", 30))
    report((PORT, "CRITICAL", 20))
    report((PORT, "MAJOR", 25))  # late, and older than what is known
    (alarm,) = traffic.alarms()
    assert (alarm.severity, alarm.cause, alarm.cleared_ms) == ("CRITICAL", "LOS", None)
    assert alarm.raised_ms == int((NOW.timestamp() - 30 * 3600) * 1000)
    assert traffic.alarmed() == {"MD=EMS1/ME=NE-7": ("CRITICAL", 1)}
    report((PORT, "CLEARED", 2), (PORT, "CLEARED", 1))
    (alarm,) = traffic.alarms(state="cleared")
    assert (alarm.severity, traffic.alarmed()) == ("CRITICAL", {})
    report((PORT, "SEVERE", 0.5))
    assert [one.severity for one in traffic.alarms()] == ["INDETERMINATE", "CRITICAL"], "the same cause, once more"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["NE-7/PTP=1", "NE-70", "NE-7", "NE-8/EQ=1"]),
        ("object=NE-7", ["NE-7/PTP=1", "NE-7"]),
        ("object=MD%3DEMS1/ME%3DNE-7", ["NE-7/PTP=1", "NE-7"]),
        ("object=e-7", ["NE-7/PTP=1", "NE-70", "NE-7"]),
        ("object=NE-7&since=yesterday", ["NE-7/PTP=1"]),
        ("object=NE-7&since=7d", ["NE-7/PTP=1", "NE-7"]),
        ("since=1h", []),
        ("severity=MAJOR", ["NE-70", "NE-8/EQ=1"]),
        ("state=active", ["NE-70", "NE-7", "NE-8/EQ=1"]),
        ("state=cleared", ["NE-7/PTP=1"]),
    ],
)
def test_alarms_of_an_element_by_time_and_severity(report: Any, visit: Any, query: str, found: list[str]) -> None:
    report((PORT, "MINOR", 30), ("MD=EMS1/ME=NE-7", "WARNING", 40), ("MD=EMS1/ME=NE-70", "MAJOR", 20))
    report((PORT, "CLEARED", 3), ("MD=EMS1/ME=NE-8/EQ=1", "MAJOR", 400))
    page = visit().get(f"/alarms?{query}").text
    assert re.findall(r">MD=EMS1/ME=([^<]*)</a>", page) == found
    assert ("whose names contain it" in page) == ("object=" in query and "NE-7" not in query)


def test_alarms_of_an_answer_and_of_what_is_deleted(traffic: Traffic, make: Any, event: Any, notify: Any) -> None:
    alarms = [event("activeAlarm", name, hours(5), "MAJOR", "AIS") for name in (PORT, "MD=EMS1/TL=1")]
    traffic.record(make("RESPONSE", operation="getActiveAlarms", body=f"<r>{''.join(alarms)}</r>"))
    assert traffic.alarmed() == {"MD=EMS1/ME=NE-7": ("MAJOR", 1), "": ("MAJOR", 1)}
    traffic.record(notify(event("objectDeletion", "MD=EMS1/ME=NE-7", hours(6))))
    assert len(traffic.alarmed()) == 2, "the deletion is older"
    traffic.record(notify(event("objectDeletion", "MD=EMS1/ME=NE-7", hours(4))))
    assert list(traffic.alarmed()) == [""]
    traffic.record(notify(event("objectDeletion", "MD=EMS1", hours(3))))
    assert traffic.alarmed() == {}


def test_alarms_are_bounded_and_the_page_says_what_is_gone(report: Any, visit: Any) -> None:
    small = Traffic(Bounds(alarms=3), clock=NOW.timestamp)
    for number in range(5):
        report((f"MD=EMS1/ME=NE-{number}", "MAJOR", 9 - number), into=small)
    report(("MD=EMS1/ME=NE-4", "CLEARED", 1), into=small)
    report(("MD=EMS1/ME=NE-9", "MAJOR", 1), into=small)
    assert sorted(small.alarmed()) == ["MD=EMS1/ME=NE-2", "MD=EMS1/ME=NE-3", "MD=EMS1/ME=NE-9"], (
        "a cleared one goes first"
    )
    assert "<strong>3</strong> older alarms left memory" in visit(small).get("/alarms").text


@pytest.mark.parametrize(
    ("query", "objects"),
    [
        ("event=AlarmInformation&severity=MAJOR", ["NE-70"]),
        ("object=ne-7", ["NE-7", "NE-70"]),
        ("text=ais", ["NE-8"]),
        ("text=AIS&object=NE-7", []),
        ("event=ObjectDeletion", ["NE-9"]),
    ],
)
def test_notifications_by_kind_severity_object_and_text(
    report: Any, traffic: Traffic, event: Any, notify: Any, visit: Any, query: str, objects: list[str]
) -> None:
    report(("MD=EMS1/ME=NE-70", "MAJOR", 3))
    report(("MD=EMS1/ME=NE-7", "MINOR", 2))
    report(("MD=EMS1/ME=NE-8", "MINOR", 1), cause="AIS")
    traffic.record(notify(event("objectDeletion", "MD=EMS1/ME=NE-9", hours(1))))
    page = visit().get(f"/notifications?{query}").text
    assert re.findall(r">MD=EMS1/ME=([^<]*)</a>", page) == objects
    assert f"{len(objects)} of {len(objects)} in memory" in page


def test_alarms_on_the_map_and_at_an_element(report: Any, visit: Any, landing: Path) -> None:
    report(("MD=EMS1/ME=NE-1/PTP=2", "CRITICAL", 3), ("MD=EMS1/ME=NE-1", "MINOR", 2))
    browser = visit(landings=[landing])
    answer = browser.get("/topology/alarms")
    assert answer.json() == {"MD=EMS1/ME=NE-1": ["CRITICAL", 2]}
    assert browser.get("/topology/alarms", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    page = html.unescape(browser.get("/topology", params={"element": "MD=EMS1/ME=NE-1"}).text)
    assert "2 active alarms" in page
    assert "MD=EMS1/ME=NE-1/PTP=2" in page


def test_health_has_sources_roles_spools_and_sizes(traffic: Traffic, make: Any, visit: Any, outbox: Path) -> None:
    traffic.set_trouble("stomp", "is lost")
    with mtosi.connect("memory:health", telemetry=Tap(traffic, "gateway")) as connection:
        with mtosi.Requestor(connection, sender_uri="queue:OS"):
            traffic.record(make(batch=1), source="gateway")
        page = visit(spools=[outbox]).get("/health").text
    for text in (
        "is lost",
        "in order",
        "Roles: gateway",
        "1 dead",
        mtosi.__version__,
        "00:00:00",
        "queue:OS",
        "20,000",
    ):
        assert text in page, text
