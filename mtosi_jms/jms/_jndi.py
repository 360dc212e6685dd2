"""Reads the keys of a `jndi.properties` as ActiveMQ, Artemis and Qpid do; docs/naming.md lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms._destinations import ADMINISTERED, Destination, Queue, Topic
from mtosi_jms.jms._properties_file import read_properties

FACTORY: Final = "connectionfactory"
DYNAMIC: Final[dict[str, type[Destination]]] = {"dynamicQueues/": Queue, "dynamicTopics/": Topic}
"""Prefixes of names that can be looked up without registration; the broker creates the destination."""

PROVIDER_URL: Final = "java.naming.provider.url"
_INITIAL_FACTORY: Final = "java.naming.factory.initial"
_ACTIVEMQ: Final = "org.apache.activemq.jndi."
_DEFAULT_FACTORIES: Final = ("ConnectionFactory", "QueueConnectionFactory", "TopicConnectionFactory")
_ADDRESS: Final = re.compile(r"(?:ADDR:)?([^;{]+);\s*+(\{.*\})\s*", re.DOTALL | re.IGNORECASE)
_NODE_TYPE: Final = re.compile(r"\bnode['\"]?\s*:\s*\{[^{}]*?\btype['\"]?\s*:\s*['\"]?(queue|topic)\b", re.IGNORECASE)
_BINDING_URL: Final = re.compile(r"(?:BURL:)?(direct|topic)://[^/?]*/([^/?]*)/?([^/?]*)(?:\?.*)?", re.IGNORECASE)
_PLAIN: Final = re.compile(r"(queue|topic):(?!//)(.+)", re.IGNORECASE)


@dataclass(slots=True)
class JndiEntries:
    """The content of a `jndi.properties`.

    Attributes:
        destinations: line, name and destination of each entry, in the order of the file; a name may come twice.
        options: ActiveMQ's destination options by name, such as `consumer.prefetchSize`; not part of the physical name.
    """

    destinations: list[tuple[int, str, Destination]] = field(default_factory=list)
    options: dict[str, Mapping[str, str]] = field(default_factory=dict)
    factories: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


def read_jndi(text: str) -> JndiEntries:
    """Return the entries of a property file. Raises ConfigError: an entry has no physical name or URL, or an address
    that says neither queue nor topic. The error names the line."""
    found = JndiEntries()
    for line, key, value in read_properties(text):
        try:
            _take(found, line, key, value.strip())
        except ConfigError as exc:
            raise ConfigError(f"line {line}: {exc}") from exc
    _add_activemq_factories(found)
    return found


def _take(found: JndiEntries, line: int, key: str, value: str) -> None:
    prefix, _, name = key.partition(".")
    kind = prefix.lower()
    if not name or kind not in (*ADMINISTERED, FACTORY, "destination"):
        found.environment[key] = value
        return
    if not value:
        raise ConfigError(f"{kind} {name!r}: a physical name or URL is required")
    if kind == FACTORY:
        found.factories[name] = value
    elif kind == "destination":
        found.destinations.append((line, name, qpid_destination(name, value)))
    else:
        physical, options = split_options(value)
        found.destinations.append((line, name, ADMINISTERED[kind](physical)))
        if options:
            found.options[name] = options


def _add_activemq_factories(found: JndiEntries) -> None:
    listed = found.environment.get("connectionFactoryNames")
    names = [name.strip() for name in (listed or "").split(",") if name.strip()]
    if listed is None and found.environment.get(_INITIAL_FACTORY, "").startswith(_ACTIVEMQ):
        names = list(_DEFAULT_FACTORIES)
    for name in names:
        own = found.environment.get(f"connection.{name}.brokerURL")
        url = own or found.environment.get(f"connection.{name}.{PROVIDER_URL}") or found.environment.get(PROVIDER_URL)
        if url:
            found.factories.setdefault(name, url)


def split_options(physical: str) -> tuple[str, dict[str, str]]:
    """Split a physical name from ActiveMQ's destination options after its `?`, as in `Q?consumer.prefetchSize=10`.

    A question mark that no `name=value` follows belongs to the name.
    """
    name, _, query = physical.partition("?")
    if not name or not re.fullmatch(r"[^=&]+=[^&]*(?:&[^=&]+=[^&]*)*", query):
        return physical, {}
    return name, dict(parse_qsl(query, keep_blank_values=True))


def qpid_destination(name: str, address: str) -> Destination:
    """Return the destination of a Qpid address that says whether it names a queue or a topic.

    These are `X; {node: {type: queue}}`, the binding URLs `direct://EXCHANGE/KEY/QUEUE` and `topic://EXCHANGE/KEY`, and
    `queue:X`, `topic:X`. The topic of a binding URL is its key.

    Raises:
        ConfigError: any other address; it is never guessed whether it is a queue or a topic.
    """
    if plain := _PLAIN.fullmatch(address):
        return ADMINISTERED[plain[1].lower()](plain[2])
    if url := _BINDING_URL.fullmatch(address):
        kind, key, queue = url[1].lower(), url[2], url[3]
        if kind == "direct" and queue:
            return Queue(queue)
        if kind == "topic" and key:
            return Topic(key)
    if (parts := _ADDRESS.fullmatch(address)) and parts[1].strip() and (node := _NODE_TYPE.search(parts[2])):
        return ADMINISTERED[node[1].lower()](parts[1].strip().strip("'\""))
    raise ConfigError(f"destination {name!r}: the address says neither queue nor topic; name it as queue.{name}=X")


def dynamic(name: str) -> Destination | None:
    """Return the destination of a dynamic name, `dynamicQueues/X` or `dynamicTopics/X`; None for any other name."""
    for prefix, kind in DYNAMIC.items():
        physical = split_options(name.removeprefix(prefix))[0]
        if name.startswith(prefix) and physical:
            return kind(physical)
    return None
