"""Apache ActiveMQ Artemis: its jars come from Maven Central, and this module configures the instance.

The instance listens only on loopback.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from mtosi_jms.broker._process import HOST, BrokerProcess, Endpoints, KeyStores, java_command, write_private
from mtosi_jms.jars import CLIENTS, fetch

VERSION: Final = CLIENTS["artemis"].version
PROTOCOLS: Final = ("stomp", "amqp", "openwire", "mqtt")
_MAIN: Final = "org.apache.activemq.artemis.cli.Artemis"
_ACTIVE: Final = "AMQ221007"  # "Server is now active"
_PROTOCOLS: Final = {
    "stomp": "STOMP",
    "stomp+ssl": "STOMP",
    "amqp": "AMQP",
    "openwire": "OPENWIRE,CORE",
    "mqtt": "MQTT",
}
_PERMISSIONS: Final = (
    *(f"{verb}{kind}Queue" for verb in ("create", "delete") for kind in ("NonDurable", "Durable")),
    *("createAddress", "deleteAddress", "consume", "browse", "send", "manage"),
)


def jars() -> list[Path]:
    """The jars that a broker needs, including its Java client; fetched at the first call. Raises ConfigError: they are
    not available; the message says what to do."""
    return fetch("broker-artemis", "ActiveMQ Artemis")


def start(
    folder: Path, endpoints: Endpoints, *, settings: str = "", tls: KeyStores | None = None, memory_mb: int = 1_024
) -> BrokerProcess:
    """Starts a broker; it may not listen yet.

    Args:
        folder: folder of the instance; its data stay there between starts.
        endpoints: ports of `stomp`, `stomp+ssl`, `amqp`, `openwire`, `mqtt`, and the login.
        settings: elements of an `address-setting` of all addresses, as XML.
        tls: key stores for `stomp+ssl`.
        memory_mb: most memory of its Java heap, in MB; Artemis needs 200 for a text message of 20 MB.

    Raises:
        ConfigError: Java or Artemis is not available, or the folder cannot be written.
    """
    folder = Path(os.path.realpath(folder))
    etc, data, scratch = folder / "etc", folder / "data", folder / "tmp"
    properties = {
        "artemis.home": folder,
        "artemis.instance": folder,
        "artemis.instance.etc": etc,
        "data.dir": data,
        "java.io.tmpdir": scratch,
        "java.security.auth.login.config": etc / "login.config",
        "log4j2.configurationFile": etc / "log4j2.properties",
    }
    command = java_command(folder, memory_mb, jars(), properties)
    files = {
        "broker.xml": _broker(endpoints.ports, settings, tls),
        "bootstrap.xml": _bootstrap(etc / "broker.xml"),
        "management.xml": '<management-context xmlns="http://activemq.apache.org/schema"/>\n',
        "login.config": _LOGIN,
        "users.properties": f"{endpoints.user} = {endpoints.password}\n",
        "roles.properties": f"mtosi = {endpoints.user}\n",
        "log4j2.properties": _LOGGING,
    }
    write_private({etc / name: text for name, text in files.items()}, [folder, etc, data, scratch])
    # It accepts connections before it can answer them, so wait for the log line of each acceptor.
    ready = [_ACTIVE, *(f"Acceptor at {HOST}:{port} for" for port in endpoints.ports.values())]
    return BrokerProcess([*command, _MAIN, "run"], folder, endpoints, ready=ready)


def _acceptor(protocol: str, port: int, tls: KeyStores | None) -> str:
    options = [f"protocols={_PROTOCOLS[protocol]}"]
    if protocol == "stomp+ssl" and tls is not None:
        options += ["sslEnabled=true", "keyStoreType=PKCS12", f"keyStorePath={tls.key_store}"]
        options += [f"keyStorePassword={tls.password}"]
        if tls.trust_store is not None:
            options += ["needClientAuth=true", "trustStoreType=PKCS12", f"trustStorePath={tls.trust_store}"]
            options += [f"trustStorePassword={tls.password}"]
    url = f"tcp://{HOST}:{port}?{';'.join(options)}"
    return f"<acceptor name={quoteattr(protocol.replace('+', '-'))}>{url}</acceptor>"


def _broker(ports: Mapping[str, int], settings: str, tls: KeyStores | None) -> str:
    acceptors = "\n".join(_acceptor(protocol, port, tls) for protocol, port in ports.items())
    permissions = "\n".join(f'<permission type="{name}" roles="mtosi"/>' for name in _PERMISSIONS)
    return _BROKER.format(acceptors=acceptors, permissions=permissions, settings=settings)


def _bootstrap(broker: Path) -> str:
    return (
        '<broker xmlns="http://activemq.apache.org/schema">\n<jaas-security domain="activemq"/>\n'
        f"<server configuration={quoteattr(broker.as_uri())}/>\n</broker>\n"
    )


_BROKER: Final = """\
<configuration xmlns="urn:activemq">
<core xmlns="urn:activemq:core">
<name>mtosi-jms</name>
<journal-type>NIO</journal-type>
<journal-pool-files>2</journal-pool-files>
<bindings-directory>data/bindings</bindings-directory>
<journal-directory>data/journal</journal-directory>
<large-messages-directory>data/large-messages</large-messages-directory>
<paging-directory>data/paging</paging-directory>
<critical-analyzer>false</critical-analyzer>
<acceptors>
{acceptors}
</acceptors>
<security-settings>
<security-setting match="#">
{permissions}
</security-setting>
</security-settings>
<address-settings>
<address-setting match="#">
<dead-letter-address>DLQ</dead-letter-address>
<expiry-address>ExpiryQueue</expiry-address>
<management-message-attribute-size-limit>-1</management-message-attribute-size-limit>
<management-browse-page-size>2147483647</management-browse-page-size>
<max-read-page-messages>10000000</max-read-page-messages>
<max-read-page-bytes>400000000</max-read-page-bytes>
{settings}
</address-setting>
</address-settings>
<addresses>
<address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
<address name="ExpiryQueue"><anycast><queue name="ExpiryQueue"/></anycast></address>
</addresses>
</core>
</configuration>
"""

_LOGIN: Final = """\
activemq {
    org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
        org.apache.activemq.jaas.properties.user="users.properties"
        org.apache.activemq.jaas.properties.role="roles.properties";
};
"""

_LOGGING: Final = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
# Else each message that is sent, received and acknowledged is logged with its properties: 4 kB a message.
logger.audit.name = org.apache.activemq.audit
logger.audit.level = OFF
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5level [%logger] %msg%n
"""
