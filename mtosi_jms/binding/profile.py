"""The switches of the binding, in one immutable object: choices that the specification leaves open or contradicts.

Two systems with the same profile make the same JMS message from the same envelope. Of the presets, `default` follows
the numbered rules; `table3` maps the example of Figure 12 as Table 3 shows it (C01); `literal` applies R16 to every
message type (C13).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, get_args, runtime_checkable

from mtosi_jms.errors import ConfigError
from mtosi_jms.header import FIELDS, dialect_named
from mtosi_jms.jms import FrozenMap
from mtosi_jms.jms.message import DeliveryMode

if TYPE_CHECKING:  # a program that only receives messages needs no lxml
    from mtosi_jms.xmlbind import XmlWarning

__all__ = [
    "DEFAULT_TTL",
    "EVENT_CATEGORIES",
    "FILTER_ATTRIBUTES",
    "HOURS_24",
    "MINUTES_30",
    "OPTIONAL_FIELDS",
    "PRESETS",
    "PROPERTIES",
    "BindingProfile",
    "BodyCheck",
    "Correlation",
    "FirstBatch",
    "JmsEcho",
    "ReplyToOn",
    "SenderUri",
    "SeverityForm",
    "SoapJms",
    "TimeForm",
    "TopicCategory",
    "Validate",
    "Validation",
    "body_check",
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

OPTIONAL_FIELDS: Final = frozenset(field.name for field in FIELDS if field.property and not field.mandatory)
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
"""The attributes of Table 4, each with its form as a property."""
FILTER_ATTRIBUTES: Final = frozenset(ATTRIBUTE_FORMS)
"""The fourteen attributes of Table 4 (R20a)."""
PROPERTIES: Final = FrozenMap({name: f"MTOSI_{name}" for name in ATTRIBUTE_FORMS})
"""The properties of Table 4 by their attributes (R20a)."""

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
        elements: its XML elements, in any case; empty: all elements whose name ends with the logical name
            (`resourceObjectCreation`).
        category: topic category by SD2-5; None: the caller chooses the topic (C29).
        ttl: time to live in milliseconds (O7, C21).
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
    EventKind(
        "EquipmentProtectionSwitch", ("equipmentProtectionSwitch", "eProtectionSwitch"), TopicCategory.PROTECTION
    ),
    EventKind("RouteChange", ("routeChange",)),
    EventKind("Heartbeat", ("heartbeat",)),
    EventKind("FileTransferStatus", ("fileTransferStatus",)),
    EventKind("BackupStatus", ("backupStatus",)),
    EventKind("EventLossOccurred", ("eventLossOccured", "eventLossOccurred")),
    EventKind("EventLossCleared", ("eventLossCleared",)),
    EventKind("VendorNotification", ("vendorNotification",)),
)
"""All kinds of events in MTOSI. This is the binding's only source about events."""

