"""The Java clients of providers: their versions and licences, and where their jars are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.jars._fetch import cache_folder, digest_of, fetch, fetch_unpinned, find, pins

_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")


@dataclass(frozen=True, slots=True)
class Client:
    """The Java client of a provider. `version`: which version is fetched unless another is asked for; its jars are
    pinned. `licences`: under which the jars are."""

    title: str
    version: str
    licences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The jars of a client, as they lie in the cache.

    Attributes:
        kind: one of `CLIENTS`.
        version: of the client.
        jars: each jar, and its SHA-256 in hexadecimal digits.
    """

    kind: str
    version: str
    jars: Mapping[Path, str]

    @property
    def is_pinned(self) -> bool:
        """Whether the jars were checked against hashes that the SDK knows."""
        return self.version == CLIENTS[self.kind].version

    @property
    def paths(self) -> list[Path]:
        return list(self.jars)

    @property
    def classpath(self) -> str:
        """What `connect(classpath=...)` takes for them."""
        return self.kind if self.is_pinned else f"{self.kind}-{self.version}"

    def to_json(self) -> dict[str, Any]:
        """What `mtosi-jms jvm fetch` prints."""
        client = CLIENTS[self.kind]
        return {
            "kind": self.kind,
            "title": client.title,
            "version": self.version,
            "pinned": self.is_pinned,
            "licences": list(client.licences),
            "jars": {str(jar): digest for jar, digest in self.jars.items()},
            "classpath": self.classpath,
        }


_APACHE: Final = "Apache License 2.0"
_SLF4J: Final = "MIT License (SLF4J)"
CLIENTS: Final[Mapping[str, Client]] = MappingProxyType(
    {
        "activemq": Client("ActiveMQ Classic", "5.17.6", (_APACHE, _SLF4J)),
        "artemis": Client("ActiveMQ Artemis", "2.44.0", (_APACHE, _SLF4J)),
        "qpid": Client(
            "Qpid JMS (AMQP 1.0)",
            "1.13.0",
            (_APACHE, "Eclipse Public License 2.0 or GPL 2 with the Classpath Exception (JMS API)", _SLF4J),
        ),
        "ibm-mq": Client(
            "IBM MQ",
            "9.4.2.0",
            (
                "IBM International Program License Agreement",
                "CDDL 1.1 or GPL 2 with the Classpath Exception (JMS API)",
                "Bouncy Castle Licence",
                "Public Domain (JSON)",
            ),
        ),
        "jacorb": Client(
            "JacORB (CORBA, with its notification service)",
            "3.9",
            ("LGPL 2.1 (JacORB, javax.rmi)", "BSD (PicoContainer)", "Public Domain (ANTLR)", _SLF4J),
        ),
    }
)
"""The clients that can be fetched."""


def fetch_client(kind: str, version: str | None = None, *, unpinned: bool = False) -> Fetched:
    """The jars of a client in the cache; fetched where they are not there.

    Args:
        kind: one of `CLIENTS`.
        version: of the client; None: the one that is pinned.
        unpinned: takes a version that no hashes are known of, with whatever the `mvn` command says that it needs.

    Raises:
        ConfigError: no such kind, no hashes are known of the version, or the jars cannot be had or kept.
    """
    client = _client(kind)
    requested = version or client.version
    if not _VERSION.fullmatch(requested):
        raise ConfigError(f"{requested!r} is not a version")
    pinned = requested == client.version
    if not pinned and not unpinned:
        raise ConfigError(
            f"{kind} {requested}: no hashes are known of its jars, only of {client.version}; fetch them unpinned if "
            "you trust where Maven gets them from (--unpinned)"
        )
    what = f"the client of {client.title}"
    if pinned:
        jars = fetch(f"client-{kind}", what)
    else:
        group, name, _ = next(iter(pins()[f"client-{kind}"])).split(":")
        jars = fetch_unpinned([f"{group}:{name}:{requested}"], _folder(kind, requested), what)
    return Fetched(kind, requested, {jar: digest_of(jar) for jar in jars})


def is_client(name: str) -> bool:
    """Whether a class path means a client by a name: `KIND`, or `KIND-VERSION`."""
    return _split(name) is not None


def find_client(name: str) -> list[Path]:
    """The jars of a client that was fetched, or that came with a broker; nothing is fetched here. `name`: `KIND`, one
    of `CLIENTS`, or `KIND-VERSION`. Raises ConfigError: they are not there; the command that fetches them is in the
    text."""
    found = _split(name)
    kind, version = found if found is not None else (name, "")
    client = _client(kind)
    pinned = version in ("", client.version)
    jars = find(f"client-{kind}") or find(f"broker-{kind}") if pinned else sorted(_folder(kind, version).glob("*.jar"))
    if jars:
        return jars
    more = "" if pinned else f" --version {version} --unpinned"
    raise ConfigError(f"classpath={name!r}: its jars are not there; mtosi-jms jvm fetch {kind}{more} fetches them")


def _client(kind: str) -> Client:
    if kind not in CLIENTS:
        raise ConfigError(f"{kind!r}: no such client; known are {', '.join(CLIENTS)}")
    return CLIENTS[kind]


def _split(name: str) -> tuple[str, str] | None:
    for kind in CLIENTS:
        if name == kind:
            return kind, ""
        version = name.removeprefix(f"{kind}-")
        if version != name and version[:1].isdigit() and _VERSION.fullmatch(version):
            return kind, version
    return None


def _folder(kind: str, version: str) -> Path:
    return cache_folder() / f"client-{kind}-{version}"
