"""Files of any Hadoop file system as DataFrames; Spark's tasks list and read them.

Spark's Python workers have no Hadoop, so `HadoopFiles.java` runs in Java tasks. The session compiles it with Janino,
the compiler that Spark includes for its own generated code. So there is no jar to build, ship or match with a version
of Spark.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext, SparkFiles
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from mtosi_jms.errors import SpoolError
from mtosi_jms.spark._java import Java, java_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART_BYTES: Final = 256 * 1024
"""The largest part of a file in one row, in bytes."""
_LISTED: Final = (
    StructType()
    .add("path", "string")
    .add("size", "long")
    .add("time", "long")
    .add("folder", "boolean")
    .add("named", "boolean")
    .add("error", "string")
)
"""Listed files and folders: URL, size in bytes, time in milliseconds since 1970; or an error of one not listed."""
_PARTS: Final = StructType().add("path", "string").add("part", "binary").add("last", "boolean").add("error", "string")
_CLASS: Final = "mtosi_jms.HadoopFiles"
_ROOTS, _FOLDERS, _CONTENTS = range(3)
_compiled: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


class HadoopFiles:
    """The file systems that a session's Hadoop settings open: `s3a:`, `abfss:`, `hdfs:`, `file:` and others.

    Attributes:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        """Compile the code of the tasks, once for each application.

        Raises:
            ConfigError: a session of Spark Connect, whose client has no Java.
        """
        self.spark = spark
        self._java = java_of(spark)
        context = spark.sparkContext
        if context not in _compiled:
            _compiled[context] = _compile(self._java)
        self._settings = _settings(self._java)
        shared = self._java.packages.org.apache.spark.util.SerializableConfiguration(self._settings)
        self._conf = self._java.context.broadcast(shared)

    def roots(self, paths: Sequence[str]) -> DataFrame:
        """List the files that paths and globs lead to, and the content of folders; `_LISTED` has the columns.

        `named` is true for a file that a path names directly.
        """
        rows = self.spark.createDataFrame([(path,) for path in paths], "path string")
        return self._run(_ROOTS, rows, _LISTED)

    def below(self, folders: DataFrame) -> DataFrame:
        """List the files in and below the folders of a column `path`, with the same columns."""
        return self._run(_FOLDERS, folders.select("path"), _LISTED)

    def contents(self, files: DataFrame) -> DataFrame:
        """Read files in parts of at most `PART_BYTES`, in order, with the columns path, part, last, error, facts.

        Args:
            files: path, size in bytes and time in milliseconds, as listed; and `facts`, which the first part of each
                file repeats.
        """
        kept = files.select("path", "size", "time", "facts")
        facts = StructField("facts", kept.schema["facts"].dataType)
        return self._run(_CONTENTS, kept, StructType([*_PARTS.fields, facts]))

    def remove(self, path: str) -> None:
        """Remove a file on the driver, if it still exists.

        Raises:
            SpoolError: the file cannot be removed.
        """
        with _reporting(path):
            file = self._path(path)
            file.getFileSystem(self._settings).delete(file, False)

    def move(self, path: str, archive: str) -> None:
        """Move a file on the driver, if it still exists, to its own path below the folder `archive`.

        Raises:
            SpoolError: the file cannot be moved.
        """
        with _reporting(path):
            file = self._path(path)
            source = file.getFileSystem(self._settings)
            if not source.exists(file):
                return
            below = file.toUri().getPath()
            target = self._path(archive + below)
            place = target.getFileSystem(self._settings)
            for number in count(2):
                if not place.exists(target):
                    break
                target = self._path(f"{archive}{below.rpartition('/')[0]}/{number}-{file.getName()}")
            copy = self._java.packages.org.apache.hadoop.fs.FileUtil.copy
            copy(source, file, place, target, True, self._settings)

    def _path(self, path: str) -> Any:
        return self._java.packages.org.apache.hadoop.fs.Path(path)

    def _run(self, task: int, rows: DataFrame, schema: StructType) -> DataFrame:
        packages = self._java.packages
        arguments = packages.java.util.ArrayList()
        for argument in (task, PART_BYTES, self._conf):
            arguments.add(argument)
        function = _compiled[self.spark.sparkContext].newInstance(arguments.toArray())
        columns = self._java.session.parseDataType(schema.json())
        return DataFrame(rows._jdf.flatMap(function, packages.org.apache.spark.sql.Encoders.row(columns)), self.spark)


def default_scheme(spark: SparkSession) -> str:
    """Return the scheme of a path without one.

    Raises:
        ConfigError: a session of Spark Connect, whose client has no Java.
    """
    scheme: str = _settings(java_of(spark)).get("fs.defaultFS", "file:///")
    return scheme.partition(":")[0].lower()


def _settings(java: Java) -> Any:
    return java.session.sessionState().newHadoopConf()


@contextmanager
def _reporting(path: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise SpoolError(path, java_reason(error)) from error


def java_reason(error: Exception) -> str:
    """Return the text of an error, or of the Java error in it, as one line."""
    message = error.java_exception.toString() if isinstance(error, Py4JJavaError) else error
    return str(message).strip().partition("\n")[0] or type(error).__name__


def _compile(java: Java) -> Any:
    """Compile the Java class, send it to the executors in a jar, and return its constructor."""
    compiler = java.packages.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(java.class_loader)
    compiler.cook(resources.files(__package__).joinpath("HadoopFiles.java").read_text(encoding="utf-8"))
    jar = Path(SparkFiles.getRootDirectory()) / f"mtosi-{uuid4().hex}.jar"
    with zipfile.ZipFile(jar, "w") as packed:
        for name, code in dict(compiler.getBytecodes()).items():
            packed.writestr(f"{name.replace('.', '/')}.class", bytes(code))
    java.context.addJar(jar.as_uri())
    return compiler.getClassLoader().loadClass(_CLASS).getConstructors()[0]
