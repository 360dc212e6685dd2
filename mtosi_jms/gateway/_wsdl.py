"""WSDLs for clients of an endpoint: they hold its address, and the files that they import are served too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from lxml import etree

from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import clark
from mtosi_jms.xmlbind import parse_xml

_SOAP: Final = ("http://schemas.xmlsoap.org/wsdl/soap/", "http://schemas.xmlsoap.org/wsdl/soap12/")
_HTTP: Final = "http://schemas.xmlsoap.org/soap/http"
_BELOW: Final = "/wsdl/"
_LOCATIONS: Final = ("location", "schemaLocation")


class WsdlFiles:
    """Serves the WSDLs of an endpoint. Called with a path and the endpoint's URL, it returns a document or None.

    `/ManagedElementRetrieval?wsdl` gives the file of that name, any other path the first file. The files that they
    import, and no others, are below `/wsdl/`.

    Raises:
        ConfigError: there is no file, or one cannot be read.
        XmlError: a file is not XML.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = [Path(os.path.realpath(file)) for file in files]
        if not self._files:
            raise ConfigError("give a WSDL to serve")
        self._served: set[Path] = set()
        left = list(self._files)
        while left:
            file = left.pop()
            if file not in self._served:
                self._served.add(file)
                left += [found for _, _, found in _imported(_read(file), file) if _is_file(found)]
        self._folder = Path(os.path.commonpath([file.parent for file in self._served]))

    def __call__(self, path: str, base: str) -> bytes | None:
        """Return the document of a path; None if there is none."""
        if not path.startswith(_BELOW):
            wanted = path.strip("/").rpartition("/")[2]
            found = next((file for file in self._files if file.stem.startswith(wanted)), self._files[0])
            return self._document(found, base, path)
        file = self._folder / unquote(path.removeprefix(_BELOW))
        return self._document(file, base, "/") if file in self._served else None

    def _document(self, file: Path, base: str, path: str) -> bytes:
        root = _read(file)
        for element, name, imported in _imported(root, file):
            if imported in self._served:
                element.set(name, f"{base}{_BELOW}{quote(imported.relative_to(self._folder).as_posix())}")
        for soap in _SOAP:
            for binding in root.iter(clark(soap, "binding")):
                binding.set("transport", _HTTP)
            for address in root.iter(clark(soap, "address")):
                address.set("location", f"{base}{path if path != '/' else ''}")
        return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8"))


def _imported(root: etree._Element, file: Path) -> Iterator[tuple[etree._Element, str, Path]]:
    """The elements of a document that name another file, with the attribute that names it, and the file."""
    for element in root.iter(etree.Element):
        for name in _LOCATIONS:
            given = element.get(name)
            if given and (found := _file_at(given, file)) is not None:
                yield element, name, found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False


def _file_at(location: str, file: Path) -> Path | None:
    """The file that a location in another file names; None for a URL, and for what no file can be called."""
    try:
        return None if urlsplit(location).scheme else Path(os.path.realpath(file.parent / unquote(location)))
    except ValueError:
        return None


def _read(file: Path) -> etree._Element:
    try:
        return parse_xml(read_file(file, 64 * 2**20), source=str(file), schema=True)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
