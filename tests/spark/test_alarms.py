"""Alarms as a table: from notifications and from answers, with their last state."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError
from mtosi_jms.notifications import alarm_key
from mtosi_jms.soap import parse
from mtosi_jms.spark.jobs import AlarmOptions, latest_alarms, parse_alarms, read_alarms, run_alarms
from mtosi_jms.spark.jobs._derived import alarm_table
from mtosi_jms.tables.alarms import run_local

from .troubles import written

pytestmark = pytest.mark.spark

MTOP = "http://www.tmforum.org/mtop/"
NAMESPACES = {"alm": "nra", "cei": "fmw", "ei": "fmw", "prc": "nra", "notmsg": "fmw", "ar": "rtm"}
SPACES = " ".join(f'xmlns:{name}="{MTOP}{part}/xsd/{name}/v1"' for name, part in NAMESPACES.items())


def alarm(element: str, me: str | None, cause: str, severity: str, time: str) -> str:
    """An alarm as text; the time of day of 2024-01-01, with its zone or in UTC."""
    zone = "" if "+" in time else "Z"
    name = ""
    if me is not None:
        steps = "".join(
            f"<nam:rdn><nam:type>{kind}</nam:type><nam:value>{value}</nam:value></nam:rdn>"
            for kind, value in (("MD", "M"), ("ME", me))
        )
        name = f"<ei:objectName>{steps}</ei:objectName>"
    return (
        f"<{element}><cei:notificationId>{time}</cei:notificationId><cei:sourceTime>2024-01-01T{time}{zone}</cei:sourceTime>"
        f"<ei:objectType>ME</ei:objectType>{name}<alm:probableCause extension='own'>"
        f"<prc:probableCause>{cause}</prc:probableCause></alm:probableCause>"
        f"<alm:perceivedSeverity>{severity}</alm:perceivedSeverity></{element}>"
    )


def notification(envelopes: Any, *alarms: str) -> str:
    inner = "".join(alarms)
    body = f"<notmsg:notify {SPACES}><notmsg:topic>fault</notmsg:topic><notmsg:message>{inner}</notmsg:message>"
    return str(envelopes.envelope(envelopes.header(msgType="NOTIFICATION"), f"{body}</notmsg:notify>"))


def answer(envelopes: Any, *alarms: str) -> str:
    inner = "".join(alarms)
    header = envelopes.header(
        msgType="RESPONSE", correlationId="c", batchSequenceNumber=1, batchSequenceEndOfReply=True
    )
    body = f"<ar:getActiveAlarmsResponse {SPACES}>{inner}</ar:getActiveAlarmsResponse>"
    return str(envelopes.envelope(header, body.replace("ar:alarm", "alm:alarm")))


@pytest.fixture
def landed(put: Any, envelopes: Any, landing: Path) -> Path:
    """One alarm of `a` that ends, one of `a` with another cause, one of `b` that was asked for and told again."""
    put("1.xml", notification(envelopes, alarm("alm:alarm", "a", "LOS", "MAJOR", "12:00:00+02:00")))
    put("2.xml", notification(envelopes, alarm("alm:alarm", "a", "LOS", "CLEARED", "12:00:00")))
    put("3.xml", notification(envelopes, alarm("alm:alarm", "a", "VENDOR_EXT", "MINOR", "11:00:00")))
    put("4.xml", answer(envelopes, alarm("alm:alarm", "b", "LOS", "CRITICAL", "09:00:00")))
    put("5.xml", notification(envelopes, alarm("alm:alarm", "b", "LOS", "WARNING", "08:00:00")))
    put("6.xml", envelopes.batch("d", 1, True, envelopes.me("a")))
    return landing


FACTS = ("object_name_text", "cause", "perceived_severity", "active")


def facts(row: Any) -> tuple[Any, ...]:
    return tuple(row[name] for name in FACTS)


def test_alarms_that_were_notified_and_asked_for_and_their_last_states(
    spark: Any, landed: Path, put: Any, envelopes: Any
) -> None:
    for number in (7, 8):
        put(f"{number}.xml", notification(envelopes, alarm("alm:alarm", None, "LOS", "MAJOR", f"0{number}:00:00")))
    alarms = read_alarms(spark, landed)
    rows = sorted(alarms.collect(), key=lambda row: row.source_file)
    assert [facts(row) for row in rows] == [
        ("MD=M/ME=a", "LOS", "MAJOR", True),
        ("MD=M/ME=a", "LOS", "CLEARED", False),
        ("MD=M/ME=a", "own", "MINOR", True),
        ("MD=M/ME=b", "LOS", "CRITICAL", True),
        ("MD=M/ME=b", "LOS", "WARNING", True),
        *[(None, "LOS", "MAJOR", True)] * 2,
    ]
    assert [row.header_msg_type for row in rows].count("NOTIFICATION") == 6
    assert rows[0].alarm_key == rows[1].alarm_key == '["MD=M/ME=a","","","LOS","own","","false","false"]'
    assert rows[0].source_time.astimezone(dt.UTC) == dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
    assert rows[0].object_type == "ME"
    assert not {"name_text", "parent_names", "related", "quality"} & set(rows[0].asDict())
    rows = latest_alarms(alarms).select("alarm_key", *FACTS).collect()
    assert sorted(facts(row) for row in rows if row.alarm_key) == [
        ("MD=M/ME=a", "LOS", "CLEARED", False),
        ("MD=M/ME=a", "own", "MINOR", True),
        ("MD=M/ME=b", "LOS", "CRITICAL", True),
    ]
    assert [row.object_name_text for row in rows if row.alarm_key is None] == [None, None]


ALARMS = [
    "<alm:alarm>{name}{cause}</alm:alarm>",
    "<alm:alarm>{name}{cause}{one}</alm:alarm>",
    "<alm:alarm>{name}{one}{cause}</alm:alarm>",
    "<alm:alarm>{name}{cause}{two}</alm:alarm>",
    "<alm:alarm>{name}{qualified}</alm:alarm>",
    "<alm:alarm>{name}{qualified}{two}</alm:alarm>",
    "<alm:alarm>{name}{layer}{cause}</alm:alarm>",
    "<alm:alarm>{name}{native}</alm:alarm>",
    "<alm:alarm>{name}{cause}{native}</alm:alarm>",
    "<alm:alarm>{name}<alm:nativeProbableCause>fan</alm:nativeProbableCause></alm:alarm>",
    "<alm:alarm>{name}{remote}</alm:alarm>",
    "<alm:alarm>{name}</alm:alarm>",
    "<alm:alarm>{cause}</alm:alarm>",
]
PARTS = {
    "name": "<ei:objectName><nam:rdn><nam:type>ME</nam:type><nam:value>a</nam:value></nam:rdn></ei:objectName>",
    "cause": "<alm:probableCause><prc:probableCause>LOS</prc:probableCause></alm:probableCause>",
    "qualified": "<alm:probableCause qualifier='a &amp; b'><prc:probableCause>LOS</prc:probableCause>"
    "</alm:probableCause>",
    "remote": "<alm:probableCause><prc:ru>true</prc:ru><prc:probableCause>LOS</prc:probableCause></alm:probableCause>",
    "one": "<alm:probableCauseQualifier> a &amp; b </alm:probableCauseQualifier>",
    "two": "<other:probableCauseQualifier xmlns:other='urn:other'>2</other:probableCauseQualifier>",
    "layer": "<alm:layerRate extension='own'>VENDOR_EXT</alm:layerRate>",
    "native": "<alm:nativeProbableCause>fibre cut</alm:nativeProbableCause>",
}


@pytest.mark.obligation("NOT3")
def test_a_frame_and_a_snapshot_tell_alarms_apart_alike(spark: Any, envelopes: Any) -> None:
    documents = [notification(envelopes, one.format(**PARTS)) for one in ALARMS]
    times = [("a", "MAJOR", "12:00:00+02:00"), ("b", "CLEARED", "10:00:01")]
    both = notification(envelopes, *(alarm("alm:alarm", me, "LOS", severity, time) for me, severity, time in times))
    frame = spark.createDataFrame(enumerate([*documents, both]), "offset int, value string")
    rows = parse_alarms(frame, "value", keep=("offset",))
    rows = rows.selectExpr("offset", "alarm_key", "cast(source_time as string) as time", *FACTS).collect()
    rows = sorted(rows, key=lambda row: (row.offset, str(row.object_name_text)))
    assert [(row.offset, *facts(row)) for row in rows[-2:]] == [
        (len(ALARMS), "MD=M/ME=a", "LOS", "MAJOR", True),
        (len(ALARMS), "MD=M/ME=b", "LOS", "CLEARED", False),
    ]
    assert rows[-2].time == "2024-01-01 10:00:00"
    del rows[-2:]
    bodies: list[Any] = [parse(one.encode()).body for one in documents]
    keys = [alarm_key(event) for body in bodies for event in body.message.common_event_information]
    assert len(rows) == len(keys) == len(ALARMS)
    assert [row.alarm_key is None for row in rows] == [key is None for key in keys]
    same = [[one == other for other in keys] for one in keys]
    assert [[one.alarm_key == other.alarm_key for other in rows] for one in rows] == same
    assert [keys.index(key) for key in keys] == [0, 1, 1, 3, 1, 1, 6, 7, 0, 9, 10, 11, 11]
    with pytest.raises(ConfigError, match="these are not alarms"):
        alarm_table(frame)


@pytest.mark.endurance
def test_the_last_states_of_a_stream(spark: Any, put: Any, envelopes: Any, landing: Path, tmp_path: Path) -> None:
    """What is newer than all before gives a row; a cleared alarm is forgotten in the time of its sources."""

    def told(*times: tuple[str, str, str]) -> str:
        return notification(envelopes, *(alarm("alm:alarm", me, "LOS", level, time) for me, level, time in times))

    def rows() -> list[tuple[str, str, str]]:
        query.processAllAvailable()
        found = spark.table("states").collect()[len(seen) :]
        seen.extend(found)
        return sorted((row.object_name_text, row.perceived_severity, str(row.source_time)[11:]) for row in found)

    stream = spark.readStream.format("text").option("wholetext", True).load(str(landing))
    alarms = parse_alarms(stream, "value").withWatermark("source_time", "0 seconds")
    writer = latest_alarms(alarms, timeout=60).writeStream.format("memory").queryName("states")
    seen: list[Any] = []
    put("1.xml", told(("x", "MAJOR", "10:00:00"), ("x", "MINOR", "09:00:00"), ("y", "MAJOR", "10:00:00")))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert rows() == [("MD=M/ME=x", "MAJOR", "10:00:00"), ("MD=M/ME=y", "MAJOR", "10:00:00")]
        put("2.xml", told(("x", "CLEARED", "10:00:10"), ("y", "CLEARED", "09:59:59"), ("z", "MAJOR", "09:00:00")))
        assert rows() == [("MD=M/ME=x", "CLEARED", "10:00:10"), ("MD=M/ME=z", "MAJOR", "09:00:00")]
        put("3.xml", told(("x", "MAJOR", "10:00:05"), ("z", "MINOR", "11:00:00")))
        assert rows() == [("MD=M/ME=z", "MINOR", "11:00:00")]
        # The clock has passed 10:01:10: x, which was cleared, is forgotten; y is active and is not.
        put("4.xml", told(("x", "MAJOR", "10:00:06"), ("y", "MINOR", "09:00:00")))
        assert rows() == [("MD=M/ME=x", "MAJOR", "10:00:06")]
    finally:
        query.stop()
        spark.catalog.dropTempView("states")


def test_both_engines_make_the_same_tables(spark: Any, landed: Path, put: Any, envelopes: Any, tmp_path: Path) -> None:
    bodies = [one.format(**PARTS) for one in ALARMS]
    bodies += [alarm("alm:alarm", me, "LOS", "MAJOR", f"0{at}:00:00") for at, me in enumerate((None, "a/b=%", "é"))]
    put("7.xml", notification(envelopes, *bodies))
    put("9.xml", "<x/>")
    by_spark, here = (AlarmOptions(landing=landed, out=tmp_path / name, latest=True) for name in ("spark", "here"))
    run_alarms(by_spark, spark=spark)
    result = run_local(here)
    assert written(tmp_path / "here", "[al]*") == written(tmp_path / "spark", "[al]*")
    assert (result.rows, result.latest) == (5 + len(bodies), 15)


def test_the_command(
    landed: Path, put: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(landed.parent)
    put("9.xml", "<x/>")
    assert main(["alarms", "landing", "--out", "out", "--latest", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["severities"] == {"CLEARED": 1, "CRITICAL": 1, "MAJOR": 1, "MINOR": 1, "WARNING": 1}
    assert (document["rows"], document["latest"], document["active"]) == (5, 3, 2)
    assert document["messages"] == {"notification": 4, "response": 2}
    assert [reject["reason"] for reject in document["rejected"]] == ["not SOAP: the root element is x"]
    assert sorted(path.name for path in Path("out").iterdir()) == ["_report", "alarms", "latest"]
    assert main(["query", "out", "SELECT count(*) AS found FROM latest WHERE active", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"found": 2}]
    assert main(["alarms", "landing", "--out", "out"]) == 0
    shown = capsys.readouterr()
    assert "5 rows" in shown.out
    assert "engine local" in shown.err
    assert sorted(path.name for path in Path("out").iterdir()) == ["_report", "alarms"]
    assert main(["alarms", "no", "--out", "out"]) == 1
    assert main(["alarms", "landing", "--out", "out", "--class", "NoSuch"]) == 2
    assert "no such class in the stubs" in capsys.readouterr().err
    assert main(["alarms"]) == 2
    local = ["alarms", "landing", "--out", "out", "--engine", "local"]
    assert main([*local, "--conf", "a=b"]) == 2
    assert main([*local, "--where", "active", "--format", "csv", "--json"]) == 0
    assert (
        json.loads(capsys.readouterr().out)["rows"] == len(Path("out/alarms/part-0.csv").read_text().splitlines()) - 1
    )
