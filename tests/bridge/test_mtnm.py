"""MTNM's events as MTOSI's notifications: each type, each field, and what is sent in the field."""

from __future__ import annotations

import datetime as dt
from typing import Any as Anything

import pytest

from mtosi_jms.bridge.events import Any, TCKind, TypeCode
from mtosi_jms.bridge.mtnm import FindingKind, Mapped, MtnmRules, notification_of, properties_of
from mtosi_jms.errors import ConfigError, EventError
from mtosi_jms.notifications import event_name
from mtosi_jms.stubs.fmw.gen import NvsList
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.vdn import VendorNotification
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.xmlbind import decode, encode

from . import mtnm_events as m

KINDS = {
    "NT_ALARM": "AlarmInformation",
    "NT_TCA": "ThresholdCrossingAlert",
    "NT_OBJECT_CREATION": "ObjectCreation",
    "NT_OBJECT_DELETION": "ObjectDeletion",
    "NT_OBJECT_DISCOVERY": "ObjectDiscovery",
    "NT_ATTRIBUTE_VALUE_CHANGE": "AttributeValueChange",
    "NT_STATE_CHANGE": "StateChange",
    "NT_PROTECTION_SWITCH": "ProtectionSwitch",
    "NT_EPROTECTION_SWITCH": "EquipmentProtectionSwitch",
    "NT_ROUTE_CHANGE": "RouteChange",
    "NT_HEARTBEAT": "Heartbeat",
    "NT_FILE_TRANSFER_STATUS": "FileTransferStatus",
    "NT_BACKUP_STATUS": "BackupStatus",
}
ZONE = dt.timezone(dt.timedelta(hours=8))
WSTRING = TypeCode.of(TCKind.wstring)
ANY = TypeCode.of(TCKind.any)
INNER = TypeCode.struct("IDL:x/Inner:1.0", "Inner", (("a", m.LONG), ("b", m.NAME)))
OUTER = TypeCode.struct("IDL:x/Outer:1.0", "Outer", (("inner", INNER), ("on", m.BOOLEAN)))


def kept(notification: Anything) -> dict[str, str]:
    """The names and texts of the vendor extensions."""
    extensions = notification.vendor_extensions
    if extensions is None:
        return {}
    (held,) = extensions.any_
    assert isinstance(held, NvsList)
    return {one.name: str(one.value) for one in held.nvs}


def told(mapped: Mapped) -> list[tuple[FindingKind, str]]:
    return [(one.kind, one.path) for one in mapped.findings]


def alarm_of(mapped: Mapped) -> Alarm:
    assert isinstance(mapped.notification, Alarm), mapped
    return mapped.notification


class TestEachType:
    def test_there_is_an_event_of_each_type(self) -> None:
        assert set(m.REALISTIC) == set(KINDS)

    @pytest.mark.parametrize("type_name", KINDS)
    def test_it_becomes_its_notification(self, type_name: str, complaints: Anything) -> None:
        mapped = notification_of(m.REALISTIC[type_name], MtnmRules(strict=True))
        assert (mapped.type_name, mapped.refused) == (type_name, False)
        assert event_name(mapped.notification) == KINDS[type_name]
        assert mapped.notification.notification_id == m.REALISTIC[type_name].get("notificationId").value  # type: ignore[union-attr]
        assert kept(mapped.notification) == {}
        assert not mapped.findings or all(".additionalInfo" in one.path for one in mapped.findings)
        assert complaints(mapped.notification) == []
        assert decode(encode(mapped.notification), type(mapped.notification)) == mapped.notification

    @pytest.mark.parametrize("type_name", KINDS)
    def test_its_type_is_read_in_any_case(self, type_name: str) -> None:
        event = m.REALISTIC[type_name]
        lower = notification_of(type(event)("tmf_mtnm", type_name.lower(), "", (), event.filterable_data, m.NULL))
        assert event_name(lower.notification) == KINDS[type_name]
        assert lower.findings[0].kind is FindingKind.SPELLING
        assert kept(lower.notification)["type_name"] == type_name.lower()


