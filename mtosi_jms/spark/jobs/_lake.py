"""Where the tables of an ingest are: Parquet folders, or tables of Delta Lake or Iceberg, which Spark commits.

Below OUT each object type has a folder `objectType=X` in all formats. In a catalog the tables are called `NAME_x`.
Delta and Iceberg need jars in the session that are made for its version of Spark; the pinned jars name them.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mtosi_jms.compression import decompress
from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import ALL, OBJECT_TYPES, class_for, label_of
from mtosi_jms.jars import fetch, pins
from mtosi_jms.spark.jobs._job import FEW, ONE_JOB
from mtosi_jms.spark.jobs._merge import Counts
from mtosi_jms.tables.job import DELTA, FOLDERS, ICEBERG, PARQUET, PREFIX, format_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLASSES: Final = {DELTA: "io.delta.sql.DeltaSparkSessionExtension", ICEBERG: "org.apache.iceberg.spark.SparkCatalog"}
_NAMES: Final = {DELTA: "Delta Lake", ICEBERG: "Iceberg"}
_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    DELTA: {
        "spark.sql.extensions": _CLASSES[DELTA],
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
}
# Delta reads the log of a table in 50 tasks by default, most of them empty.
_OF_OWN_SESSION: Final = {DELTA: {"spark.databricks.delta.snapshotPartitions": "4"}}
_GROWING: Final[Mapping[str, Mapping[str, str]]] = {
    DELTA: {"delta.enableDeletionVectors": "true"},
    ICEBERG: {"write.merge.mode": "merge-on-read"},
}
_ONE_JOB_BYTES: Final = 64 * 1024 * 1024
"""A larger table is not sorted by one task."""
_JARS: Final = ("spark.jars", "spark.jars.packages")
_LINKAGE: Final = re.compile(
    r"java\.lang\.(NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|ClassNotFoundException|AbstractMethodError"
    r"|IncompatibleClassChangeError|VerifyError)\b:?[^\n]*"
)


def _set_of(name: str, version: str) -> str:
    known = [line.removeprefix(f"{name}-") for line in pins() if line.startswith(f"{name}-")]
    line = ".".join(version.split(".")[:2])
    if line not in known:
        raise ConfigError(
            f"there is no {_NAMES[name]} for Spark {version}, only for {', '.join(known)}: pip install 'pyspark=="
            f"{max(known)}.*', or name its jar with the settings spark.jars or spark.jars.packages (--conf)"
        )
    return f"{name}-{line}"


def session_settings(name: str, version: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session that knows a format. If `given` has no jars, those that are pinned are fetched.

    Raises:
        ConfigError: there are no jars for this version of Spark, or they cannot be had.
    """
    own = {**_SETTINGS.get(name, {}), **_OF_OWN_SESSION.get(name, {})}
    if name != PARQUET and not any(setting in given for setting in _JARS):
        own["spark.jars"] = ",".join(map(str, fetch(_set_of(name, version), f"{_NAMES[name]} for Spark {version}")))
    return {**own, **given}


def submit_line(name: str, version: str) -> str:
    """Return the options that `spark-submit` needs for a format; empty for Parquet."""
    if name == PARQUET:
        return ""
    settings = "".join(f" --conf {key}={value}" for key, value in _SETTINGS.get(name, {}).items())
    return f"--packages {next(iter(pins()[_set_of(name, version)]))}{settings}"


