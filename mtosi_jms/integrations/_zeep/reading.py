"""What zeep reads: a copy of a WSDL and all that it reaches, mended as the generator would read it.

Nothing is fetched, unless the user gives a transport of zeep's for that: then what imports name by URL is fetched into
a folder, and is a source like any other.
"""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from lxml import etree
from zeep import Settings, Transport
from zeep.exceptions import Error as ZeepError
from zeep.wsdl import Document

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import load
from mtosi_codegen.mend import Mended, mend
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, SchemaError
from mtosi_jms.integrations._zeep.calls import AnySoap11, AnySoap12
from mtosi_jms.masking import without_login
from mtosi_jms.namespaces import WSDL, XSD, clark, split_clark
from mtosi_jms.xmlbind import read_xml


class LocalTransport(Transport):
    """Reads files, and what is remote by the user's transport alone. Sends over HTTP for a client that has a URL.
    `given`: the user's transport, which sends and fetches; None: zeep's own sends, and nothing is fetched."""

    binding_classes = (AnySoap11, AnySoap12)

    def __init__(self, given: Transport | None, login: tuple[str, str] | None = None) -> None:
        super().__init__(operation_timeout=given.operation_timeout if given is not None else None)
        self._given = given
        self._login = login

    def load(self, url: str) -> bytes:

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

        with self._given.settings(timeout=self.operation_timeout):
            return self._given.post_xml(address, envelope, headers)


def checked_url(url: object) -> tuple[str, tuple[str, str] | None]:
    """An address without user and password, and these."""
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


_ELEMENT: Final = clark(XSD, "element")


def ease(mended: Mended) -> None:
    """Write out in a mended copy what zeep does not know of XML Schema and WSDL.

    - zeep looks through the imports of an imported WSDL only where that has another namespace: each WSDL imports
      directly what it reaches.
    - zeep knows no substitution groups: where the head of one may stand, there is a choice of it and its members.
    - zeep moves what a schema includes, and may lose a prefix that is declared below the root: all stand there.
    """
    _import_all(mended)
    trees = {path: read_xml(path) for path in sorted(mended.folder.glob("*.xsd"))}
    changed = _write_out_groups(mended, trees)
    for path, root in trees.items():
        whole = _with_prefixes(root)
        if whole is not root or path in changed:
            path.write_bytes(etree.tostring(whole))


def _import_all(mended: Mended) -> None:
    trees = {path.name: read_xml(path) for path in mended.wsdls.values()}
    tag = clark(WSDL, "import")
    direct = {name: [one.get("location") or "" for one in root.iterchildren(tag)] for name, root in trees.items()}
    for name, root in trees.items():
        reached = {one for one in _reached(name, direct) if one in trees}
        for one in sorted(reached - {name, *direct[name]}):
            namespace = trees[one].get("targetNamespace") or ""
            root.insert(0, etree.Element(tag, namespace=namespace, location=one))
        Path(mended.folder, name).write_bytes(etree.tostring(root))


def _reached(start: str, direct: Mapping[str, Sequence[str]]) -> list[str]:
    """What a name leads to, over any number of steps, itself first."""
    found = {start: None}
    for name in (queue := [start]):
        queue += [one for one in direct.get(name, ()) if one not in found]
        found.update(dict.fromkeys(queue))
    return list(found)


def _write_out_groups(mended: Mended, trees: Mapping[Path, etree._Element]) -> set[Path]:
    """Put choices in the places of elements that others may substitute; the files that were changed."""
    groups = _groups(trees)
    changed = set()
    for path, root in trees.items():
        heads = [(one, name) for one in root.iter(_ELEMENT) if (name := _qname(one, "ref")) in groups]
        for element, head in heads:
            _write_choice(element, groups[head])
        if heads:
            known = {one.get("namespace") for one in root.iterchildren(clark(XSD, "import"))}
            own = root.get("targetNamespace")
            needed = {split_clark(name)[0] for _, head in heads for name in groups[head]}
            for namespace in sorted(needed - known - {own}):
                location = mended.schemas[namespace].name
                root.insert(0, etree.Element(clark(XSD, "import"), namespace=namespace, schemaLocation=location))
            changed.add(path)
    return changed


