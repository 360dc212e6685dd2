"""All schemas of a folder as one libxml2 schema, over all their namespaces at once.

What cannot be used is left out and noted, not fatal: a release with one broken file still validates everything else,
and an element of the missing namespace is an issue that names the reason.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import read_file
from mtosi_jms.errors import SchemaError, XmlError
from mtosi_jms.namespaces import WSDL, XML, XSD
from mtosi_jms.validation._schemafile import (
    FoundFiles,
    SchemaFile,
    SchemaLink,
    SchemaNote,
    find_files,
    overgrown,
    own_files,
    read_schema,
    resolve_location,
)
from mtosi_jms.xmlbind import make_parser, parse_xml

_LEFTOVER = re.compile(r"\b(?:old|copy|backup|bak|orig)\b", re.IGNORECASE)

Choice = dict[str, list[SchemaFile]]
"""The files of each namespace, the main one first."""


def choose(
    files: Mapping[Path, SchemaFile], primary: Collection[Path], wsdl_imports: Callable[[], Counter[Path]]
) -> tuple[Choice, list[SchemaNote]]:
    """Choose the files of each namespace, where a tree has several for it; with a note on each rival left out.

    Files that another file of the namespace includes belong to that file. Files that declare different things are taken
    together. Files that declare the same thing twice are rivals (`X.xsd` and `X-old.xsd`): the one that other schemas
    and WSDLs of the tree import most is taken.

    Args:
        primary: those that the folder itself holds; others, reached by an import out of it, count only for
            namespaces that the folder lacks.
        wsdl_imports: counts how often a WSDL imports a file; called only where there are rivals.
    """
    links = [link for file in files.values() for link in file.links]
    included = {link.target for link in links if link.kind != "import"}
    ordered = [files[path] for path in sorted(files)]
    chosen: Choice = {}
    for file in ordered:
        if file.path not in included:
            chosen.setdefault(file.namespace, []).append(file)
    for file in ordered:
        # Files that include each other in a ring have no head: any of them brings in the rest.
        if file.namespace:
            chosen.setdefault(file.namespace, [file])
    notes: list[SchemaNote] = []
    for namespace, candidates in chosen.items():
        candidates = [file for file in candidates if file.path in primary] or candidates
        if len(candidates) > 1:
            counts = Counter(link.target for link in links if link.target is not None) + wsdl_imports()
            candidates, rivals = _compatible(sorted(candidates, key=lambda file: (-counts[file.path], *_rank(file))))
            for rival in rivals:
                message = f"left out: a rival of {candidates[0].path}, which counts for namespace {namespace}"
                notes.append(SchemaNote("rival", str(rival.path), rival.root.sourceline, message))
        chosen[namespace] = candidates
    return chosen, notes


def _rank(file: SchemaFile) -> tuple[bool, int, int, str]:
    dangling = sum(1 for link in file.links if link.location is not None and link.target is None)
    stem = file.path.stem.replace("_", " ")
    return bool(_LEFTOVER.search(stem)), dangling, len(stem), str(file.path)


def _compatible(ranked: list[SchemaFile]) -> tuple[list[SchemaFile], list[SchemaFile]]:
    """Take files in order as long as none declares again what an earlier one declares."""
    taken: list[SchemaFile] = []
    symbols: set[tuple[str, str]] = set()
    for file in ranked:
        if symbols.isdisjoint(file.symbols):
            taken.append(file)
            symbols |= file.symbols
    return taken, [file for file in ranked if file not in taken]


def count_wsdl_imports(wsdls: Iterable[Path]) -> Counter[Path]:
    """How often the WSDLs of a tree import each schema file. A WSDL that cannot be read imports nothing."""
    counts: Counter[Path] = Counter()
    for path in wsdls:
        try:
            root = parse_xml(read_file(path, BOUNDS.source_bytes), schema=True)
        except (OSError, XmlError):
            # Only schemas are judged here; the generator is the one to report a broken WSDL.
            continue
        for element in root.iter(f"{{{XSD}}}import", f"{{{XSD}}}include", f"{{{WSDL}}}import"):
            location = element.get("schemaLocation") or element.get("location") or ""
            target, _ = resolve_location(path.parent, location)
            if target is not None:
                counts[target] += 1
    return counts


_DRIVER: Final = "urn:mtosi-jms:driver"
_XML_KEY: Final = "mtosi-schema:/xml"
# libxml2 has no declarations of its own for xml:lang and its kin.
_XML_ATTRIBUTES: Final = f"""<xs:schema xmlns:xs="{XSD}" targetNamespace="{XML}">
<xs:attribute name="lang" type="xs:string"/><xs:attribute name="base" type="xs:anyURI"/>
<xs:attribute name="id" type="xs:ID"/><xs:attribute name="space" type="xs:NCName"/>
<xs:attributeGroup name="specialAttrs"><xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/>
<xs:attribute ref="xml:space"/><xs:attribute ref="xml:id"/></xs:attributeGroup></xs:schema>""".encode()


class _Memory(etree.Resolver):  # type: ignore[misc]  # lxml has no types
    """Answers libxml2's requests from memory; an address that is not ours gets an empty document, never a file."""

    def __init__(self, documents: Mapping[str, bytes]) -> None:
        self._documents = documents

    def resolve(self, system_url: str, public_id: str, context: object) -> object:
        return self.resolve_string(self._documents.get(system_url, b""), context, base_url=system_url)


