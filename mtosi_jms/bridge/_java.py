"""JacORB inside this process: its classes, its ORB, its exceptions as the SDK's errors, events to Java and back."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mtosi_jms.bridge.cdr import decode_events, decode_readable, decode_request, encode_events
from mtosi_jms.bridge.events import RefusedEvent, StructuredEvent
from mtosi_jms.errors import (
    AuthenticationError,
    ConfigError,
    EventError,
    IllegalStateError,
    MtosiError,
    NamingError,
    ResourceLimitError,
    TransportError,
    UnknownOutcomeError,
    UnsupportedQoS,
)
from mtosi_jms.jars import fetch_client
from mtosi_jms.transport.jvm import machine

_FIXED: Final = {
    "org.omg.CORBA.ORBClass": "org.jacorb.orb.ORB",
    "org.omg.CORBA.ORBSingletonClass": "org.jacorb.orb.ORBSingleton",
    "jacorb.log.default.verbosity": "0",
    "jacorb.native_wchar_codeset": "UTF16",
    "jacorb.compactTypecodes": "off",  # names within TypeCodes stay
    "jacorb.poa.thread_pool_max": "20",
    "jacorb.connection.client.retries": "1",
    "jacorb.connection.client.retry_interval": "100",
    "jacorb.retries": "1",
    "jacorb.retry_interval": "100",
}
CHARSETS: Final = {"utf-8": "UTF8", "iso-8859-1": "ISO8859_1"}
"""Charsets of texts, and their names in Java. JacORB reads a peer's answers in its own charset, whatever was
negotiated, and damages characters that its charset lacks. So it must have the peer's charset."""
_CLASSES: Final = Path(__file__).resolve().parent / "java"
"""The folder with the classes of ours that CORBA calls: no Python code runs in its threads, see `_objects`."""
_CLOSE_SECONDS: Final = 3.0
_UTIL: Final = "javax.rmi.CORBA.UtilClass"
_blocked: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class OrbOptions:
    """Options of an ORB.

    Attributes:
        listen: address at which it takes calls of channels; by default loopback.
        port: port at that address; 0: a free one.
        advertise: the host that channels get, if it differs from `listen`; empty: `listen`.
        hosts: further hosts to which references may lead.
        connect_timeout: seconds for a connection.
        call_timeout: seconds for the answer to a call.
        answer_timeout: seconds that a consumer may take for events, before the channel gets TRANSIENT.
        charset: charset of texts that are not wide, `utf-8` or `iso-8859-1`; empty: the charset that the channel
            states, or if it states none, ISO 8859-1, which loses no octet.
        keep: file that lets connections of pushing channels outlive this process. The next process with the same file
            takes them over, and gets the events that the channel kept meanwhile. It listens at the same port, unless
            `port` is set.
    """

    listen: str = "127.0.0.1"
    port: int = 0
    advertise: str = ""
    hosts: tuple[str, ...] = ()
    connect_timeout: float = 5.0
    call_timeout: float = 10.0
    answer_timeout: float = 30.0
    charset: str = ""
    keep: Path | None = None

    def __post_init__(self) -> None:
        for name in ("connect_timeout", "call_timeout", "answer_timeout"):
            if not 0 < getattr(self, name) < 86_400:
                raise ConfigError(f"{name} must be a number of seconds above 0")
        if self.charset and self.charset not in CHARSETS:
            raise ConfigError(f"charset must be one of {', '.join(CHARSETS)}, not {self.charset!r}")
        if not 0 <= self.port < 65_536:
            raise ConfigError(f"port must be 0 to 65535, not {self.port}")
        try:
            unspecified = ipaddress.ip_address(self.listen).is_unspecified
        except ValueError:
            unspecified = False
        if unspecified and not self.advertise:
            raise ConfigError(f"listen={self.listen}: say by advertise=HOST where channels find this host")


