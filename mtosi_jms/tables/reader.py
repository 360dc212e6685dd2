"""The readers: they turn the files of a partition into record batches, one file at a time. This module needs no Spark.

A file gives all its rows or none. A message that is damaged is rejected. A file that cannot be opened, or that is not
what was planned, ends the task instead: its rows must not be missing, and another worker may be able to read it. A file
up to `wholeFileBytes` is parsed before its first row is made; a larger file is parsed to its end once, then streamed.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import pyarrow as pa
from lxml import etree

from mtosi_jms.errors import ArchiveError, ForbiddenXmlError, MtosiError, SpoolError, XmlError
from mtosi_jms.inventory import ALL, MESSAGE, Hit, Routes, find_objects, is_object, label_of
from mtosi_jms.namespaces import split_clark
from mtosi_jms.tables._native_rows import native_rows
from mtosi_jms.tables._stream import stream_objects
from mtosi_jms.tables.columns import (
    MESSAGES,
    OF_MESSAGE,
    SOURCE_FILE,
    Column,
    Message,
    folder_values,
    row_schema,
    values_of,
)
from mtosi_jms.tables.envelope import (
    EnvelopeFacts,
    body_digest,
    check_size,
    envelope_facts,
    mark_of,
    reject_of,
    scan_head,
    soap_body,
    tree_digest,
    verify,
)
from mtosi_jms.tables.files import SHELF, Reject, opened, read_whole
from mtosi_jms.tables.landing import Plan, PlannedFile
from mtosi_jms.tables.options import Mode, SourceOptions
from mtosi_jms.tables.rows import RowBuilder, wanted
from mtosi_jms.xmlbind import ElementPaths, XmlWarning, parse_xml

__all__ = ["Reader", "Shown", "check_readable", "nothing_readable", "reader_for", "refusal"]


NO_CLASS: Final = "no-class"
"""The rule of warnings about objects for which no stub has a class."""
_KINDS: Final = 100
_BATCH_BYTES: Final = 16 * 1024 * 1024


def reader_for(options: SourceOptions, schema: pa.Schema) -> Reader:
    """Return the reader of the object types, for some or all columns of `full_schema`. The stubs must be loaded."""
    if options.object_types == (MESSAGE,):
        return MessageReader(options, schema)
    return ObjectReader(options, schema)


class Reader(ABC):
    """Turns messages into rows.

    Attributes:
        rejected: files that planning took, and that turned out to be damaged.
        warnings: about the headers of the messages, each with how many messages have it, and the first of them.
        unread: with objectType ALL: objects for which no stub has a class, by file and element.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.rejected: list[Reject] = []
        self.warnings: dict[str, tuple[int, Reject]] = {}
        self.unread: list[Reject] = []

    def read(self, files: Iterable[PlannedFile], rejects: Sequence[Reject] = ()) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files, then the rows of known rejects. Raises SpoolError: a file cannot be read on
        this host, or has changed since it was planned; MtosiError: in mode FAILFAST, for the first file that is
        rejected."""
        with SHELF.held():
            for file in files:
                if not self.options.reads(file.kind):
                    continue
                try:
                    yield from self._file(file)
                except (XmlError, ArchiveError) as error:
                    self.rejected.append(reject_of(error, file.path))
                    self.reject(self.rejected[-1], error)
                except SpoolError as error:
                    what = f"cannot be read on host {socket.gethostname()}: {error.reason}"
                    raise SpoolError(file.path, what) from error
            for reject in rejects:
                self.reject(reject)
            if self.rows:
                yield self.flush()

    def _file(self, file: PlannedFile) -> Iterator[pa.RecordBatch]:
        file.check()
        data = read_whole(file.path, self.options.whole_file_bytes)
        file.check_mark(scan_head(file.path).mark if data is None else mark_of(data))
        if data is not None:
            file.check()
        for _ in self._large(file) if data is None else self._small(data, file):
            if self.full:
                whole = self.flush()
                for start in range(0, whole.num_rows, self.options.batch_rows):
                    yield whole.slice(start, self.options.batch_rows)
        if data is None:
            file.check()

    def message(self, data: bytes) -> None:
        """Add an envelope that is in no file. Raises XmlError: `data` is not an envelope."""
        for _ in self._small(data, None):
            pass

    def reject(self, reject: Reject, cause: MtosiError | None = None) -> None:
        """Add the row of a rejected message, if there is a column for it. Raises MtosiError: the mode is FAILFAST."""
        if self.options.mode is Mode.FAILFAST:
            raise MtosiError(str(reject)) from cause
        if self.options.mode is Mode.PERMISSIVE:
            self._add_reject(reject)

    def _values(self, columns: Sequence[Column], message: Message) -> dict[str, Any]:
        """Return the values of columns from a message, and count the warnings about its header."""
        path = message.file.path if message.file else ""
        for found in message.facts.warnings:
            text = found.message if found.message in self.warnings or len(self.warnings) < _KINDS else "others"
            count, first = self.warnings.get(text, (0, Reject(path, found.line, text)))
            self.warnings[text] = count + 1, first
        return values_of(columns, message) | self._of_folders(path)

    def _of_folders(self, path: str) -> dict[str, str | None]:
        return folder_values(path, self.options.folder_columns)

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows that wait for the next batch."""

    @property
    def full(self) -> bool:
        """Whether a batch should be taken now."""
        return self.rows >= self.options.batch_rows

    @abstractmethod
    def flush(self) -> pa.RecordBatch:
        """Return the rows so far as a batch."""

    @abstractmethod
    def _small(self, data: bytes, file: PlannedFile | None) -> Iterator[None]:
        """Add an envelope in memory; it pauses between rows, so that full batches can be taken."""

    @abstractmethod
    def _large(self, file: PlannedFile) -> Iterator[None]:
        """Add an envelope that is too large for memory; it pauses in the same way."""

    @abstractmethod
    def _add_reject(self, reject: Reject) -> None:
        """Add the row of a rejected message, if there is a column for it."""


