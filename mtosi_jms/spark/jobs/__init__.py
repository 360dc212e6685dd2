"""The jobs: what an ingested landing becomes. Each has its options, a function that runs it, and its result.

`ingest` makes tables by object type out of a landing, `alarms` a table of alarms. `diff` compares two snapshots, which
are results of `ingest`; `topology` makes nodes and edges out of one. A job writes its tables into `out` all together or
not at all, and a summary into `out/_report/`.

All run functions take the options, `spark`, a session with this machine's files at hand (by default one is made and
stopped again), and `progress`. That is called as `progress(stage, done, tasks)`: with 0 and 0 as each stage begins,
then with how many of Spark's tasks are done, and of how many. Beside the summary lies a page that shows the result:
`report.html` of an ingest, `diff.html` and so on of the others. They raise

- ConfigError: options that do not fit, no PySpark or Java, or an `out` that holds tables that this job did not make;
- SpoolError: what is to be read does not exist, cannot be read or is empty, or `out` cannot be written;
- SpoolInUseError: another job works on `out`;
- MtosiError: Spark fails, or a snapshot was replaced while it was read.
"""

from mtosi_jms.spark.jobs._alarms import (
    ALARM,
    AlarmOptions,
    AlarmResult,
    alarm_table,
    latest_alarms,
    parse_alarms,
    read_alarms,
    run_alarms,
)
from mtosi_jms.spark.jobs._diff import (
    KINDS,
    ColumnNote,
    DiffOptions,
    DiffResult,
    column_notes,
    diff_snapshots,
    diff_tables,
    run_diff,
)
from mtosi_jms.spark.jobs._ingest import IngestOptions, IngestResult, report_of, run_ingest
from mtosi_jms.spark.jobs._topology import (
    Topology,
    TopologyOptions,
    TopologyResult,
    run_topology,
    snapshot_topology,
    topology_tables,
)

__all__ = [
    "ALARM",
    "KINDS",
    "AlarmOptions",
    "AlarmResult",
    "ColumnNote",
    "DiffOptions",
    "DiffResult",
    "IngestOptions",
    "IngestResult",
    "Topology",
    "TopologyOptions",
    "TopologyResult",
    "alarm_table",
    "column_notes",
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
