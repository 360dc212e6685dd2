"""ActiveMQ Classic as Debian packages it: `apt-get install activemq` brings the jars; the configuration is ours.

The broker listens on loopback alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from mtosi_jms.broker.artemis import KeyStores
from mtosi_jms.broker.process import HOST, BrokerProcess, Endpoints, find_java
from mtosi_jms.errors import ConfigError

JARS: Final = Path("/usr/share/java")
_NEEDED: Final = (
    *("activemq-broker", "activemq-client", "activemq-console", "activemq-jaas", "activemq-kahadb-store"),
    *("activemq-openwire-legacy", "activemq-protobuf", "activemq-spring", "activemq-stomp"),
    *("commons-logging", "geronimo-j2ee-management-1.1-spec", "geronimo-jms_1.1_spec", "geronimo-jta-1.2-spec"),
    *("hawtbuf", "slf4j-api", "slf4j-simple", "xbean-spring"),
    *("spring3-aop", "spring3-beans", "spring3-context", "spring3-core", "spring3-expression"),
)
_SCHEMES: Final = {"stomp": "stomp+nio", "stomp+ssl": "stomp+ssl", "openwire": "tcp"}


def jars() -> list[Path]:
    """The jars that a broker needs.

    Raises:
        ConfigError: some are not there.
    """
    found = {name: JARS / f"{name}.jar" for name in _NEEDED}
    missing = [name for name, jar in found.items() if not jar.is_file()]
    if missing:
        raise ConfigError(f"ActiveMQ is not installed (no {', '.join(missing)}): on Debian, apt-get install activemq")
    return list(found.values())


def start(
    folder: Path,
    endpoints: Endpoints,
    *,
    plugins: str = "",
    settings: str = "",
    tls: KeyStores | None = None,
    memory_mb: int = 256,
) -> BrokerProcess:
    """Starts a broker; it may not listen yet.

    Args:
        folder: of the broker; its data stay there from one start to the next.
        endpoints: where to listen, of `stomp`, `stomp+ssl`, `openwire`, and the login.
        plugins: more elements of `plugins`, as XML.
        settings: more elements of `broker`, as XML.
        tls: for `stomp+ssl`.
        memory_mb: of the Java heap.

    Raises:
        ConfigError: Java or ActiveMQ are not installed, or the folder cannot be written.
    """
    java, path = find_java(), jars()
    folder = folder.resolve()
    configuration = folder / "activemq.xml"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        configuration.touch(mode=0o600)
        configuration.write_text(_configuration(folder, endpoints, plugins, settings, tls), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from error
    command = [str(java), f"-Xmx{memory_mb}m", "-XX:TieredStopAtLevel=1", "-classpath", _joined(path)]
    main = "org.apache.activemq.console.command.ShellCommand"
    return BrokerProcess([*command, main, "start", f"xbean:{configuration.as_uri()}"], folder, endpoints)


def _joined(path: Sequence[Path]) -> str:
    return ":".join(str(jar) for jar in path)


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
    asks = name == "stomp+ssl" and tls is not None and tls.trust_store is not None
    uri = f"{_SCHEMES[name]}://{HOST}:{port}{'?needClientAuth=true' if asks else ''}"
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
