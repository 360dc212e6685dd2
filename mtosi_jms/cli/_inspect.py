"""Shows what SOAP envelopes contain: operation, service, pattern, header, objects by type, fault, warnings.

Credentials in the header are masked, in the table and in the JSON. The exit code is 1 if a file is not an MTOSI
envelope.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.table2 import restore
from mtosi_jms.cli import terminal
from mtosi_jms.cli._contents import Group, events_in, objects_in
from mtosi_jms.cli.arguments import add_json, count
from mtosi_jms.cli.documents import (
    Document,
    add_files,
    error_text,
    files_in,
    load,
    mapping_of,
    no_header,
    shown_value,
    warning_json,
)
from mtosi_jms.errors import MtosiError
from mtosi_jms.jms.display import mask_credentials
from mtosi_jms.namespaces import SOAP11, SOAP12, XSI, clark, local_name, split_clark
from mtosi_jms.service.registry import Role, find_operations
from mtosi_jms.soap import header_text
from mtosi_jms.xmlbind import XmlWarning

_NAMES: Final = 3
_WARNINGS: Final = 30
_FAULTS: Final = (clark(SOAP11, "Fault"), clark(SOAP12, "Fault"))
_ROLES: Final[dict[str, Role]] = {
    "REQUEST": "request",
    "RESPONSE": "response",
    "NOTIFICATION": "request",
    "ERROR": "fault",
}
_BATCH: Final = {
    "requested": ("requestedBatchSize", "MTOSI_requestedBatchSize"),
    "number": ("batchSequenceNumber", "MTOSI_batchSequenceNumber"),
    "end_of_reply": ("batchSequenceEndOfReply", "MTOSI_batchSequenceEndOfReply"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser, "a SOAP envelope")
    parser.add_argument(
        "--show", type=count, default=_NAMES, metavar="N", help="names to show for each type of object (%(default)s)"
    )
    parser.add_argument("--show-secrets", action="store_true", help="show credentials in the header")
    add_json(parser, "one JSON line for each file")


def run(args: argparse.Namespace) -> int:
    code = 0
    for file in files_in(args.files):
        try:
            document = load(file)
            facts = facts_of(document, names=args.show, secrets=args.show_secrets)
        except (MtosiError, OSError) as error:
            terminal.problem(error_text(file, error))
            code = 1
            continue
        if facts["header"] is not None or any(facts[key] for key in ("services", "objects", "fault")):
            _show(facts, as_json=args.json)
        if facts["header"] is None:
            terminal.problem(error_text(file, no_header(document)))
            code = 1
    return code


def facts_of(document: Document, *, names: int, secrets: bool) -> dict[str, Any]:
    """What an envelope holds, by the keys of the JSON; objects and events as groups, warnings as objects."""
    envelope = document.envelope
    element = _body_element(document.body)
    namespace, local = ("", "") if element is None else split_clark(str(element.tag))
    header: Any = envelope.header
    uses = () if element is None else find_operations(str(element.tag), header)
    called = sorted({use.operation.name for use in uses})
    activity = None if header is None else header_text(header, "activityName")
    facts: dict[str, Any] = {
        "file": document.file,
        "soap_version": envelope.version,
        "release": document.release,
        "body": {"element": local, "namespace": namespace} if local else None,
        "operation": called[0] if len(called) == 1 else activity,
        "services": [
            {
                "service": use.service.name,
                "namespace": use.service.namespace,
                "role": use.role,
                "mep": use.operation.mep,
            }
            | ({"operation": use.operation.name} if len(called) > 1 else {})
            for use in uses
        ],
        "pattern": None if header is None else header_text(header, "communicationPattern"),
        "style": None if header is None else header_text(header, "communicationStyle"),
        "batch": None if header is None else dict(_batch(header)) or None,
        "header": None if header is None else _fields(document, secrets=secrets),
        "objects": objects_in(document.body, names),
        "events": events_in(element, names) if local == "notify" and element is not None else [],
        "fault": None,
        "warnings": list(envelope.warnings),
    }
    if envelope.fault is not None:
        fault = envelope.fault
        facts["fault"] = {
            "code": fault.fault_code,
            "string": fault.fault_string,
            "kind": fault.kind,
            "reason": fault.reason,
        }
    if header is not None:
        found = [*mapping_of(document, BindingProfile()).warnings]
        found += _differences(header, called, uses[0].role) if uses else ()
        facts["warnings"] += map(document.located, found)
    return facts


def _body_element(body: etree._Element) -> etree._Element | None:
    """The element that says what the message is: the first in the body, in a fault the first in its detail."""
    first = next(iter(body), None)
    if first is None or first.tag not in _FAULTS:
        return first
    detail = next((child for child in first if local_name(child) in ("detail", "Detail")), None)
    return next(iter(detail), None) if detail is not None else None


def _batch(header: Any) -> Iterator[tuple[str, object]]:
    for name, (local, prop) in _BATCH.items():
        text = header_text(header, local)
        if text is not None:
            value = restore(prop, text)
            yield name, value if isinstance(value, (bool, int)) else text


def _fields(document: Document, *, secrets: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    header = copy.deepcopy(document.header)
    if header is not None and not secrets:
        mask_credentials(header)
    for child in header if header is not None else ():
        found.setdefault(local_name(child), _field_text(child))
    return found


def _differences(header: Any, operations: list[str], role: Role) -> Iterator[XmlWarning]:
    """Where the header contradicts the body, or does not say which operation with such a body is meant."""
    operation = " or ".join(operations)
    activity = header_text(header, "activityName")
    if len(operations) > 1 or activity not in (None, operation):
        yield XmlWarning("P36", f"activityName is {activity!r}, the body belongs to {operation}", "header/activityName")
    kind = header_text(header, "msgType")
    if kind in _ROLES and _ROLES[kind] != role:
        yield XmlWarning("P36", f"msgType is {kind}, the body is the {role} of {operation}", "header/msgType")


def _field_text(element: etree._Element) -> str:
    """A header field as text: its own, else that of the elements in it as `name=value`."""
    if len(element):
        return "; ".join(map(_pair, element))
    keys = [(*split_clark(key), value) for key, value in element.items()]
    texts = [(element.text or "").strip(), *(f"{key}={value}" for space, key, value in keys if space != XSI)]
    return " ".join(texts).strip()


def _pair(element: etree._Element) -> str:
    named = {local_name(child): (child.text or "").strip() for child in element}
    if "propName" in named:
        return f"{named['propName']}={named.get('propValue', '')}"
    text = _field_text(element)
    return f"{local_name(element)}=({text})" if len(element) else f"{local_name(element)}={text}"


def _show(facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        groups = {key: [group.to_json() for group in facts[key]] for key in ("objects", "events")}
        terminal.print_json({**facts, **groups, "warnings": [warning_json(one) for one in facts["warnings"]]})
        return
    terminal.table(f"{facts['file']}: SOAP {facts['soap_version']}", ("", "name", "value"), _rows(facts))
    for warning in facts["warnings"][:_WARNINGS]:
        terminal.say(f"warning: {warning}", "warn")
    if len(facts["warnings"]) > _WARNINGS:
        terminal.say(f"warning: {len(facts['warnings']) - _WARNINGS} more; --json lists all", "warn")


def _rows(facts: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    if facts["body"]:
        yield "body", facts["body"]["element"], facts["body"]["namespace"]
    for use in facts["services"]:
        yield "operation", use.get("operation", facts["operation"]), f"{use['role']} of {use['service']}, {use['mep']}"
    if facts["operation"] and not facts["services"]:
        yield "operation", facts["operation"], "of an unknown service"
    if facts["pattern"]:
        yield "pattern", facts["pattern"], facts["style"] or ""
    if facts["batch"]:
        yield "batch", "", ", ".join(f"{name} {shown_value(value)}" for name, value in facts["batch"].items())
    for name, text in (facts["header"] or {}).items():
        yield "header", name, shown_value(text) or "(empty)"
    for kind in ("objects", "events"):
        for group in facts[kind]:
            yield kind, group.type, _group(group)
    if facts["fault"]:
        yield "fault", facts["fault"]["kind"] or facts["fault"]["code"], facts["fault"]["reason"]


def _group(group: Group) -> str:
    more = [f"... {group.named - len(group.names)} more"] if group.named > len(group.names) else []
    names = ", ".join([*map(shown_value, group.names), *more])
    return f"{group.count}: {names}" if group.names else str(group.count)
