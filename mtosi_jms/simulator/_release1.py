"""The services of MTOSI 1.1 over those of 2.0: they answer with the same objects, written in the words of 1.1.

The class of 1.1 leads: each of its fields takes the value of the field of 2.0 with its meaning.
"""

from __future__ import annotations

import datetime as dt
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast

from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.binding.release1 import EVENT_INFO, word
from mtosi_jms.binding.release1 import FIELDS as EVENT_FIELDS
from mtosi_jms.binding.release1 import WORDS as EVENT_WORDS
from mtosi_jms.errors import MtosiFault
from mtosi_jms.inventory import RENAMED
from mtosi_jms.notifications import event_name
from mtosi_jms.patterns import Batch, cut_batches
from mtosi_jms.service import Handler, OperationInfo, RequestContext, SupplierBase
from mtosi_jms.simulator._inventory import InventoryEms, RecordedInventoryEms
from mtosi_jms.simulator._services import AlarmEms, EquipmentEms, ManagedElementEms
from mtosi_jms.soap import header_text
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType, NamingAttributeType
from mtosi_jms.stubs.mri import eir, mer, rir
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType, PerceivedSeverityListType, PerceivedSeverityType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseListType, ProbableCauseType
from mtosi_jms.stubs.rtm import ar
from mtosi_jms.stubs11.ns_tmf854_v1 import types
from mtosi_jms.stubs11.ns_tmf854_v1_ws.alarm_retrieval import AlarmRetrieval
from mtosi_jms.stubs11.ns_tmf854_v1_ws.equipment_inventory_mgr import EquipmentInventoryMgr
from mtosi_jms.stubs11.ns_tmf854_v1_ws.inventory_retrieval import InventoryRetrieval
from mtosi_jms.stubs11.ns_tmf854_v1_ws.managed_element_mgr import ManagedElementMgr
from mtosi_jms.xmlbind import NIL, DistinguishedNameMixin, RawXml, XmlEnum, XmlObject
from mtosi_jms.xmlbind.columns import OBJECT, STRING, Slot, plan_of

T = TypeVar("T", bound=XmlObject)
E = TypeVar("E", bound=XmlEnum)

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    **RENAMED,
    "equip": ("equipmentOrEhList",),
    **{old: (new,) for old, new in EVENT_FIELDS.items()},
    "type": ("probableCause",),
}
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "SourceT": {"NETWORK_ME": "networkME", "NETWORK_EMS": "networkEMS"},
    "ResourceStateT": {"PLANNING": "PLANNED", "RETIRING": "RETIRED", "": "INSTALLED"},
    **{field: {new: old for old, new in words.items()} for field, words in EVENT_WORDS.items()},
}
"""The words of 1.1 by those of 2.0 or their first part, by class or field."""
_NEEDED: Final[Mapping[str, Any]] = {
    "isClearable": True,
    "layerRate": "LR_Not_Applicable",
    "notificationId": "",
    "osTime": "",
    "rcaiIndicator": False,
    "serviceAffecting": types.ServiceAffectingT.SA_UNKNOWN,
}
"""What an alarm says that has no value in 2.0, where 1.1 needs one."""
_MOST_OPEN: Final = 100
"""Iterators of a service."""


def _release1(found: Any, cls: type[T]) -> T:
    """Return an object or word of MTOSI 2.0 as one of a class of 1.1; what that class has no field for is left out."""
    made: Any = cls
    if issubclass(made, DistinguishedNameMixin):
        return cast("T", made.parse(_name_text(found)))
    plan = plan_of(cls.__xml__)
    if plan.text is not None:
        return cls(**_words(_text(found), cls.__name__, plan.text))
    held = {
        field.local.lower(): getattr(found, field.name)
        for field in found.__xml__.fields
        if field.kind in ("element", "any")
    }
    held[EVENT_INFO.lower()] = found
    values: dict[str, Any] = {wildcard.name: held.get("", []) for wildcard in plan.wildcards}
    for slot in plan.slots.values():
        value = next((held[name] for name in _names(slot) if held.get(name) not in (None, NIL)), None)
        if isinstance(value, list):
            values[slot.name] = [_value(one, slot) for one in value]
        elif value is not None:
            values[slot.name] = _value(value, slot)
        elif slot.field.min and slot.field.local in _NEEDED:
            values[slot.name] = _NEEDED[slot.field.local]
    return cls(**values)


