"""`mtosi-jms topology`: the network of a snapshot as tables of nodes and edges."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import processors

if TYPE_CHECKING:
    from mtosi_jms.spark.jobs import TopologyResult


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "topology",
        help="turn a snapshot into nodes and edges, ready for GraphFrames",
        description="Writes OUT/nodes/*.parquet, OUT/edges/*.parquet (containment, links, references) and "
        "OUT/_report/topology.json. Ends that the snapshot does not have are kept and marked.",
    )
    parser.add_argument("snapshot", metavar="SNAPSHOT", help="folder of a snapshot, as ingest writes it")
    parser.add_argument("--out", type=Path, default=Path("out/topology"), help="folder for the result (out/topology)")
    parser.add_argument(
        "--allow-empty", action="store_true", help="take a folder without tables as a snapshot without objects"
    )
    parser.add_argument("--cores", type=processors, help="processors to use (all)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Make the tables.

    Raises:
        MtosiError: it could not, for the reasons that `mtosi_jms.spark.jobs.run_topology` lists.
    """
    from mtosi_jms.spark.jobs import TopologyOptions, run_topology

    options = TopologyOptions(snapshot=args.snapshot, out=args.out, cores=args.cores, allow_empty=args.allow_empty)
    with console.progress("connecting", 3) as advance:
        result = run_topology(options, progress=lambda stage: advance(1))
    if args.json:
        console.print_json(result.summary())
    else:
        show(result)
    return 0


def show(result: TopologyResult) -> None:
    """Print the network in numbers."""
    types = dict.fromkeys((*result.nodes, *result.unknown))
    nodes = [(name, f"{result.nodes.get(name, 0):,}", f"{result.unknown.get(name, 0):,}") for name in types]
    console.table("nodes", ("type", "in the snapshot", "only referred to"), nodes)
    edges = [(name, f"{number:,}", f"{result.dangling.get(name, 0):,}") for name, number in result.edges.items()]
    console.table("edges", ("relationship", "edges", "with an unknown end"), edges)
    if result.duplicates:
        console.note(f"{result.duplicates:,} names stand in the snapshot several times; each is one node")
    if result.unnamed:
        console.note(f"{result.unnamed:,} objects have no name and are no nodes")
    told = f"{sum(result.nodes.values()):,} nodes, {sum(result.edges.values()):,} edges"
    console.say(f"{told}; in {result.seconds:.1f} s", "title")
    console.say(f"{result.out}/nodes {result.out}/edges")
