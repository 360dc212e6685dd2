"""Shows what this installation can do, and how to get the rest.

Checks Python, the optional libraries, Java, schemas and stubs, and a broker if you name one. The result of a check is
`ok`, `missing` (something optional is absent) or `fault` (something that is always needed, or that you named, does not
work). The exit code is 1 if there is a fault. Then come the bounds on what others can make the SDK spend. The output
contains no credential.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import re
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mtosi_jms.bounds import table
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json
from mtosi_jms.cli.checks import Check, Status
from mtosi_jms.cli.providers import add_login, login_options, mask_url
from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.registry import registered, registered_module
from mtosi_jms.transport import settings
from mtosi_jms.validation import SchemaSet
from mtosi_jms.xmlbind import Core, core

PYTHON_MINIMUM: Final = (3, 11)
CORE_VARIABLE: Final = "MTOSI_JMS_CORE"
RUST_MINIMUM: Final = "1.85"

_NAME: Final = re.compile(r"[\w.-]+")
_COMPARISON: Final = re.compile(r"\b(\w++) *+(==|!=|<|>=) *+['\"]([^'\"]*)['\"]")
_MARKS: dict[Status, tuple[str, terminal.Style]] = {
    "ok": ("ok", "good"),
    "missing": ("--", "warn"),
    "fault": ("!!", "bad"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_login(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if args.url is not None:
        mask_url(args.url)
    given = login_options(args)
    found, configuration = check_configuration(args.url, args.environment, args.names, given)
    checks = [*all_checks(), configuration]
    if found.url is not None:
        checks.append(check_broker(found.url, {**found.options, **given, "names": found.names}))
    healthy = all(check.status != "fault" for check in checks)
    if args.json:
        runs = _core()
        named = {"core": runs.name, "core_reason": runs.reason} if isinstance(runs, Core) else {"core": None}
        bounds = [bound._asdict() for bound in table()]
        terminal.print_json({"ok": healthy, **named, "checks": [check._asdict() for check in checks], "bounds": bounds})
        return 0 if healthy else 1
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark, style = _MARKS[check.status]
        fix = f"; {check.fix}" if check.fix else ""
        terminal.say(f"{mark}  {check.name.ljust(width)}  {check.detail}{fix}", style)
    _show_bounds()
    return 0 if healthy else 1


def _show_bounds() -> None:
    door = ""
    terminal.say("bounds: what others can make it spend by default")
    for bound in table():
        if bound.door != door:
            door = bound.door
            terminal.say(f"  {door}")
        changed = f" ({', '.join(bound.options)})" if bound.options else ""
        terminal.say(f"    {bound.shown.rjust(20)}  {bound.counts}{changed}")


def all_checks() -> list[Check]:
    checks = [check_python(), check_lxml(), check_core(), check_schemas(), check_stubs()]
    unknown = Check(
        "extras", "missing", "not known: mtosi-jms is on the path and not installed", "pip install mtosi-jms"
    )
    checks += [check_extra(extra) for extra in extras()] or [unknown]
    return [*checks, *(registered_module("doctor", name).check() for name in registered("doctor"))]


def check_configuration(
    url: str | None, environment: str | None, names: str | None, given: Mapping[str, object]
) -> tuple[settings.Provider, Check]:
    """What variables and the configuration file say of the provider, and where each value comes from."""
    try:
        found = settings.provider(url, environment=environment, names=names, given=given)
    except ConfigError as error:
        return settings.Provider(), Check("configuration", "fault", str(error), "see docs/configuration.md")
    of_source: dict[str, list[str]] = {}
    for name, source in sorted(found.sources.items()):
        of_source.setdefault(source, []).append(name)
    sources = "; ".join(f"{', '.join(names)} from {source}" for source, names in of_source.items())
    return found, Check("configuration", "ok", sources or f"no {settings.FILE}, and no variable is set")


def check_python() -> Check:
    detail = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < PYTHON_MINIMUM:
        return Check("python", "fault", detail, "install Python 3.11 or later")
    return Check("python", "ok", detail)


def check_lxml() -> Check:
    from lxml import etree

    libxml2 = ".".join(map(str, etree.LIBXML_VERSION))
    return Check("lxml", "ok", f"{_version('lxml')} with libxml2 {libxml2}")


def check_core() -> Check:
    """Which core reads XML, and why."""
    runs = _core()
    if not isinstance(runs, Core):
        return Check("core", "fault", str(runs), f"{_how_to_get_the_native_core()}; or unset {CORE_VARIABLE}")
    if runs.name == "native":
        return Check("core", "ok", f"native: {runs.reason}")
    is_asked_for = os.environ.get(CORE_VARIABLE) == "python"
    fix = f"unset {CORE_VARIABLE}" if is_asked_for else _how_to_get_the_native_core()
    return Check("core", "missing", f"python, slower than native: {runs.reason}", fix)


def _how_to_get_the_native_core() -> str:
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "use CPython with its GIL: this Python cannot load the native core"
    options, source = "--no-binary mtosi-jms", "mtosi-jms"
    try:
        told: Any = json.loads(metadata.distribution("mtosi-jms").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        told = {}
    if "dir_info" in told and told["url"].startswith("file:"):  # it was installed from a folder, no package index
        options, source = "", shlex.quote(url2pathname(urlsplit(told["url"]).path))
        if told["dir_info"].get("editable"):
            options = "--editable"
    words = ["pip install --force-reinstall --no-deps", *filter(None, [options]), source]
    return f"install Rust (cargo {RUST_MINIMUM} or later) and run {' '.join(words)}, or take a wheel for this platform"


def _core() -> Core | MtosiError:
    try:
        return core()
    except MtosiError as error:
        return error


def check_schemas() -> Check:
    try:
        schemas = SchemaSet.load()
    except MtosiError as error:
        return Check("schemas", "fault", str(error), "reinstall mtosi-jms")
    if schemas.notes:
        return Check("schemas", "fault", str(schemas.notes[0]), "reinstall mtosi-jms")
    return Check("schemas", "ok", f"{len(schemas.namespaces)} namespaces in {schemas.folder}")


def check_stubs() -> Check:
    try:
        package = importlib.import_module("mtosi_jms.stubs")
        names = [module.name for module in pkgutil.walk_packages(package.__path__, "mtosi_jms.stubs.")]
        for name in names:
            importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever an import can raise is the finding
        return Check("stubs", "fault", f"{type(error).__name__}: {error}", "reinstall mtosi-jms")
    return Check("stubs", "ok", f"{len(names)} modules")


def extras() -> dict[str, dict[str, str]]:
    """Each extra of the installed distribution: the distributions that it needs here, and the least version of each.

    Empty where the package is on the path and not installed.
    """
    try:
        own = metadata.distribution("mtosi-jms")
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, dict[str, str]] = {
        name: {} for name in own.metadata.get_all("Provides-Extra", ()) if name != "all"
    }
    for line in own.requires or ():
        requirement, _, marker = line.partition(";")
        compared = _COMPARISON.findall(marker)
        extra = next((value for name, _, value in compared if name == "extra"), "")
        if extra in found and all(_holds(*one) for one in compared if one[0] != "extra"):
            least = re.match(r"[\d.]*", requirement.partition(">=")[2])
            found[extra][_NAME.findall(requirement)[0]] = least.group() if least else ""
    return found


def _holds(name: str, operator: str, value: str) -> bool:
    """Whether a comparison of a marker holds here. The markers of our extras ask for nothing else."""
    if name == "sys_platform":
        return (sys.platform == value) is (operator == "==")
    return (sys.version_info[:2] < _release(value)) is (operator == "<")


def _release(version: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found.group().split("."))) if found else ()


def check_extra(extra: str) -> Check:
    """The libraries of one extra: each one's version, or the line that installs it."""
    present: list[str] = []
    missing: list[str] = []
    for name, least in extras().get(extra, {}).items():
        version = _version(name)
        if not version:
            missing.append(f"no {name}")
        elif () < _release(version) < _release(least):
            missing.append(f"{name} {version} is older than {least}")
        else:
            present.append(f"{name} {version}")
    if missing:
        return Check(extra, "missing", ", ".join(missing), f"pip install 'mtosi-jms[{extra}]'")
    return Check(extra, "ok", ", ".join(present) or "needs nothing here")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def check_broker(url: str, options: Mapping[str, Any]) -> Check:
    """Whether a broker can be reached and lets us in, which one it is, and what it lacks."""
    from mtosi_jms.transport import ALL_CAPABILITIES, connect

    transport = registered("transports").get(url.partition(":")[0].lower(), {})
    once = {} if transport and "extra" not in transport else {"reconnect": False}  # what is built in is never lost
    try:
        with connect(url, **{**options, **once}) as connection:
            peer, capabilities = connection.metadata, connection.capabilities
    except MtosiError as error:
        return Check("broker", "fault", str(error), "see docs/transports.md")
    lacking = ", ".join(sorted(one.value for one in ALL_CAPABILITIES - capabilities)) or "nothing"
    name = f"{peer.provider} {peer.provider_version}".strip()
    return Check("broker", "ok", f"{name}, JMS {peer.jms_version}; lacks {lacking}")
