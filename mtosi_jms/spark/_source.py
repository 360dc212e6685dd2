"""The source `mtosi`: landed envelopes as rows, with Spark's Python Data Source API.

    spark.dataSource.register(InventorySource)
    spark.read.format("mtosi").option("objectType", "ME").load("landing/")

Planning runs in a Python process of the driver. Each partition has the paths of some files and a few facts about each.
A worker opens one file at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from mtosi_jms.errors import ConfigError, MissingExtraError

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema
except ImportError as error:
    raise MissingExtraError("pyspark 4.0 or later", "spark") from error

from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark._first_line import error_first
from mtosi_jms.spark._streams import FileStream, LandingStream, StreamOptions, admitted, check_streamable
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.files import Reject
from mtosi_jms.tables.landing import PlannedFile, partition, plan_to_read, readable
from mtosi_jms.tables.options import Mode, SourceOptions, is_of_catalog, names_landing, own_options
from mtosi_jms.tables.reader import reader_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_CARRIED: Final = "mtosi.options"


class InventorySource(DataSource):
    """Inventory objects or messages from landed MTOSI envelopes; the options are those of `SourceOptions`.

    For a table in a catalog Spark passes the options when it asks for the columns, but only the columns when it reads
    the table. So the metadata of the first column carries the options. Filters of Spark are not pushed down to this
    source, because Spark would keep the filter of one DataFrame for all others that come from the same `load`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = own_options(options)
        streamed = {name.lower() for name in StreamOptions.names()}
        self._given = {name: value for name, value in given.items() if name not in streamed}
        self._of_stream = {name: value for name, value in given.items() if name in streamed}
        self._in_catalog = is_of_catalog(options)
        if names_landing(self._given):
            SourceOptions.parse(self._given)

    @classmethod
    def name(cls) -> str:
        return "mtosi"

    def schema(self) -> StructType:
        """Return the columns of the object types, and the column of corrupt records if an option names it."""
        schema = from_arrow_schema(full_schema(SourceOptions.parse(self._given)))
        if self._in_catalog:
            schema[0].metadata[_CARRIED] = json.dumps(self._given)
        return schema

    def reader(self, schema: StructType) -> InventoryReader:
        """Return a reader for all columns or for those that `.schema(...)` names."""
        if self._of_stream:
            raise ConfigError(f"the option {next(iter(self._of_stream))!r} is for readStream")
        carried = next((field.metadata[_CARRIED] for field in schema if _CARRIED in field.metadata), "{}")
        settings = SourceOptions.parse({**json.loads(carried), **self._given})
        return InventoryReader(settings, narrowed(full_schema(settings), schema))

    def streamReader(self, schema: StructType) -> FileStream:  # noqa: N802
        """Return a reader of a landing that grows."""
        settings, options = SourceOptions.parse(self._given), StreamOptions.parse(self._of_stream)
        check_streamable(settings, options)
        return admitted(LandingStream)(settings, options, narrowed(full_schema(settings), schema))


def stream_landing(
    spark: SparkSession, path: str | Sequence[str], object_type: str = "ME", **options: str
) -> DataFrame:
    """Return a stream of the rows of a landing: `readStream.format("mtosi")`, for several paths too.

    Args:
        spark: a session; the function registers the source with it.
        path: a folder, a file or a glob, or a URL such as `s3://bucket/landing`, or several of them.
        object_type: as the option `objectType` of the source.
        options: the other options of the source and of its streams.

    Raises:
        ConfigError: an option that does not fit.
    """
    given = {**options, "paths": json.dumps([path] if isinstance(path, str) else list(path)), "objectType": object_type}
    source = InventorySource(given)
    source.streamReader(source.schema())  # its errors are typed; Spark's, which come later, are not
    spark.dataSource.register(InventorySource)
    return spark.readStream.format(InventorySource.name()).options(**given).load()


def narrowed(full: pa.Schema, schema: StructType) -> pa.Schema:
    """Return the columns of a Spark schema as Arrow fields. Raises ConfigError: one is missing or of another type."""
    types = {field.name: field.dataType for field in from_arrow_schema(full)}
    fields = []
    for field in schema:
        known = types.get(field.name)
        if known is None:
            raise ConfigError(f"the schema asks for {field.name!r}; there are {', '.join(types)}")
        if known != field.dataType:
            wanted, actual = field.dataType.simpleString(), known.simpleString()
            raise ConfigError(f"the schema asks for {field.name} as {wanted}; it is {actual}")
        fields.append(pa.field(field.name, full.field(field.name).type, nullable=field.nullable))
    return pa.schema(fields)


@dataclass
class FilesPartition(InputPartition):
    """The files that one task reads one after the other, and rejects of planning."""

    files: tuple[PlannedFile, ...]
    rejects: tuple[Reject, ...] = ()


class InventoryReader(DataSourceReader):
    """Plans on the driver, reads on the workers."""

    def __init__(self, settings: SourceOptions, schema: pa.Schema) -> None:
        self._settings = settings
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Plan the landing, and distribute its files to partitions."""
        with error_first():
            return self._partitions()

    def _partitions(self) -> list[InputPartition]:
        settings = self._settings
        plan = plan_to_read(settings)
        groups = partition(readable(plan, settings), settings.partitions)
        made: list[InputPartition] = [FilesPartition(files) for files in groups]
        if plan.rejects and settings.mode is Mode.PERMISSIVE and settings.corrupt_column is not None:
            made.append(FilesPartition((), plan.rejects))
        return made

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, FilesPartition):
            return
        with error_first():
            load_stubs(self._settings.stubs)
            yield from reader_for(self._settings, self._schema).read(partition.files, partition.rejects)
