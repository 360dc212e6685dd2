"""Converts files of IBM MQ messages into a landing, and a landing into such files.

A file contains the bytes of one message: an MQMD (optional), one MQRFH2 or more, and the body. Tools that unload a
queue write such files, and load them again. `read` takes files and folders of them (*.mq), in the order of their names.
`write` writes a file for each message of a landing. With `read --tree`, each message becomes an XML document
(*.tree.xml) to look at and edit: headers, properties with their types, body. `write` also takes these documents, and
folders of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, local
from mtosi_jms.cli.documents import landed_files
from mtosi_jms.cli.log import log_in_lines
from mtosi_jms.cli.terminal import counted
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.typed import OnInvalid
from mtosi_jms.mq import ByteOrder, read_mq, write_mq
from mtosi_jms.mq.tree import from_tree, to_tree
from mtosi_jms.spool import Spool, open_entry

_SUFFIX: Final = ".mq"
_TREE: Final = ".tree.xml"
_CCSIDS: Final = (1208, 1200, 819)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("read", "write"))
    parser.add_argument(
        "sources",
        nargs="+",
        type=local,
        metavar="SOURCE",
        help="read: files, or folders of *.mq; write: a landing, or *.tree.xml",
    )
    parser.add_argument(
        "--out", type=local, required=True, metavar="DIR", help="read: the landing; write: a folder for files"
    )
    parser.add_argument(
        "--on-invalid",
        choices=get_args(OnInvalid),
        default="fail",
        help="a value that does not fit its type: ignore keeps it as text, warn also warns, fail is an error (fail)",
    )
    parser.add_argument("--tree", action="store_true", help="read: write documents to edit, in place of a landing")
    parser.add_argument("--no-reply-to", action="store_true", help="leave out JMSReplyTo")
    parser.add_argument("--mqmd", action="store_true", help="write: put an MQMD before the MQRFH2")
    parser.add_argument(
        "--byte-order", choices=get_args(ByteOrder), default="big", help="write: byte order of numbers (big)"
    )
    parser.add_argument(
        "--ccsid", type=int, choices=_CCSIDS, default=1208, help="write: character set of texts (1208, UTF-8)"
    )
    add_json(parser, "one JSON line for each message")


def run(args: argparse.Namespace) -> int:
    with log_in_lines():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    done = bad = 0
    steps = _read(args) if args.action == "read" else _write(args)
    for source, made in steps:
        if isinstance(made, MtosiError):
            terminal.problem(f"{source}: {made}")
            bad += 1
            continue
        done += 1
        if args.json:
            terminal.print_json({"source": str(source), "file": str(made)})
    if not args.json:
        verb = "landed in" if args.action == "read" and not args.tree else "written to"
        terminal.say(f"{counted(done)} {verb} {args.out}{f', {bad} refused' if bad else ''}", "bad" if bad else "good")
    return int(bad > 0)


def _read(args: argparse.Namespace) -> Iterator[tuple[Path, Path | MtosiError]]:
    files = [file for source in args.sources for file in _files(source, _SUFFIX)]
    landing = None if args.tree else Spool(args.out)
    if args.tree:
        _make(args.out)
    for file in files:
        try:
            message = _prepared(read_mq(read_file(file, BOUNDS.message_bytes), on_invalid=args.on_invalid), args)
            if landing is None:
                name = f"{file.name.removesuffix(_SUFFIX)}{_TREE}"
                yield file, _written(args.out / name, to_tree(message))
            else:
                yield file, landing.write(message, int(time.time() * 1_000)).path
        except MtosiError as error:
            yield file, error
        except OSError as error:
            yield file, ConfigError(f"cannot be read: {error.strerror}")


def _files(source: Path, suffix: str) -> list[Path]:
    if not source.exists():
        raise ConfigError(f"{source}: no such file or folder")
    if not source.is_dir():
        return [source]
    found = sorted(source.glob(f"*{suffix}"))
    if not found:
        raise ConfigError(f"{source}: holds no message (*{suffix})")
    return found


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be made: {error.strerror}") from None


def _kept(source: Path) -> list[Path]:
    """The files of a source of `write`: a tree, a folder of them, or a landing."""
    trees = source.name.endswith(_TREE) or (source.is_dir() and any(source.glob(f"*{_TREE}")))
    return _files(source, _TREE) if trees else landed_files(source)


def _write(args: argparse.Namespace) -> Iterator[tuple[Path, Path | MtosiError]]:
    files = [file for source in args.sources for file in _kept(source)]
    options: dict[str, Any] = {"with_mqmd": args.mqmd, "byte_order": args.byte_order, "ccsid": args.ccsid}
    _make(args.out)
    for file in files:
        try:
            if file.name.endswith(_TREE):
                message = from_tree(read_file(file, BOUNDS.message_bytes), on_invalid=args.on_invalid)
            else:
                message = open_entry(file).message()
            target = args.out / f"{file.name.partition('.')[0]}{_SUFFIX}"
            yield file, _written(target, write_mq(_prepared(message, args), **options))
        except MtosiError as error:
            yield file, error
        except OSError as error:
            yield file, ConfigError(f"cannot be read: {error.strerror}")


def _prepared(message: JmsMessage, args: argparse.Namespace) -> JmsMessage:
    return replace(message, reply_to=None) if args.no_reply_to else message


def _written(target: Path, data: bytes) -> Path:
    try:
        target.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror}") from None
    return target
