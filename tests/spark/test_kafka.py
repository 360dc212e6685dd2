"""Envelopes in Apache Kafka: a real broker, one process on loopback, and Spark's connector in a session of its own."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.endurance]

KAFKA = "org.apache.kafka:kafka_2.13:3.9.1"
LOGGING = "org.slf4j:slf4j-simple:1.7.36"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
NEEDED = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
"""What Spark itself does not have of what the connector needs."""
PATIENCE = 120.0

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={logs}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
message.max.bytes=20000000
"""

CLIENT = """
import json
import sys
from pathlib import Path

from pyspark.sql import functions as f

import mtosi_jms as mtosi

server, jars, folder = sys.argv[1:]
bodies = [tuple(pair) for pair in json.loads(Path(folder, "bodies.json").read_text())]
with mtosi.spark.local_session("kafka", cores=2, settings={"spark.jars": jars}) as spark:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    mtosi.spark.register_functions(spark)

    def publish(rows):
        sent = spark.createDataFrame(rows, "key string, value string").write.format("kafka")
        sent.option("kafka.bootstrap.servers", server).option("topic", "inventory").save()

    def read(reader):
        options = {"kafka.bootstrap.servers": server, "subscribe": "inventory", "startingOffsets": "earliest"}
        return reader.format("kafka").options(**options).load()

    def drain(frame, name):
        writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{folder}/{name}.checkpoint")
        writer.trigger(availableNow=True).start(f"{folder}/{name}").awaitTermination()
        return spark.read.parquet(f"{folder}/{name}")

    publish(bodies[:-1])
    kafka = read(spark.read)
    parsed = mtosi.spark.parse_messages(kafka, "ME", column="value", keep=("key", "offset"), columns=("name_text",))
    kafka.createOrReplaceTempView("kafka")
    asked = spark.sql(
        "select o.name_text, mtosi_header(k.value).correlation_id as correlation_id"
        " from kafka k, lateral mtosi_objects(k.value, 'ME', 'name_text') o"
    )
    errors = spark.sql("select mtosi_error(value) from kafka where mtosi_error(value) is not null")
    live = read(spark.readStream)
    rows = mtosi.spark.parse_messages(live, "ME", column="value", columns=("name_text",), keep=("offset",))
    timed = mtosi.spark.parse_messages(live, "MESSAGE", column="value")
    timed = timed.withColumn("time", f.to_timestamp("header_timestamp")).withWatermark("time", "0 seconds")
    sequences = mtosi.spark.ledger(timed, timeout=600)
    columns = ("correlation_id", "revision", "complete", "missing")

    def told():
        drained = drain(sequences, "ledger").select(*columns).orderBy("correlation_id", "revision")
        return [list(row) for row in drained.collect()]

    found = {
        "parsed": sorted(row.name_text for row in parsed.collect()),
        "asked": sorted([row.name_text, row.correlation_id] for row in asked.collect()),
        "errors": [row[0] for row in errors.collect()],
        "batch": [[row.correlation_id, row.complete] for row in mtosi.spark.ledger(kafka, "value").collect()],
        "stream": drain(rows, "rows").count(),
        "ledger": told(),
    }
    publish(bodies[-1:])
    found["later"] = [told(), drain(rows, "rows").count()]
print(json.dumps(found))
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def kafka(java: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that is its own controller, ended with the module: its address."""
    folder = tmp_path_factory.mktemp("kafka")
    path = os.pathsep.join(map(str, java.jars(KAFKA, LOGGING)))
    port, controller = free_port(), free_port()
    config = folder / "server.properties"
    config.write_text(PROPERTIES.format(port=port, controller=controller, logs=folder / "logs"), encoding="utf-8")
    run = ["java", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", path]
    identity = ["-t", "bXRvc2ktam1zLXRlc3RzMQ"]
    formatted = subprocess.run(
        [*run, "kafka.tools.StorageTool", "format", *identity, "-c", str(config)], capture_output=True, text=True
    )
    assert formatted.returncode == 0, formatted.stdout + formatted.stderr
    command = [*run, "kafka.Kafka", str(config)]
    broker = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    started: queue.Queue[bool] = queue.Queue()
    lines: list[str] = []

    def follow() -> None:
        assert broker.stdout is not None
        for line in broker.stdout:
            lines.append(line)
            if "Kafka Server started" in line:
                started.put(True)
        started.put(False)

    reader = threading.Thread(target=follow)
    reader.start()
    try:
        assert started.get(timeout=PATIENCE), "".join(lines[-30:])
        yield f"127.0.0.1:{port}"
    finally:
        broker.terminate()
        try:
            broker.wait(timeout=PATIENCE)
        finally:
            broker.kill()
            broker.wait()
            reader.join(timeout=PATIENCE)
            assert broker.stdout is not None
            broker.stdout.close()


def test_batch_and_stream_from_a_topic(kafka: str, java: Any, envelopes: Any, tmp_path: Path) -> None:
    def batch(cid: str, number: int, end: bool, time: str) -> str:
        return str(envelopes.batch(cid, number, end, envelopes.me(f"{cid}{number}"), time=f"2024-01-01T{time}Z"))

    bodies = [
        ("a", batch("a", 1, False, "00:00:00")),
        ("a", batch("a", 2, True, "00:00:01")),
        ("b", batch("b", 1, False, "00:00:02")),
        ("b", batch("b", 3, True, "00:00:03")),
        ("c", batch("c", 1, False, "00:20:00")),
        ("d", "<order/>"),
        ("b", batch("b", 2, False, "00:00:02")),
    ]
    (tmp_path / "bodies.json").write_text(json.dumps(bodies), encoding="utf-8")
    jars = [str(jar) for jar in java.jars(CONNECTOR) if jar.name.startswith(NEEDED)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, kafka, ",".join(jars), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    names = sorted(f"MD=M/ME={cid}{number}" for cid, number in ("a1", "a2", "b1", "b3", "c1"))
    assert found["parsed"] == names
    assert found["asked"] == [[name, name.rpartition("=")[2][0]] for name in names]
    assert found["errors"] == ["1: not SOAP: the root element is order"]
    assert sorted(found["batch"]) == [["a", True], ["b", False], ["c", False]]
    assert found["stream"] == 5
    assert found["ledger"] == [["a", 1, True, []], ["b", 1, False, [2]]]
    assert found["later"] == [[["a", 1, True, []], ["b", 1, False, [2]], ["b", 2, True, []]], 6]
