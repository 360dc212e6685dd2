"""Lists, shows, verifies, redrives or withdraws the unfinished messages of an outbox or inbox.

Another process may have the folder open, except while `verify` rebuilds a damaged database.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from mtosi_jms.binding.soap_jms import document_of
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, local
from mtosi_jms.cli.log import log_in_lines
from mtosi_jms.cli.terminal import counted
from mtosi_jms.errors import ConfigError, JournalDamageError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.display import headers_of, moment, shown_body, shown_properties
from mtosi_jms.jms.message import jms_type_name
from mtosi_jms.spool import SpoolFolder, StoredMessage, Verification, verify_folder

_SETTLING: Final = {"redrive": "redriven", "withdraw": "withdrawn"}
_BY_KEY: Final = ("show", *_SETTLING)
_ACTIONS: Final = ("list", "show", "verify", *_SETTLING)
_STATES: Final = ("waits", "landed", "handed", "doubt", "dead")
_SETTLED_AT_ONCE: Final = ("doubt", "dead")
_HEADINGS: Final = ("state", "age", "destination", "bytes", "tries", "key", "reason")
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_PROBLEMS: Final = 10
"""Lines about the database that people see."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=_ACTIONS)
    parser.add_argument("folder", type=local, metavar="FOLDER", help="the folder of an outbox or inbox")
    parser.add_argument(
        "keys", nargs="*", metavar="KEY", help="key of a message, as list prints it; for show, redrive and withdraw"
    )
    parser.add_argument(
        "--state",
        choices=_STATES,
        help="list only messages in this state; others: take them in place of KEYs (redrive, withdraw: dead or doubt)",
    )
    parser.add_argument("--show-secrets", action="store_true", help="show: do not mask credentials or hide bodies")
    add_json(parser, "one JSON line for each message; verify: one document")


def run(args: argparse.Namespace) -> int:
    """Do the action; 1 where a key is unknown, or anything was wrong with the folder."""
    if wrong := _wrong_usage(args):
        raise argparse.ArgumentError(None, wrong)
    with log_in_lines():
        if args.action == "verify":
            return _verify(args)
        with SpoolFolder(args.folder) as folder:
            if args.action == "list":
                return _list(folder, args)
            keys = args.keys or [one.key for one in folder.messages() if one.state == args.state]
            return _show(folder, keys, args) if args.action == "show" else _settle(folder, keys, args)


def _wrong_usage(args: argparse.Namespace) -> str:
    action = args.action
    if action not in _BY_KEY and args.keys:
        return f"{action} takes no KEY"
    if action == "verify" and args.state:
        return "verify takes no --state"
    if action in _BY_KEY and bool(args.keys) is bool(args.state):
        return f"{action} needs KEYs, or --state"
    if action in _SETTLING and args.state not in (None, *_SETTLED_AT_ONCE):
        return f"{action} takes --state dead or --state doubt"
    return ""


def _list(folder: SpoolFolder, args: argparse.Namespace) -> int:
    now = time.time()
    everything = folder.messages()
    found = [one for one in everything if args.state in (None, one.state)]
    if args.json:
        for one in found:
            terminal.print_json(_facts(one, now))
    elif found:
        terminal.table("", _HEADINGS, (_row(one, now) for one in found))
    terminal.note(f"{folder.kind} {args.folder}: {_totals(everything, now)}")
    return 0


def _totals(found: list[StoredMessage], now: float) -> str:
    numbers = Counter(one.state for one in found)
    states = ", ".join(f"{numbers.pop(state)} {state}" for state in (*_STATES, *numbers) if state in numbers)
    if not found:
        return "no unfinished message"
    size, oldest = sum(one.size for one in found), max(_age(one, now) for one in found)
    return f"{counted(len(found))} ({states}), {size:,} bytes, the oldest {_age_text(oldest)} old"


def _facts(one: StoredMessage, now: float) -> dict[str, Any]:
    return {
        "key": one.key,
        "state": one.state,
        "destination": one.destination or None,
        "age": _age(one, now),
        "since": moment(one.since_ms),
        "size": one.size,
        "attempts": one.attempts,
        "reason": one.reason or None,
    }