class TestAlarm:
    def test_its_fields(self) -> None:
        alarm = alarm_of(notification_of(m.REALISTIC["NT_ALARM"]))
        assert str(alarm.object_name).startswith("MD=Huawei%2FU2000/ME=3145729/PTP=%2Frack")
        assert alarm.object_type == "PTP"
        assert alarm.os_time == dt.datetime(2014, 7, 25, 14, 2, 3, tzinfo=ZONE)
        assert alarm.source_time == dt.datetime(2014, 7, 25, 14, 2, 1, tzinfo=ZONE)
        assert (alarm.perceived_severity, alarm.service_affecting) == ("CRITICAL", "SERVICE_AFFECTING")
        assert alarm.acknowledge_indication == "UNACKNOWLEDGED"
        assert alarm.layer_rate is not None
        assert alarm.layer_rate.value == "LR_Section_OC3_STS3_and_RS_STM1"
        assert alarm.probable_cause is not None
        assert (alarm.probable_cause.probable_cause, alarm.probable_cause.qualifier) == ("LOS", "1")
        assert (alarm.native_probable_cause, alarm.additional_text) == ("R_LOS", "Loss of signal")
        assert (alarm.is_clearable, alarm.root_cause_alarm_indication, alarm.is_edge_point_related) == (
            True,
            False,
            True,
        )
        assert alarm.affected_ptp_ref_list is not None
        assert len(alarm.affected_ptp_ref_list.name) == 2
        assert alarm.alias_name_list is not None
        assert [(one.alias_name, one.alias_value) for one in alarm.alias_name_list.alias] == [
            ("nativeEMSName", "NE-7 slot 5 port 1")
        ]
        assert alarm.x733_specific_problems is not None
        assert alarm.x733_specific_problems.specific_problem == ["R_LOS"]

    def test_an_event_that_has_no_properties(self) -> None:
        with pytest.raises(ConfigError, match="NT_ALARM"):
            properties_of("NT_HEALTH")

    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("20140725140203.0+0800", dt.datetime(2014, 7, 25, 14, 2, 3, tzinfo=ZONE)),
            ("20140725140203.25Z", dt.datetime(2014, 7, 25, 14, 2, 3, 250000, tzinfo=dt.UTC)),
            ("20140725140203Z", dt.datetime(2014, 7, 25, 14, 2, 3, tzinfo=dt.UTC)),
            ("20140725140203.0-0330", dt.datetime(2014, 7, 25, 17, 32, 3, tzinfo=dt.UTC)),
            ("", None),
        ],
    )
    def test_its_times(self, text: str, moment: dt.datetime | None) -> None:
        mapped = notification_of(m.alarm(emsTime=text))
        assert alarm_of(mapped).os_time == moment
        assert mapped.findings == ()

    @pytest.mark.parametrize(
        ("text", "zone"),
        [("2014-07-25T14:02:03+08:00", ZONE), ("2014-07-25 14:02:03.0 +0800", ZONE), ("20140725140203.0", None)],
    )
    def test_other_forms_of_time_and_one_without_a_zone_are_told(self, text: str, zone: dt.tzinfo | None) -> None:
        mapped = notification_of(m.alarm(emsTime=text))
        assert alarm_of(mapped).os_time == dt.datetime(2014, 7, 25, 14, 2, 3, tzinfo=zone)
        assert told(mapped) == [(FindingKind.FORM, "filterable_data.emsTime")]


