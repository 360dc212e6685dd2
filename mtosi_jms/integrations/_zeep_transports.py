"""What zeep takes for its transport: reads the mended files, fetches nothing unless the user has a transport for it.

zeep asks the same object which binding classes there are, how long an operation may take, and to send over HTTP.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from lxml import etree
from zeep import Transport

from mtosi_jms.errors import ConfigError, SchemaError
from mtosi_jms.integrations._zeep_bindings import AnySoap11, AnySoap12
from mtosi_jms.masking import without_login


class LocalTransport(Transport):
    """Reads files; what is remote by the user's transport alone. Sends over HTTP for a client that has a URL.

    Args:
        files: contents of files that were mended, by path.
        given: the user's transport; None: nothing is fetched, and zeep's own sends.
        login: user and password of the client's URL; None where it has none.
    """

    binding_classes = (AnySoap11, AnySoap12)

    def __init__(
        self,
        files: Mapping[str, bytes] | None = None,
        given: Transport | None = None,
        login: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(operation_timeout=given.operation_timeout if given is not None else None)
        self._files = files or {}
        self._given = given
        self._login = login

    def load(self, url: str) -> bytes:
        """The content of a file that a WSDL or schema refers to.

        Raises:
            SchemaError: it is remote and there is no transport for it, or it cannot be read.
        """
        if urlsplit(url).scheme in ("http", "https"):
            if self._given is None:
                shown = without_login(url)
                name = Path(urlsplit(url).path).name or "schema.xsd"
                advice = (
                    f"put {name} beside the WSDL or into a folder of sources=, or give a transport that may fetch it"
                )
                raise SchemaError(f"{shown} is remote, and nothing is fetched: {advice}", rule="location-remote")
            return bytes(self._given.load(url))
        found = self._files.get(url)
        if found is not None:
            return found
        try:
            return Path(url).read_bytes()
        except OSError as error:
            raise SchemaError(error.strerror or "cannot be read", file=url, rule="location-missing") from None

    def post_xml(self, address: str, envelope: etree._Element, headers: Mapping[str, str]) -> Any:
        if self._login is not None:
            given = base64.b64encode(":".join(self._login).encode()).decode()
            headers = {"Authorization": f"Basic {given}", **headers}
        if self._given is None:
            return super().post_xml(address, envelope, headers)
        return self._given.post_xml(address, envelope, headers)


def checked_url(url: object) -> tuple[str, tuple[str, str] | None]:
    """An address without user and password, and these.

    Raises:
        ConfigError: it is no HTTP URL.
    """
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
