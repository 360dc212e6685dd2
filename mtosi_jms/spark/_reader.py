"""Files of a partition into record batches: one file open at a time, parsed, walked, forgotten. No Spark here.

A file is taken whole or not at all: up to `wholeFileBytes` it is parsed before its first row is made, and a larger one
is parsed to its end once before it is streamed.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from mtosi_jms.errors import MtosiError, SpoolError, XmlError
from mtosi_jms.inventory import ALL, Hit, Routes, find_objects
from mtosi_jms.spark._builder import RowBuilder, wanted
from mtosi_jms.spark._discover import Reject
from mtosi_jms.spark._envelope import EnvelopeFacts, envelope_facts, soap_body
from mtosi_jms.spark._landed import named, opened, read_whole, scan_head, verify
from mtosi_jms.spark._landing import PlannedFile, reject_of
from mtosi_jms.spark._packed import SHELF
from mtosi_jms.spark._rows import message_values
from mtosi_jms.spark._stream import stream_objects
from mtosi_jms.spark._textrows import Finder
from mtosi_jms.spark.options import Mode, SourceOptions
from mtosi_jms.xmlbind import DEFAULT_LIMITS, ElementPaths, find_element, parse_xml
from mtosi_jms.xmlbind.columns import Recipes, cut_body, is_shell, matched, parsed_shell


class ObjectReader:
    """Reads objects of the asked types."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        """Prepare to read, the stubs being loaded.

        Args:
            options: what to read and how.
            schema: the columns to give, some or all of `row_schema`, and that of corrupt records.
        """
        self._options = options
        self._routes = Routes(wanted(options.object_types))
        self._recipes = Recipes(lambda layout, islands: Finder(layout, islands, self._routes))
        self._builder = RowBuilder(schema, options.object_types, options.corrupt_column)

    def read(self, files: Sequence[PlannedFile], rejects: Sequence[Reject] = ()) -> Iterator[pa.RecordBatch]:
        """The rows of some files, then those of rejects that are known already.

        Raises:
            MtosiError: in mode FAILFAST, the first file that is rejected.
        """
        with _without_collection(), SHELF.held():
            for file in files:
                if self._options.reads(file.kind):
                    yield from self._file(file)
            for reject in rejects:
                self.reject(reject)
            if self.rows:
                yield self.flush()

    def _file(self, file: PlannedFile) -> Iterator[pa.RecordBatch]:
        try:
            with opened(file.path) as stream:
                data = read_whole(stream, self._options.whole_file_bytes)
            if data is None or not self._from_text(data, file):
                for position, hit in self._streamed(file) if data is None else self._held(data, file):
                    self._builder.add(hit, position)
                    if self.full:
                        yield self.flush()
            if self.full:
                whole = self.flush()
                for start in range(0, whole.num_rows, self._options.batch_rows):
                    yield whole.slice(start, self._options.batch_rows)
        except (XmlError, SpoolError) as error:
            self.reject(reject_of(error, file.path), error)

    @property
    def rows(self) -> int:
        """How many rows wait for the next batch."""
        return self._builder.rows

    @property
    def full(self) -> bool:
        """Whether it is time for a batch."""
        return self._builder.rows >= self._options.batch_rows

    def flush(self) -> pa.RecordBatch:
        """The rows so far as a batch."""
        return self._builder.flush()

    def reject(self, reject: Reject, cause: MtosiError | None = None) -> None:
        """Add the row of a rejected message, if there is a column for it.

        Raises:
            MtosiError: the mode is FAILFAST.
        """
        if self._options.mode is Mode.FAILFAST:
            raise MtosiError(str(reject)) from cause
        if self._options.mode is Mode.PERMISSIVE:
            self._builder.reject(reject)

    def message(self, data: bytes, file: PlannedFile | None) -> None:
        """Add the objects of one envelope.

        Raises:
            XmlError: it is none.
        """
        if not self._from_text(data, file):
            for position, hit in self._held(data, file):
                self._builder.add(hit, position)

    def _from_text(self, data: bytes, file: PlannedFile | None) -> bool:
        """Add the objects of a plain message from its text; false where it has to be read from its tree."""
        cut = cut_body(data, DEFAULT_LIMITS) if ALL not in self._options.object_types else None
        root = parsed_shell(cut, DEFAULT_LIMITS) if cut is not None else None
        if cut is None or root is None:
            return False
        try:
            facts = envelope_facts(root)
        except XmlError:
            return False
        body = soap_body(root)
        cls = find_element(facts.body_tag)
        if (
            cls is None
            or body is None
            or len(body) != 1
            or not is_shell(body[0])
            or not self._options.reads(facts.kind)
        ):
            return False
        recipe = self._recipes.of(cls.__xml__, body[0].nsmap)
        size = len(cut.content)
        finder = recipe.get(cut.content, 0, size)
        found = recipe.note(matched(finder.find, cut.content, 0, size)) if finder is not None else None
        if found is None:
            return False
        self._begin(facts, file)
        return self._builder.add_text(found, cut.line, "&" in cut.content)

    def _held(self, data: bytes, file: PlannedFile | None) -> Iterator[tuple[int, Hit]]:
        """The objects of an envelope in memory, numbered from 1; the builder knows the message before the first."""
        path = file.path if file else None
        root = parse_xml(data, source=path)
        with named(path or "message"):
            facts = envelope_facts(root)
        self._begin(facts, file)
        self._builder.paths = ElementPaths()
        body = soap_body(root)
        if body is not None and self._options.reads(facts.kind):
            yield from enumerate(find_objects(body, self._routes), start=1)

    def _streamed(self, file: PlannedFile) -> Iterator[tuple[int, Hit]]:
        verify(file.path, self._options.whole_file_bytes)
        facts = scan_head(file.path)
        self._begin(facts, file)
        with opened(file.path) as stream:
            yield from stream_objects(stream, facts.body_tag, self._routes, file.path)

    def _begin(self, facts: EnvelopeFacts, file: PlannedFile | None) -> None:
        self._builder.begin(message_values(facts, file.path if file else None, file.complete if file else None))


@contextmanager
def _without_collection() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: rows are lists of plain values, and walking them all costs a tenth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
