"""What zeep reads: a copy of a WSDL and all that it reaches, mended as the generator would read it.

Nothing is fetched, unless the user gives a transport of zeep's for that: then what imports name by URL is fetched into
a folder, and is a source like any other.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from zeep import Settings, Transport
from zeep.exceptions import Error as ZeepError
from zeep.wsdl import Document

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import load
from mtosi_codegen.mend import Mended, mend
from mtosi_jms.errors import SchemaError
from mtosi_jms.integrations._zeep.easing import ease
from mtosi_jms.integrations._zeep.transports import LocalTransport
from mtosi_jms.masking import without_login

log = logging.getLogger("mtosi_jms.integrations")

_ODD: Final = re.compile(r"[^\w.-]")


class _Missing(NamedTuple):
    """A remote file that an import names."""

    url: str
    by: Path
    line: int

    def error(self, message: str) -> SchemaError:
        """The error of an import that leads nowhere."""
        return SchemaError(message, file=str(self.by), line=self.line, rule="location-remote")


def read_document(
    wsdl: str | Path, sources: Sequence[str | Path], transport: Transport | None, settings: Settings
) -> Document:
    """zeep's document of a mended copy; its `location` is the WSDL's own. Raises SchemaError: a file that is not there
    or cannot be read; something remote, and no transport; zeep.exceptions.Error: zeep cannot read the mended copy."""
    path = Path(os.path.realpath(wsdl))
    if not path.is_file():
        raise SchemaError("no such file", file=str(wsdl))
    if isinstance(sources, str | Path):
        sources = [sources]
    with TemporaryDirectory(prefix="mtosi-zeep-") as name:
        remote, copy = _Remote(Path(name, "fetched").resolve(), transport), Path(name, "copy")
        every = [path, *(Path(os.path.realpath(source)) for source in sources)]
        mended = mend(every, copy, bindings="all")
        while remote.fetch(mended, every):
            every = list(dict.fromkeys((*every, remote.folder)))
            mended = mend(every, copy, bindings="all")
        for finding in mended.findings:
            log.log(logging.WARNING if finding.failed else logging.DEBUG, "%s", finding)
        root = _copy_of(path, every, mended)
        ease(mended)
        document = Document(str(root), LocalTransport(transport), settings=settings)
    document.location = str(path)
    return document


def _copy_of(wsdl: Path, sources: Sequence[Path], mended: Mended) -> Path:
    """The copy of a WSDL. Raises SchemaError: there is none; the finding says why."""
    base = os.path.commonpath([source if source.is_dir() else source.parent for source in sources])
    for name, copy in mended.wsdls.items():
        if os.path.normpath(Path(base, name)) == str(wsdl):
            return copy
    why = next((finding for finding in mended.findings if finding.failed), None)
    message = why.message if why is not None else "no WSDL with a binding"
    raise SchemaError(message, file=str(wsdl), rule=why.rule if why is not None else "no-service")


class _Remote:
    """What imports name by URL, and what was fetched of it. `folder`: where it goes, at the places of the URLs' paths:
    files that name each other find each other there. `transport`: fetches; None: nothing is fetched."""

    def __init__(self, folder: Path, transport: Transport | None) -> None:
        self.folder = folder
        self._transport = transport
        self._urls: dict[Path, str] = {}

    def fetch(self, mended: Mended, sources: Sequence[Path]) -> bool:
        """Fetch what is missing; whether there was anything. Raises SchemaError: it cannot be fetched."""
        missing = list(self._missing(mended, sources))
        for one in missing:
            place = self._place(one.url)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self._content(one))
            self._urls[place] = one.url
        return bool(missing)

    def _missing(self, mended: Mended, sources: Sequence[Path]) -> Iterator[_Missing]:
        """The remote files that imports name and no source stands for, each once."""
        left_out = {finding.rule for finding in mended.findings if finding.repair.startswith("left out")}
        if not left_out & {"location-remote", "location-missing"}:
            return
        found: set[str] = set()
        for document in load(sources, Findings(), "all").documents:
            for link in document.links:
                location = (link.element.get("schemaLocation") or link.element.get("location") or "").strip()
                url = _remote(self._urls.get(document.path, ""), location)
                if link.target is None and url and url not in found:
                    found.add(url)
                    if self._place(url) not in self._urls:
                        yield _Missing(url, document.path, link.element.sourceline or 0)

    def _content(self, one: _Missing) -> bytes:
        shown = without_login(one.url)
        if self._transport is None:
            name = Path(urlsplit(one.url).path).name or "what it names"
            where = (
                f"put {name} into {one.by.parent} or another folder of sources, or give a transport that may fetch it"
            )
            raise one.error(f"{shown} is remote, and nothing is fetched: {where}")
        try:
            return bytes(self._transport.load(one.url))
        except (OSError, ZeepError) as error:
            raise one.error(f"{shown} cannot be fetched: {without_login(str(error))}") from None

    def _place(self, url: str) -> Path:
        parts = urlsplit(url)
        steps = [parts.scheme, parts.netloc, *parts.path.split("/"), *([f"{parts.query}.xsd"] if parts.query else [])]
        return Path(self.folder, *(_ODD.sub("_", step) for step in steps if step not in ("", ".", "..")))


def _remote(base: str, location: str) -> str:
    """The URL of HTTP that a location names, seen from another one; empty for any other, and for what can be none."""
    try:
        url = urljoin(base, location)
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:
        return ""
