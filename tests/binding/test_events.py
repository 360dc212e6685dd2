"""Table 4: what becomes of an event's attributes, for each event that the profile ships (R19 to R21, C26 to C33)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import event_values, events_of, logical_name, shared_name
from mtosi_jms.binding.mapping import map_header
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES, TopicCategory
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import Long
from mtosi_jms.soap import Header
from mtosi_jms.stubs.fmw import elc, elo, fts, hbt, vdn
from mtosi_jms.stubs.fmw.cei import CommonEventInformation
from mtosi_jms.stubs.fmw.gen import AliasNameListType
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, MessageTypeType
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.stubs.nrb.rscodis import ResourceObjectDiscovery
from mtosi_jms.stubs.nrb.rscsc import ResourceStateChange
from mtosi_jms.xmlbind import RawXml, XmlObject, decode, encode

DEFAULT = BindingProfile()
ALL = sorted(FILTER_ATTRIBUTES)
NOTMSG = "http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1"
WHEN = dt.datetime(2024, 5, 6, 7, 8, 9, 250_000, tzinfo=dt.UTC)


def notify(*events: Any) -> Notify:
    return Notify(topic="t", message=NotifyMessage(common_event_information=list(events)))


def raw(content: str) -> RawXml:
    """A notification that no package knows."""
    return RawXml(f'<n:notify xmlns:n="{NOTMSG}"><n:message>{content}</n:message></n:notify>'.encode())


def mapped(body: Any, profile: BindingProfile = DEFAULT, *wanted: str) -> dict[str, Any]:
    return event_values(events_of(body), wanted or ALL, profile)


LIFE_CYCLE: list[Any] = [
    pytest.param(ResourceObjectCreation, "ObjectCreation", id="T4.1-creation"),
    pytest.param(ResourceObjectDeletion, "ObjectDeletion", id="T4.1-deletion"),
    pytest.param(ResourceAttributeValueChange, "AttributeValueChange", id="T4.1-avc"),
    pytest.param(ResourceStateChange, "StateChange", id="T4.1-state"),
]


@pytest.mark.obligation("T4.1", "T4.2", "T4.3", "T4.4", "T4.5", "T4.6", "R21", "C26", "C28", "C29", "C31", "C35")
@pytest.mark.parametrize(("cls", "event"), LIFE_CYCLE)
def test_event_about_an_object(cls: type[Any], event: str) -> None:
    given = cls(
        source_time=WHEN,
        object_type="ME",
        object_name=name("MD=EMS1/ME=NE%2F7"),
        os_time=WHEN,
        is_edge_point_related=False,
    )
    found = mapped(notify(given))
    assert found == {
        "MTOSI_EventType": event,
        "MTOSI_objectName": "MD=EMS1/ME=NE%2F7",
        "MTOSI_objectType": "ME",
        "MTOSI_osTime": "2024-05-06T07:08:09.25Z",
        "MTOSI_sourceTime": "2024-05-06T07:08:09.25Z",
        "MTOSI_isEdgePointRelated": False,
    }
    assert type(found["MTOSI_isEdgePointRelated"]) is bool
    assert name(found["MTOSI_objectName"]) == given.object_name, "reversible (C31)"
    assert DEFAULT.topic_category(event) is TopicCategory.INVENTORY


@pytest.mark.obligation("T4.1", "C29", "C32")
@pytest.mark.parametrize(
    ("cls", "event"),
    [
        pytest.param(hbt.Heartbeat, "Heartbeat", id="T4.1-heartbeat"),
        pytest.param(fts.FileTransferStatus, "FileTransferStatus", id="T4.1-file"),
        pytest.param(elo.EventLossOccured, "EventLossOccurred", id="T4.1-loss"),
        pytest.param(elc.EventLossCleared, "EventLossCleared", id="T4.1-loss-cleared"),
        pytest.param(vdn.VendorNotification, "VendorNotification", id="T4.1-vendor"),
    ],
)
def test_event_about_no_object(cls: type[XmlObject], event: str) -> None:
    xml = f'<e:{cls.__xml__.element} xmlns:e="{cls.__xml__.module.namespace}"/>'
    body = decode(f'<n:notify xmlns:n="{NOTMSG}"><n:message>{xml}</n:message></n:notify>')
    assert type(body) is Notify
    assert mapped(body) == {"MTOSI_EventType": event}, "C32"
    assert shared_name(events_of(body)) == event
    assert DEFAULT.topic_category(event) is None


ALARM = """<a:alarm xmlns:a="http://www.tmforum.org/mtop/nra/xsd/alm/v1" xmlns:p="http://www.tmforum.org/mtop/nra/xsd/prc/v1"
  xmlns:g="http://www.tmforum.org/mtop/fmw/xsd/gen/v1">
  <a:isEdgePointRelated>1</a:isEdgePointRelated>
  <a:aliasNameList>
    <g:alias><g:aliasName>z</g:aliasName><g:aliasValue>2</g:aliasValue></g:alias>
    <g:alias><g:aliasName>a;b</g:aliasName><g:aliasValue>x=y%</g:aliasValue></g:alias>
  </a:aliasNameList>
  <a:layerRate>LR_STS3c</a:layerRate>
  <a:probableCause qualifier="near"><p:ru>true</p:ru><p:contra>false</p:contra><p:probableCause>LOS</p:probableCause>
  </a:probableCause>
  <a:nativeProbableCause> fibre cut </a:nativeProbableCause>
  <a:perceivedSeverity>MAJOR</a:perceivedSeverity>
  <a:rootCauseAlarmIndication>true</a:rootCauseAlarmIndication>
  <a:acknowledgeIndication>EVENT_UNACKNOWLEDGED</a:acknowledgeIndication>