class Java:
    """The classes of JacORB. Raises MissingExtraError: JPype is not installed; ConfigError: there is no Java, or JacORB
    cannot be had."""

    def __init__(self) -> None:
        jars = fetch_client("jacorb").paths
        self.jpype = machine.start()
        machine.attach()
        self.loader = machine.loader([*jars, _CLASSES])
        self._classes: dict[str, Any] = {}
        _forbid_values(self)

    def cls(self, name: str) -> Any:
        if name not in self._classes:
            found = machine.find_class(name, self.loader)
            if found is None:
                raise ConfigError(f"JacORB's jars lack {name}: fetch them again")
            self._classes[name] = found
        return self._classes[name]

    def omg(self, name: str) -> Any:
        return self.cls(f"org.omg.{name}")


def _forbid_values(java: Java) -> None:
    """Disables the class that makes Java objects from a peer's valuetypes, before it can be used.

    JacORB asks `javax.rmi.CORBA.Util` for any class that a peer names. With a missing delegate, `Util` can never be
    initialised, so valuetypes become errors of their request.
    """
    system = java.cls("java.lang.System")
    with _blocked:
        before = system.getProperty(_UTIL)
        system.setProperty(_UTIL, "refused")
        try:
            java.cls("java.lang.Class").forName("javax.rmi.CORBA.Util", True, java.loader)
        except java.cls("java.lang.LinkageError"):
            return
        finally:
            if before is None:
                system.clearProperty(_UTIL)
            else:
                system.setProperty(_UTIL, before)
    raise ConfigError("this Java would make objects of what CORBA peers send: the ORB is not started")