def _release2(name: object) -> NamingAttributeType | None:
    return NamingAttributeType.parse(str(name)) if isinstance(name, DistinguishedNameMixin) else None


def _names(slot: Slot) -> list[str]:
    return [name.lower() for name in _FIELDS.get(slot.field.local, (slot.field.local,))]


def _value(value: Any, slot: Slot) -> Any:
    if slot.kind == OBJECT:
        return _release1(value, slot.target.cls)
    text = _text(value)
    if not isinstance(text, str):
        return text
    return _leaf(_word(text, slot.field.local), slot)


def _leaf(text: str, slot: Slot) -> Any:
    return text if slot.kind == STRING else slot.target.lenient(text)[0]


def _text(value: Any) -> Any:
    """Return the text of a word, a time, or an object that holds one; other values stay."""
    if isinstance(value, XmlObject):
        value = next(getattr(value, field.name) for field in value.__xml__.fields if field.kind == "text")
    if isinstance(value, dt.date):
        return xmlbind.ITU_TIME.format(value) if isinstance(value, dt.datetime) else value.isoformat()
    return str(value.value) if isinstance(value, XmlEnum) else value


def _word(text: str, name: str) -> str:
    words = _WORDS.get(name, {})
    return words.get(text) or words.get(text.partition("_")[0]) or words.get("") or text


def _words(text: str, name: str, slot: Slot) -> dict[str, Any]:
    """Return the fields of a word: itself, and as its qualifier the word of 2.0 where that says more."""
    word = _word(text, name)
    said = {} if word.lower() == text.replace("_", "").lower() else {"qualifier": text}
    return {slot.name: _leaf(word, slot), **said}


def _name_text(found: Any) -> str:
    """Return a name, or the first of a list of names, as text: a link of 1.1 has one at each end."""
    return str(found if isinstance(found, DistinguishedNameMixin) else next(iter(found.name), ""))


def _filled(name: object) -> NamingAttributeType:
    found = _release2(name)
    return NamingAttributeType() if found is None else found


class _Iterators:
    """The iterators of a service: in the RPC style each reply has one batch, and the operation `...Iterator` gives the
    next one. Where too many are open, the one that nobody used for the longest time is closed."""

    def __init__(self) -> None:
        self._open: dict[str, Iterator[Batch[Any]]] = {}
        self._lock = threading.Lock()

    def answer(self, objects: Iterable[T], context: RequestContext) -> Iterable[T]:
        """Return all objects of an answer; in the RPC style over JMS its first batch. HTTP has iterators of its own."""
        is_rpc = context.message is not None and header_text(context.header, "communicationStyle") == "RPC"
        if not (is_rpc and context.batch_size):
            return objects
        whole = context.operation.response.endswith
        batches = cut_batches(objects, context.batch_size, whole=lambda one: whole(f":{type(one).__name__}"))
        return self._step(secrets.token_urlsafe(), batches, context)

    def next(self, context: RequestContext) -> Iterable[Any]:
        """Return the next batch of the iterator that a request names. Raises MtosiFault: there is none of that name."""
        name = header_text(context.header, "iteratorReferenceURI") or ""
        with self._lock:
            batches = self._open.pop(name, None)
        if batches is None:
            raise MtosiFault("iteratorReferenceURI names no iterator that is open", kind="invalidInput")
        return self._step(name, batches, context)

    def _step(self, name: str, batches: Iterator[Batch[T]], context: RequestContext) -> list[T]:
        batch = next(batches)
        end = batch.position.end_of_reply
        if not end:
            with self._lock:
                self._open[name] = batches
                if len(self._open) > _MOST_OPEN:
                    del self._open[next(iter(self._open))]
        context.reply_fields.update(
            batch_sequence_number=batch.position.number,
            batch_sequence_end_of_reply=end,
            iterator_reference_uri=None if end else name,
        )
        return batch.objects


