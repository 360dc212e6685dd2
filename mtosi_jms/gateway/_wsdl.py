"""WSDLs as clients of an endpoint get them: its own address in them, and all that they import at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from lxml import etree

from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import clark
from mtosi_jms.xmlbind import parse_xml

_SOAP: Final = ("http://schemas.xmlsoap.org/wsdl/soap/", "http://schemas.xmlsoap.org/wsdl/soap12/")
_HTTP: Final = "http://schemas.xmlsoap.org/soap/http"
_BELOW: Final = "/wsdl/"
_SUFFIXES: Final = frozenset({".wsdl", ".xsd"})
_LOCATIONS: Final = ("location", "schemaLocation")


class WsdlFiles:
    """Describes an endpoint: called with a path and the endpoint's URL, it gives a document or None.

    `/ManagedElementRetrieval?wsdl` gives the file of that name, any other path the first file; what they import lies
    below `/wsdl/`. Only WSDL and XSD files below the folder are given out.

    Args:
        files: the WSDLs.
        folder: where they and all that they import lie.

    Raises:
        ConfigError: no file, or one that is not below the folder.
        XmlError: a file that is no XML.
    """

    def __init__(self, files: Sequence[Path], folder: Path) -> None:
        self._folder = folder.resolve()
        self._files = [file.resolve() for file in files]
        if not self._files:
            raise ConfigError("give a WSDL to serve")
        for file in self._files:
            if not file.is_relative_to(self._folder):
                raise ConfigError(f"{file}: it does not lie below {self._folder}")
            _read(file)

    def __call__(self, path: str, base: str) -> bytes | None:
        """The document of a path; None: there is none.

        Args:
            path: of the request.
            base: URL of the endpoint.
        """
        if not path.startswith(_BELOW):
            wanted = path.strip("/").rpartition("/")[2]
            found = next((file for file in self._files if file.stem.startswith(wanted)), self._files[0])
            return self._document(found, base, path)
        file = (self._folder / unquote(path.removeprefix(_BELOW))).resolve()
        if file.suffix not in _SUFFIXES or not file.is_relative_to(self._folder) or not file.is_file():
            return None
        return self._document(file, base, "/")

    def _document(self, file: Path, base: str, path: str) -> bytes:
        root = _read(file)
        for element in root.iter(etree.Element):
            for name in _LOCATIONS:
                given = element.get(name)
                if given is not None and not urlsplit(given).scheme:
                    element.set(name, self._url(base, file.parent / unquote(given)))
        for soap in _SOAP:
            for binding in root.iter(clark(soap, "binding")):
                binding.set("transport", _HTTP)
            for address in root.iter(clark(soap, "address")):
                address.set("location", f"{base}{path if path != '/' else ''}")
        return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8"))

    def _url(self, base: str, file: Path) -> str:
        place = file.resolve()
        below = place.relative_to(self._folder) if place.is_relative_to(self._folder) else Path(place.name)
        return f"{base}{_BELOW}{quote(below.as_posix())}"


def _read(file: Path) -> etree._Element:
    try:
        return parse_xml(file.read_bytes(), source=str(file))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
