"""Connections of the embedded provider."""

from __future__ import annotations

from typing import Final

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.jms import Destination, NamingContext
from mtosi_jms.transport._descriptor import ALL_CAPABILITIES, ConnectionMetadata
from mtosi_jms.transport.base import AckMode, Connection
from mtosi_jms.transport.completion import SendRules
from mtosi_jms.transport.memory._provider import MemoryProvider
from mtosi_jms.transport.memory._session import MemorySession

METADATA: Final = ConnectionMetadata(provider="mtosi-jms memory", provider_version="", jms_version="2.0")
DEFAULT_RULES: Final = SendRules()


class MemoryConnection(Connection):
    """A connection to an embedded provider.

    Args:
        provider: what it connects to.
        names: its naming context.
        client_id: whose durable subscriptions it has; no two open connections have the same, the empty one excepted.
        send_rules: how it sends asynchronously.

    Attributes:
        provider, send_rules: the same.
        started: whether it delivers.

    Raises:
        ConfigError: an open connection has the client id.
    """

    def __init__(
        self,
        provider: MemoryProvider,
        names: NamingContext | None = None,
        *,
        client_id: str = "",
        send_rules: SendRules = DEFAULT_RULES,
    ) -> None:
        self.names = names if names is not None else NamingContext()
        self.provider = provider
        self.client_id = client_id
        self.send_rules = send_rules
        self.capabilities = ALL_CAPABILITIES
        self.metadata = METADATA
        self.started = False
        self._closing = False
        self._closed = False
        self._sessions: dict[MemorySession, None] = {}
        with provider.lock:
            provider.admit(client_id)
            self.id = provider.new_id("connection")

    @property
    def dead_letter(self) -> Destination:
        """The provider's, be `max_deliveries` set or not."""
        return self.provider.limits.dead_letter

    def consumers(self, destination: Destination) -> int:
        """See `Connection.consumers`."""
        with self.provider.lock:
            return self.provider.readers(destination)

    def start(self) -> None:
        """See `Connection.start`."""
        with self.provider.lock:
            self._check_open()
            self.started = True
            for session in self._sessions:
                session.wake_readers()

    def stop(self) -> None:
        """See `Connection.stop`."""
        with self.provider.lock:
            self._check_open()
            self.halt()
            for session in list(self._sessions):
                session.await_listener()

    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> MemorySession:
        """See `Connection.session`."""
        with self.provider.lock:
            self._check_open()
            session = MemorySession(self, ack_mode, transacted=transacted)
            self._sessions[session] = None
            return session

    def close(self) -> None:
        """Closes its sessions and deletes its temporary destinations."""
        with self.provider.lock:
            sessions = list(self._sessions)
            for session in sessions:
                session.completions.check_thread()
            for session in sessions:
                session.begin_end()
            self._closing = True
        for session in sessions:
            session.completions.await_told()
        with self.provider.lock:
            if self._closed:
                return
            self._closed = True
            for session in list(self._sessions):
                session.await_listener()
            for session in list(self._sessions):
                session.shut()
            self.provider.dismiss(self.id, self.client_id)

    # What follows holds the lock already.

    def halt(self) -> None:
        """Holds delivery; what its readers were woken for is there for others."""
        self.started = False
        for session in self._sessions:
            session.wake_readers()

    def forget(self, session: MemorySession) -> None:
        """A session was closed."""
        self._sessions.pop(session, None)

    def _check_open(self) -> None:
        if self._closing:
            raise IllegalStateError("the connection is closed")
