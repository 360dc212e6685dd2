"""The URL and the options of a connection by JNDI, checked; nothing here shows a credential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any
from urllib.parse import parse_qsl

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import JmsUri, is_jms_uri
from mtosi_jms.transport._options import FLAG, PATH, SECONDS, TEXT, ConnectOptions, check, checked, from_query
from mtosi_jms.transport.login import with_login


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
_JNDI = {"jndiInitialContextFactory": "java.naming.factory.initial", "jndiURL": "java.naming.provider.url"}
"""Parameters of URLs, and the properties of JNDI that they stand for."""


@dataclass(frozen=True, kw_only=True)
class JvmOptions(ConnectOptions):
    """What `connect("jvm:NAME")` takes besides the name; each may stand in the URL's query, secrets excepted.

    Attributes:
        classpath: the provider's jars: files, folders whose jars are taken, and names of clients that `mtosi-jms jvm
            fetch` brought, such as `artemis`. A folder of such a name is written `./artemis`.
        jndi_names: names of destinations to look up in JNDI when the connection is made; they become names of the
            naming context. No other names are looked up, because names also come in with messages.
        user: login; else from MTOSI_JMS_USER.
        password: of the login; else from `password_file`, else from MTOSI_JMS_PASSWORD or the file that
            MTOSI_JMS_PASSWORD_FILE names.
        password_file: file whose first line is the password.
        connect_timeout: seconds for one attempt to connect.
        send_timeout: seconds that a send may take, a reconnect included.
        close_timeout: seconds that closing gives to a provider that does not answer.
        reconnect: whether a lost connection is made again.
        reconnect_timeout: seconds after which that is given up; None: never.
    """

    classpath: tuple[str, ...] = field(default=(), metadata=_CLASSPATH)
    jndi_names: tuple[str, ...] = field(default=(), metadata=_NAMES)
    user: str = field(default="", metadata=TEXT)
    password: str = field(default="", repr=False, metadata=TEXT)
    password_file: str = field(default="", metadata=PATH)
    connect_timeout: float = field(default=10.0, metadata=SECONDS)
    send_timeout: float = field(default=30.0, metadata=SECONDS)
    close_timeout: float = field(default=5.0, metadata=SECONDS)
    reconnect: bool = field(default=True, metadata=FLAG)
    reconnect_timeout: float | None = field(default=None, metadata=SECONDS)


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is looked up in JNDI; the properties of `environment` go before those of the names."""

    factory: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def _is_of_jndi(name: str) -> bool:
    return name in _JNDI or name.startswith("jndi-")


def _of_jndi(parameters: Mapping[str, str]) -> dict[str, str]:
    """The properties of JNDI that parameters of a URL stand for."""
    return {
        _JNDI.get(name) or name.removeprefix("jndi-"): value for name, value in parameters.items() if _is_of_jndi(name)
    }


def parse_url(url: str, given: Mapping[str, object]) -> tuple[Lookup, JvmOptions]:
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
    url_options = {name: from_query(JvmOptions, name, text) for name, text in query.items()}
    call_options = {name: value for name, value in given.items() if value is not None or name not in url_options}
    complete = with_login(checked(JvmOptions, "jvm", url_options | call_options))
    complete.pop("ca_file", None)  # TLS is the provider's own matter
    return lookup, JvmOptions(**complete)
