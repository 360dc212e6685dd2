"""A Java JMS client in a process of its own, told what to do line by line: see JmsPeer.java."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mtosi_jms.broker import BrokerProcess

from ..java_tools import JavaPeer

PATIENCE = 60.0
"""Seconds after which an answer that has not come is taken to hang."""

FACTORY = {
    "activemq": "org.apache.activemq.ActiveMQConnectionFactory",
    "artemis": "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory",
}
"""The connection factories of the brokers' own clients."""


def at_broker(factory: str, broker: BrokerProcess) -> list[str]:
    """Arguments of a Java program: class of the connection factory, URL, user. The password goes over stdin."""
    return [factory, f"tcp://127.0.0.1:{broker.endpoints.ports['openwire']}", broker.endpoints.user]


class Peer(JavaPeer):
    """One Java client, logged in.

    Args:
        command: runs its class.
        factory: class of the connection factory.
        broker: where it is.
        folder: for the texts of messages, and for what the program complains of.
    """

    def __init__(self, command: Sequence[str], factory: str, broker: BrokerProcess, folder: Path) -> None:
        super().__init__([*command, *at_broker(factory, broker)], folder, PATIENCE + 30, broker.endpoints.password)

    def receive(self, consumer: str, seconds: float = PATIENCE) -> dict[str, str] | None:
        """What the program sees of the next message; None where none comes in time. Properties stand in it under their
        names, as `Class value`."""
        told = self.ask("receive", consumer, str(int(seconds * 1000)))
        if told == [["none"]]:
            return None
        properties = {line[1]: " ".join(line[2:]) for line in told if line[0] == "property"}
        return properties | {line[0]: " ".join(line[1:]) for line in told if line[0] != "property"}

    def send(self, where: str, text: str | bytes, *settings: str, kind: str = "text", reply_to: str = "") -> str:
        """Send a message; its JMSMessageID."""
        ((_, identifier),) = self.ask("send", where, reply_to, kind, self.file(text), *settings)
        return identifier
