"""Runs the main job end to end, in one process.

A requestor asks a supplier with a generated network for all managed elements, over JMS. Each reply is synced to disk
before it is acknowledged. Spark turns the replies into Parquet with a ledger. The demo also sends notifications of a
few changes, and writes a report.

The provider may be a broker that others use. Each run has its own destinations, so other demos, running or killed, do
not interfere.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime as dt
import json
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mtosi_jms.binding.profile import TopicCategory
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, add_release, local, positive
from mtosi_jms.cli.providers import mask_url
from mtosi_jms.errors import ConfigError, ReplyTimeoutError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.masking import without_login
from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.report import Fact, Report, Table, write_report
from mtosi_jms.simulator import ManagedElementEms, Network, event_in_release1, in_release1
from mtosi_jms.spool import DurableLanding
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import PerceivedSeverityType
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs11.ns_tmf854_v1.types import name as name11
from mtosi_jms.stubs11.ns_tmf854_v1_ws.managed_element_mgr import ManagedElementMgr
from mtosi_jms.transport import Connection, connect, settings

if TYPE_CHECKING:
    from mtosi_jms.spark.jobs import IngestResult

NAMES: Final = {
    "jms/InventoryOS": "queue:{}.InventoryOS",
    "jms/EmsOS": "queue:{}.EmsOS",
    "jms/InventoryTopic": "topic:{}.Inventory",
    "jms/FaultTopic": "topic:{}.Fault",
}
PREFIX: Final = "MTOSI.DEMO"
"""The names of all destinations begin with it: a user who may do anything there may run the demo."""
_OWN: Final = frozenset({"landing", "notifications", "inventory", "summary.json", "report.html"})
_CAPACITY: Final = 8
"""Messages that a destination holds before senders wait: bounds the memory of a demo of any size."""
_EVENTS: Final = 1_000
"""Enough for an event of each kind."""


class Exchange(NamedTuple):
    """What the request brought.

    Attributes:
        correlation_id: of the request.
        batches: for each reply: seconds since the request, and how many managed elements it has.
    """

    correlation_id: str
    batches: list[tuple[float, int]]

    @property
    def elements(self) -> int:
        return sum(count for _, count in self.batches)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--elements", type=positive, default=2000, help="managed elements in the network (%(default)s)")
    parser.add_argument(
        "--batch-size", type=positive, default=200, help="maximum number of elements in a reply (%(default)s)"
    )
    parser.add_argument(
        "--url",
        default="memory:",
        help=f"JMS provider (memory:); a broker's login comes from {settings.USER} and {settings.PASSWORD}, or from "
        f"the file that {settings.PASSWORD_FILE} names",
    )
    add_release(parser)
    parser.add_argument("--out", type=local, default=Path("out/demo"), help="folder for all results (out/demo)")
    parser.add_argument("--ack-log", type=local, help="file to log each acknowledged message in, one synced line each")
    add_json(parser, "the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Run the demo; 0 if every requested element is in the inventory."""
    from mtosi_jms.spark.jobs import IngestOptions, run_ingest

    out: Path = args.out
    _clear(out)
    seconds: dict[str, float] = {}
    network = Network(elements=args.elements)
    with _connect(args.url) as connection:
        with _timed(seconds, "exchange"):
            exchange = _exchange(connection, network, args, out / "landing")
        with _timed(seconds, "notifications"):
            changes = _changes(network)
            if args.release == "1.1":
                changes = [event_in_release1(event) for event in changes]
            notifications = _notifications(connection, changes, out / "notifications")
    with _timed(seconds, "ingest"):
        result = run_ingest(IngestOptions(landing=out / "landing", out=out / "inventory", object_type="ME"))
    return _finish(args, exchange, notifications, result, seconds)


@contextlib.contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - started


def _clear(out: Path) -> None:
    """Remove what an earlier demo left; refuse a folder that holds anything else."""
    if out.exists():
        strangers = sorted(path.name for path in out.iterdir() if path.name not in _OWN)
        if strangers:
            raise ConfigError(f"{out}: holds {strangers[0]!r}, which is not from a demo: give another --out")
        for path in out.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    out.mkdir(parents=True, exist_ok=True)


def _connect(url: str) -> Connection:
    mask_url(url)
    options: dict[str, Any] = {"capacity": _CAPACITY} if url.lower().startswith("memory:") else {}
    place = f"{PREFIX}.{uuid.uuid4().hex[:12]}"
    return connect(url, names={name: text.format(place) for name, text in NAMES.items()}, **options)


