"""Turns events of MTNM (TMF814), the CORBA forerunner of MTOSI, into MTOSI's notifications.

`notification_of` makes a typed notification from a structured event and reports findings: other spellings, values
without a place in MTOSI, fields that had to be filled. No data is lost: values without a field go to the
vendor extensions, and an event that cannot become its own type of notification becomes a VendorNotification. No ORB is
needed. docs/mtnm.md has the tables of events and properties.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from mtosi_jms.binding.profile import TopicCategory
from mtosi_jms.bridge import _mtnm_tables as tables
from mtosi_jms.bridge._keeper import EventLoss
from mtosi_jms.bridge._mtnm_objects import attributes, complete_for_4_0, created, route
from mtosi_jms.bridge._mtnm_values import (
    Field,
    Finding,
    FindingKind,
    Item,
    Reading,
    Table,
    a_text,
    chosen,
    elements,
    extended,
    fields,
    kind_name,
    listed,
    members,
    name_list,
    native_name,
    object_type,
)
from mtosi_jms.bridge.events import StructuredEvent, TCKind
from mtosi_jms.errors import ConfigError, EventError
from mtosi_jms.exchange.messages import moment
from mtosi_jms.jms import JmsMessage
from mtosi_jms.notifications import Publisher, event_name
from mtosi_jms.stubs.fmw.avc import AttributeValueChangeTypeAttributeList
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.stubs.fmw.cornot import CorrelatedNotificationListType, CorrelatedNotificationsType
from mtosi_jms.stubs.fmw.elc import EventLossCleared
from mtosi_jms.stubs.fmw.elo import EventLossOccured
from mtosi_jms.stubs.fmw.fts import FileTransferStatus
from mtosi_jms.stubs.fmw.gen import (
    AliasNameListType,
    AnyListType,
    NameAndAnyValueListType,
    NameAndAnyValueType,
    NameAndValueStringListType,
    NotificationIdentifierListType,
    NvsList,
)
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.fmw.sc import StateChangeTypeAttributeList
from mtosi_jms.stubs.fmw.vdn import VendorNotification
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import (
    EquipmentProtectionGroupTypeEnumType,
    EquipmentProtectionGroupTypeType,
    EquipmentSwitchReasonEnumType,
    EquipmentSwitchReasonType,
    ProposedRepairActionListType,
    ProtectionTypeEnumType,
    ProtectionTypeType,
    SpecificProblemListType,
)
from mtosi_jms.stubs.nra.eps import EquipmentProtectionSwitch
from mtosi_jms.stubs.nra.pm import PerformanceMonitoringGranularityType, PerformanceMonitoringLocationType
from mtosi_jms.stubs.nra.pmth import PerformanceMonitoringThresholdType
from mtosi_jms.stubs.nra.ps import ProtectionSwitch
from mtosi_jms.stubs.nra.tca import AcknowledgeIndicationType, ThresholdCrossingAlert
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateType
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.stubs.nrb.rscodis import ResourceObjectDiscovery
from mtosi_jms.stubs.nrb.rscsc import ResourceStateChange
from mtosi_jms.stubs.nrf.routec import RouteChange
from mtosi_jms.stubs.rp.bs import BackupStatus
from mtosi_jms.stubs.rp.sdc import BackupStatusType

__all__ = [
    "RELEASES",
    "Finding",
    "FindingKind",
    "Mapped",
    "MtnmRules",
    "loss_notification_of",
    "notification_of",
    "properties_of",
    "publish",
]

Fields: TypeAlias = dict[str, typing.Any]
"""The fields of a class of the stubs."""
RELEASES: Final = ("2.0", "4.0")
"""The releases for which there are rules."""
_DATA: Final = "filterable_data"
_BODY: Final = "remainder_of_body"


@dataclass(frozen=True, slots=True, kw_only=True)
class MtnmRules:
    """The rules for reading events.

    Attributes:
        charset: charset of texts, for example `gbk`; ORBs pass on texts in any charset as Latin-1. None: texts that are
            valid UTF-8 are read as UTF-8, others as Latin-1.
        strict: whether an event that cannot become its own type of notification is an error, not a VendorNotification;
            and whether a time that cannot be read is an error, not a finding.
        release: release whose schemas notifications must fit, `2.0` or `4.0`. They differ only for objects in events:
            4.0 requires an element that 2.0 does not have.

    Raises:
        ConfigError: there is no such charset or release.
    """

    charset: str | None = None
    strict: bool = False
    release: str = "2.0"

    def __post_init__(self) -> None:
        if self.release not in RELEASES:
            raise ConfigError(f"release {self.release!r}: it is one of {', '.join(RELEASES)}")
        if self.charset is None:
            return
        try:
            b"a".decode(self.charset)
        except (LookupError, TypeError, ValueError):
            raise ConfigError(f"charset {self.charset!r}: there is none of this name") from None


@dataclass(frozen=True, slots=True)
class Mapped:
    """A notification made from an event.

    Attributes:
        findings: the findings, in the order of the event's fields.
        type_name: MTNM's type of the event, as the event spells it.
        category: category of the topic for events that MTOSI does not route; None: subscribers of all topics get it.
    """

    notification: CommonEventInformationType
    findings: tuple[Finding, ...]
    type_name: str
    category: TopicCategory | None = None

    @property
    def refused(self) -> bool:
        """Whether the event could not become its own type of notification, and became a VendorNotification."""
        return any(finding.kind is FindingKind.REFUSED for finding in self.findings)


def notification_of(event: StructuredEvent, rules: MtnmRules | None = None) -> Mapped:
    """Make a notification of MTOSI from an event of MTNM. It is always valid by MTOSI's schemas. Raises EventError:
    with `strict`: the name, severity, time or another required value is missing; with the path."""
    rules = rules or MtnmRules()
    reading = Reading(rules.charset, strict=rules.strict)
    real = _TYPE_NAMES.get(event.type_name.strip().upper())
    if real is None:
        reading.note(FindingKind.KEPT, "type_name", f"MTNM has no event {event.type_name[:60]!r}")
        return _vendor(event, reading, None)
    if real != event.type_name:
        reading.note(FindingKind.SPELLING, "type_name", f"{event.type_name[:60]!r} was read as {real}")
        reading.kept.append(("type_name", reading.clean(event.type_name)))
    if event.event_name:
        reading.note(FindingKind.KEPT, "event_name", "MTOSI has no field for it")
        reading.kept.append(("event_name", reading.clean(event.event_name)))
    kind = _KINDS[real]
    try:
        found = fields(
            reading,
            [Item(_DATA, one.name, one.value.type, one.value.value) for one in event.filterable_data],
            kind.table,
        )
        if kind.prepare is not None:
            kind.prepare(reading, found, event)
        if not kind.reads_body:
            _body_kept(reading, event)
        made = kind.cls(**found)
    except EventError as exc:
        if rules.strict:
            raise
        reading.note(FindingKind.REFUSED, exc.path, exc.message)
        return _vendor(event, reading, kind.category)
    made.vendor_extensions = reading.extensions()
    if rules.release == "4.0":
        complete_for_4_0(made)
    return Mapped(made, tuple(reading.findings), event.type_name, kind.category)


def loss_notification_of(loss: EventLoss) -> EventLossOccured | EventLossCleared:
    """MTOSI's notification of a loss of events, or of its end."""
    when = loss.time or moment()
    if loss.over:
        return EventLossCleared(end_time=when)
    return EventLossOccured(start_time=when, first_event_lost_notification_id=loss.notification_id or None)


