"""Reads a landing as a worker of the source does, and prints what was read and the peak of memory.

Usage: worker_memory_process.py LANDING OBJECT_TYPE. Prints a JSON object: `rows`, `batches`, `largest` (rows of the
largest batch), `checksum` of the full names in the order of the rows, `rejects`, `first` and `last` (full name and
position), `start_mb` before the first file was opened and `peak_mb` of this process's resident set, `seconds`.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark import SourceOptions
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.tables.reader import reader_for


def peak_megabytes() -> float:
    """The most memory that this process has held, in millions of bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # the other figure counts what the parent held when it started this process
        peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"))
        return int(peak.group(1)) * 1024 / 1e6 if peak is not None else 0.0
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found / 1e6 if sys.platform == "darwin" else found * 1024 / 1e6


def main() -> None:
    """Read it all, one batch at a time."""
    options = SourceOptions.parse(
        {"path": sys.argv[1], "objectType": sys.argv[2], "columnNameOfCorruptRecord": "corrupt"}
    )
    load_stubs(options.stubs)
    schema = full_schema(options)
    landing = plan_landing(options)
    started, start_mb = time.perf_counter(), peak_megabytes()
    found: dict[str, Any] = {"rows": 0, "batches": 0, "largest": 0, "checksum": 0, "rejects": 0, "first": None}
    for batch in reader_for(options, schema).read(landing.files, landing.rejects):
        found["rows"] += batch.num_rows
        found["batches"] += 1
        found["largest"] = max(found["largest"], batch.num_rows)
        found["rejects"] += batch.num_rows - batch.column("corrupt").null_count
        names = batch.column("name_text").to_pylist()
        found["checksum"] = zlib.crc32("".join(f"{name}\n" for name in names).encode(), found["checksum"])
        ends = [(names[at], batch.column("source_position")[at].as_py()) for at in (0, -1)]
        found["first"] = found["first"] or ends[0]
        found["last"] = ends[1]
    found["seconds"] = time.perf_counter() - started
    found |= {"start_mb": start_mb, "peak_mb": peak_megabytes(), "arrow_mb": pa.total_allocated_bytes() / 1e6}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
