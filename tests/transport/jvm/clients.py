"""Connections by the Java clients of the brokers that tests start."""

from __future__ import annotations

from typing import Any

from mtosi_jms.broker import KINDS, BrokerProcess
from mtosi_jms.jms import NamingContext
from mtosi_jms.transport import Connection, connect

FACTORY = {
    "activemq": "org.apache.activemq.jndi.ActiveMQInitialContextFactory",
    "artemis": "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory",
}
_OPTIONS = {
    # Else its client waits a second before it hands out again what was rolled back, and gives up after six times.
    "activemq": "?jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.maximumRedeliveries=-1",
    "artemis": "",
}


def jndi_properties(kind: str, address: str) -> str:
    """The text of a `jndi.properties` for a broker."""
    return (
        f"java.naming.factory.initial={FACTORY[kind]}\n"
        f"java.naming.provider.url={address}\n"
        f"connectionFactory.ConnectionFactory={address}\n"
    )


def address_of(kind: str, broker: BrokerProcess) -> str:
    """Where the Java client of a broker finds it."""
    return f"tcp://127.0.0.1:{broker.endpoints.ports['openwire']}{_OPTIONS[kind]}"


def jars_of(kind: str) -> list[str]:
    """The jars of a broker's Java client."""
    return [str(path) for path in KINDS[kind].jars()]


def connect_by_java(kind: str, broker: BrokerProcess, url: str = "jvm:ConnectionFactory", **options: Any) -> Connection:
    """A connection by a broker's own Java client, stopped.

    Args:
        kind: `activemq` or `artemis`.
        broker: where to.
        url: see `connect`.
        options: the same; they win over what is needed for the broker.
    """
    given: dict[str, Any] = {
        "names": NamingContext.from_properties(jndi_properties(kind, address_of(kind, broker))),
        "classpath": jars_of(kind),
        "user": broker.endpoints.user,
        "password": broker.endpoints.password,
    }
    return connect(url, **(given | options))
