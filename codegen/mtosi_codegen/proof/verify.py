"""The proof: every message of every operation, class tables and instances, on all cores.

Each process reads the mended schemas with xmlschema and libxml2 and imports the stubs for itself; the calling process
imports neither.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Final, Literal

from mtosi_codegen.findings import Finding
from mtosi_codegen.load import Bindings
from mtosi_codegen.mend import mend
from mtosi_codegen.proof.instances import Maker, Stock
from mtosi_codegen.proof.messages import Message, messages_of
from mtosi_codegen.proof.oracle import Oracle
from mtosi_codegen.proof.roundtrip import round_trip
from mtosi_codegen.proof.tables import Difference, Tables
from mtosi_jms.errors import ConfigError, MtosiError, SchemaError
from mtosi_jms.service import ServiceInfo
from mtosi_jms.xmlbind import XmlObject

_CHUNK: Final = 30
_FEW: Final = 100
_GREATEST: Final = 4
_NAME: Final = "mtosi_codegen_verified"
_SEED: Final = 1


@dataclass(slots=True)
class Proof:
    """What came of it.

    Attributes:
        messages: what was to be proven.
        types: how many pairs of type and class were compared.
        instances, elements: how many documents went through the stubs, and how many elements they had.
        differences: what differs, each once, in the order of the messages.
        findings: what was wrong with the sources.
    """

    messages: tuple[Message, ...] = ()
    types: int = 0
    instances: int = 0
    elements: int = 0
    differences: list[Difference] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()

    def add(self, other: Proof) -> None:
        """Take in the result of a part."""
        self.types += other.types
        self.instances += other.instances
        self.elements += other.elements
        self.differences += [one for one in other.differences if one not in self.differences]


def verify(
    sources: Sequence[Path | str],
    package: Path,
    *,
    operations: Sequence[str] | None = None,
    bindings: Bindings = "jms",
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> Proof:
    """Prove a generated package against its sources.

    Args:
        sources: WSDLs, XML Schemas and folders of them.
        package: folder of the package.
        operations: names of operations, with or without their service's name before a dot; None for all.
        bindings: `jms`, or `all` to take other SOAP bindings too.
        progress: is told how many messages are done, and of how many.
        workers: number of processes; None for one for each core.

    Raises:
        SchemaError: no sources, no such operation, schemas that xmlschema or libxml2 refuses even when mended, or no
            package in the folder.
        ConfigError: a process ended before its work.
    """
    if not (package / "__init__.py").is_file():
        raise SchemaError("no generated package: run mtosi-codegen generate first", file=str(package))
    with tempfile.TemporaryDirectory(prefix="mtosi-codegen-") as folder:
        mended = mend(sources, folder, bindings=bindings)
        messages = messages_of(mended.services, operations)
        if not messages:
            raise SchemaError("nothing to verify: no operation in the sources")
        whole = Proof(tuple(messages), findings=mended.findings)
        tasks = [(_tables, messages)]
        tasks += [(_round_trips, messages[start : start + _CHUNK]) for start in range(0, len(messages), _CHUNK)]
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
                    done += len(part) if task is _round_trips else 0
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
    """What a process has: the model, the stubs, or why there is none."""

    stock: Stock | None = None
    services: dict[tuple[str, str], ServiceInfo] = field(default_factory=dict)
    problem: str = ""
    error: MtosiError | None = None


_workshop: Final = _Workshop()


def _prepare(schema: Path, package: Path) -> None:
    try:
        _workshop.stock = Stock(Oracle(schema))
    except MtosiError as error:
        _workshop.error = error
    try:
        _workshop.services = _load(package)
    except Exception as error:  # noqa: BLE001 - whatever damaged stubs raise is a difference
        _workshop.problem = f"{type(error).__name__}: {error}"


def _load(package: Path) -> dict[tuple[str, str], ServiceInfo]:
    """Import the package under a name of its own; the services by interface and namespace."""
    spec = importlib.util.spec_from_file_location(
        _NAME, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    spec.loader.exec_module(module)
    found = {}
    for path in module.__services__:
        name, _, cls = path.partition(":")
        info: ServiceInfo = getattr(importlib.import_module(f"{_NAME}.{name}"), cls).__service__
        found[info.name, info.namespace] = info
    return found


def _stock() -> Stock:
    if _workshop.error is not None:
        raise _workshop.error
    assert _workshop.stock is not None
    return _workshop.stock


def _class_of(message: Message) -> type[XmlObject] | Difference:
    """The class that a stub's operation has for a message."""
    info = _workshop.services.get((message.service, message.namespace))
    operation = info.by_name.get(message.operation) if info is not None else None
    if info is None or operation is None:
        missing = "operation" if info is not None else "service"
        return Difference(message.path, f"element {message.element}", f"no such {missing}")
    try:
        cls = info.load(getattr(operation, message.role))
        if cls.__xml__.tag == message.element:
            return cls
        if message.role == "fault":  # a stub names one of several
            other = Tables(_stock().oracle, _NAME).class_of(message.element, "__elements__")
            if other is not None:
                return other
        return Difference(message.path, f"element {message.element}", f"element {cls.__xml__.tag}")
    except Exception as error:  # noqa: BLE001 - whatever damaged stubs raise is a difference
        return Difference(message.path, f"element {message.element}", f"{type(error).__name__}: {error}")


def _tables(messages: Sequence[Message]) -> Proof:
    """Compare the classes of all messages."""
    stock, found = _stock(), Proof()
    if _workshop.problem:
        found.differences.append(Difference("/", "a package", f"cannot be imported: {_workshop.problem}"))
        return found
    tables = Tables(stock.oracle, _NAME)
    for message in messages:
        cls, declaration = _class_of(message), stock.oracle.element(message.element)
        if isinstance(cls, Difference):
            tables.differences.append(cls)
        elif declaration is not None:
            tables.check(declaration, cls.__xml__, message.path)
    found.types, found.differences = tables.types, tables.differences
    return found


def _round_trips(messages: Sequence[Message]) -> Proof:
    """Send instances of some messages through the stubs."""
    stock, found = _stock(), Proof()
    kinds: tuple[Literal["least", "greatest", "random"], ...] = ("least", "greatest", "random")
    makers = [Maker(stock, kind, _SEED) for kind in kinds]
    for message in messages if not _workshop.problem else ():
        cls = _class_of(message)
        if not isinstance(cls, Difference):
            for maker in makers:
                _instances(message, cls, maker, stock.oracle, found)
    return found


def _instances(message: Message, cls: type[XmlObject], maker: Maker, oracle: Oracle, found: Proof) -> None:
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
        if maker.fresh == before:  # nothing that another one would show
            return
