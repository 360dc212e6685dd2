"""Every link of the README and the docs leads somewhere: a file that is there, a heading or an anchor in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
RULE = re.compile(r"(?:AX|[RPOCA])\d+[a-f]?|T[1-4]\.\d+")


def anchors(page: Path) -> set[str]:
    """The anchors of a file: those of its headings, as GitHub makes them, its own, and the lines of a source file."""
    if page.suffix == ".py":
        return {f"L{number}" for number in range(1, page.read_text(encoding="utf-8").count("\n") + 2)}
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    dead = []
    for label, link in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`(?!\])", "", text)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
        elif target.name == "conformance.md" and RULE.fullmatch(label) and anchor != label.lower():
            dead.append(f"{label}: {link}")
    assert dead == []
