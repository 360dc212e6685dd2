"""Connections of the embedded provider."""

from __future__ import annotations

from typing import Final

from mtosi_jms.jms import Destination, NamingContext
from mtosi_jms.transport._base import AckMode
from mtosi_jms.transport._completion import SendRules
from mtosi_jms.transport._descriptor import ALL_CAPABILITIES, Capability, ConnectionMetadata
from mtosi_jms.transport._session_core import ConnectionCore
from mtosi_jms.transport.memory._provider import MemoryProvider
from mtosi_jms.transport.memory._session import MemorySession

_METADATA: Final = ConnectionMetadata(provider="mtosi-jms memory", provider_version="", jms_version="2.0")
_DEFAULT_RULES: Final = SendRules()


class MemoryConnection(ConnectionCore):
    """A connection to an embedded provider. Raises ConfigError: an open connection has the client id."""

    def __init__(
        self,
        provider: MemoryProvider,
        names: NamingContext | None = None,
        *,
        client_id: str = "",
        send_rules: SendRules = _DEFAULT_RULES,
    ) -> None:
        super().__init__(provider.lock, names if names is not None else NamingContext(), client_id, send_rules)
        self.provider = provider
        self.capabilities = ALL_CAPABILITIES - {Capability.DELIVERY_DELAY}
        self.metadata = _METADATA
        with provider.lock:
            provider.admit(client_id)
            self.id = provider.new_id("connection")

    @property
    def dead_letter(self) -> Destination:
        """The provider's, be `max_deliveries` set or not."""
        return self.provider.limits.dead_letter

    def consumers(self, destination: Destination) -> int:
        with self.provider.lock:
            return self.provider.readers(destination)

    def is_gone(self, destination: Destination) -> bool:
        with self.provider.lock:
            return self.provider.is_gone(destination)

    def _where(self) -> str:
        return f"memory:{self.provider.name}"

    def _session(self, ack_mode: AckMode, transacted: bool) -> MemorySession:
        return MemorySession(self, self.provider, ack_mode, transacted=transacted)

    def _finish(self, deadline: float) -> None:
        with self.provider.lock:
            self.provider.dismiss(self.id, self.client_id)