class TestInTheField:
    """What element managers send otherwise than MTNM says."""

    @pytest.mark.parametrize(
        ("field", "value", "said"),
        [
            ("perceivedSeverity", Any(m.LONG, 1), "CRITICAL"),
            ("perceivedSeverity", Any(m.SHORT, 5), "CLEARED"),
            ("perceivedSeverity", m.text("PS_MAJOR"), "MAJOR"),
            ("perceivedSeverity", m.text("major"), "MAJOR"),
            ("perceivedSeverity", m.text("4"), "WARNING"),
            ("perceivedSeverity", Any(m.SEVERITY, "ps_minor"), "MINOR"),
            ("objectType", Any(m.LONG, 9), "EQ"),
            ("objectType", m.text("OT_EMS"), "MD"),
            ("objectType", m.text("managed_element"), "ME"),
            ("objectType", m.text("SNC"), "SNC"),
        ],
    )
    def test_an_enumeration_by_number_or_in_other_letters(self, field: str, value: Any, said: str) -> None:
        mapped = notification_of(m.alarm(**{field: value}))
        alarm = alarm_of(mapped)
        assert {"perceivedSeverity": alarm.perceived_severity, "objectType": alarm.object_type}[field] == said
        assert {path for _, path in told(mapped)} == {f"filterable_data.{field}"}

    @pytest.mark.obligation("ENC9")
    @pytest.mark.parametrize("spelling", ["notificatId", "NOTIFICATID", "notificationID"])
    @pytest.mark.parametrize("type_name", ["NT_ALARM", "NT_HEARTBEAT", "NT_OF_A_VENDOR", "refused"])
    def test_the_id_of_a_notification_in_another_spelling(self, type_name: str, spelling: str) -> None:
        """In a typed event, in one that MTNM does not know, and in one that is refused."""
        wrong = {"perceivedSeverity": m.text("?")} if type_name == "refused" else {}
        kind = "NT_ALARM" if wrong else type_name
        given = m.REALISTIC[kind].filterable_data if kind in m.REALISTIC else ()
        whole = {one.name.replace("X.733::", "X733__"): one.value for one in given}
        mapped = notification_of(m.event(kind, **{**whole, "notificationId": None, **wrong, spelling: m.text("4711")}))
        assert mapped.notification.notification_id == "4711"
        assert told(mapped).count((FindingKind.SPELLING, f"filterable_data.{spelling}")) == 1
        assert spelling not in kept(mapped.notification)
        assert (mapped.findings[-1].kind is FindingKind.REFUSED) is mapped.refused is bool(wrong)

    @pytest.mark.obligation("ENC9")
    @pytest.mark.parametrize("type_name", ["NT_HEARTBEAT", "NT_OF_A_VENDOR"])
    def test_an_id_in_both_spellings_is_kept(self, type_name: str) -> None:
        mapped = notification_of(m.event(type_name, notificationId=m.text("1"), notificatId=m.text("2")))
        assert mapped.notification.notification_id == "1"
        assert kept(mapped.notification)["notificatId"] == "2"

    @pytest.mark.parametrize("spelling", ["serviceAffact", "serviceAffect", "SERVICEAFFECTING"])
    @pytest.mark.parametrize("value", [Any(m.BOOLEAN, True), Any(m.AFFECTING, "SA_SERVICE_AFFECTING")])
    def test_service_affecting_misspelled_and_as_a_boolean(self, spelling: str, value: Any) -> None:
        mapped = notification_of(m.alarm(serviceAffecting=None, **{spelling: value}))
        assert alarm_of(mapped).service_affecting == "SERVICE_AFFECTING"
        assert (FindingKind.SPELLING, f"filterable_data.{spelling}") in told(mapped)
        is_boolean = value.type.kind is TCKind.boolean
        assert ((FindingKind.FORM, f"filterable_data.{spelling}") in told(mapped)) is is_boolean
        assert kept(mapped.notification) == {}

    def test_no_object_type(self) -> None:
        mapped = notification_of(m.alarm(objectType=None))
        assert alarm_of(mapped).object_type == "PTP"
        assert told(mapped) == [(FindingKind.DERIVED, "filterable_data.objectType")]

    def test_the_qualifier_says_what_an_aid_is(self) -> None:
        group = notification_of(m.alarm(objectType="OT_AID", objectTypeQualifier="OT_EPROTECTION_GROUP"))
        call = notification_of(m.alarm(objectType="OT_AID", objectTypeQualifier="OT_CALL"))
        plain = notification_of(m.alarm(objectType="OT_AID", objectTypeQualifier=""))
        assert [alarm_of(one).object_type for one in (group, call, plain)] == ["EPG", "AID", "AID"]
        assert kept(call.notification) == {"objectTypeQualifier": "OT_CALL"}
        assert told(group) == told(plain) == []

    def test_a_floating_point_is_sent_as_a_physical_one(self) -> None:
        mapped = notification_of(m.alarm(objectName=m.name(f"{m.NE}|FTP=1")))
        assert alarm_of(mapped).object_type == "FTP"
        assert mapped.findings == ()

    @pytest.mark.parametrize("type_name", ["NT_HEALTH", "NT_HEART_BEAT", "nt_health"])
    def test_other_heartbeats(self, type_name: str, complaints: Anything) -> None:
        mapped = notification_of(m.event(type_name, systemName=m.text("EMS-1")))
        assert isinstance(mapped.notification, Heartbeat)
        assert kept(mapped.notification) == {"type_name": type_name, "systemName": "EMS-1"}
        assert complaints(mapped.notification) == []

    def test_names_of_properties_in_other_letters(self) -> None:
        mapped = notification_of(m.alarm(nativeProbableCause=None, NATIVEPROBABLECAUSE=m.text("R_LOF")))
        assert alarm_of(mapped).native_probable_cause == "R_LOF"
        assert told(mapped) == [(FindingKind.SPELLING, "filterable_data.NATIVEPROBABLECAUSE")]

    def test_steps_of_names_in_other_letters(self) -> None:
        mapped = notification_of(m.alarm(objectName=m.name("ems=A|managedelement=7|Roll=2")))
        assert str(alarm_of(mapped).object_name) == "MD=A/ME=7/Roll=2"
        assert told(mapped) == [(FindingKind.SPELLING, "filterable_data.objectName")] * 3

    @pytest.mark.parametrize(
        ("charset", "sent", "read"),
        [
            ("gbk", "输入光功率过低".encode("gbk").decode("latin-1"), "输入光功率过低"),
            (None, "输入光功率过低".encode().decode("latin-1"), "输入光功率过低"),
            (None, "Größe", "Größe"),
            ("ascii", "Größe", "Größe"),
            (None, "光", "光"),
        ],
    )
    def test_texts_in_another_charset(self, charset: str | None, sent: str, read: str) -> None:
        mapped = notification_of(m.alarm(additionalText=sent), MtnmRules(charset=charset))
        assert alarm_of(mapped).additional_text == read
        expected = [] if sent == read and charset is None else [(FindingKind.TEXT, "filterable_data.additionalText")]
        assert told(mapped) == expected

    def test_texts_that_xml_cannot_have(self, complaints: Anything) -> None:
        mapped = notification_of(m.alarm(additionalText="a\0b\x1bc\ud800d", nativeEMSName="tab\tand\nline"))
        assert alarm_of(mapped).additional_text == "a\ufffdb\ufffdc\ufffdd"
        assert told(mapped) == [(FindingKind.TEXT, "filterable_data.additionalText")]
        assert complaints(mapped.notification) == []

    @pytest.mark.parametrize(
        ("sent", "cause", "remote", "contra"),
        [
            ("LOS", "LOS", None, None),
            ("ms_ais", "MS-AIS", None, None),
            ("RU_LOS", "LOS", True, None),
            ("CONTRA_AIS", "AIS", None, True),
        ],
    )
    def test_probable_causes(self, sent: str, cause: str, remote: bool | None, contra: bool | None) -> None:
        found = alarm_of(notification_of(m.alarm(probableCause=sent))).probable_cause
        assert found is not None
        assert (found.probable_cause, found.ru, found.contra, found.extension) == (cause, remote, contra, None)

    def test_an_own_probable_cause(self, complaints: Anything) -> None:
        mapped = notification_of(m.alarm(probableCause="LASER_MOD_ERR", probableCauseQualifier="2"))
        cause = alarm_of(mapped).probable_cause
        assert cause is not None
        assert (cause.probable_cause, cause.extension, cause.qualifier) == ("VENDOR_EXT", "LASER_MOD_ERR", "2")
        assert told(mapped) == [(FindingKind.KEPT, "filterable_data.probableCause")]
        assert complaints(mapped.notification) == []