def _with_prefixes(root: etree._Element) -> etree._Element:
    """A schema that declares all its prefixes at its root; itself where it does."""
    declared = dict(root.nsmap)
    for _, (prefix, namespace) in etree.iterwalk(root, events=("start-ns",)):
        if prefix:
            declared.setdefault(prefix, namespace)
    if declared == dict(root.nsmap):
        return root
    made = etree.Element(root.tag, dict(root.attrib), nsmap=declared)
    made[:] = root[:]
    return made


def _groups(trees: Mapping[Path, etree._Element]) -> dict[str, list[str]]:
    """The elements that may stand in the place of each head, by Clark names; itself too where it is not abstract."""
    direct: dict[str, list[str]] = {}
    abstract: set[str] = set()
    for root in trees.values():
        for element in root.iterchildren(_ELEMENT):
            name = clark(root.get("targetNamespace") or "", element.get("name") or "")
            if element.get("abstract") in ("true", "1"):
                abstract.add(name)
            for head in _qnames(element, "substitutionGroup"):
                direct.setdefault(head, []).append(name)
    groups = {head: [name for name in _reached(head, direct) if name not in abstract] for head in direct}
    return {head: members for head, members in groups.items() if members and members != [head]}


def _write_choice(element: etree._Element, members: list[str]) -> None:
    choice = etree.Element(clark(XSD, "choice"))
    for attribute in ("minOccurs", "maxOccurs"):
        if (value := element.get(attribute)) is not None:
            choice.set(attribute, value)
    parent = element.getparent()
    if parent is None:
        return
    parent.replace(element, choice)
    for name in members:
        namespace, local = split_clark(name)
        # lxml drops a second prefix for a namespace, and with it what the prefix in the text stands for.
        known = next(
            (prefix for prefix, one in choice.nsmap.items() if one == namespace), "member" if namespace else None
        )
        nsmap = {"member": namespace} if known == "member" else None
        etree.SubElement(choice, _ELEMENT, nsmap=nsmap, ref=f"{known}:{local}" if known else local)


def _qname(element: etree._Element, attribute: str) -> str:
    return next(iter(_qnames(element, attribute)), "")


def _qnames(element: etree._Element, attribute: str) -> list[str]:
    names = []
    for text in (element.get(attribute) or "").split():
        prefix, _, local = text.rpartition(":")
        names.append(clark(element.nsmap.get(prefix or None) or "", local))
    return names


log = logging.getLogger("mtosi_jms.integrations")

_ODD: Final = re.compile(r"[^\w.-]")


class _Missing(NamedTuple):
    """A remote file that an import names."""

    url: str
    by: Path
    line: int

    def error(self, message: str) -> SchemaError:
        return SchemaError(message, file=str(self.by), line=self.line, rule="location-remote")


def read_document(
    wsdl: str | Path, sources: Sequence[str | Path], transport: Transport | None, settings: Settings
) -> Document:
    """zeep's document of a mended copy; its `location` is the WSDL's own."""
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
    base = os.path.commonpath([source if source.is_dir() else source.parent for source in sources])
    for name, copy in mended.wsdls.items():
        if os.path.normpath(Path(base, name)) == str(wsdl):
            return copy
    why = next((finding for finding in mended.findings if finding.failed), None)
    message = why.message if why is not None else "no WSDL with a binding"
    raise SchemaError(message, file=str(wsdl), rule=why.rule if why is not None else "no-service")


class _Remote:
    """What imports name by URL. `folder`: where it goes, at the places of the URLs' paths, so that files that name each
    other find each other. `transport`: fetches; None: nothing is fetched."""

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
