"""Proxies of a channel behind an ORB, and our sources and sinks that are connected to them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from mtosi_jms.bridge._java import JavaOrb
from mtosi_jms.bridge._objects import Handler, Servant, Write
from mtosi_jms.bridge.cdr import addresses_of, decode_properties, encode_properties
from mtosi_jms.bridge.endpoints import (
    EventConsumer,
    EventSupplier,
    FlowStyle,
    Grouping,
    OnAcknowledged,
    OnDisconnected,
    QoS,
)
from mtosi_jms.bridge.events import Property, StructuredEvent
from mtosi_jms.bridge.qos import QOS_TYPES, check_types
from mtosi_jms.errors import BridgeError, ConfigError, IllegalStateError, MtosiError, TransportError, UnsupportedQoS
from mtosi_jms.files import FileLock
from mtosi_jms.transport.jvm import machine

log = logging.getLogger(__package__)

_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.25


@dataclass(frozen=True, slots=True)
class KeptProxy:
    """A proxy supplier of a channel that pushes to an object of ours. `object_id`: id of our object, hexadecimal.
    `filter`: reference of its filter; empty for none."""

    proxy: str
    object_id: str
    filter: str = ""


class KeptConnections:
    """A file with the connections of one process; the next process takes them over. `name`: name of the ORB, part of
    the keys of its objects. `port`: port at which it listened; 0 if not known yet. `left`: whether the connections are
    left to the next process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        self.left = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            taken = self._lock.take()
        except OSError as error:
            raise ConfigError(f"{error.filename}: {error.strerror}") from error
        if not taken:
            raise ConfigError(f"{path}: another process has these connections")
        try:
            self.name, self.port, self._proxies = self._read()
        except BaseException:
            self._lock.close()
            raise
        self._earlier = dict(self._proxies)

    def _read(self) -> tuple[str, int, dict[str, KeptProxy]]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            proxies = {key: KeptProxy(**one) for key, one in found["proxies"].items()}
            return str(found["name"]), int(found["port"]), proxies
        except FileNotFoundError:
            return f"mtosi-{uuid4().hex}", 0, {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{self._path} cannot be read ({type(error).__name__}): remove it") from error

    def _write(self) -> None:
        proxies = {key: asdict(one) for key, one in self._proxies.items()}
        text = json.dumps({"name": self.name, "port": self.port, "proxies": proxies})
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            raise ConfigError(f"{error.filename}: {error.strerror}") from error

    def take(self, key: str) -> KeptProxy | None:
        """Takes over the connection that an earlier process had under a key; works once per key."""
        return self._earlier.pop(key, None)

    def put(self, key: str, proxy: KeptProxy, port: int) -> None:
        """Stores a connection."""
        self._proxies[key] = proxy
        self.port = port
        self._write()

    def drop(self, key: str, proxy: KeptProxy) -> None:
        """Removes a connection that has ended."""
        if self._proxies.get(key) == proxy:
            del self._proxies[key]
            with contextlib.suppress(ConfigError):  # the next process will find that the proxy is gone
                self._write()

    def close(self) -> None:
        """Releases the file for another process."""
        self._lock.close()


def qos_of(orb: JavaOrb, target: Any) -> dict[str, Any]:
    """The quality of service of a channel or proxy, by name."""
    stream = orb.writing()
    orb.java.omg("CosNotification.PropertySeqHelper").write(stream, target.get_qos())
    return {one.name: one.value for one in decode_properties(bytes(stream.getBufferCopy()))}


def set_qos(orb: JavaOrb, target: Any, qos: QoS | None) -> dict[str, Any]:
    """Sets quality of service, and reads it back. Raises UnsupportedQoS: the target refuses a property, or accepts it
    and does not keep it."""
    if qos:
        check_types({name: value for name, value in qos.items() if name in QOS_TYPES})  # the channel knows more
        java = orb.java
        raw = encode_properties([Property(name, value) for name, value in qos.items()])
        properties = java.omg("CosNotification.PropertySeqHelper").read(orb.reading(raw))
        # JacORB's proxies accept and return any property. Asked before, they name those that they do not support. For
        # supported ones the call fails, by a defect of theirs.
        with contextlib.suppress(TransportError), orb.calling():
            target.validate_qos(properties, java.omg("CosNotification.NamedPropertyRangeSeqHolder")())
        target.set_qos(properties)
    kept = qos_of(orb, target)
    lost = [name for name, value in (qos or {}).items() if name not in kept or kept[name].value != value.value]
    if lost:
        raise UnsupportedQoS("the channel accepts it and does not keep it", lost)
    return kept


_BASES: Final = {
    "consumer": ("NotifyPublish", "offer_change"),
    "supplier": ("NotifySubscribe", "subscription_change"),
}
"""The interface of which ours is derived, and its operation, which needs no answer."""


class _End:
    """The common part of sources and sinks."""

    _channel_calls: FlowStyle
    """The style in which the channel calls us."""
    _role: str
    """What our object is: `consumer` or `supplier`."""
    _their_role: str

    def __init__(
        self,
        orb: JavaOrb,
        proxy: Any,
        style: FlowStyle,
        grouping: Grouping,
        name: str,
        answer_timeout: float,
        on_end: Callable[[Any], None],
    ) -> None:
        self.style = style
        self.grouping = grouping
        self.qos: QoS = {}
        self._orb = orb
        self._proxy = proxy
        self._name = name
        self._answer_timeout = answer_timeout
        self._on_end = on_end
        self._on_disconnected: OnDisconnected | None = None
        self._servant: Servant | None = None
        self._lock = threading.Lock()
        self._connected = False
        self._suspended = False
        self._over = threading.Event()
        self._disconnected = False
        self._grouped = grouping is Grouping.SEQUENCE_EVENT
        self._word = "sequence" if self._grouped else "structured"
        self._operation = "structured_events" if self._grouped else "structured_event"
        self._kind = f"{self._word}_{style.value.lower()}"

    def _begin(self, handed: object, needed: FlowStyle, what: str) -> None:
        if (handed is not None) != (self.style is needed):
            raise IllegalStateError(f"{self._name}: {what} where the style is {needed.value}, and there only")
        with self._lock:
            self._check()
            if self._connected:
                raise IllegalStateError(f"{self._name}: connected already")
            self._connected = True

    def _serve(self, handlers: dict[str, Handler], derived: Sequence[str] = (), object_id: bytes | None = None) -> None:
        """Connects the proxy to an object of ours. `derived`: interfaces of the object beyond those of CosNotifyComm.
        Raises IllegalStateError: the proxy is connected already."""
        base, ignored = _BASES[self._role]
        ids = [f"IDL:omg.org/CosNotifyComm/{one}:1.0" for one in (self._interface, base)]
        handlers = {
            **handlers,
            f"disconnect_{self._kind}_{self._role}": lambda _: self._peer_ended(),
            ignored: lambda _: None,
        }
        self._servant = Servant(self._orb, [*derived, *ids], handlers, self._answer_timeout, object_id, self._done_late)
        self._connect()

    @property
    def _interface(self) -> str:
        return f"{self._kind.title().replace('_', '')}{self._role.title()}"

    def _connect(self) -> None:
        with self._orb.calling(self._name):
            helper = self._orb.java.omg(f"CosNotifyComm.{self._interface}Helper")
            reference = helper.unchecked_narrow(self._servant.reference if self._servant is not None else None)
            getattr(self._proxy, f"connect_{self._kind}_{self._role}")(reference)

    def _not_connected(self) -> None:
        self._connected = False
        if self._servant is not None:
            self._servant.close()

    def _done_late(self, name: str) -> None:
        """Called when an operation finished after the channel had got TRANSIENT."""

    def _peer_ended(self) -> None:
        """The channel ends the connection; called in the servant's thread."""
        if self._over.is_set():
            return
        self._over.set()
        if self._on_disconnected is not None:
            self._on_disconnected("the channel ended the connection")

    def is_connected(self) -> bool:
        """Asks the channel whether the connection exists; a suspended one does."""
        if not self._connected or self._over.is_set() or self._servant is None:
            return False
        try:
            self._connect()
        except IllegalStateError:  # AlreadyConnected
            return not self._over.is_set()
        except MtosiError:
            return False
        return True

    def _check(self) -> None:
        if self._over.is_set():
            raise IllegalStateError(f"{self._name}: disconnected")

    def _check_connected(self) -> None:
        self._check()
        if not self._connected:
            raise IllegalStateError(f"{self._name}: not connected")

    def _end(self) -> bool:
        """Ends the connection; True if it had ended before, or the channel keeps it for the next process."""
        with self._lock:
            had_ended, self._disconnected = self._disconnected, True
        was_over = self._over.is_set()
        self._over.set()
        if had_ended:
            return True
        self._on_end(self)
        left = self._is_left() and not was_over
        if not was_over and not left:
            with contextlib.suppress(MtosiError), self._orb.calling(self._name):
                getattr(self._proxy, f"disconnect_{self._kind}_{self._their_role}")()
        if self._servant is not None:
            self._servant.close(leave=left)
        return left

    def _is_left(self) -> bool:
        return False

    def suspend(self) -> None:
        """Suspends the connection until `resume`; see `mtosi_jms.bridge.endpoints`."""
        self._switch("suspend_connection", suspended=True)

    def resume(self) -> None:
        """Resumes the connection: events pass again."""
        self._switch("resume_connection", suspended=False)

    def _switch(self, operation: str, *, suspended: bool) -> None:
        self._check_connected()
        with self._lock:
            if self._suspended is suspended:
                return
            if self.style is self._channel_calls:  # else only we do
                with self._orb.calling(self._name):
                    getattr(self._proxy, operation)()
            self._suspended = suspended


class CorbaSource(_End):
    """A proxy supplier with our consumer; made by `CorbaChannel.event_source`.

    See `mtosi_jms.bridge.endpoints.EventSource`.
    """

    _channel_calls, _role, _their_role = FlowStyle.PUSH, "consumer", "supplier"
    _filter: Any = None
    _keep_refused = False
    _last: list[StructuredEvent] | None = None
    _late: list[StructuredEvent] | None = None
    _acknowledging: Any = None
    _kept: tuple[KeptConnections, str, KeptProxy | None] | None = None

    def keep(self, kept: KeptConnections, key: str, earlier: KeptProxy | None) -> None:
        """Lets the connection outlive the process."""
        self._kept = kept, key, earlier

    def _done_late(self, name: str) -> None:
        """Notes that the channel will deliver events again that are taken already."""
        if name.startswith("push_"):
            self._late = self._last

    @property
    def acknowledges(self) -> bool:
        """Whether the proxy has the interfaces of CosNotifyChannelAdminAck."""
        return self._ack_proxy() is not None

    def _ack_proxy(self) -> Any:
        if self._acknowledging is None:
            name = f"{self._word.title()}Proxy{self.style.value.title()}SupplierAck"
            self._acknowledging = False
            # An earlier process's proxy may be gone: `connect` finds that out.
            guard = contextlib.nullcontext() if self._kept is None else contextlib.suppress(MtosiError)
            with guard, self._orb.calling(self._name):
                if self._proxy._is_a(f"IDL:omg.org/CosNotifyChannelAdminAck/{name}:1.0"):
                    helper = self._orb.java.omg(f"CosNotifyChannelAdminAck.{name}Helper")
                    self._acknowledging = helper.unchecked_narrow(self._proxy)
        return self._acknowledging or None

    def keep_filter(self, made: Any) -> None:
        """Sets the filter that is removed with the source."""
        self._filter = made

    def connect(
        self,
        consumer: EventConsumer | None = None,
        on_disconnected: OnDisconnected | None = None,
        *,
        keep_refused: bool = False,
    ) -> None:
        """See `EventSource.connect`. One thread calls the consumer; if it raises, the channel gets TRANSIENT."""
        self._begin(consumer, FlowStyle.PUSH, "a consumer is needed")
        self._on_disconnected = on_disconnected
        self._keep_refused = keep_refused
        handlers: dict[str, Handler] = {}
        if consumer is not None:

            def take(arguments: Any) -> None:
                found = self._orb.pushed(arguments, grouped=self._grouped, keep_refused=keep_refused)
                if self._over.is_set():
                    raise TransportError("disconnected")
                taken_late, self._late = found == self._late, None
                if not taken_late:
                    consumer(found)
                self._last = found

            handlers[f"push_{self._operation}"] = take
        if self._kept is not None:
            self._serve_lasting(*self._kept, handlers)
            return
        try:
            self._serve(handlers)
        except BaseException:
            self._not_connected()
            raise

    def _serve_lasting(
        self, kept: KeptConnections, key: str, earlier: KeptProxy | None, handlers: dict[str, Handler]
    ) -> None:
        """Connects the proxy to an object that the next process has too, or takes over an earlier connection."""
        object_id = uuid4().bytes if earlier is None else bytes.fromhex(earlier.object_id)
        try:
            self._serve(handlers, (), object_id)
        except IllegalStateError:  # AlreadyConnected: with an object of this identity
            if earlier is None:
                raise
            with contextlib.suppress(MtosiError), self._orb.calling():  # it may be suspended
                self._proxy.resume_connection()
        except BaseException as error:
            if earlier is None or not isinstance(error, MtosiError):
                self._not_connected()
                raise
            self._over.set()
            if self._on_disconnected is not None:
                self._on_disconnected(f"{self._name} has not kept the connection of an earlier process: {error}")
        if earlier is None and self._servant is not None:
            text = self._orb.orb.object_to_string
            made = "" if self._filter is None else str(text(self._filter))
            found = KeptProxy(str(text(self._proxy)), object_id.hex(), made)
            kept.put(key, found, addresses_of(str(text(self._servant.reference)))[0][1])
            self._kept = kept, key, found

    def _is_left(self) -> bool:
        return self._kept is not None and self._kept[0].left

    def pull(self, maximum: int = 1, *, wait: bool = True, timeout: float | None = None) -> Sequence[StructuredEvent]:
        """See `EventSource.pull`.

        It calls only the channel's `try_pull`: a `pull` that ends by a time limit would lose events that come later.

        Raises:
            EventError: an event is refused, and `keep_refused` is not set; the event is lost.
        """
        if self.style is not FlowStyle.PULL:
            raise IllegalStateError(f"{self._name}: the channel pushes here")
        self._check_connected()
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while True:
            try:
                found = [] if self._suspended else self._try_pull(maximum)
            except TransportError:
                if self._over.is_set():  # disconnected meanwhile: the channel no longer has the proxy
                    return []
                raise
            left = _LONGEST_PAUSE if deadline is None else deadline - time.monotonic()
            if found or not wait or left <= 0 or self._over.wait(min(pause, left)):
                return found
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _try_pull(self, maximum: int) -> list[StructuredEvent]:
        with self._orb.calling(self._name):
            has_event = self._orb.java.omg("CORBA.BooleanHolder")()
            if self._grouped:
                events = self._proxy.try_pull_structured_events(maximum, has_event)
            else:
                events = self._proxy.try_pull_structured_event(has_event)
            if not has_event.value:
                return []
            return self._orb.from_java(events, grouped=self._grouped, keep_refused=self._keep_refused)

    def acknowledge(self, numbers: Sequence[int]) -> None:
        """See `EventSource.acknowledge`. Raises BridgeError: the channel has no acknowledgement."""
        self._check_connected()
        proxy = self._ack_proxy()
        if proxy is None:
            raise BridgeError(f"{self._name}: the channel does not have the interfaces of acknowledgement")
        with self._orb.calling(self._name):
            proxy.acknowledge(self._orb.java.jpype.JArray(self._orb.java.jpype.JInt)(list(numbers)))

    def disconnect(self) -> None:
        if self._end():
            return
        if self._kept is not None and self._kept[2] is not None:
            self._kept[0].drop(self._kept[1], self._kept[2])
        if self._filter is not None:
            made, self._filter = self._filter, None
            with contextlib.suppress(MtosiError), self._orb.calling(self._name):
                made.destroy()


class CorbaSink(_End):
    """A proxy consumer with our supplier; made by `CorbaChannel.event_sink`.

    See `mtosi_jms.bridge.endpoints.EventSink`.
    """

    _channel_calls, _role, _their_role = FlowStyle.PULL, "supplier", "consumer"
    _last: Sequence[StructuredEvent] = ()
    _late: Sequence[StructuredEvent] = ()

    def _done_late(self, name: str) -> None:
        """Notes that the channel does not have the events of the last pull."""
        if "pull_" in name:
            self._late = (*self._last, *self._late)

    def connect(
        self,
        supplier: EventSupplier | None = None,
        on_disconnected: OnDisconnected | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> None:
        """See `EventSink.connect`. One thread calls the supplier; if it raises, the channel gets TRANSIENT."""
        self._begin(supplier, FlowStyle.PULL, "a supplier is needed")
        self._on_disconnected = on_disconnected
        handlers = {} if supplier is None else self._pulled(supplier)
        derived = []
        if on_acknowledged is not None:
            derived = [f"IDL:omg.org/CosNotifyCommAck/{self._interface}Ack:1.0"]

            def acknowledged(arguments: Any) -> None:
                with machine.blocking():
                    numbers = [int(arguments.read_long()) for _ in range(int(arguments.read_long()))]
                on_acknowledged(numbers)

            handlers["acknowledge"] = acknowledged
        try:
            self._serve(handlers, derived)
        except BaseException:
            self._not_connected()
            raise

    def _pulled(self, supplier: EventSupplier) -> dict[str, Handler]:
        """The operations by which a channel pulls: one waits for an event, the other says whether there is one."""

        def pull(arguments: Any, *, wait: bool) -> Write:
            if self._over.is_set():
                raise TransportError("disconnected")
            with machine.blocking():
                maximum = max(1, int(arguments.read_long())) if self._grouped else 1
            found = () if self._suspended else self._late[:maximum] or supplier(maximum, wait)
            self._last, self._late = found, self._late[len(found) :]
            if wait and not found and not self._grouped:
                raise TransportError("there is no event")
            made = self._orb.to_java(found if found or self._grouped else [StructuredEvent()])
            helper = self._orb.java.omg(f"CosNotification.{'EventBatch' if self._grouped else 'StructuredEvent'}Helper")

            def write(out: Any) -> None:
                helper.write(out, made if self._grouped else made[0])
                if not wait:
                    out.write_boolean(bool(found))

            return write

        return {
            f"pull_{self._operation}": partial(pull, wait=True),
            f"try_pull_{self._operation}": partial(pull, wait=False),
        }

    def push(self, events: Sequence[StructuredEvent]) -> None:
        """See `EventSink.push`. Raises EventError: an event cannot be encoded, or the channel cannot take it. If events
        are not grouped, the channel has those before it; UnknownOutcomeError: the connection was lost; the channel may
        have the events."""
        if self.style is not FlowStyle.PUSH:
            raise IllegalStateError(f"{self._name}: the channel pulls here")
        self._check_connected()
        if self._suspended:
            raise IllegalStateError(f"{self._name}: suspended")
        if not events:
            return
        made = self._orb.to_java(events)
        with self._orb.calling(self._name, sending=True):
            if self._grouped:
                self._proxy.push_structured_events(made)
            else:
                for event in made:
                    self._proxy.push_structured_event(event)

    def disconnect(self) -> None:
        self._end()
