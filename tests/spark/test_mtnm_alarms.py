"""Alarms of an element manager of MTNM, published and landed, become a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any as Anything

import pytest

pytest.importorskip("pyspark")

import mtosi_jms as mtosi
from mtosi_jms.bridge.events import Any, Property, StructuredEvent, TCKind, TypeCode
from mtosi_jms.bridge.mtnm import notification_of, publish
from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.spark import latest_alarms, read_alarms
from mtosi_jms.tables import read

pytestmark = pytest.mark.spark

STRING = TypeCode.of(TCKind.string)
PAIRS = TypeCode.sequence(TypeCode.struct("IDL:x/Pair:1.0", "Pair", (("name", STRING), ("value", STRING))))


def alarm(element: str, cause: str, severity: str, second: int, rate: int = 20) -> StructuredEvent:
    values = {
        "notificationId": Any(STRING, str(second)),
        "objectName": Any(PAIRS, (("EMS", "A"), ("ManagedElement", element))),
        "emsTime": Any(STRING, f"201407251402{second:02}.0+0800"),
        "neTime": Any(STRING, f"201407251402{second:02}.0+0800"),
        "layerRate": Any(TypeCode.of(TCKind.short), rate),
        "probableCause": Any(STRING, cause),
        "perceivedSeverity": Any(STRING, severity),
        "currentAlarmId": Any(STRING, "7"),
    }
    return StructuredEvent("tmf_mtnm", "NT_ALARM", "", (), tuple(Property(*one) for one in values.items()))


def test_landed_alarms_become_a_table(spark: Anything, tmp_path: Path) -> None:
    names = {"jms/EmsOS": "queue:EMS", "jms/Fault": "topic:MTOSI.Fault"}
    with (
        mtosi.connect("memory:mtnm-alarms", names=names) as connection,
        mtosi.DurableLanding(tmp_path / "in") as landing,
        Publisher(connection, {"Fault": "jms/Fault"}, sender_uri="jms/EmsOS") as publisher,
        Subscriber(connection, "jms/Fault", landing=landing, timeout=0) as subscriber,
    ):
        for event in (
            alarm("a", "LOS", "PS_MAJOR", 1),
            alarm("a", "LOS", "PS_CLEARED", 9),
            alarm("a", "LOS", "PS_MINOR", 2, rate=309),
            alarm("b", "LASER_MOD_ERR", "PS_CRITICAL", 3),
            alarm("b", "LOS", "URGENT", 4),
        ):
            publish(publisher, notification_of(event))
        assert len(list(subscriber)) == 5
    assert read(tmp_path / "in", "MESSAGE").rejects.num_rows == 0
    facts = "object_name_text", "cause", "perceived_severity", "active", "object_type"
    rows = latest_alarms(read_alarms(spark, tmp_path / "in")).select(*facts).collect()
    assert sorted(map(tuple, rows)) == [
        ("MD=A/ME=a", "LOS", "CLEARED", False, "ME"),
        ("MD=A/ME=a", "LOS", "MINOR", True, "ME"),
        ("MD=A/ME=b", "LASER_MOD_ERR", "CRITICAL", True, "ME"),
    ]