class TestKept:
    """What MTOSI has no field for, or cannot take: the alarm stays an alarm."""

    @pytest.mark.parametrize("rate", [309, 8031, -1, 0])
    def test_an_unknown_layer_rate(self, rate: int, complaints: Anything) -> None:
        mapped = notification_of(m.alarm(layerRate=rate))
        found = alarm_of(mapped)
        assert found.layer_rate is not None
        assert (found.layer_rate.value, found.layer_rate.extension) == ("VENDOR_EXT", str(rate))
        assert kept(found) == {"layerRate": str(rate)}
        assert told(mapped) == [(FindingKind.KEPT, "filterable_data.layerRate")]
        assert complaints(found) == []

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (
                {"currentAlarmId": m.text("42"), "isPropagated": Any(m.BOOLEAN, False)},
                {"currentAlarmId": "42", "isPropagated": "false"},
            ),
            ({"HW_info": Any(m.PAIRS, (("LSN", "7"), ("x", "y")))}, {"HW_info.LSN": "7", "HW_info.x": "y"}),
            (
                {"additionalText": Any(OUTER, ((5, m.name("EMS=A")), True))},
                {"additionalText": '{"inner":{"a":5,"b":[{"name":"EMS","value":"A"}]},"on":true}'},
            ),
            ({"SERVICEAFFECTING": Any(m.AFFECTING, "SA_UNKNOWN")}, {"SERVICEAFFECTING": "SA_UNKNOWN"}),
            ({"own": m.text("<a>&amp;]]>")}, {"own": "<a>&amp;]]>"}),
            ({"additionalText": Any(WSTRING, "光功率")}, {"additionalText": "光功率"}),
            (
                {"perceivedSeverity": Any(ANY, Any(m.SEVERITY, "PS_CRITICAL")), "own": Any(ANY, Any(m.LONG, 3))},
                {"perceivedSeverity": "PS_CRITICAL", "own": "3"},
            ),
        ],
    )
    def test_what_is_kept(self, given: dict[str, Any], expected: dict[str, str], complaints: Anything) -> None:
        """Without a field, of another type, there twice, or read in another form than it was sent."""
        mapped = notification_of(m.alarm(**given))
        alarm = alarm_of(mapped)
        assert kept(decode(encode(alarm), Alarm)) == expected
        assert {(FindingKind.KEPT, f"filterable_data.{name}") for name in given} <= {*told(mapped)}
        assert alarm.additional_text == ("光功率" if "光功率" in expected.values() else None)
        assert (alarm.perceived_severity, alarm.service_affecting) == ("CRITICAL", "SERVICE_AFFECTING")
        assert complaints(alarm) == []

    def test_a_body_where_none_belongs(self) -> None:
        event = m.event("NT_OBJECT_DELETION", m.NEW_ELEMENT, objectName=m.name(m.NE))
        assert '"location":"Rack 4"' in kept(notification_of(event).notification)["remainder_of_body"]

    def test_a_property_with_a_name_that_is_none(self, complaints: Anything) -> None:
        event = m.alarm(**{"a\nb\0": m.text("x"), "y" * 1000: m.text("z")})
        mapped = notification_of(event)
        assert kept(mapped.notification) == {"a\nb\ufffd": "x", "y" * 1000: "z"}
        assert [one.path for one in mapped.findings] == [
            "filterable_data.'a\\nb\\x00'",
            f"filterable_data.{'y' * 80!r}",
        ]
        assert complaints(mapped.notification) == []

    def test_the_name_of_an_event(self) -> None:
        for event in (m.alarm(), m.alarm(objectName=None)):
            named = type(event)("tmf_mtnm", "NT_ALARM", "north", (), event.filterable_data)
            assert kept(notification_of(named).notification)["event_name"] == "north"