</a:alarm>"""
FOUND = {
    "MTOSI_EventType": "AlarmInformation",
    "MTOSI_isEdgePointRelated": True,
    "MTOSI_aliasNameList": "a%3Bb=x%3Dy%25;z=2",
    "MTOSI_layerRate": "LR_STS3c",
    "MTOSI_probableCause": "LOS",
    "MTOSI_probableCauseQualifier": "near",
    "MTOSI_nativeProbableCause": "fibre cut",
    "MTOSI_perceivedSeverity": "MAJOR",
    "MTOSI_rootCauseAlarmIndication": True,
    "MTOSI_acknowledgeIndication": "EVENT_UNACKNOWLEDGED",
}


@pytest.mark.obligation(
    "T4.1",
    "T4.6",
    "T4.7",
    "T4.8",
    "T4.9",
    "T4.10",
    "T4.11",
    "T4.12",
    "T4.13",
    "T4.14",
    "R21",
    "C26",
    "C28",
    "C31",
    "C35",
)
def test_alarm() -> None:
    body = decode(f'<n:notify xmlns:n="{NOTMSG}"><n:topic>t</n:topic><n:message>{ALARM}</n:message></n:notify>')
    (event,) = body.message.common_event_information
    assert type(event) is Alarm
    assert type(event.alias_name_list) is AliasNameListType
    found = mapped(body)
    assert found == FOUND
    assert {key for key, value in found.items() if type(value) is bool} == {
        "MTOSI_isEdgePointRelated",
        "MTOSI_rootCauseAlarmIndication",
    }, "C26"
    assert mapped(decode(encode(body))) == FOUND
    assert mapped(raw(ALARM)) == FOUND, "the same of an event that nobody knows"


@pytest.mark.obligation("R20b")
@pytest.mark.parametrize("attribute", [pytest.param(attribute, id=f"R20b-{attribute}") for attribute in ALL])
def test_any_one_attribute_and_no_other(attribute: str) -> None:
    wanted = f"MTOSI_{attribute}"
    assert mapped(raw(ALARM), DEFAULT, attribute) == ({wanted: FOUND[wanted]} if wanted in FOUND else {})
    assert event_values(events_of(raw(ALARM)), (), DEFAULT) == {}


@pytest.mark.obligation("R20a")
@pytest.mark.parametrize("wrong", ["serviceAffecting", "eventtype", "MTOSI_EventType", "correlationId"])
def test_no_attribute_beyond_the_table(wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        event_values(events_of(None), [wrong], DEFAULT)


@pytest.mark.obligation("T4.1", "C27")
@pytest.mark.parametrize(
    ("element", "event"),
    [
        ("alarm", "AlarmInformation"),
        ("tca", "ThresholdCrossingAlert"),
        ("thresholdCrossingAlert", "ThresholdCrossingAlert"),
        ("protectionSwitch", "ProtectionSwitch"),
        ("equipmentProtectionSwitch", "EquipmentProtectionSwitch"),
        ("routeChange", "RouteChange"),
        ("backupStatus", "BackupStatus"),
        ("serviceAttributeValueChange", "AttributeValueChange"),
        ("serviceObjectCreation", "ObjectCreation"),
        ("objectDeletion", "ObjectDeletion"),
        ("eventLossOccurred", "EventLossOccurred"),
        ("somethingElse", "SomethingElse"),
    ],
)
def test_logical_name(element: str, event: str) -> None:
    assert logical_name(element) == event
    assert mapped(raw(f"<x:{element} xmlns:x='urn:x'/>")) == {"MTOSI_EventType": event}


@pytest.mark.obligation("C27")
def test_names_may_be_shown_otherwise() -> None:
    profile = BindingProfile(event_names={"AlarmInformation": "ALARM"})
    assert mapped(raw(ALARM), profile, "EventType") == {"MTOSI_EventType": "ALARM"}
    assert shared_name(events_of(raw(ALARM))) == "AlarmInformation", "the life time goes by the logical name"


@pytest.mark.obligation("C33")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("2024-05-06T07:08:09.25Z", 1714979289250, id="C33-utc"),
        pytest.param("2024-05-06T09:08:09.25+02:00", 1714979289250, id="C33-zone"),
        pytest.param("2024-05-06T07:08:09.25", 1714979289250, id="C33-no-zone"),
        pytest.param("20240506070809.2Z", 1714979289200, id="C33-C03"),
        pytest.param("0001-01-01T00:00:00+14:00", -62135647200000, id="C33-first"),
        pytest.param("9999-12-31T23:59:59.999-14:00", 253402351199999, id="C33-last"),
        pytest.param("yesterday", None, id="C33-no-time"),
        pytest.param(" ", None, id="C33-blank"),
    ],
)
def test_times_as_milliseconds(text: str, value: int | None) -> None:
    body = raw(f"<x xmlns='urn:x'><osTime>{text}</osTime></x>")
    found = mapped(body, BindingProfile(time_form="millis"), "osTime")
    assert found == ({} if value is None else {"MTOSI_osTime": value})
    assert all(type(moment) is Long for moment in found.values())
    assert mapped(body, DEFAULT, "osTime") == ({"MTOSI_osTime": text} if text.strip() else {}), "as it came"


@pytest.mark.obligation("C33")
def test_each_millisecond_is_told() -> None:
    profile = BindingProfile(time_form="millis")
    texts = [f"2031-05-06T07:08:09.{number:03d}Z" for number in range(0, 1000, 7)]
    found = [mapped(raw(f"<x><osTime>{text}</osTime></x>"), profile, "osTime")["MTOSI_osTime"] for text in texts]
    assert [moment % 1000 for moment in found] == list(range(0, 1000, 7))


@pytest.mark.obligation("C26")
@pytest.mark.parametrize(
    ("text", "value"), [("INDETERMINATE", "0"), ("CRITICAL", "1"), ("CLEARED", "5"), ("WORSE", "WORSE")]
)
def test_severities_as_numbers(text: str, value: str) -> None:
    body = raw(f"<x><perceivedSeverity> {text} </perceivedSeverity></x>")
    assert mapped(body, BindingProfile(severity_form="code"), "perceivedSeverity") == {"MTOSI_perceivedSeverity": value}
    assert mapped(body, DEFAULT, "perceivedSeverity") == {"MTOSI_perceivedSeverity": text}


@pytest.mark.obligation("C30")
def test_of_several_events_what_they_share() -> None:
    first = ResourceObjectCreation(object_type="ME", object_name=name("ME=1"), os_time=WHEN)
    second = ResourceObjectCreation(object_type="ME", object_name=name("ME=2"))
    assert mapped(notify(first, second)) == {"MTOSI_EventType": "ObjectCreation", "MTOSI_objectType": "ME"}, "C30"
    other = ResourceObjectDeletion(object_type="ME")
    assert mapped(notify(first, other)) == {"MTOSI_objectType": "ME"}
    assert shared_name(events_of(notify(first, other))) == ""


@pytest.mark.obligation("C32")
@pytest.mark.parametrize(
    "content",
    [
        pytest.param("<x><objectName/><aliasNameList/><osTime/><probableCause/></x>", id="empty"),
        pytest.param("<x><probableCause qualifier=' '/></x>", id="blank-qualifier"),
        pytest.param("<x><isEdgePointRelated>maybe</isEdgePointRelated></x>", id="C26-no-boolean"),
        pytest.param("<x><objectName><rdn><type>ME</type></rdn></objectName></x>", id="half-a-name"),
        pytest.param("<x><!-- c --><?p i?><protectedTpRef>t</protectedTpRef></x>", id="C32-no-substitute"),
    ],
)
def test_what_says_nothing_gives_no_property(content: str) -> None:
    assert mapped(raw(content)) == {"MTOSI_EventType": "X"}


@pytest.mark.parametrize("body", [None, "text", RawXml(b"<other/>"), RawXml(f'<notify xmlns="{NOTMSG}"/>'.encode())])
def test_what_is_no_notification(body: Any) -> None:
    assert events_of(body) == []
    assert mapped(body) == {}
    assert shared_name(events_of(body)) == ""


@pytest.mark.obligation("O7a", "O7b", "R19", "C21")
@pytest.mark.parametrize(
    ("event", "hours"),
    [
        pytest.param(ResourceObjectCreation(), 24, id="O7a"),
        pytest.param(Alarm(), 0.5, id="O7b-C21"),
        pytest.param(hbt.Heartbeat(), 24, id="C21-others"),
    ],
)
def test_life_time_and_properties_of_a_notification(event: CommonEventInformation, hours: float) -> None:
    header = Header(msg_type=MessageTypeType.NOTIFICATION, sender_uri="jms/S")
    mapping = map_header(header, body=notify(event), filters=["EventType"], strict=True)
    assert mapping.time_to_live_ms == hours * 3_600_000
    assert mapping.reply_to_uri is None
    assert set(mapping.properties) == {"MTOSI_senderURI", "MTOSI_msgType", "MTOSI_EventType"}, "R19"
    request = Header(msg_type=MessageTypeType.REQUEST, sender_uri="jms/S")
    assert "MTOSI_EventType" not in map_header(request, body=notify(event), filters=["EventType"]).properties


@pytest.mark.obligation("T4.1", "C32")
def test_discovery_has_no_object_name() -> None:
    given = ResourceObjectDiscovery(discovered_name="NE-9", os_time=WHEN, is_edge_point_related=True)
    assert mapped(notify(given)) == {
        "MTOSI_EventType": "ObjectDiscovery",
        "MTOSI_osTime": "2024-05-06T07:08:09.25Z",
        "MTOSI_isEdgePointRelated": True,
    }, "C32: discoveredName is not an objectName"


@pytest.mark.parametrize("message_type", [MessageTypeType.NOTIFICATION, MessageTypeType.REQUEST, None])
@pytest.mark.parametrize("pattern", ["Notification", "SimpleResponse"])
def test_a_header_says_by_type_or_pattern_that_it_is_a_notification(
    message_type: MessageTypeType | None, pattern: str
) -> None:
    header = Header(
        msg_type=message_type, communication_pattern=CommunicationPatternType(pattern), sender_uri="queue:a"
    )
    found = map_header(header, body=notify(Alarm(object_type="ME")), filters=["objectType"]).properties
    is_notification = message_type is MessageTypeType.NOTIFICATION or pattern == "Notification"
    assert ("MTOSI_objectType" in found) == is_notification


def test_what_was_not_asked_for_is_not_mapped_whatever_the_pattern() -> None:
    header = Header(
        msg_type=MessageTypeType.REQUEST,
        communication_pattern=CommunicationPatternType.Notification,
        sender_uri="queue:a",
    )
    assert "MTOSI_objectType" not in map_header(header, body=notify(Alarm(object_type="ME"))).properties
