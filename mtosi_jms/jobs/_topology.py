"""Turns a snapshot into nodes and edges.

Writes OUT/nodes/*.parquet, OUT/edges/*.parquet (containment, links, references) and OUT/_report/topology.json. If the
snapshot lacks an object that an edge ends at, the edge and the object are kept and marked.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import time
from mtosi_jms.jobs._jobs import NO_TABLE, add_engine, add_job, run_on_engine, shared

if TYPE_CHECKING:
    from mtosi_jms.tables.topology import TopologyResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("snapshot", metavar="SNAPSHOT", help="folder of a snapshot, as ingest writes it")
    parser.add_argument("--at", type=time, metavar="TIME", help="state at TIME, after ingest --write append (last)")
    add_engine(parser, "Parquet tables")
    add_job(parser, out="out/topology", allow_empty=NO_TABLE)


def run(args: argparse.Namespace) -> int:
    """Make the tables; errors are those of the engine's `run_local` or `run_topology`."""
    from mtosi_jms.tables.topology import TopologyOptions

    options = TopologyOptions(snapshot=args.snapshot, at=args.at, **shared(args))
    return run_on_engine(args, "connecting", "topology", options, show)


def show(result: TopologyResult) -> None:
    types = dict.fromkeys((*result.nodes, *result.unknown))
    nodes = [(name, f"{result.nodes.get(name, 0):,}", f"{result.unknown.get(name, 0):,}") for name in types]
    terminal.table("nodes", ("type", "in the snapshot", "only referred to"), nodes)
    edges = [(name, f"{number:,}", f"{result.dangling.get(name, 0):,}") for name, number in result.edges.items()]
    terminal.table("edges", ("relationship", "edges", "with an unknown end"), edges)
    if result.duplicates:
        terminal.note(f"the snapshot has {result.duplicates:,} names several times; each is one node")
    if result.unnamed:
        terminal.note(f"{result.unnamed:,} objects have no name and become no nodes")
    found = f"{sum(result.nodes.values()):,} nodes, {sum(result.edges.values()):,} edges"
    terminal.say(f"{found}; in {result.seconds:.1f} s", "title")
    terminal.say(f"{result.out}/_report/topology.html")
