"""Checkpoints that do not fit, that have moved, and clocks that go backwards: nothing is lost, or read twice."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.spark.jobs import IngestOptions, IngestResult, run_ingest

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000_000


class Loads:
    """Ingests into one folder, of a landing that may move."""

    def __init__(self, spark: Any, out: Path) -> None:
        self.spark = spark
        self.out = out

    def __call__(self, landing: Path | str, **options: Any) -> IngestResult:
        given = {"format": "parquet", "write": "append", "on_incomplete": "wait", **options}
        return run_ingest(IngestOptions(landing=landing, out=self.out, **given), spark=self.spark)

    @property
    def checkpoint(self) -> Path:
        return self.out / "_report/checkpoint.sqlite"

    def alter(self, statement: str) -> None:
        with closing(sqlite3.connect(self.checkpoint)) as database, database:
            database.execute(statement)


@pytest.fixture
def loads(spark: Any, landing: Path, put: Any, envelopes: Any, tmp_path: Path) -> Loads:
    """An ingest that has read one file."""
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    made = Loads(spark, tmp_path / "out")
    assert made(landing).created == {"ME": 1}
    return made


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE meta SET value = '99' WHERE name = 'format'", "the checkpoint is of version 99, and this is version"),
        ("PRAGMA application_id = 5", "is not the checkpoint"),
        *((f"DELETE FROM meta WHERE name = '{name}'", "the checkpoint is damaged") for name in ("of", "format")),
        ("UPDATE meta SET value = '{}' WHERE name = 'closings'", ""),
        ("UPDATE meta SET value = '[1]' WHERE name = 'tables'", "the checkpoint is damaged"),
        ("DROP TABLE document", "the checkpoint: no such table: document"),
    ],
)
def test_a_checkpoint_that_does_not_fit(loads: Loads, landing: Path, statement: str, told: str) -> None:
    loads.alter(statement)
    before = loads.checkpoint.read_bytes()
    if told:
        with pytest.raises(MtosiError, match=told):
            loads(landing)
    else:
        assert loads(landing).created == {}
    assert loads.checkpoint.read_bytes() == before


def test_a_landing_that_moves(loads: Loads, landing: Path, envelopes: Any, tmp_path: Path) -> None:
    """It is the same where a file of it is known; another landing is refused, and so is one that is not mounted."""
    moved = landing.rename(tmp_path / "mount")
    assert loads(moved).stages == {}, "Spark was not asked"
    (moved / "2.xml").write_text(envelopes.batch("d", 1, True, envelopes.me("b")))
    assert loads(f"{moved}/*.xml").created == {"ME": 1}
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(SpoolError, match="the landing is empty, and was not"):
        loads(other)
    (other / "1.xml").write_text(envelopes.batch("e", 1, True, envelopes.me("another")))
    with pytest.raises(ConfigError, match=f"of the landing {moved}/.*, and {other} has none of its files: choose"):
        loads(other)
    with pytest.raises(ConfigError, match=r"is a checkpoint of object types \['ME'\], not \['ME', 'EQ'\]: choose"):
        loads(moved, object_type="ME,EQ")


def test_clocks_that_go_backwards(loads: Loads, landing: Path, put: Any, envelopes: Any) -> None:
    """A file is new by its name and content: its time decides nothing."""
    read, late = landing / "1.xml", put("2.xml", envelopes.batch("d", 1, True, envelopes.me("b")))
    now = read.stat().st_mtime_ns
    os.utime(read, ns=(now - HOUR, now - HOUR))
    os.utime(late, ns=(now - 2 * HOUR, now - 2 * HOUR))
    found = loads(landing)
    assert (found.messages, found.rejected, found.created) == ({"response": 1}, (), {"ME": 1})


def test_documents_of_an_archive_that_grows(loads: Loads, landing: Path, envelopes: Any, tmp_path: Path) -> None:
    """What is new in it is read; what was in it before is in another file now, which is told at each ingest."""
    members = tmp_path / "members"
    members.mkdir()
    for number in (1, 2):
        (members / f"{number}.xml").write_text(
            envelopes.batch("parts", number, number == 2, envelopes.me(f"z{number}"))
        )
        shutil.make_archive(str(landing / "all"), "zip", members)
        found = loads(landing)
    assert found.created == {}
    assert [reject.file.rpartition("/")[2] for reject in found.rejected] == ["1.xml"]
    assert [reject.reason for reject in loads(landing).rejected] == [
        "has changed since it was read, and is not read again"
    ]
