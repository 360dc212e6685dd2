"""Envelopes to Parquet in one Spark session: the source `mtosi` compared with Spark's XML source and a given schema."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from measure import Comparison, Side, compare
from messaging import header, sent
from network import BATCH, batch
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import PySparkException

from mtosi_jms.spark import InventorySource, SourceOptions, local_session
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.tables.reader import ObjectReader

# The schema for Spark's source: all leaves of the elements, without namespaces.
XML_SCHEMA = """
    name struct<rdn: array<struct<type: string, value: string>>>, userLabel string, discoveredName string,
    namingOs string, owner string,
    aliasNameList struct<alias: array<struct<aliasName: string, aliasValue: string>>>,
    source string, networkAccessDomain string, resourceState string, location string, manufacturer string,
    manufactureDate date, productName string, softwareVersion string, isInSyncState boolean,
    supportedConnectionLayerRateList struct<layerRate: array<string>>, communicationState string
"""
# Our columns with the same leaves.
COLUMNS = (
    "name",
    "user_label",
    "discovered_name",
    "naming_os",
    "owner",
    "alias_name_list",
    "source",
    "network_access_domain",
    "resource_state",
    "location",
    "manufacturer",
    "manufacture_date",
    "product_name",
    "software_version",
    "is_in_sync_state",
    "supported_connection_layer_rate_list",
    "communication_state",
)
ALL = "mtosi_jms.spark, all its columns"
XML = "Spark's XML source, schema given"
# The columns that are compared between both outputs: ours, Spark's.
CHECKED = (
    ("user_label", "userLabel"),
    ("location", "location"),
    ("manufacture_date", "manufactureDate"),
    ("is_in_sync_state", "isInSyncState"),
    ("product_name", "productName"),
    ("name", "name"),
    ("alias_name_list", "aliasNameList"),
)


def xml_to_parquet(*, quick: bool) -> Comparison:
    """A landing of envelopes with 500 managed elements each, to Parquet."""
    files = 8 if quick else 480
    with tempfile.TemporaryDirectory(prefix="bench-parquet-") as folder:
        landing = Path(folder) / "landing"
        size = _land(landing, files)
        _refer(landing, landing.with_name("references"))
        with local_session("benchmarks") as spark:
            try:
                return _compare(spark, landing, Path(folder), files, size, quick=quick)
            except PySparkException as error:
                raise RuntimeError(str(error)) from error  # its text is only available during the session


def _land(landing: Path, files: int) -> int:
    """Write one complete reply, with one file for each envelope; return the bytes."""
    landing.mkdir()
    size = 0
    for number in range(1, files + 1):
        head = header("getAllManagedElements", "RESPONSE", number=number, last=number == files)
        body = sent(head, batch((number - 1) * BATCH + 1)).body
        (landing / f"reply-{number:05d}.xml").write_bytes(body)
        size += len(body)
    return size


def _refer(landing: Path, out: Path) -> None:
    """Write the same files with a character reference in each element, so that readers cannot take values unchanged."""
    out.mkdir()
    for path in landing.iterdir():
        body = path.read_bytes()
        referring = body.replace(b"<coi:owner>", b"<coi:owner>R&amp;D ")
        if referring.count(b"R&amp;D ") != BATCH:
            raise RuntimeError(f"{path.name}: not every element has an owner")
        (out / path.name).write_bytes(referring)


def _compare(spark: Any, landing: Path, folder: Path, files: int, size: int, *, quick: bool) -> Comparison:
    register_pickle_by_value(sys.modules[__name__])  # the workers cannot import this folder
    spark.dataSource.register(ReadySource)
    source = spark.read.format("mtosi").option("objectType", "ME")
    ours = source.load(str(landing)).schema
    narrow = type(ours)([field for field in ours.fields if field.name in COLUMNS])

    referring = landing.with_name("references")

    def all_columns(folder: Path = landing) -> Any:
        return spark.read.format("mtosi").option("objectType", "ME").load(str(folder))

    def same_columns() -> Any:
        return spark.read.format("mtosi").option("objectType", "ME").schema(narrow).load(str(landing))

    def ready() -> Any:
        return spark.read.format("mtosi-ready").option("objectType", "ME").schema(narrow).load(str(landing))

    def spark_xml(folder: Path = landing) -> Any:
        reader = spark.read.format("xml").option("rowTag", "me").option("ignoreNamespace", "true")
        return reader.schema(XML_SCHEMA).load(str(folder))

    sides = [
        Side("mtosi_jms.spark, the same columns", "ours", _writer(same_columns, folder / "same")),
        Side(ALL, "ours", _writer(all_columns, folder / "all")),
        Side(XML, "peer", _writer(spark_xml, folder / "xml")),
    ]
    _verify(sides, folder)
    sides += [
        Side(
            f"{ALL}, an &amp; in each element",
            "ours",
            _writer(lambda: all_columns(referring), folder / "all-references"),
        ),
        Side(
            f"{XML}, an &amp; in each element", "peer", _writer(lambda: spark_xml(referring), folder / "xml-references")
        ),
    ]
    _make_ready(landing, narrow.names)
    sides.append(Side("our source, files read and rows made before", "limit", _writer(ready, folder / "limit")))
    return compare(
        "parquet",
        f"XML to Parquet in one Spark session; {files} envelopes of {BATCH} managed elements",
        "managed elements",
        sides,
        rounds=3 if quick else 4,
        megabytes=size / 1e6,
        notes=[
            f"of our {len(ours.fields)} columns {len(narrow.fields)} have the leaves that Spark's source reads too",
            "Spark's source reads no header, knows no sequences and names no file",
            "the limit plans and reads the same files, and hands over rows that were made before: what Spark costs",
        ],
    )


def _writer(frame: Callable[[], Any], out: Path) -> Callable[[], int]:
    """Return a run that writes a new DataFrame to Parquet and counts the rows in it."""

    def run() -> int:
        frame().write.mode("overwrite").parquet(str(out))
        return sum(pq.read_metadata(path).num_rows for path in out.glob("*.parquet"))

    return run


class ReadySource(InventorySource):
    """The source `mtosi` with workers that only read each file: its rows were stored in an Arrow file beforehand."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "mtosi-ready"

    def reader(self, schema: Any) -> Any:
        """Return a reader that reads each file and gives its stored rows."""
        reader = super().reader(schema)

        class ReadyReader(type(reader)):  # type: ignore[misc]
            def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
                for file in partition.files:
                    path = Path(file.path)
                    path.read_bytes()
                    yield from pa.ipc.open_file(pa.memory_map(str(_ready(path)))).read_all().to_batches()

        reader.__class__ = ReadyReader
        return reader


