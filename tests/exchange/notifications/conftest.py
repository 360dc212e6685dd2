"""A provider with the topics of an EMS, and events to send."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType, PerceivedSeverityType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.testing import connect_privately

TOPICS = {"Inventory": "jms/InventoryTopic", "Fault": "jms/FaultTopic", "Protection": "jms/ProtectionTopic"}
NAMES = {
    "jms/EmsOS": "queue:EMS",
    "jms/NocOS": "queue:NOC",
    "jms/Consumer": "queue:CONSUMER",
    "jms/InventoryTopic": "topic:INVENTORY",
    "jms/FaultTopic": "topic:FAULT",
    "jms/ProtectionTopic": "topic:PROTECTION",
}
START = dt.datetime(2026, 5, 4, 12, 0, tzinfo=dt.UTC)


def events(subscriber: Subscriber) -> list[Any]:
    return [received.event for received in subscriber]


@pytest.fixture
def connection() -> Iterator[Any]:
    with connect_privately(NAMES) as made:
        yield made


@pytest.fixture
def topics() -> dict[str, str]:
    return dict(TOPICS)


@pytest.fixture
def publisher(connection: Any) -> Iterator[Publisher]:
    with Publisher(connection, TOPICS, sender_uri="jms/EmsOS") as made:
        yield made


def alarm(cause: str = "LOS", severity: str = "CRITICAL", qualifier: str | None = None, **fields: Any) -> Alarm:
    """An alarm about MD=EMS1/ME=NE-7."""
    told = ProbableCauseType(probable_cause=ProbableCauseEnumType(cause), qualifier=qualifier)
    given = {
        "object_name": name("MD=EMS1/ME=NE-7"),
        "object_type": "ME",
        "probable_cause": told,
        "perceived_severity": PerceivedSeverityType(severity),
        "acknowledge_indication": AcknowledgeIndicationType.UNACKNOWLEDGED,
    }
    return Alarm(**{**given, **fields})


@pytest.fixture
def at() -> Callable[[float], dt.datetime]:
    """A time so many seconds after noon."""
    return lambda seconds: START + dt.timedelta(seconds=seconds)
