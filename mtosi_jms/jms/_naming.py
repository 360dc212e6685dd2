"""Naming: maps the names in headers, addresses and configurations to destinations, like JNDI (O3, C42).

A look-up first tries the exact name, whatever its form (`jms/EmsOS`, `jms://host/mtosi/X`, `/MTOSI/EmsOS`), in the
context itself and then in its back-ends. Then it tries the forms that state the kind of destination: `queue:X`,
`topic:X`, ActiveMQ's `dynamicQueues/X` and `dynamicTopics/X`, and by RFC 6167 `jms:queue:X`, `jms:topic:X` and
`jms:jndi:NAME`. It never guesses whether a bare name is a queue or a topic. Temporary destinations cannot be looked up
(R2d).
"""

from __future__ import annotations

import copy
import difflib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, NamingError
from mtosi_jms.jms._destinations import ADMINISTERED, Destination
from mtosi_jms.jms._jndi import FACTORY, dynamic, qpid_destination, read_properties, split_options
from mtosi_jms.jms._uri import JmsUri, is_jms_uri, shown
from mtosi_jms.masking import MASK, shown_half_made

_LOGIN: Final = re.compile(r"^([^:@]*):[^@]*@")
_NEAR: Final = 3
_PROVIDER_URL: Final = "java.naming.provider.url"
_INITIAL_FACTORY: Final = "java.naming.factory.initial"
_ACTIVEMQ: Final = "org.apache.activemq.jndi."
_DEFAULT_FACTORIES: Final = "ConnectionFactory, QueueConnectionFactory, TopicConnectionFactory"

NameTable: TypeAlias = Mapping[str, "Destination | str | Mapping[str, str]"]
NamesSource: TypeAlias = "NamingContext | NameTable | str | os.PathLike[str] | None"


class NameBackend(Protocol):
    """A further place where a context looks names up: an LDAP directory, a file system of bindings, a database."""

    def lookup(self, name: str) -> Destination | None: ...

    def names(self) -> Mapping[str, Destination]:
        """Return all names with their destinations; empty if they cannot be listed."""
        ...


