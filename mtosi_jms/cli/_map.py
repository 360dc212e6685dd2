"""Shows the JMS headers and typed properties that the binding makes from the MTOSI header of SOAP envelopes.

Each breach of a rule is a warning. The exit code is 1 if a file is not an MTOSI envelope. MTOSI_security is mapped only
if `--optional` names `security`. The table and the JSON mask credentials; `--show-secrets` shows them. Warnings and
errors never contain the value of `security`.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import HeaderMapping
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES, OPTIONAL_FIELDS, PRESETS
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, known_words
from mtosi_jms.cli.documents import (
    Document,
    add_files,
    error_text,
    files_in,
    load,
    mapping_of,
    shown_value,
    warning_json,
)
from mtosi_jms.errors import MtosiError
from mtosi_jms.jms.message import MessageType, jms_type_name
from mtosi_jms.masking import MASK, is_secret, without_login
from mtosi_jms.xmlbind import XmlWarning

_HEADER_TYPES = {"JMSReplyTo": "Destination", "JMSPriority": "Integer", "JMSDeliveryMode": "", "JMSTimeToLive": "ms"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser, "a SOAP envelope")
    parser.add_argument("--profile", choices=list(PRESETS), default="default", help="the binding profile (%(default)s)")
    parser.add_argument(
        "--optional",
        type=known_words("optional header field", OPTIONAL_FIELDS),
        metavar="FIELD,...",
        help="optional header fields to map, in place of the profile's choice; with a + before a field, in addition to "
        f"it; the fields are {', '.join(sorted(OPTIONAL_FIELDS))}",
    )
    parser.add_argument(
        "--filter",
        type=known_words("filterable attribute", FILTER_ATTRIBUTES),
        default=(),
        metavar="NAME,...",
        help="also map these attributes of a notification's events (Table 4), such as EventType,perceivedSeverity",
    )
    parser.add_argument("--show-secrets", action="store_true", help="show credentials")
    add_json(parser, "one JSON line for each file")


def run(args: argparse.Namespace) -> int:
    profile = _profile(args.profile, args.optional)
    code = 0
    for file in files_in(args.files):
        try:
            document = load(file)
            mapping = mapping_of(document, profile, args.filter)
        except (MtosiError, OSError) as error:
            terminal.problem(error_text(file, error))
            code = 1
            continue
        warnings = [*document.envelope.warnings, *map(document.located, mapping.warnings)]
        if args.json:
            terminal.print_json(_to_json(document, mapping, profile, warnings, secrets=args.show_secrets))
        else:
            _show(file, mapping, profile, warnings, secrets=args.show_secrets)
    return code


def _profile(name: str, optional: tuple[str, ...] | None) -> BindingProfile:
    profile = BindingProfile.preset(name)
    if optional is None:
        return profile
    fields = {field.removeprefix("+") for field in optional}
    if any(field.startswith("+") for field in optional):
        fields |= profile.optional_fields
    return dataclasses.replace(profile, optional_fields=frozenset(fields))


def _headers(mapping: HeaderMapping, profile: BindingProfile) -> dict[str, Any]:
    reply_to = {} if mapping.reply_to_uri is None else {"JMSReplyTo": mapping.reply_to_uri}
    return {
        **reply_to,
        "JMSPriority": mapping.priority,
        "JMSDeliveryMode": profile.delivery_mode.name,
        "JMSTimeToLive": mapping.time_to_live_ms,
    }


def _masked(name: str, value: Any) -> Any:
    if is_secret(name):
        return MASK
    return without_login(value) if isinstance(value, str) else value


def _to_json(
    document: Document, mapping: HeaderMapping, profile: BindingProfile, warnings: list[XmlWarning], *, secrets: bool
) -> dict[str, object]:
    masked = (lambda name, value: value) if secrets else _masked
    return {
        "file": document.file,
        "release": document.release,
        "message_type": MessageType.TEXT.value,
        "headers": {name: masked("", value) for name, value in _headers(mapping, profile).items()},
        "properties": {
            name: {"type": jms_type_name(value), "value": masked(name, value)}
            for name, value in mapping.properties.items()
        },
        "warnings": [warning_json(warning) for warning in warnings],
    }


def _show(
    file: str, mapping: HeaderMapping, profile: BindingProfile, warnings: list[XmlWarning], *, secrets: bool
) -> None:
    def shown(name: str, value: object) -> str:
        if secrets:
            return shown_value(value)
        return MASK if is_secret(name) else without_login(shown_value(value))

    rows = [
        ("header", name, _HEADER_TYPES[name], shown("", value)) for name, value in _headers(mapping, profile).items()
    ]
    rows += [("property", name, jms_type_name(value), shown(name, value)) for name, value in mapping.properties.items()]
    terminal.table(f"{file}: {MessageType.TEXT.value}", ("", "name", "type", "value"), rows)
    for warning in warnings:
        terminal.say(f"warning: {warning}", "warn")