def _row(one: StoredMessage, now: float) -> tuple[object, ...]:
    age = _age_text(_age(one, now))
    return one.state, age, one.destination, f"{one.size:,}", one.attempts or None, one.key, one.reason


def _age(one: StoredMessage, now: float) -> float:
    return round(max(now - one.since_ms / 1000, 0.0), 3)  # the clock may have been set back


def _age_text(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{math.floor(seconds / size)} {unit}"
    return f"{math.floor(seconds)} s"


def _show(folder: SpoolFolder, keys: list[str], args: argparse.Namespace) -> int:
    def show(key: str) -> None:
        one = folder.find(key)
        message = folder.message(key)
        shown = _message(one, message, secrets=args.show_secrets)
        if args.json:
            terminal.print_json(shown)
        else:
            _print(shown, message)

    return 0 if _each(keys, show) == len(keys) else 1


def _message(one: StoredMessage, message: JmsMessage, *, secrets: bool) -> dict[str, Any]:
    shown = shown_properties(message.properties, secrets=secrets)
    properties = {
        name: {"type": jms_type_name(value), "value": shown[name]} for name, value in message.properties.items()
    }
    body = shown_body(document_of(message)[0], secrets=secrets)
    return {**_facts(one, time.time()), **headers_of(message), "properties": properties, "body": body}


def _print(shown: dict[str, Any], message: JmsMessage) -> None:
    rows = [("", name, "", value) for name, value in shown.items() if name not in ("key", "properties", "body")]
    rows += [("property", name, item["type"], item["value"]) for name, item in shown["properties"].items()]
    cells = [(kind, name, of, _text(value)) for kind, name, of, value in rows if value is not None]
    terminal.table(shown["key"], ("", "name", "type", "value"), cells)
    if shown["body"] is None:
        size = f"{len(message.body):,} bytes"
        terminal.note(f"the body, {size}, is not XML: it may hold credentials, and only --show-secrets shows it")
    for line in (shown["body"] or "").splitlines():
        terminal.say(line.expandtabs())


def _text(value: object) -> str:
    """A value as text; of an enumeration the number."""
    if isinstance(value, int):
        return str(value).lower() if isinstance(value, bool) else str(int(value))
    return str(value)


def _settle(folder: SpoolFolder, keys: list[str], args: argparse.Namespace) -> int:
    """Redrive or withdraw, one message after the other; one that cannot be is reported and stays as it is."""
    done = _SETTLING[args.action]

    def settle(key: str) -> None:
        one = folder.find(key)
        (folder.redrive if args.action == "redrive" else folder.withdraw)(key)
        if args.json:
            terminal.print_json({**_facts(one, time.time()), "done": done})
        else:
            terminal.say(f"{done}: {key} (was: {one.state})")

    number = _each(keys, settle)
    terminal.note(f"{counted(number)} {done}, {folder.kind} {args.folder}")
    return 0 if number == len(keys) else 1


def _each(keys: Iterable[str], work: Callable[[str], None]) -> int:
    """Do something with each message, and report where that fails; returns how many it worked for."""
    done = 0
    for key in dict.fromkeys(keys):
        try:
            work(key)
        except (ConfigError, JournalDamageError) as error:
            terminal.problem(str(error))
        else:
            done += 1
    return done


def _verify(args: argparse.Namespace) -> int:
    found = verify_folder(args.folder)
    if args.json:
        terminal.print_json({"folder": args.folder, **found._asdict()})
    _report(args.folder, found)
    if found.is_whole and not args.json:
        terminal.say(f"{found.kind} {args.folder}: {counted(found.messages)}, all as they were stored")
    return 0 if found.is_whole else 1


def _report(folder: Path, found: Verification) -> None:
    lines = [f"the database: {line}" for line in found.problems[:_PROBLEMS]]
    if len(found.problems) > _PROBLEMS:
        lines.append(f"the database: {len(found.problems) - _PROBLEMS} more; --json lists all")
    if found.kept is not None:
        lines.append(f"{counted(found.messages)} rescued to a new database; the damaged one is kept as {found.kept}")
    elif found.problems:
        lines.append("the database is repaired")
    lines += [f"lost: {line}" for line in found.lost]
    lines += [f"{key}: not as it was stored; it is dead now, withdraw it" for key in found.damaged]
    for line in lines:
        terminal.problem(f"{folder}: {line}")
