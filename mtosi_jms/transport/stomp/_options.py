"""The URL and the options of a STOMP connection, checked; nothing here shows a credential."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from mtosi_jms.errors import ConfigError
from mtosi_jms.transport._options import COUNT, PATH, SECONDS, TEXT, NetworkOptions, check, completed

PORTS: Final = {"stomp": 61613, "stomp+ssl": 61612}
_CONTEXT: Final = check("an ssl.SSLContext", lambda value: isinstance(value, ssl.SSLContext))
_FAILOVER: Final = re.compile(r"failover:(?://)?\(([^()]*)\)(?:\?(.*))?|failover:(?://)?([^()?]*)(?:\?(.*))?")


@dataclass(frozen=True, slots=True)
class Address:
    """One broker."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'stomp+ssl' if self.tls else 'stomp'}://{host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class StompOptions(NetworkOptions):
    """What `connect("stomp://...")` takes besides the address and the login; see `docs/stomp.md` for all.

    Attributes:
        heart_beat: seconds between heart-beats, both ways; a side that is silent for twice as long counts as dead.
        prefetch: how many messages the broker sends to a consumer of a queue before they are acknowledged.
        ca_file: certificates of the authorities for the broker's certificate, PEM; else from MTOSI_JMS_CA_FILE, else
            the system's.
        cert_file: our own certificate, PEM.
        key_file: its key, if it is not in `cert_file`.
        key_password: password of the key.
        ssl_context: a context in place of all these.
        virtual_host: value of the header `host`; by default the broker's name.
    """

    heart_beat: float = field(default=10.0, metadata=SECONDS)
    prefetch: int = field(default=50, metadata=COUNT)
    ca_file: str = field(default="", metadata=PATH)
    cert_file: str = field(default="", metadata=PATH)
    key_file: str = field(default="", metadata=PATH)
    key_password: str = field(default="", repr=False, metadata=TEXT)
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False, metadata=_CONTEXT)
    virtual_host: str = field(default="", metadata=TEXT)

    def tls(self) -> ssl.SSLContext:
        """The context for TLS connections: certificate and name of the broker are always checked.

        Raises ConfigError for a file that cannot be read or used, and for a missing or wrong key_password."""
        if self.ssl_context is not None:
            return self.ssl_context
        if (self.key_file or self.key_password) and not self.cert_file:
            raise ConfigError(f"option {'key_file' if self.key_file else 'key_password'}: it needs cert_file")
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
        except (OSError, ValueError) as error:
            raise _unusable("ca_file", self.ca_file, error) from error
        if self.cert_file:
            self._load_certificate(context)
        return context

    @property
    def has_certificate(self) -> bool:
        return bool(self.cert_file) or self.ssl_context is not None

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        encrypted = False

        def password() -> str:
            nonlocal encrypted
            encrypted = True
            return self.key_password

        for name in ("cert_file", "key_file"):
            if file := getattr(self, name):
                try:
                    Path(file).open("rb").close()
                except OSError as error:
                    raise _unusable(name, file, error) from error
        key = self.key_file or self.cert_file
        try:
            context.load_cert_chain(self.cert_file, self.key_file or None, password)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            if encrypted:
                how = "it does not open" if self.key_password else "it is missing for"
                raise ConfigError(f"option key_password: {how} the key in {key}, which is encrypted") from None
            if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
                raise ConfigError(f"option key_file: the key in {key} is not that of {self.cert_file}") from error
            raise _unusable("cert_file and key_file" if self.key_file else "cert_file", key, error) from error


def _unusable(option: str, file: str, error: OSError | ValueError) -> ConfigError:
    reason = getattr(error, "strerror", None) or type(error).__name__
    return ConfigError(f"option {option}: {file}: {reason}; it must be a PEM file")


def parse_url(url: str, given: Mapping[str, Any]) -> tuple[tuple[Address, ...], StompOptions]:
    """The brokers that a URL (`stomp://...`, `stomp+ssl://...` or `failover:(...)`) names, in its order, and the
    options. Raises ConfigError: an address or an option at fault."""
    parts, query = _split(url)
    logins: dict[str, str] = {}
    addresses = tuple(_address(part, logins, query) for part in parts)
    return addresses, StompOptions(**completed(StompOptions, "stomp", query, logins, given))


def _split(url: str) -> tuple[list[str], dict[str, str]]:
    found = _FAILOVER.fullmatch(url) if url[:9].lower() == "failover:" else None
    if found is None:
        return [url], {}
    brokers, query = (found[1], found[2]) if found[1] is not None else (found[3], found[4])
    return [part.strip() for part in brokers.split(",") if part.strip()], dict(parse_qsl(query or ""))


def _address(text: str, logins: dict[str, str], query: dict[str, str]) -> Address:
    wanted = "an address is stomp://host:port or stomp+ssl://host:port"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"the URL cannot be read; {wanted}") from None  # its text may hold a password
    scheme = parts.scheme.lower()
    if scheme not in PORTS or not host or parts.path not in ("", "/") or parts.fragment:
        raise ConfigError(f"{scheme}: not the address of a STOMP broker; {wanted}")
    for name, value in (("user", parts.username), ("password", parts.password)):
        if value is not None and logins.setdefault(name, unquote(value)) != unquote(value):
            raise ConfigError(
                f"{host}: its {name} differs from that of the brokers before it; all must share one login"
            )
    query.update(parse_qsl(parts.query, keep_blank_values=True))
    return Address(host, port or PORTS[scheme], scheme == "stomp+ssl")
