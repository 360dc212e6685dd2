"""An ingest that is killed, its Java process with it, leaves the old tables or the new ones; so does a merge."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.tables.snapshots import Snapshot

from .test_lake import DELTA_CATALOG, KINDS, names

pytestmark = pytest.mark.spark

ELEMENTS = 40


def start(landing: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """An ingest in a group of its own, so that Java and Spark's workers die in the same moment."""
    command = [sys.executable, "-m", "mtosi_jms", "ingest", str(landing), "--out", str(out), "--cores", "2", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


@dataclass
class Rounds:
    """Two landings of one network, whose tables differ in every row and in their number, and the folder of tables."""

    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def landing(self, name: str) -> Path:
        return self.folder / name

    def start(self, name: str) -> subprocess.Popen[bytes]:
        return start(self.landing(name), self.out, "--object", "ALL")

    def writes(self) -> bool:
        """Whether a job has written something."""
        return any(self.out.glob("_staging-*/objectType=*/*.parquet"))

    def generation(self) -> str:
        """Which landing's tables are there, after what a reader does first; fails where they are mixed or none."""
        tables = Snapshot(self.out).tables
        rows = {name: pq.read_table(folder, columns=["name_text"]).to_pylist() for name, folder in tables.items()}
        names = {row["name_text"].partition("/")[0] for table in rows.values() for row in table}
        summary = json.loads((self.out / "_report/summary.json").read_text())
        (sequence,) = summary["sequences"]
        assert names == {f"MD={sequence['correlation_id']}"}
        assert {name: len(table) for name, table in rows.items()} == summary["rows"]
        return str(sequence["correlation_id"])


@pytest.fixture
def rounds(tmp_path: Path, envelopes: Any) -> Rounds:
    made = Rounds(tmp_path)
    for name, inner in (("a", "eq"), ("b", "ptp")):
        made.landing(name).mkdir()
        parts = {
            "eq": "<inv:ehList><inv:ehInv><inv:ehNm>/r</inv:ehNm><inv:ehAttrs/></inv:ehInv></inv:ehList>",
            "ptp": "<inv:ptpList><inv:ptpInv><inv:ptpNm>/p</inv:ptpNm><inv:ptpAttrs/></inv:ptpInv></inv:ptpList>",
        }
        elements = "".join(
            f"<inv:meInv><inv:meNm>{number}</inv:meNm><inv:meAttrs/>{parts[inner]}</inv:meInv>"
            for number in range(ELEMENTS)
        )
        domain = (
            f"<inv:mdList><inv:md><inv:mdNm>{name}</inv:mdNm><inv:meList>{elements}</inv:meList></inv:md></inv:mdList>"
        )
        (made.landing(name) / "1.xml").write_text(envelopes.inventory(domain, cid=name))
    return made


def reached(job: subprocess.Popen[bytes], moment: Callable[[], bool]) -> bool:
    """Wait for a moment; whether it came before the job's end."""
    while not moment():
        with suppress(subprocess.TimeoutExpired):
            job.wait(timeout=0.001)
            return False
    return True


def passed(moment: float) -> bool:
    return time.monotonic() >= moment


def kill_when(job: subprocess.Popen[bytes], moment: Callable[[], bool]) -> bool:
    """Kill a job with all that it started when a moment has come; whether it came before the job's end."""
    if not reached(job, moment):
        return False
    os.killpg(job.pid, signal.SIGKILL)
    return job.wait() != 0


@pytest.mark.endurance
def test_twenty_kills_leave_the_old_tables_or_the_new_ones(rounds: Rounds) -> None:
    began = time.monotonic()
    assert rounds.start("a").wait() == 0
    seconds = time.monotonic() - began
    kills, name = 0, "b"
    rng = random.Random(14)
    while kills < 20:
        before = rounds.generation()
        # Every other kill waits for the tables to be there, or most would come while Java starts.
        late = kills % 2 == 1
        delay = rng.uniform(0, seconds / 10 if late else seconds)
        job = rounds.start(name)
        if late:
            reached(job, rounds.writes)
        moment = time.monotonic() + delay
        kills += kill_when(job, partial(passed, moment))
        found = rounds.generation()
        assert found in (before, name)
        name = "a" if found == "b" else "b"
    assert rounds.start(name).wait() == 0
    assert rounds.generation() == name
    assert sorted(path.name for path in rounds.out.iterdir() if path.name.startswith("_")) == ["_report"]


@pytest.mark.endurance
@pytest.mark.parametrize("kind", ["parquet", *KINDS])
def test_a_killed_merge_leaves_the_old_table_or_the_new_one(
    lake: Any, lake_formats: tuple[dict[str, str], str], landing: Path, envelopes: Any, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    conf = {**lake_formats[0], DELTA_CATALOG: lake.conf.get(DELTA_CATALOG)}
    options = [word for setting in conf.items() for word in ("--conf", "=".join(setting))]
    options += ["--format", kind, "--write", "append" if kind == "parquet" else "merge", "--since-last"]
    options += ["--on-incomplete", "wait"]

    def land(number: int) -> list[str]:
        made = [f"{number}-{each}" for each in range(50)]
        batch = envelopes.batch(f"c{number}", 1, True, "".join(map(envelopes.me, made)))
        (landing / f"{number}.xml").write_text(batch)
        return made

    held = land(0)
    assert start(landing, out, *options).wait() == 0
    moments: list[Callable[[], bool]] = [
        lambda: any(out.glob("_staging-*/read/objectType=*")),
        lambda: any((*out.glob("_staging-*/merged/*"), *out.glob("_staging-*/objectType=*"))),
        lambda: any((*out.glob("_staging-*/merged/*/*.parquet"), *out.glob("_staging-*/objectType=*/*.parquet"))),
        lambda: any(out.glob("_report/checkpoint.sqlite-journal")),
        lambda: any(out.glob("_swap.json")),
    ]
    for number in range(1, 8):
        new = sorted({*held, *land(number)})
        kill_when(start(landing, out, *options), moments[number % len(moments)])
        assert names(lake, out, kind) in (sorted(held), new)
        assert start(landing, out, *options).wait() == 0
        assert names(lake, out, kind) == new
        held = new
    assert not list(out.glob("_staging-*"))
