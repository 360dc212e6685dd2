"""Channels of CORBA's Notification Service, through JacORB in this process (extra `jvm`).

    with Orb() as orb:
        channel = orb.channel("corbaloc::ems:2809/NotificationService")
        source = channel.event_source(FlowStyle.PULL)
        source.connect()
        events = source.pull(timeout=5)

A channel has the interface of `mtosi_jms.bridge.endpoints`. The ORB connects only to the hosts of the given address, of
the channel found there, and of `OrbOptions.hosts`. A reference to another host is refused.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.bridge._java import JavaOrb, OrbOptions
from mtosi_jms.bridge._objects import Remote
from mtosi_jms.bridge._offered import OfferedFactory
from mtosi_jms.bridge._proxies import CorbaSink, CorbaSource, KeptConnections, KeptProxy, qos_of, set_qos
from mtosi_jms.bridge.admin import BridgeFactory
from mtosi_jms.bridge.cdr import addresses_of, code_set_of
from mtosi_jms.bridge.endpoints import FlowStyle, Grouping, QoS
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import (
    ConfigError,
    EventError,
    IllegalStateError,
    MtosiError,
    NamingError,
    ReferenceRefusedError,
    TransportError,
)

__all__ = ["CorbaChannel", "CorbaSink", "CorbaSource", "Orb", "OrbOptions"]

log = logging.getLogger(__package__)

End = TypeVar("End", bound=CorbaSource | CorbaSink)
Found = TypeVar("Found", bound=tuple[Any, ...])
_ADMIN: Final = "CosNotifyChannelAdmin"
_CHANNEL: Final = "IDL:omg.org/CosNotifyChannelAdmin/EventChannel:1.0"
_FACTORY: Final = "IDL:omg.org/CosNotifyChannelAdmin/EventChannelFactory:1.0"
_MOST_IOR: Final = BOUNDS.ior_bytes
_UTF_8: Final = "utf-8"
_LATIN_1: Final = "iso-8859-1"
_CODE_SETS: Final = {0x05010001: _UTF_8}
"""Numbers of charsets in OSF's registry; any other number means ISO 8859-1, the default of CORBA."""
_ADDRESS: Final = re.compile(
    r"(?:iiop)?:(?P<version>[0-9]\.[0-9]@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::(?P<port>[0-9]+))?"
)


