"""Loads that add up: a hundred small merges compared with one merge of everything, in one Spark session.

MTOSI_BENCH_ANSWERS is the number of answers of 5,000 elements each, by default 300.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measure import Comparison, Side, SkippedError, compare
from messaging import header, sent
from network import BATCH, batch

from mtosi_jms.errors import MtosiError
from mtosi_jms.spark import local_session, pyspark_version
from mtosi_jms.spark.jobs import IngestOptions, run_ingest
from mtosi_jms.spark.jobs._lake import session_settings
from mtosi_jms.tables.job import DELTA, ICEBERG

_ANSWER = 10
"""The number of files of one complete answer."""
_TIME_NS = 1_700_000_000 * 10**9


def delta(*, quick: bool) -> Comparison:
    """Into a table of Delta Lake."""
    return _loads(DELTA, quick=quick)


def iceberg(*, quick: bool) -> Comparison:
    """Into a table of Iceberg."""
    return _loads(ICEBERG, quick=quick)


def _loads(kind: str, *, quick: bool) -> Comparison:
    loads, answers = (4, 4) if quick else (100, int(os.environ.get("MTOSI_BENCH_ANSWERS", "300")))
    with tempfile.TemporaryDirectory(prefix="bench-loads-") as name, _session(kind) as spark:
        folder = Path(name)
        files, size = _land(folder / "all", answers)
        rows = len(files) * BATCH

        def run(landing: Path, out: Path) -> None:
            options = IngestOptions(landing=landing, out=out, format=kind, write="merge", since_last=True)
            run_ingest(options, spark=spark)

        def many() -> int:
            landing = folder / "grows"
            landing.mkdir()
            each = len(files) // loads
            for start in range(0, len(files), each):
                for path in files[start : start + each]:
                    os.link(path, landing / path.name)
                run(landing, folder / "many")
            return _rows(spark, kind, folder / "many")

        def one() -> int:
            run(folder / "all", folder / "one")
            return _rows(spark, kind, folder / "one")

        warm = folder / "warm"
        _land(warm, 1)
        run(warm, folder / "warmed")
        sides = [Side(f"{loads} loads, each of 1/{loads}", "ours", many), Side("one load of all", "ours", one)]
        found = compare(
            f"loads-{kind}",
            f"Loads merged into {kind}; {rows:,} managed elements in {len(files):,} files",
            "managed elements",
            sides,
            rounds=1,
            megabytes=size / 1e6,
            notes=[f"the session was there before, and had merged {_ANSWER} files", "both ways end in the same table"],
            warm_up=False,
        )
        _check_same(spark, kind, folder)
        return found


@contextmanager
def _session(kind: str) -> Iterator[Any]:
    try:
        settings = session_settings(kind, pyspark_version(), {})
        with local_session("benchmarks", settings=settings) as spark:
            yield spark
    except MtosiError as error:
        raise SkippedError(str(error)) from error


def _land(landing: Path, answers: int) -> tuple[list[Path], int]:
    """Write complete answers of several files each; return the files and their bytes."""
    landing.mkdir()
    files, size = [], 0
    for number in range(answers * _ANSWER):
        place = number % _ANSWER
        cid = f"answer-{number // _ANSWER}"
        head = header("getAllManagedElements", "RESPONSE", number=place + 1, last=place + 1 == _ANSWER)
        head.correlation_id = cid
        path = landing / f"{cid}-{place:02d}.xml"
        size += path.write_bytes(sent(head, batch(number * BATCH + 1)).body)
        os.utime(path, ns=(_TIME_NS, _TIME_NS))
        files.append(path)
    return files, size


def _table(spark: Any, kind: str, out: Path) -> Any:
    return spark.read.format(kind).load(str(out / "objectType=ME"))


def _rows(spark: Any, kind: str, out: Path) -> int:
    return int(_table(spark, kind, out).where("present").count())


def _check_same(spark: Any, kind: str, folder: Path) -> None:
    """Check that both ways give the same table, apart from the source files of its rows."""
    columns = ("name_text", "user_label", "location", "as_of", "present", "complete")
    one, many = (_table(spark, kind, folder / name).select(*columns) for name in ("one", "many"))
    if one.exceptAll(many).head() is not None or many.exceptAll(one).head() is not None:
        raise RuntimeError("loads that add up end in another table than one load of all")
