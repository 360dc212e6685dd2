"""One Java connection, from its making to its loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from mtosi_jms.errors import ConfigError, MtosiError, NamingError, TransportError
from mtosi_jms.jms import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.transport._descriptor import ALL_CAPABILITIES, Capability, ConnectionMetadata
from mtosi_jms.transport.jvm import machine
from mtosi_jms.transport.jvm._messages import Api, Messages, class_name, refused_login, translated
from mtosi_jms.transport.jvm._options import JvmOptions, Lookup

_FACTORY_CLASS: Final = "java.naming.factory.initial"
_PROVIDER_URL: Final = "java.naming.provider.url"
_REFERENCE: Final = "javax.naming.Reference"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FOREIGN: Final = 1_000
"""How many reply destinations of peers are remembered."""
_COMMON: Final = frozenset({Capability.DEAD_LETTER, Capability.UNBUFFERED, Capability.COMMIT_CHECKED})
"""What no Java client has. Prefetching is set in its URL, dead letters at the broker."""
_MODERN: Final = frozenset({Capability.DELIVERY_DELAY, Capability.SHARED_DURABLE})
"""What came with JMS 2.0."""
_CLASSIC: Final = "org.apache.activemq."
_LACKING: Final[Mapping[str, frozenset[Capability]]] = {
    "org.apache.activemq.artemis.": _COMMON | {Capability.TEMPORARY_CHECKED, Capability.SAME_NAMES},
    _CLASSIC: _COMMON | {Capability.ANY_TEXT, Capability.BEYOND_BMP, Capability.BROWSE_WAITING, Capability.PRIORITY},
    "org.apache.qpid.jms.": _COMMON | {Capability.TEMPORARY_CHECKED},
}
_NAMES: Final[Mapping[str, str]] = {
    "org.apache.activemq.artemis.": "ActiveMQ Artemis",
    _CLASSIC: "ActiveMQ Classic",
    "org.apache.qpid.jms.": "AMQP 1.0",
}


class Factory:
    """A connection factory that JNDI gave, or that was made, and the Java destinations by their names in JNDI.

    Raises NamingError: JNDI does not know a name, or it leads elsewhere than to the directory of the environment;
    ConfigError: a class is missing, or what JNDI gave is of another kind; TransportError."""

    def __init__(self, lookup: Lookup, environment: Mapping[str, str], loader: Any, names: Sequence[str] = ()) -> None:
        self.name = lookup.factory
        self._loader = loader
        self.destinations: Mapping[str, Any] = {}
        if not lookup.java_class:
            self._look_up(environment, names)
            return
        with machine.context_loader(loader), translated(f"jvm:{self.name}"):
            found = machine.find_class(lookup.java_class, loader)
            if found is None:
                raise ConfigError(f"jvm:{self.name}: the classpath has no class {lookup.java_class}")
            self._java = found()
            for setter, value in lookup.setters.items():
                getattr(self._java, setter)(value)
            self.api = Api(loader, self._java)

    def _look_up(self, environment: Mapping[str, str], names: Sequence[str]) -> None:
        name, loader, java = self.name, self._loader, machine.jpype
        if _FACTORY_CLASS not in environment:
            raise ConfigError(
                f"jvm:{name}: the names say nothing of {_FACTORY_CLASS}; give connect a jndi.properties with it"
                + (", or host=, port=, channel= and queue_manager=" if name == "ibm-mq" else "")
            )
        with translated(f"jvm:{name}"):
            initial = machine.find_class(environment[_FACTORY_CLASS], loader)
        if initial is None:
            raise ConfigError(
                f"jvm:{name}: the classpath has no class {environment[_FACTORY_CLASS]}, which {_FACTORY_CLASS} names; "
                "give connect the provider's jars as classpath=[...]"
            )
        table = java.JClass("java.util.Hashtable")()
        for key, value in environment.items():
            table.put(key, value)
        for one in (name, *names):
            _check_place(one, environment)
        with machine.context_loader(loader):
            try:
                with translated(f"jvm:{name}"):
                    context = java.JClass("javax.naming.InitialContext")(table)
            except TransportError as error:
                raise refused_login(error) from None
            try:
                self._java = _found(context, name)
                with translated(f"jvm:{name}"):
                    self.api = Api(loader, self._java)
                self.destinations = {one: self._destination(context, one) for one in names}
            finally:
                with suppress(MtosiError), translated():
                    context.close()

    def _destination(self, context: Any, name: str) -> Any:
        found = _found(context, name)
        if not isinstance(found, (self.api.Queue, self.api.Topic)):
            kind = f"it is a {class_name(found)}" if hasattr(found, "getClass") else "it is another thing"
            raise NamingError(name, f"{kind}, no queue and no topic of the provider's")
        return found

    @property
    def completes_early(self) -> bool:
        """Whether listeners hear of completion before the broker has it, as by Artemis without confirmation window."""
        has_window = hasattr(self._java, "getConfirmationWindowSize")
        return has_window and int(self._java.getConfirmationWindowSize()) <= 0

    @property
    def provider(self) -> str:
        return class_name(self._java)

    def link(self, options: JvmOptions) -> Link:
        """Make a new Java connection, stopped. Raises LoginRefusedError, TransportError."""
        with machine.context_loader(self._loader):
            try:
                with translated(f"jvm:{self.name}"):
                    made = self._java.createConnection(*((options.user, options.password) if options.user else ()))
            except TransportError as error:
                raise refused_login(error) from None
            try:
                with translated(f"jvm:{self.name}, client id {options.client_id!r}"):
                    if options.client_id:
                        made.setClientID(options.client_id)
                return Link(self, made)
            except BaseException:
                with suppress(MtosiError), translated():
                    made.close()
                raise


class Link:
    """A Java connection, up or lost. `modern`: the provider has JMS 2.0. `completes`: its completion listeners wait for
    the provider. `number`: of the event by which Java reports its loss. `taken`: when it became the connection's."""

    def __init__(self, factory: Factory, java: Any) -> None:
        self._provider = factory.provider
        self.java = java
        self.api = factory.api
        with translated():
            level = java.getMetaData().getJMSMajorVersion()
        self.modern = (
            level >= 2 and _by_prefix(_NAMES, self._provider) != _NAMES[_CLASSIC]
        )  # ActiveMQ Classic reports 2.0 and does little of it
        self.completes = self.modern and not factory.completes_early
        damages_text = Capability.ANY_TEXT not in self.capabilities()
        self.messages = Messages(factory.api.Crossing, modern=self.modern, damages_text=damages_text)
        self.number = 0
        self.taken: float | None = None
        self.lost: TransportError | None = None
        self._administered: dict[Destination, Any] = {}
        self._foreign: dict[Destination, Any] = {}
        self._own: dict[Destination, Any] = {}
        self._ours: dict[str, Destination] = {}
        self._marked: dict[str, Destination] = {}
        self.jndi_names = {name: self._administer(found) for name, found in factory.destinations.items()}

    def _administer(self, java: Any) -> Destination:
        """Return our destination for one from JNDI; the Java destination is used as it is."""
        ours = self.from_java(java)
        if ours is None:
            raise ConfigError("JNDI gave a destination whose name holds a control character")
        self._administered[ours] = java
        return ours

    def metadata(self) -> ConnectionMetadata:
        with translated():
            found = self.java.getMetaData()
            name = _by_prefix(_NAMES, self._provider) or str(found.getJMSProviderName())
            level = f"{int(found.getJMSMajorVersion())}.{int(found.getJMSMinorVersion())}"
            return ConnectionMetadata(name, str(found.getProviderVersion()), level)

    def capabilities(self) -> frozenset[Capability]:
        lacking = _by_prefix(_LACKING, self._provider)
        has = ALL_CAPABILITIES - (lacking if lacking is not None else _LACKING[_CLASSIC])
        return has if self.modern else has - _MODERN

    def session(self, *, transacted: bool = False) -> Any:
        with translated():
            if transacted:
                return self.java.createSession(True, 0)
            return self.java.createSession(False, self.api.ack_mode)

    def own(self, ours: Destination, java: Any) -> None:
        self._own[ours] = java
        self._ours[name_of(java)] = ours

    def is_own(self, destination: Destination) -> bool:
        return destination in self._own

    def told(self, session: Any, queue: Any) -> int:
        """How many messages wait at a queue by the broker's own count: Artemis' browser may end before the queue does,
        while the broker reads pages from its disk. 0 where its client does not tell."""
        core = getattr(session, "getCoreSession", None)
        return int(core().queueQuery(queue.getSimpleAddress()).getMessageCount()) if core is not None else 0

    def to_java(self, destination: Destination, session: Any) -> Any:
        if destination.is_temporary:
            found = self._own.get(destination) or self._foreign.get(destination)
            if found is not None:
                return found
        elif (found := self._administered.get(destination) or self._foreign.get(destination)) is not None:
            return found
        with translated():
            made = (session.createTopic if destination.is_topic else session.createQueue)(destination.name)
        self._administered[destination] = made
        return made

    def from_java(self, java: Any) -> Destination | None:
        """Return our destination for a Java one, which is remembered for later sends; None if it has no valid name."""
        api, name = self.api, name_of(java)
        if (own := self._ours.get(name)) is not None:
            return own
        topic, temporary = isinstance(java, api.Topic), isinstance(java, (api.TemporaryQueue, api.TemporaryTopic))
        if topic and isinstance(java, api.Queue):  # WebLogic has one class for all: its types say nothing
            topic, temporary = _is_true(java, "isTopic"), False
        kinds: tuple[type[Destination], ...] = (TemporaryTopic, Topic) if topic else (TemporaryQueue, Queue)
        try:
            made = kinds[not temporary](name)
        except ConfigError:
            return None
        if len(self._foreign) >= _FOREIGN:
            self._foreign.pop(next(iter(self._foreign)))
            self._marked.clear()
        self._foreign[made] = java
        return made

    def marked(self, mark: str, get_java: Callable[[], Any]) -> Destination | None:
        """Return our destination for a mark; for an unknown mark, `get_java` returns the Java one."""
        found = self._marked.get(mark)
        if found is None and (found := self.from_java(get_java())) is not None:
            self._marked[mark] = found
        return found

    def close(self) -> None:
        with translated():
            self.java.close()

    def break_off(self) -> None:
        """Closes the socket: a write that waits there cannot be interrupted. Only ActiveMQ Classic's client writes in
        the calling thread."""
        if _by_prefix(_NAMES, self._provider) == _NAMES[_CLASSIC]:
            with suppress(AttributeError, machine.jpype.JException):
                self.java.getTransport().narrow(machine.jpype.JClass("java.net.Socket").class_).close()


