"""Streams of a landing on any Hadoop file system: `stream_landing`.

As for a landing on this machine (`_streams`), the planning process of a stream keeps the index and decides what is in a
batch. It has neither Hadoop nor a session. So it asks the process that has the session to list and read files, which
Spark's tasks do. It asks through a socket in a folder that only this user can open.

    planning process: positions, batches --asks--> SessionServer: Spark's tasks list, and look at files
           |
           facts of the files of a batch -> HadoopFiles.contents -> rows
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing.connection import Client, Connection, Listener
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema

from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import MtosiError, SpoolError
from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark._engine import (
    FILES,
    MESSAGES,
    REJECTS,
    EngineListing,
    digests_by_engine,
    lent_files,
    listed_row,
    look_at,
    planned_file,
)
from mtosi_jms.spark._hadoop import HadoopFiles, java_reason
from mtosi_jms.spark._index import EarlierDocuments, SeenFile
from mtosi_jms.spark._streams import (
    FileStream,
    LandingStream,
    StreamOptions,
    StreamPartition,
    admitted,
    check_streamable,
    file_changed,
)
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.files import Reject, disk_file, raw_bytes
from mtosi_jms.tables.landing import Plan, PlannedFile, Scanned, plan_scanned, scanned_path
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.reader import reader_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_FACTS: Final = pa.struct([("messages", pa.list_(MESSAGES)), ("rejects", pa.list_(pa.struct(list(REJECTS))))])
_SCHEMA: Final = pa.schema([*FILES, ("facts", _FACTS)])
_GIVEN: Final = "given"
_ADDRESS: Final = "address"


def stream_landing(
    spark: SparkSession, path: str | Sequence[str], object_type: str = "ME", **options: str
) -> DataFrame:
    """Return a stream of the rows of a landing on any Hadoop file system. Spark lists and reads it.

    Args:
        spark: a session whose settings give access to the file system.
        path: a folder, a file or a glob, for example `s3a://bucket/landing`, or several of them.
        object_type: as the option `objectType` of the source.
        options: those of `readStream.format("mtosi")`; `index` names a file that the driver can write.

    Returns:
        The columns that `readStream.format("mtosi")` gives for the same options. This process must run as long as the
        query does.

    Raises:
        ConfigError: an option that does not fit, or a session of Spark Connect.
    """
    paths = [path] if isinstance(path, str) else list(path)
    streamed = {name.lower() for name in StreamOptions.names()}
    own = {name: value for name, value in options.items() if name.lower() not in streamed}
    of_stream = {name.lower(): value for name, value in options.items() if name.lower() in streamed}
    given = {**own, "paths": json.dumps(paths), "objectType": object_type}
    settings = SourceOptions.parse(given)
    check_streamable(settings, StreamOptions.parse(of_stream))
    hadoop = HadoopFiles(spark)
    load_stubs(settings.stubs)
    schema = full_schema(settings)
    spark.dataSource.register(_EngineSource)
    planned = {_GIVEN: json.dumps([given, of_stream]), _ADDRESS: SessionServer.of(spark).address}
    files = spark.readStream.format(_EngineSource.name()).options(**planned).load()
    return hadoop.contents(files).mapInArrow(_ReadListed(settings, schema), from_arrow_schema(schema))


class SessionServer:
    """Answers requests of the planning processes of streams that need the session.

    Attributes:
        address: of a socket that only this user can open.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._listener = Listener()  # in a folder of this process that only its user can open
        self.address = str(self._listener.address)
        Thread(target=self._accept, name="mtosi-streams", daemon=True).start()

    @classmethod
    def of(cls, spark: SparkSession) -> SessionServer:
        """Return the server of an application; it stays open as long as the application."""
        context = spark.sparkContext
        if context not in _servers:
            _servers[context] = cls(spark)
        return _servers[context]

    def _accept(self) -> None:
        while True:
            connection = self._listener.accept()
            Thread(target=self._serve, args=(connection,), name="mtosi-stream", daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        """Answer one planning process until it ends."""
        with connection, suppress(EOFError, OSError):
            while True:
                name, arguments = connection.recv()
                try:
                    answer: Any = getattr(self, name)(*arguments)
                except MtosiError as error:
                    answer = error
                except Exception as error:  # noqa: BLE001 - the planning process must get every error of Spark
                    answer = MtosiError(f"Spark: {java_reason(error)}")
                connection.send(answer)

    def listed(self, settings: SourceOptions) -> tuple[list[SeenFile], tuple[Reject, ...]]:
        """Return the files of a landing, and rejects of folders that cannot be listed."""
        listing = EngineListing(self._spark, settings)
        return list(listing.files.values()), listing.rejects

    def look(self, files: Sequence[SeenFile], settings: SourceOptions) -> tuple[list[Scanned], list[tuple[str, str]]]:
        """Return what is in files, and the files that cannot be read or have changed, with reasons."""
        scanned: list[Scanned] = []
        gone: list[tuple[str, str]] = []
        for looked in look_at(self._spark, files, settings):
            if isinstance(looked, SpoolError):
                gone.append((looked.path, looked.reason))
            else:
                scanned += looked.scanned
        return scanned, gone

    def digests(
        self, files: Sequence[PlannedFile], listed: Mapping[str, SeenFile], settings: SourceOptions
    ) -> list[tuple[PlannedFile, str | Reject]]:
        """Return the digests of the bodies of messages."""
        return list(digests_by_engine(self._spark, listed, files, settings))

    def clean(self, path: str, archive: str) -> None:
        """Remove a file, or move it below an archive, if it is still there."""
        HadoopFiles(self._spark).move(path, archive) if archive else HadoopFiles(self._spark).remove(path)


_servers: Final[WeakKeyDictionary[SparkContext, SessionServer]] = WeakKeyDictionary()


class _EngineSource(DataSource):
    """The files of each batch of `stream_landing`, with the facts that planning has found about them."""

    @classmethod
    def name(cls) -> str:
        return "mtosi-listed"

    def schema(self) -> StructType:
        return from_arrow_schema(_SCHEMA)

    def streamReader(self, schema: StructType) -> FileStream:  # noqa: N802
        given, of_stream = json.loads(self.options[_GIVEN])
        stream = admitted(EngineStream)(SourceOptions.parse(given), StreamOptions.parse(of_stream), _SCHEMA)
        if isinstance(stream, EngineStream):
            stream.connect_to(self.options[_ADDRESS])
        return stream


class EngineStream(LandingStream):
    """A growing landing whose files are listed and read by Spark's tasks."""

    def __init__(self, settings: SourceOptions, options: StreamOptions, schema: pa.Schema) -> None:
        super().__init__(settings, options, schema)
        self._address = ""
        self._server: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker needs, without the connection."""
        return {**super().__getstate__(), "_server": None}

    def connect_to(self, address: str) -> None:
        """Set the address of the `SessionServer`."""
        self._address = address

    def _call(self, name: str, *arguments: Any) -> Any:
        """Return the answer of the `SessionServer`.

        Raises:
            MtosiError: the answer is an error, or the process of the server is gone.
        """
        try:
            if self._server is None:
                self._server = Client(self._address)
            self._server.send((name, arguments))
            answer = self._server.recv()
        except (EOFError, OSError) as error:
            raise MtosiError("the process that has the session of this stream is gone") from error
        if isinstance(answer, MtosiError):
            raise answer
        return answer

    def listed(self) -> tuple[list[SeenFile], Sequence[Reject]]:
        found: tuple[list[SeenFile], Sequence[Reject]] = self._call("listed", self.settings)
        return found

    def look_at(self, files: Sequence[SeenFile], earlier: EarlierDocuments) -> tuple[Plan, set[str]]:
        scanned, lost = self._call("look", files, self.settings)
        scanned += [self.lost(path, reason) for path, reason in lost]
        settings = replace(self.settings, from_zero=self.index.from_zero)
        plan = plan_scanned(scanned, settings, earlier, (), self._digests)
        return plan, {scanned_path(each) for each in scanned}

    def _digests(self, files: Sequence[PlannedFile]) -> Iterable[tuple[PlannedFile, str | Reject]]:
        seen = (self.index.file_of(file.path) for file in files)
        listed = {file.path: file for file in seen if file is not None}
        digests: list[tuple[PlannedFile, str | Reject]] = self._call("digests", files, listed, self.settings)
        return digests

    def clean(self, path: str) -> None:
        archive = self.options.archive
        self._call("clean", path, f"file:{archive}" if archive and not scheme_of(archive) else archive)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the files of one partition and the facts about them."""
        if not isinstance(partition, StreamPartition):
            return
        seen = {file.path: file for file in partition.seen}
        rows: dict[str, dict[str, Any]] = {
            path: {**listed_row(file), "facts": {"messages": [], "rejects": []}} for path, file in seen.items()
        }
        for message in partition.files:
            path = disk_file(message.path, seen)
            if path is not None:
                rows[path]["facts"]["messages"].append(asdict(message))
        if partition.rejects:
            facts = {"messages": [], "rejects": [asdict(reject) for reject in partition.rejects]}
            rows[""] = {"path": "", "size": 0, "time": 0, "facts": facts}
        yield pa.RecordBatch.from_pylist(list(rows.values()), self._schema)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        super().stop()


class _ReadListed:
    """What the workers run: makes rows from files."""

    def __init__(self, settings: SourceOptions, schema: pa.Schema) -> None:
        self._settings = settings
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        load_stubs(self._settings.stubs)
        rejects: list[Reject] = []
        messages = self._messages(batches, rejects)
        yield from reader_for(self._settings, self._schema).read(messages, rejects)

    def _messages(self, batches: Iterable[pa.RecordBatch], rejects: list[Reject]) -> Iterator[PlannedFile]:
        for path, facts in lent_files(batches, self._settings.whole_file_bytes):
            rejects += (Reject(**reject) for reject in facts["rejects"])
            if facts["messages"]:
                _check(path)
            yield from map(planned_file, facts["messages"])


def _check(path: str) -> None:
    """Check that a file has not changed since it was listed.

    Raises:
        SpoolError: it has changed or cannot be read.
    """
    try:
        raw_bytes(path).close()
    except SpoolError as error:
        raise file_changed(path, error.reason) from None