def linked_documents(chosen: Choice, usable: Mapping[Path, SchemaFile]) -> tuple[bytes, dict[str, bytes]]:
    """A schema that imports every namespace, and what its imports and includes lead to, by location.

    The namespace decides, not the location: libxml2 skips a second import of a namespace with another schemaLocation
    without a word, so that the first of two rivals would win by accident. Here every import keeps its namespace and
    loses its location, and the driver imports the chosen file of each namespace.
    """
    documents = {file.key: etree.tostring(linked(file, usable, chosen)) for file in usable.values()}
    documents[_XML_KEY] = _XML_ATTRIBUTES
    imports = [] if XML in chosen else [_import(XML, _XML_KEY)]
    for number, namespace in enumerate(sorted(chosen)):
        key = chosen[namespace][0].key
        if len(chosen[namespace]) > 1:
            key = f"mtosi-schema:/parts/{number}"
            includes = (f"<xs:include schemaLocation={quoteattr(file.key)}/>" for file in chosen[namespace])
            documents[key] = _schema(namespace, includes)
        imports.append(_import(namespace, key))
    return _schema(_DRIVER, imports), documents


def _import(namespace: str, key: str) -> str:
    attribute = f" namespace={quoteattr(namespace)}" if namespace else ""
    return f"<xs:import{attribute} schemaLocation={quoteattr(key)}/>"


def _schema(namespace: str, links: Iterable[str]) -> bytes:
    target = f" targetNamespace={quoteattr(namespace)}" if namespace else ""
    return f'<xs:schema xmlns:xs="{XSD}"{target}>{"".join(links)}</xs:schema>'.encode()


def linked(file: SchemaFile, usable: Mapping[Path, SchemaFile], chosen: Choice) -> etree._Element:
    """A copy of a schema whose links are as libxml2 needs them.

    Links that lead nowhere become empty annotations, so that the elements of the copy stay one to one with the file's.
    """
    root = copy.deepcopy(file.root)
    for link in file.links:
        element = root[link.index]
        target = usable.get(link.target) if link.target is not None else None
        if link.kind == "import":
            namespace = _imported_namespace(file, link, target, chosen)
            is_idle = namespace == file.namespace
            element.attrib.pop("schemaLocation", None)
            if namespace:
                element.set("namespace", namespace)
        else:
            is_idle = target is None
            element.set("schemaLocation", target.key if target is not None else "")
        if is_idle:
            element.clear(keep_tail=True)
            element.tag = f"{{{XSD}}}annotation"
    return root


