"""A standalone cluster on loopback: a master, and three workers that do not have the package, which is shipped."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark._session import check_java
from mtosi_jms.xmlbind import core

from .clusters import HOME, PATIENCE, Cluster, Daemon, running
from .conftest import examples, section

pytestmark = [pytest.mark.spark, pytest.mark.endurance]

Put = Callable[..., Path]

# A session of one's own instead of spark-submit; prints what it read and where its workers have the package from.
SESSION = """
import json
import sys

from pyspark.sql import SparkSession

master, package, landing = sys.argv[1:]
settings = {"spark.submit.pyFiles": package, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
spark = SparkSession.builder.master(master).config(map=settings).getOrCreate()
sys.path.insert(0, package)
import mtosi_jms as mtosi


def origin(batches):
    import pyarrow as pa
    import mtosi_jms
    from mtosi_jms.xmlbind import core

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [f"{core().name} {mtosi_jms.__file__}"] * batch.num_rows})


spark.dataSource.register(mtosi.spark.InventorySource)
source = spark.read.format("mtosi").option("numPartitions", "4")
loaded = source.option("columnNameOfCorruptRecord", "corrupt").load(landing)
rows = loaded.select("name_text", "complete", "corrupt").collect()
messages = source.option("objectType", "MESSAGE").load(landing)
ledger = mtosi.spark.ledger(messages).select("correlation_id", "missing", "duplicates", "complete").collect()
found = {
    "rows": sorted([row.name_text, row.complete] for row in rows if row.corrupt is None),
    "rejects": [row.corrupt for row in rows if row.corrupt is not None],
    "ledger": sorted(list(row) for row in ledger),
    "package": sorted({row.file for row in spark.range(0, 4, 1, 4).mapInArrow(origin, "file string").collect()}),
}
spark.stop()
print(json.dumps(found))
"""

# Reads, shuffles and writes, with executors that come and go; each task tells the test before it ends, and waits.
SHUFFLED = """
import os
import socket
import sys

from pyspark.sql import SparkSession

import mtosi_jms as mtosi

master, port, landing, out = sys.argv[1:]
settings = {
    "spark.ui.enabled": "false",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
    "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
}
spark = SparkSession.builder.master(master).config(map=settings).getOrCreate()


def told(phase):
    def run(batches):
        yield from batches
        with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as test:
            test.sendall(phase)
            test.recv(1)

    return run


spark.dataSource.register(mtosi.spark.InventorySource)
columns = "name_text,source_file,source_position,complete"
source = spark.read.format("mtosi").option("numPartitions", "12").option("columns", columns)
rows = source.load(landing)
read = rows.mapInArrow(told(b"r"), rows.schema)
read.repartition(4, "name_text").mapInArrow(told(b"w"), rows.schema).write.parquet(out)
messages = spark.read.format("mtosi").option("objectType", "MESSAGE").load(landing)
mtosi.spark.ledger(messages).write.parquet(out + ".ledger")
spark.stop()
"""


@pytest.fixture(scope="module")
def own_cluster_of(
    spark_java: str, interpreted: dict[str, str], bare_python: str
) -> Callable[[Path], AbstractContextManager[Cluster]]:
    try:
        check_java()
    except ConfigError as error:
        pytest.skip(str(error))
    return lambda folder: running(folder, interpreted, spark_java, bare_python, 3)


@pytest.fixture(scope="module")
def cluster(own_cluster_of: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with own_cluster_of(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def own_cluster(own_cluster_of: Any, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that a test may kill parts of."""
    with own_cluster_of(tmp_path) as started:
        yield started


@contextmanager
def killed_in_mid_task(cluster: Cluster) -> Iterator[list[Daemon]]:
    """Kill the executor that is the first to run a task in this block; the list has its worker then."""
    killed: list[Daemon] = []
    over = threading.Event()
    before = {log for worker in cluster.workers for log in worker.folder.glob("*/*/stderr")}

    def watch() -> None:
        while not killed and not over.is_set():
            os.sched_yield()
            for worker in cluster.workers:
                logs = set(worker.folder.glob("*/*/stderr")) - before
                if any("Running task" in log.read_text(errors="replace") for log in logs):
                    worker.kill_children()
                    killed.append(worker)
                    break

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield killed
    finally:
        over.set()
        watching.join(timeout=PATIENCE)