def properties_of(type_name: str) -> Mapping[str, str]:
    """The mapping of the properties of an MTNM event: their names, and MTOSI's elements. Raises ConfigError: MTNM has
    no such event."""
    kind = _KINDS.get(type_name)
    if kind is None:
        raise ConfigError(f"MTNM has no event {type_name!r}; it has {', '.join(_KINDS)}")
    names = {field.name: field.local for field in kind.cls.__xml__.fields}
    return {name: _MADE.get(field.target) or names[field.target] for name, field in kind.table.fields.items()}


def publish(publisher: Publisher, mapped: Mapped, *, timeout: float | None = None) -> list[JmsMessage]:
    """Publish a notification on the topic of its event, or of its category, or else on all topics. `timeout`: seconds
    for each message. Raises ConfigError: the publisher has no topic for the category; TransportError: the provider
    failed, or the time is over; SpoolError: the outbox cannot store it."""
    category = publisher.profile.topic_category(event_name(mapped.notification)) or mapped.category
    if category is None:
        return publisher.broadcast(mapped.notification, timeout=timeout)
    return [publisher.publish(mapped.notification, category=category, timeout=timeout)]


def _vendor(event: StructuredEvent, reading: Reading, category: TopicCategory | None) -> Mapped:
    """A VendorNotification with all data of the event."""
    quiet = Reading(reading.charset)
    found = fields(quiet, _items(event), _VENDOR)
    told = [one for one in quiet.findings if one.kind is FindingKind.SPELLING and one not in reading.findings]
    reading.findings[-1:-1] = told  # the last one says why it is a VendorNotification
    if event.event_name:
        quiet.kept.append(("event_name", quiet.clean(event.event_name)))
    _body_kept(quiet, event)
    made = VendorNotification(type=quiet.clean(event.type_name), **found, vendor_extensions=quiet.extensions())
    return Mapped(made, tuple(reading.findings), event.type_name, category)


