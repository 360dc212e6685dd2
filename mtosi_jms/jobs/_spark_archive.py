"""Makes one archive of this package for Spark's `--py-files`.

Executors then need Python, lxml, pyarrow and pandas, and no installation of mtosi-jms. The native core inside is that
of this machine, or of the platform that a wheel is for; where it does not load, the Python core reads.
"""

from __future__ import annotations

import argparse
import os
import sysconfig
import zipfile
from collections.abc import Iterator
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from mtosi_jms.bulk import damage, spool_errors
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, add_stubs, as_usage, local
from mtosi_jms.compression import open_file
from mtosi_jms.errors import ConfigError

_CORE: Final = "mtosi_jms/xmlbind/_core."
_LARGEST: Final = 256 * 1024 * 1024
"""Bytes that a wheel may unpack to."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=local, default=Path("mtosi_jms.zip"), help="the archive (%(default)s)")
    parser.add_argument(
        "--wheel",
        type=local,
        metavar="FILE",
        help="take the package and its native core from this wheel of mtosi-jms, made for the executors' platform "
        "(this installation)",
    )
    add_stubs(parser)
    add_json(parser, "the archive as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Make the archive. Raises ConfigError: the wheel is none of this version of mtosi-jms; ArchiveError: the wheel is
    damaged; SpoolError: the wheel cannot be read, or the archive cannot be written."""
    from mtosi_jms.inventory import load_stubs

    with as_usage():
        load_stubs(args.stubs)
    files = dict(_package("mtosi_jms") if args.wheel is None else _wheel(args.wheel))
    for name in args.stubs:
        files.update(_package(name))
    here = sysconfig.get_platform() if args.wheel is None else args.wheel.stem.rpartition("-")[2]
    platform = here if any(name.startswith(_CORE) for name in files) else None
    _write(args.out, files)
    if args.json:
        terminal.print_json({"out": str(args.out), "files": len(files), "platform": platform})
        return 0
    terminal.say(f"{args.out}: {len(files)} files, {args.out.stat().st_size / 1e6:.1f} MB")
    if platform is None:
        terminal.note("no native core: executors read with the Python core, at about a fifth of the speed")
    else:
        terminal.say(f"native core for {platform}; elsewhere executors read with the Python core")
    return 0


def _package(name: str) -> Iterator[tuple[str, bytes]]:
    yield from _below(resources.files(name), name.replace(".", "/"))


def _below(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _below(entry, f"{name}/{entry.name}")
        elif entry.is_file():
            yield f"{name}/{entry.name}", entry.read_bytes()


def _wheel(path: Path) -> Iterator[tuple[str, bytes]]:
    name, version, *tags = (*path.stem.split("-"), "")
    if path.suffix != ".whl" or name != "mtosi_jms" or len(tags) < 4:
        raise ConfigError(f"{path} is not named as a wheel of mtosi-jms: mtosi_jms-VERSION-...-PLATFORM.whl")
    if version != _version():
        raise ConfigError(f"{path} is of version {version}, and driver and executors need the same: {_version()}")
    with spool_errors(path):
        file = open_file(path)
    with file, damage(str(path)), zipfile.ZipFile(file) as wheel:
        members = [member for member in wheel.infolist() if member.filename.startswith("mtosi_jms/")]
        if not members or sum(member.file_size for member in members) > _LARGEST:
            raise ConfigError(f"{path} is no wheel of mtosi-jms")
        for member in members:
            yield member.filename, wheel.read(member)


def _version() -> str:
    try:
        return metadata.version("mtosi-jms")
    except metadata.PackageNotFoundError:  # a checkout on the path, not installed
        return "0+unknown"


def _write(out: Path, files: dict[str, bytes]) -> None:
    """Write the archive, the same for the same files; an earlier one stays until the new one is whole."""
    draft = out.parent / f".{out.name}.{os.getpid()}"
    with spool_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in sorted(files.items()):
                    member = zipfile.ZipInfo(name)
                    member.external_attr = 0o644 << 16
                    archive.writestr(member, data, zipfile.ZIP_DEFLATED)
            draft.replace(out)
        finally:
            draft.unlink(missing_ok=True)
