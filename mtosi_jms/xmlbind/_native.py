"""The choice of the core, and the bridge between the native core and Python.

The native core (the module `_core`, built from `native/`) makes objects directly from the octets of a document. This
module describes each class to it once. It leaves *odd* content to Python: single elements to the lenient reader, whole
documents to the reader that works on a tree.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from operator import itemgetter
from pathlib import Path
from types import MemberDescriptorType
from typing import Any, Final, Literal, NamedTuple
from zipimport import zipimporter

from lxml import etree

from mtosi_jms.errors import ConfigError, DecodeError, MtosiError
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind._canonical import Scopes
from mtosi_jms.xmlbind._issues import Issues, XmlWarning
from mtosi_jms.xmlbind._objects import XmlObject, find_element
from mtosi_jms.xmlbind._parser import XmlLimits, make_parser
from mtosi_jms.xmlbind._plan import KEEP, LEAF, OBJECT, STRING, Out, Plan, Slot, plan_of, write_plan
from mtosi_jms.xmlbind._reader import Reader, named_type
from mtosi_jms.xmlbind._simpletypes import EnumType, SimpleType
from mtosi_jms.xmlbind._table import ClassTable
from mtosi_jms.xmlbind._values import NIL, Extras

VARIABLE: Final = "MTOSI_JMS_CORE"
"""The environment variable that chooses the core: `python` or `native`."""

_MODULE: Final = "mtosi_jms.xmlbind._core"
_NONE, _LIST, _ODD = range(3)
_CODES: Final = {STRING: 0, LEAF: 0, OBJECT: 1, KEEP: 2}
_EXTRAS: Final[Any] = XmlObject.__dict__["extras"]


class Core(NamedTuple):
    """The core that reads documents."""

    name: Literal["native", "python"]
    reason: str


class _Bridge:
    nil: Final = NIL

    def find(self, tag: str, package: str | None) -> ClassTable | None:
        """Return the table of the class of a root; `package` takes precedence over all other packages."""
        cls = find_element(tag, package)
        return cls.__xml__ if cls is not None else None

    def extras(self, attributes: dict[str, str]) -> Extras:
        """Return the extras of an object with attributes for which its class has no fields."""
        return Extras(attributes=attributes)

    def describe(self, table: ClassTable) -> tuple[Any, ...]:
        """Return a class as data; `plans.rs` describes the form."""
        plan = plan_of(table)
        cls = table.cls
        names = _names(cls)
        numbers = {name: number for number, name in enumerate(names)}
        is_readable = plan.mixed is None and not table.abstract
        absent = _absent(cls, plan, names) if is_readable else None
        counted = {name for name, _, _ in plan.bounded} - {wild.name for wild in plan.wildcards}
        shape = (cls, absent) if absent is not None else None
        head = (shape, plan.ordered, plan.grammar is not None or bool(counted))
        slots = [(*split_clark(tag), *_slot_data(tag, slot, numbers)) for tag, slot in plan.slots.items()]
        attributes = [
            (*split_clark(tag), numbers[slot.name], _kind(slot))
            for tag, slot in plan.attributes.items()
            if slot.field.max
        ]
        text = (numbers[plan.text.name], _kind(plan.text)) if plan.text is not None else None
        return head, slots, attributes, text

    def describe_writing(self, table: ClassTable) -> dict[str, Any]:
        """Return a class as data for writing; `Class` of `writer.rs` describes the form."""
        plan = write_plan(table)
        names = _names(table.cls)
        numbers = {name: number for number, name in enumerate(names)}
        descriptors = _descriptors(table.cls, names) if plan.mixed is plan.barred is None else None
        return {
            "plan": plan,
            "table": table,
            "shape": (table.cls, [(one, _NONE) for one in descriptors]) if descriptors is not None else None,
            "attributes": [_out_data(out, numbers) for out in plan.attributes],
            "text": _out_data(plan.text, numbers) if plan.text is not None else None,
            "outs": [_out_data(out, numbers) for out in plan.outs],
            "modelled": plan.reading.grammar is not None,
        }

    def describe_kind(self, kind: SimpleType) -> dict[str, Any]:
        members: dict[int, str] = {}
        bounds = None
        if isinstance(kind, EnumType):
            members = {id(member): text for text, member in kind.known.items() if text is not None}
        elif type(kind) is SimpleType and kind.arrow == "boolean" and kind.facets is None:
            members = {id(True): "true", id(False): "false"}
        elif type(kind) is SimpleType and kind.canonical is not None and kind.canonical[0] == "integer":
            bounds = kind.canonical[1:]
        return {"members": members, "bounds": bounds, "format": kind.format, "known": {}, "source": kind}

    def order(self, table: ClassTable, counts: Sequence[int]) -> list[int] | None:
        """Return the order of fields in a content model; None if the model does not allow these numbers of each."""
        plan = write_plan(table)
        grammar = plan.reading.grammar
        held = {out.name: count for out, count in zip(plan.outs, counts, strict=True) if count}
        if grammar is None or grammar.problem(held) is not None or not grammar.decides(held):
            return None
        numbers = {out.name: number for number, out in enumerate(plan.outs)}
        return [numbers[name] for name in grammar.order(held)]

    def allows(self, table: ClassTable, order: Sequence[int]) -> bool:
        """Whether the content model allows the order of fields in a document, so that it need not be kept."""
        plan = plan_of(table)
        names = _names(table.cls)
        found = [names[number] for number in order]
        counts = dict(Counter(found))
        for name, least, most in plan.bounded:
            count = counts.get(name, 0)
            if (most is not None and count > most) or 0 < count < least:
                return False
        if plan.grammar is None:
            return True
        if plan.grammar.problem(counts) is not None or not plan.grammar.allows(found):
            return False
        return not plan.interleaved or (found == plan.grammar.order(counts) and plan.grammar.decides(counts))

    def derived(self, table: ClassTable, slot: Slot | None, name: str) -> ClassTable | None:
        """Return the table that an xsi:type names, which may be the declared one; None if the xsi:type is odd."""
        declared = table.declared
        if name == declared.type_qname and declared.type_name:
            return table
        derived, wrong = named_type(name, table, slot.field.block if slot is not None else ())
        return derived if derived is not table and not wrong else None


def _names(cls: Any) -> list[str]:
    """Return the fields of a class in the order of their numbers: `extras` first."""
    return ["extras", *(field.name for field in fields(cls) if field.name != "extras")]


def _descriptors(cls: Any, names: Sequence[str]) -> list[Any] | None:
    """Return the descriptors of the fields; None for a class whose fields are not all plain slots."""
    plain = cls.__getattribute__ is object.__getattribute__ and not cls.__dictoffset__
    found = [_EXTRAS if name == "extras" else getattr(cls, name, None) for name in names]
    return found if plain and all(type(one) is MemberDescriptorType for one in found) else None


def _absent(cls: Any, plan: Plan, names: Sequence[str]) -> list[tuple[Any, int]] | None:
    """Return the descriptors of the fields, and the value of each that a document lacks; None for an odd class."""
    known = {field.name: field for field in fields(cls)}
    descriptors = _descriptors(cls, names)
    plain = cls.__new__ is object.__new__ and cls.__setattr__ is object.__setattr__
    if descriptors is None or not plain or hasattr(cls, "__post_init__"):
        return None
    found: list[tuple[Any, int]] = []
    for name, descriptor in zip(names, descriptors, strict=True):
        if name in plan.required:
            found.append((descriptor, _ODD))
        elif known[name].default_factory is list:
            found.append((descriptor, _LIST))
        elif known[name].default is None or (name in plan.dropped and known[name].default is MISSING):
            found.append((descriptor, _NONE))
        else:
            return None
    return found


def _out_data(out: Out, numbers: dict[str, int]) -> dict[str, Any]:
    qualified = isinstance(out.target, SimpleType) and out.target.qualified
    abstract = out.kind == OBJECT and out.target.abstract
    known = out.kind in (STRING, LEAF, OBJECT)
    return {
        "field": numbers[out.name],
        "start": f"<{out.tag}>",
        "end": f"</{out.tag}>",
        "many": out.many,
        "required": out.required,
        "least": out.field.min,
        "most": out.field.max,
        "is_odd": not known or qualified or abstract or out.field.max == 0,
        "simple": out.target if out.kind == LEAF else None,
        "object": out.target if out.kind == OBJECT else None,
        "source": out,
    }


def _slot_data(tag: str, slot: Slot, numbers: dict[str, int]) -> tuple[Any, ...]:
    member = tag != slot.field.tag
    nillable = slot.field.nillable and not member
    target = _kind(slot) if slot.kind in (STRING, LEAF) else slot.target
    return numbers[slot.name], _CODES[slot.kind], slot.many, slot.order, nillable, member, target, slot


def _kind(slot: Slot) -> SimpleType | None:
    """Return the simple type of a field; None if a text is its own value."""
    return None if slot.kind == STRING else slot.target


_OddElement = tuple[int, int, tuple[bytes, bytes, int], Slot, Any, int | None]

_BATCH: Final = 1 << 16
"""Octets of odd elements that are parsed together."""


def _batches(elements: Sequence[_OddElement]) -> Iterator[list[_OddElement]]:
    """Yield neighbours with the same elements and scopes around them, which share a small document."""
    batch: list[_OddElement] = []
    octets = 0
    for element in elements:
        start, end, around = element[:3]
        if batch and (around != batch[0][2] or octets + end - start > _BATCH):
            yield batch
            batch, octets = [], 0
        batch.append(element)
        octets += end - start
    if batch:
        yield batch


class _Lines:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0
        self._line = 1

    def at(self, place: int) -> int:
        self._line += self._data.count(b"\n", self._place, place)
        self._place = place
        return self._line


class _Again:
    def __init__(self, data: bytes, limits: XmlLimits, native: Any) -> None:
        self.warnings: list[XmlWarning] = []
        self._data = data
        self._limits = limits
        self._native = native

    def __call__(
        self,
        elements: Sequence[_OddElement],
        attributes: Sequence[tuple[int, int, ClassTable, Sequence[str]]],
    ) -> bool:
        """Put the values of odd elements in their places; return False if the document has to be read from its tree.

        `reader.rs` describes the form of the arguments.
        """
        issues = Issues()
        reported: list[tuple[int, list[XmlWarning]]] = []
        lines = _Lines(self._data)
        for place, end, table, names in attributes:
            issues.found = []
            for message in filter(None, map(plan_of(table).unknown_attribute, names)):
                issues.tell("unknown-attribute", message, "", lines.at(end))
            if issues.found:
                reported.append((place, issues.found))
        lines = _Lines(self._data)
        reader = Reader(issues)
        for batch in _batches(elements):
            around = self._parsed(batch)
            if around is None:
                return False
            reader.scopes = Scopes()
            line = 1
            for element, (start, end, _, slot, holder, index) in zip(around, batch, strict=True):
                issues.lines_before = lines.at(start) - line
                line += self._data.count(b"\n", start, end)
                issues.paths.start_at(element, "")
                issues.found = []
                try:
                    value = reader.child(element, slot)
                except (RecursionError, MtosiError):
                    return False
                if value is None:
                    return False
                if index is None:
                    setattr(holder, slot.name, value)
                else:
                    holder[index] = value
                if issues.found:
                    reported.append((start, issues.found))
        if reported:
            reported.sort(key=itemgetter(0))
            paths = self._native.paths(self._data, [place for place, _ in reported])
            self.warnings = [
                XmlWarning(warning.rule, warning.message, path + warning.path, warning.line)
                for path, (_, found) in zip(paths, reported, strict=True)
                for warning in found
            ]
        return True

    def _parsed(self, batch: Sequence[_OddElement]) -> etree._Element | None:
        """Return an element with the odd elements of a batch in it; None if libxml2 refuses them."""
        before, after, depth = batch[0][2]
        octets = b"".join(self._data[start:end] for start, end, *_ in batch)
        try:
            around = etree.fromstring(before + octets + after, make_parser(self._limits))
        except etree.XMLSyntaxError:
            return None
        for _ in range(depth - 1):
            around = around[0]
        return around

    def report(self, warnings: list[XmlWarning] | None, *, strict: bool, source: str | None) -> None:
        """Append the warnings to a list. Raises DecodeError: in strict mode, for the first warning."""
        if strict and self.warnings:
            first = self.warnings[0]
            raise DecodeError(first.message, source=source, line=first.line, path=first.path)
        if warnings is not None:
            warnings += self.warnings


class _Native(NamedTuple):
    module: Any
    bridge: _Bridge
    reader: Any
    writer: Any


_CHOSEN: tuple[Core, _Native | None] | None = None


def core() -> Core:
    """Return the core that reads documents in this process, and why it was chosen. Raises ConfigError: the environment
    asks for an unknown core, or for the native core, which is not there."""
    return _chosen()[0]


def _chosen() -> tuple[Core, _Native | None]:
    global _CHOSEN
    if _CHOSEN is None:
        _CHOSEN = _choose(os.environ.get(VARIABLE, ""))
    return _CHOSEN


def native_module() -> Any | None:
    """Return the native module; None if the Python core is used. Raises ConfigError: as `core`."""
    native = _chosen()[1]
    return native.module if native is not None else None


def _choose(requested: str) -> tuple[Core, _Native | None]:
    if requested not in ("", "python", "native"):
        raise ConfigError(f"{VARIABLE} is python or native, not {requested[:60]!r}")
    if requested == "python":
        return Core("python", f"{VARIABLE} asks for it"), None
    try:
        module = _library()
    except ImportError as error:
        missing = getattr(error, "name", None) == _MODULE
        reason = "this installation has no native core" if missing else f"the native core does not load: {error}"
        if requested:
            raise ConfigError(f"{VARIABLE} asks for the native core, but {reason}") from None
        return Core("python", reason), None
    reason = f"{VARIABLE} asks for it" if requested else "it is installed"
    bridge = _Bridge()
    return Core("native", reason), _Native(module, bridge, module.Core(bridge), module.Writer(bridge))


def _library() -> Any:
    loader = globals()["__loader__"]
    if isinstance(loader, zipimporter):
        return _packed_core(loader)
    return importlib.import_module(_MODULE)


def _packed_core(archive: zipimporter) -> Any:
    """Import the native core from an archive on the search path, such as Spark's `--py-files`. A system loads libraries
    from files only, so the core is unpacked for as long as that takes."""
    from importlib.machinery import EXTENSION_SUFFIXES

    for suffix in EXTENSION_SUFFIXES:
        try:
            library = archive.get_data(os.path.join(archive.archive, *_MODULE.split(".")) + suffix)  # noqa: PTH118
        except OSError:
            continue
        try:
            return _loaded(library, suffix)
        except OSError as error:
            raise ImportError(f"it cannot be unpacked: {error}") from error
    raise ModuleNotFoundError(f"no {_MODULE} in {archive.archive}", name=_MODULE)


def _loaded(library: bytes, suffix: str) -> Any:
    import tempfile
    from importlib.util import module_from_spec, spec_from_file_location

    # Windows keeps a library that is loaded.
    with tempfile.TemporaryDirectory(prefix="mtosi-core-", ignore_cleanup_errors=True) as folder:
        file = Path(folder, f"core{suffix}")
        file.write_bytes(library)
        spec = spec_from_file_location(_MODULE, file)
        assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - the suffix is that of a library
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.modules[_MODULE] = module
    return module


def native_writer() -> Any:
    native = _chosen()[1]
    return native.writer.encode if native is not None else None


def native_stream(lookup: Callable[[ClassTable | None, str], tuple[ClassTable | None, bool]], limits: XmlLimits) -> Any:
    """Return a native reader of objects from a document that arrives in pieces; None without the native core.

    Args:
        lookup: gets the table of the class above an element, and its name; returns the table of its class, and whether
            the caller wants it as an object.
    """
    native = _chosen()[1]
    return native.module.Stream(native.bridge, lookup, native_bounds(limits)) if native is not None else None


def read_natively(
    data: bytes,
    cls: type[XmlObject] | None,
    *,
    warnings: list[XmlWarning] | None,
    strict: bool,
    source: str | None,
    limits: XmlLimits,
) -> Any:
    """Return the object of a document; None, without any warnings, if the document has to be read from its tree.

    The arguments are those of `decode`.
    """
    native = _chosen()[1]
    if native is None or len(data) > limits.max_bytes:
        return None
    again = _Again(data, limits, native.module)
    value = native.reader.decode(data, cls.__xml__ if cls is not None else None, again, native_bounds(limits))
    if value is not None:
        again.report(warnings, strict=strict, source=source)
    return value


class Enveloped(NamedTuple):
    """The content of an envelope with nothing but a header and a body.

    Attributes:
        header, body: the objects.
        cuts: offsets of the begin and the end of the header, of the begin and the end of the name in the start tag of
            the body element, and of the begin of the name in its end tag; None if an envelope with another header or
            name cannot keep all other octets.
    """

    header: Any
    body: Any
    namespace: str
    warnings: list[XmlWarning]
    cuts: tuple[int, int, int, int, int] | None


def read_enveloped(
    data: bytes, header: type[XmlObject], package: str | None, *, strict: bool, source: str | None, limits: XmlLimits
) -> Enveloped | None:
    """Return the objects of an envelope; None, without any warnings, if it has to be read from its tree.

    Args:
        header: class of the element of the header.
        package: generated package that takes precedence over all others.
        strict, source, limits: as for `decode`.

    Raises:
        DecodeError: in strict mode.
    """
    native = _chosen()[1]
    if native is None or len(data) > limits.max_bytes:
        return None
    again = _Again(data, limits, native.module)
    read = native.reader.envelope(data, header.__xml__, package, again, native_bounds(limits))
    if read is None:
        return None
    warnings: list[XmlWarning] = []
    again.report(warnings, strict=strict, source=source)
    return Enveloped(read[0], read[1], read[2], warnings, read[3] if not warnings else None)


def native_bounds(limits: XmlLimits) -> tuple[int, int, int, int]:
    """Return limits as data; `Bounds` of `tokens.rs` describes the form."""
    return limits.max_depth, limits.max_attributes, limits.max_namespaces, limits.max_nodes