def _ready(path: Path) -> Path:
    """Return the path of the stored rows of a landed file."""
    return path.parent.with_name("ready") / f"{path.name}.arrow"


def _make_ready(landing: Path, columns: Sequence[str]) -> None:
    """Make and store the rows of each landed file."""
    landing.with_name("ready").mkdir()
    options = SourceOptions.parse({"path": str(landing), "objectType": "ME"})
    schema = pa.schema([full_schema(options).field(name) for name in columns])
    for file in plan_landing(options).files:
        with pa.ipc.new_file(str(_ready(Path(file.path))), schema) as out:
            for rows in ObjectReader(options, schema).read([file]):
                out.write_batch(rows)


def _verify(sides: list[Side], folder: Path) -> None:
    """Check that both sources found the same values."""
    for side in sides:
        side.run()
    found = {name: _values(folder / name, at) for at, name in enumerate(("same", "xml"))}
    if found["same"] != found["xml"]:
        raise RuntimeError("Spark's XML source found other values than ours")


def _values(out: Path, at: int) -> list[Any]:
    columns = [pair[at] for pair in CHECKED]
    table = pa.concat_tables(pq.read_table(path, columns=columns) for path in out.glob("*.parquet"))
    rows = [_plain(row) for row in zip(*(table[column].to_pylist() for column in columns), strict=True)]
    return sorted(rows)


def _plain(value: Any) -> Any:
    """Return a value without the names of its fields, which differ between the sources."""
    if isinstance(value, dict):
        return tuple(_plain(item) for item in value.values())
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else str(value)
