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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
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
from mtosi_jms.errors import MtosiError
from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark._engine import FOUND, ReadFiles, SparkRunner, by_file, found_row
from mtosi_jms.spark._hadoop import HadoopFiles, java_reason
from mtosi_jms.spark._streams import (
    FileStream,
    LandingStream,
    StreamOptions,
    StreamPartition,
    admitted,
    check_streamable,
)
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.files import FileState, Reject
from mtosi_jms.tables.landing import Digested, PlannedFile, Scan
from mtosi_jms.tables.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

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
    return hadoop.contents(files).mapInArrow(ReadFiles(settings, schema), from_arrow_schema(schema))


class SessionServer:
    """Answers requests of the planning processes of streams that need the session.

    Attributes:
        address: of a socket that only this user can open.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        runner = SparkRunner(spark)
        self._answers: dict[str, Callable[..., Any]] = {
            "find": runner.find,
            "look": lambda files, options, whole: list(runner.look(files, options, whole=whole)),
            "digests": lambda *given: list(runner.digests(*given)),
            "clean": self._clean,
        }
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
                    answer: Any = self._answers[name](*arguments)
                except MtosiError as error:
                    answer = error
                except Exception as error:  # noqa: BLE001 - the planning process must get every error of Spark
                    answer = MtosiError(f"Spark: {java_reason(error)}")
                connection.send(answer)

    def _clean(self, path: str, archive: str) -> None:
        """Remove a file, or move it below an archive, if it is still there."""
        HadoopFiles(self._spark).move(path, archive) if archive else HadoopFiles(self._spark).remove(path)


_servers: Final[WeakKeyDictionary[SparkContext, SessionServer]] = WeakKeyDictionary()


class _EngineSource(DataSource):
    """The files of each batch of `stream_landing`, with the facts that planning has found about them."""

    @classmethod
    def name(cls) -> str:
        return "mtosi-listed"

    def schema(self) -> StructType:
        return from_arrow_schema(FOUND)

    def streamReader(self, schema: StructType) -> FileStream:  # noqa: N802
        given, of_stream = json.loads(self.options[_GIVEN])
        stream = admitted(EngineStream)(SourceOptions.parse(given), StreamOptions.parse(of_stream), FOUND)
        if isinstance(stream, EngineStream):
            stream.runner = SessionRunner(self.options[_ADDRESS])
        return stream


class SessionRunner:
    """The runner of a process that has no session: it asks the `SessionServer` at an address."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._server: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker needs, without the connection."""
        return {"_address": self._address, "_server": None}

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the answer of the server.

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

    def find(self, options: SourceOptions) -> tuple[dict[str, FileState], list[Reject]]:
        found: tuple[dict[str, FileState], list[Reject]] = self.call("find", options)
        return found

    def look(self, files: Sequence[FileState], options: SourceOptions, *, whole: bool) -> Iterable[Scan]:
        scans: list[Scan] = self.call("look", files, options, whole)
        return scans

    def digests(
        self, messages: Sequence[PlannedFile], files: Mapping[str, FileState], options: SourceOptions
    ) -> Iterable[Digested]:
        digests: list[Digested] = self.call("digests", messages, files, options)
        return digests

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._server is not None:
            self._server.close()
            self._server = None


class EngineStream(LandingStream):
    """A growing landing whose files are listed and read by Spark's tasks."""

    runner: SessionRunner

    def clean(self, path: str) -> None:
        archive = self.options.archive
        self.runner.call("clean", path, f"file:{archive}" if archive and not scheme_of(archive) else archive)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the files of one partition and the facts about them."""
        if not isinstance(partition, StreamPartition):
            return
        seen = {file.path: file for file in partition.seen}
        inside = by_file(partition.files, seen)
        rows = [found_row(file, inside.get(path, ())) for path, file in seen.items()]
        if partition.rejects:
            facts = {"rejects": [asdict(reject) for reject in partition.rejects]}
            rows.append({"path": "", "size": 0, "time": 0, "facts": facts})
        yield pa.RecordBatch.from_pylist(rows, self._schema)

    def stop(self) -> None:
        self.runner.close()
        super().stop()
