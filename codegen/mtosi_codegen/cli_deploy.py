"""`mtosi-codegen deploy`: writes WSDLs with the addresses of a deployment (P22)."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from mtosi_codegen.deploy import deploy
from mtosi_codegen.render.templates import built_in
from mtosi_codegen.report import counted
from mtosi_codegen.write import write_files
from mtosi_jms.cli.arguments import local
from mtosi_jms.cli.terminal import problem, say, tell
from mtosi_jms.errors import MtosiError, SchemaError
from mtosi_jms.jms import NamingContext, shown


def add_parser(commands: Any) -> None:
    """Add the parser of this command."""
    about = "write WSDLs with the addresses that you choose, and all files that they refer to"
    command: argparse.ArgumentParser = commands.add_parser(
        "deploy", help=about, description=f"{about[0].upper()}{about[1:]}. Nothing else in the files changes."
    )
    command.set_defaults(run=_run)
    command.add_argument("sources", nargs="+", metavar="SOURCE", help="a WSDL, or a folder of them")
    command.add_argument(
        "--address",
        type=_pair,
        action="append",
        default=[],
        metavar="SERVICE=ADDRESS",
        help="address of a service; may be repeated",
    )
    command.add_argument(
        "--deployment", type=local, metavar="FILE", help="use the addresses of the suppliers in this TOML"
    )
    command.add_argument("--names", metavar="FILE", help="addresses must be names in this jndi.properties or TOML")
    command.add_argument("--out", type=local, required=True, help="folder to write the files to")
    command.add_argument("--json", action="store_true", help="print JSON")


def _pair(text: str) -> tuple[str, str]:
    service, equals, address = text.partition("=")
    if not (equals and service.strip() and address.strip()):
        raise argparse.ArgumentTypeError(f"{shown(text)!r} does not read SERVICE=ADDRESS")
    return service.strip(), address.strip()


def _run(args: argparse.Namespace) -> int:
    addresses, names = _addresses(args)
    if not addresses:
        problem("no address: give --address SERVICE=ADDRESS, or --deployment FILE")
        return 2
    for source in map(Path, args.sources):
        if source.is_dir() and Path(os.path.realpath(args.out)).is_relative_to(os.path.realpath(source)):
            raise MtosiError(f"{args.out}: lies inside a source, and would be one; choose another folder")
    places = {service: str(names.lookup(address)) for service, address in addresses.items()} if names else {}
    deployed = deploy(args.sources, addresses)
    for finding in deployed.findings:
        tell(str(finding))
    write_files(args.out, deployed.files, deployed.originals)
    if args.json:
        ports = [
            {"service": port.service, "wsdl": port.wsdl, "address": port.address, "added": port.added}
            | ({"destination": places[port.service]} if names else {})
            for port in deployed.ports
        ]
        print(json.dumps({"out": str(args.out), "ports": ports, "files": sorted(deployed.files)}))
        return 0
    for port in deployed.ports:
        where = f" ({places[port.service]})" if names else ""
        port_added = ", port added" if port.added else ""
        say(f"{args.out / port.wsdl}: {port.service} at {shown(port.address)}{where}{port_added}")
    say(f"{args.out}: {counted(len(deployed.files), 'file')}")
    return 0


def _addresses(args: argparse.Namespace) -> tuple[dict[str, str], NamingContext | None]:
    """The addresses to set, and the naming context that must know them."""
    names = NamingContext.of(args.names) if args.names is not None else None
    if args.deployment is None:
        return dict(args.address), names
    from mtosi_jms.deployment import read_deployment  # needs the stubs, which the other commands make

    deployment = read_deployment(args.deployment)
    served = {service: str(address) for service, address in deployment.suppliers.items()}
    if not served and not args.address:
        raise MtosiError(f"{args.deployment}: it has no suppliers, so no addresses")
    own = deployment.names if deployment.names.names() else None
    return {**served, **dict(args.address)}, names or own


def add_templates(commands: Any) -> None:
    """Add the parser of this command."""
    about = "write copies of the templates, for you to change and pass to generate and check with --templates"
    command: argparse.ArgumentParser = commands.add_parser(
        "templates", help=about, description=f"{about[0].upper()}{about[1:]}. Existing files that differ are an error."
    )
    command.set_defaults(run=_write_templates)
    command.add_argument("out", type=local, metavar="DIR", help="folder to write them to")


def _write_templates(args: argparse.Namespace) -> int:
    files = {path.name: path.read_bytes() for path in built_in()}
    for name, data in files.items():
        target = args.out / name
        if target.exists() and target.read_bytes() != data:
            raise SchemaError("exists, and differs from ours; move it, or choose another folder", file=str(target))
    write_files(args.out, files, {})
    say(f"{args.out}: {counted(len(files), 'template')}")
    return 0