def _imported_namespace(file: SchemaFile, link: SchemaLink, target: SchemaFile | None, chosen: Choice) -> str:
    """The namespace that an import means, where its attribute and the file it names differ.

    The attribute stands unless nothing serves it, or the schema binds a prefix only to what the file has.
    """
    if target is None or target.namespace == link.namespace:
        return link.namespace
    bound = set(file.root.nsmap.values())
    if link.namespace not in chosen or (target.namespace in bound and link.namespace not in bound):
        return target.namespace
    return link.namespace


def link_notes(file: SchemaFile, files: Mapping[Path, SchemaFile], chosen: Choice) -> Iterator[SchemaNote]:
    """What was wrong with the imports and includes of a schema, and what was taken instead."""
    for link in file.links:
        target = files.get(link.target) if link.target is not None else None
        rule, given = "schema-location", f"schemaLocation={link.location!r}"
        if target is None and link.location is not None:
            message = f"{given} names no schema file; {_instead(link, chosen)}"
        elif target is not None and not link.exact:
            message = f"{given} is written differently from the file {target.path}; read as that"
        elif target is not None and link.kind == "import" and target.namespace != link.namespace:
            rule, used = "import-namespace", _imported_namespace(file, link, target, chosen)
            message = f"imports {link.namespace!r}, but {target.path} is of {target.namespace!r}; read as {used!r}"
        else:
            continue
        yield SchemaNote(rule, str(file.path), link.line, message)


def _instead(link: SchemaLink, chosen: Choice) -> str:
    if link.kind != "import":
        return "ignored"
    if link.namespace in chosen:
        return f"namespace {link.namespace} is taken from {chosen[link.namespace][0].path}"
    return f"and no schema of the folder has namespace {link.namespace!r}"


def refusals(
    error: etree.XMLSchemaParseError, usable: Mapping[Path, SchemaFile], chosen: Choice
) -> dict[Path, tuple[int | None, str]]:
    """The files that libxml2 refused, each with its line in the file on disk and the first reason."""
    by_key = {file.key: file for file in usable.values()}
    found: dict[Path, tuple[int | None, str]] = {}
    for entry in error.error_log:
        file = by_key.get(entry.filename)
        if file is None or entry.level < etree.ErrorLevels.ERROR or file.path in found:
            continue
        found[file.path] = (_original_line(file, linked(file, usable, chosen), entry.line), entry.message.strip())
    return found


def _original_line(file: SchemaFile, copied: etree._Element, line: int) -> int | None:
    """The line on disk of the element that stands on `line` of the copy that libxml2 read."""
    read = etree.fromstring(etree.tostring(copied), make_parser())
    pairs = zip(read.iter(), copied.iter(), strict=False)
    return next((original.sourceline for seen, original in pairs if (seen.sourceline or 0) >= line), None)


