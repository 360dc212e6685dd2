"""What is read from folders: the ledger of a landing, by the rules of `mtosi-jms ingest`, and a network of managed
elements, from a landing or from the tables of `mtosi-jms topology`. It is read again when the folder has changed."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.console._alarms import element_of
from mtosi_jms.errors import MissingExtraError, MtosiError
from mtosi_jms.inventory import Hit, Routes, find_objects, given_name, is_object, label_of, name_text
from mtosi_jms.namespaces import SOAP11, SOAP12, clark, split_clark
from mtosi_jms.report import Fact, RejectLine, Report, SequenceLine, render
from mtosi_jms.report import number as shown
from mtosi_jms.spool import scan
from mtosi_jms.xmlbind import parse_xml, read_document

if TYPE_CHECKING:
    from mtosi_jms.tables.sequences import ReplySequence

T = TypeVar("T")

log = logging.getLogger(__name__)

_LISTED: Final = 20
"""Most missing numbers that a line shows."""
_REST: Final = 20
"""How long a result is kept, in multiples of the time that it took to make."""
_SHORTEST: Final = 2.0


class Ledger(NamedTuple):
    """The ledger of a landing: sequences, incomplete ones first, and the number of messages of each kind. `made_ms`:
    milliseconds since 1970 UTC. `problem`: why there is no ledger; empty if there is one."""

    sequences: list[SequenceLine]
    rejects: list[RejectLine]
    messages: dict[str, int]
    made_ms: int
    problem: str = ""

    @property
    def missing(self) -> int:
        """How many batches are missing."""
        return sum(line.missing_count for line in self.sequences)

    @property
    def complete(self) -> int:
        """How many sequences are complete."""
        return sum(line.complete for line in self.sequences)


class Cached(Generic[T]):
    """Caches a result made from a folder, until the folder has changed and some time has passed. `stamp`: a number that
    differs if the folder has changed; by default that of its last change. Attribute `folder`: the folder."""

    def __init__(self, folder: Path, make: Callable[[], T], *, stamp: Callable[[], int] | None = None) -> None:
        self.folder = folder
        self._make = make
        self._stamped = stamp or partial(_stamp, folder)
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._ready = threading.Event()
        self._made: T | None = None
        self._stamp = -1
        self._until = 0.0

    def latest(self, patience: float = 0.0) -> T | None:
        """What was made last; None if nothing was made yet. If it is old, a thread makes it again. `patience`: seconds
        to wait for the first result."""
        if self._is_old() and self._making.acquire(blocking=False):
            threading.Thread(target=self._renew, name="mtosi-console-folder", daemon=True).start()
        if self._made is None:
            self._ready.wait(patience)
        return self._made

    def _renew(self) -> None:
        try:
            self.get()
        except Exception:
            log.exception("%s cannot be read for the console", self.folder)
        finally:
            self._ready.set()
            self._making.release()

    def _is_old(self) -> bool:
        return self._made is None or (self._stamped() != self._stamp and time.monotonic() >= self._until)

    def forget(self) -> None:
        """Has it made again."""
        with self._lock:
            self._made = None

    def get(self) -> T:
        """What the folder gives now, or gave a little earlier."""
        with self._lock:
            if self._made is None or self._is_old():
                stamp = self._stamped()
                began = time.monotonic()
                self._made, self._stamp = self._make(), stamp
                took = time.monotonic() - began
                self._until = began + took + max(_SHORTEST, _REST * took)
            return self._made


def _stamp(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def report_of(ledger: Ledger, folder: Path) -> str:
    """The ledger as a standalone page."""
    lines = ledger.sequences
    whole = ledger.complete == len(lines) and bool(lines)
    facts = [
        Fact("messages", shown(sum(ledger.messages.values()))),
        Fact("sequences complete", f"{ledger.complete} of {len(lines)}", "good" if whole else "bad"),
        Fact("batches missing", shown(ledger.missing)),
        Fact("duplicates", shown(sum(line.duplicates for line in lines))),
        Fact("rejected", shown(len(ledger.rejects)), "bad" if ledger.rejects else "plain"),
    ]
    return render(
        Report(
            title="MTOSI landing",
            subtitle=str(folder),
            made=dt.datetime.fromtimestamp(ledger.made_ms / 1000, dt.UTC),
            facts=facts,
            sequences=lines,
            rejects=ledger.rejects,
            notes=[ledger.problem] if ledger.problem else [],
        )
    )


def read_ledger(folder: Path) -> Ledger:
    made = int(time.time() * 1000)
    try:
        from mtosi_jms.tables.landing import plan_landing  # needs an extra
        from mtosi_jms.tables.options import SourceOptions

        plan = plan_landing(SourceOptions(paths=(str(folder),)))
    except MtosiError as error:
        return Ledger([], [], {}, made, str(error))
    lines = sorted(map(_line, plan.sequences), key=lambda line: (line.complete, not line.missing_count))
    inside = f"{folder.absolute()}/"
    rejects = [RejectLine(reject.file.removeprefix(inside), reject.line, reject.reason) for reject in plan.rejects]
    return Ledger(lines, rejects, dict(plan.counts), made)


def _line(found: ReplySequence) -> SequenceLine:
    first, last = (time and time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in (found.first_time, found.last_time))
    return SequenceLine(
        name=found.correlation_id if found.correlation_id is not None else Path(found.source or "").name,
        batches=found.batches,
        expected=found.expected,
        missing=found.missing[:_LISTED],
        missing_count=found.missing_count,
        duplicates=found.duplicates,
        conflicts=len(found.conflicts),
        complete=found.complete,
        first_time=first or "",
        last_time=last or "",
    )


_OCTETS: Final = BOUNDS.console_drawing_bytes
"""Most octets of a landing that are read for a network."""
_BODIES: Final = (clark(SOAP11, "Body"), clark(SOAP12, "Body"))
_ENDS: Final = ("aEnd", "zEnd")


class Network:
    """Elements and the links between them, which `read_network` and `read_tables` add. `objects`: how many of each type
    were found. `note`: what was not read. `problem`: why there is no network; empty if there is one."""

    def __init__(self, problem: str = "") -> None:
        self.named: set[str] = set()
        self.objects: Counter[str] = Counter()
        self.note = ""
        self.problem = problem
        self._links: Counter[tuple[str, str, str]] = Counter()
        self._around: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))

    def link(self, first: str, second: str, layer: str) -> None:
        """Add a link of two elements, which has no direction; none if they are the same, or one is missing."""
        if first and second and first != second:
            self._links[min(first, second), max(first, second), layer] += 1
            self._around[first][second][layer] += 1
            self._around[second][first][layer] += 1

    @property
    def links(self) -> int:
        """How many links there are between different elements."""
        return self._links.total()

    @cached_property
    def degree(self) -> dict[str, int]:
        """How many links each element has that has any."""
        return {name: sum(layers.total() for layers in others.values()) for name, others in self._around.items()}

    @cached_property
    def elements(self) -> list[str]:
        """All elements, those with the most links first."""
        return sorted({*self.named, *self._around}, key=lambda name: (-self.degree.get(name, 0), name))

    def find(self, text: str) -> list[str]:
        """The elements with a text in their names, those with the most links first."""
        folded = text.casefold()
        return [name for name in self.elements if folded in name.casefold()]

    def neighbours(self, name: str) -> list[tuple[str, Mapping[str, int]]] | None:
        """The elements next to an element by name, with the number of links to it by layer; None if there is no such
        element."""
        if name in self._around:
            return sorted(self._around[name].items())
        return [] if name in self.named else None

    @cached_property
    def map(self) -> bytes:
        """The network as JSON for the map: the elements with the most links, as far as it has room for them."""
        shown = {name: at for at, name in enumerate(self.elements[: BOUNDS.console_nodes])}
        by_layer: Counter[str] = Counter()
        for (_, _, layer), count in self._links.items():
            by_layer[layer] += count
        layers = [name for name, _ in by_layer.most_common()]
        links = [
            (shown[first], shown[second], layers.index(layer), count)
            for (first, second, layer), count in self._links.most_common()
            if first in shown and second in shown
        ]
        document = {
            "elements": list(shown),
            "links": links[: BOUNDS.console_links],
            "layers": layers,
            "leftOut": len(self.elements) - len(shown),
            "linksLeftOut": max(len(links) - BOUNDS.console_links, 0),
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

    @cached_property
    def mark(self) -> str:
        """A text that differs if the map differs."""
        return hashlib.sha256(self.map).hexdigest()[:16]


def read_network(folder: Path) -> Network:
    """The network in the envelopes of a landing, up to the limit; unreadable envelopes are skipped."""
    try:
        files = scan(folder).envelopes
    except (MtosiError, OSError) as error:
        return Network(str(error))
    found, routes, size = Network(), Routes(is_object), 0
    for number, path in enumerate(files):
        try:
            data = read_document(path)
            size += len(data)
            if size > _OCTETS:
                found.note = f"The first {number:,} of {len(files):,} files were read, for there are many."
                break
            root = parse_xml(data, odd_prefixes=[])
        except (MtosiError, OSError):
            continue
        body = next((child for child in root if child.tag in _BODIES), None)
        for hit in () if body is None else find_objects(body, routes):
            _note(hit, found)
    return found


def _note(hit: Hit, found: Network) -> None:
    kind = label_of(hit.table)
    found.objects[kind] += 1
    name = hit.name or (given_name(hit.element, hit.table) if hit.element is not None else "")
    if element := element_of(name):
        found.named.add(element)
    if hit.element is not None and kind == "TL":
        layer, (starts, ends) = _layer_of(hit.element), (list(_names_at(hit.element, end)) for end in _ENDS)
        for first, second in product(starts, ends):
            found.link(element_of(first), element_of(second), layer)


def _layer_of(link: etree._Element) -> str:
    rate = next((one for one in link if isinstance(one.tag, str) and split_clark(one.tag)[1] == "layerRate"), None)
    text = "" if rate is None else "".join(map(str, rate.itertext())).strip()
    return text.removeprefix("LR_") or "link"


def _names_at(element: etree._Element, end: str) -> Iterator[str]:
    """The object names in the children whose element names begin with `end`."""
    for child in element:
        if not isinstance(child.tag, str) or not split_clark(str(child.tag))[1].startswith(end):
            continue
        for each in child.iter():
            if isinstance(each.tag, str) and len(each) and all(_is_step(part) for part in each):
                yield name_text(each)


def _is_step(element: etree._Element) -> bool:
    return {split_clark(str(part.tag))[1] for part in element if isinstance(part.tag, str)} >= {"type", "value"}


def read_tables(folder: Path) -> Network:
    """The elements of a network, and the links and references between them, from the folders `nodes` and `edges`."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return Network(str(MissingExtraError("pyarrow", "tables")))
    columns = ["src", "dst", "relationship"]
    try:
        nodes = pq.read_table(folder / "nodes", columns=["id", "type", "known"])
        edges = pq.read_table(folder / "edges", columns=columns, filters=[("kind", "!=", "containment")])
    except (OSError, ValueError, pa.ArrowException) as error:
        return Network(f"{folder}: no topology as mtosi-jms topology writes it: {error}")
    found = Network()
    for name, kind, known in zip(*(column.to_pylist() for column in nodes.columns), strict=True):
        found.objects[str(kind)] += bool(known)
        if kind == "ME" and known:
            found.named.add(str(name))
    for source, target, layer in zip(*(column.to_pylist() for column in edges.columns), strict=True):
        found.link(element_of(str(source)), element_of(str(target)), str(layer))
    return found
