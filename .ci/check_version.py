"""Check that all files that name the version of a release name the same one.

Usage: check_version.py [TAG]. Exits 1 with a line for each that differs.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "conda/recipe.yaml": r'^  version: "(.+)"$',
}


def versions() -> Iterator[tuple[str, str]]:
    """Each place that names a version, and the version."""
    for place, pattern in PLACES.items():
        found = re.search(pattern, (ROOT / place).read_text(encoding="utf-8"), re.MULTILINE)
        yield place, found[1] if found else "none"


def problems(tag: str | None = None) -> Iterator[str]:
    """What differs from the version of the project; a tag has to be in the change log, too."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    yield from (f"{place}: {version}, expected {own}" for place, version in versions() if version != own)
    if tag is not None and tag != f"v{own}":
        yield f"the tag is {tag}, expected v{own}"
    if tag is not None and f"\n## [{own}] - " not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"CHANGELOG.md: no section [{own}] with a date"


if __name__ == "__main__":
    found = list(problems(*sys.argv[1:2]))
    sys.exit("\n".join(found) or 0)
