"""A snapshot kept by notifications: what each event does, what is refused, copies and disorder."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.notifications import (
    Applied,
    Effect,
    Refusal,
    Snapshot,
    alarm_key,
    apply_notification,
)
from mtosi_jms.simulator import Network, standing_alarms
from mtosi_jms.simulator import alarm_key as simulated_key
from mtosi_jms.stubs.fmw.avc import AttributeValueChangeTypeAttributeList
from mtosi_jms.stubs.fmw.fts import FileTransferStatus
from mtosi_jms.stubs.fmw.gen import AnyListType
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.sc import StateChangeTypeAttributeList
from mtosi_jms.stubs.fmw.vdn import VendorNotification
from mtosi_jms.stubs.nra.alarmid import AlarmIdType
from mtosi_jms.stubs.nra.alm import Alarm, AlarmType
from mtosi_jms.stubs.nra.com import PerceivedSeverityType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateType
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.stubs.nrb.rscodis import ResourceObjectDiscovery
from mtosi_jms.stubs.nrb.rscsc import ResourceStateChange
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.me import CommunicationStateType, ManagedElementType, Me
from mtosi_jms.stubs.nrf.ptp import Ptp
from mtosi_jms.xmlbind import NIL, Extras, Kept, RawXml, decode, encode

from .conftest import alarm

At = Callable[[float], dt.datetime]
NE7 = "MD=EMS1/ME=NE-7"
ME = "http://www.tmforum.org/mtop/nrf/xsd/me/v1"


def creation(full: str = NE7, when: dt.datetime | None = None, **fields: Any) -> ResourceObjectCreation:
    whole = Me(name=name(full), **{"software_version": "1.0", **fields})
    return ResourceObjectCreation(object_name=name(full), source_time=when, object=AnyListType(any_=[whole]))


def deletion(full: str = NE7, when: dt.datetime | None = None) -> ResourceObjectDeletion:
    return ResourceObjectDeletion(object_name=name(full), source_time=when)


def change(*told: Any, full: str = NE7, when: dt.datetime | None = None) -> ResourceAttributeValueChange:
    values = AttributeValueChangeTypeAttributeList(any_=list(told))
    return ResourceAttributeValueChange(object_name=name(full), source_time=when, attribute_list=values)


def element(full: str = NE7, **fields: Any) -> ManagedElementType:
    return ManagedElementType(name=name(full), **{"software_version": "1.0", "location": "Hall 1", **fields})


def effects(applied: Applied) -> list[tuple[str, str]]:
    return [(one.effect.name, one.name) for one in applied.changes]


def test_creation_brings_the_object() -> None:
    snapshot = Snapshot()
    event = creation(discovered_name="ne7")
    apply_notification(snapshot, ResourceObjectDiscovery(discovered_name="ne7"))
    applied = apply_notification(snapshot, event)
    assert (effects(applied), applied.refused, applied.event) == ([("CREATED", NE7)], None, event)
    assert snapshot[NE7] == ManagedElementType(name=name(NE7), software_version="1.0", discovered_name="ne7")
    assert type(snapshot[NE7]) is ManagedElementType, "as objects of answers are"
    assert (len(snapshot), list(snapshot), snapshot.discovered) == (1, [NE7], {})


def test_creation_of_what_is_there_replaces_it() -> None:
    snapshot = Snapshot([element()])
    applied = apply_notification(snapshot, creation(software_version="2.0"))
    (told,) = applied.changes
    assert (told.effect, told.fields) == (Effect.CHANGED, ("location", "software_version"))
    assert (told.before, told.after) == (element(), snapshot[NE7])
    assert apply_notification(snapshot, creation(software_version="2.0")) == Applied(applied.event)


def test_deletion_takes_what_is_below() -> None:
    """Ports and cards, and alarms on any of them, known as objects or not; not what only begins alike."""
    port, card, other = f"{NE7}/PTP=1", f"{NE7}/EH=1/EQ=1", "MD=EMS1/ME=NE-77"
    there = [element(), Ptp(name=name(port)), EquipmentType(name=name(card)), element(other)]
    standing = [alarm(), alarm("AIS", object_name=name(f"{NE7}/CTP=9")), alarm(object_name=name(other))]
    snapshot = Snapshot(there, standing)
    applied = apply_notification(snapshot, deletion())
    assert effects(applied) == [
        ("ALARM_CLEARED", NE7),
        ("DELETED", NE7),
        ("DELETED", port),
        ("DELETED", card),
        ("ALARM_CLEARED", f"{NE7}/CTP=9"),
    ]
    assert (list(snapshot), [key.object_name for key in snapshot.alarms]) == ([other], [other])
    assert apply_notification(snapshot, deletion()).refused is Refusal.UNKNOWN_OBJECT
    assert effects(apply_notification(snapshot, deletion("MD=EMS1"))) == [("ALARM_CLEARED", other), ("DELETED", other)]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(Me(software_version="2.0"), {"software_version": "2.0"}, id="object"),
        pytest.param(Me(user_label="x", location=NIL), {"user_label": "x", "location": NIL}, id="nil"),
        pytest.param(
            RawXml(f'<m:softwareVersion xmlns:m="{ME}">2.0</m:softwareVersion>'.encode()),
            {"software_version": "2.0"},
            id="attribute-alone",
        ),
    ],
)
def test_attributes_have_new_values(told: Any, expected: dict[str, Any]) -> None:
    """What is not told stays; the event may have been sent and read."""
    event = change(told)
    for given_event in (event, decode(encode(event))):
        snapshot = Snapshot([element()])
        (one,) = apply_notification(snapshot, given_event).changes
        assert (one.effect, set(one.fields)) == (Effect.CHANGED, set(expected))
        assert snapshot[NE7] == element(**expected)
        assert one.before == element(), "objects are replaced, not altered"
        assert apply_notification(snapshot, given_event).changes == (), "the same again"


def test_states_are_attributes_too() -> None:
    snapshot = Snapshot([element()])
    told = StateChangeTypeAttributeList(any_=[Me(communication_state=CommunicationStateType.CS_UNAVAILABLE)])
    applied = apply_notification(snapshot, ResourceStateChange(object_name=name(NE7), attribute_list=told))
    assert effects(applied) == [("CHANGED", NE7)]
    assert snapshot[NE7].communication_state == "CS_UNAVAILABLE"  # type: ignore[attr-defined]


def test_attributes_that_the_object_does_not_have() -> None:
    snapshot = Snapshot([element()])
    applied = apply_notification(
        snapshot, change(RawXml(b'<v:colour xmlns:v="urn:v">red</v:colour>'), Me(user_label="x"))
    )
    assert (effects(applied), applied.refused) == ([("CHANGED", NE7)], Refusal.UNKNOWN_ATTRIBUTE)
    assert applied.detail == f"{NE7}: {{urn:v}}colour"


def test_discovery() -> None:
    snapshot = Snapshot()
    found = ResourceObjectDiscovery(discovered_name="ne9")
    assert effects(apply_notification(snapshot, found)) == [("DISCOVERED", "ne9")]
    assert apply_notification(snapshot, found).changes == ()
    assert (dict(snapshot.discovered), len(snapshot)) == ({"ne9": found}, 0)


def test_alarms_stand_until_they_are_cleared() -> None:
    snapshot = Snapshot()
    cleared, worse = alarm(severity="CLEARED"), alarm(severity="MAJOR")
    steps = [alarm(), alarm(), worse, alarm("LOF"), alarm(qualifier="far"), cleared, cleared]
    told = [effects(apply_notification(snapshot, event)) for event in steps]
    assert told == [
        [("ALARM_RAISED", NE7)],
        [],
        [("ALARM_CHANGED", NE7)],
        [("ALARM_RAISED", NE7)],
        [("ALARM_RAISED", NE7)],
        [("ALARM_CLEARED", NE7)],
        [],
    ]
    assert [(key.probable_cause, key.qualifier) for key in snapshot.alarms] == [("LOF", ""), ("LOS", "far")]
    listed = AlarmType(**{f.name: getattr(cleared, f.name) for f in dataclasses.fields(cleared)})
    assert apply_notification(Snapshot(alarms=[alarm()]), listed).changes[0].effect is Effect.ALARM_CLEARED


def test_the_identity_of_an_alarm() -> None:
    layer = LayerRateType(value=LayerRateEnumType("VENDOR_EXT"), extension="LR_X")
    key = alarm_key(alarm(layer_rate=layer, qualifier="near"))
    assert key == (NE7, "VENDOR_EXT:LR_X", "LOS", "near", False, False)
    cause = ProbableCauseType(probable_cause=ProbableCauseEnumType("VENDOR_EXT"), extension="x", ru=True, contra=True)
    assert alarm_key(alarm(probable_cause=cause)) == (NE7, "", "VENDOR_EXT:x", "", True, True)
    assert alarm_key(alarm(probable_cause=None, native_probable_cause="fibre cut")) == (NE7, "", "fibre cut", "", 0, 0)
    same = AlarmIdType(object_name=name(NE7), probable_cause=ProbableCauseType(probable_cause=cause.probable_cause))
    assert alarm_key(dataclasses.replace(same, probable_cause_qualifier="far")) == (NE7, "", "VENDOR_EXT", "far", 0, 0)
    assert alarm_key(alarm(probable_cause=None)) is None
    assert alarm_key(alarm(object_name=None)) is None


@pytest.mark.obligation("NOT3")
@pytest.mark.parametrize("form", ["attribute", "element"])
def test_a_qualifier_in_either_form_is_part_of_the_identity(form: str) -> None:
    """An element of the alarm has the qualifier as its identity has it, though the schema of the event lacks it."""
    element = '<alm:probableCauseQualifier xmlns:alm="urn:any"> %s </alm:probableCauseQualifier>'

    def told(qualifier: str, severity: str) -> Alarm:
        if form == "attribute":
            return alarm(severity=severity, qualifier=f" {qualifier} ")
        made = alarm(severity=severity)
        made.extras = Extras(elements=[Kept(RawXml((element % qualifier).encode()), None)])
        return decode(encode(made), Alarm)

    snapshot = Snapshot()
    for event in (told("555", "CRITICAL"), told("556", "MINOR"), told("556", "CLEARED")):
        apply_notification(snapshot, event)
    assert [key.qualifier for key in snapshot.alarms] == ["555"]
    apply_notification(snapshot, alarm(severity="CLEARED", qualifier="555"))
    assert not snapshot.alarms


NOT_APPLIED: list[Any] = [
    (Heartbeat(), None),
    (FileTransferStatus(), None),
    (VendorNotification(), Refusal.UNKNOWN_EVENT),
    (RawXml(b'<v:tca xmlns:v="urn:v"/>'), Refusal.UNKNOWN_EVENT),
    (RawXml(b'<v:objectCreation xmlns:v="urn:v"/>'), Refusal.UNKNOWN_EVENT),
    ("nonsense", Refusal.UNKNOWN_EVENT),
    (None, Refusal.UNKNOWN_EVENT),
    (element(), Refusal.UNKNOWN_EVENT),
    (ResourceObjectCreation(object_name=name(NE7)), Refusal.INCOMPLETE),
    (
        ResourceObjectCreation(object_name=name(NE7), object=AnyListType(any_=[RawXml(b"<x/>"), Heartbeat()])),
        Refusal.INCOMPLETE,
    ),
    (ResourceObjectDeletion(), Refusal.INCOMPLETE),
    (ResourceObjectDiscovery(), Refusal.INCOMPLETE),
    (ResourceAttributeValueChange(), Refusal.INCOMPLETE),
    (Alarm(perceived_severity=PerceivedSeverityType.MAJOR), Refusal.INCOMPLETE),
    (deletion("MD=EMS1/ME=NE-8"), Refusal.UNKNOWN_OBJECT),
    (change(Me(location="x"), full="MD=EMS1/ME=NE-8"), Refusal.UNKNOWN_OBJECT),
    (ResourceAttributeValueChange(object_name=name(NE7)), None),
    (change(), None),
]


@pytest.mark.parametrize(("event", "refused"), NOT_APPLIED)
def test_what_changes_nothing(event: Any, refused: Refusal | None) -> None:
    snapshot = Snapshot([element()])
    applied = apply_notification(snapshot, event)
    assert (applied.changes, applied.refused, bool(applied.detail)) == ((), refused, refused is not None)
    assert dict(snapshot) == {NE7: element()}


# Disorder: what is older than what is known is not applied.


def test_older_values_do_not_come_back(at: At) -> None:
    snapshot = Snapshot([element()])
    apply_notification(snapshot, change(Me(software_version="3.0"), when=at(30)))
    late = apply_notification(snapshot, change(Me(software_version="2.0", user_label="x"), when=at(20)))
    assert (late.refused, late.detail) == (Refusal.OUTDATED, f"{NE7}: software_version")
    assert late.changes[0].fields == ("user_label",), "what nobody told since is applied"
    assert snapshot[NE7] == element(software_version="3.0", user_label="x")


def test_an_older_value_that_was_confirmed_meanwhile(at: At) -> None:
    """At 30 the version was still 1.0; 2.0 of 20 comes late and must not be taken for the newest."""
    snapshot = Snapshot([element()])
    assert apply_notification(snapshot, change(Me(software_version="1.0"), when=at(30))).changes == ()
    assert apply_notification(snapshot, change(Me(software_version="2.0"), when=at(20))).refused is Refusal.OUTDATED


def test_what_is_gone_stays_gone(at: At) -> None:
    snapshot = Snapshot([element()], [alarm()])
    apply_notification(snapshot, deletion(when=at(30)))
    for late in (creation(when=at(20)), change(Me(location="x"), when=at(20)), alarm(source_time=at(20))):
        assert apply_notification(snapshot, late).refused is Refusal.OUTDATED
    assert apply_notification(snapshot, deletion(when=at(30))) == Applied(deletion(when=at(30))), "the same again"
    assert (len(snapshot), len(snapshot.alarms)) == (0, 0)
    assert effects(apply_notification(snapshot, creation(when=at(40)))) == [("CREATED", NE7)]
    assert apply_notification(snapshot, deletion(when=at(35))).refused is Refusal.OUTDATED


def test_a_creation_that_is_overtaken(at: At) -> None:
    """Its change comes first and is refused; after that the creation still brings its own values."""
    snapshot = Snapshot()
    event = change(Me(software_version="2.0"), when=at(20))
    assert apply_notification(snapshot, event).refused is Refusal.UNKNOWN_OBJECT
    apply_notification(snapshot, creation(when=at(10)))
    apply_notification(snapshot, event)
    again = apply_notification(snapshot, creation(when=at(10)))
    assert again.changes == (), "what changed since stays"
    assert snapshot[NE7].software_version == "2.0"  # type: ignore[attr-defined]
    assert apply_notification(snapshot, creation(when=at(5))).refused is Refusal.OUTDATED
    apply_notification(snapshot, creation(when=at(15), location="Hall 2"))
    assert snapshot[NE7] == element(software_version="2.0", location="Hall 2")


def test_alarms_in_disorder(at: At) -> None:
    snapshot = Snapshot()
    for event in (alarm(severity="CLEARED", os_time=at(30)), alarm(severity="MAJOR", os_time=at(20))):
        applied = apply_notification(snapshot, event)
    assert applied.refused is Refusal.OUTDATED
    assert effects(apply_notification(snapshot, alarm(os_time=at(40)))) == [("ALARM_RAISED", NE7)]
    assert apply_notification(snapshot, alarm(severity="CLEARED", os_time=at(35))).refused is Refusal.OUTDATED
    naive = alarm(severity="CLEARED", os_time=at(50).replace(tzinfo=None))
    assert effects(apply_notification(snapshot, naive)) == [("ALARM_CLEARED", NE7)]


def test_what_the_snapshot_was_taken_with(at: At) -> None:
    snapshot = Snapshot([element()], taken=at(10).replace(tzinfo=None))
    old = apply_notification(snapshot, change(Me(location="x"), when=at(5)))
    assert (old.refused, old.detail) == (Refusal.OUTDATED, "older than the picture")
    assert apply_notification(snapshot, change(Me(location="x"), when=at(10))).changes


TREE = [("ME=1",), ("ME=1", "EH=1"), ("ME=1", "EH=1", "EQ=1"), ("ME=1", "PTP=1"), ("ME=11",)]
TOLD = st.tuples(st.sampled_from(["created", "deleted", "raised", "cleared"]), st.sampled_from(TREE))


@pytest.mark.obligation("NOT5")
@given(told=st.lists(TOLD, min_size=2, max_size=20), order=st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(told: list[tuple[str, tuple[str, ...]]], order: random.Random) -> None:
    """By the source's times: a deletion counts for all that began before it, below the deleted object too."""
    makes: dict[str, Callable[[str, dt.datetime], Any]] = {
        "created": creation,
        "deleted": deletion,
        "raised": lambda full, when: told_alarm(full, when, "MAJOR"),
        "cleared": lambda full, when: told_alarm(full, when, "CLEARED"),
    }
    start = dt.datetime(2026, 5, 4, tzinfo=dt.UTC)
    events = [(what, place, start + dt.timedelta(seconds=number)) for number, (what, place) in enumerate(told)]
    arriving = [*events, *order.sample(events, len(events) // 3)]
    order.shuffle(arriving)
    snapshot = Snapshot()
    for what, place, when in arriving:
        assert apply_notification(snapshot, makes[what]("/".join(place), when)).refused in (
            None,
            Refusal.OUTDATED,
            Refusal.UNKNOWN_OBJECT,
        )

    def last(place: tuple[str, ...], begins: str, ends: str) -> bool:
        begun = [when for what, where, when in events if (what, where) == (begins, place)]
        ended = [
            when
            for what, where, when in events
            if (what == "deleted" and place[: len(where)] == where) or (what, where) == (ends, place)
        ]
        return bool(begun) and max(begun) > max(ended, default=start - dt.timedelta(1))

    assert set(snapshot) == {"/".join(place) for place in TREE if last(place, "created", "deleted")}
    assert {key.object_name for key in snapshot.alarms} == {
        "/".join(place) for place in TREE if last(place, "raised", "cleared")
    }


def told_alarm(full: str, when: dt.datetime, severity: str) -> Alarm:
    cause = ProbableCauseType(probable_cause=ProbableCauseEnumType("LOS"))
    return Alarm(
        object_name=name(full),
        probable_cause=cause,
        perceived_severity=PerceivedSeverityType(severity),
        source_time=when,
    )


def test_only_so_many_deleted_objects_are_remembered(at: At) -> None:
    """An old creation brings back an object whose deletion is forgotten."""
    snapshot = Snapshot(remembered=3)
    for number in range(10):
        apply_notification(snapshot, creation(f"ME={number}", at(number)))
        apply_notification(snapshot, deletion(f"ME={number}", at(number)))
    late = [apply_notification(snapshot, creation(f"ME={number}", at(-1))).refused for number in range(10)]
    assert late == [None] * 7 + [Refusal.OUTDATED] * 3


# Against the simulator, which says what the network looks like after its events.


@pytest.mark.parametrize("technology", ["MIXED", "SDH", "OTN"])
def test_a_network_followed_by_its_events(technology: Any) -> None:
    network = Network(elements=12, technology=technology)
    told = list(network.events(400, seed=3))
    snapshot = Snapshot(network.objects(), taken=None)
    applied = [apply_notification(snapshot, event) for event in told]
    assert [one for one in applied if one.refused] == []
    assert {change.effect for one in applied for change in one.changes} >= {
        *(Effect.CREATED, Effect.DELETED, Effect.CHANGED, Effect.ALARM_RAISED, Effect.ALARM_CLEARED)
    }
    assert dict(snapshot) == network.after(told)
    assert sorted(map(simulated_key, snapshot.alarms.values())) == sorted(standing_alarms(told))
    before = dict(snapshot), dict(snapshot.alarms)
    for event in told:
        apply_notification(snapshot, event)
    assert (dict(snapshot), dict(snapshot.alarms)) == before, "all of it once more changes nothing"


@pytest.mark.parametrize("seed", range(3))
def test_values_and_alarms_in_any_order(seed: int) -> None:
    """Events that neither create nor delete may come shuffled and doubled: the newest values win."""
    network = Network(elements=12)
    there = [*network.objects()]
    names = {str(found.name) for found in there}
    told = [
        event
        for event in network.events(300, seed=seed)
        if isinstance(event, ResourceAttributeValueChange | ResourceStateChange | Alarm)
        and str(event.object_name) in names
    ]
    shuffled = [*told, *random.Random(seed).sample(told, len(told) // 2)]
    random.Random(seed).shuffle(shuffled)
    in_order, disordered = Snapshot(there), Snapshot(there)
    for snapshot, events in ((in_order, told), (disordered, shuffled)):
        for event in events:
            apply_notification(snapshot, event)
    assert dict(disordered) == dict(in_order)
    assert dict(disordered.alarms) == dict(in_order.alarms)


NETWORK = Network(elements=3)
EVENTS = list(NETWORK.events(60, seed=9))


@given(st.lists(st.sampled_from([*EVENTS, *(event for event, _ in NOT_APPLIED)]), max_size=80))
def test_any_events_in_any_order_are_taken(events: list[Any]) -> None:
    """Nothing raises, and the result says the truth about every object and alarm."""
    snapshot = Snapshot(NETWORK.objects())
    for event in events:
        objects, alarms = dict(snapshot), dict(snapshot.alarms)
        applied = apply_notification(snapshot, event)
        for one in applied.changes:
            if one.alarm is not None:
                assert (alarms.get(one.alarm), snapshot.alarms.get(one.alarm)) == (
                    one.before,
                    None if one.effect is Effect.ALARM_CLEARED else one.after,
                )
            elif one.effect is not Effect.DISCOVERED:
                assert (objects.get(one.name), snapshot.get(one.name)) == (one.before, one.after)
        touched = {one.alarm or one.name for one in applied.changes}
        assert {key for key in objects.keys() | snapshot.keys() if objects.get(key) != snapshot.get(key)} <= touched
        assert {
            key for key in alarms.keys() | snapshot.alarms.keys() if alarms.get(key) != snapshot.alarms.get(key)
        } <= touched