def _filter(wanted: types.ActiveAlarmFilterT | None) -> ar.ActiveAlarmFilterType | None:
    """Return a filter of 1.1 as one of 2.0. A word that 2.0 lacks fits no alarm."""
    if wanted is None:
        return None
    made = ar.ActiveAlarmFilterType()
    if wanted.source is not None:
        made.source = ar.AlarmSourceType(str(wanted.source))
    if wanted.scope is not None:
        made.scope = NamingAttributeListType(name=[_filled(name) for name in wanted.scope.name])
    if wanted.perceived_severity_list is not None:
        found = _known(wanted.perceived_severity_list.perceived_severity, "perceivedSeverity", PerceivedSeverityType)
        made.perceived_severity_list = PerceivedSeverityListType(perceived_severity=found)
    if wanted.probable_cause_list is not None:
        causes = _known([one.type for one in wanted.probable_cause_list.probable_cause], "", ProbableCauseEnumType)
        made.probable_cause_list = ProbableCauseListType(prc=[ProbableCauseType(probable_cause=one) for one in causes])
    if wanted.acknowledge_indication is not None:
        known = _known([wanted.acknowledge_indication], "acknowledgeIndication", AcknowledgeIndicationType)
        made.acknowledge_indication = next(iter(known), None)
    return made


def _known(found: Iterable[object], name: str, kind: type[E]) -> list[E]:
    texts = (word(name, str(text)) for text in found)
    known = {str(one.value) for one in kind}
    return [kind(text) for text in texts if text in known]


class _Answer(NamedTuple):
    """How an operation of 1.1 is answered by a service of 2.0. `request`: returns the request of 2.0 for one of 1.1.
    `made`: returns the object of 1.1 for one that was found. `whole`: returns the response for what the handler gives;
    None: its objects, in batches."""

    request: Callable[[Any], XmlObject]
    handler: str
    made: Callable[[Any], XmlObject] = _filled
    whole: Callable[[Any], XmlObject] | None = None


def _as(cls: type[XmlObject]) -> Callable[[Any], XmlObject]:
    return lambda found: _release1(found, cls)


def _inventory(request: types.GetInventory) -> rir.GetInventoryRequest:
    bases = request.filter.base_instance if request.filter is not None else []
    asked = rir.GetInventoryRequest()
    if bases:
        asked.filter = rir.SimpleFilterType(base_instance=[_filled(base) for base in bases])
    return asked


def _contained(found: Iterable[Any]) -> types.GetContainedEquipmentResponse:
    held = [_release1(one, types.EquipmentOrHolderT) for one in found]
    return types.GetContainedEquipmentResponse(eq_list=types.EquipmentOrHolderListT(eoh=held))


def _count(found: Iterable[object]) -> types.GetActiveAlarmsCountResponse:
    return types.GetActiveAlarmsCountResponse(active_alarm_count=sum(1 for _ in found))


def _elements(request: Any) -> XmlObject:
    return mer.GetAllManagedElementsRequest(md_or_mlsn_ref=_release2(request.md_name))


def _alarms(request: Any) -> XmlObject:
    return ar.GetActiveAlarmsRequest(filter=_filter(request.filter))


_ANSWERS: Final[Mapping[str, _Answer]] = {
    "getAllManagedElements": _Answer(_elements, "get_all_managed_elements", _as(types.ManagedElementT)),
    "getAllManagedElementNames": _Answer(
        _elements, "get_all_managed_elements", lambda found: types.name(str(found.name))
    ),
    "getManagedElement": _Answer(
        lambda request: mer.GetManagedElementRequest(me_ref=_release2(request.me_name)),
        "get_managed_element",
        whole=_as(types.GetManagedElementResponse),
    ),
    "getAllEquipment": _Answer(
        lambda request: eir.GetAllEquipmentRequest(me_or_eh_ref=_release2(request.me_or_holder_name)),
        "get_all_equipment",
        _as(types.EquipmentOrHolderT),
    ),
    "getContainedEquipment": _Answer(
        lambda request: eir.GetContainedEquipmentRequest(eh_ref=_release2(request.equipment_holder_name)),
        "get_contained_equipment",
        whole=_contained,
    ),
    "getEquipment": _Answer(
        lambda request: eir.GetEquipmentRequest(equipment_or_eh_ref=_release2(request.equipment_or_holder_name)),
        "get_equipment",
        whole=_as(types.GetEquipmentResponse),
    ),
    "getInventory": _Answer(_inventory, "get_inventory", _as(types.GetInventoryResponse)),
    "getActiveAlarms": _Answer(_alarms, "get_active_alarms", _as(types.AlarmT)),
    "getActiveAlarmsCount": _Answer(_alarms, "get_active_alarms", whole=_count),
}


