"""`mtosi-jms demo`: the main job, end to end, in one process.

A supplier with a generated network, a requestor that asks it for all managed elements over JMS, a durable landing of
every reply, Spark turning the landing into Parquet with a ledger, and notifications for a few changes.

The provider may be a broker that others use: the destinations are of this run alone, so that neither a demo at the same
time nor what a killed one left behind comes in between.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import shutil
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import mtosi_jms as mtosi
from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import positive
from mtosi_jms.cli._providers import mask_url
from mtosi_jms.errors import ConfigError, ReplyTimeoutError
from mtosi_jms.exchange.messages import moment
from mtosi_jms.jms.profile import TopicCategory
from mtosi_jms.masking import without_login
from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.report import Event, Fact, Report, write_report
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.fmw.avc import AttributeValueChangeTypeAttributeList
from mtosi_jms.stubs.fmw.gen import AnyListType
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType, PerceivedSeverityType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrf.me import Me
from mtosi_jms.transport import Connection, login
from mtosi_jms.xmlbind import RawXml

if TYPE_CHECKING:
    from mtosi_jms.spark.jobs import IngestResult

NAMES: Final = {
    "jms/InventoryOS": "queue:{}.InventoryOS",
    "jms/EmsOS": "queue:{}.EmsOS",
    "jms/InventoryTopic": "topic:{}.Inventory",
    "jms/FaultTopic": "topic:{}.Fault",
}
PREFIX: Final = "MTOSI.DEMO"
"""How the names of all destinations begin: who may do anything there may run the demo."""
_OWN: Final = frozenset({"landing", "notifications", "inventory", "summary.json", "report.html"})
_CAPACITY: Final = 8
"""Messages that a destination holds before its senders wait: what bounds the memory of a demo of any size."""


@dataclasses.dataclass(slots=True)
class Exchange:
    """What the request brought.

    Attributes:
        correlation_id: of the request.
        elements: managed elements received.
        batches: replies handed out.
        timeline: for each batch: its number, seconds since the request, objects, bytes in the landing.
    """

    correlation_id: str = ""
    elements: int = 0
    batches: int = 0
    timeline: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command."""
    parser = subparsers.add_parser(
        "demo",
        help="the main job, end to end, on a generated network",
        description="A supplier, a requestor, a landing, Spark, notifications and a report, in one process.",
    )
    parser.add_argument("--elements", type=positive, default=2000, help="managed elements in the network (2000)")
    parser.add_argument("--batch-size", type=positive, default=200, help="elements in one reply at most (200)")
    parser.add_argument(
        "--url",
        default="memory:",
        help=f"JMS provider (memory:); the login of a broker from {login.USER} and {login.PASSWORD}, or the file that "
        f"{login.PASSWORD_FILE} names",
    )
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder for all results (out/demo)")
    parser.add_argument("--ack-log", type=Path, help="file that gets one synced line for each acknowledged message")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Run the demo; 0 if every element that was asked for is in the inventory."""
    from mtosi_jms.spark.jobs import IngestOptions, run_ingest

    out: Path = args.out
    _clear(out)
    seconds: dict[str, float] = {}
    network = Network(elements=args.elements)
    with _connect(args.url) as connection:
        started = time.perf_counter()
        exchange = _exchange(connection, network, args, out / "landing")
        seconds["exchange"] = time.perf_counter() - started
        started = time.perf_counter()
        notifications = _notifications(connection, network, out / "notifications")
        seconds["notifications"] = time.perf_counter() - started
    started = time.perf_counter()
    result = run_ingest(IngestOptions(landing=out / "landing", out=out / "inventory", object_type="ME"))
    seconds["ingest"] = time.perf_counter() - started
    return _finish(args, exchange, notifications, result, seconds)


def _clear(out: Path) -> None:
    """Take away what an earlier demo left; anything else in the folder is somebody's, and stays."""
    if out.exists():
        strangers = sorted(path.name for path in out.iterdir() if path.name not in _OWN)
        if strangers:
            raise ConfigError(f"{out}: holds {strangers[0]!r}, which is no demo's: give another --out")
        for path in out.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    out.mkdir(parents=True, exist_ok=True)


def _connect(url: str) -> Connection:
    mask_url(url)
    options = {"capacity": _CAPACITY} if url.lower().startswith("memory:") else {}
    place = f"{PREFIX}.{uuid.uuid4().hex[:12]}"
    return mtosi.connect(url, names={name: text.format(place) for name, text in NAMES.items()}, **options)


def _exchange(connection: Connection, network: Network, args: argparse.Namespace, landing: Path) -> Exchange:
    """Ask for all elements, in batches, and land each reply."""
    found = Exchange()
    with (
        mtosi.DurableLanding(landing, ack_log=args.ack_log) as kept,
        mtosi.Supplier(connection, "jms/EmsOS", [ManagedElementEms(network)]),
        mtosi.Requestor(connection, sender_uri="jms/InventoryOS", landing=kept) as requestor,
        console.progress("elements", network.elements) as advance,
    ):
        retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")
        started = time.perf_counter()
        batches = retrieval.get_all_managed_elements.batches(batch_size=args.batch_size)
        found.correlation_id = batches.correlation_id
        for batch in batches:
            count = len(batch.me_list.me) if batch.me_list else 0
            found.batches += 1
            found.elements += count
            moment = round(time.perf_counter() - started, 4)
            found.timeline.append({"batch": found.batches, "seconds": moment, "objects": count})
            advance(count)
    return found


