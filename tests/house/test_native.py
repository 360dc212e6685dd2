"""The crate of the native core: its lock, its licences, and where it may be unsafe."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

CRATE = Path(__file__).resolve().parents[2] / "native"
LOCKED = tomllib.loads((CRATE / "Cargo.lock").read_text(encoding="utf-8"))["package"]
LICENCES = (CRATE / "LICENCES.md").read_text(encoding="utf-8")
SOURCES = sorted((CRATE / "src").glob("*.rs"))


def test_the_licence_of_each_crate_is_listed() -> None:
    listed = re.findall(r"^\| (\S+) \| (\S+) \| (.+) \|$", LICENCES, re.MULTILINE)
    names = {(name, version) for name, version, _ in listed if name not in ("crate", "---")}
    assert names == {(one["name"], one["version"]) for one in LOCKED if "source" in one}
    allowed = re.compile(r"\b(?:MIT|Apache-2\.0|Unlicense)\b")
    assert [line for line in listed if line[0] not in ("crate", "---") and not allowed.search(line[2])] == []


def test_one_module_alone_is_unsafe() -> None:
    unsafe = [path.name for path in SOURCES if re.search(r"\bunsafe\b\s*[{a-z]", path.read_text(encoding="utf-8"))]
    assert unsafe == ["objects.rs"]