class ObjectReader(Reader):
    """Reads objects of some types. `by_python`: number of rows that Python made, including those of rejects."""

    def __init__(self, options: SourceOptions, schema: pa.Schema, core: str | None = None) -> None:
        """Prepare to read. The stubs must be loaded. `core` is `native` or `python`; by default the one in use."""
        super().__init__(options)
        self._routes = Routes(wanted(options.object_types))
        self._builder = RowBuilder(schema, options.object_types, options.corrupt_column)
        is_native = core != "python" and ALL not in options.object_types
        self._native = native_rows(self._builder, self._routes) if is_native else None
        self.by_python = 0

    @property
    def rows(self) -> int:
        return (self._native or self._builder).rows

    @property
    def full(self) -> bool:
        return super().full or (self._native is not None and self._native.is_large)

    def flush(self) -> pa.RecordBatch:
        self.by_python += self._builder.rows
        return (self._native or self._builder).flush()

    def _small(self, data: bytes, file: PlannedFile | None) -> Iterator[None]:
        if self._native is not None and self._native.add(data, lambda facts: self._same(facts, file)):
            yield
            return
        root = parse_xml(data, source=file.path if file else None)
        facts = envelope_facts(root)
        self._builder.begin(self._values(OF_MESSAGE, Message(facts, file)))
        self._builder.paths = ElementPaths()
        body = soap_body(root)
        if body is not None and self.options.reads(facts.kind):
            unread: list[etree._Element] | None = [] if ALL in self.options.object_types else None
            for hit in find_objects(body, self._routes, unread):
                self._builder.add(hit)
                yield
            if unread is not None:
                path = file.path if file else ""
                self.unread += [Reject(path, found.line, found.message) for found in without_class(unread)]

    def _same(self, facts: EnvelopeFacts, file: PlannedFile | None) -> dict[str, Any] | None:
        """Return the values that all rows of a message share; None if it gives no rows."""
        return self._values(OF_MESSAGE, Message(facts, file)) if self.options.reads(facts.kind) else None

    def _large(self, file: PlannedFile) -> Iterator[None]:
        if not self._is_sound(file.path):
            verify(file.path, self.options.whole_file_bytes)
        facts = scan_head(file.path)
        check_size(facts, file.path, self.options.whole_file_bytes)
        done = 0
        same = self._values(OF_MESSAGE, Message(facts, file))
        if self._native is not None:
            with opened(file.path) as stream:
                for count in self._native.stream(stream, facts.body_tag, same):
                    if count is None:
                        break
                    done = count
                    yield
                else:
                    return
        self._builder.begin(same)
        with opened(file.path) as stream:
            for position, hit in stream_objects(stream, facts.body_tag, self._routes, file.path):
                if position > done:
                    self._builder.add(hit, position)
                    yield

    def _is_sound(self, path: str) -> bool:
        if self._native is None:
            return False
        with opened(path) as stream:
            return self._native.is_sound(stream)

    def _add_reject(self, reject: Reject) -> None:
        self._builder.reject(reject, self._of_folders(reject.file))