def _exchange(connection: Connection, network: Network, args: argparse.Namespace, landing: Path) -> Exchange:
    """Ask for all elements, in batches, and land each reply."""
    received: list[tuple[float, int]] = []
    ems = ManagedElementEms(network)
    is_older = args.release == "1.1"
    with (
        DurableLanding(landing, ack_log=args.ack_log) as kept,
        Supplier(connection, "jms/EmsOS", [in_release1(ems) if is_older else ems]),
        Requestor(connection, sender_uri="jms/InventoryOS", landing=kept) as requestor,
        terminal.progress("elements", network.elements) as advance,
    ):
        started = time.perf_counter()
        batches: Any
        if is_older:
            domain = name11(str(network.domain_name()))
            manager = ManagedElementMgr(requestor, "jms/EmsOS")
            batches = manager.get_all_managed_elements.batches(md_name=domain, batch_size=args.batch_size)
        else:
            retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")
            batches = retrieval.get_all_managed_elements.batches(batch_size=args.batch_size)
        for batch in batches:
            count = len(batch.me_list.me) if batch.me_list else 0
            received.append((round(time.perf_counter() - started, 4), count))
            advance(count)
    return Exchange(batches.correlation_id, received)


def _notifications(connection: Connection, events: list[Any], landing: Path) -> int:
    """Publish a few changes, land what two subscribers get, and count it."""
    topics = {TopicCategory.INVENTORY: "jms/InventoryTopic", TopicCategory.FAULT: "jms/FaultTopic"}
    with (
        DurableLanding(landing) as kept,
        Subscriber(connection, "jms/InventoryTopic", timeout=10, landing=kept) as inventory,
        Subscriber(connection, "jms/FaultTopic", timeout=10, landing=kept) as faults,
        Publisher(connection, topics, sender_uri="jms/EmsOS") as publisher,
    ):
        for event in events:
            publisher.publish(event)
        received = 0
        for subscriber, expected in ((inventory, len(events) - 1), (faults, 1)):
            for _ in range(expected):
                if next(subscriber, None) is None:
                    raise ReplyTimeoutError("a published notification did not arrive")
                received += 1
    return received


def _changes(network: Network) -> list[Any]:
    """A new element, a changed attribute and a critical alarm: the first ones that the network reports."""
    found: dict[type, Any] = {}
    for event in network.events(_EVENTS, start=dt.datetime.now(dt.UTC)):
        if not isinstance(event, Alarm) or event.perceived_severity is PerceivedSeverityType.CRITICAL:
            found.setdefault(type(event), event)
    return [found[kind] for kind in (ResourceObjectCreation, ResourceAttributeValueChange, Alarm)]


def _finish(
    args: argparse.Namespace, exchange: Exchange, notifications: int, result: IngestResult, seconds: dict[str, float]
) -> int:
    """Write and show the summary; 1 where something that was asked for is not in the inventory."""
    own = [found for found in result.sequences if found.correlation_id == exchange.correlation_id]
    rows = result.rows.get("ME", 0)
    complete = bool(own) and all(found.complete for found in own) and exchange.elements == rows == args.elements
    summary = {
        "elements": exchange.elements,
        "batches": len(exchange.batches),
        "complete": complete,
        "missing_batches": [number for found in own for number in found.missing],
        "rows": rows,
        "notifications": notifications,
        "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
    }
    facts = [
        Fact("elements requested", f"{args.elements:,}"),
        Fact("elements received", f"{exchange.elements:,}"),
        Fact("batches", f"{len(exchange.batches):,}"),
        Fact("complete", "yes" if complete else "no", "good" if complete else "bad"),
        Fact("rows in Parquet", f"{rows:,}"),
        Fact("notifications", f"{notifications:,}"),
    ]
    (args.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    write_report(_report(args, exchange, facts, result, seconds), args.out / "report.html")
    if args.json:
        terminal.print_json(summary)
    else:
        _show(args.out, facts, summary)
    return 0 if complete else 1


def _show(out: Path, facts: list[Fact], summary: dict[str, Any]) -> None:
    rows: list[tuple[str, object]] = [(fact.label, fact.value) for fact in facts]
    if not summary["complete"]:
        rows.append(("missing batches", summary["missing_batches"] or "the last"))
    rows += [(f"seconds, {stage}", value) for stage, value in summary["seconds"].items()]
    terminal.table("demo", ("what", "how much"), rows)
    places = {"landing": "landing", "notifications": "notifications", "Parquet": "inventory", "report": "report.html"}
    for label, name in places.items():
        terminal.say(f"{label}: {out / name}")


def _report(
    args: argparse.Namespace, exchange: Exchange, facts: list[Fact], result: IngestResult, seconds: dict[str, float]
) -> Report:
    from mtosi_jms.spark.jobs import report_of

    batches = [(number, count, f"{at:.3f}") for number, (at, count) in enumerate(exchange.batches, 1)]
    return dataclasses.replace(
        report_of(result, str(args.out / "landing"), dt.datetime.now(dt.UTC)),
        title="MTOSI over JMS: the demo",
        subtitle=f"getAllManagedElements over {without_login(args.url)}, correlationId {exchange.correlation_id}",
        facts=facts,
        tables=[Table("Exchange", ("batch", "objects", "seconds since the request"), batches)],
        seconds={**seconds, **{f"ingest: {stage}": value for stage, value in result.stages.items()}},
    )
