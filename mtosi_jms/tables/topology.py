"""The network of a snapshot as nodes and edges: containment, links and references; docs/spark.md has the columns.

An object is contained in the innermost object around it: the last of `parent_names`, otherwise its name without the
last step. A topological link gives one edge from each A end to each Z end. If it has no ends on one side, it gives an
edge `open_link` between each end of the other side and the topological link itself. An object that is an end of an edge
but not in the snapshot is a node that is not `known`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote

import pyarrow as pa

from mtosi_jms.report import GRAPH_NODES, Fact, Graph, GraphEdge, GraphNode, Report, Table, duration, number
from mtosi_jms.tables.columns import full_name, names_type, own_columns
from mtosi_jms.tables.ingest import Engine, reading
from mtosi_jms.tables.job import JobOptions, JobResult, Progress, Staging
from mtosi_jms.tables.snapshots import Snapshot, choose_for, name_column
from mtosi_jms.tables.sql import LocalJob, Sql, SqlJob
from mtosi_jms.tables.writer import sample

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = [
    "TABLES",
    "TopologyOptions",
    "TopologyResult",
    "choose",
    "draw",
    "edges_in",
    "nodes_in",
    "page_of",
    "run_local",
    "snapshot_of",
]

TABLES: Final = ("nodes", "edges")
_SAMPLED: Final = ("id", "type", "label", "known", "src", "relationship", "dst", "via")
_SIDES: Final = ("a_end", "z_end")
_SUFFIXES: Final = re.compile("(_ref_list|_ref|_list)$")
_EDGE: Final = pa.schema([(name, pa.string()) for name in ("src", "dst", "relationship", "kind", "via", "direction")])
_COLUMNS: Final = ", ".join(_EDGE.names)
_ELEMENT: Final = "^(?:[^/]*/)*?ME=[^/]*"
_DOMAIN: Final = "^[^/]*"

T = TypeVar("T")
Edge = tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class TopologyOptions(JobOptions):
    """Which snapshot to draw. `snapshot`: folder that `ingest` made. `at`: the time of the state, for tables with a
    history (write append); by default their last state."""

    snapshot: str | Path
    at: dt.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TopologyResult(JobResult):
    """A network in numbers: known nodes and `unknown` ones by type, edges by relationship and those with an unknown end
    (`dangling`). `duplicates`: number of names that several rows of the snapshot have. `unnamed`: number of objects
    without a name, which become no nodes. `graph`: the network as a graph of limited size, for
    `mtosi_jms.report.Picture`; not in the summary."""

    nodes: dict[str, int]
    unknown: dict[str, int]
    edges: dict[str, int]
    dangling: dict[str, int]
    duplicates: int
    unnamed: int
    graph: Graph


def choose(options: TopologyOptions, engine: Engine = "auto") -> tuple[Engine, str]:
    """Choose the engine of the job, and say why; see `mtosi_jms.tables.snapshots.choose_for`."""
    return choose_for(engine, options, lambda: [snapshot_of(options)])


def snapshot_of(options: TopologyOptions) -> Snapshot:
    """Find the snapshot. Raises SpoolError or ConfigError: there is none."""
    return Snapshot(options.snapshot, allow_empty=options.allow_empty, at=options.at)


def run_local(options: TopologyOptions, *, progress: Progress | None = None) -> TopologyResult:
    """Write `OUT/nodes/*.parquet`, `OUT/edges/*.parquet` and `OUT/_report/topology.json` without Spark. Raises as
    `mtosi_jms.tables.diff.run_local`."""
    choose(options, "local")
    held = snapshot_of(options)
    job = LocalJob("topology", options.out, TABLES, progress, format=options.format, where=options.where)
    with job.working() as staged:
        return draw(job, staged, options, held, lambda held, name: job.sql.parquet(held.tables[name]))


def draw(
    job: SqlJob[T], staged: Staging, options: TopologyOptions, held: Snapshot, table: Callable[[Snapshot, str], T]
) -> TopologyResult:
    """Make the tables and the page.

    The option `where` is a condition on nodes. Only edges with both ends among the written nodes are written. `table`:
    reads the table of an object type.
    """
    sql, folder = job.sql, staged.folder
    with held.unchanged():
        tables = {name: table(held, name) for name in held.tables}
        tables = tables or {"": sql.sql("SELECT CAST(NULL AS string) AS name_text WHERE false")}
        with job.stage("edges"):
            found = edges_in(sql, tables)
            edges = job.write(found, folder / ("found" if options.where else "edges"), filtered=False)
        with job.stage("nodes"):
            nodes = job.write(nodes_in(sql, tables, edges), folder / "nodes")
            if options.where:
                edges = job.write(_between(sql, edges, nodes), folder / "edges", filtered=False)
        with job.stage("count"):
            counts = _counts(sql, nodes, edges)
            unnamed = sum(_unnamed(sql, table) for table in tables.values())
        with job.stage("draw"):
            graph = _network(sql, nodes, edges)
            samples = tuple(sample(f"{name}: the first rows", folder / name, _SAMPLED) for name in TABLES)
    result = TopologyResult(**counts, unnamed=unnamed, graph=graph, samples=samples, **job.facts)
    job.finish(staged, result, page_of(result, options))
    return result


def page_of(result: TopologyResult, options: TopologyOptions) -> Report:
    """Return the page of the job."""
    types = dict.fromkeys((*result.nodes, *result.unknown))
    nodes = [(name, result.nodes.get(name, 0), result.unknown.get(name, 0)) for name in types]
    ends = [(name, count, result.dangling.get(name, 0)) for name, count in result.edges.items()]
    unknown = sum(result.unknown.values())
    notes = []
    if result.duplicates:
        notes.append(f"Names that the snapshot has several times, each one node: {number(result.duplicates)}.")
    if result.unnamed:
        notes.append(f"Objects without a name, which become no nodes: {number(result.unnamed)}.")
    if unknown:
        notes.append("Objects that are only referred to are not in the snapshot; the picture has them hollow.")
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
        tables=[
            Table("Nodes", ("type", "in the snapshot", "only referred to"), nodes),
            Table("Edges", ("relationship", "edges", "with an unknown end"), ends),
        ],
        samples=result.samples,
        links={"the nodes": "../nodes/", "the edges": "../edges/"},
        steps={
            "Keep a part of the network": f"mtosi-jms topology {snapshot} --out {out} --where \"type in ('ME', 'TL')\"",
            "Read the edges": reading(options.format, place),
        },
    )


def _all(sql: Sql[T], tables: Sequence[T]) -> T:
    names = [f"table_{at}" for at in range(len(tables))]
    text = " UNION ALL ".join(f"SELECT * FROM {{{name}}}" for name in names)  # noqa: S608 - names of our own
    return sql.sql(text, **dict(zip(names, tables, strict=True)))


def _known(sql: Sql[T], tables: Mapping[str, T]) -> T:
    """Return the names that the tables have, with the first of their types and the number of their rows."""
    named = []
    for object_type, table in tables.items():
        name = name_column(sql.schema(table).names)
        typed = sql.select(table, [name], type=object_type)
        named.append(sql.sql(f"SELECT {name} AS id, type FROM {{typed}} WHERE {name} IS NOT NULL", typed=typed))  # noqa: S608
    text = "SELECT id, min(type) AS type, count(*) AS copies FROM {named} GROUP BY id"
    return sql.sql(text, named=_all(sql, named))


def edges_in(sql: Sql[T], tables: Mapping[str, T]) -> T:
    """Return the edges of the objects in some tables. Raises ConfigError: a table has no column `name_text`."""
    found = []
    for name, table in tables.items():
        names = sql.schema(table)
        wanted = [column for column in dict.fromkeys(_told(names)) if column in names.names]
        found.append(sql.each(sql.select(table, wanted), partial(_edges_of, name), _EDGE))
    text = f"""
        SELECT DISTINCT {_COLUMNS}, a.id IS NOT NULL AS src_known, z.id IS NOT NULL AS dst_known
        FROM {{found}} AS found LEFT JOIN {{known}} AS a ON src = a.id LEFT JOIN {{known}} AS z ON dst = z.id
    """  # noqa: S608 - columns of our own
    return sql.sql(text, found=_all(sql, found), known=_known(sql, tables))


def nodes_in(sql: Sql[T], tables: Mapping[str, T], edges: T) -> T:
    """Return the nodes of the objects in some tables, and of those that their edges end at."""
    step = "split_part(id, '/', -1)"

    def part(number: int) -> str:
        text = f"split_part({step}, '=', {number})"
        for character, written in (("=", "%3D"), ("/", "%2F"), ("%", "%25")):
            text = f"replace({text}, '{written}', '{character}')"
        return text

    text = f"""
        SELECT id, type, {part(2)} AS label, true AS known, copies FROM {{known}}
        UNION ALL
        SELECT id, {part(1)} AS type, {part(2)} AS label, false AS known, CAST(0 AS bigint) AS copies
        FROM (SELECT src AS id FROM {{edges}} WHERE NOT src_known UNION SELECT dst FROM {{edges}} WHERE NOT dst_known)
        AS others
    """  # noqa: S608 - columns of our own
    return sql.sql(text, known=_known(sql, tables), edges=edges)


def _between(sql: Sql[T], edges: T, nodes: T) -> T:
    text = f"""
        SELECT {_COLUMNS}, src_known, dst_known FROM {{edges}} AS found
        JOIN {{nodes}} AS a ON src = a.id JOIN {{nodes}} AS z ON dst = z.id
    """  # noqa: S608 - columns of our own
    return sql.sql(text, edges=edges, nodes=nodes)


def _unnamed(sql: Sql[T], table: T) -> int:
    name = name_column(sql.schema(table).names)
    ((count,),) = sql.rows(sql.sql(f"SELECT count(*) FROM {{table}} WHERE {name} IS NULL", table=table))  # noqa: S608
    return int(count)


def _counts(sql: Sql[T], nodes: T, edges: T) -> dict[str, Any]:
    def by(column: str, table: T, condition: str) -> dict[str, int]:
        text = f"SELECT {column}, count(*) FROM {{table}} WHERE {condition} GROUP BY {column} ORDER BY {column}"  # noqa: S608
        return dict(map(tuple, sql.rows(sql.sql(text, table=table))))

    return {
        "nodes": by("type", nodes, "known"),
        "unknown": by("type", nodes, "NOT known"),
        "edges": by("relationship", edges, "true"),
        "dangling": by("relationship", edges, "NOT (src_known AND dst_known)"),
        "duplicates": sum(by("copies", nodes, "copies > 1").values()),
    }


def _told(schema: pa.Schema) -> list[str]:
    """Return the columns that edges are made of, if a table has them; the full name comes first."""
    own = own_columns(schema.names)
    names = [field.name for field in schema if names_type(field.type) and field.name != "name"]
    return [name_column(schema.names), own["parent_names"], own["related"], "direction", *names]


def _edges_of(object_type: str, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    for batch in batches:
        found = [edge for edge in _batch_edges(object_type, batch) if edge[0] and edge[1]]
        columns = zip(*found, strict=True) if found else [()] * len(_EDGE)
        yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=_EDGE)


def _batch_edges(object_type: str, batch: RecordBatch) -> Iterator[Edge]:
    name, parents, related, *_ = _told(batch.schema)
    listed = [field.name for field in batch.schema if names_type(field.type)]
    sides = [[column for column in listed if column.startswith(side)] for side in _SIDES]
    is_link = object_type == "TL" or all(sides)
    there = [column for column in batch.schema.names if batch.column(column).null_count < batch.num_rows]
    for row in batch.select(there).to_pylist():
        full = row.get(name)
        if not full:
            continue
        yield _around(full, row.get(parents) or ()), full, "contains", "containment", None, None
        names = {column: _names(row[column]) for column in listed if row.get(column) is not None}
        if is_link:
            a_end, z_end = ([end for column in side for end in names.pop(column, ())] for side in sides)
            yield from _links(full, a_end, z_end, row.get("direction"))
        for column, others in (*names.items(), *(row.get(related) or ())):
            relationship = _SUFFIXES.sub("", column)
            yield from ((full, other, relationship, "reference", None, None) for other in others or ())


def _around(name: str, parents: Sequence[str | None]) -> str | None:
    above = [parent for parent in parents if parent and parent != name]
    return above[-1] if above else name.rpartition("/")[0] or None


def _names(value: Mapping[str, Any]) -> list[str]:
    names = [value] if "rdn" in value else next(iter(value.values())) or ()
    return [text for name in names if name is not None and (text := full_name(name))]


def _links(name: str, a_end: Sequence[str], z_end: Sequence[str], direction: str | None) -> Iterator[Edge]:
    """Yield the edges of a topological link: `link`, or `open_link` if one side has no ends."""
    relationship = "link" if a_end and z_end else "open_link"
    for src in a_end or ([name] if z_end else ()):
        yield from ((src, dst, relationship, "link", name, direction) for dst in z_end or (name,))


def _network(sql: Sql[T], nodes: T, edges: T) -> Graph:
    """Return a graph of a network that is small enough for a page.

    Its nodes are managed elements, and its edges are the links and references between objects in them. If there are too
    many elements, or none, its nodes are management domains. If there are too many domains, or only one, its nodes are
    object types, and its edges are all relationships.
    """
    elements = _groups(sql, nodes, _ELEMENT)
    why = (
        f"More than {GRAPH_NODES} managed elements are too many to draw" if elements else "There is no managed element"
    )
    if 0 < len(elements) <= GRAPH_NODES:
        caption = "Each circle is a managed element; a line is a link or a reference between two of them."
        return _graph(elements, _lines(sql, _ends(sql, edges, _ELEMENT)), caption)
    domains = _groups(sql, nodes, _DOMAIN)
    if 1 < len(domains) <= GRAPH_NODES:
        caption = f"{why}: each circle is a management domain; a line is a link or a reference."
        return _graph(domains, _lines(sql, _ends(sql, edges, _DOMAIN)), caption)
    types = sql.sql("SELECT type, count(*), bool_or(known) FROM {nodes} GROUP BY type", nodes=nodes)
    text = """
        SELECT a.type AS a, z.type AS z
        FROM {edges} AS found JOIN {nodes} AS a ON src = a.id JOIN {nodes} AS z ON dst = z.id
    """
    ends = sql.sql(text, edges=edges, nodes=nodes)
    caption = f"{why}: each circle is an object type; a line is any relationship."
    return _graph(sql.rows(types), _lines(sql, ends), caption)


def _groups(sql: Sql[T], nodes: T, pattern: str) -> Sequence[Any]:
    """Group nodes by the part of their names that a pattern finds, and count them; at most one more than is drawn."""
    text = f"""
        SELECT part, count(*), bool_or(known AND id = part)
        FROM (SELECT id, known, regexp_extract(id, '{pattern}', 0) AS part FROM {{nodes}}) AS parts
        WHERE part <> '' GROUP BY part LIMIT {GRAPH_NODES + 1}
    """  # noqa: S608 - patterns of our own
    return sql.rows(sql.sql(text, nodes=nodes))


def _ends(sql: Sql[T], edges: T, pattern: str) -> T:
    a, z = (f"regexp_extract({end}, '{pattern}', 0)" for end in ("src", "dst"))
    return sql.sql(f"SELECT {a} AS a, {z} AS z FROM {{edges}} WHERE kind <> 'containment'", edges=edges)  # noqa: S608


def _lines(sql: Sql[T], ends: T) -> Sequence[Any]:
    """Return the pairs of groups with edges between them, in both directions, and the number of these."""
    text = """
        SELECT least(a, z) AS a, greatest(a, z) AS z, count(*) FROM {ends} WHERE a <> z AND a <> '' AND z <> ''
        GROUP BY least(a, z), greatest(a, z) ORDER BY 1, 2
    """
    return sql.rows(sql.sql(text, ends=ends))


def _graph(groups: Sequence[Any], lines: Sequence[Any], caption: str) -> Graph:
    nodes = [GraphNode(name, _label(name), size, known) for name, size, known in groups]
    return Graph(sorted(nodes, key=lambda node: node.id), [GraphEdge(*line) for line in lines], caption)


def _label(name: str) -> str:
    return unquote(name.rpartition("/")[2].partition("=")[2]) or name