class MessageReader(Reader):
    """Reads messages, one row each. Digests, counts and bodies are made only if their columns are needed."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        super().__init__(options)
        self._schema = schema
        self._columns = [column for column in MESSAGES if column.name in schema.names]
        self._routes = Routes(is_object)
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def full(self) -> bool:
        return super().full or self._bytes >= _BATCH_BYTES

    def flush(self) -> pa.RecordBatch:
        rows, self._rows, self._bytes = self._rows, [], 0
        arrays = [pa.array([row.get(field.name) for row in rows], type=field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _small(self, data: bytes, file: PlannedFile | None) -> Iterator[None]:
        root = parse_xml(data, source=file.path if file else None)
        facts = envelope_facts(root)
        body = soap_body(root)

        @cache
        def found() -> tuple[list[Hit], list[etree._Element]]:
            unread: list[etree._Element] = []
            return find_objects(body, self._routes, unread) if body is not None else [], unread

        self._add(
            Message(
                facts,
                file,
                size=file.size if file else len(data),
                objects=lambda: _counts(found()[0]),
                unread=lambda: without_class(found()[1]),
                digest=lambda: tree_digest(root),
                data=data,
            )
        )
        yield

    def _large(self, file: PlannedFile) -> Iterator[None]:
        digest = body_digest(file.path, self.options.whole_file_bytes)  # checks the whole file, too
        facts = scan_head(file.path)

        def count() -> Counter[str]:
            with opened(file.path) as stream:
                return _counts(hit for _, hit in stream_objects(stream, facts.body_tag, self._routes, file.path))

        def not_counted() -> list[XmlWarning]:
            try:
                check_size(facts, file.path, self.options.whole_file_bytes)
            except ForbiddenXmlError as error:
                return [XmlWarning(NO_CLASS, error.message)]
            return []

        self._add(Message(facts, file, size=file.size, objects=count, unread=not_counted, digest=lambda: digest))
        yield

    def _add(self, message: Message) -> None:
        row = self._values(self._columns, message)
        self._rows.append(row)
        self._bytes += len(row.get("body") or b"")

    def _add_reject(self, reject: Reject) -> None:
        name = self.options.corrupt_column
        if name is not None and name in self._schema.names:
            of_folders = self._of_folders(reject.file)
            self._rows.append({SOURCE_FILE.name: reject.file or None, name: str(reject), **of_folders})


def without_class(unread: Iterable[etree._Element]) -> list[XmlWarning]:
    """Return a warning for each kind of element that is an object without a class, with the place of the first one."""
    kinds: dict[str, list[etree._Element]] = {}
    for element in unread:
        tag = str(element.tag)
        kinds.setdefault(tag if tag in kinds or len(kinds) < _KINDS else "others", []).append(element)
    text = "objects that give no row, as no stub has a class for them"
    return [
        XmlWarning(NO_CLASS, f"{text}: {len(found)} of {tag}", line=found[0].sourceline) for tag, found in kinds.items()
    ]


def _counts(hits: Iterable[Hit]) -> Counter[str]:
    return Counter(label_of(hit.table) for hit in hits)


Shown = Callable[[Reject], Reject]
"""Changes the path of a reject into what the user would write."""
_LISTED: Final = 20


def check_readable(plan: Plan, options: SourceOptions, shown: Shown = lambda reject: reject) -> None:
    """Check that at least one message of a landing can be read. Raises SpoolError: none can, see `nothing_readable`."""
    rejects: list[Reject] = []
    for file in plan.files:
        reject = refusal(file, options)
        if reject is None:
            return
        rejects.append(reject)
    raise nothing_readable(options, [*plan.rejects, *rejects], shown)


def nothing_readable(options: SourceOptions, rejects: Sequence[Reject], shown: Shown) -> SpoolError:
    """Return the error of a landing without a readable message; it lists the first rejects, one for each line."""
    lines = ["no message in it can be read; tables stay as they are: see that the landing is there and mounted"]
    lines[0] += ", or say allow_empty (--allow-empty)"
    lines += [str(shown(reject)) for reject in rejects[:_LISTED]]
    if len(rejects) > _LISTED:
        lines.append(f"and {len(rejects) - _LISTED} more")
    return SpoolError(", ".join(options.paths), "\n".join(lines))


def refusal(file: PlannedFile, options: SourceOptions) -> Reject | None:
    """Return why nothing can be read from a file; None if something can. The stubs must be loaded."""
    try:
        verify(file.path, options.whole_file_bytes)
    except (XmlError, SpoolError) as error:
        return reject_of(error, file.path)
    if options.object_types != (ALL,) or not options.reads(file.kind) or _has_objects(file, options):
        return None
    return unknown_body(file.path, file.body_tag)


def _has_objects(file: PlannedFile, options: SourceOptions) -> bool:
    if Routes(is_object).reachable(file.body_tag) is not None:
        return True
    settings = replace(options, object_types=(MESSAGE,), mode=Mode.DROPMALFORMED)
    reader = MessageReader(settings, pa.schema([row_schema((MESSAGE,)).field("objects")]))
    return any(row for batch in reader.read((file,)) for row in batch.column(0).to_pylist())


def unknown_body(path: str, body_tag: str) -> Reject:
    """Return the reject of a message whose body element no stub knows and that has no object."""
    namespace, local = split_clark(body_tag)
    reason = f"wrong kind: no stub knows its body element {local} ({namespace or 'no namespace'})"
    return Reject(path, None, f"{reason}, nor any object in it")
