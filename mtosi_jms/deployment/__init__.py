"""The deployment of one OS: its interfaces and their destinations, checked before anything is opened (P21).

One destination may serve any number of interfaces, and each side chooses its destinations itself (O9). The three
figures of section 3.3 are three values of one class.
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import DEFAULT_PROFILE
from mtosi_jms.binding.profile import EVENT_CATEGORIES, TopicCategory
from mtosi_jms.closing import Closeable
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, NamingError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.jms import DeliveryMode, Destination, FrozenMap, NamingContext
from mtosi_jms.notifications import Publisher
from mtosi_jms.service import Service, SupplierBase
from mtosi_jms.service.registry import services_of
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import registered_packages

__all__ = ["Asking", "Deployment", "Problem", "Requestors", "deployment_of", "read_deployment"]

log = logging.getLogger(__package__)

Address: TypeAlias = str | Destination
S = TypeVar("S", bound=Service)

_FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "objectName": ("String", "TYPE=value joined by /, as in MD=EMS1/ME=NE-7; / = % escaped (C31)"),
    "aliasNameList": ("String", "name=value joined by ;, sorted; ; = % escaped (C31)"),
    "isEdgePointRelated": ("Boolean", "TRUE or FALSE (C26)"),
    "rootCauseAlarmIndication": ("Boolean", "TRUE or FALSE (C26)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How an OS calls one service of another OS.

    Attributes:
        destination: destination at which the supplier receives.
        reply_to: destination for replies; None: the destination of the OS's own name (R16).
        failure_reply_to: destination for failures; None: that of the other replies (P29).
        temporary_reply: whether replies arrive at a temporary queue (R2b).

    Raises:
        ConfigError: a destination is temporary, or `reply_to` and `temporary_reply` are both set.
    """

    destination: Address
    reply_to: str | None = None
    failure_reply_to: str | None = None
    temporary_reply: bool = False

    def __post_init__(self) -> None:
        _require_administered("a supplier", self.destination)
        if self.temporary_reply and self.reply_to is not None:
            raise ConfigError("give reply_to or temporary_reply, not both")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a deployment: an error if it is fatal, otherwise only unusual."""

    message: str
    fatal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The interfaces of one OS and their destinations. Destinations are names of the naming context, or destinations.

    Attributes:
        name: the OS's logical name, its senderURI.
        suppliers: for each service that the OS serves, the destination.
        requestors: for each service that the OS calls, how it calls it.
        topics: for each category that the OS publishes, the topic (O10).
        profile: the binding profile; with `validation="strict"` unusual settings are errors.
        names: the naming context for which the deployment was written; pass it to `connect`.

    Raises:
        ConfigError: there is no name, or a destination on the server's side is temporary (R2a); by methods that open
            or describe something also for each problem.
    """

    name: str
    suppliers: Mapping[str, Address] = field(default=FrozenMap())
    requestors: Mapping[str, Asking] = field(default=FrozenMap())
    topics: Mapping[TopicCategory, Address] = field(default=FrozenMap())
    profile: BindingProfile = DEFAULT_PROFILE
    names: NamingContext = field(default_factory=NamingContext, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError("a deployment needs the logical name of its OS")
        for service, address in self.suppliers.items():
            _require_administered(service, address)
        for category, address in self.topics.items():
            _require_administered(category.value, address)
        for table in ("suppliers", "requestors", "topics"):
            object.__setattr__(self, table, FrozenMap(getattr(self, table)))

    def problems(self, names: NamingContext | None = None) -> tuple[Problem, ...]:
        """All errors and unusual settings, in the order of the interfaces; by other names than the deployment's own, if
        given."""
        strict = self.profile.validation == "strict"
        found = _Check(self, self.names if names is None else names).problems()
        return tuple(Problem(problem.message, problem.fatal or strict) for problem in found)

    def verify(self, names: NamingContext | None = None) -> None:
        """Log unusual settings and refuse errors. Raises ConfigError: there are errors; the message lists all."""
        found = self.problems(names)
        for problem in found:
            if not problem.fatal:
                log.warning("deployment of %s: %s", self.name, problem.message)
        if wrong := [problem.message for problem in found if problem.fatal]:
            raise ConfigError("; ".join(wrong))

    def open_suppliers(
        self, connection: Connection, services: Sequence[SupplierBase], **options: Any
    ) -> tuple[Supplier, ...]:
        """Make one supplier for each destination, with all its services; they are not started.

        Args:
            services: an instance for each service of `suppliers`.

        Raises:
            ConfigError: the deployment has a problem, lacks one of the services, or a service lacks its instance.
        """
        self.verify(connection.names)
        given = {service.__service__.name for service in services}
        for name in sorted(given - set(self.suppliers)):
            raise ConfigError(f"the deployment serves no {name}{did_you_mean(name, self.suppliers)}")
        if missing := [name for name in self.suppliers if name not in given]:
            raise ConfigError(f"there is no instance for {', '.join(missing)}")
        groups: dict[Destination, list[SupplierBase]] = {}
        for service in services:
            groups.setdefault(connection.names.lookup(self.suppliers[service.__service__.name]), []).append(service)
        fixed = {"sender_uri": self.name, "profile": self.profile, **options}
        return tuple(Supplier(connection, destination, group, **fixed) for destination, group in groups.items())

    def open_requestors(self, connection: Connection, **options: Any) -> Requestors:
        """One requestor for each reply destination, and the stubs on them.

        Raises:
            ConfigError: the deployment has a problem.
            TransportError: the provider failed.
        """
        self.verify(connection.names)
        return Requestors(self, connection, **options)

    def open_publisher(self, connection: Connection, **options: Any) -> Publisher:
        """The publisher of the OS's topics.

        Args:
            options: further arguments of `Publisher`, such as the `system` that the OS belongs to.

        Raises:
            ConfigError: the deployment has a problem, or no topics.
        """
        self.verify(connection.names)
        return Publisher(connection, self.topics, sender_uri=self.name, profile=self.profile, **options)

    def sheet(self, names: NamingContext | None = None) -> dict[str, Any]:
        """The deployment sheet as values for JSON: what another party must know about an OS's destinations (O12b).

        It lists the destinations with their kind and purpose; the attributes of events that become properties for
        selectors, with type and form of their values (C26, C27, C31, C33); and how long messages live (O7).
        """
        self.verify(names)
        profile = self.profile
        return {
            "name": self.name,
            "destinations": list(_destinations(self, self.names if names is None else names)),
            "messages": {
                "delivery_mode": profile.delivery_mode.name,
                "priority": profile.priority,
                "time_to_live_ms": {kind: profile.time_to_live_ms(kind) for kind in ("REQUEST", "RESPONSE", "ERROR")},
            },
            "notifications": _notifications(self) if self.topics else None,
        }

    def describe(self, names: NamingContext | None = None) -> str:
        """The deployment sheet as text for people; arguments and errors are those of `sheet`."""
        return "\n".join(_lines(self.sheet(names)))


class Requestors(Closeable):
    """The open requestors of a deployment, one for each reply destination; `Deployment.open_requestors` makes it.

    A service that the deployment does not ask for is a ConfigError.

    Raises:
        TransportError: the provider failed.
    """

    def __init__(self, deployment: Deployment, connection: Connection, **options: Any) -> None:
        self._deployment = deployment
        self._by_service: dict[str, Requestor] = {}
        made: dict[object, Requestor] = {}
        fixed = {"sender_uri": deployment.name, "profile": deployment.profile, **options}
        with ExitStack() as stack:
            for service, asking in deployment.requestors.items():
                key = _ends(deployment, asking, connection.names)
                if key not in made:
                    ends = {
                        "reply_to": asking.reply_to,
                        "failure_reply_to": asking.failure_reply_to,
                        "temporary_reply": asking.temporary_reply,
                    }
                    made[key] = stack.enter_context(Requestor(connection, **{**fixed, **ends}))
                self._by_service[service] = made[key]
            self._open = stack.pop_all()

    def requestor(self, service: str) -> Requestor:
        """The requestor that receives a service's replies."""
        if service not in self._by_service:
            raise ConfigError(f"the deployment asks for no {service}; it has {', '.join(self._by_service) or 'none'}")
        return self._by_service[service]

    def stub(self, service: type[S]) -> S:
        """A stub of a generated service class, with the destinations of the deployment."""
        name = service.__service__.name
        return service(self.requestor(name), self._deployment.requestors[name].destination)

    def __iter__(self) -> Iterator[Requestor]:
        return iter(dict.fromkeys(self._by_service.values()))

    def close(self) -> None:
        """Close the requestors; the connection stays open."""
        self._open.close()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: similar names, if any."""
    close = difflib.get_close_matches(name, known, 3)
    return f"; did you mean {', '.join(close)}?" if close else ""


def _require_administered(what: str, address: Address) -> None:
    """Refuse a temporary destination on the server's side (R2a)."""
    if isinstance(address, Destination) and address.is_temporary:
        raise ConfigError(f"{what} is served from {address}: an administered destination is needed (R2a)")


def _ends(deployment: Deployment, asking: Asking, names: NamingContext) -> object:
    """The reply destinations of a requestor; services with equal ones share a requestor."""
    named = None if asking.temporary_reply else names.lookup(asking.reply_to or deployment.name)
    return named, names.lookup(asking.failure_reply_to) if asking.failure_reply_to else None


class _Check:
    def __init__(self, deployment: Deployment, names: NamingContext) -> None:
        self._deployment = deployment
        self._names = names
        self._served: dict[Destination, str] = {}
        self._receivers: dict[Destination, tuple[object, str]] = {}

    def problems(self) -> Iterator[Problem]:
        known = {service.name for package in registered_packages() for service in services_of(package)}
        for name in dict.fromkeys((*self._deployment.suppliers, *self._deployment.requestors)):
            if name not in known:
                yield Problem(f"no stubs are known for a service {name}{did_you_mean(name, known)}")
        yield from self._suppliers()
        yield from self._requestors()
        yield from self._topics()

    def _resolved(self, what: str, address: Address) -> tuple[Destination | None, list[Problem]]:
        try:
            return self._names.lookup(address), []
        except NamingError as error:
            return None, [Problem(f"{what}: {error}")]

    def _suppliers(self) -> Iterator[Problem]:
        for service, address in self._deployment.suppliers.items():
            found, problems = self._resolved(service, address)
            yield from problems
            if found is not None:
                self._served.setdefault(found, service)
                if found.is_topic:
                    yield Problem(f"{service} is served from {found}; queues are for requests (O2)", fatal=False)

    def _requestors(self) -> Iterator[Problem]:
        for service, asking in self._deployment.requestors.items():
            yield from self._resolved(service, asking.destination)[1]
            ends = [] if asking.temporary_reply else [asking.reply_to or self._deployment.name]
            ends += [asking.failure_reply_to] if asking.failure_reply_to else []
            resolved = [self._resolved(f"replies of {service}", end) for end in ends]
            for _, problems in resolved:
                yield from problems
            places = tuple(place for place, _ in resolved if place is not None)
            owner = (asking.temporary_reply, places)
            for place in places:
                yield from self._receives(service, place, owner)

    def _receives(self, service: str, place: Destination, owner: object) -> Iterator[Problem]:
        """Report queues with two owners: two consumers at one queue take each other's messages."""
        other_owner, other = self._receivers.setdefault(place, (owner, service))
        if other_owner != owner:
            yield Problem(
                f"{service} and {other} would take each other's replies from {place}: give both the same ends"
            )
        if place in self._served:
            yield Problem(f"replies of {service} and requests of {self._served[place]} both come in at {place}")

    def _topics(self) -> Iterator[Problem]:
        used: dict[Destination, str] = {place: name for place, (_, name) in self._receivers.items()}
        used |= self._served
        for category, address in self._deployment.topics.items():
            found, problems = self._resolved(category.value, address)
            yield from problems
            if found is None:
                continue
            if found in used:
                yield Problem(
                    f"{category.value} and {used[found]} share {found}; a topic is for one (O10b)", fatal=False
                )
            used.setdefault(found, category.value)
            if not found.is_topic:
                yield Problem(f"{category.value} goes to {found}; topics are for notifications (O2)", fatal=False)


def _destinations(deployment: Deployment, names: NamingContext) -> Iterator[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def add(role: str, address: Address, what: str, key: str = "services") -> None:
        destination = names.lookup(address)
        entry = found.setdefault(
            (role, str(destination)),
            _entry(role, name=names.uri_of(address), kind=destination.kind, physical=destination.name),
        )
        if what not in entry[key]:
            entry[key].append(what)

    for service, address in deployment.suppliers.items():
        add("serves", address, service)
    for service, asking in deployment.requestors.items():
        add("asks", asking.destination, service)
        if not asking.temporary_reply:
            add("replies", asking.reply_to or deployment.name, service)
        if asking.failure_reply_to:
            add("failures", asking.failure_reply_to, service)
    for category, address in deployment.topics.items():
        add("publishes", address, category.value, "categories")
    yield from found.values()
    if temporary := [service for service, asking in deployment.requestors.items() if asking.temporary_reply]:
        yield {**_entry("replies", name=None, kind="temporary-queue", physical=None), "services": temporary}


def _entry(role: str, **where: str | None) -> dict[str, Any]:
    return {**where, "role": role, "services": [], "categories": []}


def _notifications(deployment: Deployment) -> dict[str, Any]:
    profile = deployment.profile
    events = {event: profile.topic_category(event) for event in EVENT_CATEGORIES}
    return {
        "properties": [_property(name, profile) for name in sorted(profile.filter_properties)],
        "events": [
            {
                "event": profile.event_name(event),
                "category": category.value,
                "time_to_live_ms": profile.time_to_live_ms("NOTIFICATION", event),
            }
            for event, category in events.items()
            if category is not None and category in deployment.topics
        ],
        "time_to_live_ms": profile.time_to_live_ms("NOTIFICATION"),
    }


def _property(name: str, profile: BindingProfile) -> dict[str, str]:
    kind, form = _FORMS.get(name, ("String", "as the event has it"))
    if name == "EventType":
        form = "the event's name, as the events below (C27)"
    elif name in ("osTime", "sourceTime") and profile.time_form == "millis":
        kind, form = "Long", "milliseconds since 1970, can be compared (C33)"
    elif name in ("osTime", "sourceTime"):
        form = "xsd:dateTime as the event has it, for = and <> alone (C33)"
    elif name == "perceivedSeverity":
        by_code = profile.severity_form == "code"
        form = "number of MTOSI 1.x, from '0' INDETERMINATE to '5' CLEARED (C26)" if by_code else "its name (C26)"
    return {"property": f"MTOSI_{name}", "type": kind, "form": form}


def _lines(sheet: Mapping[str, Any]) -> Iterator[str]:
    yield f"deployment of {sheet['name']}"
    for entry in sheet["destinations"]:
        what = ", ".join((*entry["services"], *entry["categories"]))
        where = f"{entry['name']} ({entry['kind']} {entry['physical']})" if entry["name"] else "a temporary queue"
        yield f"{entry['role']} {what} at {where}"
    messages = sheet["messages"]
    lives = ", ".join(f"{kind} {_life(life)}" for kind, life in messages["time_to_live_ms"].items())
    yield f"messages are {messages['delivery_mode']}, priority {messages['priority']}; they live: {lives}"
    notifications = sheet["notifications"]
    if notifications is None:
        return
    if not notifications["properties"]:
        yield "no attribute of an event becomes a property"
    for entry in notifications["properties"]:
        yield f"{entry['property']} {entry['type']}: {entry['form']}"
    for entry in notifications["events"]:
        yield f"{entry['event']} on {entry['category']} lives {_life(entry['time_to_live_ms'])}"
    yield f"other events live {_life(notifications['time_to_live_ms'])}"


def _life(milliseconds: int) -> str:
    if milliseconds == 0:
        return "for ever"
    for unit, size in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"


_KEYS: Final = ("name", "names", "suppliers", "requestors", "topics", "profile")


def read_deployment(path: str | os.PathLike[str]) -> Deployment:
    """Read the deployment in a TOML file; `names` may be a file in the same folder. Raises ConfigError: the file cannot
    be read, or is not a deployment."""
    file = Path(path)
    try:
        table = tomllib.loads(read_file(file).decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{file}: the deployment cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file}: not TOML: {error}") from error
    if isinstance(table.get("names"), str):
        table["names"] = NamingContext.of(file.parent / table["names"])
    try:
        return deployment_of(table)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


def deployment_of(table: Mapping[str, Any]) -> Deployment:
    """Make a deployment from a mapping. Raises ConfigError: a key or value is not valid in a deployment."""
    _only("a deployment", table, _KEYS)
    name = table.get("name")
    if not isinstance(name, str):
        raise ConfigError('a deployment needs the logical name of its OS: name = "jms/OS"')
    return Deployment(
        name=name,
        suppliers={service: _address(service, value) for service, value in _table(table, "suppliers").items()},
        requestors={service: _asking(service, value) for service, value in _table(table, "requestors").items()},
        topics={_category(key): _address(key, value) for key, value in _table(table, "topics").items()},
        profile=_profile(table.get("profile", {})),
        names=NamingContext.of(table.get("names")),
    )


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key} must be a table")
    return value


def _only(what: str, table: Mapping[str, Any], allowed: Iterable[str]) -> None:
    allowed = list(allowed)
    for key in table:
        if key not in allowed:
            hint = did_you_mean(key, allowed) or f"; there are {', '.join(allowed)}"
            raise ConfigError(f"{what} has no {key!r}{hint}")


def _address(what: str, value: object) -> Address:
    if isinstance(value, Destination) or (isinstance(value, str) and value.strip()):
        return value
    raise ConfigError(f"{what} must be the name of a destination")


def _asking(service: str, value: object) -> Asking:
    if isinstance(value, Asking):
        return value
    if not isinstance(value, Mapping):
        return Asking(destination=_address(service, value))
    _only(f"requestors.{service}", value, [entry.name for entry in dataclasses.fields(Asking)])
    if "destination" not in value:
        raise ConfigError(f"requestors.{service}: it needs a destination")
    for key in ("reply_to", "failure_reply_to"):
        if key in value and not (isinstance(value[key], str) and value[key].strip()):
            raise ConfigError(f"requestors.{service}: {key} must be the name of a destination")
    if type(value.get("temporary_reply", False)) is not bool:
        raise ConfigError(f"requestors.{service}: temporary_reply must be true or false")
    _address(service, value["destination"])
    try:
        return Asking(**value)
    except ConfigError as error:
        raise ConfigError(f"requestors.{service}: {error}") from error


def _category(key: object) -> TopicCategory:
    try:
        return TopicCategory(key)
    except ValueError:
        there = ", ".join(category.value for category in TopicCategory)
        raise ConfigError(f"topics: no category {key!r}; there are {there}") from None


def _profile(value: object) -> BindingProfile:
    if isinstance(value, BindingProfile):
        return value
    if isinstance(value, str):
        return BindingProfile.preset(value)
    if not isinstance(value, Mapping):
        raise ConfigError("profile must be a table or the name of a preset")
    _only("profile", value, [entry.name for entry in dataclasses.fields(BindingProfile)])
    switches = dict(value)
    mode = switches.get("delivery_mode")
    if isinstance(mode, str) and mode in DeliveryMode.__members__:
        switches["delivery_mode"] = DeliveryMode[mode]
    return BindingProfile(**switches)
