"""Loads that add up: random messages in several runs, and after each the table is what the model says."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.errors import ConfigError, SpoolError
from mtosi_jms.spark.jobs import (
    DiffOptions,
    IngestOptions,
    IngestResult,
    TopologyOptions,
    diff_tables,
    report_of,
    run_diff,
    run_ingest,
    run_topology,
)

from .lake_model import ATTRIBUTES, FULL, GONE, TOLD, Batch, Event, Model, random_runs

pytestmark = pytest.mark.spark

START = dt.datetime(2024, 1, 1)
SPACES = " ".join(
    f'xmlns:{name}="http://www.tmforum.org/mtop/{uri}/v1"'
    for name, uri in {
        "notmsg": "fmw/xsd/notmsg",
        "cei": "fmw/xsd/cei",
        "ei": "fmw/xsd/ei",
        "rscoc": "nrb/xsd/rscoc",
        "oc": "fmw/xsd/oc",
    }.items()
)
EVENTS = {GONE: "resourceObjectDeletion", FULL: "resourceObjectCreation", 2: "resourceAttributeValueChange"}
TAGS = {"user_label": "coi:userLabel", "owner": "coi:owner"}


class Network:
    """Writes messages into a landing, and ingests what is new there."""

    def __init__(self, envelopes: Any, landing: Path, spark: Any, **options: Any) -> None:
        self.envelopes = envelopes
        self.landing = landing
        self.spark = spark
        self.options: dict[str, Any] = {
            "format": "delta",
            "write": "merge",
            "since_last": True,
            "on_incomplete": "wait",
            **options,
        }
        self.files = 0

    def put(self, message: Batch | Event) -> Path:
        self.files += 1
        path = self.landing / f"{self.files:03}.xml"
        path.write_text(self.batch(message) if isinstance(message, Batch) else self.event(message))
        return path

    def batch(self, message: Batch) -> str:
        objects = "".join(
            self.envelopes.me(name.rpartition("=")[2], self.values(zip(ATTRIBUTES, values, strict=True)))
            for name, values in message.objects
        )
        made = self.envelopes.batch(message.answer, message.number, message.end, objects, time=time(message.time))
        return str(made)

    def event(self, message: Event) -> str:
        inner = self.values(message.values)
        me = f"<me:me>{inner}</me:me>"
        holder = {GONE: "", FULL: f"<oc:object>{me}</oc:object>", 2: f"<oc:attributeList>{me}</oc:attributeList>"}
        rdns = [part.split("=") for part in message.name.split("/")]
        name = "".join(
            f"<nam:rdn><nam:type>{kind}</nam:type><nam:value>{value}</nam:value></nam:rdn>" for kind, value in rdns
        )
        sent = f"<cei:sourceTime>{time(message.time)}</cei:sourceTime>"
        event = f"{sent}<ei:objectName>{name}</ei:objectName>{holder[message.kind]}"
        tag = f"rscoc:{EVENTS[message.kind]}"
        body = f"<notmsg:notify {SPACES}><notmsg:message><{tag}>{event}</{tag}></notmsg:message></notmsg:notify>"
        return str(self.envelopes.envelope(self.envelopes.header(msgType="NOTIFICATION"), body))

    def values(self, values: Any) -> str:
        told = [(TAGS[name], value) for name, value in values]
        return "".join(
            f'<{tag} xsi:nil="true"/>' if value is None else f"<{tag}>{value}</{tag}>" for tag, value in told
        )

    @property
    def out(self) -> Path:
        return self.landing.parent / "out"

    def ingest(self, **options: Any) -> IngestResult:
        given = {"landing": self.landing, "out": self.out, **self.options, **options}
        return run_ingest(IngestOptions(**given), spark=self.spark)

    def table(self) -> Any:
        return self.spark.read.format(self.options["format"]).load(str(self.out / "objectType=ME"))

    def rows(self) -> dict[str, Any]:
        """What the table says, in the form of `expected`."""
        found: dict[str, Any] = {}
        if not (self.out / "objectType=ME").is_dir():
            return found  # no run has had anything for it
        start = "valid_from" if self.options["write"] == "append" else "as_of"
        for row in self.table().selectExpr("*", f"unix_seconds({start}) AS start").collect():
            state = (minute(row["start"]), row["present"], {name: row[name] for name in ATTRIBUTES})
            found.setdefault(row["name_text"], []).append(state)
        ordered = {name: sorted(states, key=lambda state: state[0]) for name, states in found.items()}
        if self.options["write"] == "append":
            return ordered
        assert all(len(states) == 1 for states in ordered.values())
        return {name: states[0][1:] for name, states in ordered.items()}

    def expected(self, model: Model) -> dict[str, Any]:
        history = model.history()
        return history if self.options["write"] == "append" else {name: rows[-1][1:] for name, rows in history.items()}


def time(minutes: int) -> str:
    return (START + dt.timedelta(minutes=minutes)).isoformat() + "Z"


def minute(seconds: int) -> int:
    return (seconds - int(START.replace(tzinfo=dt.UTC).timestamp())) // 60


def follow(network: Network, seed: int, runs: int, *, snapshot: bool, again: bool = True) -> None:
    """Some runs, compared with the model after each; `again`: then the same landing once more."""
    model = Model(snapshot)
    for messages in random_runs(seed, runs):
        for message in messages:
            network.put(message)
        model.read(messages)
        result = network.ingest(snapshot=snapshot)
        assert not result.rejected
        assert network.rows() == network.expected(model)
    if again:
        repeated = network.ingest(snapshot=snapshot, since_last=False)
        assert (repeated.created, repeated.changed, repeated.ended) == ({}, {}, {}), (
            "the same landing again changes nothing"
        )
        assert network.rows() == network.expected(model)


@pytest.mark.parametrize("runs", [1, pytest.param(2, marks=pytest.mark.endurance)])
def test_a_history_is_what_the_model_says(lake: Any, envelopes: Any, landing: Path, runs: int) -> None:
    """The second run has an old message, which changes what a row says of which no fact is new."""
    follow(Network(envelopes, landing, lake, write="append"), 97, runs, snapshot=True, again=False)


@pytest.mark.endurance
@pytest.mark.parametrize("write", ["merge", "append"])
def test_a_lake_of_a_landing_elsewhere_is_what_the_model_says(
    lake: Any, envelopes: Any, landing: Path, mounted: str, write: str
) -> None:
    network = Network(envelopes, landing, lake, format="delta", write=write)
    network.options["landing"] = mounted
    follow(network, 7, 3, snapshot=True)


@pytest.mark.endurance
@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("write", ["merge", "append"])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_long_random_runs(
    lake: Any, envelopes: Any, landing: Path, kind: str, write: str, snapshot: bool, record_property: Any
) -> None:
    seed = int(os.environ.get("MTOSI_SEED", "20"))
    record_property("seed", seed)
    follow(Network(envelopes, landing, lake, format=kind, write=write), seed, 8, snapshot=snapshot)


def answer(name: str, number: int, time: int, *names: str, end: bool = True) -> Batch:
    return Batch(name, number, end, time, tuple((f"MD=M/ME={each}", ("x", None)) for each in names))


def names(network: Network) -> list[str]:
    rows = network.table().where("present").select("name_text").collect()
    return sorted(row["name_text"].rpartition("=")[2] for row in rows)


@pytest.mark.endurance
@pytest.mark.usefixtures("own_plans")
def test_a_change_merges_into_the_row_that_is_there(lake: Any, envelopes: Any, landing: Path) -> None:
    network = Network(envelopes, landing, lake)
    odd = "it's \\ an é"
    network.put(answer("one", 1, 1, odd, "b"))
    network.ingest()
    network.put(Event(TOLD, f"MD=M/ME={odd}", 2, (("owner", "y"),)))
    assert network.ingest().changed == {"ME": 1}
    before = (True, {"user_label": "x", "owner": None})
    assert network.rows() == {f"MD=M/ME={odd}": (True, {"user_label": "x", "owner": "y"}), "MD=M/ME=b": before}


@pytest.mark.parametrize("write", ["merge", pytest.param("append", marks=pytest.mark.endurance)])
def test_a_load_of_the_same_objects_writes_nothing(lake: Any, envelopes: Any, landing: Path, write: str) -> None:
    """A message that is older than such a load changes nothing in it. A dry run says the same as the load."""
    network = Network(envelopes, landing, lake, write=write)

    def ingested(message: Batch | Event) -> tuple[Any, ...]:
        network.put(message)
        first, second = (network.ingest(snapshot=True, dry_run=dry) for dry in (True, False))
        assert (first.dry_run, first.rows) == (True, second.rows)
        counts = [(each.created, each.changed, each.unchanged, each.ended) for each in (first, second)]
        assert counts[0] == counts[1]
        return counts[1]

    if write == "merge":  # of an object that is not there nothing is told, so that its row has no fact
        network.put(Event(TOLD, "MD=M/ME=z", 3))
        network.ingest()
    assert ingested(answer("one", 1, 1, "a", "b")) == ({"ME": 2}, {}, {}, {})
    assert ingested(answer("two", 1, 2, "a")) == ({}, {}, {"ME": 1}, {"ME": 1})
    before = network.table().inputFiles()
    assert ingested(answer("three", 1, 9, "a")) == ({}, {}, {"ME": 1}, {})
    assert network.table().inputFiles() == before
    if write == "merge":
        network.put(Event(FULL, "MD=M/ME=z", 4, (("user_label", "x"),)))
    ingested(Event(TOLD, "MD=M/ME=a", 5, (("user_label", "y"),)))
    assert names(network) == ["a"]
    last = network.rows()["MD=M/ME=a"]
    assert (last if write == "merge" else last[-1][1:]) == (True, {"user_label": "x", "owner": None})


@pytest.mark.obligation("TAB5", "TAB6")
@pytest.mark.parametrize("write", ["merge", pytest.param("append", marks=pytest.mark.endurance)])
def test_runs_of_a_snapshot(lake: Any, envelopes: Any, landing: Path, tmp_path: Path, write: str) -> None:
    """Only other content counts, and what was rejected is told; diff and topology take the state that is meant."""
    network = Network(envelopes, landing, lake, write=write)

    def ingested(time: int, label: str, names: str) -> IngestResult:
        objects = tuple((f"MD=M/ME={name}", (label if name == "a" else "x", None)) for name in names)
        network.put(Batch(f"answer {time}", 1, True, time, objects))
        return network.ingest(snapshot=True)

    assert ingested(1, "x", "abceg").created == {"ME": 5}
    shutil.copytree(network.out, tmp_path / "before")
    network.put(Event(GONE, "MD=M/ME=e", 4, ()))
    network.put(Event(TOLD, "MD=M/ME=c", 4, (("owner", "y"),)))
    creation = network.event(Event(FULL, "MD=M/ME=f", 4))
    (landing / "event.xml").write_text(creation.replace("<me:me></me:me>", ""))
    compiles = "spark.sql.codegen.wholeStage"
    before = lake.conf.get(compiles)
    lake.conf.set(compiles, "true")
    result = ingested(3, "y", "acdeg")  # of which g is as it was
    assert lake.conf.get(compiles) == "true"  # few rows are merged without
    lake.conf.set(compiles, before)
    assert [reject.reason for reject in result.rejected] == ["a creation without an object"]
    summary = json.loads((network.out / "_report/summary.json").read_text())
    counted = {kind: summary[kind] for kind in ("created", "changed", "unchanged", "ended")}
    assert counted == {"created": {"ME": 1}, "changed": {"ME": 2}, "unchanged": {"ME": 1}, "ended": {"ME": 2}}
    assert summary["waiting"] == 0
    if write == "merge":
        read = network.table().selectExpr("name_text", "minute(as_of) AS start").collect()
        assert {row.name_text[-1]: row.start for row in read} == {"a": 3, "b": 3, "c": 4, "d": 3, "e": 4, "g": 3}
    options = DiffOptions(old=tmp_path / "before", new=network.out, out=tmp_path / "diff")
    found = run_diff(options, spark=lake)
    assert found.types == {
        "ME": {"old": 5, "new": 4, "created": 1, "deleted": 2, "changed": 2, "duplicate": 0, "unnamed": 0}
    }
    assert (found.attributes, found.columns) == ({"ME": {"owner": 1, "user_label": 1}}, ())
    folders = [str(folder / "objectType=ME") for folder in (tmp_path / "before", network.out)]
    tables = [lake.read.format("delta").load(folder) for folder in folders]
    changes = sorted(row.change for row in diff_tables(*tables, "ME").collect())
    assert changes == ["changed", "changed", "created", "deleted", "deleted"]
    drawn = run_topology(TopologyOptions(snapshot=network.out, out=tmp_path / "net"), spark=lake)
    assert (drawn.nodes, drawn.duplicates) == ({"ME": 4}, 0)
    early, late = START.replace(minute=1), START.replace(minute=4, tzinfo=dt.UTC)
    timed = DiffOptions(old=network.out, new=network.out, old_at=early, new_at=late, out=tmp_path / "timed")
    earlier = TopologyOptions(snapshot=network.out, out=tmp_path / "net", at=early - dt.timedelta(seconds=1))
    if write == "append":
        assert run_diff(timed, spark=lake).types == found.types
        assert run_topology(earlier, spark=lake).nodes == {}
    else:
        with pytest.raises(ConfigError, match="only tables of write append have a state at a time"):
            run_diff(timed, spark=lake)


@pytest.mark.endurance
def test_what_waits_comes_in_with_its_last_batch(lake: Any, envelopes: Any, landing: Path) -> None:
    network = Network(envelopes, landing, lake)
    network.put(answer("whole", 1, 1, "a"))
    network.put(answer("parts", 1, 2, "b", end=False))
    first = network.ingest()
    assert (names(network), first.waiting) == (["a"], 1)
    nothing = network.ingest()
    assert (nothing.rows, nothing.waiting, list(nothing.stages)) == ({}, 1, []), "Spark was not asked"
    changed = network.put(answer("parts", 2, 3, "c"))
    last = network.ingest()
    assert (names(network), last.waiting, last.rows) == (["a", "b", "c"], 0, {"ME": 2})
    changed.write_text(network.batch(answer("parts", 2, 3, "d")))
    reported = network.ingest()
    assert [(Path(reject.file).name, reject.reason) for reject in reported.rejected] == [
        (changed.name, "has changed since it was read, and is not read again")
    ]
    assert names(network) == ["a", "b", "c"]
    with pytest.raises(ConfigError, match=r"checkpoint of write 'merge', not 'append'"):
        network.ingest(write="append")
    with pytest.raises(ConfigError, match="tables that grow, with a checkpoint: write replace into another folder"):
        network.ingest(write="replace", since_last=False)
    for file in landing.iterdir():
        file.unlink()
    with pytest.raises(SpoolError, match="the landing is empty, and was not"):
        network.ingest()


def test_parquet_gets_the_rows_of_what_is_new(spark: Any, envelopes: Any, landing: Path) -> None:
    """Complete sequences only, each once; what is there stays as it is, whatever its files are called."""
    network = Network(envelopes, landing, spark, format="parquet", write="append", since_last=False)
    table = network.out / "objectType=ME"

    def rows() -> list[str]:
        found = network.table().select("name_text", "correlation_id").collect()
        return sorted(f"{row['correlation_id']} {row['name_text'].rpartition('=')[2]}" for row in found)

    first = network.put(answer("one", 1, 1, "a", "b"))
    network.put(answer("parts", 1, 2, "b", end=False))
    assert (network.ingest().created, rows()) == ({"ME": 2}, ["one a", "one b"])
    first.rename(landing.parent / first.name)
    for file in table.glob("*.parquet"):
        file.rename(table / "renamed.parquet")
    network.put(answer("parts", 2, 3, "c"))
    found = network.ingest()
    assert (found.created, found.foreign, found.waiting) == ({"ME": 2}, ["ME"], 0)
    (landing.parent / first.name).rename(first)
    assert (network.ingest().created, rows()) == ({}, ["one a", "one b", "parts b", "parts c"])
    assert network.ingest().stages == {}, "Spark was not asked"
    network.put(answer("two", 1, 2, "d"))
    aside = table.rename(network.out / "aside")
    with pytest.raises(SpoolError, match="the table of ME is gone, which an earlier ingest made"):
        network.ingest()
    aside.rename(table)
    shutil.copytree(table, aside)
    (kept,) = (file for file in table.iterdir() if file.name == "renamed.parquet")
    for file in table.iterdir():
        file.unlink()
    pq.write_table(pq.read_table(aside / kept.name, partitioning=None).drop_columns("owner"), table / "a.parquet")
    with pytest.raises(ConfigError, match="the table of ME has other columns than its news: ingest into another"):
        network.ingest()
    shutil.rmtree(table)
    aside.rename(table)
    checkpoint = network.out / "_report/checkpoint.sqlite"
    before = checkpoint.read_bytes()
    assert (network.ingest().created, rows()[-1]) == ({"ME": 1}, "two d")
    checkpoint.write_bytes(before)  # as if it was killed after the swap
    found = network.ingest()
    assert (found.created, found.foreign, rows()[3:]) == ({}, ["ME"], ["parts c", "two d"])
    assert network.ingest().stages == {}
    network.put(answer("three", 1, 4, "e"))
    assert network.ingest().foreign == [], "told once"


def test_what_waits_for_ever_is_told(spark: Any, envelopes: Any, landing: Path) -> None:
    network = Network(envelopes, landing, spark, format="parquet", write="append")
    for message in (answer("whole", 1, 1, "a"), answer("parts", 1, 2, "b", end=False)):
        network.put(message)
    for name in ("c", "d"):
        network.put(answer("twice", 1, 3, name))
    for result in (network.ingest(), network.ingest()):
        assert (result.waiting, result.stuck) == (3, 2)
        notes = " ".join(report_of(result, "landing").notes)
        assert "2 of them wait for ever: batches are in conflict, or a fault came" in notes
    assert [row["name_text"] for row in network.table().collect()] == ["MD=M/ME=a"]


@pytest.mark.endurance
def test_one_more_object_type(lake: Any, envelopes: Any, landing: Path) -> None:
    """What is known is read once more, for the objects of the new type in it; one type less is refused."""
    network = Network(envelopes, landing, lake)
    network.put(answer("one", 1, 1, "a", "b"))
    assert network.ingest().created == {"ME": 2}
    added = network.ingest(object_type="ME,EQ")
    assert (added.messages, added.created, names(network)) == ({"response": 1}, {}, ["a", "b"])
    assert network.ingest(object_type="ME,EQ").stages == {}, "Spark was not asked"
    with pytest.raises(ConfigError, match=r"checkpoint of object types \['ME', 'EQ'\], not \['ME'\]"):
        network.ingest()


@pytest.mark.endurance
def test_what_is_marked_is_completed(lake: Any, envelopes: Any, landing: Path) -> None:
    network = Network(envelopes, landing, lake, on_incomplete="mark")

    def marks() -> dict[str, bool]:
        rows = network.table().select("name_text", "complete").collect()
        return {row["name_text"].rpartition("=")[2]: row["complete"] for row in rows}

    network.put(answer("parts", 1, 2, "b", end=False))
    network.ingest()
    assert marks() == {"b": False}
    network.put(answer("parts", 2, 3, "c"))
    network.ingest()
    assert marks() == {"b": True, "c": True}
    for name in ("d", "e"):
        network.put(answer("twice", 1, 4, name))
    waiting = network.ingest(on_incomplete="wait")
    assert (marks(), waiting.waiting, waiting.stuck) == ({"b": True, "c": True}, 2, 2)
    marked = network.ingest()
    assert (marks(), marked.waiting) == ({"b": True, "c": True, "d": False, "e": False}, 0)
    checkpoint = network.out / "_report/checkpoint.sqlite"
    checkpoint.write_bytes(b"SQLite format 3 and nothing else" * 100)
    with pytest.raises(SpoolError, match="the checkpoint is damaged"):
        network.ingest()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"since_last": True}, r"since_last \(--since-last\) goes with write"),
        ({"write": "merge"}, r"write merge \(--write merge\) needs tables of Delta or Iceberg: --format delta"),
        ({"write": "append", "snapshot": True}, r"snapshot \(--snapshot\) needs tables of Delta or Iceberg"),
        ({"write": "append"}, r"adds complete sequences only: on_incomplete wait \(--on-incomplete wait\)"),
        ({"write": "merge", "format": "delta", "where": "complete"}, r"where \(--where\) goes with write replace"),
        ({"snapshot": True}, r"snapshot \(--snapshot\) goes with write"),
        ({"write": "upsert"}, "there are replace, merge, append"),
        ({"table": "lake.me"}, "tables of a catalog are of the format delta or iceberg"),
        ({"format": "csv"}, "there are parquet, delta, iceberg"),
        ({"format": "iceberg", "table": "lake.me; DROP"}, "give a name such as"),
    ],
)
def test_options_that_do_not_fit(landing: Path, tmp_path: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        run_ingest(IngestOptions(landing=landing, out=tmp_path / "out", **options))
