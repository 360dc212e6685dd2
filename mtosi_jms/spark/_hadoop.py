"""Files of any Hadoop file system as DataFrames: listed and read in the tasks of Spark.

Spark's Python workers have no Hadoop. `HadoopFiles.java` has, and is compiled in the session by Janino, the compiler
that Spark brings along for its own generated code: so there is no jar to build, ship or match with a version of Spark.
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

from mtosi_jms.errors import ConfigError, SpoolError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART_BYTES: Final = 256 * 1024
"""Most of a file that is in one row."""
_LISTED: Final = (
    StructType()
    .add("path", "string")
    .add("size", "long")
    .add("time", "long")
    .add("folder", "boolean")
    .add("named", "boolean")
    .add("error", "string")
)
"""What lies in folders: URL, bytes, milliseconds since 1970; a row with an error stands for what cannot be listed."""
_PARTS: Final = StructType().add("path", "string").add("part", "binary").add("last", "boolean").add("error", "string")
_CLASS: Final = "mtosi_jms.HadoopFiles"
_ROOTS, _FOLDERS, _CONTENTS = range(3)
_compiled: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


class HadoopFiles:
    """The file systems that a session's Hadoop settings open: `s3a:`, `abfss:`, `hdfs:`, `file:` and others."""

    def __init__(self, spark: SparkSession) -> None:
        """Compile what the tasks run, once for each application.

        Raises:
            ConfigError: a session of Spark Connect, whose client has no Java.
        """
        if not hasattr(spark, "_jsparkSession"):
            raise ConfigError(
                "Spark Connect cannot plan a landing: read it with spark.read.format('binaryFile') and parse_messages()"
            )
        self._spark = spark
        context = spark.sparkContext
        if context not in _compiled:
            _compiled[context] = _compile(context)
        jvm: Any = context._jvm
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._settings = conf
        self._conf = spark._jsc.broadcast(jvm.org.apache.spark.util.SerializableConfiguration(conf))

    def roots(self, paths: Sequence[str]) -> DataFrame:
        """What paths and globs lead to: files, and what lies in folders; `_LISTED` has the columns.

        A file that is named outright is `named`.
        """
        rows = self._spark.createDataFrame([(path,) for path in paths], "path string")
        return self._run(_ROOTS, rows, _LISTED)

    def below(self, folders: DataFrame) -> DataFrame:
        """The files in and below the folders of a column `path`, in the same columns."""
        return self._run(_FOLDERS, folders.select("path"), _LISTED)

    def contents(self, files: DataFrame) -> DataFrame:
        """Files in parts of at most `PART_BYTES`, in order: path, part, last, error, facts.

        Args:
            files: path, size in bytes, time in milliseconds as they were listed, and facts to hand on with the first
                part of each file.
        """
        kept = files.select("path", "size", "time", "facts")
        facts = StructField("facts", kept.schema["facts"].dataType)
        return self._run(_CONTENTS, kept, StructType([*_PARTS.fields, facts]))

    def remove(self, path: str) -> None:
        """Remove a file, if it is still there; the driver does it.

        Raises:
            SpoolError: that cannot be done.
        """
        with _reporting(path):
            file = self._path(path)
            file.getFileSystem(self._settings).delete(file, False)

    def move(self, path: str, archive: str) -> None:
        """Move a file below a folder, under its own path, if it is still there; the driver does it.

        Raises:
            SpoolError: that cannot be done.
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
            copy = self._jvm.org.apache.hadoop.fs.FileUtil.copy
            copy(source, file, place, target, True, self._settings)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    @property
    def _jvm(self) -> Any:
        return self._spark.sparkContext._jvm

    def _run(self, task: int, rows: DataFrame, schema: StructType) -> DataFrame:
        jvm = self._jvm
        arguments = jvm.java.util.ArrayList()
        for argument in (task, PART_BYTES, self._conf):
            arguments.add(argument)
        function = _compiled[self._spark.sparkContext].newInstance(arguments.toArray())
        columns = self._spark._jsparkSession.parseDataType(schema.json())
        return DataFrame(rows._jdf.flatMap(function, jvm.org.apache.spark.sql.Encoders.row(columns)), self._spark)


@contextmanager
def _reporting(path: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise SpoolError(path, java_reason(error)) from error


def java_reason(error: Exception) -> str:
    """What an error says, that of Java if it is one, in one line."""
    said = error.java_exception.toString() if isinstance(error, Py4JJavaError) else error
    return str(said).strip().partition("\n")[0] or type(error).__name__


def _compile(context: SparkContext) -> Any:
    """The constructor of the Java class, which goes to the executors in a jar."""
    jvm: Any = context._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(resources.files(__package__).joinpath("HadoopFiles.java").read_text(encoding="utf-8"))
    jar = Path(SparkFiles.getRootDirectory()) / f"mtosi-{uuid4().hex}.jar"
    with zipfile.ZipFile(jar, "w") as packed:
        for name, code in dict(compiler.getBytecodes()).items():
            packed.writestr(f"{name.replace('.', '/')}.class", bytes(code))
    context._jsc.addJar(jar.as_uri())
    return compiler.getClassLoader().loadClass(_CLASS).getConstructors()[0]