class SchemaSet:
    """The schemas of one folder, compiled together.

    Attributes:
        namespaces: for each target namespace its files, the main one first; included files are not listed.
        elements: for each target namespace the names of its global elements.
        left_out: for each namespace whose schema could not be used, the reason.
        notes: every repair, every rival, everything left out.
    """

    def __init__(self, found: FoundFiles) -> None:
        """Read, repair and compile what was found. Raises SchemaError: nothing of it can be used."""
        self.folder = found.folder
        self.notes = [SchemaNote("unreadable", str(path), None, reason) for path, reason in found.unreadable]
        self.left_out: dict[str, str] = {}
        self._found = found

        self._files = self._read()
        self.schema, chosen, self._usable = self._compile()
        self._chosen = chosen
        self.namespaces = {namespace: tuple(file.path for file in files) for namespace, files in chosen.items()}
        self.elements: dict[str, frozenset[str]] = {}
        for namespace, heads in chosen.items():
            used = self._with_included(heads)
            self.elements[namespace] = frozenset().union(*(file.elements for file in used))
            for file in used:
                self.notes.extend(file.notes)
                self.notes.extend(link_notes(file, self._files, chosen))

    @classmethod
    def load(cls, folder: Path | str | None = None) -> SchemaSet:
        """The schemas of a folder, by default the project's own.

        Args:
            folder: a release tree, one `IIS/xsd` folder, any folder of XSDs, or one XSD file.

        Raises:
            SchemaError: no folder, no schema in it, or none that can be used.
            ConfigError: the project's own schemas are not installed.
        """
        return cls(own_files() if folder is None else find_files(Path(folder)))

    def write(self, folder: Path) -> tuple[Path, Mapping[str, SchemaFile]]:
        """Write the schemas as they are used, repaired and linked; return one that imports all namespaces, and by the
        names of the others what they were made of."""
        driver, documents = linked_documents(self._chosen, self._usable)
        names = {key: f"{number}.xsd" for number, key in enumerate(documents)}
        for name, data in (("all.xsd", driver), *((names[key], data) for key, data in documents.items())):
            root = etree.fromstring(data, make_parser())
            for link in root.iterchildren("{*}import", "{*}include", "{*}redefine"):
                if link.get("schemaLocation") in names:
                    link.set("schemaLocation", names[link.get("schemaLocation")])
            (folder / name).write_bytes(etree.tostring(root))
        return folder / "all.xsd", {names[file.key]: file for file in self._usable.values()}

    def _read(self) -> dict[Path, SchemaFile]:
        """Read what was found, and what its imports and includes reach beyond the folder."""
        files: dict[Path, SchemaFile] = {}
        queue = list(self._found.schemas)
        seen = set(queue)
        for path in queue:
            try:
                file = files[path] = read_schema(path)
            except SchemaError as error:
                self.notes.append(SchemaNote("unreadable", str(path), error.line, f"left out: {error.message}"))
                continue
            reached = {link.target for link in file.links if link.target is not None} - seen
            seen |= reached
            queue.extend(sorted(reached))
        self._leave_out(overgrown(files.values()), files, "left out")
        if not files:
            reasons = "; ".join(str(note) for note in self.notes)
            raise SchemaError(f"holds no usable schema: {reasons}", file=str(self.folder))
        return files

    def _compile(self) -> tuple[etree.XMLSchema, Choice, dict[Path, SchemaFile]]:
        """Compile; leave out what libxml2 refuses, until it accepts the rest."""
        usable = dict(self._files)
        while True:
            chosen, rivals = choose(usable, self._found.schemas, lambda: self._wsdl_imports)
            driver, documents = linked_documents(chosen, usable)
            parser = make_parser()
            parser.resolvers.add(_Memory(documents))
            try:
                schema = etree.XMLSchema(etree.fromstring(driver, parser))
            except etree.XMLSchemaParseError as error:
                refused = refusals(error, usable, chosen)
                if not refused or len(refused) == len(usable):
                    raise SchemaError(f"no schema can be made of it: {error}", file=str(self.folder)) from None
                self._leave_out(refused, usable, "left out, libxml2 refuses it")
            else:
                self.notes.extend(rivals)
                self.left_out = {key: why for key, why in self.left_out.items() if key not in chosen}
                return schema, chosen, usable

    def _leave_out(
        self, refused: dict[Path, tuple[int | None, str]], files: dict[Path, SchemaFile], prefix: str
    ) -> None:
        for path, (line, reason) in refused.items():
            self.notes.append(SchemaNote("left-out", str(path), line, f"{prefix}: {reason}"))
            self.left_out[files.pop(path).namespace] = str(self.notes[-1])

    @cached_property
    def _wsdl_imports(self) -> Counter[Path]:
        return count_wsdl_imports(self._found.wsdls)

    def _with_included(self, heads: list[SchemaFile]) -> list[SchemaFile]:
        paths = [head.path for head in heads]
        for path in paths:
            for link in self._files[path].links:
                if link.kind != "import" and link.target in self._files and link.target not in paths:
                    paths.append(link.target)
        return [self._files[path] for path in paths]