class JavaOrb:
    """One ORB.

    Args:
        port, charset: in place of those in the options.
        allowed: hosts to which it may connect, a Java set; None: a new set.
        name: name of the server, part of the keys of objects that outlive it; empty if no object does.

    Raises:
        MissingExtraError, ConfigError: see `Java`.
    """

    def __init__(self, options: OrbOptions, port: int, charset: str, allowed: Any = None, name: str = "") -> None:
        self.java = Java()
        self.charset = charset
        self._root: Any = None
        self._lasting: Any = None
        self._name = name
        self._closed = False
        self._lock = threading.Lock()
        self.allowed = allowed if allowed is not None else self._no_hosts()
        properties = self.java.cls("java.util.Properties")()
        settings = _FIXED | _settings(options, port)
        settings["jacorb.native_char_codeset"] = CHARSETS[charset]
        if name:
            settings["jacorb.implname"] = name
        for name, value in settings.items():
            properties.setProperty(name, value)
        arguments = self.java.jpype.JArray(self.java.cls("java.lang.String"))([])
        with machine.blocking(), machine.context_loader(self.java.loader), translated(self.java, "the ORB"):
            self.orb = self.java.omg("CORBA.ORB").init(arguments, properties)
            self._guard_sockets()
        code_sets = self.java.cls("org.jacorb.orb.CodeSet")
        self._code_sets = (code_sets.getCodeSet(CHARSETS[charset]), code_sets.getCodeSet("UTF16"))

    def _no_hosts(self) -> Any:
        return self.java.cls("java.util.concurrent.ConcurrentHashMap").newKeySet()

    def _guard_sockets(self) -> None:
        """Makes the ORB connect only to allowed hosts, wherever a reference came from."""
        manager = self.orb.getTransportManager().getSocketFactoryManager()
        guarded = self.java.cls("mtosi_jms.corba.Guarded")(manager.getSocketFactory(), self.allowed)
        field = manager.getClass().getDeclaredField("socketFactory")
        field.setAccessible(True)
        field.set(manager, guarded)

    def allow(self, host: str) -> None:
        """Allows connections to a host, by its name and by its addresses."""
        self.allowed.add(host)
        with contextlib.suppress(OSError):  # a host without address cannot be reached either
            for found in socket.getaddrinfo(host, None):
                self.allowed.add(str(found[4][0]))

    def allows(self, host: str) -> bool:
        """Whether it may connect to a host."""
        return bool(self.allowed.contains(host))

    @contextlib.contextmanager
    def calling(self, what: str = "", *, sending: bool = False) -> Iterator[None]:
        """A context for calls of the ORB: sets its class loader and turns Java exceptions into errors of the SDK.
        `sending`: whether the outcome of a call is unknown if its connection is lost. Raises IllegalStateError: the ORB
        is closed; MtosiError: see `error_of`."""
        if self._closed:
            raise IllegalStateError("the ORB is closed")
        with machine.blocking(), machine.context_loader(self.java.loader), translated(self.java, what, sending=sending):
            yield

    def poa(self) -> Any:
        """The POA of our servants; the first call makes the ORB listen."""
        with self._lock:
            if self._root is None:
                found = self.orb.resolve_initial_references("RootPOA")
                self._root = self.java.omg("PortableServer.POAHelper").narrow(found)
                if self._name:
                    self._root, self._lasting = self._children(self._root)
                self._root.the_POAManager().activate()
            return self._root

    def _children(self, root: Any) -> tuple[Any, Any]:
        """A POA for objects of this process, and one for objects that the next process has too.

        The ORB listens already. JacORB's root POA would answer held requests with "object does not exist". So it holds
        no requests and is never active, and peers get TRANSIENT until `Servant` activates the POA of the object.
        """
        values = "PortableServer.{0}PolicyValue"
        policies = self.java.cls("java.lang.reflect.Array").newInstance(self.java.omg("CORBA.Policy"), 2)
        policies[0] = root.create_lifespan_policy(self.java.omg(values.format("Lifespan")).PERSISTENT)
        policies[1] = root.create_id_assignment_policy(self.java.omg(values.format("IdAssignment")).USER_ID)
        lasting = root.create_POA("lasting", None, policies)
        lasting.the_POAManager().discard_requests(False)
        passing = root.create_POA("passing", None, None)
        root.the_POAManager().discard_requests(False)
        return passing, lasting

    def lasting_poa(self) -> Any:
        """The POA of servants that have the same reference in the next process; takes no requests until activated."""
        self.poa()
        return self._lasting

    def leave(self) -> None:
        """Answers calls of lasting servants with TRANSIENT from now on."""
        if self._lasting is not None:
            with contextlib.suppress(MtosiError), self.calling():
                self._lasting.the_POAManager().discard_requests(False)

    def reading(self, data: bytes) -> Any:
        """A Java stream that reads CDR with texts in the ORB's charset."""
        stream = self.java.cls("org.jacorb.orb.CDRInputStream")(
            self.orb, self.java.jpype.JArray(self.java.jpype.JByte)(data)
        )
        stream.setCodeSet(*self._code_sets)
        return stream

    def writing(self) -> Any:
        """A Java stream that writes CDR with texts in the ORB's charset."""
        stream = self.orb.create_output_stream()
        stream.setCodeSets(*self._code_sets)
        return stream

    def to_java(self, events: Sequence[StructuredEvent]) -> Any:
        """Turns events into a Java array. Raises EventError: an event cannot be encoded."""
        data = encode_events(events, self.charset)
        try:
            with machine.blocking():
                return self.java.omg("CosNotification.EventBatchHelper").read(self.reading(data))
        except self.java.jpype.JException as error:
            raise EventError(f"JacORB cannot carry it: {said_by(error)}") from None

    def pushed(self, arguments: Any, *, grouped: bool, keep_refused: bool) -> list[StructuredEvent]:
        """Decodes the events in the arguments of a push request. Where one is refused, JacORB tells where the next
        begins, if it can read it. Raises EventError: an event is refused, and `keep_refused` is not set."""
        with machine.blocking():
            message, at = bytes(arguments.getBufferCopy()), int(arguments.get_pos())
        try:
            return decode_request(message, at, self.charset, grouped=grouped)
        except EventError:
            if not keep_refused:
                raise
        helper = self.java.omg(f"CosNotification.{'EventBatch' if grouped else 'StructuredEvent'}Helper")
        try:
            with machine.blocking(), translated(self.java):
                events = helper.read(arguments)
            return self.from_java(events, grouped=grouped, keep_refused=True)
        except MtosiError:
            return decode_request(message, at, self.charset, grouped=grouped, keep_refused=True)

    def from_java(self, events: Any, *, grouped: bool, keep_refused: bool = False) -> list[StructuredEvent]:
        """Turns Java events into events. `keep_refused`: whether a `RefusedEvent` replaces an event that is refused.
        Raises EventError: an event is refused, and `keep_refused` is not set."""
        listed = events if grouped else [events]
        try:
            return decode_events(self._written(listed), self.charset)
        except EventError:
            if not keep_refused:
                raise
        return [self._readable(one) for one in listed]

    def _written(self, events: Any) -> bytes:
        with machine.blocking(), translated(self.java):
            stream = self.writing()
            stream.write_long(len(events))
            for event in events:
                self.java.omg("CosNotification.StructuredEventHelper").write(stream, event)
            return bytes(stream.getBufferCopy())

    def _readable(self, event: Any) -> StructuredEvent:
        try:
            return decode_readable(self._written([event]), self.charset)[0]
        except EventError as error:  # JacORB cannot write it
            fixed = event.header.fixed_header
            kind = fixed.event_type
            return RefusedEvent(str(kind.domain_name), str(kind.type_name), str(fixed.event_name), error=error)

    def close(self) -> None:
        """Ends the ORB; returns after some seconds even if it does not end."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        work = threading.Thread(target=self._destroy, name="closes-orb", daemon=True)
        work.start()
        work.join(_CLOSE_SECONDS)

    def _destroy(self) -> None:
        with contextlib.suppress(Exception), machine.blocking(), machine.context_loader(self.java.loader):
            self.orb.shutdown(False)
            self.orb.destroy()


def _settings(options: OrbOptions, port: int) -> dict[str, str]:
    settings = {
        "OAIAddr": options.listen,
        "jacorb.connection.client.connect_timeout": str(int(options.connect_timeout * 1_000)),
        "jacorb.connection.client.pending_reply_timeout": str(int(options.call_timeout * 1_000)),
    }
    if port:
        settings["OAPort"] = str(port)
    if options.advertise:
        settings["jacorb.ior_proxy_host"] = options.advertise
    return settings


@contextlib.contextmanager
def translated(java: Java, what: str = "", *, sending: bool = False) -> Iterator[None]:
    """Turns Java exceptions into errors of the SDK; see `error_of`. Raises MtosiError: instead of the Java
    exception."""
    try:
        yield
    except java.jpype.JException as error:
        raise error_of(java, error, what, sending=sending) from None


_MISDIRECTED: Final = "BAD_PARAM BAD_OPERATION INV_OBJREF INITIALIZE InvalidName ChannelNotFound TypeError"
_UNREADABLE: Final = """
    MARSHAL DATA_CONVERSION BAD_TYPECODE NO_IMPLEMENT InvalidConstraint InvalidGrammar
    ArrayIndexOutOfBoundsException IndexOutOfBoundsException NegativeArraySizeException NumberFormatException
    NoClassDefFoundError OutOfMemoryError StackOverflowError
