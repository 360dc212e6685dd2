"""Notifications of MTOSI 1.1: all kinds of events, the properties of Table 4, signs of loss, a snapshot, wrong ones."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from lxml import etree

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import EVENT_NAMES
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import JmsMessage, Topic
from mtosi_jms.notifications import (
    Heartbeats,
    LocalBroker,
    Loss,
    LossCause,
    Publisher,
    Snapshot,
    Subscriber,
    alarm_key,
    apply_notification,
    event_name,
)
from mtosi_jms.runtime import events as handling
from mtosi_jms.soap import dialect_of
from mtosi_jms.stubs.fmw.msg import InvalidInputFault
from mtosi_jms.stubs.fmw.nam import name as name20
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateType
from mtosi_jms.testing import ManualClock, connect_privately
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import RawXml

TOPIC: Final = Topic("EVENTS")
ALL: Final = BindingProfile(filter_properties=FILTER_ATTRIBUTES)
KINDS: Final = {
    "ObjectCreation": "Inventory",
    "ObjectDeletion": "Inventory",
    "AttributeValueChange": "Inventory",
    "StateChange": "Inventory",
    "ObjectDiscovery": "Inventory",
    "EquipmentProtectionSwitch": "Protection",
    "ProtectionSwitch": "Protection",
    "Heartbeat": None,
    "AlarmInformation": "Fault",
    "FileTransferStatus": None,
    "EventLossOccurred": None,
    "EventLossCleared": None,
    "VendorNotification": None,
}


@pytest.fixture
def connection() -> Iterator[Any]:
    with connect_privately() as made:
        yield made


def publishing(connection: Any, profile: BindingProfile = ALL, topic: Topic = TOPIC) -> Publisher:
    return Publisher(connection, {"Fault": topic}, sender_uri="queue:EMS", profile=profile)


def alarm(stubs: Any, severity: str = "PS_MAJOR", time: str = "20261128093000.0Z", **fields: Any) -> Any:
    """An alarm with all that Table 4 has."""
    info = stubs.EventInformationT(
        notification_id="7",
        object_name=stubs.name("MD=E/ME=NE-7"),
        object_type="OT_MANAGED_ELEMENT",
        os_time="20261128093001.0Z",
        ne_time=time,
        edge_point_related=True,
    )
    given = {
        "event_info": info,
        "is_clearable": True,
        "alias_name_list": stubs.AliasNameListT(
            alias=[stubs.AliasNameListTAlias(alias_name="native", alias_value="a;b")]
        ),
        "layer_rate": "LR_PHYSICAL_OPTICAL",
        "probable_cause": stubs.ProbableCauseT(type="LOS", qualifier="q"),
        "native_probable_cause": "PS_MAJOR",
        "perceived_severity": severity,
        "service_affecting": "SA_UNKNOWN",
        "rcai_indicator": False,
        "acknowledge_indication": "AI_EVENT_UNACKNOWLEDGED",
    }
    return stubs.AlarmT(**{**given, **fields})


def kinds(stubs: Any, least_instance: Callable[[Any], Any]) -> list[Any]:
    """The least event of each kind."""
    fields = [field for field in stubs.EventT.__xml__.fields if field.kind == "element"]
    return [least_instance(field.table().cls) for field in fields]


@pytest.mark.parametrize("by", ["threads", "asyncio"])
def test_events_of_every_kind_arrive_as_they_were_published(
    stubs: Any, least_instance: Callable[[Any], Any], connection: Any, shared: Path, by: str
) -> None:
    schema = etree.XMLSchema(file=str(shared / "mtosi" / "1.1" / "xsd" / "interfaces" / "NotificationService.xsd"))
    events = kinds(stubs, least_instance)
    assert [event_name(event) for event in events] == list(KINDS)
    assert set(KINDS) <= EVENT_NAMES
    with publishing(connection) as publisher, Subscriber(connection, TOPIC, timeout=10) as subscriber:
        found = (
            asyncio.run(aio(publisher, subscriber, events))
            if by == "asyncio"
            else threads(publisher, subscriber, events)
        )
    assert [one.event for one in found] == events
    for (kind, category), (_, envelope, message) in zip(KINDS.items(), found, strict=True):
        assert ALL.topic_category(kind) is None if category is None else ALL.topic_category(kind).value == category
        assert message.properties["MTOSI_EventType"] == kind
        assert message.properties["MTOSI_msgType"] == "NOTIFICATION"
        assert dialect_of(envelope.header).release == "1.x"
        assert {one.rule for one in envelope.warnings} <= {"C33"}  # the least text is no time
        notify = etree.fromstring(message.body).find(".//{tmf854.v1}notify")
        assert schema.validate(notify), schema.error_log


def threads(publisher: Publisher, subscriber: Subscriber, events: list[Any]) -> list[Any]:
    publisher.publish_all(events, category="Fault")
    return [next(subscriber) for _ in events]


async def aio(publisher: Publisher, subscriber: Subscriber, events: list[Any]) -> list[Any]:
    for event in events:
        await publisher.aio.publish(event, category="Fault")
    return [await anext(subscriber.aio) for _ in events]


SELECTED: Final[list[tuple[dict[str, Any], dict[str, str]]]] = [
    (
        {},
        {
            "EventType": "'AlarmInformation'",
            "objectName": "'MD=E/ME=NE-7'",
            "objectType": "'ME'",
            "osTime": "'20261128093001.0Z'",
            "sourceTime": "'20261128093000.0Z'",
            "isEdgePointRelated": "TRUE",
            "layerRate": "'LR_PHYSICAL_OPTICAL'",
            "aliasNameList": "'native=a%3Bb'",
            "probableCause": "'LOS'",
            "probableCauseQualifier": "'q'",
            "nativeProbableCause": "'PS_MAJOR'",
            "perceivedSeverity": "'MAJOR'",
            "rootCauseAlarmIndication": "FALSE",
            "acknowledgeIndication": "'UNACKNOWLEDGED'",
        },
    ),
    (
        {"time_form": "millis", "severity_form": "code"},
        {"osTime": "1795858201000", "sourceTime": "1795858200000", "perceivedSeverity": "'2'"},
    ),
]
"""Switches of the publisher, and what the properties of one alarm are with them."""


@pytest.mark.obligation("DIA10")
@pytest.mark.parametrize(("switches", "values"), SELECTED)
def test_a_selector_on_each_property_of_table_4(
    stubs: Any, anywhere: Connection, unused: str, switches: dict[str, Any], values: dict[str, str]
) -> None:
    """An alarm with nothing in it is not selected, the whole one is."""
    profile = BindingProfile(filter_properties=FILTER_ATTRIBUTES, **switches)
    empty = stubs.VendorNotificationT(notification_id="1", vendor_notification_type="t")
    with ExitStack() as stack:
        publisher = stack.enter_context(publishing(anywhere, profile, Topic(unused)))
        selectors = [f"MTOSI_{attribute} = {value}" for attribute, value in values.items()]
        subscribers = [
            stack.enter_context(Subscriber(anywhere, Topic(unused), selector=one, timeout=60)) for one in selectors
        ]
        publisher.publish(empty, category="Fault")
        publisher.publish(stubs.EventT(alarm=alarm(stubs)))
        assert [next(one).event for one in subscribers] == [alarm(stubs)] * len(values)
    assert {*SELECTED[0][1]} == FILTER_ATTRIBUTES


def test_heartbeats_and_losses_are_of_the_release_of_the_name(stubs: Any, connection: Any) -> None:
    losses: list[Loss] = []
    clock, os1 = ManualClock(), stubs.name("OS=EMS1")
    with (
        publishing(connection) as publisher,
        Subscriber(connection, TOPIC, timeout=0, heartbeat=30, on_loss=losses.append, clock=clock) as subscriber,
    ):
        with Heartbeats(publisher, 20, object_name=os1, timer=clock):
            clock.advance(20)
            publisher.event_loss_occurred(object_name=os1, first_event_lost_notification_id="8")
            publisher.event_loss_cleared(object_name=os1)
            events = [one.event for one in subscriber]
        assert [event_name(one) for one in events] == [
            *("Heartbeat", "Heartbeat", "EventLossOccurred", "EventLossCleared")
        ]
        assert {one.object_type for one in events} == {"OT_OS"}
        assert events[2].first_evenl_lost_notification_id == "8"
        assert [(one.cause, one.object_name, one.over) for one in losses] == [
            (LossCause.SENDER, "OS=EMS1", False),
            (LossCause.SENDER, "OS=EMS1", True),
        ]
        losses.clear()
        clock.advance(31)
        assert list(subscriber) == []
        assert [(one.cause, one.sender) for one in losses] == [(LossCause.HEARTBEAT, "queue:EMS")]


def test_a_snapshot_is_kept_by_events(stubs: Any) -> None:
    def about(cls: Any, ne_time: str = "", **fields: Any) -> Any:
        info = stubs.EventInformationT(
            notification_id="1",
            object_name=stubs.name("MD=E/ME=NE-7"),
            object_type="OT_MANAGED_ELEMENT",
            os_time="20261128093000.0Z",
            ne_time=ne_time,
        )
        return cls(event_info=info, **fields)

    def change(cls: Any, text: str, ne_time: str = "") -> Any:
        told = stubs.AnyListT(any_=[RawXml(f'<{text} xmlns="tmf854.v1">new</{text}>'.encode())])
        return about(cls, ne_time, attribute_list=told)

    element = stubs.ManagedElementT(name=stubs.name("MD=E/ME=NE-7"), owner="old")
    snapshot = Snapshot([element])

    def effect(event: Any) -> str:
        applied = apply_notification(snapshot, event)
        return applied.refused.name if applied.refused else ",".join(one.effect.name for one in applied.changes)

    steps = [
        (change(stubs.AttributeValueChangeT, "owner"), "CHANGED"),
        (change(stubs.StateChangeT, "noSuch"), "UNKNOWN_ATTRIBUTE"),
        (alarm(stubs), "ALARM_RAISED"),
        (alarm(stubs, "PS_CRITICAL", "20261128093000.0+0100"), "OUTDATED"),
        (alarm(stubs, "PS_MINOR", "20261128093010.5Z"), "ALARM_CHANGED"),
        (alarm(stubs, "PS_CLEARED", "20261128093020.0Z"), "ALARM_CLEARED"),
        (alarm(stubs, probable_cause=None, native_probable_cause=None), "INCOMPLETE"),
        (about(stubs.ObjectDeletionT, "20261128093030.0Z"), "DELETED"),
        (about(stubs.ObjectCreationT, "20261128093040.0Z"), "INCOMPLETE"),
    ]
    for event, right in steps:
        assert effect(event) == right, event
        if right == "CHANGED":
            assert snapshot["MD=E/ME=NE-7"].owner == "new"
    assert (dict(snapshot), dict(snapshot.alarms)) == ({}, {})
    snapshot.keep(element)
    assert list(snapshot) == ["MD=E/ME=NE-7"]
    found = stubs.ObjectDiscoveryT(notification_id="1", discovered_name="ne", object_type="OT_EQUIPMENT", os_time="")
    assert effect(found) == "DISCOVERED"


def test_an_alarm_has_one_identity_in_both_releases(stubs: Any) -> None:
    new = Alarm(
        object_name=name20("MD=E/ME=NE-7"),
        layer_rate=LayerRateType(value=LayerRateEnumType("LR_PHYSICAL_OPTICAL")),
        probable_cause=ProbableCauseType(probable_cause=ProbableCauseEnumType("LOS"), qualifier="q"),
    )
    assert alarm_key(alarm(stubs)) == alarm_key(new)


def test_a_local_broker_carries_out_the_operations(stubs: Any, connection: Any) -> None:
    made = importlib.import_module("old11.ns_tmf854_v1_ws.notification_broker").NotificationBroker
    expression = stubs.QueryExpressionT(
        dialect="ANSI-92", query=stubs.QueryExpressionTQuery(content=["MTOSI_perceivedSeverity = 'MAJOR'"])
    )
    with (
        publishing(connection) as publisher,
        LocalBroker(connection, {"Fault": TOPIC}, publisher=publisher, timeout=0) as broker,
    ):
        stub = made(broker, "")
        told = stub.subscribe(consumer_epr="jms/Noc", topic="Fault", selector=expression)
        assert type(told) is stubs.SubscribeResponse
        for severity in ("PS_MINOR", "PS_MAJOR"):
            stub.notify(topic="Fault", message=stubs.EventT(alarm=alarm(stubs, severity)))
        assert [one.event for one in broker.subscribers(told.subscription_id)["Fault"]] == [alarm(stubs)]
        assert stub.unsubscribe(subscription_id=told.subscription_id) == stubs.UnsubscribeResponse()
        with pytest.raises(InvalidInputFault):
            stub.unsubscribe(subscription_id=told.subscription_id)


HEADER: Final = "".join(
    f"<{name}>{text}</{name}>"
    for name, text in {
        "activityName": "notify",
        "msgName": "notify",
        "msgType": "NOTIFICATION",
        "senderURI": "queue:EMS",
        "destinationURI": "EVENTS",
        "communicationPattern": "Notification",
        "communicationStyle": "MSG",
    }.items()
)
NOTIFY: Final = "/Envelope/Body/notify/message"


def told(events: str) -> bytes:
    return (
        '<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Header>'
        f'<header xmlns="tmf854.v1">{HEADER}</header></S:Header><S:Body><notify xmlns="tmf854.v1">'
        f"<topic>t</topic><message>{events}</message></notify></S:Body></S:Envelope>"
    ).encode()


WRONG: Final = [
    ("<Alarm/>", ["AlarmInformation"], ("missing-element", f"{NOTIFY}/Alarm")),
    ("<Alarm><more/></Alarm>", ["AlarmInformation"], ("unknown-element", f"{NOTIFY}/Alarm/more")),
    ("<Alarm/><Heartbeat/>", ["AlarmInformation", "Heartbeat"], ("content", NOTIFY)),
    ("<Heartbeat/><Alarm/>", ["Heartbeat", "AlarmInformation"], ("content", NOTIFY)),
    ("<Alarm/><Alarm/>", ["AlarmInformation"] * 2, ("repeated", f"{NOTIFY}/Alarm[2]")),
    ("<alarm/>", ["AlarmInformation"], ("unknown-element", f"{NOTIFY}/alarm")),
    ('<v:OddEvent xmlns:v="urn:v"/>', ["OddEvent"], ("unknown-element", f"{NOTIFY}/OddEvent")),
    ("<LossOfAll/><Alarm/>", ["LossOfAll", "AlarmInformation"], ("unknown-element", f"{NOTIFY}/LossOfAll")),
    ("<Heartbeat><osTime>soon</osTime></Heartbeat>", ["Heartbeat"], ("C33", f"{NOTIFY}/Heartbeat/osTime")),
    (
        "<Alarm><eventInfo><osTime>20261128093000.0Z</osTime><neTime>28.11.</neTime></eventInfo></Alarm>",
        ["AlarmInformation"],
        ("C33", f"{NOTIFY}/Alarm/eventInfo/neTime"),
    ),
    ("", [], ("content", NOTIFY)),
]


@pytest.mark.obligation("DIA11")
@pytest.mark.parametrize(("events", "names", "warning"), WRONG)
def test_what_the_field_gets_wrong_is_read_with_a_warning(
    stubs: Any, connection: Any, events: str, names: list[str], warning: tuple[str, str]
) -> None:
    session = connection.session()
    with Subscriber(connection, TOPIC, timeout=0, package="old11") as subscriber:
        session.send(TOPIC, JmsMessage(body=told(events)))
        session.send(TOPIC, JmsMessage(body=told("<VendorNotification/>")))
        found = list(subscriber)
    assert [event_name(one.event) for one in found] == [*names, "VendorNotification"]
    handled: list[Any] = []
    attempt: Any = SimpleNamespace(cancelled=threading.Event())
    handling(lambda *event: handled.append(event))(JmsMessage(body=told(events)), attempt)
    assert [event_name(event) for event, _ in handled] == names
    for envelope in [found[0].envelope, *(one for _, one in handled[:1])]:  # of a subscriber and a consumer runtime
        warnings = {(one.rule, one.path) for one in envelope.warnings}
        assert warning in warnings if names else warning not in warnings
    for one in found[: len(names)]:
        apply_notification(Snapshot(), one.event)  # whatever it holds, nothing is raised


def test_events_that_cannot_be_sent(stubs: Any, connection: Any) -> None:
    with publishing(connection) as publisher:
        for event, reason in [
            (RawXml(b'<OddEvent xmlns="tmf854.v1"/>'), "no generated package that is loaded has the event OddEvent"),
            (stubs.EventT(alarm=alarm(stubs), heartbeat=stubs.EventT()), "EventT is a type, not an event"),
            (stubs.EventInformationT, "give an event"),
        ]:
            with pytest.raises(ConfigError, match=reason):
                publisher.publish(event, category="Fault")
        with pytest.raises(ConfigError, match="has one event"):
            publisher.message_of(TOPIC, [alarm(stubs), alarm(stubs)])
        raw = RawXml(
            b'<VendorNotification xmlns="tmf854.v1"><notificationId>1</notificationId>'
            b"<vendorNotificationType>t</vendorNotificationType></VendorNotification>"
        )
        assert publisher.publish(raw, category="Fault").properties["MTOSI_EventType"] == "VendorNotification"
