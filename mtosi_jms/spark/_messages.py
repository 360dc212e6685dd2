"""Messages as rows: objectType MESSAGE of the source, and envelopes that are in a DataFrame already.

    parse_messages(kafka_df, "ME", column="value", keep=("topic", "partition", "offset"))

gives the columns that the source gives, for envelopes from anywhere. What only the planning of a landing can know is
null there: `source_file` and `complete`. Duplicates stay in: `ledger` counts them, and `body_digest` of MESSAGE rows
tells them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from mtosi_jms.errors import ConfigError, MtosiError, SpoolError, XmlError
from mtosi_jms.inventory import MESSAGE, Routes, find_objects, is_object, label_of, load_stubs
from mtosi_jms.spark._digest import body_digest, tree_digest
from mtosi_jms.spark._discover import Reject
from mtosi_jms.spark._envelope import EnvelopeFacts, envelope_facts, soap_body
from mtosi_jms.spark._landed import named, opened, read_whole, scan_head
from mtosi_jms.spark._landing import PlannedFile, reject_of
from mtosi_jms.spark._packed import SHELF
from mtosi_jms.spark._reader import ObjectReader
from mtosi_jms.spark._rows import message_values
from mtosi_jms.spark._stream import stream_objects
from mtosi_jms.spark.options import Mode, SourceOptions
from mtosi_jms.xmlbind import parse_xml

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH_BYTES: Final = 16 * 1024 * 1024


def reader_for(options: SourceOptions, schema: pa.Schema) -> ObjectReader | MessageReader:
    """The reader of the asked object types, the stubs being loaded."""
    if options.object_types == (MESSAGE,):
        return MessageReader(options, schema)
    return ObjectReader(options, schema)


class MessageReader:
    """Reads messages, one row each."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        """Prepare to read.

        Args:
            options: what to read and how.
            schema: the columns to give; digests, counts and bodies are made only if they are among them.
        """
        self._options = options
        self._schema = schema
        self._names = frozenset(schema.names)
        self._routes = Routes(is_object)
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def read(self, files: Sequence[PlannedFile], rejects: Sequence[Reject] = ()) -> Iterator[pa.RecordBatch]:
        """The rows of some files, then those of rejects that are known already.

        Raises:
            MtosiError: in mode FAILFAST, the first file that is rejected.
        """
        with SHELF.held():
            for file in files:
                try:
                    self._file(file)
                except (XmlError, SpoolError) as error:
                    self.reject(reject_of(error, file.path), error)
                if self.full:
                    yield self.flush()
        for reject in rejects:
            self.reject(reject)
        if self._rows:
            yield self.flush()

    @property
    def full(self) -> bool:
        """Whether it is time for a batch."""
        return len(self._rows) >= self._options.batch_rows or self._bytes >= _BATCH_BYTES

    def _file(self, file: PlannedFile) -> None:
        with opened(file.path) as stream:
            data = read_whole(stream, self._options.whole_file_bytes)
        if data is None:
            self._large(file)
        else:
            self.message(data, file)

    def message(self, data: bytes, file: PlannedFile | None) -> None:
        """Add one envelope.

        Raises:
            XmlError: it is none.
        """
        path = file.path if file else None
        root = parse_xml(data, source=path)
        with named(path or "message"):
            facts = envelope_facts(root)
        body = soap_body(root)
        counts: Counter[str] = Counter()
        if "objects" in self._names and body is not None:
            counts.update(label_of(hit.table) for hit in find_objects(body, self._routes))
        digest = tree_digest(root) if "body_digest" in self._names else None
        size = file.size if file else len(data)
        self._add(facts, file, counts, digest, size, data if "body" in self._names else None)

    def _large(self, file: PlannedFile) -> None:
        digest = body_digest(file.path, self._options.whole_file_bytes)
        facts = scan_head(file.path)
        counts: Counter[str] = Counter()
        if "objects" in self._names:
            with opened(file.path) as stream:
                found = stream_objects(stream, facts.body_tag, self._routes, file.path)
                counts.update(label_of(hit.table) for _, hit in found)
        self._add(facts, file, counts, digest, file.size, None)

    def _add(
        self,
        facts: EnvelopeFacts,
        file: PlannedFile | None,
        counts: Counter[str],
        digest: str | None,
        size: int,
        body: bytes | None,
    ) -> None:
        row = message_values(facts, file.path if file else None, file.complete if file else None)
        row |= {
            "kind": facts.kind,
            "body_element": facts.body_tag or None,
            "objects": sorted(counts.items()),
            "body_digest": digest,
            "duplicate_files": list(file.duplicates) if file else [],
            "size": size,
            "body": body,
        }
        self._rows.append(row)
        self._bytes += len(body or b"")

    def reject(self, reject: Reject, cause: MtosiError | None = None) -> None:
        """Add the row of a rejected message, if there is a column for it.

        Raises:
            MtosiError: the mode is FAILFAST.
        """
        if self._options.mode is Mode.FAILFAST:
            raise MtosiError(str(reject)) from cause
        name = self._options.corrupt_column
        if name is not None and name in self._names and self._options.mode is Mode.PERMISSIVE:
            self._rows.append({"source_file": reject.file or None, name: str(reject)})

    def flush(self) -> pa.RecordBatch:
        """The rows so far as a batch."""
        rows, self._rows, self._bytes = self._rows, [], 0
        arrays = [pa.array([row.get(field.name) for row in rows], type=field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    @property
    def rows(self) -> int:
        """How many rows wait for the next batch."""
        return len(self._rows)


def parse_messages(
    df: DataFrame,
    object_type: str,
    column: str = "body",
    *,
    mode: str = "PERMISSIVE",
    corrupt_column: str | None = None,
    message_types: str = "RESPONSE",
    stubs: str = "",
    columns: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> DataFrame:
    """Rows out of a DataFrame whose column holds whole envelopes, from Kafka, a table, or `binaryFile`.

    Args:
        df: the messages.
        object_type: as the source's option `objectType`.
        column: string or binary column with the envelopes.
        mode: as the source's option; a rejected message gives a row only with `corrupt_column`.
        corrupt_column: name of a column for the reasons of rejected messages.
        message_types: which messages objects are taken from.
        stubs: generated packages, joined by commas, asked before the shipped stubs.
        columns: names of the columns to give, all by default; the others are not decoded.
        keep: columns of `df` to repeat beside each row, in front of it.

    Returns:
        The columns of the source for `object_type`, or `columns` out of them; `source_file` and `complete` are null.

    Raises:
        ConfigError: a column that `df` or the rows have not, an option that does not fit, a name that is taken.
    """
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    from mtosi_jms.spark._source import full_schema

    given = {"objectType": object_type, "mode": mode, "messageTypes": message_types, "stubs": stubs, "path": "-"}
    if corrupt_column is not None:
        given["columnNameOfCorruptRecord"] = corrupt_column
    if columns:
        given["columns"] = columns if isinstance(columns, str) else ",".join(columns)
    options = SourceOptions.parse(given)
    schema = full_schema(options)
    for name in (column, *keep):
        if name not in df.columns:
            raise ConfigError(f"no column {name!r}; there are {', '.join(df.columns)}")
    taken = sorted(set(keep) & set(schema.names))
    if taken:
        raise ConfigError(f"the rows have a column {taken[0]!r} of their own: rename the one to keep")
    kept = [df.schema[name] for name in keep]
    result = StructType([*kept, *from_arrow_schema(schema).fields])
    return df.select(column, *keep).mapInArrow(_Parser(options, schema, len(keep)), result)


class _Parser:
    """What the workers run: batches of envelopes in, batches of rows out."""

    def __init__(self, options: SourceOptions, schema: pa.Schema, kept: int) -> None:
        self._options = options
        self._schema = schema
        self._kept = kept

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        load_stubs(self._options.stubs)
        reader = reader_for(self._options, self._schema)
        for batch in batches:
            yield from self._batch(batch, reader)

    def _batch(self, batch: pa.RecordBatch, reader: ObjectReader | MessageReader) -> Iterator[pa.RecordBatch]:
        origins: list[int] = []
        for number, value in enumerate(batch.column(0)):
            self._message(value.as_py(), reader)
            origins.extend([number] * (reader.rows - len(origins)))
            if reader.full:
                yield self._joined(batch, origins, reader.flush())
                origins = []
        if reader.rows:
            yield self._joined(batch, origins, reader.flush())

    def _message(self, value: str | bytes | bytearray | None, reader: ObjectReader | MessageReader) -> None:
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value or b"")
        try:
            reader.message(data, None)
        except XmlError as error:
            reader.reject(reject_of(error, "", data), error)

    def _joined(self, batch: pa.RecordBatch, origins: list[int], rows: pa.RecordBatch) -> pa.RecordBatch:
        if not self._kept:
            return rows
        indices = pa.array(origins, type=pa.int64())
        columns = [batch.column(position).take(indices) for position in range(1, self._kept + 1)]
        names = batch.schema.names[1 : self._kept + 1]
        return pa.RecordBatch.from_arrays([*columns, *rows.columns], names=[*names, *rows.schema.names])
