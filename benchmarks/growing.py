"""The command `ingest` on landings of growing size: does the time for an object stay the same?

MTOSI_BENCH_OBJECTS, a whole number, adds a landing with this number of objects; 10000000 objects are about 1 GB of
compressed files. MTOSI_BENCH_MASTER names the master of a cluster that does the work, such as spark://127.0.0.1:7077.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from measure import Comparison, Line
from messaging import header, sent
from network import BATCH, batch

SIZES: Final = (10_000, 100_000, 1_000_000)
_TEMPLATES: Final = 20
_NUMBER: Final = "7777777"
_MASTER: Final = os.environ.get("MTOSI_BENCH_MASTER", "")


def ingest(*, quick: bool) -> Comparison:
    """Ingest each landing in a process of its own, so that its time includes the start of Spark."""
    more = int(os.environ.get("MTOSI_BENCH_OBJECTS", "0"))
    sizes = (1_000, 10_000) if quick else (*SIZES, *([more] if more else []))
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="bench-growing-") as name:
        for size in sizes:
            landing, out = Path(name) / str(size), Path(name) / f"{size}-out"
            megabytes = land(landing, size) / 1e6
            lines.append(Line(f"{size:,} objects", "ours", size, megabytes, [_seconds(landing, out, size)]))
            shutil.rmtree(landing)
            shutil.rmtree(out)
    first, last = lines[0], lines[-1]
    for line in lines:
        line.ratio = first.rate / line.rate
    slope = (last.median - lines[-2].median) / (last.amount - lines[-2].amount)
    where = "by the cluster" if _MASTER else "on all processors of this machine"
    notes = [
        f"one run each, {where}, with Spark's start; files are packed with gzip",
        f"between the two largest landings an object more takes {slope * 1e6:,.0f} microseconds",
    ]
    return Comparison("ingest", "mtosi-jms ingest of growing landings", "objects", lines, rounds=1, notes=notes)


def _seconds(landing: Path, out: Path, size: int) -> float:
    command = [sys.executable, "-m", "mtosi_jms", "ingest", str(landing), "--out", str(out)]
    command += ["--conf", f"spark.master={_MASTER}"] if _MASTER else []
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    rows = sum(pq.read_metadata(path).num_rows for path in out.glob("objectType=ME/*.parquet"))
    if rows != size:
        raise RuntimeError(f"{rows} rows of {size} objects")
    return seconds


def land(landing: Path, objects: int) -> int:
    """Write one complete answer, 500 objects a compressed file, with different names; return its XML bytes."""
    landing.mkdir()
    head = header("getAllManagedElements", "RESPONSE", number=int(_NUMBER), last=False)
    templates = [sent(head, batch(number * BATCH + 1)).body for number in range(_TEMPLATES)]
    files, size = objects // BATCH, 0
    for number in range(1, files + 1):
        data = templates[number % _TEMPLATES].replace(f">{_NUMBER}<".encode(), f">{number}<".encode())
        if number == files:
            data = data.replace(b">false</", b">true</", 1)
        data = data.replace(b">NE-", f">NE-{number}-".encode())
        (landing / f"reply-{number:06d}.xml.gz").write_bytes(gzip.compress(data, 1))
        size += len(data)
    return size
