"""Where the tables of an ingest are: Parquet folders, or tables of Delta Lake or Iceberg, which Spark commits.

Below OUT each object type has a folder `objectType=X`, whatever the format. Tables of a catalog are called `NAME_x`.
Delta and Iceberg need their jar in the session. It is made for one version of Spark, and `PACKAGES` names it.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mtosi_jms.bulk import GZIP_MAGIC
from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import ALL, OBJECT_TYPES, class_for, label_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARQUET: Final = "parquet"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
FORMATS: Final = (PARQUET, DELTA, ICEBERG)
PREFIX: Final = "objectType="

_DELTA: Final = "io.delta:delta-spark_{}_2.13:4.4.0"
_ICEBERG: Final = "org.apache.iceberg:iceberg-spark-runtime-{}_2.13:{}"
PACKAGES: Final[Mapping[str, Mapping[str, str]]] = {
    DELTA: {spark: _DELTA.format(spark) for spark in ("4.0", "4.1", "4.2")},
    ICEBERG: {"4.0": _ICEBERG.format("4.0", "1.11.0"), "4.1": _ICEBERG.format("4.1", "1.12.0")},
}
"""Maven packages by format and version of Spark; there are none for other versions."""
_CLASSES: Final = {DELTA: "io.delta.sql.DeltaSparkSessionExtension", ICEBERG: "org.apache.iceberg.spark.SparkCatalog"}
_FOLDERS: Final = {DELTA: "_delta_log", ICEBERG: "metadata"}
_NAMES: Final = {DELTA: "Delta Lake", ICEBERG: "Iceberg"}
_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    PARQUET: {},
    DELTA: {
        "spark.sql.extensions": _CLASSES[DELTA],
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    ICEBERG: {},
}
_JARS: Final = ("spark.jars", "spark.jars.packages")
_LINKAGE: Final = re.compile(
    r"java\.lang\.(NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|ClassNotFoundException|AbstractMethodError"
    r"|IncompatibleClassChangeError|VerifyError)\b:?[^\n]*"
)


def format_of(folder: Path) -> str:
    """The format of a table by what is in its folder."""
    return next((name for name, inside in _FOLDERS.items() if (folder / inside).is_dir()), PARQUET)


def check_format(name: str, out: Path, table: str = "") -> None:
    """Check that the job can write tables in a format.

    Raises:
        ConfigError: the format is unknown, `out` has tables of another one, or a catalog's table is to be Parquet.
    """
    if name not in FORMATS:
        raise ConfigError(f"format is {name!r}; there are {', '.join(FORMATS)}")
    if table and name == PARQUET:
        raise ConfigError(f"tables of a catalog are of the format {DELTA} or {ICEBERG}, not {PARQUET}")
    if table and not re.fullmatch(r"\w+(\.\w+)*", table):
        raise ConfigError(f"table is {table!r}; give a name such as lake.network.inventory")
    others = {format_of(folder) for folder in out.glob(f"{PREFIX}*")} - {name}
    if others:
        raise ConfigError(f"{out} holds tables of the format {others.pop()}: choose it, or another folder")


def package_of(name: str, version: str) -> str:
    """The Maven package of a format for a version of Spark; empty for Parquet.

    Raises:
        ConfigError: there is none.
    """
    if name == PARQUET:
        return ""
    known = PACKAGES[name]
    line = ".".join(version.split(".")[:2])
    if line not in known:
        raise ConfigError(
            f"there is no {_NAMES[name]} for Spark {version}, only for {', '.join(known)}: pip install 'pyspark=="
            f"{max(known)}.*', or name its jar with the settings spark.jars or spark.jars.packages (--conf)"
        )
    return known[line]


def session_settings(name: str, version: str, given: Mapping[str, str]) -> dict[str, str]:
    """Settings of a session that knows a format; without jars among those given, Spark downloads the package.

    Raises:
        ConfigError: there is no package for this version of Spark.
    """
    own = dict(_SETTINGS[name])
    if name != PARQUET and not any(setting in given for setting in _JARS):
        own["spark.jars.packages"] = package_of(name, version)
    return {**own, **given}


def submit_line(name: str, version: str) -> str:
    """What `spark-submit` has to be told for a format; empty for Parquet."""
    if name == PARQUET:
        return ""
    settings = "".join(f" --conf {key}={value}" for key, value in _SETTINGS[name].items())
    return f"--packages {package_of(name, version)}{settings}"


@contextmanager
def jar_errors(spark: SparkSession, name: str) -> Iterator[None]:
    """Check that a session has the jar of a format, and name the jar where it does not fit the session's Spark.

    Raises:
        ConfigError: the jar is missing, or made for another version of Spark.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    if name == PARQUET:
        yield
        return
    place = _jar(spark, name)
    if name == DELTA and _CLASSES[DELTA] not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise ConfigError(f"the session does not know Delta Lake: {_advice(name, spark.version)}")
    try:
        yield
    except Py4JError as error:
        found = _LINKAGE.search(str(error))
        if found is None:
            raise
        what = f"{_NAMES[name]}'s jar {place} does not fit Spark {spark.version}: {found.group().strip()}"
        raise ConfigError(f"{what}: {_advice(name, spark.version)}") from error