@contextmanager
def jar_errors(spark: SparkSession, name: str) -> Iterator[None]:
    """Check that a session has the jar of a format; in the block, name the jar if it does not fit the session's Spark.

    Raises:
        ConfigError: the jar is missing, is not configured, or is made for another version of Spark.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    if name == PARQUET:
        yield
        return
    _check_class(spark, name)
    if name == DELTA and _CLASSES[DELTA] not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise ConfigError(f"the session does not know Delta Lake: {_advice(name, spark.version)}")
    try:
        yield
    except Py4JError as error:
        found = _LINKAGE.search(str(error))
        if found is None:
            raise
        what = f"{_NAMES[name]}'s jar {_jar(spark, name)} does not fit Spark {spark.version}: {found.group().strip()}"
        raise ConfigError(f"{what}: {_advice(name, spark.version)}") from error


def _check_class(spark: SparkSession, name: str) -> None:
    """Check that a session has the class of a format: of a class that is there Spark only misses the method."""
    from pyspark.errors import AnalysisException

    try:
        spark.sql(f"SELECT java_method('{_CLASSES[name]}', 'none')")
    except AnalysisException as error:
        if "UNEXPECTED_CLASS_TYPE" in str(error.getCondition()):
            what = f"the session has no jar of {_NAMES[name]} (class {_CLASSES[name]})"
            raise ConfigError(f"{what}: {_advice(name, spark.version)}") from error


def _jar(spark: SparkSession, name: str) -> str:
    jars = (row[0].rpartition("/")[2] for row in spark.sql("LIST JARS").collect())
    return next((jar for jar in jars if name in jar), "")


def _advice(name: str, version: str) -> str:
    try:
        return f"start it with {submit_line(name, version)}"
    except ConfigError as error:
        return str(error)


class Lake:
    """The tables of an ingest, by object type.

    Args:
        table: prefix of the names of tables in a catalog of the session; by default the tables are below `out`.

    Raises:
        ConfigError: that catalog is in memory, so its tables would be lost when the session ends.
    """

    def __init__(self, spark: SparkSession, name: str, out: Path, table: str = "") -> None:
        self.spark = spark
        self.format = name
        self._out = out.absolute()
        self._table = table
        if table:
            _check_catalog(spark, table)
        elif name == ICEBERG:
            self._catalog = f"mtosi_{zlib.crc32(str(self._out).encode()):08x}"
            setting = f"spark.sql.catalog.{self._catalog}"
            spark.conf.set(setting, _CLASSES[ICEBERG])
            spark.conf.set(f"{setting}.type", "hadoop")
            spark.conf.set(f"{setting}.warehouse", str(self._out))
            spark.conf.set(f"{setting}.cache-enabled", "false")

    def name(self, label: str) -> str:
        if self._table:
            suffix = re.sub(r"\W", "_", label).lower()
            return ".".join(f"`{part}`" for part in f"{self._table}_{suffix}".split("."))
        if self.format == ICEBERG:
            return f"{self._catalog}.`{PREFIX}{label}`"
        return f"{self.format}.`{self.folder(label)}`"

    def folder(self, label: str) -> Path:
        return self._out / f"{PREFIX}{label}"

    def folders(self, labels: Iterable[str]) -> list[str]:
        return [] if self._table else sorted(self.folder(label).name for label in labels)

    def labels(self, wanted: Sequence[str]) -> list[str]:
        """Return the object types that have a table; in a catalog, only those of `wanted`."""
        if self._table:
            known = OBJECT_TYPES if wanted == (ALL,) else wanted
            labels = [label_of(class_for(name)) for name in known]
            return [label for label in labels if self.spark.catalog.tableExists(self.name(label))]
        found = [path for path in self._out.glob(f"{PREFIX}*") if format_of(path) == self.format]
        return sorted(path.name.removeprefix(PREFIX) for path in found)

    def read(self, label: str) -> DataFrame:
        if self.format == PARQUET:
            return self.spark.read.parquet(str(self.folder(label)))
        return self.spark.table(self.name(label))

    def replace(self, label: str, rows: DataFrame, *, grows: bool = False) -> None:
        """Replace the rows and the columns of a table of Delta or Iceberg, as its newest version; if it grows, a merge
        marks the rows that it replaces, and does not write their files anew."""
        writer = rows.writeTo(self.name(label)).using(self.format)
        for name, value in (_GROWING[self.format] if grows else {}).items():
            writer = writer.tableProperty(name, value)
        writer.createOrReplace()

    def all_labels(self, staged: Path, wanted: Sequence[str]) -> list[str]:
        """Return the object types that have a table, or a staged Parquet table in a folder."""
        new = {path.name.removeprefix(PREFIX) for path in staged.glob(f"{PREFIX}*")}
        return sorted({*new, *self.labels(wanted)})

    def replace_all(self, staged: Path, labels: Iterable[str]) -> None:
        """Replace each table by the staged Parquet table of the same name; a table without one becomes empty."""
        for label in labels:
            new = staged / f"{PREFIX}{label}"
            rows = self.spark.read.parquet(str(new.absolute())) if new.is_dir() else self.read(label).limit(0)
            self.replace(label, rows)

    def version(self, label: str, folder: Path | None = None, *, before: bool = False) -> str:
        """Return what differs between states of a table: the version of Delta, the snapshot of Iceberg, a hash of the
        names and sizes of Parquet files. `folder`: that of the Parquet table; `before`: that before the last commit."""
        if self.format == PARQUET:
            files = (folder or self.folder(label)).glob("*.parquet")
            return f"{zlib.crc32(repr(sorted((path.name, path.stat().st_size) for path in files)).encode()):08x}"
        if self.format == DELTA and self._table:
            (last,) = self.spark.sql(f"DESCRIBE HISTORY {self.name(label)} LIMIT 1").collect()
            return str(last["version"] - before)
        if self.format == DELTA:  # of a table below OUT the names of its log tell it; Spark would need a job
            names = (path.stem for path in (self.folder(label) / FOLDERS[DELTA]).glob("*.json"))
            return str(max(int(name) for name in names if name.isdecimal()) - before)
        if not self._table:
            return _iceberg_snapshot(self.folder(label), "parent-snapshot-id" if before else "snapshot-id")
        made = self.spark.table(f"{self.name(label)}.history").orderBy("made_current_at", ascending=False)
        row = made.first()
        return "" if row is None else str(row["parent_id" if before else "snapshot_id"])

    def merge(self, label: str, rows: DataFrame, keys: Sequence[str], removed: str, found: Counts) -> None:
        """Replace the rows with the same keys and add the others, in one commit of Delta or Iceberg. The table has all
        columns of `rows` but `removed`, which is true if the row of the table has to be deleted."""
        view = "mtosi_merged"
        rows.createOrReplaceTempView(view)
        on = " AND ".join(f"t.`{key}` = s.`{key}`" for key in keys)
        clauses = [
            f"WHEN MATCHED AND s.`{removed}` THEN DELETE" if found.removes else "",
            "WHEN MATCHED THEN UPDATE SET *" if found.replaces else "",
            f"WHEN NOT MATCHED AND NOT s.`{removed}` THEN INSERT *",
        ]
        into = f"MERGE INTO {self.name(label)} t USING {view} s ON {on}"
        try:
            self.spark.sql(" ".join((into, *filter(None, clauses))))
        finally:
            self.spark.catalog.dropTempView(view)

    def ways(self, label: str, rows: int) -> dict[str, str]:
        """Return the settings with which a few rows are soonest committed to a table; none for many rows."""
        if rows >= FEW:
            return {}
        # What is merged are staged files: without this, Delta would copy them first.
        kept = {"spark.databricks.delta.merge.materializeSource": "none"} if self.format == DELTA else {}
        size = sum(path.stat().st_size for path in self.folder(label).rglob("*.parquet"))
        return kept | (ONE_JOB if not self._table and size < _ONE_JOB_BYTES else {})

    def add_columns(self, label: str, columns: Sequence[tuple[str, str]]) -> None:
        """Add columns, given as names and SQL types, to a table. The name of a field in a struct is `a`.`b`."""
        if columns:
            listed = ", ".join(f"{name} {kind}" for name, kind in columns)
            self.spark.sql(f"ALTER TABLE {self.name(label)} ADD COLUMNS ({listed})")


def _iceberg_snapshot(table: Path, key: str) -> str:
    """Return a field of the current snapshot of an Iceberg table below OUT; empty if it has no snapshot."""
    found = {
        int(match[1]): path
        for path in (table / FOLDERS[ICEBERG]).glob("v*.metadata.json")
        if (match := re.fullmatch(r"v(\d+)(\.gz)?\.metadata\.json", path.name))
    }
    with found[max(found)].open("rb") as file:
        metadata = json.load(decompress(file))
    now = metadata.get("current-snapshot-id")
    return next((str(one.get(key)) for one in metadata.get("snapshots", ()) if one["snapshot-id"] == now), "")


def _check_catalog(spark: SparkSession, table: str) -> None:
    """Refuse Spark's own catalog if it is in memory."""
    parts = table.split(".")
    catalog = spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) if len(parts) > 1 else None
    in_memory = spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    if in_memory and (catalog is None or parts[0] == "spark_catalog"):
        raise ConfigError(
            f"table {table}: the session's own catalog is in memory and forgets the table: configure another "
            "(--conf spark.sql.catalog.NAME=...), or leave --table out for tables below OUT"
        )
