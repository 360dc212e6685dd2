"""The switches of the binding: what the specification leaves open or contradicts itself on, in one frozen object.

Two systems that share a profile make the same JMS message of the same envelope. The presets: `default` follows the
numbered rules; `table3` makes of the document's Figure 12 what its Table 3 prints (C01); `literal` applies R16 to every
message type (C13).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, get_args

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms._frozen import FrozenMap
from mtosi_jms.jms.message import DeliveryMode

__all__ = [
    "DEFAULT_TTL",
    "EVENT_CATEGORIES",
    "FILTER_ATTRIBUTES",
    "HOURS_24",
    "MINUTES_30",
    "OPTIONAL_FIELDS",
    "PRESETS",
    "BindingProfile",
    "Correlation",
    "FirstBatch",
    "JmsEcho",
    "ReplyToOn",
    "SenderUri",
    "SeverityForm",
    "SoapJms",
    "TimeForm",
    "TopicCategory",
    "Validation",
]

SenderUri = Literal["rule16", "always"]
ReplyToOn = Literal["request", "all"]
FirstBatch = Literal["auto", 0, 1]
TimeForm = Literal["string", "millis"]
SeverityForm = Literal["name", "code"]
Correlation = Literal["both", "xml", "jms"]
JmsEcho = Literal["message-id", "correlation-id-first"]
Validation = Literal["lenient", "strict"]
SoapJms = Literal["wsdl", "w3c", "off"]

OPTIONAL_FIELDS: Final = frozenset(
    {"destinationURI", "activityName", "vendorExtensions", "security", "securityType", "timestamp"}
)
"""The six header fields whose mapping Table 2 leaves open (R13b)."""

AttributeForm = Literal["text", "name", "aliases", "cause", "severity", "time", "boolean"]

ATTRIBUTE_FORMS: Final[Mapping[str, AttributeForm]] = {
    "EventType": "text",
    "objectName": "name",
    "objectType": "text",
    "osTime": "time",
    "sourceTime": "time",
    "isEdgePointRelated": "boolean",
    "layerRate": "text",
    "aliasNameList": "aliases",
    "probableCause": "cause",
    "probableCauseQualifier": "text",
    "nativeProbableCause": "text",
    "perceivedSeverity": "severity",
    "rootCauseAlarmIndication": "boolean",
    "acknowledgeIndication": "text",
}
"""The attributes of Table 4, and the form in which each becomes a property."""
FILTER_ATTRIBUTES: Final = frozenset(ATTRIBUTE_FORMS)
"""The fourteen attributes of Table 4 (R20a)."""

MINUTES_30: Final = 30 * 60 * 1000
HOURS_24: Final = 24 * 60 * 60 * 1000


class TopicCategory(enum.Enum):
    """The three categories of notification topics (O10a)."""

    INVENTORY = "Inventory"
    FAULT = "Fault"
    PROTECTION = "Protection"


class EventKind(NamedTuple):
    """One kind of event, a row of `EVENTS`.

    Attributes:
        name: its logical name (C27).
        elements: its elements; empty: all elements whose name ends with the logical one (`resourceObjectCreation`).
        category: routing after SD2-5; None: it goes where the caller says (C29).
        ttl: milliseconds that it lives (O7, C21).
    """

    name: str
    elements: tuple[str, ...] = ()
    category: TopicCategory | None = None
    ttl: int = HOURS_24


EVENTS: Final = (
    EventKind("ObjectCreation", category=TopicCategory.INVENTORY),
    EventKind("ObjectDeletion", category=TopicCategory.INVENTORY),
    EventKind("AttributeValueChange", category=TopicCategory.INVENTORY),
    EventKind("ObjectDiscovery", category=TopicCategory.INVENTORY),
    EventKind("StateChange", category=TopicCategory.INVENTORY),
    EventKind("AlarmInformation", ("alarm",), TopicCategory.FAULT, MINUTES_30),
    EventKind("ThresholdCrossingAlert", ("tca", "thresholdCrossingAlert"), TopicCategory.FAULT, MINUTES_30),
    EventKind("ProtectionSwitch", ("protectionSwitch",), TopicCategory.PROTECTION),
    EventKind("EquipmentProtectionSwitch", ("equipmentProtectionSwitch",), TopicCategory.PROTECTION),
    EventKind("RouteChange", ("routeChange",)),
    EventKind("Heartbeat", ("heartbeat",)),
    EventKind("FileTransferStatus", ("fileTransferStatus",)),
    EventKind("BackupStatus", ("backupStatus",)),
    EventKind("EventLossOccurred", ("eventLossOccured", "eventLossOccurred")),
    EventKind("EventLossCleared", ("eventLossCleared",)),
    EventKind("VendorNotification", ("vendorNotification",)),
)
"""All kinds of events that MTOSI has: what the binding knows of an event, it knows from here."""

EVENT_CATEGORIES: Final = FrozenMap({kind.name: kind.category for kind in EVENTS if kind.category is not None})
"""Routing after SD2-5; events of no category go where the caller says (C29)."""

DEFAULT_TTL: Final = FrozenMap(
    {
        "default": MINUTES_30,
        "NOTIFICATION": HOURS_24,
        **{kind.name: kind.ttl for kind in EVENTS if kind.ttl != HOURS_24},
    }
)
"""Milliseconds by event name, else by message type, else `default` (O7, C21)."""

_ROUTINGS: Final[dict[str, Mapping[str, TopicCategory]]] = {
    "SD2-5": EVENT_CATEGORIES,
    "figure10": FrozenMap({**EVENT_CATEGORIES, "StateChange": TopicCategory.FAULT}),
}
_CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "sender_uri": get_args(SenderUri),
    "reply_to_on": get_args(ReplyToOn),
    "first_batch": get_args(FirstBatch),
    "time_form": get_args(TimeForm),
    "severity_form": get_args(SeverityForm),
    "correlation": get_args(Correlation),
    "jms_echo": get_args(JmsEcho),
    "validation": get_args(Validation),
    "soap_jms": get_args(SoapJms),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingProfile:
    """How the binding decides. Sets and mappings are taken in any form and frozen.

    Attributes:
        sender_uri: `rule16`: MTOSI_senderURI only beside a replyToURI (R16); `always`: as Table 3 has it (C01).
        reply_to_on: `request`: JMSReplyTo on requests alone; `all`: R16 to the letter (C13).
        optional_fields: which of the six optional header fields become properties (R13b), by XML name.
        first_batch: number of the first batch: sent from 1 and read either way (`auto`), or fixed (C23).
        delivery_mode: set explicitly on every message (O6b, C20).
        ttl: milliseconds, 0 never: by event name, else by message type, else by `default`; laid over the usual table
            (C21).
        priority: JMSPriority where the header says none, 0 to 9 (R17, O7c).
        filter_properties: which attributes of Table 4 a publisher maps (R9); the same for all publishers of a system.
        time_form: osTime and sourceTime as text, or as a Long of milliseconds that selectors can compare (C33).
        severity_form: perceivedSeverity as its name, or as the number of MTOSI 1.x (C26).
        event_names: the name that MTOSI_EventType shows, by logical CamelCase name; absent ones show the logical name
            (C27).
        topic_routing: `SD2-5`, `figure10`, or a table of event name to category, laid over SD2-5 (C29).
        correlation: pair replies by the header's correlationId then JMSCorrelationID (`both`), or by one alone (O13e).
        jms_echo: JMSCorrelationID of replies: the request's JMSMessageID (O13c), or the request's own JMSCorrelationID
            where it has one, for requestors that do not learn their message ids (C62).
        validation: `lenient`: breaches in what is read are warnings; `strict`: errors.
        soap_jms: which requests and answers follow W3C's SOAP over JMS too: those of services whose WSDL names its
            transport (`wsdl`), all (`w3c`), or none (`off`).
        fault_in_header: besides the header in a fault's detail, send one in the SOAP header too (C17).

    Raises:
        ConfigError: a value that its switch does not have; the error names the switch and what there is.
    """

    sender_uri: SenderUri = "rule16"
    reply_to_on: ReplyToOn = "request"
    optional_fields: frozenset[str] = frozenset({"destinationURI", "activityName"})
    first_batch: FirstBatch = "auto"
    delivery_mode: DeliveryMode = DeliveryMode.NON_PERSISTENT
    ttl: Mapping[str, int] = field(default=DEFAULT_TTL)
    priority: int = 4
    filter_properties: frozenset[str] = frozenset({"EventType", "objectType", "perceivedSeverity"})
    time_form: TimeForm = "string"
    severity_form: SeverityForm = "name"
    event_names: Mapping[str, str] = field(default=FrozenMap())
    topic_routing: Literal["SD2-5", "figure10"] | Mapping[str, TopicCategory] = "SD2-5"
    correlation: Correlation = "both"
    jms_echo: JmsEcho = "message-id"
    validation: Validation = "lenient"
    soap_jms: SoapJms = "wsdl"
    fault_in_header: bool = False

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not any(value == choice and type(value) is type(choice) for choice in choices):
                raise ConfigError(f"{name} {value!r}: it is one of {', '.join(map(str, choices))}")
        self._freeze("optional_fields", _subset("optional_fields", self.optional_fields, OPTIONAL_FIELDS))
        self._freeze("filter_properties", _subset("filter_properties", self.filter_properties, FILTER_ATTRIBUTES))
        if type(self.fault_in_header) is not bool:
            raise ConfigError(f"fault_in_header {self.fault_in_header!r}: True or False")
        if type(self.priority) is not int or not 0 <= self.priority <= 9:
            raise ConfigError(f"priority {self.priority!r}: JMS has 0 to 9")
        try:
            self._freeze("delivery_mode", DeliveryMode(self.delivery_mode))
        except ValueError as exc:
            raise ConfigError(f"delivery_mode {self.delivery_mode!r}: NON_PERSISTENT or PERSISTENT") from exc
        self._freeze_tables()

    def _freeze_tables(self) -> None:
        for name in ("ttl", "event_names"):
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(f"{name}: must be a table")
        for name, milliseconds in self.ttl.items():
            if type(milliseconds) is not int or milliseconds < 0:
                raise ConfigError(f"ttl of {name!r}, {milliseconds!r}: whole milliseconds, 0 for never")
        self._freeze("ttl", FrozenMap({**DEFAULT_TTL, **self.ttl}))
        if not all(type(shown) is str and shown for shown in self.event_names.values()):
            raise ConfigError("event_names: each event's name is text, and not empty")
        self._freeze("event_names", FrozenMap(self.event_names))
        if isinstance(self.topic_routing, str):
            if self.topic_routing not in _ROUTINGS:
                raise ConfigError(f"topic_routing {self.topic_routing!r}: {', '.join(_ROUTINGS)}, or a table")
            return
        if not isinstance(self.topic_routing, Mapping):
            raise ConfigError(f"topic_routing: {', '.join(_ROUTINGS)}, or a table")
        try:
            table = {event: TopicCategory(category) for event, category in self.topic_routing.items()}
        except ValueError as exc:
            there = ", ".join(category.value for category in TopicCategory)
            raise ConfigError(f"topic_routing: {exc}; there are {there}") from exc
        self._freeze("topic_routing", FrozenMap(table))

    def _freeze(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def first_batch_sent(self) -> int:
        """The number that a supplier gives its first batch (C23)."""
        return 0 if self.first_batch == 0 else 1

    def time_to_live_ms(self, message_type: str, event: str = "") -> int:
        """Milliseconds to live for a msgType (`REQUEST`, ...), and for the event of a notification (O7)."""
        for key in (event, message_type):
            if key in self.ttl:
                return self.ttl[key]
        return self.ttl["default"]

    def event_name(self, event: str) -> str:
        """What MTOSI_EventType shows for the logical name of an event (C27)."""
        return self.event_names.get(event, event)

    def topic_category(self, event: str) -> TopicCategory | None:
        """The category whose topic an event belongs on; None where the caller chooses (C29)."""
        if isinstance(self.topic_routing, str):
            return _ROUTINGS[self.topic_routing].get(event)
        return self.topic_routing.get(event, EVENT_CATEGORIES.get(event))

    @classmethod
    def preset(cls, name: str) -> BindingProfile:
        """The preset `default`, `table3` or `literal`.

        Raises:
            ConfigError: there is no such preset.
        """
        if name not in PRESETS:
            raise ConfigError(f"profile {name!r}: there are {', '.join(PRESETS)}")
        return PRESETS[name]


def _subset(switch: str, chosen: Any, allowed: frozenset[str]) -> frozenset[str]:
    listed = [chosen] if isinstance(chosen, str) else chosen
    if not isinstance(listed, Iterable) or not all(isinstance(name, str) for name in listed):
        raise ConfigError(f"{switch}: must be a list of names")
    names = frozenset(listed)
    if unknown := names - allowed:
        raise ConfigError(f"{switch}: no {', '.join(sorted(unknown))}; there are {', '.join(sorted(allowed))}")
    return names


PRESETS: Final[Mapping[str, BindingProfile]] = FrozenMap(
    {
        "default": BindingProfile(),
        "table3": BindingProfile(sender_uri="always"),
        "literal": BindingProfile(reply_to_on="all"),
    }
)
