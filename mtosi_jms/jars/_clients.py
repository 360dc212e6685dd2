"""The Java clients of providers: which jars they are, where they are kept, and how they are fetched."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import _maven as maven

_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_DEBIAN: Final = Path("/usr/share/java")
_INSTEAD: Final = "where Maven Central cannot be reached, give connect the jars themselves: classpath=[...]"


@dataclass(frozen=True, slots=True)
class Client:
    """The Java client of a provider.

    Attributes:
        title: its name.
        version: which version is fetched unless another is asked for; its jars are pinned.
        artifact: `group:name` of the client itself.
        needs: `group:name:version` of what it needs besides.
        hashes: name of each jar of `version`, and its SHA-256 in hexadecimal digits.
        licences: under which the jars are.
        elsewhere: other places where the jars may be already: each a list of patterns below a folder.
    """

    title: str
    version: str
    artifact: str
    hashes: Mapping[str, str]
    licences: tuple[str, ...]
    needs: tuple[str, ...] = ()
    elsewhere: tuple[tuple[Path | None, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """The jars of a client, as they lie in the cache.

    Attributes:
        kind: one of `CLIENTS`.
        version: of the client.
        folder: where they are.
        jars: name of each jar, and its SHA-256 in hexadecimal digits.
    """

    kind: str
    version: str
    folder: Path
    jars: Mapping[str, str]

    @property
    def is_pinned(self) -> bool:
        """Whether the jars were checked against hashes that the SDK knows."""
        return self.version == CLIENTS[self.kind].version

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
            "folder": str(self.folder),
            "jars": dict(self.jars),
            "classpath": self.classpath,
        }


_APACHE: Final = "Apache License 2.0"
_SLF4J: Final = "MIT License (SLF4J)"
_NETTY: Final = {
    "buffer": "0eea4e8666a9636a28722661d8ba5fa8564477e75fec6dd2ff3e324e361f8b3c",
    "codec": "4abd215fd1ed7ce86509d169cc9cbede5042176c265a79b3b70602b017226c3f",
    "codec-http": "09822d785e9a794838031ddd5346cf419b30c036a981c2e277a062bea884174b",
    "common": "65cce901ecf0f9d6591cc7750772614ab401a84415dc9aec9da4d046f0f9a77c",
    "handler": "26e3f8a5e859fd62cf3c13dc6d75e4e18879f000a5d0ad7f58f8679675d23dae",
    "resolver": "3170c225972c18b6850d28add60db15bb28d83c4e3d5b686ca220e0bd7273c8a",
    "transport": "ab3751e717daef9c8d91e4d74728a48730bd8530b72e2466b222b2ea3fb07db9",
    "transport-classes-epoll": "bd86e6d41e1f6053f9577931655236259778ab045646e1e6ab04150f070864f3",
    "transport-classes-kqueue": "9ac68d26efb78d74a24eeec8309d60bc80265655b60c44920dcac0828db4e8e2",
    "transport-native-unix-common": "69b16793d7b41ea76a762bd2bd144fc4f7c39c156a7a59ebf69baeb560fb10b7",
}
CLIENTS: Final[Mapping[str, Client]] = MappingProxyType(
    {
        "activemq": Client(
            "ActiveMQ Classic",
            "5.17.6",
            "org.apache.activemq:activemq-client",
            {
                "activemq-client-5.17.6.jar": "bc9671d7320747c6e5a141fc425e33e0026a129eb8418086aedabf8660e61af6",
                "geronimo-j2ee-management_1.1_spec-1.0.1.jar": (
                    "7ad780c72a92039bc07cbc09b6ee8d06571a1fbd92d4361a19a433d783b6e221"
                ),
                "geronimo-jms_1.1_spec-1.1.1.jar": "18d9ff7b9066aa99cf89843f5055d2fe58b1abe4346ee9df0daf4ac18ca232d7",
                "hawtbuf-1.11.jar": "c6b45db967f3b2b3e28fd2f0724b1730a89d3f5aa9eef3664de29caba219593e",
                "slf4j-api-1.7.36.jar": "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0",
                "slf4j-nop-1.7.36.jar": "c214958b07816cb4412b30c7bdbd4308ffdc6ba2a83767b8f3a9229cbd9274d6",
            },
            (_APACHE, _SLF4J),
            (
                "org.apache.geronimo.specs:geronimo-j2ee-management_1.1_spec:1.0.1",
                "org.apache.geronimo.specs:geronimo-jms_1.1_spec:1.1.1",
                "org.fusesource.hawtbuf:hawtbuf:1.11",
                "org.slf4j:slf4j-api:1.7.36",
                "org.slf4j:slf4j-nop:1.7.36",
            ),
            (
                (None, ("apache-activemq-5.17.6/*.jar",)),
                (
                    _DEBIAN,
                    (
                        "activemq-client.jar",
                        "geronimo-j2ee-management-1.1-spec.jar",
                        "geronimo-jms_1.1_spec.jar",
                        "hawtbuf.jar",
                        "slf4j-api.jar",
                        "slf4j-nop.jar",
                    ),
                ),
            ),
        ),
        "artemis": Client(
            "ActiveMQ Artemis",
            "2.44.0",
            "org.apache.activemq:artemis-jms-client-all",
            {
                "artemis-jms-client-all-2.44.0.jar": (
                    "e712809d5caa67a5a4349557015e6d778f41fe64f47164b74d746cb5f88144bb"
                ),
                "slf4j-nop-2.0.16.jar": "deca6c04ed35515a0a911fa44c0e836bee92c0c59d2e8fa9bab8ffbc464a9ba7",
            },
            (_APACHE, _SLF4J),
            ("org.slf4j:slf4j-nop:2.0.16",),
            ((None, ("apache-artemis-2.44.0/lib/*.jar",)),),
        ),
        "qpid": Client(
            "Qpid JMS (AMQP 1.0)",
            "1.13.0",
            "org.apache.qpid:qpid-jms-client",
            {
                "qpid-jms-client-1.13.0.jar": "0fc1f0cda4f09c6b951fbfe3de2d24e10a7e8140d45a438f309d371c6e75726b",
                "proton-j-0.34.1.jar": "e1b53dc9a1e54b23aff6ece693bbf3b2ab25004542031ec49018329b038888ea",
                "jakarta.jms-api-2.0.3.jar": "5940937cb1095764a0039dae147395e37528a0575e2366f4dd20713b7785044a",
                "slf4j-api-2.0.16.jar": "a12578dde1ba00bd9b816d388a0b879928d00bab3c83c240f7013bf4196c579a",
                "slf4j-nop-2.0.16.jar": "deca6c04ed35515a0a911fa44c0e836bee92c0c59d2e8fa9bab8ffbc464a9ba7",
                **{f"netty-{name}-4.1.118.Final.jar": digest for name, digest in _NETTY.items()},
            },
            (_APACHE, "Eclipse Public License 2.0 or GPL 2 with the Classpath Exception (JMS API)", _SLF4J),
            (
                "org.apache.qpid:proton-j:0.34.1",
                "jakarta.jms:jakarta.jms-api:2.0.3",
                "org.slf4j:slf4j-api:2.0.16",
                "org.slf4j:slf4j-nop:2.0.16",
                *(f"io.netty:netty-{name}:4.1.118.Final" for name in _NETTY),
            ),
        ),
        "ibm-mq": Client(
            "IBM MQ",
            "9.4.2.0",
            "com.ibm.mq:com.ibm.mq.allclient",
            {
                "com.ibm.mq.allclient-9.4.2.0.jar": "6944db555e052afbc9f66b89dcc0235b57102838654dbbe55e8248866f1883ae",
                "javax.jms-api-2.0.1.jar": "aa4a16fac46d949b17b32091036e4d1e3c812ef3b4bd184ec838efffb53ba4f8",
                "bcpkix-jdk18on-1.80.jar": "4f4ba6a92617ea19dc183f0fa5db492eee426fdde2a0a2d6c94777ffd1af6413",
                "bcprov-jdk18on-1.80.jar": "e8ad209f8c58d291a37ca9750e9e9fac60596956c983e49dd8282381dd8b3249",
                "bcutil-jdk18on-1.80.jar": "22eca687f7955411f456af33e6ea8e68fc73cd80cb8b32aa5f7a8b1827d7c678",
                "json-20250107.jar": "85d4c1ab192d3117fd02c7fff1ec0fe63ade45cf56def7fe950ef060cf06e99f",
            },
            (
                "IBM International Program License Agreement",
                "CDDL 1.1 or GPL 2 with the Classpath Exception (JMS API)",
                "Bouncy Castle Licence",
                "Public Domain (JSON)",
            ),
            (
                "javax.jms:javax.jms-api:2.0.1",
                *(f"org.bouncycastle:bc{name}-jdk18on:1.80" for name in ("pkix", "prov", "util")),
                "org.json:json:20250107",
            ),
        ),
        "jacorb": Client(
            "JacORB (CORBA, with its notification service)",
            "3.9",
            "org.jacorb:jacorb",
            {
                "jacorb-3.9.jar": "cb833df39c6e30caca29f2c244901c2d5566c8c6aac3ea59842024c5f5264ee2",
                "jacorb-omgapi-3.9.jar": "247f565dfd4b0c1ee54b1e0a6288be84fc66ae961c34715171ca2867c6857447",
                "jacorb-services-3.9.jar": "0c5ba8cdac1dd25a64be41cf8804e18fef299e10edcc2d7e723a5c6ff3ce1fb8",
                "antlr-2.7.2.jar": "2a53206963dfa78e33746b6f8367f7d9970fa36865a825d7bfbce1784dc0f4d4",
                "jboss-rmi-api_1.0_spec-1.0.6.Final.jar": (
                    "07615653320a010a648d164e77751daddcfea5602148aa4da2f052bc6af0689e"
                ),
                "picocontainer-1.2.jar": "d729282e385ed351684e649e261b5b02399327c4713c6b100f122942f923412f",
                "slf4j-api-1.7.14.jar": "b030a29e088dea60b07c7299d25f43cbd120502e10dcae3f382435ecd5de5ddd",
                "slf4j-nop-1.7.14.jar": "5059274bb1f70079e65d36fbf4857855145fed5bca045dd4028f7238b6534192",
            },
            (
                "LGPL 2.1 (JacORB, javax.rmi)",
                "BSD (PicoContainer)",
                "Public Domain (ANTLR)",
                _SLF4J,
            ),
            (
                "org.jacorb:jacorb-omgapi:3.9",
                "org.jacorb:jacorb-services:3.9",
                "antlr:antlr:2.7.2",
                "org.jboss.spec.javax.rmi:jboss-rmi-api_1.0_spec:1.0.6.Final",
                "picocontainer:picocontainer:1.2",
                "org.slf4j:slf4j-api:1.7.14",
                "org.slf4j:slf4j-nop:1.7.14",
            ),
        ),
    }
)
"""The clients that can be fetched."""


def fetch_client(kind: str, version: str | None = None, *, unpinned: bool = False) -> Fetched:
    """The jars of a client in the cache; fetched with Maven where they are not there.

    Args:
        kind: one of `CLIENTS`.
        version: of the client; None: the one that is pinned.
        unpinned: takes a version that no hashes are known of, with whatever Maven says that it needs.

    Raises:
        ConfigError: no such kind, no hashes are known of the version, there is no Maven, or the jars cannot be had or
            are others than those that are pinned.
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
    artifacts = [f"{client.artifact}:{requested}", *(client.needs if pinned else ())]
    hashes = client.hashes if pinned else None

    def make(scratch: Path) -> Path:
        return maven.fetch(artifacts, hashes, scratch, _INSTEAD, f"the client of {client.title}")

    folder = maven.cached(_folder(kind, requested), make)
    return Fetched(kind, requested, folder, {jar.name: _digest(jar) for jar in sorted(folder.glob("*.jar"))})


def is_client(name: str) -> bool:
    """Whether a class path means a client by a name: `KIND`, or `KIND-VERSION`."""
    return _split(name) is not None


def find_client(name: str) -> list[Path]:
    """The jars of a client that was fetched, or that came with a broker; nothing is fetched here.

    Args:
        name: `KIND`, one of `CLIENTS`, or `KIND-VERSION`.

    Raises:
        ConfigError: they are not there; the command that fetches them is in the text.
    """
    found = _split(name)
    kind, version = found if found is not None else (name, "")
    client = _client(kind)
    home = maven.cache_folder() / _folder(kind, version or client.version)
    if home.is_dir():
        return sorted(home.glob("*.jar"))
    if not version or version == client.version:
        for folder, patterns in client.elsewhere:
            base = folder or maven.cache_folder()
            jars = [sorted(base.glob(pattern)) for pattern in patterns]
            if all(jars):
                return [jar for some in jars for jar in some]
    more = "" if not version or version == client.version else f" --version {version} --unpinned"
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


def _folder(kind: str, version: str) -> str:
    return f"client-{kind}-{version}"


def _digest(jar: Path) -> str:
    with jar.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
