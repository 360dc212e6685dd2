"""Every bound on what others can make the SDK spend: bytes, elements, depth, number and seconds, in one table.

What reads or keeps foreign input takes its bound from here. `mtosi-jms doctor` prints the table, and docs/security.md
has it. Another bound is a field of `Bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

__all__ = ["BOUNDS", "Bound", "Bounds", "table"]

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_SIZES: Final = ((_GIB, "GiB"), (_MIB, "MiB"), (_KIB, "KiB"))


_HTTP: Final = "gateway, serve --http"
_LANDING: Final = "landing and archives"
_SCHEMAS: Final = "WSDL and XSD"


class Bound(NamedTuple):
    """One bound.

    Attributes:
        door: where the input comes in.
        counts: what is counted.
        unit: of the value: bytes, characters, seconds, or what there is a number of.
        options: what changes it: a field `Class.name`, an option `--name` of commands; empty: it is fixed.
    """

    name: str
    door: str
    counts: str
    unit: str
    value: float
    options: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The value with its unit, for people: `64 MiB`, `200,000 elements`."""
        value, unit = self.value, self.unit
        for size, name in _SIZES if unit == "bytes" else ():
            if value % size == 0:
                value, unit = value / size, name
                break
        return f"{value:,.0f} {unit}"


def _bound(value: float, unit: str, door: str, counts: str, *options: str) -> Any:
    return field(default=value, metadata={"bound": (door, counts, unit, value, options)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The defaults; `table` says what each counts."""

    xml_bytes: int = _bound(256 * _MIB, "bytes", "XML", "a document, unpacked", "xmlbind.XmlLimits.max_bytes")
    xml_depth: int = _bound(200, "levels", "XML", "elements in elements", "xmlbind.XmlLimits.max_depth")
    xml_nodes: int = _bound(
        5_000_000,
        "elements and attributes",
        "XML",
        "of a document, or of one object of a stream",
        "xmlbind.XmlLimits.max_nodes",
    )
    xml_attributes: int = _bound(1_000, "attributes", "XML", "of one element", "xmlbind.XmlLimits.max_attributes")
    xml_namespaces: int = _bound(
        4_096, "declarations", "XML", "namespaces in scope", "xmlbind.XmlLimits.max_namespaces"
    )
    xml_defaults: int = _bound(256 * _MIB, "bytes", "XML", "attribute defaults of a schema's DTD, written out")
    stream_quiet: int = _bound(32 * _MIB, "bytes", "XML", "of a stream without the begin or end of an element")
    validation_issues: int = _bound(
        1_000, "issues", "XML", "listed for one document", "validation.Validator.max_issues"
    )
    log_bytes: int = _bound(1 * _MIB, "bytes", "XML", "of an envelope in the wire log")

    source_bytes: int = _bound(64 * _MIB, "bytes", _SCHEMAS, "a file for the generator")
    source_particles: int = _bound(20_000, "particles", _SCHEMAS, "of a type for the generator, groups expanded")
    source_all_particles: int = _bound(1_000_000, "particles", _SCHEMAS, "of all types for the generator")
    source_levels: int = _bound(64, "levels", _SCHEMAS, "groups in groups for the generator")
    schema_particles: int = _bound(100_000, "particles", _SCHEMAS, "of a type for validation, groups expanded")
    schema_levels: int = _bound(200, "levels", _SCHEMAS, "groups in groups, or base types, for validation")

    http_bytes: int = _bound(
        64 * _MIB, "bytes", _HTTP, "a request, unpacked", "gateway.HttpOptions.largest", "--max-size"
    )
    http_elements: int = _bound(
        200_000, "elements", _HTTP, "a request", "gateway.HttpOptions.elements", "--max-elements"
    )
    http_in_flight: int = _bound(
        256 * _MIB, "bytes", _HTTP, "all requests at a time", "gateway.HttpOptions.in_flight", "--max-in-flight"
    )
    http_read: float = _bound(
        30.0, "seconds", _HTTP, "for the next part of a request or of its answer", "gateway.HttpOptions.read_timeout"
    )
    http_piece: int = _bound(256 * _KIB, "bytes", _HTTP, "such a part")
    http_connections: int = _bound(
        500, "connections", _HTTP, "and requests at a time", "gateway.HttpOptions.connections", "--max-connections"
    )
    http_answer: float = _bound(120.0, "seconds", _HTTP, "to answer a request", "gateway.HttpOptions.answer_timeout")
    http_iterators: int = _bound(100, "iterators", _HTTP, "open", "gateway.HttpOptions.iterators", "--iterators")
    http_iterator_idle: float = _bound(
        300.0,
        "seconds",
        _HTTP,
        "an unused iterator stays",
        "gateway.HttpOptions.iterator_timeout",
        "--iterator-timeout",
    )
    http_free_guesses: int = _bound(5, "guesses", _HTTP, "wrong logins of an address before it has to wait")
    http_guess_pause: float = _bound(60.0, "seconds", _HTTP, "the longest wait after a wrong login")
    http_guessers: int = _bound(10_000, "addresses", _HTTP, "remembered for their wrong logins")

    peer_bytes: int = _bound(64 * _MIB, "bytes", "HTTP peer", "an answer, unpacked", "gateway.HttpPeer.largest")
    peer_elements: int = _bound(2_000_000, "elements", "HTTP peer", "an answer", "gateway.HttpPeer.elements")
    peer_answer: float = _bound(120.0, "seconds", "HTTP peer", "for an answer", "gateway.HttpPeer.timeout")

    form_bytes: int = _bound(64 * _KIB, "bytes", "console", "a form")
    console_messages: int = _bound(20_000, "messages", "console", "kept")
    console_bytes: int = _bound(64 * _MIB, "bytes", "console", "bodies kept, and bodies that wait to be sorted")
    console_backlog: int = _bound(20_000, "messages", "console", "waiting to be sorted")
    console_exchanges: int = _bound(1_000, "exchanges", "console", "kept")
    console_letters: int = _bound(200_000, "dead letters", "console", "listed of a queue; further ones are counted")
    console_destinations: int = _bound(300, "destinations", "console", "kept")
    console_event_bytes: int = _bound(8 * _MIB, "bytes", "console", "a message that is read as a whole for its events")
    console_events: int = _bound(5_000, "notifications", "console", "kept, without their bodies")
    console_alarms: int = _bound(20_000, "alarms", "console", "kept")
    console_nodes: int = _bound(10_000, "elements", "console", "of a network on the map; the list has all")
    console_links: int = _bound(50_000, "links", "console", "of a network on the map; the list has all")
    console_drawing_bytes: int = _bound(64 * _MIB, "bytes", "console", "of a landing, for one drawing")
    console_tree: int = _bound(1_500, "elements", "console", "of a body shown as a tree")
    console_text: int = _bound(200_000, "characters", "console", "of an envelope shown")

    monitor_read: float = _bound(10.0, "seconds", "--monitor", "for a request and its page")
    monitor_connections: int = _bound(100, "connections", "--monitor", "open")

    message_bytes: int = _bound(256 * _MIB, "bytes", "files", "a message, a log of receipts, or events of a channel")
    settings_bytes: int = _bound(16 * _MIB, "bytes", "files", "settings, names, passwords and the like")

    stomp_head_bytes: int = _bound(16 * _MIB, "bytes", "JMS", "command and headers of a STOMP frame")
    selector_length: int = _bound(1_000_000, "characters", "JMS", "a selector")
    selector_depth: int = _bound(64, "levels", "JMS", "conditions in conditions of a selector")
    extension_length: int = _bound(10_000, "characters", "JMS", "vendorExtensions as a property")
    first_reply: float = _bound(60.0, "seconds", "JMS", "to the first reply", "patterns.Timeouts.first_reply")
    reply_gap: float = _bound(60.0, "seconds", "JMS", "from reply to reply", "patterns.Timeouts.gap")
    batch_grace: float = _bound(5.0, "seconds", "JMS", "for a late batch 0", "patterns.Timeouts.grace")
    batch_window: int = _bound(10_000, "batches", "JMS", "ahead of their turn", "patterns.BatchRules.window")
    batch_digests: int = _bound(1_000_000, "batches", "JMS", "remembered, 8 bytes each", "patterns.BatchRules.remember")
    handling: float = _bound(300.0, "seconds", "JMS", "a handler has in the runtime", "runtime.RuntimeRules.deadline")
    handling_attempts: int = _bound(
        5, "attempts", "JMS", "of the runtime to handle a message", "runtime.RuntimeRules.attempts"
    )

    unpacked_bytes: int = _bound(
        64 * _GIB, "bytes", _LANDING, "a packed file unpacks to", "bulk.UnpackBounds.max_bytes"
    )
    unpacked_ratio: int = _bound(
        200, "times", _LANDING, "its size, where that is more than the next line", "bulk.UnpackBounds.max_ratio"
    )
    unpacked_free: int = _bound(
        64 * _MIB, "bytes", _LANDING, "any packed file unpacks to", "bulk.UnpackBounds.free_bytes"
    )
    archive_members: int = _bound(100_000, "members", _LANDING, "of an archive", "bulk.UnpackBounds.max_members")
    archive_read: int = _bound(64 * _MIB, "bytes", _LANDING, "one header or table of contents of an archive")
    whole_file: int = _bound(8 * _MIB, "bytes", _LANDING, "a file that Spark's reader holds whole", "wholeFileBytes")

    spool_bytes: int = _bound(
        1 * _GIB, "bytes", "spool", "unsettled messages", "spool.Outbox.limit_bytes", "spool.Inbox.limit_bytes"
    )
    spool_window: int = _bound(100_000, "ids", "spool", "remembered by an inbox", "spool.Inbox.window")

    ior_bytes: int = _bound(64 * _KIB, "bytes", "CORBA channel", "a file with an object reference")
    type_depth: int = _bound(64, "levels", "CORBA channel", "values in values of an event")
    type_nodes: int = _bound(100_000, "TypeCodes", "CORBA channel", "in one TypeCode")
    event_depth: int = _bound(32, "levels", "CORBA channel", "arrays in arrays of an event over JMS")

    folder_bytes: int = _bound(64 * _MIB, "bytes", "IBM MQ", "a header MQRFH2")

    download_bytes: int = _bound(256 * _MIB, "bytes", "downloads", "a jar")
    download_time: float = _bound(300.0, "seconds", "downloads", "a jar")
    download_stall: float = _bound(30.0, "seconds", "downloads", "without a byte")


BOUNDS: Final = Bounds()


def table() -> list[Bound]:
    """All bounds, by door."""
    return [Bound(one.name, *one.metadata["bound"]) for one in fields(Bounds)]
