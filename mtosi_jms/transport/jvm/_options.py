"""The URL and the options of a connection by JNDI, checked; nothing here shows a credential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any, Final
from urllib.parse import parse_qsl

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import JmsUri, is_jms_uri
from mtosi_jms.transport._options import COUNT, TEXT, NetworkOptions, check, completed


def _is_classpath(value: object) -> bool:
    if isinstance(value, str | PathLike):
        return True
    return isinstance(value, Sequence) and all(isinstance(one, str | PathLike) for one in value)


def _paths(value: Any) -> tuple[str, ...]:
    return (fspath(value),) if isinstance(value, str | PathLike) else tuple(fspath(one) for one in value)


_CLASSPATH = check(
    "a path or the name of a fetched client, or a list of them: jars, or folders of jars",
    _is_classpath,
    lambda text: text.split(":"),
    _paths,
)
_NAMES = check(
    "a name, or a list of names",
    lambda value: (
        isinstance(value, str) or (isinstance(value, Sequence) and all(isinstance(one, str) for one in value))
    ),
    lambda text: [one for one in text.split(";") if one],  # names of LDAP have commas
    lambda value: (value,) if isinstance(value, str) else tuple(value),
)
_IBM_MQ: Final = "ibm-mq"
_MQ_FACTORY: Final = "com.ibm.mq.jms.MQConnectionFactory"
_JNDI = {"jndiInitialContextFactory": "java.naming.factory.initial", "jndiURL": "java.naming.provider.url"}
"""Parameters of URLs, and the properties of JNDI that they stand for."""


@dataclass(frozen=True, kw_only=True)
class JvmOptions(NetworkOptions):
    """What `connect("jvm:NAME")` takes besides the name and the login; see `docs/jvm.md` for all.

    Attributes:
        classpath: the provider's jars: files, folders whose jars are taken, and names of clients that `mtosi-jms jvm
            fetch` brought, such as `artemis`. A folder of such a name is written `./artemis`.
        jndi_names: names of destinations to look up in JNDI when the connection is made; they become names of the
            naming context. No other names are looked up, because names also come in with messages.
        host, port, channel, queue_manager: of IBM MQ without JNDI, with the name `ibm-mq`; the channel is one for
            clients. Without `classpath`, the client is the one that was fetched.
    """

    classpath: tuple[str, ...] = field(default=(), metadata=_CLASSPATH)
    jndi_names: tuple[str, ...] = field(default=(), metadata=_NAMES)
    host: str = field(default="", metadata=TEXT)
    port: int = field(default=1414, metadata=COUNT)
    channel: str = field(default="", metadata=TEXT)
    queue_manager: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is looked up in JNDI; the properties of `environment` go before those of the names. With a `java_class`, the
    factory is made of it in place of JNDI, and `setters` are called."""

    factory: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    java_class: str = ""
    setters: Mapping[str, str | int] = field(default_factory=dict)


def _is_of_jndi(name: str) -> bool:
    return name in _JNDI or name.startswith("jndi-")


def _of_jndi(parameters: Mapping[str, str]) -> dict[str, str]:
    """The properties of JNDI that parameters of a URL stand for."""
    return {
        _JNDI.get(name) or name.removeprefix("jndi-"): value for name, value in parameters.items() if _is_of_jndi(name)
    }


def parse_url(url: str, given: Mapping[str, Any]) -> tuple[Lookup, JvmOptions]:
    """Return what a URL has looked up in JNDI, and the options; those of the call (`given`) win.

    `jvm:NAME`, or a JMS URI with the parameter `jndiConnectionFactoryName`. Both may have `jndiInitialContextFactory`,
    `jndiURL`, and other properties of JNDI after `jndi-`. Raises ConfigError: no name, or an option at fault."""
    query: dict[str, str] = {}
    if is_jms_uri(url):
        uri = JmsUri.parse(url)
        lookup = Lookup(uri.connection_factory or "", _of_jndi(uri.parameters))
    else:
        name, _, text = url.partition(":")[2].partition("?")
        parameters = dict(parse_qsl(text, keep_blank_values=True))
        lookup = Lookup(name.removeprefix("//").strip(), _of_jndi(parameters))
        query = {name: value for name, value in parameters.items() if not _is_of_jndi(name)}
    if not lookup.factory:
        raise ConfigError("jvm: the URL names no connection factory; write jvm:NAME, as JNDI knows it")
    complete = completed(JvmOptions, "jvm", query, {}, given)
    complete.pop("ca_file", None)  # TLS is the provider's own matter
    checked = JvmOptions(**complete)
    if not (checked.host or checked.channel or checked.queue_manager):
        return lookup, checked
    return _of_ibm_mq(lookup, checked)


def _of_ibm_mq(lookup: Lookup, options: JvmOptions) -> tuple[Lookup, JvmOptions]:
    if lookup.factory != _IBM_MQ or lookup.environment or options.jndi_names:
        raise ConfigError(f"host, channel and queue_manager go with jvm:{_IBM_MQ}, and without JNDI")
    if missing := [name for name in ("host", "channel", "queue_manager") if not getattr(options, name)]:
        raise ConfigError(f"jvm:{_IBM_MQ}: {' and '.join(missing)} must be given, too")
    setters: dict[str, str | int] = {
        "setTransportType": 1,  # client: the default needs IBM's native libraries and a queue manager on this machine
        "setHostName": options.host,
        "setPort": options.port,
        "setChannel": options.channel,
        "setQueueManager": options.queue_manager,
    }
    made = Lookup(f"{_IBM_MQ}, {options.queue_manager} at {options.host}({options.port})", {}, _MQ_FACTORY, setters)
    return made, replace(options, classpath=options.classpath or (_IBM_MQ,))
