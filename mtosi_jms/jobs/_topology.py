"""Turns a snapshot into nodes and edges.

Writes OUT/nodes/*.parquet, OUT/edges/*.parquet (containment, links, references) and OUT/_report/topology.json. If the
snapshot lacks an object that an edge ends at, the edge and the object are kept and marked.
"""

from __future__ import annotations

import argparse

from mtosi_jms.cli.arguments import time
from mtosi_jms.jobs._jobs import NO_TABLE, add_engine, add_job, run_on_engine, shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("snapshot", metavar="SNAPSHOT", help="folder of a snapshot, as ingest writes it")
    parser.add_argument("--at", type=time, metavar="TIME", help="state at TIME, after ingest --write append (last)")
    add_engine(parser, "Parquet tables")
    add_job(parser, out="out/topology", allow_empty=NO_TABLE)


def run(args: argparse.Namespace) -> int:
    """Make the tables; errors are those of the engine's `run_local` or `run_topology`."""
    from mtosi_jms.tables.topology import TopologyOptions

    options = TopologyOptions(snapshot=args.snapshot, at=args.at, **shared(args))
    return run_on_engine(args, "connecting", "topology", options)