class Orb(Closeable):
    """An ORB in this process, in the same Java machine as `jvm:` connections. May be used by several threads. Raises
    MissingExtraError: JPype is not installed; ConfigError: there is no Java, or JacORB's jars cannot be fetched;
    TransportError: the ORB does not start."""

    def __init__(self, options: OrbOptions | None = None) -> None:
        self.options = options or OrbOptions()
        self.kept = None if self.options.keep is None else KeptConnections(self.options.keep)
        try:
            self._orb = self._made(self.options.charset or _UTF_8, None)
        except BaseException:
            if self.kept is not None:
                self.kept.close()
            raise
        self._orbs = {self._orb.charset: self._orb}
        for host in self.options.hosts:
            self._orb.allow(host)
        self._channels: list[CorbaChannel] = []
        self._offered: list[OfferedFactory] = []

    def _made(self, charset: str, allowed: Any) -> JavaOrb:
        port, name = (0, "") if self.kept is None else (self.kept.port, self.kept.name)
        return JavaOrb(self.options, self.options.port or port, charset, allowed, name)

    def channel(self, address: str, channel_id: int | None = None, *, name: str = "") -> CorbaChannel:
        """Find a channel.

        Args:
            address: `corbaloc:...`, `corbaname:...`, `IOR:...` or the path of a file that holds the last; it refers to
                an event channel or to an event channel factory.
            channel_id: id of a factory's channel; None: its only channel.
            name: name to show in place of the address.

        Raises:
            ConfigError: no such address, neither a channel nor a factory, or not exactly one channel.
            NamingError: the naming service does not know the name.
            ReferenceRefusedError: the factory's channel is at a host that is not allowed.
            TransportError: it cannot be reached.
        """
        shown = name or _shown(address)
        text = self._read(address)
        orb, (found, found_id) = self._in_its_charset(lambda orb: self._found(orb, text, shown, channel_id))
        made = CorbaChannel(self, orb, found, shown, found_id)
        self._channels.append(made)
        return made

    def find(self, address: str, name: str = "") -> Remote:
        """Find an object of any interface. `address`: as for `channel`. `name`: if the address is that of a naming
        service, the name of the object there, as `a.b/c` of CosNaming. Raises ConfigError: no such address, or no name;
        NamingError: the naming service does not know the name; TransportError: it cannot be reached."""
        shown = f"{_shown(address)}#{name}" if name else _shown(address)
        text = self._read(address, name)
        orb, (found,) = self._in_its_charset(lambda orb: (self._object(orb, text, name, shown),))
        return Remote(orb, found, shown)

    def _read(self, address: str, name: str = "") -> str:
        text, hosts = _read_address(address, name)
        for host in hosts:
            self._orb.allow(host)
        return text

    def _object(self, orb: JavaOrb, text: str, name: str, shown: str) -> Any:
        """The object; the hosts in its reference are allowed from now on."""
        with orb.calling(shown):
            found = self._resolved(orb, text, name)
            if found is None:
                raise NamingError(shown, "it is the nil reference")
            for host, _ in self._addresses(found):
                orb.allow(host)
        return found

    def _in_its_charset(self, find: Callable[[JavaOrb], Found]) -> tuple[JavaOrb, Found]:
        """What an ORB finds, an object first; by an ORB of the charset that this object states."""
        found = find(self._orb)
        charset = self.options.charset
        if not charset:
            number = code_set_of(str(self._orb.orb.object_to_string(found[0])))
            charset = _CODE_SETS.get(number, _LATIN_1) if number is not None else _LATIN_1
        if charset == self._orb.charset:
            return self._orb, found
        if charset not in self._orbs:
            self._orbs[charset] = self._made(charset, self._orb.allowed)
        return self._orbs[charset], find(self._orbs[charset])

    def _found(self, orb: JavaOrb, text: str, shown: str, channel_id: int | None) -> tuple[Any, int]:
        found = self._object(orb, text, "", shown)
        with orb.calling(shown):
            is_factory = bool(found._is_a(_FACTORY))
            if not is_factory and not found._is_a(_CHANNEL):
                raise ConfigError(f"{shown}: neither an event channel nor an event channel factory")
            if is_factory:
                factory = orb.java.omg(f"{_ADMIN}.EventChannelFactoryHelper").unchecked_narrow(found)
                channel_id, found = self._of_factory(shown, factory, channel_id)
            elif channel_id is not None:
                raise ConfigError(f"{shown}: an event channel, and no factory that has one with the id {channel_id}")
            channel = orb.java.omg(f"{_ADMIN}.EventChannelHelper").unchecked_narrow(found)
        return channel, -1 if channel_id is None else channel_id

    def _resolved(self, orb: JavaOrb, text: str, name: str) -> Any:
        """The object of an address; if there is a name, the object of that name in the naming service."""
        scheme, _, rest = text.partition(":")
        if scheme == "corbaname":
            place, _, fragment = rest.partition("#")
            text, name = f"corbaloc:{place}", name or unquote(fragment)
        if name and text.startswith("corbaloc:") and "/" not in text:
            text = f"{text}/NameService"
        found = orb.orb.string_to_object(text)
        if not name:
            return found
        return orb.java.omg("CosNaming.NamingContextExtHelper").unchecked_narrow(found).resolve_str(name)

    def _of_factory(self, shown: str, factory: Any, channel_id: int | None) -> tuple[int, Any]:
        there = [int(one) for one in factory.get_all_channels()]
        if channel_id is None:
            if len(there) != 1:
                listed = ", ".join(map(str, there)) or "none"
                raise ConfigError(f"{shown}: its channels are {listed}: say which one")
            channel_id = there[0]
        elif channel_id not in there:
            raise ConfigError(f"{shown}: no channel {channel_id}, its channels are {', '.join(map(str, there))}")
        found = factory.get_event_channel(channel_id)
        for host, _ in self._addresses(found):
            self._orb.allow(host)
        return channel_id, found

    def _addresses(self, reference: Any) -> list[tuple[str, int]]:
        return addresses_of(str(self._orb.orb.object_to_string(reference)))

    def check(self, reference: Any) -> None:
        """Refuses a peer's reference to a host that is not allowed; does not call it. Raises ReferenceRefusedError: the
        host is not allowed."""
        for host, port in self._addresses(reference):
            if not self._orb.allows(host):
                raise ReferenceRefusedError(host, port)

    def offer(self, factory: BridgeFactory) -> str:
        """Offers a bridge factory and its bridges to CORBA clients, at `OrbOptions.listen`.

        Anyone who reaches the port can make, start, stop and destroy bridges.

        Args:
            factory: the factory; it stays open when the ORB is closed.

        Returns:
            The reference of a `CosBridgeAdmin::BridgeFactory`, `IOR:...`.
        """
        made = OfferedFactory(self._orb, factory, self.options.answer_timeout)
        self._offered.append(made)
        return made.ior

    def forget(self, channel: CorbaChannel) -> None:
        """Called by a channel that was closed."""
        if channel in self._channels:
            self._channels.remove(channel)

    def leave(self) -> None:
        """Leaves the connections in the `keep` file open at the channels on close, for the next process."""
        if self.kept is not None:
            self.kept.left = True
            for orb in self._orbs.values():
                orb.leave()

    def close(self) -> None:
        for channel in list(self._channels):
            channel.close()
        while self._offered:
            self._offered.pop().close()
        for orb in self._orbs.values():
            orb.close()
        if self.kept is not None:
            self.kept.close()