"""
"""The last two lines are JacORB's failures at invalid bytes; it also fails to read a fixed of 0."""
_BY_NAME: Final[dict[str, type[MtosiError]]] = {
    **dict.fromkeys(_MISDIRECTED.split(), ConfigError),
    **dict.fromkeys(_UNREADABLE.split(), EventError),
    "NO_PERMISSION": AuthenticationError,
    "AlreadyConnected": IllegalStateError,
    "AdminLimitExceeded": ResourceLimitError,
}
_LOST: Final = frozenset({"COMM_FAILURE", "TIMEOUT", "NO_RESPONSE", "UNKNOWN"})
_NO: Final = 1
"""Number of COMPLETED_NO."""


def error_of(java: Java, error: Any, what: str, *, sending: bool = False) -> MtosiError:
    """Returns the SDK's error for a Java exception."""
    name, description = str(error.getClass().getSimpleName()), said_by(error)
    text = f"{what}: {description}" if what else description
    if name == "UnsupportedQoS":
        names = [str(one.name) for one in error.qos_err]
        return UnsupportedQoS("the channel does not support it", names)
    if name in ("NotFound", "CannotProceed"):
        return NamingError(what, "the naming service does not know it")
    if name in _BY_NAME:
        return _BY_NAME[name](text)
    if sending and name in _LOST and (not hasattr(error, "completed") or int(error.completed.value()) != _NO):
        return UnknownOutcomeError(text)
    return TransportError(text)


def said_by(error: Any) -> str:
    name, message = str(error.getClass().getSimpleName()), error.getMessage()
    return name if message is None or not str(message) else f"{name}: {str(message).splitlines()[0]}"
