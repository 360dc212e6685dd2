"""`mtosi-jms spool`: what waits in the folder of an outbox or inbox, is in doubt or dead: shown, verified, settled.

It works beside the process that has the folder open. Only a database that is damaged is rescued when nobody has.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._documents import printable
from mtosi_jms.cli._messages import headers_of, moment, shown_body, shown_properties
from mtosi_jms.cli._stopping import log_in_lines
from mtosi_jms.errors import ConfigError, JournalDamageError
from mtosi_jms.jms import JmsMessage
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
"""Lines about the database that people are shown."""


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "spool",
        help="the messages of an outbox or inbox: list, show, verify, redrive, withdraw",
        description="Lists and shows what is not done with in the folder of an outbox or inbox, verifies it, has dead "
        "messages and those in doubt sent or handed out again, or never. A process may have the folder open.",
    )
    parser.add_argument("action", choices=_ACTIONS)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="of an outbox or inbox")
    parser.add_argument(
        "keys", nargs="*", metavar="KEY", help="of a message, as list prints it; for show, redrive, withdraw"
    )
    parser.add_argument(
        "--state",
        choices=_STATES,
        help="list: these alone; show, redrive, withdraw: all of these in place of KEYs; the last two take dead and "
        "doubt",
    )
    parser.add_argument("--show-secrets", action="store_true", help="show: credentials too, and bodies as they are")
    parser.add_argument("--json", action="store_true", help="one JSON line for each message; verify: one document")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 1 where a key is of no such message, or anything was wrong with the folder."""
    wrong = _wrong_usage(args)
    if wrong:
        console.problem(wrong)
        return 2
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
            console.print_json(_facts(one, now))
    elif found:
        console.table("", _HEADINGS, (_row(one, now) for one in found))
    console.note(printable(f"{folder.kind} {args.folder}: {_totals(everything, now)}"))
    return 0


def _totals(found: list[StoredMessage], now: float) -> str:
    counted = Counter(one.state for one in found)
    states = ", ".join(f"{counted.pop(state)} {state}" for state in (*_STATES, *counted) if state in counted)
    if not found:
        return "no message that is not done with"
    size, oldest = sum(one.size for one in found), max(_age(one, now) for one in found)
    return f"{_count(len(found))} ({states}), {size:,} bytes, the oldest {_told_age(oldest)} old"


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
    texts = (printable(text) for text in (one.key, one.reason))
    age, size = _told_age(_age(one, now)), f"{one.size:,}"
    return printable(one.state), age, printable(one.destination), size, one.attempts or None, *texts


def _age(one: StoredMessage, now: float) -> float:
    return round(max(now - one.since_ms / 1000, 0.0), 3)  # the clock may have been set back


def _told_age(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{math.floor(seconds / size)} {unit}"
    return f"{math.floor(seconds)} s"


def _count(number: int) -> str:
    return f"{number:,} {'message' if number == 1 else 'messages'}"


def _show(folder: SpoolFolder, keys: list[str], args: argparse.Namespace) -> int:
    def show(key: str) -> None:
        one = folder.find(key)
        message = folder.message(key)
        shown = _message(one, message, secrets=args.show_secrets)
        if args.json:
            console.print_json(shown)
        else:
            _print(shown, message)

    return 0 if _each(keys, show) == len(keys) else 1


def _message(one: StoredMessage, message: JmsMessage, *, secrets: bool) -> dict[str, Any]:
    shown = shown_properties(message.properties, secrets=secrets)
    properties = {
        name: {"type": jms_type_name(value), "value": shown[name]} for name, value in message.properties.items()
    }
    body = shown_body(message.body, secrets=secrets)
    return {**_facts(one, time.time()), **headers_of(message), "properties": properties, "body": body}


def _print(shown: dict[str, Any], message: JmsMessage) -> None:
    rows = [("", name, "", value) for name, value in shown.items() if name not in ("key", "properties", "body")]
    rows += [("property", name, item["type"], item["value"]) for name, item in shown["properties"].items()]
    cells = [(kind, printable(name), of, _text(value)) for kind, name, of, value in rows if value is not None]
    console.table(printable(shown["key"]), ("", "name", "type", "value"), cells)
    if shown["body"] is None:
        told = f"a body of {len(message.body):,} bytes that is no XML, so that credentials in it are not known"
        console.note(f"{told}; --show-secrets shows it")
    else:
        lines = shown["body"].splitlines()
        console.say("\n".join(printable(line.expandtabs()) for line in lines))


def _text(value: object) -> str:
    if isinstance(value, int):
        return str(value).lower() if isinstance(value, bool) else str(int(value))
    return printable(str(value))


def _settle(folder: SpoolFolder, keys: list[str], args: argparse.Namespace) -> int:
    """Redrive or withdraw, one after the other; each is done, and told, or is as it was."""
    done = _SETTLING[args.action]

    def settle(key: str) -> None:
        one = folder.find(key)
        (folder.redrive if args.action == "redrive" else folder.withdraw)(key)
        if args.json:
            console.print_json({**_facts(one, time.time()), "done": done})
        else:
            console.say(printable(f"{done}: {key} (was: {one.state})"))

    told = _each(keys, settle)
    console.note(printable(f"{_count(told)} {done}, {folder.kind} {args.folder}"))
    return 0 if told == len(keys) else 1


def _each(keys: Iterable[str], work: Callable[[str], None]) -> int:
    """Does something with each message, and tells where that cannot be done; with how many it was."""
    done = 0
    for key in dict.fromkeys(keys):
        try:
            work(key)
        except (ConfigError, JournalDamageError) as error:
            console.problem(printable(str(error)))
        else:
            done += 1
    return done


def _verify(args: argparse.Namespace) -> int:
    found = verify_folder(args.folder)
    if args.json:
        console.print_json({"folder": args.folder, **found._asdict()})
    _tell(args.folder, found)
    if found.is_whole and not args.json:
        console.say(printable(f"{found.kind} {args.folder}: {_count(found.messages)}, all as they were stored"))
    return 0 if found.is_whole else 1


def _tell(folder: Path, found: Verification) -> None:
    lines = [f"the database: {line}" for line in found.problems[:_PROBLEMS]]
    if len(found.problems) > _PROBLEMS:
        lines.append(f"the database: {len(found.problems) - _PROBLEMS} more; --json lists all")
    if found.kept is not None:
        lines.append(f"{_count(found.messages)} rescued to a new database; the damaged one is kept as {found.kept}")
    elif found.problems:
        lines.append("the database is mended")
    lines += [f"lost: {line}" for line in found.lost]
    lines += [f"{key}: not as it was stored; it is dead until it is withdrawn" for key in found.damaged]
    for line in lines:
        console.problem(printable(f"{folder}: {line}"))
