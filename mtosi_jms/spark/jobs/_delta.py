"""Delta Lake as an output format of the ingest job, as an alternative to Parquet. Needs the package `delta-spark`.

The job first writes one Parquet table per object type into a staging folder. It then commits each of them to the Delta
table of the same object type. The Delta table keeps its earlier versions in its history.
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
    """Check that the job can write tables in the format `name` into the folder `out`.

    Raises:
        ConfigError: the format is unknown, the package `delta-spark` is not installed, or the folder already has tables
            in the other format.
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
    """Settings for a Spark session with Delta Lake.

    `delta-spark` names the Maven packages that match its version. Spark downloads them when the session starts.

    Raises:
        ConfigError: `delta-spark` is installed but does not work.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.Builder()
    try:
        from delta import configure_spark_with_delta_pip

        configure_spark_with_delta_pip(builder)
    except Exception as error:  # delta-spark raises plain Exception
        raise ConfigError(f"Delta Lake is installed but cannot be used: {error}: pip install delta-spark") from error
    packages = str(builder._options["spark.jars.packages"])
    return {
        "spark.sql.extensions": _EXTENSION,
        "spark.sql.catalog.spark_catalog": _CATALOG,
        "spark.jars.packages": packages,
    }


def commit(spark: SparkSession, staged: Path, out: Path) -> None:
    """Overwrite each Delta table in `out` with the Parquet table of the same name in `staged`.

    Creates Delta tables that do not exist yet. Empties a Delta table that has no Parquet table in `staged`, because no
    object of its type occurs any more. Every table keeps its history.
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
