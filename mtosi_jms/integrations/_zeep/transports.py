"""What zeep takes for its transport: it reads files, says which binding classes there are, and sends over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from lxml import etree
from zeep import Transport

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, SchemaError
from mtosi_jms.integrations._zeep.bindings import AnySoap11, AnySoap12
from mtosi_jms.masking import without_login


class LocalTransport(Transport):
    """Reads files, and what is remote by the user's transport alone. Sends over HTTP for a client that has a URL.
    `given`: the user's transport, which sends and fetches; None: zeep's own sends, and nothing is fetched. `login`:
    user and password of the client's URL; None where it has none."""

    binding_classes = (AnySoap11, AnySoap12)

    def __init__(self, given: Transport | None, login: tuple[str, str] | None = None) -> None:
        super().__init__(operation_timeout=given.operation_timeout if given is not None else None)
        self._given = given
        self._login = login

    def load(self, url: str) -> bytes:
        """The content of a file, or of what zeep itself wants to fetch. Raises SchemaError: it is remote and there is
        no transport for it."""
        if urlsplit(url).scheme not in ("http", "https"):
            return read_file(url, BOUNDS.source_bytes)
        if self._given is None:
            advice = "name a folder with its schema in sources, or give a transport that may fetch it"
            raise SchemaError(
                f"{without_login(url)} is remote, and nothing is fetched: {advice}", rule="location-remote"
            )
        return bytes(self._given.load(url))

    def post_xml(self, address: str, envelope: etree._Element, headers: Mapping[str, str]) -> Any:
        if self._login is not None:
            given = base64.b64encode(":".join(self._login).encode()).decode()
            headers = {"Authorization": f"Basic {given}", **headers}
        if self._given is None:
            return super().post_xml(address, envelope, headers)
        if self.operation_timeout == self._given.operation_timeout:
            return self._given.post_xml(address, envelope, headers)
        with self._given.settings(timeout=self.operation_timeout):
            return self._given.post_xml(address, envelope, headers)


def checked_url(url: object) -> tuple[str, tuple[str, str] | None]:
    """An address without user and password, and these. Raises ConfigError: it is not an HTTP URL."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        host = parts.hostname if parts is not None and parts.scheme in ("http", "https") and parts.port != 0 else None
    except ValueError:
        parts = host = None
    if parts is None or not host:
        shown = without_login(url) if isinstance(url, str) else type(url).__name__
        raise ConfigError(f"url: give an http: or https: URL, not {shown}")
    login = None
    if parts.username is not None:
        login = unquote(parts.username), unquote(parts.password or "")
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, login
