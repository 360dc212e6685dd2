"""Spark Connect: the source, `parse_messages`, `ledger` and the SQL functions through a remote session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
for _module, _package in (
    ("grpc", "grpcio"),
    ("grpc_status", "grpcio-status"),
    ("google.rpc", "googleapis-common-protos"),
    ("zstandard", "zstandard"),
):
    pytest.importorskip(_module, reason=f"Spark Connect needs {_package}: pip install 'pyspark[connect]'")

pytestmark = pytest.mark.spark

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

Put = Callable[..., Path]

_CLIENT = """
import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import mtosi_jms as mtosi

spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.dataSource.register(mtosi.spark.InventorySource)


def load(**options):
    return spark.read.format("mtosi").options(**options).load(sys.argv[1])


def rows(df):
    return sorted([[str(value) for value in row] for row in df.collect()])


messages = load(objectType="MESSAGE")
ledger = ["correlation_id", "received", "missing", "complete", "cast(first_time as string)"]
found = {
    "session": type(spark).__module__,
    "source": rows(load(columns="name_text,complete", columnNameOfCorruptRecord="_bad").drop("_bad")),
    "parsed": rows(mtosi.spark.parse_messages(messages, "ME", keep=("size",)).select("name_text", "correlation_id")),
    "ledger": rows(mtosi.spark.ledger(messages).selectExpr(*ledger)),
    "of_bodies": rows(mtosi.spark.ledger(messages.select("body")).selectExpr(*ledger)),
}
mtosi.spark.register_functions(spark)
messages.createOrReplaceTempView("messages")
fields = "mtosi_header(body).correlation_id, mtosi_error(body), o.name_text"
found["functions"] = rows(spark.sql(f"select {fields} from messages, lateral mtosi_objects(body, 'ME', 'name_text') o"))
stream = spark.readStream.format("text").option("wholetext", True).load(sys.argv[1])
timed = mtosi.spark.parse_messages(stream, "MESSAGE", "value").withColumn("time", f.to_timestamp("header_timestamp"))
written = mtosi.spark.ledger(timed.withWatermark("time", "0 seconds"), timeout=60).writeStream.format("parquet")
written = written.option("checkpointLocation", sys.argv[1] + "/../state").trigger(availableNow=True)
written.start(sys.argv[1] + "/../ledger").awaitTermination()
found["stream"] = rows(spark.read.parquet(sys.argv[1] + "/../ledger").selectExpr(*ledger, "revision"))
spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
found["filtered"] = rows(load(columns="name_text,correlation_id").where("correlation_id = 'b'"))
spark.stop()
print(json.dumps(found))
"""


@pytest.fixture
def quiet_spark(tmp_path: Path, spark_java: str, interpreted: dict[str, str]) -> dict[str, str]:
    """The environment of a server on loopback that leaves nothing behind and chooses its own port."""
    conf = tmp_path / "conf"
    conf.mkdir()
    java = f"{spark_java} -Djava.io.tmpdir={tmp_path} -Dderby.system.home={tmp_path}"
    settings = {
        **interpreted,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
        "spark.local.dir": str(tmp_path),
        "spark.sql.warehouse.dir": (tmp_path / "warehouse").as_uri(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    }
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "PYTHONPATH": path,
        "PYTHONWARNINGS": "ignore",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Spark's own word for: a free port in place of 15002, for the server and for the client in its process.
        "SPARK_TESTING": "1",
        "TMPDIR": tempfile.gettempdir(),
    }


@pytest.mark.endurance
def test_source_parse_messages_and_ledger(put: Put, landing: Path, envelopes: Any, quiet_spark: dict[str, str]) -> None:
    put("1.xml", envelopes.batch("a", 1, False, envelopes.me("x")))
    put("2.xml", envelopes.batch("a", 2, True, envelopes.me("y")))
    put("3.xml", envelopes.batch("b", 2, True, envelopes.me("z")))
    put("4.xml", "<order/>")
    done = subprocess.run(
        [sys.executable, "-c", _CLIENT, str(landing)],
        env=quiet_spark,
        cwd=landing.parent,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["session"] == "pyspark.sql.connect.session"
    assert found["source"] == [
        ["MD=M/ME=x", "True"],
        ["MD=M/ME=y", "True"],
        ["MD=M/ME=z", "False"],
        ["None", "None"],
    ]
    assert found["parsed"] == [["MD=M/ME=x", "a"], ["MD=M/ME=y", "a"], ["MD=M/ME=z", "b"]]
    assert found["ledger"] == found["of_bodies"]
    assert found["ledger"] == [
        ["a", "[1, 2]", "[]", "True", "2024-01-01 00:00:00"],
        ["b", "[2]", "[1]", "False", "2024-01-01 00:00:00"],
    ]
    assert found["functions"] == [[cid, "None", name] for name, cid in found["parsed"]]
    assert found["stream"] == [[*found["ledger"][0], "1"]]
    assert found["filtered"] == [["MD=M/ME=z", "b"]]