class TestObjects:
    def test_a_new_managed_element(self) -> None:
        created: Anything = notification_of(m.REALISTIC["NT_OBJECT_CREATION"]).notification
        (element,) = created.object.any_
        assert type(element).__name__ == "Me"
        assert (element.user_label, element.software_version, element.is_in_sync_state) == ("north", "V100R009", True)
        assert [one.value for one in element.supported_connection_layer_rate_list.layer_rate] == [
            "LR_Section_OC3_STS3_and_RS_STM1",
            "LR_DSR_OC192_and_STM64",
        ]
        assert kept(element) == {"additionalInfo.ip": "10.0.0.7"}

    def test_a_new_link(self, complaints: Anything) -> None:
        ends = (m.name(m.PORT), m.name(m.OTHER_PORT))
        body = Any(m.LINK, (m.name("EMS=A|TopologicalLink=1"), "l", "", "", "CD_BI", 77, *ends, ()))
        mapped = notification_of(
            m.event(
                "NT_OBJECT_CREATION",
                body,
                objectName=m.name("EMS=A|TopologicalLink=1"),
                objectType="OT_TOPOLOGICAL_LINK",
            )
        )
        created: Anything = mapped.notification
        (link,) = created.object.any_
        assert (link.direction, link.layer_rate.value) == ("CD_BI", "LR_DSR_OC192_and_STM64")
        assert len(link.a_end_tp_ref_list.name) == 1
        assert complaints(created) == []

    def test_an_object_of_an_unknown_class(self, complaints: Anything) -> None:
        roll = TypeCode.struct("IDL:x/Roll_T:1.0", "Roll_T", (("name", m.NAME), ("mode", m.STRING)))
        event = m.event("NT_OBJECT_CREATION", Any(roll, (m.name("EMS=A|Roll=1"), "auto")), objectName=m.name("EMS=A"))
        created: Anything = notification_of(event).notification
        (found,) = created.object.any_
        assert (type(found).__name__, str(found.name), kept(found)) == ("VendorObject", "MD=A/Roll=1", {"mode": "auto"})
        assert complaints(created) == []

    def test_changed_attributes(self) -> None:
        changed: Anything = notification_of(
            m.event(
                "NT_ATTRIBUTE_VALUE_CHANGE",
                objectName=m.name(m.NE),
                attributeList=(
                    ("location", m.text("Rack 5")),
                    ("New value", m.text("x")),
                    ("emsInSyncState", m.text("True")),
                ),
            )
        ).notification
        (element,) = changed.attribute_list.any_
        assert (element.name, element.location, element.is_in_sync_state) == (None, "Rack 5", True)
        assert kept(element) == {"New value": "x"}

    def test_attributes_that_are_no_list(self) -> None:
        mapped = notification_of(m.event("NT_STATE_CHANGE", objectName=m.name(m.NE), attributeList=m.text("x")))
        assert kept(mapped.notification) == {"attributeList": "x"}
        assert event_name(mapped.notification) == "StateChange"