class CorbaChannel:
    """An event channel behind the ORB; made by `Orb.channel`. See `mtosi_jms.bridge.endpoints.Channel`. `channel_id`:
    its id at its factory; -1 if it was found without a factory. `name`: its address, without a reference's digits."""

    def __init__(self, orb: Orb, java_orb: JavaOrb, channel: Any, name: str, channel_id: int) -> None:
        self._owner = orb
        self._orb = java_orb
        self._channel = channel
        self.name = name
        self.channel_id = channel_id
        self._ends: list[CorbaSource | CorbaSink] = []
        self._closed = False

    @property
    def ior(self) -> str:
        with self._orb.calling(self.name):
            return str(self._orb.orb.object_to_string(self._channel))

    @property
    def qos(self) -> QoS:
        """The channel's quality of service. Raises TransportError: it cannot be reached."""
        with self._orb.calling(self.name):
            return qos_of(self._orb, self._channel)

    def event_source(
        self,
        style: FlowStyle = FlowStyle.PUSH,
        grouping: Grouping = Grouping.STRUCTURED_EVENT,
        *,
        qos: QoS | None = None,
        constraint: str = "",
    ) -> CorbaSource:
        """A new proxy supplier, as `Channel.event_source` says; for PUSH the channel calls at `OrbOptions.listen`.
        Raises ReferenceRefusedError: the proxy is at a host that is not allowed."""
        kept = self._owner.kept
        if kept is None or style is FlowStyle.PULL:
            return self._made(CorbaSource, style, grouping, qos, constraint)
        key = "\n".join((self.name, grouping.name, constraint, repr(sorted((qos or {}).items()))))
        earlier = kept.take(key)
        if earlier is not None:
            return self._earlier_source(kept, key, earlier, grouping)
        source = self._made(CorbaSource, style, grouping, qos, constraint)
        source.keep(kept, key, None)
        return source

    def _earlier_source(self, kept: KeptConnections, key: str, earlier: KeptProxy, grouping: Grouping) -> CorbaSource:
        """The source that an earlier process had; `connect` finds out whether it still exists."""
        self._check_open()
        with self._orb.calling(self.name):
            proxy = self._checked(self._orb.orb.string_to_object(earlier.proxy))
            name = "Structured" if grouping is Grouping.STRUCTURED_EVENT else "Sequence"
            proxy = self._orb.java.omg(f"{_ADMIN}.{name}ProxyPushSupplierHelper").unchecked_narrow(proxy)
            source = CorbaSource(
                self._orb, proxy, FlowStyle.PUSH, grouping, self.name, self.options.answer_timeout, self._end
            )
            if earlier.filter:
                made = self._checked(self._orb.orb.string_to_object(earlier.filter))
                source.keep_filter(self._orb.java.omg("CosNotifyFilter.FilterHelper").unchecked_narrow(made))
        with contextlib.suppress(TransportError), self._orb.calling(self.name):  # it may have gone
            source.qos = qos_of(self._orb, proxy)
        source.keep(kept, key, earlier)
        self._ends.append(source)
        return source

    def event_sink(
        self,
        style: FlowStyle = FlowStyle.PUSH,
        grouping: Grouping = Grouping.STRUCTURED_EVENT,
        *,
        qos: QoS | None = None,
    ) -> CorbaSink:
        """A new proxy consumer, as `Channel.event_sink` says; for PULL the channel asks at `OrbOptions.listen`. Raises
        ReferenceRefusedError: the proxy is at a host that is not allowed."""
        return self._made(CorbaSink, style, grouping, qos)

    def _made(
        self, kind: type[End], style: FlowStyle, grouping: Grouping, qos: QoS | None, constraint: str = ""
    ) -> End:
        self._check_open()
        java, how = self._orb.java, style.value.lower()
        theirs, ours = ("supplier", "consumer") if kind is CorbaSource else ("consumer", "supplier")
        name = "Structured" if grouping is Grouping.STRUCTURED_EVENT else "Sequence"
        with self._orb.calling(self.name):
            admin = self._checked(getattr(self._channel, f"default_{ours}_admin")())
            obtain = getattr(admin, f"obtain_notification_{how}_{theirs}")
            client = getattr(java.omg(f"{_ADMIN}.ClientType"), grouping.value)
            found = self._checked(obtain(client, java.omg("CORBA.IntHolder")()))
            helper = java.omg(f"{_ADMIN}.{name}Proxy{how.capitalize()}{theirs.capitalize()}Helper")
            proxy = helper.narrow(found)
            end = kind(self._orb, proxy, style, grouping, self.name, self.options.answer_timeout, self._end)
            try:
                end.qos = set_qos(self._orb, proxy, qos)
                if isinstance(end, CorbaSource) and constraint:
                    end.keep_filter(self._filter(proxy, constraint))
            except BaseException:
                end.disconnect()
                raise
        self._ends.append(end)
        return end

    @property
    def options(self) -> OrbOptions:
        return self._owner.options

    def _checked(self, reference: Any) -> Any:
        self._owner.check(reference)
        return reference

    def _filter(self, proxy: Any, constraint: str) -> Any:
        java = self._orb.java
        factory = self._checked(self._channel.default_filter_factory())
        made = self._checked(factory.create_filter("EXTENDED_TCL"))
        try:
            java_array = java.cls("java.lang.reflect.Array").newInstance
            types = java_array(java.omg("CosNotification.EventType"), 1)
            types[0] = java.omg("CosNotification.EventType")("*", "*")
            expressions = java_array(java.omg("CosNotifyFilter.ConstraintExp"), 1)
            expressions[0] = java.omg("CosNotifyFilter.ConstraintExp")(types, constraint)
            made.add_constraints(expressions)
            proxy.add_filter(made)
        except java.jpype.JException as error:
            with contextlib.suppress(java.jpype.JException):
                made.destroy()
            # JacORB fails with UNKNOWN at a constraint that it cannot parse.
            if str(error.getClass().getSimpleName()) not in ("InvalidConstraint", "UNKNOWN"):
                raise
            raise EventError(f"the channel refuses the constraint {constraint!r}") from None
        return made

    def _end(self, end: CorbaSource | CorbaSink) -> None:
        if end in self._ends:
            self._ends.remove(end)

    def is_alive(self) -> bool:
        try:
            with self._orb.calling(self.name):
                return not self._channel._non_existent()
        except MtosiError:
            return False

    def close(self) -> None:
        """Disconnects the sources and sinks of this object; the channel stays. May be called more than once."""
        self._closed = True
        for end in list(self._ends):
            end.disconnect()
        self._owner.forget(self)

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError(f"{self.name}: closed")


