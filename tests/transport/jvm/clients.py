"""Connections by the Java clients of the brokers that tests start."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from mtosi_jms.broker import BrokerProcess, Endpoints
from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import fetch_client
from mtosi_jms.jms import NamingContext
from mtosi_jms.transport import Connection, connect

FACTORY = {
    "activemq": "org.apache.activemq.jndi.ActiveMQInitialContextFactory",
    "artemis": "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory",
    "qpid": "org.apache.qpid.jms.jndi.JmsInitialContextFactory",
}
BROKER = {"activemq": "activemq", "artemis": "artemis", "qpid": "artemis"}
"""The clients, and the broker that each is tested at."""
_PROTOCOL = {"activemq": ("tcp", "openwire"), "artemis": ("tcp", "openwire"), "qpid": ("amqp", "amqp")}
_OPTIONS = {
    # Else its client waits a second before it hands out again what was rolled back, and gives up after six times.
    "activemq": "?jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.maximumRedeliveries=-1",
    "artemis": "",
    # Else a send of a NON_PERSISTENT message returns before the broker has it, and what another session does overtakes.
    # Artemis sometimes does not confirm a drain, with which a browser ends: the client waits a minute by default.
    "qpid": "?jms.forceSyncSend=true&amqp.drainTimeout=2000",
}


def jndi_properties(kind: str, address: str) -> str:
    """The text of a `jndi.properties` for a broker."""
    where = "" if kind == "qpid" else f"java.naming.provider.url={address}\n"  # to Qpid that is a file
    return (
        f"java.naming.factory.initial={FACTORY[kind]}\n{where}"
        f"connectionfactory.ConnectionFactory={address}\n"
        f"connectionFactory.ConnectionFactory={address}\n"
    )


def address_of(kind: str, broker: BrokerProcess) -> str:
    """Where a Java client finds a broker."""
    scheme, protocol = _PROTOCOL[kind]
    return f"{scheme}://127.0.0.1:{broker.endpoints.ports[protocol]}{_OPTIONS[kind]}"


def url_of(kind: str, endpoints: Endpoints, *, port: int | None = None) -> str:
    """The URL that says all but the login.

    Args:
        kind: of the client.
        endpoints: of the broker.
        port: in place of the broker's, that of a way to it.
    """
    scheme, protocol = _PROTOCOL[kind]
    address = f"{scheme}://127.0.0.1:{port or endpoints.ports[protocol]}{_OPTIONS[kind]}"
    query = {"classpath": kind, "jndiInitialContextFactory": FACTORY[kind], "jndiURL": address}
    return f"jvm:ConnectionFactory?{urlencode(query)}"


def jars_of(kind: str) -> list[str]:
    """The jars of a Java client; skips the test where they cannot be had."""
    try:
        return [str(path) for path in fetch_client(kind).paths]
    except ConfigError as error:
        pytest.skip(str(error))


def connect_by_java(kind: str, broker: BrokerProcess, url: str = "jvm:ConnectionFactory", **options: Any) -> Connection:
    """A connection by a Java client, stopped.

    Args:
        kind: one of `FACTORY`.
        broker: where to.
        url: see `connect`.
        options: the same; they win over what is needed for the broker.
    """
    given: dict[str, Any] = {
        "names": NamingContext.from_properties(jndi_properties(kind, address_of(kind, broker))),
        "classpath": jars_of(kind),
        "user": broker.endpoints.user,
        "password": broker.endpoints.password,
        "connect_timeout": 60.0,  # Java loads its classes on a slow machine
    }
    return connect(url, **(given | options))
