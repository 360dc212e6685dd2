"""Alarms and events of MTOSI 1.x in the tables of 2.x, read with the stubs of the package alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from mtosi_jms.inventory import load_stubs
from mtosi_jms.tables import read

_MTOP: Final = "http://www.tmforum.org/mtop/"
_FIELDS: Final = (
    *("activityName", "msgName", "msgType", "senderURI", "destinationURI", "communicationPattern"),
    "communicationStyle",
)
_OLD: Final = """<eventInfo><notificationId>n</notificationId>
<objectName><meNm>7</meNm><mdNm>E</mdNm></objectName><objectType>OT_MANAGED_ELEMENT</objectType>
<osTime>20261128093000.5Z</osTime><neTime>20261128103000.0+0100</neTime><edgePointRelated>true</edgePointRelated>
</eventInfo><isClearable>true</isClearable>
<aliasNameList><alias><aliasName>n</aliasName><aliasValue>v</aliasValue></alias></aliasNameList>
<layerRate>LR_PHYSICAL_OPTICAL</layerRate>
<probableCause qualifier="q"><ru>true</ru><contra>false</contra><type>LOS</type></probableCause>
<nativeProbableCause>PS_MAJOR</nativeProbableCause><additionalText>text</additionalText>
<perceivedSeverity>PS_MAJOR</perceivedSeverity>
<affectedTPList><name><mdNm>E</mdNm><ptpNm>/p=1</ptpNm></name></affectedTPList>
<serviceAffecting>SA_SERVICE_AFFECTING</serviceAffecting><rcaiIndicator>false</rcaiIndicator>
<acknowledgeIndication>AI_EVENT_UNACKNOWLEDGED</acknowledgeIndication><X733_EventType>equipmentAlarm</X733_EventType>
<X733_SpecificProblems><specificProblem>s</specificProblem></X733_SpecificProblems>
<X733_BackedUpStatus>BACKED_UP</X733_BackedUpStatus><X733_BackUpObject><mdNm>E</mdNm></X733_BackUpObject>
<X733_CorrelatedNotifications><correlatedNotifications><name><mdNm>E</mdNm></name>
<notifIDs><notificationId>1</notificationId></notifIDs></correlatedNotifications></X733_CorrelatedNotifications>
<X733_ProposedRepairActions><proposedRepairAction>r</proposedRepairAction></X733_ProposedRepairActions>"""


def _rdn(**parts: str) -> str:
    return "".join(
        f"<nam:rdn><nam:type>{kind}</nam:type><nam:value>{value}</nam:value></nam:rdn>" for kind, value in parts.items()
    )


_NEW: Final = f"""<cei:notificationId>n</cei:notificationId><cei:sourceTime>2026-11-28T10:30:00+01:00</cei:sourceTime>
<ei:objectType>ME</ei:objectType><ei:objectName>{_rdn(MD="E", ME="7")}</ei:objectName>
<ei:osTime>2026-11-28T09:30:00.5Z</ei:osTime><isEdgePointRelated>true</isEdgePointRelated><isClearable>true</isClearable>
<aliasNameList><gen:alias><gen:aliasName>n</gen:aliasName><gen:aliasValue>v</gen:aliasValue></gen:alias></aliasNameList>
<layerRate>LR_PHYSICAL_OPTICAL</layerRate><probableCause qualifier="q"><prc:ru>true</prc:ru>
<prc:contra>false</prc:contra><prc:probableCause>LOS</prc:probableCause></probableCause><nativeProbableCause>PS_MAJOR</nativeProbableCause>
<additionalText>text</additionalText><perceivedSeverity>MAJOR</perceivedSeverity>
<affectedPtpRefList><nam:name>{_rdn(MD="E", PTP="/p=1")}</nam:name></affectedPtpRefList>
<serviceAffecting>SERVICE_AFFECTING</serviceAffecting><rootCauseAlarmIndication>false</rootCauseAlarmIndication>
<acknowledgeIndication>UNACKNOWLEDGED</acknowledgeIndication><X733_EventType>equipmentAlarm</X733_EventType>
<X733_SpecificProblems><ncom:specificProblem>s</ncom:specificProblem></X733_SpecificProblems>
<X733_BackedUpStatus>BACKED_UP</X733_BackedUpStatus><X733_BackUpObjectRef>{_rdn(MD="E")}</X733_BackUpObjectRef>
<X733_CorrelatedNotificationList><cornot:correlatedNotifications><cornot:name>{_rdn(MD="E")}</cornot:name>
<cornot:notifIds><gen:notificationId>1</gen:notificationId></cornot:notifIds></cornot:correlatedNotifications>
</X733_CorrelatedNotificationList>
<X733_ProposedRepairActionList><ncom:proposedRepairAction>r</ncom:proposedRepairAction></X733_ProposedRepairActionList>"""
_SPACES: Final = " ".join(
    f'xmlns:{prefix}="{_MTOP}{part}/v1"'
    for prefix, part in {
        **{name: f"fmw/xsd/{name}" for name in ("cei", "ei", "nam", "gen", "cornot", "notmsg")},
        "prc": "nra/xsd/prc",
        "ncom": "nra/xsd/com",
        "ar": "rtm/xsd/ar",
    }.items()
)
_ALARM: Final = f'<alarm xmlns="{_MTOP}nra/xsd/alm/v1">{_NEW}</alarm>'
_LIST: Final = "<activeAlarmList><activeAlarm>{}</activeAlarm></activeAlarmList>"
_ANSWERED: Final = f"<getActiveAlarmsResponse>{_LIST}</getActiveAlarmsResponse>"


def _envelope(kind: str, space: str, body: str) -> str:
    pattern = "Notification" if kind == "NOTIFICATION" else "SimpleResponse"
    texts = ("a", "m", kind, "s", "d", pattern, "RPC")
    header = "".join(f"<{name}>{text}</{name}>" for name, text in zip(_FIELDS, texts, strict=True))
    return (
        '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header>'
        f'<header xmlns="{space}">{header}</header></s:Header><s:Body>{body}</s:Body></s:Envelope>'
    )


def _told(kind: str, body: str) -> str:
    return _envelope(kind, "tmf854.v1", body.replace(">", ' xmlns="tmf854.v1">', 1))


def _notified(event: str) -> str:
    return _told("NOTIFICATION", f"<notify><topic>t</topic><message>{event}</message></notify>")


def _new(kind: str, body: str) -> str:
    return _envelope(kind, f"{_MTOP}fmw/xsd/hdr/v1", body)


_SAME: Final = {
    "notified": (
        _notified(f"<Alarm>{_OLD}</Alarm>"),
        _new("NOTIFICATION", f"<notmsg:notify {_SPACES}><notmsg:message>{_ALARM}</notmsg:message></notmsg:notify>"),
    ),
    "asked for": (
        _told("RESPONSE", _ANSWERED.format(_OLD)),
        _new("RESPONSE", f"<ar:getActiveAlarmsResponse {_SPACES}>{_ALARM}</ar:getActiveAlarmsResponse>"),
    ),
}


def _rows(landing: Path, *documents: str) -> list[dict[str, Any]]:
    load_stubs(())
    for number, document in enumerate(documents):
        (landing / f"{number}.xml").write_text(document)
    found = read(landing, "nra.alm:AlarmType", messageTypes="RESPONSE,NOTIFICATION").to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row["source_file"]))


@pytest.mark.obligation("DIA12")
@pytest.mark.parametrize("how", _SAME)
def test_one_alarm_has_one_row_in_both_releases(tmp_path: Path, how: str) -> None:
    old, new = _rows(tmp_path, *_SAME[how])
    own = {"release", "source_file", "source_line", "source_position"}
    assert {name: old[name] for name in old if name not in own} == {name: new[name] for name in new if name not in own}
    assert (old["warnings"], old["unknown"]) == ([], [])
    empty = {name for name, value in old.items() if value is None and name.startswith("x733")}
    assert empty == {"x733_trend_indication", "x733_monitored_attribute_list", "x733_additional_information"}


def test_what_an_alarm_of_1x_lacks_or_adds_is_told(tmp_path: Path) -> None:
    event = (
        "<Alarm><eventInfo><neTime/><osTime>soon</osTime><own/></eventInfo><perceivedSeverity>PROP_x</perceivedSeverity>"
        "<probableCause><type>PROP_y</type></probableCause></Alarm>"
    )
    rows = _rows(tmp_path, _notified(event), _notified(f"<v:Odd xmlns:v='v'/><Alarm>{_OLD}</Alarm>"))
    assert [row["perceived_severity"] for row in rows] == ["PROP_x", "MAJOR"]
    assert rows[0]["probable_cause"]["probable_cause"] == "PROP_y"
    assert rows[0]["source_time"] is rows[0]["os_time"] is None
    assert {(one["rule"], one["path"].rpartition("/")[2]) for one in rows[0]["warnings"]} == {
        *(("bad-value", name) for name in ("osTime", "perceivedSeverity", "probableCause")),
        ("unknown-element", "own"),
    }


def test_events_of_1x_change_and_end_objects_of_tables() -> None:
    events = pytest.importorskip("mtosi_jms.spark.jobs._events")
    pa = pytest.importorskip("pyarrow")
    load_stubs(())
    info = _OLD[: _OLD.index("<isClearable>")]
    changed = "<attributeList><userLabel>new</userLabel><version>2</version></attributeList>"
    told = [
        f"<ObjectDeletion>{info}</ObjectDeletion>",
        f"<AttributeValueChange>{info}{changed}</AttributeValueChange>",
        f"<ObjectCreation>{info}</ObjectCreation>",
        "<StateChange/>",
    ]
    messages = [{"body": _notified(event).encode(), "source_file": "f"} for event in told]
    [batch] = events.event_batches([pa.RecordBatch.from_pylist(messages)], ["ME", "EQ"])
    rows = batch.to_pylist()
    assert [(row["_fact"], row["_name"], row["_told"]) for row in rows] == [
        ("gone", "MD=E/ME=7", None),
        ("change", "MD=E/ME=7", ["software_version", "user_label"]),
        ("rejected", "a creation without an object", None),
        ("rejected", "a change that names no object", None),
    ]
    assert {str(row["_time"]) for row in rows[:2]} == {"2026-11-28 09:30:00+00:00"}
    assert (rows[1]["me"]["user_label"], rows[1]["me"]["software_version"]) == ("new", "2")