def _notifications(connection: Connection, network: Network, landing: Path) -> int:
    """Publish a few changes of the network, land what two subscribers get, and count it."""
    topics = {TopicCategory.INVENTORY: "jms/InventoryTopic", TopicCategory.FAULT: "jms/FaultTopic"}
    events = _changes(network)
    with (
        mtosi.DurableLanding(landing) as kept,
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
                    raise ReplyTimeoutError("a notification was published and did not arrive")
                received += 1
    return received


def _changes(network: Network) -> list[Any]:
    now = moment()
    new = network.managed_element(network.elements)
    common: dict[str, Any] = {"source_time": now, "os_time": now, "object_type": "ME"}
    created = Me(**{field.name: getattr(new, field.name) for field in dataclasses.fields(new)})
    version = RawXml(
        b'<me:softwareVersion xmlns:me="http://www.tmforum.org/mtop/nrf/xsd/me/v1">9.9.9</me:softwareVersion>'
    )
    return [
        ResourceObjectCreation(
            notification_id="demo-1",
            object_name=network.element_name(network.elements),
            object=AnyListType(any_=[created]),
            **common,
        ),
        ResourceAttributeValueChange(
            notification_id="demo-2",
            object_name=network.element_name(0),
            attribute_list=AttributeValueChangeTypeAttributeList(any_=[version]),
            **common,
        ),
        Alarm(
            notification_id="demo-3",
            object_name=network.element_name(0),
            probable_cause=ProbableCauseType(probable_cause=ProbableCauseEnumType.LOS),
            perceived_severity=PerceivedSeverityType.CRITICAL,
            acknowledge_indication=AcknowledgeIndicationType.UNACKNOWLEDGED,
            **common,
        ),
    ]


def _finish(
    args: argparse.Namespace, exchange: Exchange, notifications: int, result: IngestResult, seconds: dict[str, float]
) -> int:
    """Write and show the summary; 1 where something that was asked for is not in the inventory."""
    ours = [found for found in result.sequences if found.correlation_id == exchange.correlation_id]
    rows = result.rows.get("ME", 0)
    complete = bool(ours) and all(found.complete for found in ours) and exchange.elements == rows == args.elements
    summary = {
        "elements": exchange.elements,
        "batches": exchange.batches,
        "complete": complete,
        "missing_batches": [number for found in ours for number in found.missing],
        "rows": rows,
        "notifications": notifications,
        "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
    }
    (args.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    write_report(_report(args, exchange, summary, result, seconds), args.out / "report.html")
    if args.json:
        console.print_json(summary)
    else:
        _show(args, summary)
    return 0 if complete else 1


def _show(args: argparse.Namespace, summary: dict[str, Any]) -> None:
    whole = "yes" if summary["complete"] else f"no, missing batches: {summary['missing_batches'] or 'none by number'}"
    lines = [
        ("elements asked for", f"{args.elements:,}"),
        ("elements received", f"{summary['elements']:,}"),
        ("batches", f"{summary['batches']:,}"),
        ("complete", whole),
        ("rows in Parquet", f"{summary['rows']:,}"),
        ("notifications", summary["notifications"]),
        *((f"seconds, {stage}", value) for stage, value in summary["seconds"].items()),
    ]
    console.table("demo", ("what", "how much"), lines)
    for label, name in (
        ("landing", "landing"),
        ("notifications", "notifications"),
        ("Parquet", "inventory"),
        ("report", "report.html"),
    ):
        console.say(f"{label}: {args.out / name}")


def _report(
    args: argparse.Namespace,
    exchange: Exchange,
    summary: dict[str, Any],
    result: IngestResult,
    seconds: dict[str, float],
) -> Report:
    events = [
        Event(item["seconds"], "batch", f"batch {item['batch']}, {item['objects']} objects")
        for item in exchange.timeline
    ]
    facts = [
        Fact("elements asked for", f"{args.elements:,}"),
        Fact("batches", f"{exchange.batches:,}"),
        Fact("complete", "yes" if summary["complete"] else "no", "good" if summary["complete"] else "bad"),
        Fact("rows in Parquet", f"{summary['rows']:,}"),
        Fact("notifications", f"{summary['notifications']:,}"),
    ]
    from mtosi_jms.spark.jobs import report_of

    page = report_of(result, str(args.out / "landing"), dt.datetime.now(dt.UTC))
    return dataclasses.replace(
        page,
        title="MTOSI over JMS: the demo",
        subtitle=f"getAllManagedElements over {without_login(args.url)}, correlationId {exchange.correlation_id}",
        facts=facts,
        timeline=[Event(0.0, "request", "getAllManagedElements"), *events],
        seconds={**seconds, **{f"ingest: {stage}": value for stage, value in result.stages.items()}},
    )