class _Release1(SupplierBase):
    """A service of MTOSI 1.1 over one of 2.0."""

    def __init__(self, ems: Any) -> None:
        self._ems = ems
        self._iterators = _Iterators()

    def handler(self, operation: OperationInfo) -> Handler:
        if operation.name.endswith("Iterator"):
            return lambda _, context: self._iterators.next(context)
        request_of, handler, made, whole = _ANSWERS[operation.name]

        def answer(request: Any, context: RequestContext) -> Any:
            found = getattr(self._ems, handler)(request_of(request), context)
            return whole(found) if whole else self._iterators.answer(map(made, found), context)

        return answer


_SERVICES: Final[Mapping[type[SupplierBase], Any]] = {
    ManagedElementEms: ManagedElementMgr,
    InventoryEms: InventoryRetrieval,
    RecordedInventoryEms: InventoryRetrieval,
    EquipmentEms: EquipmentInventoryMgr,
    AlarmEms: AlarmRetrieval,
}


def in_release1(ems: ManagedElementEms | InventoryEms | RecordedInventoryEms | EquipmentEms | AlarmEms) -> SupplierBase:
    """Return the service of MTOSI 1.1 with the objects of one of 2.0.

    Both give the same objects. 1.1 has no service category of a transmission descriptor, and fewer resource states: the
    state of 2.0 is the `qualifier` of the nearest.

    Args:
        ems: a service of this module, of the very class.
    """
    stub = _SERVICES[type(ems)]
    made: type[_Release1] = type(stub.__name__, (_Release1, stub.Supplier), {})
    return made(ems)


_EVENTS: Final[Mapping[str, type[XmlObject]]] = {
    "AlarmInformation": types.AlarmT,
    "AttributeValueChange": types.AttributeValueChangeT,
    "EventLossCleared": types.EventLossClearedT,
    "EventLossOccurred": types.EventLossOccuredT,
    "Heartbeat": types.HeartbeatT,
    "ObjectCreation": types.ObjectCreationT,
    "ObjectDeletion": types.ObjectDeletionT,
    "StateChange": types.StateChangeT,
}
_OBJECTS: Final[Mapping[str, type[XmlObject]]] = {
    "ME": types.ManagedElementT,
    "EQ": types.EquipmentT,
    "EH": types.EquipmentHolderT,
    "PTP": types.PhysicalTerminationPointT,
    "TL": types.TopologicalLinkT,
}


def event_in_release1(event: CommonEventInformationType) -> XmlObject:
    """Return an event of a network as one of MTOSI 1.1, whose attributes stand alone, not in an object. `event`: of
    `Network.events`."""
    made = _release1(event, _EVENTS[event_name(event)])
    if isinstance(made, types.AttributeValueChangeT | types.StateChangeT):
        changed: Any = event
        kind = _OBJECTS[changed.object_type]
        made.attribute_list.any_ = [raw for one in changed.attribute_list.any_ for raw in _attributes(one, kind)]
    return made


def _attributes(changed: Any, cls: type[XmlObject]) -> Iterator[RawXml]:
    made = _release1(changed, cls)
    for slot in plan_of(cls.__xml__).slots.values():
        text = _text(getattr(made, slot.name))
        if text is not None:
            element = etree.Element(slot.field.tag)
            element.text = str(text).lower() if isinstance(text, bool) else str(text)
            yield RawXml.from_element(element)