class TestOthers:
    def test_an_alert_gets_what_mtosi_needs(self, complaints: Anything) -> None:
        mapped = notification_of(
            m.event("NT_TCA", objectName=m.name(m.PORT), perceivedSeverity="PS_INDETERMINATE", pmLocation="PML_NO")
        )
        alert: Anything = mapped.notification
        assert (alert.layer_rate.value, alert.granularity) == ("LR_Not_Applicable", "NA")
        assert (alert.pm_location, alert.acknowledge_indication) == ("PML_BIDIRECTIONAL", "NA")
        filled = [path for kind, path in told(mapped) if kind is FindingKind.FILLED]
        names = "isClearable layerRate granularity pmParameterName pmLocation acknowledgeIndication"
        assert filled == [f"filterable_data.{name}" for name in names.split()]
        assert kept(alert) == {"pmLocation": "PML_NO"}
        assert complaints(alert) == []

    def test_a_switch_of_an_own_kind(self, complaints: Anything) -> None:
        event = m.event(
            "NT_WDMPROTECTION_SWITCH",
            protectionType=m.text("1+1 OCH"),
            protectedTP=m.name(m.PORT),
            switchAwayFromTP=m.name(m.PORT),
            groupName=m.text("7"),
        )
        switch: Anything = notification_of(event).notification
        assert (switch.protection_type.value, switch.protection_type.extension) == ("VENDOR_EXT", "1+1 OCH")
        assert kept(switch) == {"type_name": "NT_WDMPROTECTION_SWITCH", "groupName": "7"}
        assert complaints(switch) == []

    def test_a_route_in_the_body(self) -> None:
        event = m.event(
            "NT_ROUTE_CHANGE",
            Any(m.ROUTE, m.NEW_ROUTE),
            objectName=m.name("EMS=A|SubnetworkConnection=1"),
            eventType=m.text("RCE_REROUTE_COMPLETED"),
        )
        change: Anything = notification_of(event).notification
        assert change.route_change_event == "RerouteCompleted"
        assert len(change.route.cc_list.cc) == 1

    def test_the_status_of_a_backup_outside_of_its_struct(self) -> None:
        event = m.event("NT_BACKUP_STATUS", operationStatus="COS_InProgress", meName=m.name(m.NE))
        found: Anything = notification_of(event).notification
        assert found.status.operation_status == "IN_PROGRESS"

    def test_a_percentage_that_is_none(self) -> None:
        mapped = notification_of(m.event("NT_FILE_TRANSFER_STATUS", percentComplete=-1))
        assert kept(mapped.notification) == {"percentComplete": "-1"}