def _items(event: StructuredEvent) -> list[Item]:
    return [Item(_DATA, one.name, one.value.type, one.value.value) for one in event.filterable_data]


_VENDOR: Final = Table(
    {"notificationId": Field("notification_id", a_text), "neTime": Field("source_time", Reading.moment)}
)


def _body_of(event: StructuredEvent) -> Item:
    return Item("", _BODY, event.remainder_of_body.type, event.remainder_of_body.value)


def _body_kept(reading: Reading, event: StructuredEvent) -> None:
    body = _body_of(event)
    if body.type.plain.kind not in (TCKind.null, TCKind.void):
        reading.keep(body, "MTOSI has no field for it")


def _typed(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    """Determine the type of the object: by objectType, its qualifier, and the object's name."""
    kind, qualifier = found.pop("_type", None), found.pop("_qualifier", None)
    name: NamingAttributeType | None = found.get("object_name")
    last = name.rdn[-1].type if name is not None else None
    if kind == "AID" and qualifier is not None:
        exact = tables.QUALIFIERS.get(qualifier.strip().upper())
        if exact is None:
            reading.note(FindingKind.KEPT, f"{_DATA}.objectTypeQualifier", f"MTOSI has no type {qualifier[:40]!r}")
        reading.kept.extend([] if exact else [("objectTypeQualifier", qualifier)])
        kind = exact or kind
    elif kind == "PTP" and last == "FTP":
        kind = last
    elif kind is None and last is not None:
        kind = last
        reading.note(FindingKind.DERIVED, f"{_DATA}.objectType", f"is not there; by the name it is {kind}")
    if kind is not None:
        found["object_type"] = kind


def _need(found: Fields, target: str, name: str) -> None:
    if target not in found:
        raise EventError(f"the event has no {name}", f"{_DATA}.{name}")


def _named(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    _need(found, "object_name", "objectName")
    _typed(reading, found, event)


def _alarm(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    _need(found, "perceived_severity", "perceivedSeverity")
    _named(reading, found, event)
    qualifier, cause = found.pop("_cause_qualifier", None), found.get("probable_cause")
    if qualifier is not None:
        if cause is None:
            reading.note(FindingKind.KEPT, f"{_DATA}.probableCauseQualifier", "qualifies no probableCause")
            reading.kept.append(("probableCauseQualifier", qualifier))
        else:
            cause.qualifier = qualifier
    infos = [found.pop(name, None) for name in ("_x733_info", "_info")]
    if more := [info for info in infos if info is not None]:
        found["x733_additional_information"] = NameAndAnyValueListType(nv=more)


def _alert(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    _need(found, "perceived_severity", "perceivedSeverity")
    _named(reading, found, event)
    found["threshold_type"] = PerformanceMonitoringThresholdType(threshold_type=found.pop("_threshold", None))
    for target, name, usual in _ALERT_NEEDS:
        if target not in found:
            found[target] = usual()
            reading.note(FindingKind.FILLED, f"{_DATA}.{name}", "is not there, and MTOSI needs it")
    found.setdefault("alias_name_list", AliasNameListType())


_ALERT_NEEDS: Final[tuple[tuple[str, str, Callable[[], object]], ...]] = (
    ("is_clearable", "isClearable", bool),
    ("layer_rate", "layerRate", lambda: LayerRateType(value=LayerRateEnumType.LR_Not_Applicable)),
    ("granularity", "granularity", lambda: PerformanceMonitoringGranularityType.NA),
    ("pm_parameter_name", "pmParameterName", str),
    ("pm_location", "pmLocation", lambda: PerformanceMonitoringLocationType.PML_BIDIRECTIONAL),
    ("acknowledge_indication", "acknowledgeIndication", lambda: AcknowledgeIndicationType.NA),
)


def _creation(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    _named(reading, found, event)
    whole = created(reading, found.get("object_type"), _body_of(event))
    found["object"] = None if whole is None else AnyListType(any_=[whole])


def _discovery(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    if "discovered_name" not in found:
        _need(found, "_object_name", "objectName")
        found["discovered_name"] = str(found.pop("_object_name"))
    elif (name := found.pop("_object_name", None)) is not None:
        reading.note(FindingKind.KEPT, f"{_DATA}.objectName", "MTOSI has no field for it")
        reading.kept.append(("objectName", str(name)))


def _change(listed: Callable[..., object]) -> Callable[[Reading, Fields, StructuredEvent], None]:
    """Return what puts the object with the changed attributes, if there are any, into a list of a class."""

    def prepare(reading: Reading, found: Fields, event: StructuredEvent) -> None:
        _named(reading, found, event)
        given: Item | None = found.pop("_attributes", None)
        if given is None:
            return
        try:
            whole = attributes(reading, found.get("object_type"), given)
        except EventError as exc:
            reading.keep(given, exc.message)
            return
        if whole is not None:
            found["attribute_list"] = listed(any_=[whole])

    return prepare


def _switch(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    _need(found, "protected_tp_ref", "protectedTP")
    _need(found, "switch_away_from_tp_ref", "switchAwayFromTP")
    if "layer_rate" not in found:
        found["layer_rate"] = LayerRateType(value=LayerRateEnumType.LR_Not_Applicable)
        reading.note(FindingKind.FILLED, f"{_DATA}.layerRate", "is not there, and MTOSI needs it")


def _route_change(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    _named(reading, found, event)
    body = _body_of(event)
    if "route" not in found and body.type.plain.kind is TCKind.sequence:
        try:
            found["route"] = route(reading, body)
        except EventError as exc:
            reading.keep(body, exc.message)
    else:
        _body_kept(reading, event)


def _backup(reading: Reading, found: Fields, event: StructuredEvent) -> None:
    status: BackupStatusType | None = found.pop("_status", None)
    stage, reason = found.pop("_stage", None), found.pop("_reason", None)
    if stage is not None or reason is not None:
        status = status or BackupStatusType()
        status.operation_status = status.operation_status or stage
        status.failure_reason = status.failure_reason or reason
    found["status"] = status


def _backup_status(reading: Reading, item: Item) -> object:
    parts = members(item)
    if parts is None:
        return BackupStatusType(operation_status=reading.choice(item, tables.BACKUP))  # type: ignore[arg-type]
    return BackupStatusType(**fields(reading, parts, _BACKUP_STATUS))


_BACKUP_STATUS: Final = Table(
    {
        "operationStatus": Field("operation_status", chosen(tables.BACKUP)),
        "failureReason": Field("failure_reason", a_text),
    },
    {"opStatus": "operationStatus", "status": "operationStatus"},
)


def _information(reading: Reading, item: Item) -> object:
    """Additional information: its names and texts as one value of the list."""
    found = reading.pairs(item)
    return NameAndAnyValueType(name=item.name, any_=[NvsList(nvs=found)]) if found else None


def _correlated(reading: Reading, item: Item) -> list[CorrelatedNotificationsType]:
    """Correlated notifications: structs of an object's name and of notification ids."""
    found: list[CorrelatedNotificationsType] = []
    for one in elements(item):
        parts = members(one, 2)
        if parts is None:
            raise EventError(f"is not a list of correlated notifications but a {kind_name(item.type)}")
        source = reading.name(parts[0])
        if source is None:
            raise EventError("names no object")
        ids = NotificationIdentifierListType(notification_id=reading.texts(parts[1]))
        found.append(CorrelatedNotificationsType(name=source, notif_ids=ids))
    return found


def _step(reading: Reading, item: Item) -> object:
    """Read the step of a route change; a name of MTOSI may be in any spelling."""
    text = reading.text(item).strip()
    letters = text.replace("_", "").casefold()
    exact = next((one for one in _STEPS if letters.endswith(one.casefold())), text)
    if exact != text:
        reading.note(FindingKind.SPELLING, item.path, f"{text[:40]!r} was read as {exact}")
    return exact or None


_STEPS: Final = (
    "RerouteStarted",
    "RerouteCompleted",
    "RerouteFailed",
    "RouteAdded",
    "RouteRemoved",
    "RouteActivated",
    "RouteDeactivated",
    "RouteSetToIntended",
)

_ALL: Final = {
    "notificationId": Field("notification_id", a_text),
    "neTime": Field("source_time", Reading.moment, strict=True),
}
_TIMED: Final = {**_ALL, "emsTime": Field("os_time", Reading.moment, strict=True)}
_OBJECT: Final = {
    **_TIMED,
    "objectName": Field("object_name", Reading.name, needed=True),
    "objectType": Field("_type", object_type),
    "objectTypeQualifier": Field("_qualifier", a_text),
}
_EDGE: Final = {**_OBJECT, "edgePointRelated": Field("is_edge_point_related", Reading.boolean)}
_EDGE_SPELLINGS: Final = {"edgePoint": "edgePointRelated", "isEdgePointRelated": "edgePointRelated"}
_CHANGE: Final = {**_EDGE, "attributeList": Field("_attributes", lambda _, item: item)}

_ALARM: Final = Table(
    {
        **_EDGE,
        "nativeEMSName": Field("alias_name_list", native_name),
        "isClearable": Field("is_clearable", Reading.boolean),
        "layerRate": Field("layer_rate", Reading.rate),
        "probableCause": Field("probable_cause", Reading.cause),
        "probableCauseQualifier": Field("_cause_qualifier", a_text),
        "nativeProbableCause": Field("native_probable_cause", a_text),
        "perceivedSeverity": Field("perceived_severity", chosen(tables.SEVERITY), needed=True),
        "serviceAffecting": Field("service_affecting", chosen(tables.SERVICE_AFFECTING)),
        "affectedTPList": Field("affected_ptp_ref_list", name_list),
        "additionalText": Field("additional_text", a_text),
        "additionalInfo": Field("_info", _information),
        "acknowledgeIndication": Field("acknowledge_indication", chosen(tables.ACKNOWLEDGE)),
        "rcaiIndicator": Field("root_cause_alarm_indication", Reading.boolean),
        "X.733::EventType": Field("x733_event_type", a_text),
        "X.733::SpecificProblems": Field(
            "x733_specific_problems",
            listed(Reading.texts, SpecificProblemListType, "specific_problem"),
        ),
        "X.733::BackedUpStatus": Field("x733_backed_up_status", a_text),
        "X.733::BackUpObject": Field("x733_back_up_object_ref", Reading.name),
        "X.733::TrendIndication": Field("x733_trend_indication", a_text),
        "X.733::CorrelatedNotifications": Field(
            "x733_correlated_notification_list",
            listed(_correlated, CorrelatedNotificationListType, "correlated_notifications"),
        ),
        "X.733::MonitoredAttributes": Field(
            "x733_monitored_attribute_list", listed(Reading.pairs, NameAndValueStringListType, "nvs")
        ),
        "X.733::ProposedRepairActions": Field(
            "x733_proposed_repair_action_list",
            listed(Reading.texts, ProposedRepairActionListType, "proposed_repair_action"),
        ),
        "X.733::AdditionalInfo": Field("_x733_info", _information),
    },
    {**_EDGE_SPELLINGS, "serviceAffact": "serviceAffecting", "serviceAffect": "serviceAffecting"},
)
_ALERT: Final = Table(
    {
        **_EDGE,
        "nativeEMSName": Field("alias_name_list", native_name),
        "isClearable": Field("is_clearable", Reading.boolean),
        "perceivedSeverity": Field("perceived_severity", chosen(tables.SEVERITY), needed=True),
        "layerRate": Field("layer_rate", Reading.rate),
        "granularity": Field("granularity", chosen(tables.GRANULARITY)),
        "pmParameterName": Field("pm_parameter_name", a_text),
        "pmLocation": Field("pm_location", chosen(tables.LOCATION)),
        "thresholdType": Field("_threshold", chosen(tables.THRESHOLD)),
        "value": Field("threshold_value", Reading.number),
        "unit": Field("threshold_unit", a_text),
        "acknowledgeIndication": Field("acknowledge_indication", chosen(tables.ALERT_ACKNOWLEDGE)),
    },
    {**_EDGE_SPELLINGS, "thresholdValue": "value", "thresholdUnit": "unit"},
)
_SWITCH: Final = Table(
    {
        **_TIMED,
        "protectionType": Field(
            "protection_type", extended(tables.PROTECTION, ProtectionTypeType, ProtectionTypeEnumType.VENDOR_EXT)
        ),
        "switchReason": Field("switch_reason", chosen(tables.SWITCH_REASON)),
        "layerRate": Field("layer_rate", Reading.rate),
        "groupName": Field("pg_ref", Reading.name),
        "protectedTP": Field("protected_tp_ref", Reading.name, needed=True),
        "switchAwayFromTP": Field("switch_away_from_tp_ref", Reading.name, needed=True),
        "switchToTP": Field("switch_to_tp_ref", Reading.name),
    }
)
_EQUIPMENT_SWITCH: Final = Table(
    {
        **_TIMED,
        "eProtectionGroupType": Field(
            "protection_type",
            extended(
                tables.EQUIPMENT_PROTECTION,
                EquipmentProtectionGroupTypeType,
                EquipmentProtectionGroupTypeEnumType.MINOR_EXT,
            ),
        ),
        "eSwitchReason": Field(
            "switch_reason",
            extended(tables.EQUIPMENT_REASON, EquipmentSwitchReasonType, EquipmentSwitchReasonEnumType.VENDOR_EXT),
        ),
        "ePGPName": Field("epg_ref", Reading.name),
        "protectedE": Field("protected_equipment_ref", Reading.name),
        "switchAwayFromE": Field("switch_away_from_equipment_ref", Reading.name),
        "switchToE": Field("switch_to_equipment_ref", Reading.name),
    },
    {"protectionType": "eProtectionGroupType", "switchReason": "eSwitchReason", "groupName": "ePGPName"},
)


class _Kind(typing.NamedTuple):
    """A type of MTNM's events. `prepare`: completes the fields that were read. `reads_body`: whether `prepare` reads
    the remainder of the body, which is kept otherwise. `category`: category of the topic for a VendorNotification of
    such an event; None: all topics."""

    table: Table
    prepare: Callable[[Reading, Fields, StructuredEvent], None] | None
    cls: type[CommonEventInformationType]
    category: TopicCategory | None
    reads_body: bool = False


_INVENTORY: Final = TopicCategory.INVENTORY
_KINDS: Final[Mapping[str, _Kind]] = {
    "NT_ALARM": _Kind(_ALARM, _alarm, Alarm, TopicCategory.FAULT),
    "NT_TCA": _Kind(_ALERT, _alert, ThresholdCrossingAlert, TopicCategory.FAULT),
    "NT_OBJECT_CREATION": _Kind(
        Table(_EDGE, _EDGE_SPELLINGS), _creation, ResourceObjectCreation, _INVENTORY, reads_body=True
    ),
    "NT_OBJECT_DELETION": _Kind(Table(_EDGE, _EDGE_SPELLINGS), _named, ResourceObjectDeletion, _INVENTORY),
    "NT_OBJECT_DISCOVERY": _Kind(
        Table(
            {
                **_TIMED,
                "objectName": Field("_object_name", Reading.name, needed=True),
                "discoveredName": Field("discovered_name", a_text),
                "edgePointRelated": Field("is_edge_point_related", Reading.boolean),
            },
            _EDGE_SPELLINGS,
        ),
        _discovery,
        ResourceObjectDiscovery,
        _INVENTORY,
    ),
    "NT_ATTRIBUTE_VALUE_CHANGE": _Kind(
        Table(_CHANGE, _EDGE_SPELLINGS),
        _change(AttributeValueChangeTypeAttributeList),
        ResourceAttributeValueChange,
        _INVENTORY,
    ),
    "NT_STATE_CHANGE": _Kind(
        Table(_CHANGE, _EDGE_SPELLINGS), _change(StateChangeTypeAttributeList), ResourceStateChange, _INVENTORY
    ),
    "NT_PROTECTION_SWITCH": _Kind(_SWITCH, _switch, ProtectionSwitch, TopicCategory.PROTECTION),
    "NT_EPROTECTION_SWITCH": _Kind(_EQUIPMENT_SWITCH, None, EquipmentProtectionSwitch, TopicCategory.PROTECTION),
    "NT_ROUTE_CHANGE": _Kind(
        Table(
            {**_OBJECT, "routeChangeEvent": Field("route_change_event", _step), "route": Field("route", route)},
            {"eventType": "routeChangeEvent", "newRoute": "route"},
        ),
        _route_change,
        RouteChange,
        _INVENTORY,
        reads_body=True,
    ),
    "NT_HEARTBEAT": _Kind(Table(_OBJECT), _typed, Heartbeat, None),
    "NT_FILE_TRANSFER_STATUS": _Kind(
        Table(
            {
                **_ALL,
                "fileName": Field("file_name", a_text),
                "transferStatus": Field("transfer_status", chosen(tables.TRANSFER)),
                "percentComplete": Field("percent_complete", Reading.count),
                "failureReason": Field("failure_reason", a_text),
            }
        ),
        None,
        FileTransferStatus,
        None,
    ),
    "NT_BACKUP_STATUS": _Kind(
        Table(
            {
                **_ALL,
                "backupStatus": Field("_status", _backup_status),
                "operationStatus": Field("_stage", chosen(tables.BACKUP)),
                "failureReason": Field("_reason", a_text),
                "meName": Field("me_name", Reading.name),
            },
            {"objectName": "meName"},
        ),
        _backup,
        BackupStatus,
        None,
    ),
}
_TYPE_NAMES: Final = {**{name: name for name in _KINDS}, **tables.OTHER_TYPE_NAMES}
_MADE: Final = {
    "_type": "objectType",
    "_qualifier": "objectType",
    "_cause_qualifier": "probableCause/@qualifier",
    "_info": "X733_AdditionalInformation",
    "_x733_info": "X733_AdditionalInformation",
    "_threshold": "thresholdType/thresholdType",
    "_attributes": "attributeList",
    "_object_name": "discoveredName",
    "_status": "status",
    "_stage": "status/operationStatus",
    "_reason": "status/failureReason",
}
"""The elements of MTOSI for targets of which a later step makes fields."""