def _found(context: Any, name: str) -> Any:
    """Look up a name in JNDI. Raises NamingError: nothing, or a reference that Java must not follow; LoginRefusedError;
    TransportError."""
    try:
        with translated(f"jvm:{name}"):
            found = context.lookup(name)
    except TransportError as error:
        raise refused_login(error) from None
    if found is None:
        raise NamingError(name, "JNDI knows nothing by this name")
    if hasattr(found, "getClass") and class_name(found) == _REFERENCE:
        made_by = found.getFactoryClassName()
        raise NamingError(
            name, f"JNDI has a reference, and the classpath no class {made_by} that makes an object of it"
        )
    return found


def _check_place(name: str, environment: Mapping[str, str]) -> None:
    """Raises NamingError for a URL in place of a name, because Java would connect to it."""
    scheme = _SCHEME.match(name)
    if scheme is None or scheme[1].lower() == "java":  # the names of application servers
        return
    own = _SCHEME.match(environment.get(_PROVIDER_URL, ""))
    if own is None or own[1].lower() != scheme[1].lower():
        raise NamingError(
            name.partition(":")[0],
            f"a URL in place of a name, of another scheme than {_PROVIDER_URL}: it is not followed",
        )


def name_of(java: Any) -> str:
    found = java.getQueueName() if hasattr(java, "getQueueName") else java.getTopicName()
    return "" if found is None else str(found)


def _is_true(java: Any, method: str) -> bool:
    return bool(getattr(java, method)()) if hasattr(java, method) else False


def _by_prefix(table: Mapping[str, Any], name: str) -> Any:
    return next((value for prefix, value in table.items() if name.startswith(prefix)), None)