def _jar(spark: SparkSession, name: str) -> str:
    """The jar in which a session finds a format."""
    from py4j.protocol import Py4JError

    try:
        loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
        place = loader.loadClass(_CLASSES[name]).getProtectionDomain().getCodeSource().getLocation()
        return Path(str(place.getPath())).name
    except Py4JError as error:
        what = f"the session has no jar of {_NAMES[name]} (class {_CLASSES[name]})"
        raise ConfigError(f"{what}: {_advice(name, spark.version)}") from error


def _advice(name: str, version: str) -> str:
    try:
        return f"start it with {submit_line(name, version)}"
    except ConfigError as error:
        return str(error)


class Lake:
    """The tables of an ingest, by object type.

    Attributes:
        spark: the session.
        format: of the tables.

    Args:
        spark: a session that knows the format.
        name: the format.
        out: the folder of tables.
        table: of a catalog of the session, the beginning of the tables' names; by default they are below `out`.

    Raises:
        ConfigError: the session forgets the tables of that catalog when it ends.
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
        """The table of an object type as SQL names it."""
        if self._table:
            suffix = re.sub(r"\W", "_", label).lower()
            return ".".join(f"`{part}`" for part in f"{self._table}_{suffix}".split("."))
        if self.format == ICEBERG:
            return f"{self._catalog}.`{PREFIX}{label}`"
        return f"{self.format}.`{self.folder(label)}`"

    def folder(self, label: str) -> Path:
        """The folder of a table below OUT."""
        return self._out / f"{PREFIX}{label}"

    def labels(self, wanted: Sequence[str]) -> list[str]:
        """The object types that have a table; in a catalog those of `wanted`."""
        if self._table:
            known = OBJECT_TYPES if wanted == (ALL,) else wanted
            labels = [label_of(class_for(name)) for name in known]
            return [label for label in labels if self.spark.catalog.tableExists(self.name(label))]
        found = [path for path in self._out.glob(f"{PREFIX}*") if format_of(path) == self.format]
        return sorted(path.name.removeprefix(PREFIX) for path in found)

    def read(self, label: str) -> DataFrame:
        """The table of an object type."""
        if self.format == PARQUET:
            return self.spark.read.parquet(str(self.folder(label)))
        return self.spark.table(self.name(label))

    def replace(self, label: str, rows: DataFrame) -> None:
        """Make rows the newest version of a table of Delta or Iceberg, and its columns those of the rows."""
        rows.writeTo(self.name(label)).using(self.format).createOrReplace()

    def append(self, label: str, rows: DataFrame) -> None:
        """Add rows, whose keys no row has, to a table of Delta or Iceberg that has all their columns."""
        rows.writeTo(self.name(label)).append()

    def all_labels(self, staged: Path, wanted: Sequence[str]) -> list[str]:
        """The object types that have a table, or a Parquet table in a folder."""
        new = {path.name.removeprefix(PREFIX) for path in staged.glob(f"{PREFIX}*")}
        return sorted({*new, *self.labels(wanted)})

    def replace_all(self, staged: Path, wanted: Sequence[str]) -> None:
        """Replace each table by the Parquet table of the same name in a folder; one that has none becomes empty."""
        for label in self.all_labels(staged, wanted):
            new = staged / f"{PREFIX}{label}"
            rows = self.spark.read.parquet(str(new.absolute())) if new.is_dir() else self.read(label).limit(0)
            self.replace(label, rows)

    def version(self, label: str, folder: Path | None = None, *, before: bool = False) -> str:
        """What tells states of a table apart: the version of Delta, the snapshot of Iceberg, the files of Parquet.

        Args:
            label: object type.
            folder: of Parquet, where the table is; by default its place.
            before: whether that of the last commit's predecessor is asked for, of Delta or Iceberg.
        """
        if self.format == PARQUET:
            files = sorted(
                (path.name, path.stat().st_size) for path in (folder or self.folder(label)).glob("*.parquet")
            )
            return f"{zlib.crc32(repr(files).encode()):08x}"
        if self._table:
            return self._catalog_version(label, before=before)
        if self.format == DELTA:
            return str(_delta_version(self.folder(label)) - before)
        return _iceberg_snapshot(self.folder(label), "parent-snapshot-id" if before else "snapshot-id")

    def _catalog_version(self, label: str, *, before: bool) -> str:
        if self.format == DELTA:
            (last,) = self.spark.sql(f"DESCRIBE HISTORY {self.name(label)} LIMIT 1").collect()
            return str(last["version"] - before)
        made = self.spark.table(f"{self.name(label)}.history").orderBy("made_current_at", ascending=False)
        row = made.first()
        return "" if row is None else str(row["parent_id" if before else "snapshot_id"])

    def merge(
        self, label: str, rows: DataFrame, keys: Sequence[str], removed: str, *, replaces: bool, removes: bool
    ) -> None:
        """Put rows in the place of those with the same keys, in one commit of Delta or Iceberg.

        Args:
            label: object type; its table exists, with all the columns of the rows.
            rows: with the columns of the table.
            keys: columns that tell rows apart.
            removed: a column of `rows` only: whether the row of the table is to go.
            replaces: whether some row of the table has the keys of one in `rows`.
            removes: whether one is to go.
        """
        view = "mtosi_merged"
        rows.createOrReplaceTempView(view)
        on = " AND ".join(f"t.`{key}` = s.`{key}`" for key in keys)
        columns = [column for column in rows.columns if column != removed]
        sets = ", ".join(f"t.`{column}` = s.`{column}`" for column in columns)
        listed, values = (", ".join(f"{prefix}`{column}`" for column in columns) for prefix in ("", "s."))
        clauses = [
            f"WHEN MATCHED AND s.`{removed}` THEN DELETE" if removes else "",
            f"WHEN MATCHED THEN UPDATE SET {sets}" if replaces else "",
            f"WHEN NOT MATCHED AND NOT s.`{removed}` THEN INSERT ({listed}) VALUES ({values})",  # noqa: S608 - names of our own
        ]
        into = f"MERGE INTO {self.name(label)} t USING {view} s ON {on}"
        try:
            self.spark.sql(" ".join((into, *filter(None, clauses))))
        finally:
            self.spark.catalog.dropTempView(view)

    def add_columns(self, label: str, columns: Sequence[tuple[str, str]]) -> None:
        """Add columns to a table of Delta or Iceberg: names (of a field in a struct `a`.`b`) and types of SQL."""
        if columns:
            listed = ", ".join(f"{name} {kind}" for name, kind in columns)
            self.spark.sql(f"ALTER TABLE {self.name(label)} ADD COLUMNS ({listed})")


def _delta_version(table: Path) -> int:
    """The last version of a table of Delta below OUT, by the names of its log: Spark would ask that of a job."""
    return max(int(path.stem) for path in (table / _FOLDERS[DELTA]).glob("*.json") if path.stem.isdecimal())


def _iceberg_snapshot(table: Path, key: str) -> str:
    """What the newest metadata of a table of Iceberg below OUT say of its snapshot; empty where it has none."""
    found = {
        int(match[1]): path
        for path in (table / _FOLDERS[ICEBERG]).glob("v*.metadata.json")
        if (match := re.fullmatch(r"v(\d+)(\.gz)?\.metadata\.json", path.name))
    }
    data = found[max(found)].read_bytes()
    metadata = json.loads(gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data)
    now = metadata.get("current-snapshot-id")
    return next((str(one.get(key)) for one in metadata.get("snapshots", ()) if one["snapshot-id"] == now), "")


def _check_catalog(spark: SparkSession, table: str) -> None:
    """Refuse Spark's own catalog where it is held in memory."""
    parts = table.split(".")
    catalog = spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) if len(parts) > 1 else None
    in_memory = spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    if in_memory and (catalog is None or parts[0] == "spark_catalog"):
        raise ConfigError(
            f"table {table}: the session's own catalog is in memory and forgets the table: configure another "
            "(--conf spark.sql.catalog.NAME=...), or leave --table out for tables below OUT"
        )
