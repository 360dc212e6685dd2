"""Landings of wrong answers: every planner and ledger calls complete what the model calls whole (P32, C23)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.spark.jobs import IngestOptions, run_ingest
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.tables.options import SourceOptions

from .wrong_replies import Case, Maker, Said, Words, is_whole, message, number_of

FEW = 150

pytestmark = pytest.mark.obligation("P32", "BAT1", "BAT5")


def land(folder: Path, cases: list[Case]) -> dict[str, bool]:
    """Write the answers of cases into a folder; return by correlationId what the ledger may call complete."""
    whole: dict[str, bool] = {}
    for case in cases:
        zero = any(number_of(said, with_properties=False) == 0 for one in case.answers for said in one.arrived)
        for at, answer in enumerate(case.answers):
            name = f"{case.seed}-{at}"
            for number, said in enumerate(answer.arrived):
                body = message(said, name, f"jms/Ems-{case.seed}").body
                (folder / f"{name}-{number}.xml").write_bytes(body)
            if answer.arrived:
                whole[name] = is_whole(answer.arrived, None, from_zero=zero, with_properties=False)
    return whole


def test_a_landing_of_many_sequences(tmp_path: Path) -> None:
    expected = land(tmp_path, [Maker(seed).case() for seed in range(FEW)])
    plan = plan_landing(SourceOptions.parse({"path": str(tmp_path)}))
    assert not plan.rejects
    assert {found.correlation_id: found.complete for found in plan.sequences} == expected
    assert len(set(expected.values())) == 2


@pytest.mark.endurance
def test_a_landing_that_spark_plans(spark: Any, tmp_path: Path) -> None:
    from mtosi_jms.spark._engine import plan_by_engine

    start = random.randrange(2**40)
    expected = land(tmp_path, [Maker(seed).case() for seed in range(start, start + 20 * FEW)])
    spark.dataSource.register(mtosi.spark.InventorySource)
    messages = spark.read.format("mtosi").option("objectType", "MESSAGE").load(str(tmp_path))
    found = {row["correlation_id"]: row["complete"] for row in mtosi.spark.ledger(messages).collect()}
    assert found == expected, start
    plan = plan_by_engine(spark, SourceOptions.parse({"path": str(tmp_path)}))
    assert {one.correlation_id: one.complete for one in plan.sequences} == expected, start


def test_three_ways_to_a_ledger(spark: Any, tmp_path: Path) -> None:
    """The same few cases for the planner, for Spark's planner and for rows of messages."""
    from mtosi_jms.spark._engine import plan_by_engine

    expected = land(tmp_path, [Maker(seed).case() for seed in range(12)])
    spark.dataSource.register(mtosi.spark.InventorySource)
    messages = spark.read.format("mtosi").option("objectType", "MESSAGE").load(str(tmp_path))
    found = {row["correlation_id"]: row["complete"] for row in mtosi.spark.ledger(messages).collect()}
    plan = plan_by_engine(spark, SourceOptions.parse({"path": str(tmp_path)}))
    assert found == {one.correlation_id: one.complete for one in plan.sequences} == expected
    fixed = plan_landing(SourceOptions.parse({"path": str(tmp_path), "firstBatch": "0"}))
    rows = mtosi.spark.ledger(messages, first_batch=0).collect()
    assert {row["correlation_id"]: row["complete"] for row in rows} == {
        one.correlation_id: one.complete for one in fixed.sequences
    }


def test_a_zero_of_an_earlier_ingest(spark: Any, tmp_path: Path) -> None:
    """The checkpoint remembers the senders that count from 0."""
    landing = tmp_path / "landing"
    landing.mkdir()
    growing = IngestOptions(landing=landing, out=tmp_path / "out", write="append", on_incomplete="wait")
    complete = []
    for name, numbers in (("first", (0, 1)), ("second", (1, 2))):
        for number in numbers:
            words = {"batchSequenceNumber": f"{number}", "batchSequenceEndOfReply": f"{number == numbers[-1]}".lower()}
            said = Said(f"NE-{number}", Words(texts=tuple(words.items())))
            (landing / f"{name}-{number}.xml").write_bytes(message(said, name, "jms/Ems").body)
        (found,) = run_ingest(growing, spark=spark).sequences
        complete.append((found.correlation_id, found.complete, found.missing))
    assert complete == [("first", True, ()), ("second", False, (0,))]
