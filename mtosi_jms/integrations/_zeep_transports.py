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
from zeep.wsdl.bindings.soap import SoapBinding

from mtosi_jms.errors import ConfigError, SchemaError
from mtosi_jms.integrations._zeep_bindings import HttpSoap11, HttpSoap12, JmsSoap11, JmsSoap12
from mtosi_jms.masking import without_login


class LocalTransport(Transport):  # type: ignore[misc]
    """Reads files; what is remote by the user's transport alone.

    Args:
        files: contents of files that were mended, by path.
        remote: the user's transport; None: nothing is fetched.
    """

    binding_classes: tuple[type[SoapBinding], ...] = (JmsSoap11, JmsSoap12)

    def __init__(self, files: Mapping[str, bytes], remote: Transport | None) -> None:
        super().__init__(operation_timeout=remote.operation_timeout if remote is not None else None)
        self._files = files
        self._remote = remote

    def load(self, url: str) -> bytes:
        """The content of a file that a WSDL or schema refers to.

        Raises:
            SchemaError: it is remote and there is no transport for it, or it cannot be read.
        """
        if urlsplit(url).scheme in ("http", "https"):
            if self._remote is None:
                shown = without_login(url)
                name = Path(urlsplit(url).path).name or "schema.xsd"
                what = f"{shown} is remote, and nothing is fetched: put {name} beside the WSDL, or in a folder of sources="
                raise SchemaError(f"{what}; or give a zeep transport that may fetch it", rule="location-remote")
            return bytes(self._remote.load(url))
        found = self._files.get(url)
        if found is not None:
            return found
        try:
            return Path(url).read_bytes()
        except OSError as error:
            raise SchemaError(error.strerror or "cannot be read", file=url, rule="location-missing") from None


class HttpTransport(LocalTransport):
    """The same, which also sends: by the user's transport, or a plain one of zeep's.

    Args:
        files: contents of files that were mended, by path.
        remote: the user's transport; None: nothing is fetched, and requests are sent by zeep's own.
        login: user and password of the address; None where it has none.
    """

    binding_classes = (HttpSoap11, HttpSoap12)

    def __init__(self, files: Mapping[str, bytes], remote: Transport | None, login: tuple[str, str] | None) -> None:
        super().__init__(files, remote)
        self._sender = remote
        self._login = login

    def post_xml(self, address: str, envelope: etree._Element, headers: Mapping[str, str]) -> Any:
        if self._login is not None:
            given = base64.b64encode(":".join(self._login).encode()).decode()
            headers = {"Authorization": f"Basic {given}", **headers}
        if self._sender is None:
            return super().post_xml(address, envelope, headers)
        return self._sender.post_xml(address, envelope, headers)


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