class TestRefused:
    """An event that cannot become what it is: a VendorNotification with what it had, or an error with its path."""

    @pytest.mark.parametrize(
        ("type_name", "values", "path"),
        [
            ("NT_ALARM", {"objectName": None}, "objectName"),
            ("NT_ALARM", {"objectName": ()}, "objectName"),
            ("NT_ALARM", {"objectName": m.text("NE-7")}, "objectName"),
            ("NT_ALARM", {"perceivedSeverity": None}, "perceivedSeverity"),
            ("NT_ALARM", {"perceivedSeverity": Any(m.LONG, 6)}, "perceivedSeverity"),
            ("NT_ALARM", {"perceivedSeverity": m.text("URGENT")}, "perceivedSeverity"),
            ("NT_ALARM", {"perceivedSeverity": Any(m.BOOLEAN, True)}, "perceivedSeverity"),
            ("NT_TCA", {"perceivedSeverity": None}, "perceivedSeverity"),
            ("NT_OBJECT_CREATION", {"objectName": None}, "objectName"),
            ("NT_OBJECT_DELETION", {"objectName": None}, "objectName"),
            ("NT_OBJECT_DISCOVERY", {"objectName": None}, "objectName"),
            ("NT_STATE_CHANGE", {"objectName": None}, "objectName"),
            ("NT_ATTRIBUTE_VALUE_CHANGE", {"objectName": None}, "objectName"),
            ("NT_ROUTE_CHANGE", {"objectName": None}, "objectName"),
            ("NT_PROTECTION_SWITCH", {"protectedTP": None}, "protectedTP"),
            ("NT_PROTECTION_SWITCH", {"switchAwayFromTP": None}, "switchAwayFromTP"),
        ],
    )
    def test_it_is_kept_whole(
        self, type_name: str, values: dict[str, Anything], path: str, complaints: Anything
    ) -> None:
        whole = {one.name.replace("X.733::", "X733__"): one.value for one in m.REALISTIC[type_name].filterable_data}
        event = m.event(type_name, **{**whole, **values})
        mapped = notification_of(event)
        found = mapped.notification
        assert isinstance(found, VendorNotification)
        assert (found.type, mapped.refused) == (type_name, True)
        assert mapped.findings[-1].kind is FindingKind.REFUSED
        assert mapped.findings[-1].path == f"filterable_data.{path}"
        names = {one.partition(".")[0] for one in kept(found)} | {"X"}
        missing = {one.name.partition(".")[0] for one in event.filterable_data} - names - {"notificationId", "neTime"}
        assert missing <= {"objectName"}
        assert complaints(found) == []
        with pytest.raises(EventError) as raised:
            notification_of(event, MtnmRules(strict=True))
        assert raised.value.path == f"filterable_data.{path}"

    @pytest.mark.obligation("NOT4")
    @pytest.mark.parametrize("name", ["emsTime", "neTime"])
    @pytest.mark.parametrize(
        "time", ["1406268123000", "00000000000000.0Z", "20141325140203.0+0800", "20140725140203.0+1500", "yesterday", 7]
    )
    @pytest.mark.parametrize("type_name", ["NT_ALARM", "NT_OBJECT_DELETION", "NT_PROTECTION_SWITCH"])
    def test_a_time_that_cannot_be_read(self, type_name: str, name: str, time: str | int, complaints: Anything) -> None:
        """The event stays what it is, without that time; a strict reading refuses it."""
        whole = {one.name.replace("X.733::", "X733__"): one.value for one in m.REALISTIC[type_name].filterable_data}
        value = m.text(time) if isinstance(time, str) else Any(m.LONG, time)
        event = m.event(type_name, **{**whole, name: value})
        good, mapped = notification_of(m.REALISTIC[type_name]), notification_of(event)
        field = {"emsTime": "os_time", "neTime": "source_time"}[name]
        expected = {**good.notification.to_dict(), "vendor_extensions": None}
        expected.pop(field)
        expected.pop("vendor_extensions")
        found = mapped.notification.to_dict()
        assert kept(mapped.notification)[name] == str(time)
        found.pop("vendor_extensions")
        assert (type(mapped.notification), found) == (type(good.notification), expected)
        told = [one for one in mapped.findings if one.path == f"filterable_data.{name}"][-1]
        assert (told.kind, mapped.refused) == (FindingKind.KEPT, False)
        assert str(time) in str(told)
        assert complaints(mapped.notification) == []
        with pytest.raises(EventError, match=name):
            notification_of(event, MtnmRules(strict=True))

    def test_a_type_that_mtnm_does_not_have(self, complaints: Anything) -> None:
        mapped = notification_of(m.event("NT_LICENCE", licence=m.text("expired")), MtnmRules(strict=True))
        assert isinstance(mapped.notification, VendorNotification)
        assert (mapped.notification.type, kept(mapped.notification)) == ("NT_LICENCE", {"licence": "expired"})
        assert told(mapped) == [(FindingKind.KEPT, "type_name")]
        assert complaints(mapped.notification) == []

    @pytest.mark.parametrize("charset", ["klingon", "rot13", "hex", ""])
    def test_a_charset_that_is_none(self, charset: str) -> None:
        with pytest.raises(ConfigError, match="charset"):
            MtnmRules(charset=charset)

    def test_anys_without_end(self) -> None:
        value = Any(m.SEVERITY, "PS_MINOR")
        for _ in range(2000):
            value = Any(ANY, value)
        mapped = notification_of(m.alarm(perceivedSeverity=value))
        assert mapped.refused
        assert "..." in kept(mapped.notification)["perceivedSeverity"]
