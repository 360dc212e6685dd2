"""A JMS connection over STOMP: one STOMP connection at a time, replaced when it is lost, shared by all sessions."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence

from mtosi_jms.jms import NamingContext
from mtosi_jms.transport._base import AckMode
from mtosi_jms.transport._descriptor import ConnectionMetadata
from mtosi_jms.transport._dropping import dropped
from mtosi_jms.transport._session_core import ConnectionCore
from mtosi_jms.transport.stomp._channel import Channel
from mtosi_jms.transport.stomp._options import Address, StompOptions
from mtosi_jms.transport.stomp._session import StompSession


class StompConnection(ConnectionCore):
    """A connection over STOMP, to the first broker that can be reached. Raises LoginRefusedError; ConfigError: the
    client id is in use; TransportError: no broker can be reached."""

    def __init__(self, addresses: Sequence[Address], options: StompOptions, names: NamingContext) -> None:
        super().__init__(threading.Lock(), names, options.client_id, options.send_rules)
        self.id = f"stomp-{uuid.uuid4().hex[:12]}"
        self.options = options
        self.channel = Channel(
            self.id, self.lock, addresses, options, self._on_lost, self.wake_all, self.on_reconnected
        )
        dialect = self.channel.dialect
        self.capabilities = dialect.capabilities
        self.metadata = ConnectionMetadata(dialect.provider, dialect.version, options.jms_version)

    def __del__(self) -> None:
        if hasattr(self, "metadata") and not self._closing:
            dropped(repr(self), self.close)

    def check_alive(self) -> None:
        self.channel.check_alive()

    def _is_reached(self) -> bool:
        return self.channel.link is not None

    def goodbye(self) -> float:
        return self.channel.goodbye()

    def _where(self) -> str:
        return f"{self.channel.address}, {self.metadata.provider} {self.metadata.provider_version}"

    def _session(self, ack_mode: AckMode, transacted: bool) -> StompSession:
        return StompSession(self, self.channel, ack_mode, transacted=transacted)

    def _finish(self, deadline: float) -> None:
        self.channel.close(deadline)

    def _on_lost(self) -> None:
        """Notes that a link was lost: the unsettled messages of sessions come again. The lock is held."""
        for session in self._sessions:
            self.channel.note_returned(session.unsettled)
        self.wake_all()
