"""Transport to every JMS provider with a Java client, by JNDI: `jvm:NAME`, and JMS URIs with `jndi...` parameters. The
client runs in a Java virtual machine inside this process (JPype), so types, message ids, transactions and browsing are
its own."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from typing import Any

from mtosi_jms.jms import Destination, NamingContext
from mtosi_jms.transport._base import AckMode
from mtosi_jms.transport._session_core import ConnectionCore, SessionCore
from mtosi_jms.transport._threads import dropped
from mtosi_jms.transport.jvm import machine
from mtosi_jms.transport.jvm._channel import Channel
from mtosi_jms.transport.jvm._link import Link
from mtosi_jms.transport.jvm._options import JvmOptions, Lookup, parse_url
from mtosi_jms.transport.jvm._session import JvmSession

__all__ = ["JvmConnection", "JvmOptions", "connect"]


class JndiNames:
    """The names that were looked up in JNDI, as a back-end of the naming context. It looks up no others."""

    def __init__(self, known: Mapping[str, Destination]) -> None:
        self._known = dict(known)

    def lookup(self, name: str) -> Destination | None:
        return self._known.get(name)

    def names(self) -> Mapping[str, Destination]:
        return dict(self._known)


class JvmConnection(ConnectionCore):
    """A connection by a Java provider. Raises LoginRefusedError; NamingError: JNDI does not know the connection
    factory; ConfigError: a class is missing, or the client id is in use; TransportError: the provider cannot be
    reached."""

    def __init__(self, lookup: Lookup, options: JvmOptions, names: NamingContext) -> None:
        super().__init__(threading.Lock(), names, options.client_id, options.send_rules)
        self.id = f"jvm-{uuid.uuid4().hex[:12]}"
        self.options = options
        self.channel = Channel(self.id, lookup, names.properties, options, self.lock, self)
        if self.channel.first.jndi_names:
            self.names = names.with_backends(JndiNames(self.channel.first.jndi_names))
        self.capabilities = self.channel.first.capabilities()
        self.metadata = self.channel.first.metadata()

    def __del__(self) -> None:
        if hasattr(self, "metadata") and not self._closing:
            dropped(repr(self), self.close)

    def start(self) -> None:
        machine.check_process()
        super().start()

    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> SessionCore[Any, Any]:
        machine.check_process()  # before any lock: a thread of the parent may have held it at the fork
        return super().session(ack_mode, transacted=transacted)

    def check_alive(self) -> None:
        self.channel.check_alive()

    def _is_reached(self) -> bool:
        return self.channel.is_up

    def goodbye(self) -> float:
        return self.options.goodbye()

    def _where(self) -> str:
        return f"{self.channel}, {self.metadata.provider} {self.metadata.provider_version}"

    def _session(self, ack_mode: AckMode, transacted: bool) -> JvmSession:
        return JvmSession(self, self.channel, ack_mode, transacted=transacted)

    def _finish(self, deadline: float) -> None:
        self.channel.close(deadline)

    # The methods below are for the channel.

    def is_closing(self) -> bool:
        return self._closing

    def on_lost(self, link: Link) -> None:
        for session in self._sessions:
            if isinstance(session, JvmSession):
                session.lost(link)

    def on_link(self, link: Link) -> None:
        with self.lock:
            sessions = list(self._sessions)
        for session in sessions:
            if isinstance(session, JvmSession):
                session.restore(link)


def connect(url: str, names: NamingContext, options: Mapping[str, object]) -> JvmConnection:
    """Serves `connect("jvm:...")`. Raises LoginRefusedError; NamingError: JNDI does not know the connection factory;
    ConfigError: an option is wrong, Java or a class is missing, or the client id is in use; MissingExtraError: JPype is
    not installed; TransportError: the provider cannot be reached."""
    lookup, checked = parse_url(url, options)
    del url, options  # error trackers record what stands in frames
    return JvmConnection(lookup, checked, names)
