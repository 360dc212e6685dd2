"""The locks: what they hold, what they must not hold, and that they serve what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
EXTRAS = [line for lines in PROJECT["optional-dependencies"].values() for line in lines if "mtosi-jms[" not in line]
NEEDED = [*PROJECT["dependencies"], *PYPROJECT["build-system"]["requires"], *EXTRAS, *GROUPS["test"], *GROUPS["docs"]]
LOCKS = {
    "requirements.lock": [*NEEDED, *(line for line in GROUPS["dev"] if isinstance(line, str))],
    "release.lock": [*PYPROJECT["build-system"]["requires"], *GROUPS["release"]],
}
ENTRY = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; [^\n]+)? \\\n(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+")


@pytest.mark.obligation("SEC27")
@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_pinned_versions_with_hashes_that_fit_and_no_index(lock: str) -> None:
    text = re.sub(r"^ *#.*\n", "", (ROOT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert ENTRY.sub("", text) == ""
    entries = {match["name"]: match["version"] for match in ENTRY.finditer(text)}
    wanted = [Requirement(line) for line in LOCKS[lock]]
    assert [str(one) for one in wanted if not one.specifier.contains(entries[canonicalize_name(one.name)])] == []
