"""All schemas of a folder as one libxml2 schema, over all their namespaces at once.

What cannot be used is left out and noted, not fatal: a release with one broken file still validates everything else,
and an element of the missing namespace is an issue that names the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lxml import etree

from mtosi_jms.errors import SchemaError
from mtosi_jms.validation._bounds import overgrown
from mtosi_jms.validation._choice import Choice, choose, count_wsdl_imports
from mtosi_jms.validation._linking import compile_schema, link_notes, linked_documents, refusals
from mtosi_jms.validation._locate import FoundFiles, find_files, own_files
from mtosi_jms.validation._schemafile import SchemaFile, SchemaNote, read_schema
from mtosi_jms.xmlbind import make_parser


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
        self._wsdl_counts: Counter[Path] | None = None
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
        for path, (line, reason) in overgrown(files.values()).items():
            self.notes.append(SchemaNote("left-out", str(path), line, f"left out: {reason}"))
            self.left_out[files.pop(path).namespace] = str(self.notes[-1])
        if not files:
            reasons = "; ".join(str(note) for note in self.notes)
            raise SchemaError(f"holds no usable schema: {reasons}", file=str(self.folder))
        return files

    def _compile(self) -> tuple[etree.XMLSchema, Choice, dict[Path, SchemaFile]]:
        """Compile; leave out what libxml2 refuses, until it accepts the rest."""
        usable = dict(self._files)
        while True:
            chosen, rivals = choose(usable, self._found.schemas, self._wsdl_imports)
            try:
                schema = compile_schema(chosen, usable)
            except etree.XMLSchemaParseError as error:
                refused = refusals(error, usable, chosen)
                if not refused or len(refused) == len(usable):
                    raise SchemaError(f"no schema can be made of it: {error}", file=str(self.folder)) from None
                self._leave_out(refused, usable)
            else:
                self.notes.extend(rivals)
                self.left_out = {key: why for key, why in self.left_out.items() if key not in chosen}
                return schema, chosen, usable

    def _leave_out(self, refused: dict[Path, tuple[int | None, str]], usable: dict[Path, SchemaFile]) -> None:
        for path, (line, reason) in refused.items():
            note = SchemaNote("left-out", str(path), line, f"left out, libxml2 refuses it: {reason}")
            self.notes.append(note)
            self.left_out[usable.pop(path).namespace] = str(note)

    def _wsdl_imports(self) -> Counter[Path]:
        if self._wsdl_counts is None:
            self._wsdl_counts = count_wsdl_imports(self._found.wsdls)
        return self._wsdl_counts

    def _with_included(self, heads: list[SchemaFile]) -> list[SchemaFile]:
        paths = [head.path for head in heads]
        for path in paths:
            for link in self._files[path].links:
                if link.kind != "import" and link.target in self._files and link.target not in paths:
                    paths.append(link.target)
        return [self._files[path] for path in paths]
