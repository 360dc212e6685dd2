"""The network of a snapshot as nodes and edges: containment, links and references.

Nodes, one row for each full name:

| column | what |
|---|---|
| `id` | the full name, `MD=EMS1/ME=NE-7` |
| `type` | the object type; for an unknown object, the type in the last step of its name |
| `label` | the value of the last step of the name |
| `known` | whether the snapshot has the object; false if others only refer to it |
| `copies` | number of rows of the snapshot with this name |

Edges:

| column | what |
|---|---|
| `src`, `dst` | full names |
| `relationship` | `contains`, `link`, `open_link`, or the list or field with the reference: `supported_ptp`, `asap` |
| `kind` | `containment`, `link` or `reference` |
| `via` | for a link: full name of the topological link |
| `direction` | for a link: the direction of the topological link, `CD_BI` or `CD_UNI` |
| `src_known`, `dst_known` | whether the snapshot has the object at that end |

An object is contained in the innermost object around it: the last of `parent_names`, otherwise its name without the
last step. A topological link gives one edge from each A end to each Z end. If it has no ends on one side, it gives an
edge `open_link` between each end of the other side and the topological link itself. An object that is an end of an edge
but not in the snapshot is a node that is not `known`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from mtosi_jms.errors import ConfigError
from mtosi_jms.report import Fact, Graph, Report, Table, duration, number
from mtosi_jms.spark.jobs._expressions import last_step, names_in, names_type
from mtosi_jms.spark.jobs._job import SparkJob
from mtosi_jms.spark.jobs._merge import state_of
from mtosi_jms.spark.jobs._page import network_graph
from mtosi_jms.spark.jobs._snapshots import Snapshot
from mtosi_jms.tables.columns import own_columns
from mtosi_jms.tables.ingest import reading
from mtosi_jms.tables.job import JobOptions, JobResult, Progress
from mtosi_jms.tables.writer import sample

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TABLES: Final = ("nodes", "edges")
_SAMPLED: Final = ("id", "type", "label", "known", "src", "relationship", "dst", "via")
_SIDES: Final = ("a_end", "z_end")
_SUFFIXES: Final = re.compile("(_ref_list|_ref|_list)$")
_NONE: Final = "array<string>"
_EDGE: Final = ("src", "dst", "relationship", "kind", "via", "direction")


@dataclass(frozen=True, slots=True)
class Topology:
    """A network in the form of GraphFrames: `GraphFrame(topology.nodes, topology.edges)`; see the module docstring."""

    nodes: DataFrame
    edges: DataFrame


@dataclass(frozen=True, kw_only=True)
class TopologyOptions(JobOptions):
    """Which snapshot to draw.

    Attributes:
        snapshot: folder that `ingest` made.
        at: the time of the state, for tables with a history (write append); by default their last state.
    """

    snapshot: str | Path
    at: dt.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TopologyResult(JobResult):
    """A network in numbers.

    Attributes:
        nodes: number of known nodes by type.
        unknown: number of nodes that are not known, by type.
        edges: number of edges by relationship.
        dangling: number of edges with an end that is not known, by relationship.
        duplicates: number of names that several rows of the snapshot have.
        unnamed: number of objects without a name, which become no nodes.
        graph: the network as a graph of limited size, for `mtosi_jms.report.Picture`; not in the summary.
    """

    nodes: dict[str, int]
    unknown: dict[str, int]
    edges: dict[str, int]
    dangling: dict[str, int]
    duplicates: int
    unnamed: int
    graph: Graph

    def summary(self) -> dict[str, Any]:
        document = super().summary()
        del document["graph"]
        return document


def topology_tables(tables: Mapping[str, DataFrame]) -> Topology:
    """Return nodes and edges of the objects in some tables.

    Args:
        tables: by object type, with the columns that the source gives; of a table of a merge or append, its last state
            is drawn.

    Raises:
        ConfigError: there is no table, or one has no column `name_text`.
    """
    if not tables:
        raise ConfigError("no table to take nodes and edges from")
    tables = {name: state_of(table) for name, table in tables.items()}
    named = [_named(table, name) for name, table in tables.items()]
    known = _all(named).groupBy("id").agg(f.min("type").alias("type"), f.count("*").alias("copies"))
    found = _all([_edges_of(table, name) for name, table in tables.items()]).distinct()
    ids = known.select("id")
    edges = found
    for end in ("src", "dst"):
        held = ids.select(f.col("id").alias(end), f.lit(True).alias(f"{end}_known"))
        edges = edges.join(held, end, "left").withColumn(f"{end}_known", f.coalesce(f"{end}_known", f.lit(False)))
    ends = [edges.where(~f.col(f"{end}_known")).select(f.col(end).alias("id")) for end in ("src", "dst")]
    unknown = (
        _all(ends)
        .distinct()
        .select("id", last_step(f.col("id"))[0].alias("type"), f.lit(0).cast("long").alias("copies"))
    )
    nodes = known.unionByName(unknown).select(
        "id", "type", last_step(f.col("id"))[1].alias("label"), (f.col("copies") > 0).alias("known"), "copies"
    )
    return Topology(nodes, edges.select(*_EDGE, "src_known", "dst_known"))


def snapshot_topology(spark: SparkSession, snapshot: str | Path, at: dt.datetime | None = None) -> Topology:
    """Return nodes and edges of a snapshot that `ingest` made.

    Args:
        at: as in `TopologyOptions`.

    Raises:
        SpoolError: the folder does not exist.
        ConfigError: the folder has no tables, or no history for a time.
    """
    held = Snapshot(snapshot, at=at)
    return topology_tables({name: held.read(spark, name) for name in held.tables})


def run_topology(
    options: TopologyOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> TopologyResult:
    """Write `OUT/nodes/*.parquet`, `OUT/edges/*.parquet` and `OUT/_report/topology.json`.

    The option `where` is a condition on nodes. Only edges with both ends among the written nodes are written.
    """
    held = Snapshot(options.snapshot, allow_empty=options.allow_empty, at=options.at)
    job = SparkJob("topology", options.out, _TABLES, progress, format=options.format, where=options.where)
    with job.working(spark, options.cores, settings=options.conf) as (staged, active):
        with held.unchanged():
            tables = {name: held.read(active, name) for name in held.tables}
            topology = topology_tables(tables or {"": active.createDataFrame([], "name_text string")})
            with job.stage("nodes"):
                nodes = job.write(topology.nodes, staged.folder / "nodes")
            with job.stage("edges"):
                wanted = _between(topology.edges, nodes) if options.where else topology.edges
                edges = job.write(wanted, staged.folder / "edges", filtered=False)
            with job.stage("count"):
                counts = _counts(nodes, edges)
                unnamed = sum(table.count() for table in map(_unnamed, tables.values()))
            with job.stage("draw"):
                graph = network_graph(nodes, edges)
                samples = [sample(f"{name}: the first rows", staged.folder / name, _SAMPLED) for name in _TABLES]
        result = TopologyResult(**counts, unnamed=unnamed, graph=graph, **job.facts)
        job.finish(staged, result, _page(result, options, samples))
    return result


def _page(result: TopologyResult, options: TopologyOptions, samples: Sequence[Table]) -> Report:
    types = dict.fromkeys((*result.nodes, *result.unknown))
    ends = [(name, count, result.dangling.get(name, 0)) for name, count in result.edges.items()]
    unknown = sum(result.unknown.values())
    notes = []
    if result.duplicates:
        notes.append(f"Names that the snapshot has several times, each one node: {number(result.duplicates)}.")
    if result.unnamed:
        notes.append(f"Objects without a name, which become no nodes: {number(result.unnamed)}.")
    if unknown:
        notes.append("Objects that are only referred to are drawn hollow.")
    snapshot, out, place = quote(str(options.snapshot)), quote(str(result.out)), f"{result.out}/edges"
    return Report(
        title="The network of a snapshot",
        subtitle=f"{options.snapshot} to {result.out}",
        facts=[
            Fact("objects", number(sum(result.nodes.values()))),
            Fact("only referred to", number(unknown), "bad" if unknown else "plain"),
            Fact("edges", number(sum(result.edges.values()))),
            Fact("with an unknown end", number(sum(result.dangling.values())), "bad" if result.dangling else "plain"),
            Fact("time", duration(result.seconds)),
        ],
        notes=notes,
        graph=result.graph,
        charts={
            "Nodes by type": {name: result.nodes.get(name, 0) + result.unknown.get(name, 0) for name in types},
            "Edges by relationship": result.edges,
        },
        tables=[Table("Edges", ("relationship", "edges", "with an unknown end"), ends), *samples],
        links={"the nodes": "../nodes/", "the edges": "../edges/"},
        steps={
            "Keep a part of the network": f"mtosi-jms topology {snapshot} --out {out} --where \"type in ('ME', 'TL')\"",
            "Read the edges": reading(options.format, place),
        },
    )


def _between(edges: DataFrame, nodes: DataFrame) -> DataFrame:
    """Return the edges whose ends are both among some nodes."""
    for end in ("src", "dst"):
        edges = edges.join(nodes.select(f.col("id").alias(end)), end, "left_semi")
    return edges.select(*_EDGE, "src_known", "dst_known")


def _counts(nodes: DataFrame, edges: DataFrame) -> dict[str, Any]:
    dangling = edges.where(~(f.col("src_known") & f.col("dst_known")))
    return {
        "nodes": _by(nodes.where("known"), "type"),
        "unknown": _by(nodes.where("not known"), "type"),
        "edges": _by(edges, "relationship"),
        "dangling": _by(dangling, "relationship"),
        "duplicates": nodes.where("copies > 1").count(),
    }


def _by(table: DataFrame, column: str) -> dict[str, int]:
    return {row[column]: row["count"] for row in table.groupBy(column).count().orderBy(column).collect()}


def _all(tables: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), tables)


def _name_column(table: DataFrame) -> Column:
    name = own_columns(table.columns)["name_text"]
    if name not in table.columns:
        raise ConfigError("a table of objects has a column name_text; this one has none")
    return table[name]


def _named(table: DataFrame, object_type: str) -> DataFrame:
    name = _name_column(table)
    return table.where(name.isNotNull()).select(name.alias("id"), f.lit(object_type).alias("type"))


def _unnamed(table: DataFrame) -> DataFrame:
    return table.where(_name_column(table).isNull())


def _edges_of(table: DataFrame, object_type: str) -> DataFrame:
    """Return the edges that the objects of one table give, in one pass over it."""
    name = _name_column(table)
    own = own_columns(table.columns)
    names = [column.name for column in table.schema if names_type(column.dataType) and column.name != "name"]
    a_end, z_end = ([column for column in names if column.startswith(side)] for side in _SIDES)
    parts = [_containment(table, name, own)]
    if object_type == "TL" or (a_end and z_end):
        parts.append(_links(table, name, names_in(table, *a_end), names_in(table, *z_end)))
        names = [column for column in names if column not in (*a_end, *z_end)]
    parts += [_references(name, names_in(table, column), f.lit(_SUFFIXES.sub("", column))) for column in names]
    if own["related"] in table.columns:
        parts.append(_related(name, table[own["related"]]))
    edges = table.where(name.isNotNull()).select(f.explode(f.concat(*parts)).alias("edge"))
    return edges.select("edge.*").where("src is not null and dst is not null and src != '' and dst != ''")


def _edge(src: Column, dst: Column, relationship: Column, kind: str, *more: Column) -> Column:
    """Return one edge; `more` are the values of `via` and `direction`."""
    none = f.lit(None).cast("string")
    values = (src, dst, relationship, f.lit(kind), *(more or (none, none)))
    return f.struct(*(value.cast("string").alias(field) for field, value in zip(_EDGE, values, strict=True)))


def _containment(table: DataFrame, name: Column, own: Mapping[str, str]) -> Column:
    """Return the edge from the innermost object around an object to that object."""
    above = f.when(f.contains(name, f.lit("/")), f.regexp_replace(name, "/[^/]*$", ""))
    if own["parent_names"] in table.columns:
        parents = f.filter(table[own["parent_names"]], lambda parent: (parent != "") & (parent != name))
        above = f.coalesce(f.when(f.size(parents) > 0, f.element_at(parents, -1)), above)
    return f.array(_edge(above, name, f.lit("contains"), "containment"))


def _links(table: DataFrame, name: Column, a_end: Column, z_end: Column) -> Column:
    """Return the edges of a topological link: `link`, or `open_link` if one side has no ends."""
    more = (name, table["direction"] if "direction" in table.columns else f.lit(None))

    def link(src: Column, dst: Column, relationship: str = "link") -> Column:
        return _edge(src, dst, f.lit(relationship), "link", *more)

    outward = f.transform(a_end, lambda src: link(src, name, "open_link"))
    inward = f.transform(z_end, lambda dst: link(name, dst, "open_link"))
    through = f.flatten(f.transform(a_end, lambda src: f.transform(z_end, lambda dst: link(src, dst))))
    return f.when(f.size(z_end) == 0, outward).when(f.size(a_end) == 0, inward).otherwise(through)


def _related(name: Column, related: Column) -> Column:
    """Return the references of the nested layout; the name of each list of names is the relationship."""
    lists = f.map_entries(f.coalesce(related, f.create_map().cast("map<string,array<string>>")))

    def edges(entry: Column) -> Column:
        others = f.coalesce(entry["value"], f.array().cast(_NONE))
        return _references(name, others, f.regexp_replace(entry["key"], _SUFFIXES.pattern, ""))

    return f.flatten(f.transform(lists, edges))


def _references(name: Column, names: Column, relationship: Column) -> Column:
    return f.transform(names, lambda other: _edge(name, other, relationship, "reference"))