def test_the_guide_by_spark_submit(cluster: Cluster, put: Put, landing: Path, envelopes: Any, tmp_path: Path) -> None:
    """The guide's job, shipped and submitted by the guide's own lines, the places aside; an executor is killed."""
    for number in range(1, 9):
        elements = envelopes.me(f"{number}-a", "<me:location>Delft</me:location>") + envelopes.me(f"{number}-b")
        put(
            f"{number}.xml.gz" if number % 3 == 0 else f"{number}.xml",
            envelopes.batch("c", number, number == 8, elements),
        )
    put("9.xml", envelopes.batch("c", 2, False, envelopes.me("2-a") + envelopes.me("2-b")))
    put("again.xml", (landing / "4.xml").read_bytes())
    (job,) = examples("On a cluster")
    (tmp_path / "elements.py").write_text(job, encoding="utf-8")
    (lines,) = re.findall(r"```sh\n(.*?)```", section("On a cluster"), re.DOTALL)
    pack, submit = (
        shlex.split(line) for line in lines.replace("\\\n", "").splitlines() if not line.startswith("export")
    )
    assert pack[0] == "mtosi-jms"
    cluster.run([sys.executable, "-m", "mtosi_jms", *pack[1:]], tmp_path)
    out = tmp_path / "ME"
    places = {"spark://HOST:7077": cluster.url, "/mnt/landing": str(landing), "/mnt/tables/ME": str(out)}
    assert submit[0] == "spark-submit"
    assert set(places) <= set(submit)
    with killed_in_mid_task(cluster) as killed:
        cluster.run([str(HOME / "bin" / "spark-submit"), *(places.get(word, word) for word in submit[1:])], tmp_path)
    assert killed, "an executor was lost"
    rows = [row for file in out.glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
    places_of = {"a": "Delft", "b": None}
    wanted = [(f"MD=M/ME={number}-{mark}", places_of[mark], False) for number in range(1, 9) for mark in "ab"]
    # 9.xml has the number of 2.xml and another body: a conflict, and both stay. Their sequence is not complete.
    wanted += [("MD=M/ME=2-a", None, False), ("MD=M/ME=2-b", None, False)]
    key = str
    assert sorted(((row["name_text"], row["location"], row["complete"]) for row in rows), key=key) == sorted(
        wanted, key=key
    )
    assert len(cluster.workers_used()) == 3


def test_a_session_of_ones_own(
    cluster: Cluster, put: Put, landing: Path, envelopes: Any, package: Path, bare_python: str, tmp_path: Path
) -> None:
    """Duplicates in different partitions, a gap and a broken file; the workers have the package from the archive."""
    for number in (1, 2, 3):
        put(f"{number}.xml", envelopes.batch("whole", number, number == 3, envelopes.me(f"w{number}")))
        put(f"copy/{number}.xml.gz", envelopes.batch("whole", number, number == 3, envelopes.me(f"w{number}")))
    put("4.xml", envelopes.batch("gap", 1, False, envelopes.me("g1")))
    put("5.xml", envelopes.batch("gap", 3, True, envelopes.me("g3")))
    put("6.xml", "<order/>")
    script = tmp_path / "session.py"
    script.write_text(SESSION, encoding="utf-8")
    printed = cluster.run([bare_python, str(script), cluster.url, str(package), str(landing)], tmp_path)
    found = json.loads(printed.splitlines()[-1])
    assert found["rows"] == [
        ["MD=M/ME=g1", False],
        ["MD=M/ME=g3", False],
        *(["MD=M/ME=w" + number, True] for number in "123"),
    ]
    assert found["rejects"] == [f"{landing}/6.xml:1: not SOAP: the root element is order"]
    assert found["ledger"] == [["gap", [2], 0, False], ["whole", [], 3, True]]
    assert all(one.endswith(f"{package.name}/mtosi_jms/__init__.py") for one in found["package"])
    assert {one.split()[0] for one in found["package"]} == {core().name}


class Killer:
    """Hears of each task before it ends, and does something at some of them before it lets them go on."""

    def __init__(self, actions: dict[tuple[bytes, int], Callable[[], None]]) -> None:
        self.heard: list[bytes] = []
        self._actions = actions
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                task, _ = self._listening.accept()
                with task, suppress(OSError):
                    phase = task.recv(1)
                    self.heard.append(phase)
                    self._actions.get((phase, self.heard.count(phase)), lambda: None)()
                    task.sendall(b".")

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(timeout=PATIENCE)


def test_executors_and_a_worker_are_lost_in_mid_job(
    own_cluster: Cluster, put: Put, landing: Path, envelopes: Any, root: Path, tmp_path: Path
) -> None:
    """With dynamic allocation: an executor is killed while files are read, a worker while its shuffle is needed."""
    for number in range(1, 25):
        elements = "".join(envelopes.me(f"{number}-{index}") for index in range(20))
        put(f"{number:02}.xml", envelopes.batch(f"c{number % 3}", (number + 2) // 3, number > 21, elements))
    script = tmp_path / "shuffled.py"
    script.write_text(SHUFFLED, encoding="utf-8")
    first, second, _ = own_cluster.workers
    killer = Killer({(b"r", 5): first.kill_children, (b"r", 9): second.kill_children, (b"w", 2): second.kill})
    out = tmp_path / "ME"
    command = [sys.executable, str(script), own_cluster.url, str(killer.port), str(landing), str(out)]
    try:
        own_cluster.run(command, tmp_path, PYTHONPATH=str(root))
    finally:
        killer.close()
    assert killer.heard.count(b"r") > 12, "tasks were lost and ran again"
    rows = [row for file in out.glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
    found = sorted((Path(row["source_file"]).name, row["source_position"], row["name_text"]) for row in rows)
    assert found == sorted(
        (f"{number:02}.xml", index + 1, f"MD=M/ME={number}-{index}") for number in range(1, 25) for index in range(20)
    )
    assert all(row["complete"] for row in rows)
    ledger = [
        row for file in Path(f"{out}.ledger").glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()
    ]
    assert sorted((row["correlation_id"], row["batches"], row["complete"]) for row in ledger) == [
        (f"c{number}", 8, True) for number in range(3)
    ]
