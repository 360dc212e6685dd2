"""Apache ActiveMQ Classic: the jars of Debian's package `activemq` or of Maven Central; the configuration is ours.

The broker listens only on loopback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from mtosi_jms.broker._process import HOST, BrokerProcess, Endpoints, KeyStores, java_command, write_private
from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import CLIENTS, cached, fetch

JARS: Final = Path("/usr/share/java")
VERSION: Final = CLIENTS["activemq"].version
_OURS: Final = ("broker", "client", "console", "jaas", "kahadb-store", "openwire-legacy", "spring", "stomp")
_DEBIAN: Final = (
    *(f"activemq-{name}" for name in (*_OURS, "protobuf")),
    *("commons-logging", "geronimo-j2ee-management-1.1-spec", "geronimo-jms_1.1_spec", "geronimo-jta-1.2-spec"),
    *("hawtbuf", "slf4j-api", "slf4j-simple", "xbean-spring"),
    *("spring3-aop", "spring3-beans", "spring3-context", "spring3-core", "spring3-expression"),
)
_MAVEN: Final = (
    *(f"org.apache.activemq:activemq-{name}:{VERSION}" for name in _OURS),
    "org.apache.activemq.protobuf:activemq-protobuf:1.1",
    "org.apache.geronimo.specs:geronimo-j2ee-management_1.1_spec:1.0.1",
    "org.apache.geronimo.specs:geronimo-jms_1.1_spec:1.1.1",
    "org.apache.geronimo.specs:geronimo-jta_1.1_spec:1.1.1",
    "org.apache.xbean:xbean-spring:4.24",
    "org.fusesource.hawtbuf:hawtbuf:1.11",
    *(f"org.slf4j:slf4j-{name}:1.7.36" for name in ("api", "simple")),
    *(f"org.springframework:spring-{name}:5.3.39" for name in ("aop", "beans", "context", "core", "expression", "jcl")),
)
_SHA256: Final = {
    **{name: digest for name, digest in CLIENTS["activemq"].hashes.items() if not name.startswith("slf4j-nop")},
    "activemq-broker-5.17.6.jar": "3688f17b52ca8ac9803dc5e3322c9ee7a77c455a86242fddeb95dd99112ef2c5",
    "activemq-console-5.17.6.jar": "f74378e2e549b698205860d4baa8492f6cbc6bcbc72867eb3906a1c73139b468",
    "activemq-jaas-5.17.6.jar": "877bf65ed9be9de5bdf865b05b0807a533be17457a0a1e0694db137f2ff54f4f",
    "activemq-kahadb-store-5.17.6.jar": "6560c94230864e9334e854eef86b7e088f8209c6593b0cfebcb476f722bb5116",
    "activemq-openwire-legacy-5.17.6.jar": "9a7668edb947c819e87d8b99be7cd81c7ba4b3d60a3cb531e2487616fb459f3b",
    "activemq-protobuf-1.1.jar": "8323444e48a1920afe37b5f24b6dc139f35793e8a87fa178f6d9c8f92a6f39d1",
    "activemq-spring-5.17.6.jar": "751b973d7f16a84ee0761752a92ec1c1de7134421f2e7221201366bee49b0172",
    "activemq-stomp-5.17.6.jar": "2a22f1e493ffd87500c618d7cce1c9200ec241a271d6b24a43654482b03055ee",
    "geronimo-jta_1.1_spec-1.1.1.jar": "3a0c3c1bbc2efe8383969574922791959670ef547d6c897496915617025c3023",
    "slf4j-simple-1.7.36.jar": "2f39bed943d624dfa8f4102d0571283a10870b6aa36f197a8a506f147010c10f",
    "spring-aop-5.3.39.jar": "aa706e4f749982c0bae5fa637433c44c24f0fff5d16dc41deea6d30c3dfa7c85",
    "spring-beans-5.3.39.jar": "b6697a5d8facb81aa75e5a46d959d4256da9ce3b40d33f3b5bbd42a8b1ed5722",
    "spring-context-5.3.39.jar": "9e644fc33bece9a9cb82538167a1b9640ae7b7d80252e893d89b8926a2f81633",
    "spring-core-5.3.39.jar": "3a1ddcf05420a9181bd9cacb6062a3edc493e14d555961ad50e1a6360eb1e75f",
    "spring-expression-5.3.39.jar": "d5337774d889fcdc9c08b0c8b8aaa1018d4c95b9b441db0118f7ae4d328f2810",
    "spring-jcl-5.3.39.jar": "adbe656fc622e2457fefa09529d4b7c1126a3c4ff1c9306907764fcc93f1b725",
    "xbean-spring-4.24.jar": "fd612fa2a20cbb4a3974dd1a53eac96a4f145ced7f2bd771badb7c69309ef513",
}
_INSTEAD: Final = "on Debian and Ubuntu, apt-get install activemq"
_MQTT_DEBIAN: Final = ("activemq-mqtt", "mqtt-client")
_MQTT_MAVEN: Final = (f"org.apache.activemq:activemq-mqtt:{VERSION}", "org.fusesource.mqtt-client:mqtt-client:1.16")
_MQTT_SHA256: Final = {
    "activemq-mqtt-5.17.6.jar": "931f90cf7713fdd21ef9b4b8445a1892b5840066b316614602ff34996d2763c4",
    "mqtt-client-1.16.jar": "ef80b92ac0e5538c4025e98473ade0f398db57ea52f7479376220173d9d2ccb6",
}
_MQTT_INSTEAD: Final = "on Debian and Ubuntu, apt-get install activemq libmqtt-client-java"
_SCHEMES: Final = {"stomp": "stomp+nio", "stomp+ssl": "stomp+ssl", "openwire": "tcp", "mqtt": "mqtt"}


def jars() -> list[Path]:
    """The jars that a broker needs: Debian's if they are installed, else Maven's, fetched at the first call.

    Raises:
        ConfigError: they are not available; the message says what to do.
    """
    return _had(
        _DEBIAN, f"apache-activemq-{VERSION}", _SHA256, lambda scratch: fetch(_MAVEN, _SHA256, scratch, _INSTEAD)
    )


def mqtt_jars() -> list[Path]:
    """The further jars that a broker needs for MQTT: Debian's or Maven's, as for `jars`.

    Raises:
        ConfigError: they are not available; the message says what to do.
    """
    return _had(
        _MQTT_DEBIAN,
        f"activemq-mqtt-{VERSION}",
        _MQTT_SHA256,
        lambda scratch: fetch(_MQTT_MAVEN, _MQTT_SHA256, scratch, _MQTT_INSTEAD, "MQTT of ActiveMQ Classic"),
    )


def _had(debian: Iterable[str], name: str, files: Iterable[str], bring: Callable[[Path], Path]) -> list[Path]:
    """Debian's jars if all are installed, else jars that the first call fetches into a folder of the cache."""
    installed = [JARS / f"{one}.jar" for one in debian]
    if all(jar.is_file() for jar in installed):
        return installed
    folder = cached(name, bring)
    return [folder / file for file in files]


def protocols() -> tuple[str, ...]:
    """The protocols that it can offer here: MQTT only if its jars are available."""
    try:
        mqtt_jars()
    except ConfigError:
        return ("stomp", "openwire")
    return ("stomp", "openwire", "mqtt")


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
    folder = folder.resolve()
    configuration = folder / "activemq.xml"
    command = java_command(folder, memory_mb, [*jars(), *(mqtt_jars() if "mqtt" in endpoints.ports else ())])
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