class NamingContext:
    """A registry of names for administered destinations and connection URLs.

    Args:
        names: destinations by name, each a `Destination` or a text (`queue:X`, `topic:X`). As in the TOML form, the
            keys `queue`, `topic` and `connectionfactory` may hold tables that map a name to a physical name or URL.
        backends: asked in this order for names that are not registered here. The names that they list count for near
            matches and for the destinations that a supplier may answer to.

    Attributes:
        environment: entries of a `jndi.properties` that name neither a destination nor a factory.
        properties: all entries of a `jndi.properties`, for Java's JNDI; they may hold a credential.
        options: ActiveMQ's destination options by name; in a `jndi.properties` they follow the physical name.

    Raises:
        ConfigError: an entry is neither a queue nor a topic, or one name stands for two destinations.
        NamingError: an entry is a temporary destination (R2d).
    """

    def __init__(self, names: NameTable | None = None, backends: Sequence[NameBackend] = ()) -> None:
        self._names: dict[str, Destination] = {}
        self._factories: dict[str, str] = {}
        self._backends = tuple(backends)
        self.environment: dict[str, str] = {}
        self.properties: dict[str, str] = {}
        self.options: dict[str, Mapping[str, str]] = {}
        for key, value in (names or {}).items():
            if isinstance(value, Mapping):
                self._bind_table(key, value)
            else:
                self.bind(key, value)

    @classmethod
    def of(cls, source: NamesSource) -> NamingContext:
        """Return the naming context for the argument of `connect(names=...)`: a context, a mapping, a file, or None.

        A file whose name ends in `.toml` is TOML; every other file is a `jndi.properties`. Raises ConfigError: the file
        cannot be read, or its content is not a naming context."""
        if isinstance(source, NamingContext):
            return source
        if source is None or isinstance(source, Mapping):
            return cls(source)
        if not isinstance(source, (str, os.PathLike)):
            raise ConfigError(f"names: must be a table or the path of a file, not {type(source).__name__}")
        path = Path(source)
        try:
            data = read_file(path)
        except OSError as exc:
            raise ConfigError(f"{path}: the names cannot be read: {exc.strerror}") from exc
        text = _decoded(data)
        try:
            return cls.from_toml(text) if path.suffix.lower() == ".toml" else cls.from_properties(text)
        except NamingError:
            raise
        except ConfigError as exc:
            raise ConfigError(f"{path}: {exc}") from exc

    @classmethod
    def from_toml(cls, text: str) -> NamingContext:
        """Read a naming context from TOML.

        The tables `queue`, `topic` and `connectionfactory` map names to physical names or URLs. Outside of them entries
        have the form `name = "queue:X"`. Raises ConfigError: the text is not TOML, or an entry is neither a queue nor a
        topic."""
        import tomllib  # 7 ms, which only those pay who have such a file

        try:
            table: dict[str, Any] = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as exc:
            raise ConfigError(f"not TOML: {exc}") from exc
        return cls(table)

    @classmethod
    def from_properties(cls, text: str) -> NamingContext:
        """Read a `jndi.properties` of ActiveMQ, Artemis or Qpid.

        It has entries such as `queue.NAME=X`, `topic.NAME=X` and `connectionfactory.NAME=URL`; docs/naming.md lists all
        keys. The letter case of the prefixes does not matter. Entries with another prefix go into `environment`. Raises
        ConfigError: an entry has no physical name, or an address that says neither queue nor topic, or one name stands
        for two destinations. The error names the line."""
        context = cls()
        for line, key, value in read_properties(text):
            context.properties[key] = value
            try:
                context._take(key, value.strip())
            except ConfigError as exc:
                raise ConfigError(f"line {line}: {exc}") from exc
        context._add_activemq_factories()
        return context

    def with_backends(self, *backends: NameBackend) -> NamingContext:
        """Return a context that shares the names of this one and asks more back-ends after its own."""
        more = copy.copy(self)
        more._backends = (*self._backends, *backends)
        return more

    def bind(self, name: str, destination: Destination | str) -> None:
        """Register a name for an administered destination, given as a `Destination` or as text. Raises NamingError: the
        destination is temporary (R2d); ConfigError: the text is neither `queue:X` nor `topic:X`, or the name already
        stands for another destination."""
        bound = destination if isinstance(destination, Destination) else _parsed(destination)
        if bound is None:  # the error does not show the value: a connection URL may hold a password
            raise ConfigError(f"{name!r}: its value says neither queue nor topic; write queue:X or topic:X")
        if bound.is_temporary:
            raise NamingError(name, f"{bound} is temporary and cannot be registered (R2d)")
        if self._names.setdefault(name, bound) != bound:
            raise ConfigError(f"{name!r} stands for {self._names[name]} already, not for {bound}")

    def lookup(self, name: str | Destination) -> Destination:
        """Return the destination of a name; a destination is returned as it is. Blanks around a name do not count.
        Raises NamingError: the name is not known, or is that of a temporary destination. The error lists known names
        that resemble it."""
        if isinstance(name, Destination):
            return name
        if not isinstance(name, str):
            raise NamingError(type(name).__name__, "a name is text")
        found = self._names.get(name) or self._registered(name.strip()) or self._by_form(name.strip())
        if found is None:
            raise self._unknown(name)
        return found

    def factory(self, name: str) -> str:
        """Return the connection URL of a connection factory, by its name. The URL may hold a credential. Raises
        NamingError: no such factory is known."""
        url = self._factories.get(name)
        if url is None:
            near = difflib.get_close_matches(name, self._factories, _NEAR)
            raise NamingError(name, "no connection factory is known by this name", near)
        return url

    def knows(self, destination: Destination) -> bool:
        """Whether a name stands for the destination. Reply policies ask this."""
        if destination in self._names.values():
            return True
        return bool(self._backends) and destination in self.names().values()

    def name_of(self, destination: Destination) -> str | None:
        """The first name that stands for the destination; None if there is none."""
        return next((name for name, bound in self.names().items() if bound == destination), None)

    def names(self) -> dict[str, Destination]:
        found: dict[str, Destination] = {}
        for backend in reversed(self._backends):
            found.update(backend.names())
        return {**self._names, **{name: bound for name, bound in found.items() if name not in self._names}}

    def uri_of(self, name: str | Destination) -> str:
        """Return the text by which headers name a destination (C53): its name, or a JMS URI without parameters."""
        if isinstance(name, Destination):
            return self.name_of(name) or str(name)
        return name if name in self._names else shown(name)

    def _unknown(self, name: str) -> NamingError:
        near, reason = self.near(name), "no destination is known by this name"
        if not near and ":" not in name:
            reason = f"{reason}; without a naming context, write queue:{name} or topic:{name}"
        text = name if "//" in name else _LOGIN.sub(rf"\1:{MASK}@", name)  # a URL without its scheme
        return NamingError(shown(text), reason, near)

    def near(self, name: str) -> list[str]:
        """The known names that resemble a name, best first: same last segment, or few letters apart."""
        wanted = name.strip().lower()
        folded: dict[str, str] = {}
        for known in self.names():
            folded.setdefault(known.lower(), known)
        tail = wanted.rsplit("/", 1)[-1]
        close = [key for key in folded if tail and key.rsplit("/", 1)[-1] == tail]
        close += difflib.get_close_matches(wanted, folded, _NEAR)
        return [folded[key] for key in dict.fromkeys(close)][:_NEAR]

    @shown_half_made
    def __repr__(self) -> str:
        return f"NamingContext({len(self._names)} names, {len(self._factories)} factories)"

    def _registered(self, name: str) -> Destination | None:
        if name in self._names:
            return self._names[name]
        for backend in self._backends:
            found = backend.lookup(name)
            if found is not None and found.is_temporary:
                raise NamingError(shown(name), f"{found} is temporary and cannot be registered (R2d)")
            if found is not None:
                return found
        return None

    def _by_form(self, text: str) -> Destination | None:
        if text.lower().startswith(("temporary-", "temp-")):
            raise NamingError(text, "a temporary destination cannot be looked up (R2d)")
        try:
            if is_jms_uri(text):
                uri = JmsUri.parse(text)
                if uri.variant == "jndi":
                    return self._registered(uri.name) or dynamic(uri.name)
                return uri.destination
            return dynamic(text) or _parsed(text)
        except NamingError:
            raise
        except ConfigError as exc:
            raise NamingError(shown(text), str(exc)) from exc

    def _take(self, key: str, value: str) -> None:
        """Takes an entry of a `jndi.properties`."""
        prefix, _, name = key.partition(".")
        kind = prefix.lower()
        if not name or kind not in (*ADMINISTERED, FACTORY, "destination"):
            self.environment[key] = value
        elif value and kind == "destination":
            self.bind(name, qpid_destination(name, value))
        else:
            physical, options = split_options(value) if kind in ADMINISTERED else (value, {})
            self._bind_table(kind, {name: physical})
            if options:
                self.options[name] = options

    def _add_activemq_factories(self) -> None:
        known = self.environment
        of_activemq = known.get(_INITIAL_FACTORY, "").startswith(_ACTIVEMQ)
        listed = known.get("connectionFactoryNames", _DEFAULT_FACTORIES if of_activemq else "")
        for name in filter(None, map(str.strip, listed.split(","))):
            own = known.get(f"connection.{name}.brokerURL") or known.get(f"connection.{name}.{_PROVIDER_URL}")
            if url := own or known.get(_PROVIDER_URL):
                self._factories.setdefault(name, url)

    def _bind_table(self, kind: str, table: Mapping[str, str]) -> None:
        for name, value in table.items():
            if type(value) is not str or not value:  # TOML holds other types too
                raise ConfigError(f"{kind} {name!r}: a physical name or URL is required")
            if kind == FACTORY:
                self._factories[name] = value
            elif kind in ADMINISTERED:
                self.bind(name, ADMINISTERED[kind](value))
            else:
                raise ConfigError(f"table {kind!r}: only queue, topic and {FACTORY} hold names")


def _parsed(text: object) -> Destination | None:
    """Return the destination of a text whose form states the kind; None if it says neither queue nor topic."""
    if not isinstance(text, str):
        return None
    if is_jms_uri(text):
        return JmsUri.parse(text).destination
    scheme, _, rest = text.partition(":")
    kind = ADMINISTERED.get(scheme.lower())
    return kind(rest) if kind is not None and rest else None


def _decoded(data: bytes) -> str:
    """Decode as UTF-8, else as Latin-1, in which Java wrote property files before version 9."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
