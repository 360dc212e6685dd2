"""Streams whose driver, worker and broker are killed in turn: each row is in the table exactly once.

The size is that of MTOSI_STREAM_MESSAGES messages and MTOSI_STREAM_KILLS kills of each victim.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import mtosi_jms as mtosi
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.jms import DeliveryMode

from ..brokers import Brokers
from .clusters import Cluster, running

pytestmark = [pytest.mark.spark, pytest.mark.endurance]

MESSAGES = int(os.environ.get("MTOSI_STREAM_MESSAGES", "2000"))
KILLS = int(os.environ.get("MTOSI_STREAM_KILLS", "3"))
LENGTH = 10
CONSUMERS = 2
A_BATCH = str(max(200, MESSAGES // 100))
"""How many messages or files a batch takes at most."""
PATIENCE = 600.0 + MESSAGES / 100
QUEUE = "queue:STREAM.INVENTORY"
# Artemis sets a message aside that it has handed out ten times; receivers that are killed often need more.
OPTIONS = {"artemis": {"settings": "<max-delivery-attempts>-1</max-delivery-attempts>"}}


@pytest.fixture
def workers(tmp_path: Path, spark_java: str, interpreted: dict[str, str], root: Path) -> Iterator[Cluster]:
    with running(tmp_path, interpreted, spark_java, sys.executable, 2, PYTHONPATH=str(root)) as made:
        yield made


class Driver:
    """The driver's process; started again when it has ended."""

    def __init__(self, folder: Path, environment: dict[str, str], asked: dict[str, Any]) -> None:
        self.folder = folder
        self.asked = folder / "asked.json"
        self.asked.write_text(json.dumps(asked), encoding="utf-8")
        self.commits = Path(asked["checkpoint"]) / "commits"
        self.environment = environment
        self.ended_itself = 0
        self.process = self._start()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(Path(__file__).with_name("stream_process.py")), str(self.asked), *arguments]
        with (self.folder / "driver.log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, start_new_session=True, env=self.environment
            )

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def kill_and_start(self) -> None:
        self.kill()
        self.process = self._start()

    def goes_on_for(self, seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=seconds)
            self.ended_itself += 1
            assert self.ended_itself <= 5 * KILLS, self.log()
            self.kill_and_start()

    def last_batch(self) -> int:
        names = (path.name for path in self.commits.glob("*")) if self.commits.exists() else ()
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def commits_after(self, batch: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.last_batch() <= batch:
            assert time.monotonic() < deadline, self.log()
            self.goes_on_for(0.2)

    def finish(self) -> dict[str, Any]:
        self.kill()
        self.process = self._start("finish")
        printed, _ = self.process.communicate(timeout=2 * PATIENCE)
        assert self.process.returncode == 0, self.log()
        told: dict[str, Any] = json.loads(printed.splitlines()[-1])
        return told

    def log(self) -> str:
        return (self.folder / "driver.log").read_text(errors="replace")[-6000:]


def envelope(envelopes: Any, number: int) -> tuple[str, int, str]:
    """One of MESSAGES: its sequence, its number there from 1, its text."""
    sequence, batch = divmod(number, LENGTH)
    cid = f"s{sequence}"
    text = envelopes.batch(cid, batch + 1, batch == LENGTH - 1, envelopes.me(f"{cid}-{batch + 1}"))
    return cid, batch + 1, text


def run(driver: Driver, feed: Callable[[range], None], victims: list[Callable[[], None]]) -> None:
    """Feed all messages in parts; in the middle of each part one victim dies."""
    bounds = [MESSAGES * step // len(victims) for step in range(len(victims) + 1)]
    for victim, start, end in zip(victims, bounds[:-1], bounds[1:], strict=True):
        batch = driver.last_batch()
        middle = (start + end) // 2
        feed(range(start, middle))
        driver.commits_after(batch)
        feed(range(middle, end))
        driver.goes_on_for(random.uniform(0.0, 2.0))
        victim()
    driver.goes_on_for(2.0)


def check(told: dict[str, Any]) -> None:
    wanted = {(f"s{number // LENGTH}", number % LENGTH + 1) for number in range(MESSAGES)}
    counted = Counter((cid, number) for cid, number in told["rows"])
    assert not wanted - counted.keys(), "lost"
    assert counted.keys() == wanted
    assert [key for key, count in counted.items() if count > 1] == []
    if "ledger" in told:
        assert sorted(told["ledger"]) == sorted([f"s{number}", LENGTH, 0, True] for number in range(MESSAGES // LENGTH))


def asked(workers: Cluster, lake_formats: tuple[dict[str, str], str], kind: str, **more: Any) -> dict[str, Any]:
    if kind == "delta" and lake_formats[1]:
        pytest.skip(lake_formats[1])
    lake = {**lake_formats[0], "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
    whole = {"objectType": "MESSAGE"} if kind == "parquet" else {"columns": "name_text,correlation_id,batch_number"}
    return {
        "master": workers.url,
        "settings": {**(lake if kind == "delta" else {}), "spark.sql.shuffle.partitions": "2"},
        "format": kind,
        "table": str(workers.folder / "table"),
        "checkpoint": str(workers.folder / "checkpoint"),
        **more,
        "options": {**whole, **more["options"]},
    }


@pytest.mark.parametrize("kind", ["delta", "parquet"])
@pytest.mark.parametrize("broker", ["activemq", "artemis"])
def test_messages(
    workers: Cluster,
    start_broker: Brokers,
    lake_formats: tuple[dict[str, str], str],
    envelopes: Any,
    tmp_path: Path,
    kind: str,
    broker: str,
) -> None:
    at: BrokerProcess = start_broker(broker, tmp_path / "broker", protocols=("stomp",), **OPTIONS.get(broker, {}))
    word = tmp_path / "password"
    word.write_text(at.endpoints.password + "\n", encoding="utf-8")
    options = {
        "url": f"stomp://127.0.0.1:{at.endpoints.ports['stomp']}",
        "connect.user": at.endpoints.user,
        "connect.password_file": str(word),
        "destination": QUEUE,
        "consumers": str(CONSUMERS),
        "maxMessagesPerTrigger": A_BATCH,
        "drainSeconds": "3",
    }
    driver = Driver(
        tmp_path,
        workers.environment,
        asked(workers, lake_formats, kind, source="mtosi-jms", path=str(tmp_path / "spool"), options=options),
    )

    def feed(numbers: range) -> None:
        with mtosi.connect(at.endpoints.url("stomp")) as connection, connection.session() as session:
            for number in numbers:
                body = envelope(envelopes, number)[2].encode()
                session.send(QUEUE, mtosi.JmsMessage(body=body, delivery_mode=DeliveryMode.PERSISTENT))

    def kill_broker() -> None:
        nonlocal at
        at.kill()
        at = start_broker(broker, tmp_path / "broker", endpoints=at.endpoints, **OPTIONS.get(broker, {}))

    try:
        run(driver, feed, [driver.kill_and_start, workers.replace_worker, kill_broker] * KILLS)
        told = driver.finish()
    finally:
        driver.kill()
    check(told)
    unfinished = list((tmp_path / "spool").glob("*.tmp"))
    assert len(unfinished) <= CONSUMERS * KILLS, "a killed driver leaves what it was writing"


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_landing(
    workers: Cluster,
    lake_formats: tuple[dict[str, str], str],
    envelopes: Any,
    tmp_path: Path,
    landing: Path,
    kind: str,
) -> None:
    options = {"index": str(tmp_path / "index.db"), "maxFilesPerTrigger": A_BATCH}
    driver = Driver(
        tmp_path,
        workers.environment,
        asked(workers, lake_formats, kind, source="mtosi", path=str(landing), options=options),
    )

    def feed(numbers: range) -> None:
        for number in numbers:
            unfinished = landing / f".{number}"
            unfinished.write_text(envelope(envelopes, number)[2], encoding="utf-8")
            old = random.uniform(0, 2e9)
            os.utime(unfinished, (old, old))
            unfinished.rename(landing / f"{number}.xml")

    try:
        run(driver, feed, [driver.kill_and_start, workers.replace_worker] * KILLS)
        told = driver.finish()
    finally:
        driver.kill()
    check(told)
