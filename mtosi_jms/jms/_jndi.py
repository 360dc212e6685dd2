"""Reads the entries of a `jndi.properties`, and the addresses in them, as ActiveMQ, Artemis and Qpid do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms._destinations import ADMINISTERED, Destination, Queue, Topic

_BLANK: Final = " \t\f"
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_BROKEN: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9A-Fa-f]{4})")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def read_properties(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields (line number from 1, key, value) for each entry of a Java `.properties` file, in its order; a key may
    occur twice. Raises ConfigError: four hexadecimal digits are missing after `\\u`, which Java refuses too. The error
    names the line."""
    for number, line in _logical_lines(text):
        if _BROKEN.search(line):
            raise ConfigError(f"line {number}: \\u without four hexadecimal digits; a backslash itself is two")
        match = _KEY.fullmatch(line)
        if match is None:  # a lone backslash at the very end of the text
            yield number, _unescape(line), ""
        else:
            yield number, _unescape(match[1]), _unescape(match[2])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")), 1):
        line = raw.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):
            continue
        start = start if pending else number
        joined = pending + line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = joined[:-1]
            continue
        pending = ""
        yield start, joined
    if pending:
        yield start, pending


def _unescape(text: str) -> str:
    return _PAIR.sub(_joined, _ESCAPE.sub(lambda match: _meaning(match[1]), text))


def _joined(pair: re.Match[str]) -> str:
    """Return the character of a surrogate pair: Java writes characters beyond U+FFFF as two."""
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


def _meaning(escaped: str) -> str:
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _NAMED.get(escaped, escaped)


FACTORY: Final = "connectionfactory"
DYNAMIC: Final[dict[str, type[Destination]]] = {"dynamicQueues/": Queue, "dynamicTopics/": Topic}
"""Prefixes of names that can be looked up without registration; the broker creates the destination."""

_ADDRESS: Final = re.compile(r"(?:ADDR:)?([^;{]+);\s*+(\{.*\})\s*", re.DOTALL | re.IGNORECASE)
_NODE_TYPE: Final = re.compile(r"\bnode['\"]?\s*:\s*\{[^{}]*?\btype['\"]?\s*:\s*['\"]?(queue|topic)\b", re.IGNORECASE)
_BINDING_URL: Final = re.compile(r"(?:BURL:)?(direct|topic)://[^/?]*/([^/?]*)/?([^/?]*)(?:\?.*)?", re.IGNORECASE)
_PLAIN: Final = re.compile(r"(queue|topic):(?!//)(.+)", re.IGNORECASE)


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
    `queue:X`, `topic:X`. The topic of a binding URL is its key. Raises ConfigError: any other address; it is never
    guessed whether it is a queue or a topic."""
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