EVENT_CATEGORIES: Final = FrozenMap({kind.name: kind.category for kind in EVENTS if kind.category is not None})
"""Topic categories by SD2-5. For other events the caller chooses the topic (C29)."""

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
    """The switches of the binding. Sets and mappings may be given in any form, and are made immutable.

    Attributes:
        sender_uri: `rule16`: MTOSI_senderURI is left out if JMSReplyTo comes from it (R16); `always`: never left out,
            as in Table 3 (C01).
        reply_to_on: `request`: JMSReplyTo only on requests; `all`: on every message, as R16 says literally (C13).
        optional_fields: which of the six optional header fields become properties (R13b), by XML name.
        first_batch: number of the first batch: 0, 1, or `auto`, which sends 1 and accepts both (C23).
        delivery_mode: set explicitly on every message (O6b, C20).
        ttl: times to live in milliseconds (0: never expires) by event name, else by message type, else by `default`;
            they override those of `DEFAULT_TTL` (C21).
        priority: JMSPriority if the header has none, 0 to 9 (R17, O7c).
        filter_properties: which attributes of Table 4 a publisher maps (R9); the same for all publishers of a system.
        time_form: osTime and sourceTime as text, or as a Long of milliseconds that selectors can compare (C33).
        severity_form: perceivedSeverity as its name in MTOSI 2.x, or as the number of MTOSI 1.x (C26).
        event_names: values of MTOSI_EventType by logical CamelCase name; other events show the logical name (C27).
        topic_routing: `SD2-5`, `figure10`, or a table of categories by event name, which overrides SD2-5 (C29).
        correlation: match replies by the header's correlationId (`xml`), by JMSCorrelationID (`jms`), or by the first
            and then the second (`both`) (O13e).
        jms_echo: JMSCorrelationID of replies. `message-id`: the request's JMSMessageID (O13c). `correlation-id-first`:
            the request's JMSCorrelationID if it has one, for requestors that never learn their message ids (C62).
        validation: `lenient`: breaches in received messages are warnings; `strict`: they are errors.
        soap_jms: which requests and answers also follow W3C's SOAP over JMS: those of services whose WSDL names that
            transport (`wsdl`), all (`w3c`), or none (`off`).
        header: the header of requests, and one more that is read. Empty: that of the stubs' release. `1.x` or `2.x`:
            that of a release. The Clark name of a vendor's header element (`{vendor.v1}Header`): that element, with the
            fields and attributes of 1.x. Answers always have the header of the request's form.
        fault_in_header: send the MTOSI header of a fault not only in its detail but also in the SOAP header (C17).

    Raises:
        ConfigError: a switch has an invalid value; the error names the switch and its values.
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
    header: str = ""
    fault_in_header: bool = False

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not any(value == choice and type(value) is type(choice) for choice in choices):
                raise ConfigError(f"{name} {value!r}: it is one of {', '.join(map(str, choices))}")
        self._freeze("optional_fields", _subset("optional_fields", self.optional_fields, OPTIONAL_FIELDS))
        self._freeze("filter_properties", _subset("filter_properties", self.filter_properties, FILTER_ATTRIBUTES))
        if type(self.header) is not str:
            raise ConfigError(f"header {self.header!r}: text is needed")
        if self.header:
            dialect_named(self.header)
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
            categories = ", ".join(category.value for category in TopicCategory)
            raise ConfigError(f"topic_routing: {exc}; there are {categories}") from exc
        self._freeze("topic_routing", FrozenMap(table))

    def _freeze(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def first_batch_sent(self) -> int:
        """The number that a supplier gives its first batch (C23)."""
        return 0 if self.first_batch == 0 else 1

    def time_to_live_ms(self, message_type: str, event: str = "") -> int:
        """Return the time to live in milliseconds for a msgType (`REQUEST`, ...) and a notification's event (O7)."""
        for key in (event, message_type):
            if key in self.ttl:
                return self.ttl[key]
        return self.ttl["default"]

    def event_name(self, event: str) -> str:
        """Return the value of MTOSI_EventType for the logical name of an event (C27)."""
        return self.event_names.get(event, event)

    def topic_category(self, event: str) -> TopicCategory | None:
        if isinstance(self.topic_routing, str):
            return _ROUTINGS[self.topic_routing].get(event)
        return self.topic_routing.get(event, EVENT_CATEGORIES.get(event))

    @classmethod
    def preset(cls, name: str) -> BindingProfile:
        """Return the preset `default`, `table3` or `literal`. Raises ConfigError: there is no such preset."""
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


@runtime_checkable
class BodyCheck(Protocol):
    """Checks bodies; `mtosi_jms.validation.BodyValidation` is one such check."""

    def check(self, document: bytes | str) -> list[XmlWarning]:
        """Return what is wrong with the body of an envelope. Raises DecodeError: the message must be refused."""
        ...


Validate: TypeAlias = Literal["ignore", "warn", "fail"] | BodyCheck
"""`ignore`: bodies are not checked. `warn`: what is wrong is added to the envelope's warnings. `fail`: a message that
is not valid is treated as one that cannot be read. `warn` and `fail` use the project's own schemas; a `BodyValidation`
uses the schemas that it is given."""


def body_check(validate: Validate) -> BodyCheck | None:
    """Return the check for the argument `validate` of a role; None: no check.

    Raises:
        ConfigError: `validate` is not one of its values.
        SchemaError: the project's own schemas cannot be used.
    """
    if validate == "ignore":
        return None
    if isinstance(validate, BodyCheck):
        return validate
    if validate not in ("warn", "fail"):
        raise ConfigError(f"validate {validate!r}: give ignore, warn, fail, or a BodyValidation")
    from mtosi_jms.validation import BodyValidation  # lxml's schemas are for who asks for them

    return BodyValidation(validate)
