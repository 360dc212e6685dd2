"""The jobs that make tables from a landing or a snapshot. Each job has options, a run function and a result.

`ingest` makes one table for each object type of a landing, and `alarms` makes a table of alarms. A snapshot is the
result of an `ingest`: `diff` compares two of them, and `topology` makes nodes and edges from one. A job writes all its
tables into `out` or none. It writes a summary into `out/_report/`, and beside it an HTML page that shows the result:
`report.html` for an ingest, otherwise `diff.html` and so on.

All run functions take

- the options;
- `spark`: a session that can read this machine's files. By default the job makes a session and stops it at the end.
- `progress`: called as `progress(stage, done, tasks)`, with 0 and 0 when a stage begins, then with the number of Spark
  tasks that are done and the number of all tasks.

All run functions raise

- ConfigError: options that do not fit, no PySpark or Java, or an `out` that holds tables that this job did not make;
- SpoolError: the input does not exist, cannot be read or is empty, or `out` cannot be written;
- SpoolInUseError: another job works on `out`;
- MtosiError: Spark fails, or a snapshot was replaced while it was read.
"""

from mtosi_jms.spark.jobs._derived import (
    Topology,
    diff_snapshots,
    diff_tables,
    latest_alarms,
    parse_alarms,
    read_alarms,
    run_alarms,
    run_diff,
    run_topology,
    snapshot_topology,
    topology_tables,
)
from mtosi_jms.spark.jobs._ingest import run_ingest
from mtosi_jms.tables.alarms import AlarmOptions, AlarmResult
from mtosi_jms.tables.diff import DiffOptions, DiffResult
from mtosi_jms.tables.ingest import IngestOptions, IngestResult, report_of
from mtosi_jms.tables.topology import TopologyOptions, TopologyResult

__all__ = [
    "AlarmOptions",
    "AlarmResult",
    "DiffOptions",
    "DiffResult",
    "IngestOptions",
    "IngestResult",
    "Topology",
    "TopologyOptions",
    "TopologyResult",
    "diff_snapshots",
    "diff_tables",
    "latest_alarms",
    "parse_alarms",
    "read_alarms",
    "report_of",
    "run_alarms",
    "run_diff",
    "run_ingest",
    "run_topology",
    "snapshot_topology",
    "topology_tables",
]
