"""Apache ActiveMQ Classic: its jars come from Maven Central, the configuration is ours.

The broker listens only on loopback.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from mtosi_jms.broker._process import HOST, BrokerProcess, Endpoints, KeyStores, java_command, write_private
from mtosi_jms.jars import CLIENTS, fetch

VERSION: Final = CLIENTS["activemq"].version
PROTOCOLS: Final = ("stomp", "openwire", "mqtt")
_SCHEMES: Final = {"stomp": "stomp+nio", "stomp+ssl": "stomp+ssl", "openwire": "tcp", "mqtt": "mqtt"}


def jars() -> list[Path]:
    """The jars that a broker needs, fetched at the first call. Raises ConfigError: they are not available; the message
    says what to do."""
    return fetch("broker-activemq", "ActiveMQ Classic")


def start(
    folder: Path,
    endpoints: Endpoints,
    *,
    plugins: str = "",
    settings: str = "",
    tls: KeyStores | None = None,
    memory_mb: int = 1_024,
) -> BrokerProcess:
    """Starts a broker; it may not listen yet.

    Args:
        folder: folder of the broker; its data stay there between starts.
        endpoints: ports of `stomp`, `stomp+ssl`, `openwire`, `mqtt`, and the login.
        plugins: further elements of `plugins`, as XML.
        settings: further elements of `broker`, as XML.
        tls: key stores for `stomp+ssl`.
        memory_mb: most memory of its Java heap, in MB.

    Raises:
        ConfigError: Java or ActiveMQ is not available, or the folder cannot be written.
    """
    folder = Path(os.path.realpath(folder))  # `is_ours` compares it with the command line
    configuration = folder / "activemq.xml"
    command = java_command(folder, memory_mb, jars())
    command += ["org.apache.activemq.console.command.ShellCommand", "start", f"xbean:{configuration.as_uri()}"]
    write_private({configuration: _configuration(folder, endpoints, plugins, settings, tls)}, [folder])
    return BrokerProcess(command, folder, endpoints, ready=[f"Connector {name} started" for name in endpoints.ports])


def _configuration(folder: Path, endpoints: Endpoints, plugins: str, settings: str, tls: KeyStores | None) -> str:
    connectors = "\n".join(_connector(name, port, tls) for name, port in endpoints.ports.items())
    user = f"username={quoteattr(endpoints.user)} password={quoteattr(endpoints.password)}"
    return _BROKER.format(
        data=quoteattr(str(folder / "data")),
        user=user,
        plugins=plugins,
        settings=settings,
        tls=_ssl_context(tls) if tls is not None else "",
        connectors=connectors,
    )


def _connector(name: str, port: int, tls: KeyStores | None) -> str:
    wants_certificate = name == "stomp+ssl" and tls is not None and tls.trust_store is not None
    uri = f"{_SCHEMES[name]}://{HOST}:{port}{'?needClientAuth=true' if wants_certificate else ''}"
    return f"<transportConnector name={quoteattr(name)} uri={quoteattr(uri)}/>"


def _ssl_context(tls: KeyStores) -> str:
    stores = f'keyStore={quoteattr(tls.key_store.as_uri())} keyStoreType="PKCS12"'
    stores += f" keyStorePassword={quoteattr(tls.password)}"
    if tls.trust_store is not None:
        stores += f' trustStore={quoteattr(tls.trust_store.as_uri())} trustStoreType="PKCS12"'
        stores += f" trustStorePassword={quoteattr(tls.password)}"
    return f"<sslContext><sslContext {stores}/></sslContext>"


_BROKER: Final = """\
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans
       http://www.springframework.org/schema/beans/spring-beans-2.0.xsd
       http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="mtosi-jms" useJmx="false" dataDirectory={data}
        advisorySupport="true" schedulePeriodForDestinationPurge="0">
{settings}
<plugins>
<simpleAuthenticationPlugin><users>
<authenticationUser {user} groups="mtosi"/>
</users></simpleAuthenticationPlugin>
{plugins}
</plugins>
{tls}
<transportConnectors>
{connectors}
</transportConnectors>
</broker>
</beans>
"""
