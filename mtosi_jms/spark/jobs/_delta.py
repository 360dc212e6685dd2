"""Delta tables beside Parquet ones, where the package `delta-spark` is installed.

An ingest makes its tables as Parquet first; each then becomes a commit of the Delta table of its object type, so that
what was there before stays in the table's history.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mtosi_jms.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARQUET: Final = "parquet"
DELTA: Final = "delta"
FORMATS: Final = (PARQUET, DELTA)
_LOG: Final = "_delta_log"
_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def check_format(name: str, out: Path) -> None:
    """See that tables of a format can be written into a folder.

    Raises:
        ConfigError: no such format, the package of Delta is not installed, or the folder holds tables of the other one.
    """
    if name not in FORMATS:
        raise ConfigError(f"format is {name!r}; there are {', '.join(FORMATS)}")
    if name == DELTA and importlib.util.find_spec("delta") is None:
        raise ConfigError("the format delta needs Delta Lake, which is not installed: pip install delta-spark")
    tables = list(out.glob("objectType=*"))
    if tables and any(_is_delta(table) for table in tables) != (name == DELTA):
        other = DELTA if name == PARQUET else PARQUET
        raise ConfigError(f"{out} holds tables of the format {other}: choose it, or another folder")


def delta_settings() -> dict[str, str]:
    """Settings of a session that knows Delta; Spark fetches its Java part from Maven's repository, as Delta says.

    Raises:
        ConfigError: the package of Delta cannot be used.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.Builder()
    try:
        from delta import configure_spark_with_delta_pip

        configure_spark_with_delta_pip(builder)
    except Exception as error:  # delta raises bare Exception
        raise ConfigError(f"Delta Lake is installed but cannot be used: {error}: pip install delta-spark") from error
    packages = str(builder._options["spark.jars.packages"])
    return {
        "spark.sql.extensions": _EXTENSION,
        "spark.sql.catalog.spark_catalog": _CATALOG,
        "spark.jars.packages": packages,
    }


def commit(spark: SparkSession, staged: Path, out: Path) -> None:
    """Make Parquet tables in the folder `staged` the newest state of the Delta tables of the same names in `out`.

    Tables of object types that no longer occur become empty and keep their history.
    """
    new = {table.name: table for table in staged.glob("objectType=*")}
    old = {table.name: table for table in out.glob("objectType=*") if _is_delta(table)}
    for name in sorted({*new, *old}):
        if name in new:
            rows = spark.read.parquet(str(new[name].absolute()))
        else:
            rows = spark.read.format(DELTA).load(str(old[name].absolute())).limit(0)
        writer = rows.write.format(DELTA).mode("overwrite").option("overwriteSchema", "true")
        writer.save(str((out / name).absolute()))


def _is_delta(table: Path) -> bool:
    return (table / _LOG).is_dir()