def _shown(address: str) -> str:
    return address if not address.upper().startswith("IOR:") else "IOR:..."


def _read_address(address: str, name: str = "") -> tuple[str, Sequence[str]]:
    """The address for the ORB, and the hosts in it."""
    address = address.strip()
    scheme = address.partition(":")[0].lower()
    if scheme in ("corbaloc", "corbaname"):
        return _located(address, name)
    if scheme == "ior":
        return _reference(address, "the reference")
    path = Path(address)
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_IOR + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"{address}: {why}; a channel is corbaloc:..., corbaname:... or a file with its reference"
        ) from None
    if len(raw) > _MOST_IOR:
        raise ConfigError(f"{address}: too long for a file with a reference")
    return _reference(raw.decode("utf-8-sig", "replace").strip(), address)


def _reference(text: str, what: str) -> tuple[str, Sequence[str]]:
    text = "".join(text.split())  # an editor may have wrapped it
    if text[:4].upper() == "IOR:":  # JacORB knows the prefix in capitals only
        text = f"IOR:{text[4:]}"
    try:
        return text, [host for host, _ in addresses_of(text)]
    except EventError as error:
        raise ConfigError(f"{what}: {error}") from None


def _located(address: str, name: str) -> tuple[str, Sequence[str]]:
    """An address with the version of GIOP; the default, 1.0, has no wide texts."""
    scheme, _, rest = address.partition(":")
    scheme = scheme.lower()  # JacORB knows it in small letters only
    places, found, addresses = re.split("[/#]", rest, maxsplit=1)[0], [], []
    for place in places.split(","):
        match = _ADDRESS.fullmatch(place)
        if match is None or not match["host"]:
            raise ConfigError(f"{address}: {place!r} is not an address; it is :HOST:PORT or iiop:HOST:PORT")
        if match["port"] and int(match["port"]) > 65_535:
            raise ConfigError(f"{address}: there is no port {match['port']}")
        found.append(match["host"].strip("[]"))
        port = f":{match['port']}" if match["port"] else ""
        addresses.append(f"iiop:{match['version'] or '1.2@'}{match['host']}{port}")
    if name and "#" in rest:
        raise ConfigError(f"{address}: it has a #NAME, and another name is given")
    if scheme == "corbaname" and not name and not rest.partition("#")[2]:
        raise ConfigError(f"{address}: it has no #NAME")
    return f"{scheme}:{','.join(addresses)}{rest[len(places) :]}", found
