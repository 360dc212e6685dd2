"""Proves stubs against schemas: class tables and instances for every message of every operation, on all cores.

Each worker process reads the repaired schemas with xmlschema and libxml2 and imports the stubs. The calling process
does neither.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from lxml import etree

from mtosi_codegen.findings import Finding
from mtosi_codegen.load import Bindings
from mtosi_codegen.mend import mend
from mtosi_codegen.proof.instances import Kind, Maker, Stock
from mtosi_codegen.proof.messages import Message, messages_of
from mtosi_codegen.proof.oracle import Oracle
from mtosi_codegen.proof.stubs import Stubs
from mtosi_codegen.proof.tables import Difference, Tables
from mtosi_jms.errors import ConfigError, MtosiError, SchemaError
from mtosi_jms.namespaces import XSI, split_clark
from mtosi_jms.xmlbind import XmlObject, XmlWarning, decode, encode

_TYPE = f"{{{XSI}}}type"


def round_trip(document: etree._Element, cls: type[XmlObject], oracle: Oracle, path: str) -> Difference | None:
    """Decode and encode a valid document; return the first difference, None if there is none.

    Args:
        document: valid by libxml2 and xmlschema.
        path: name of the document in reports.
    """
    warnings: list[XmlWarning] = []
    try:
        value = decode(etree.tostring(document), cls, warnings=warnings)
        if warnings:
            return Difference(f"{path} {warnings[0].path}", "valid", f"decodes with a warning: {warnings[0].message}")
        written = etree.fromstring(encode(value))
    except MtosiError as error:
        return Difference(path, "valid", f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - whatever damaged stubs raise is a difference
        return Difference(path, "valid", f"{type(error).__name__}: {error}")
    place = differing(document, written)
    if place is not None:
        return Difference(f"{path} {place[0]}", place[1], place[2])
    problem = oracle.refused(written)
    return Difference(path, "valid", f"encodes to what is not: {problem}") if problem else None


def differing(one: etree._Element, other: etree._Element) -> tuple[str, str, str] | None:
    """The first difference of two documents, besides prefixes: its path and both contents; None if there is none."""
    pairs = [(one, other, f"/{split_clark(str(one.tag))[1]}")]
    while pairs:
        left, right, path = pairs.pop()
        if left.tag != right.tag:
            return path, str(left.tag), str(right.tag)
        if _attributes(left) != _attributes(right):
            return path, f"attributes {_attributes(left)}", f"attributes {_attributes(right)}"
        if (left.text or "") != (right.text or "") or (left.tail or "") != (right.tail or ""):
            return path, f"text {left.text!r}", f"text {right.text!r}"
        children, others = list(left), list(right)
        if len(children) != len(others):
            return path, _names(children), _names(others)
        pairs += [(a, b, f"{path}/{split_clark(str(a.tag))[1]}") for a, b in zip(children, others, strict=True)]
    return None


def _attributes(element: etree._Element) -> dict[str, str]:
    found = {str(name): str(value) for name, value in element.attrib.items()}
    if _TYPE in found:
        prefix, _, local = found[_TYPE].rpartition(":")
        found[_TYPE] = f"{{{element.nsmap.get(prefix or None) or ''}}}{local}"
    return found


def _names(elements: list[etree._Element]) -> str:
    return "children " + " ".join(split_clark(str(element.tag))[1] for element in elements)


_CHUNK: Final = 30
_FEW: Final = 100
_GREATEST: Final = 4
_NAME: Final = "mtosi_codegen_verified"
_SEED: Final = 1


@dataclass(slots=True)
class Proof:
    """The result of a proof.

    Attributes:
        types: number of pairs of type and class that were compared.
        instances, elements: number of documents that went through the stubs, and of elements in them.
        differences: the differences, each once, in the order of the messages.
        skipped: messages whose element no schema has: the wrappers of the rpc style.
        doubts: what the proof could not use, so that it says less.
    """

    messages: tuple[Message, ...] = ()
    types: int = 0
    instances: int = 0
    elements: int = 0
    differences: list[Difference] = field(default_factory=list)
    skipped: list[Message] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()
    doubts: list[str] = field(default_factory=list)

    def add(self, other: Proof) -> None:
        """Add the result of a part of the proof."""
        self.types += other.types
        self.instances += other.instances
        self.elements += other.elements
        self.differences += [one for one in other.differences if one not in self.differences]
        self.skipped += other.skipped
        self.doubts += [one for one in other.doubts if one not in self.doubts]


def verify(
    sources: Sequence[Path | str],
    package: Path,
    *,
    operations: Sequence[str] | None = None,
    bindings: Bindings = "jms",
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> Proof:
    """Prove a generated package against its sources; if they have no operations, prove the classes.

    Args:
        operations: names of operations, as `Service.operation` or `operation`; None for all.
        bindings: `jms`, or `all` to take other SOAP bindings too.
        progress: called with the number of messages done and their total number.
        workers: number of processes; None for one per core.

    Raises:
        SchemaError: no sources, no such operation, schemas that xmlschema refuses even after repair, or no
            package in the folder.
        ConfigError: a process ended before its work was done.
    """
    if not (package / "__init__.py").is_file():
        raise SchemaError("no generated package: run mtosi-codegen generate first", file=str(package))
    with tempfile.TemporaryDirectory(prefix="mtosi-codegen-") as folder:
        mended = mend(sources, folder, bindings=bindings)
        messages = messages_of(mended.services, operations, mended.findings)
        whole = Proof(tuple(messages), findings=mended.findings)
        tasks: list[tuple[Callable[[Sequence[Message]], Proof], Sequence[Message]]]
        tasks = [(partial(_compare, whole=operations is None), messages)]
        tasks += [(_send, messages[start : start + _CHUNK]) for start in range(0, len(messages), _CHUNK)]
        # Every process reads all schemas, which costs more than the few messages of a small set.
        count = workers or (_cores() if len(messages) > _FEW else 1)
        settings = (mended.schema, package.resolve())
        done = 0
        with ProcessPoolExecutor(count, get_context("spawn"), _prepare, settings) as pool:
            futures = {pool.submit(task, part): (number, task, part) for number, (task, part) in enumerate(tasks)}
            parts: dict[int, Proof] = {}
            try:
                for future in as_completed(futures):
                    number, task, part = futures[future]
                    parts[number] = future.result()
                    done += len(part) if task is _send else 0
                    if progress is not None:
                        progress(done, len(messages))
            except BrokenProcessPool:
                raise ConfigError("a process of the proof ended before its work was done") from None
            finally:
                pool.shutdown(cancel_futures=True)
        for _, part_proof in sorted(parts.items()):
            whole.add(part_proof)
    return whole


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True)
class _Workshop:
    """The state of a process: the model and the stubs, or the reason why one is missing."""

    stock: Stock | None = None
    stubs: Stubs | None = None
    error: MtosiError | None = None
    problem: str = ""


_workshop: Final = _Workshop()


def _prepare(schema: Path, package: Path) -> None:
    try:
        _workshop.stock = Stock(Oracle(schema))
    except MtosiError as error:
        _workshop.error = error
    except Exception as error:  # noqa: BLE001 - an initializer that raises would end all processes without a message
        _workshop.error = ConfigError(f"the schemas cannot be read: {type(error).__name__}: {error}")
    try:
        _workshop.stubs = Stubs(package, _NAME)
    except Exception as error:  # noqa: BLE001 - whatever damaged stubs raise is a difference
        _workshop.problem = f"{type(error).__name__}: {error}"


def _compare(messages: Sequence[Message], *, whole: bool) -> Proof:
    stock, stubs = _tools()
    problem = _workshop.problem
    try:
        if stubs is not None:
            return compare(stock.oracle, stubs, messages, whole=whole)
    except Exception as error:  # noqa: BLE001 - a module is imported on first use, and may be damaged
        problem = f"{type(error).__name__}: {error}"
    return Proof(differences=[Difference("/", "a package", f"cannot be imported: {problem}")])


def _send(messages: Sequence[Message]) -> Proof:
    stock, stubs = _tools()
    return send(stock, stubs, messages) if stubs is not None else Proof()


def _tools() -> tuple[Stock, Stubs | None]:
    if _workshop.stock is None:
        raise _workshop.error or ConfigError("a process was not prepared")
    return _workshop.stock, _workshop.stubs


def compare(oracle: Oracle, stubs: Stubs, messages: Sequence[Message], *, whole: bool = True) -> Proof:
    """Compare classes with the model.

    Args:
        messages: the messages whose classes are compared, with all classes that these may contain.
        whole: whether to compare all other elements and types of the package as well.
    """
    tables, skipped = Tables(oracle, stubs), []
    for message in messages:
        cls, declaration = stubs.class_of(message), oracle.element(message.element)
        if isinstance(cls, str):
            tables.differences.append(Difference(message.path, f"element {message.element}", cls))
        elif declaration is None:
            skipped.append(message)
        else:
            tables.check(declaration, cls.__xml__, message.path)
    if whole:
        tables.check_rest()
    differences, doubts = list(dict.fromkeys(tables.differences)), [oracle.doubt] if oracle.doubt else []
    return Proof(types=tables.types, differences=differences, skipped=skipped, doubts=doubts)


def send(stock: Stock, stubs: Stubs, messages: Sequence[Message]) -> Proof:
    """Send instances of each message through the stubs: smallest, largest with all alternatives, and random ones."""
    found = Proof()
    kinds: tuple[Kind, ...] = ("least", "greatest", "random")
    makers = [Maker(stock, kind, _SEED) for kind in kinds]
    for message in messages:
        cls = stubs.class_of(message)
        if not isinstance(cls, str):
            for maker in makers:
                _send_instances(message, cls, maker, stock.oracle, found)
    return found


def _send_instances(message: Message, cls: type[XmlObject], maker: Maker, oracle: Oracle, found: Proof) -> None:
    declaration = oracle.element(message.element)
    if declaration is None:
        return
    for _ in range(_GREATEST):
        before = maker.fresh
        try:
            document = maker.make(declaration)
        except SchemaError as error:
            found.differences.append(Difference(message.path, f"no instance can be made: {error}", "not tried"))
            return
        problems = oracle.problems(document)
        if problems:
            found.differences.append(Difference(message.path, f"an instance is refused: {problems[0]}", "not tried"))
            return
        found.instances += 1
        found.elements += sum(1 for _ in document.iter("*"))
        difference = round_trip(document, cls, oracle, f"{message.path} ({maker.kind})")
        if difference is not None:
            found.differences.append(difference)
            return
        if maker.fresh == before:  # a further instance would show nothing new
            return
