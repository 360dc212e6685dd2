"""The bills of materials of a release: all that the locks name, each with a licence, in the scope where it is used."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cyclonedx", reason="only the lock has it")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def boms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("sbom")
    command = [sys.executable, "-W", "error", str(ROOT / ".ci" / "sbom.py"), str(folder)]
    subprocess.run(command, check=True, capture_output=True, env={"SOURCE_DATE_EPOCH": "0"})
    return {path.name.partition(".")[0]: json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "lock", "entry"),
    [
        ("mtosi-jms", "requirements.lock", r"^([\w.-]+)==(\S+)"),
        ("mtosi-jms-core", "native/Cargo.lock", r'name = "(\S+)"\nversion = "(\S+)"\nsource'),
    ],
)
def test_all_that_a_lock_names_is_in_its_bill(boms: dict[str, Any], name: str, lock: str, entry: str) -> None:
    bom = boms[name]
    assert (bom["bomFormat"], bom["metadata"]["component"]["name"]) == ("CycloneDX", name)
    assert bom["metadata"]["timestamp"] == "1970-01-01T00:00:00+00:00"
    named = set(re.findall(entry, (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE))
    listed = {
        (one["name"], one["version"]) for one in bom["components"] if one["purl"].startswith(("pkg:pypi", "pkg:c"))
    }
    assert listed == named
    assert [one["name"] for one in bom["components"] if not one.get("licenses")] == []
    assert {one["ref"] for one in bom["dependencies"]} >= {one["bom-ref"] for one in bom["components"]}


def test_the_scopes_are_those_of_an_installation(boms: dict[str, Any]) -> None:
    scopes = {one["name"]: one["scope"] for one in boms["mtosi-jms"]["components"]}
    assert {name for name, scope in scopes.items() if scope == "required"} == {"idiomorph", "lxml"}
    assert (scopes["pyspark"], scopes["py4j"], scopes["h11"]) == ("optional",) * 3  # by themselves, or by another
    assert (scopes["pytest"], scopes["mkdocs"], scopes["atheris"]) == ("excluded",) * 3


def test_what_users_get_has_a_licence_that_lets_them(boms: dict[str, Any]) -> None:
    free = re.compile(r"Apache|MIT|BSD|PSF|MPL-2\.0")
    told = {
        one["name"]: json.dumps(one["licenses"])
        for one in boms["mtosi-jms"]["components"]
        if one["scope"] != "excluded"
    }
    assert [name for name, licences in told.items() if not free.search(licences)] == []


def test_copied_code_is_what_the_bill_says(boms: dict[str, Any]) -> None:
    (copied,) = (one for one in boms["mtosi-jms"]["components"] if one["purl"].startswith("pkg:npm"))
    static = ROOT / "mtosi_jms" / "console" / "static"
    assert {path.name for path in static.glob("*.min.js")} == {f"{copied['name']}-{copied['version']}.min.js"}
