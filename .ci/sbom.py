"""Write the bills of materials of a release, in CycloneDX's JSON, from the locks.

Usage: sbom.py FOLDER. `mtosi-jms.cdx.json` has what `requirements.lock` names: `required` is what each installation
gets, `optional` what the extras bring, `excluded` what only building and testing need. `mtosi-jms-core.cdx.json` has
the crates of `native/Cargo.lock`. Licences and dependencies of the Python packages are those of the installed
distributions.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_USED = ("all", "docs", "test")
"""Extras that no installation of a user needs, that of all others, and that with a bill of its own."""
VENDORED = (("npm", "idiomorph", "0.8.0", "0BSD"),)
"""What is copied into the wheel, for the pages of the console: kind of registry, name, version, licence."""


def main(folder: Path) -> None:
    """Write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, bom in (("mtosi-jms", python_bom()), ("mtosi-jms-core", native_bom())):
        bom.validate()
        path = folder / f"{name}.cdx.json"
        path.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")
        print(f"{path}: {len(bom.components)} components")


def python_bom() -> Bom:
    """The SDK, and all that its lock names."""
    extras = PROJECT["optional-dependencies"]
    core = closure(PROJECT["dependencies"])
    used = closure(line for name, lines in extras.items() if name not in NOT_USED for line in lines)
    bom, root = new_bom("mtosi-jms", PROJECT["version"], PROJECT["license"])
    found: dict[str, Component] = {}
    for name, version, sums in locked():
        scope = ComponentScope.REQUIRED if name in core else ComponentScope.OPTIONAL
        if name not in core | used:
            scope = ComponentScope.EXCLUDED
        found[name] = component("pypi", name, version, licence_of(name), scope, sums)
    copied = [component(kind, name, version, told, ComponentScope.REQUIRED) for kind, name, version, told in VENDORED]
    bom.components.update((*found.values(), *copied))
    direct = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    bom.register_dependency(root, [*(found[name] for name in sorted(direct)), *copied])
    for name, one in found.items():
        bom.register_dependency(
            one, [found[other] for other in sorted({other for other, _ in needs(name)}) if other in found]
        )
    return bom


def native_bom() -> Bom:
    """The native core, and the crates that are linked into it or build it."""
    crates = tomllib.loads((ROOT / "native/Cargo.lock").read_text(encoding="utf-8"))["package"]
    table = (ROOT / "native/LICENCES.md").read_text(encoding="utf-8")
    licences = dict(re.findall(r"^\| (\S+) \| \S+ \| (.+) \|$", table, re.MULTILINE))
    (own,) = (crate for crate in crates if "source" not in crate)
    bom, root = new_bom(own["name"], own["version"], "Apache-2.0")
    found = {own["name"]: root}
    for crate in crates:
        if crate is not own:
            name, version, sums = crate["name"], crate["version"], [crate["checksum"]]
            found[name] = component("cargo", name, version, licences[name], ComponentScope.REQUIRED, sums)
    bom.components.update(one for one in found.values() if one is not root)
    for crate in crates:
        bom.register_dependency(found[crate["name"]], [found[name] for name in crate.get("dependencies", ())])
    return bom


def new_bom(name: str, version: str, licence: str) -> tuple[Bom, Component]:
    """An empty one, and what it is about. Number and, with SOURCE_DATE_EPOCH, time are the release's."""
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"pkg:pypi/{name}@{version}"))
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    bom.metadata.timestamp = dt.datetime.fromtimestamp(int(seconds), dt.UTC) if seconds else dt.datetime.now(dt.UTC)
    root = bom.metadata.component = component("pypi", name, version, licence, None)
    return bom, root


def component(
    kind: str, name: str, version: str, licence: str, scope: ComponentScope | None, sums: Iterable[str] = ()
) -> Component:
    """One package, with the SHA-256 of each of its files."""
    url = PackageURL(kind, name=name, version=version)
    made = Component(name=name, version=version, type=ComponentType.LIBRARY, purl=url, bom_ref=str(url), scope=scope)
    made.licenses.add(LicenseFactory().make_from_string(licence))
    made.hashes.update(HashType(alg=HashAlgorithm.SHA_256, content=value) for value in sums)
    return made


def locked() -> Iterator[tuple[str, str, list[str]]]:
    """Name and version of each package of the lock, with the SHA-256 of its files."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for match in re.finditer(r"^([\w.-]+)==(\S+)[^\n]*\\\n((?: +--hash=\S+(?: \\)?\n)+)", text, re.MULTILINE):
        yield match[1], match[2], re.findall(r"--hash=sha256:(\S+)", match[3])


def closure(lines: Iterable[str]) -> set[str]:
    """What requirements bring, with what that needs, and so on."""
    waiting = list(wanted(lines))
    found = set(waiting)
    while waiting:
        more = set(needs(*waiting.pop())) - found
        found |= more
        waiting += more
    return {name for name, _ in found}


def needs(name: str, extras: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a distribution needs with some of its extras."""
    return wanted(described(name).get_all("Requires-Dist", ()), extras)


def wanted(lines: Iterable[str], extras: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name and extras of the requirements that count on this machine."""
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(requirement.name), tuple(sorted(requirement.extras))


def described(name: str) -> Any:
    """The metadata of a distribution; none where this machine does not get it, by its marker in the lock."""
    try:
        return metadata(name)
    except PackageNotFoundError:
        return Message()


def licence_of(name: str) -> str:
    """What a distribution says: by SPDX, else in a word of its own, else by its classifiers."""
    about = described(name)
    short = about["License"] or ""
    classifiers = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", ()) if line.startswith("License")]
    own = short if 0 < len(short) < 60 and "\n" not in short else ""
    return about["License-Expression"] or own or " AND ".join(classifiers) or "not stated"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
